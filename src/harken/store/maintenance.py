"""Looking after a store: the sentences of `Maintenance` as functions, for whoever holds a store of any kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from .base import Maintenance
from .reports import GcReport, Report


def fsck(store: Maintenance, *, read_data: bool = False, repair: bool = False, now: int | None = None) -> Report:
    """Is everything in the store what it says it is?"""
    return store.fsck(read_data=read_data, repair=repair, now=now)


def gc(
    store: Maintenance,
    *,
    dry_run: bool = False,
    now: int | None = None,
    keep_cache: bool = False,
    limit: int | None = None,
    backing: Callable[[str], bool] | None = None,
    needed: Iterable[str] = (),
) -> GcReport:
    """Remove what nothing in the store needs."""
    return store.gc(dry_run=dry_run, now=now, keep_cache=keep_cache, limit=limit, backing=backing, needed=needed)


def backup(store: Maintenance, path: str | os.PathLike[str]) -> int:
    """Copy the store into a new file; the answer is its size in bytes."""
    return store.backup(path)
