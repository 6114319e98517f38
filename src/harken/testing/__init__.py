"""Contract suites and builders that others may use: what you add passes the same tests as what is ours.

The names are looked up when first asked for, since the suites need pytest and Hypothesis.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .formats import FormatContract as FormatContract
    from .repo import RepoContract as RepoContract
    from .runtimes import RuntimeContract as RuntimeContract
    from .store import StoreContract as StoreContract

_HOME = {"FormatContract": "formats", "RepoContract": "repo", "RuntimeContract": "runtimes", "StoreContract": "store"}

__all__ = ["FormatContract", "RepoContract", "RuntimeContract", "StoreContract"]


def __getattr__(name: str) -> Any:
    try:
        module = _HOME[name]
    except KeyError:
        raise AttributeError(f"module 'harken.testing' has no attribute {name!r}") from None
    return getattr(importlib.import_module(f".{module}", __name__), name)
