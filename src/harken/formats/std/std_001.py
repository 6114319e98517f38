"""`std-001`: a session document of STD-001, which tells of a session of one agent."""

from __future__ import annotations

from .formatting import document_format

FORMAT = document_format("std-001")
