"""`std-008`: a session document of STD-008, which tells of a session of several agents."""

from __future__ import annotations

from .formatting import document_format

FORMAT = document_format("std-008")
