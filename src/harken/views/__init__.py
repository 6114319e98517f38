"""Folds for people: the dialog, a perspective, the flow, and who heard what.

`IndexBuilder` reads the events of a session once; the views are functions of the index that return plain values, and
`SessionViewer` gathers them behind the name of a file.
"""

from __future__ import annotations

from .index import Index, IndexBuilder
from .viewer import SessionViewer

__all__ = ["Index", "IndexBuilder", "SessionViewer"]
