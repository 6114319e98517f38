"""What an answer from the index lacks: one rule for `search`, `sql`, `stats`, `index` and `export --to parquet`.

An index that is merely late says by how much, and the next one who asks finds it further on: a remark. So is what was
evicted, or has a format that nothing here reads. One that cannot follow its store, since there is no room or something
is damaged, gives what it has and then an error: what it does not find may be there.
"""

from __future__ import annotations

from harken.errors import Corrupt, HarkenError

from . import ui


def tell_what_is_missing(
    *, behind: int, stale: int = 0, missing: int = 0, damaged: int = 0, problem: str = "", quiet: bool = False
) -> None:
    """Say it behind the answer; an error where the index cannot follow. With `quiet` remarks are left out: a line of
    JSON has said the same."""
    late = [ui.count(behind, "change")] if behind else []
    late += [f"the numbers of {ui.count(stale, 'session')}"] if stale else []
    by = " and ".join(late)
    named = "`harken index --status` names them"
    if missing > damaged and not quiet:
        parts = ui.count(missing - damaged, "part")
        ui.warn(f"{parts} of the store cannot be read, so something is missing; {named}")
    if late and problem:
        told = f"this is not all: the index is behind the store by {by} and cannot follow it: {problem}"
        raise HarkenError(told, hint="`harken index` says whether it can when that is mended")
    if problem and not quiet:
        ui.warn(f"the index is held in memory, since its file cannot be written: {problem}")
    elif late and not quiet:
        ui.warn(f"the index is behind the store by {by}; `harken index` brings it up to date")
    if damaged:
        told = f"this is not all: {ui.count(damaged, 'part')} of the store cannot be read"
        raise Corrupt(told, hint=f"{named}, `harken fsck` says what is lost")
