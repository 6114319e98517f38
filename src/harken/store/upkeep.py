"""What keeps a store in SQLite well: checking, collecting, copying, forgetting; each is loaded when it is needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, cast

from .commits import SqliteCommits
from .reports import GcReport, Report
from .tombstones import LIFTED, Erasure, ErasureOrder

if TYPE_CHECKING:
    from .sqlite import SqliteStore


class SqliteUpkeep(SqliteCommits):
    """What is done to a store as a whole."""

    def fsck(self, *, read_data: bool = False, repair: bool = False, now: int | None = None) -> Report:
        """Is everything what it says it is?"""
        from .checking import check

        return check(self._whole, read_data=read_data, repair=repair, now=now)

    def gc(
        self,
        *,
        dry_run: bool = False,
        now: int | None = None,
        keep_cache: bool = False,
        limit: int | None = None,
        backing: Callable[[str], bool] | None = None,
        needed: Iterable[str] = (),
    ) -> GcReport:
        """Remove what nothing needs."""
        from .collecting import collect

        return collect(
            self._whole, dry_run=dry_run, now=now, keep_cache=keep_cache, limit=limit, backing=backing, needed=needed
        )

    def backup(self, path: str | os.PathLike[str]) -> int:
        """Copy the store as it is now into a new file, a store of its own; the answer is its size in bytes."""
        from .copying import copy_file

        return copy_file(self._whole, path)

    def erasures(self) -> list[Erasure]:
        """Everything that was forgotten, the oldest first."""
        from .erasing import erasures

        return erasures(self)

    def contents(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        """Every artifact that has bytes, in the order in which they lie."""
        from .erasing import contents

        return contents(self._whole)

    def erase(self, order: ErasureOrder) -> Erasure:
        """Forget, in one transaction."""
        from .erasing import erase

        return erase(self._whole, order)

    def scrub(self) -> None:
        """Take what nobody points at out of the file."""
        from .erasing import scrub

        scrub(self._whole)

    def finish_erasure(self, number: int) -> None:
        """Note that an erasure is done."""
        from .erasing import finish

        finish(self._whole, number)

    def lift_erasure(self, number: int) -> None:
        """Let in again what was forgotten."""
        from .erasing import finish

        finish(self._whole, number, LIFTED)

    @property
    def _whole(self) -> SqliteStore:
        return cast("SqliteStore", self)
