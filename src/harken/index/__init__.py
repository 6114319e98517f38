"""Everything that is derived from a store, in a file beside it: words, rows and numbers. It may be deleted at any time.

The file follows the store's feed (`follow.py`) and is made of what the commits say (`rows.py`); search, `stats`,
`sessions` and SQL read it. Nothing in it is the only copy of anything, and no text is stored.
"""

from __future__ import annotations

from .file import StoreIndex
from .progress import IndexProgress, IndexStatus, OnProgress

__all__ = ["IndexProgress", "IndexStatus", "OnProgress", "StoreIndex"]
