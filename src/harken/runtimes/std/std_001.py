"""Session documents of STD-001."""

from __future__ import annotations

from .reading import document_runtime

RUNTIME = document_runtime("std-001")
