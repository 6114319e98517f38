"""Session documents of STD-008."""

from __future__ import annotations

from .reading import document_runtime

RUNTIME = document_runtime("std-008")
