"""The sentences of `Repo` about the store as a whole: what changed in it, and whether it is sound."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from harken import clock as clocks
from harken.context.materialize import keeping_recipes
from harken.store import Change, GcReport, Report, Store, backup, fsck, gc

if TYPE_CHECKING:
    from harken.runtimes.spooled import SpoolResult


class Upkeep:
    """A store that is followed and looked after."""

    store: Store
    clock: clocks.Clock

    # -- following the store -----------------------------------------------------------------------------------

    @property
    def epoch(self) -> str:
        """Tells a store from its backups and repairs: whoever follows one and meets another epoch starts over."""
        return self.store.epoch

    def last_change(self) -> int:
        """The number of the newest change; 0 where nothing ever changed."""
        return self.store.last_change()

    def since(self, number: int, limit: int = 1000) -> list[Change]:
        """The changes after that number, oldest first."""
        return self.store.since(number, limit)

    def wait(self, number: int, timeout: float) -> bool:
        """Wait for a change after that number, by whatever thread or process; False where none came in time."""
        return self.store.wait(number, timeout)

    # -- looking after the store -------------------------------------------------------------------------------

    def gc(self, *, dry_run: bool = False, keep_cache: bool = False) -> GcReport:
        """Remove what nothing needs: the cache, expired artifacts, empty space. Commits and their bytes stay, and what
        `materialize` answered can still be had by its name."""
        if dry_run or keep_cache:
            return gc(self.store, dry_run=dry_run, keep_cache=keep_cache, now=self.clock())
        with keeping_recipes(self.store):
            return gc(self.store, now=self.clock())

    def fsck(self, *, read_data: bool = False, repair: bool = False) -> Report:
        """Check that everything is what it says it is; `read_data` reads every byte, `repair` sets damage aside."""
        return fsck(self.store, read_data=read_data, repair=repair, now=self.clock())

    def backup(self, path: str | os.PathLike[str]) -> int:
        """Copy the store into a new file while others use it, and the spools beside it; the answer is the size of the
        file in bytes."""
        from harken.runtimes.spool import copied_spools  # most commands do without

        with copied_spools(self.store, Path(path).absolute()):
            return backup(self.store, path)

    def waiting_spools(self) -> list[Path]:
        """The spools of runs that are over, beside the store: what they hold is not all in the store."""
        from harken.runtimes.spool import waiting_spools

        return waiting_spools(self.store)

    def store_spools(self) -> list[SpoolResult]:
        """Store what runs have left in spools beside the store, since it could not be written; what became of each."""
        from harken.runtimes.spool import odd_spools, spools

        if not (spools(self.store) or odd_spools(Path(self.store.location))):
            return []
        from harken.runtimes.spooled import store_spools  # seldom is there one

        return store_spools(self.store)
