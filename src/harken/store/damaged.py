"""A store whose file SQLite refuses: cut off, or without the pages that say where everything lies.

What can be salvaged of it can be looked at, and checked: it is put in a temporary file, which goes when the store is
closed. The file itself stays as it is until somebody asks for a repair.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from harken import clock
from harken.errors import Corrupt, HarkenError

from .pages import PAGE
from .read_only import ReadOnlyDatabase
from .salvage import salvage
from .settling import Settler

LEFT = "left.db"


def instead(path: Path, problem: HarkenError, timeout: float, *, damaged: bool) -> ReadOnlyDatabase:
    """What can be looked at where a store cannot be opened as it should: what is left of a damaged one, if the caller
    knows that it may be less than there was, and one that cannot be written to for now, as on a disk without any room.
    Else the problem is raised."""
    if isinstance(problem, Corrupt) and damaged:
        return what_is_left(path, problem)
    # An error of no kind of its own is the disk's (no room, a file beside it that cannot be made): what can be read is
    # sound. The kinds are not: a file that is held, cut off or a stranger's has to be refused.
    if type(problem) is HarkenError and path.is_file() and path.stat().st_size:
        with contextlib.suppress(HarkenError):
            database = ReadOnlyDatabase(path, timeout=timeout)
            database.why = problem
            return database
    raise problem


def what_is_left(path: Path, problem: Corrupt) -> DamagedDatabase:
    """A database of what can be salvaged; the problem itself where that is nothing."""
    if not path.is_file() or path.stat().st_size < PAGE:
        raise problem
    folder = Path(tempfile.mkdtemp(prefix="harken-damaged-"))
    try:
        return DamagedDatabase(path, folder, problem, _salvage(path, folder / LEFT, problem))
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        hint = f"{folder.parent} has to have room for what is left of it"
        raise HarkenError(f"{path} is damaged, and cannot be read: {error.strerror}", hint=hint) from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _salvage(path: Path, new: Path, problem: Corrupt) -> list[str]:
    """Fill the new file; what was lost."""
    from .sqlite import SqliteStore

    found = salvage(path, new, clock.now())
    if not found.taken:
        raise problem
    with contextlib.closing(SqliteStore(new)) as left:
        settler = Settler(left, clock.now())
        settler.run(found)
    return found.lost + settler.lost


class DamagedDatabase(ReadOnlyDatabase):
    """What is left of a store; whoever wants to write is told to repair it first."""

    def __init__(self, path: Path, folder: Path, problem: Corrupt, lost: Sequence[str]) -> None:
        self._damaged, self._folder, self.problem, self.lost = path, folder, problem, lost
        super().__init__(folder / LEFT)

    def _refusal(self) -> HarkenError:
        return Corrupt(
            f"{self._damaged} is damaged, and nothing can be written to it: {self.problem}",
            hint="`harken fsck --repair` saves what is left of it",
        )

    def _let_go(self) -> None:
        super()._let_go()
        shutil.rmtree(self._folder, ignore_errors=True)
