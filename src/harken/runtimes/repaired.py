"""What a repair left of a session, while an import brings its sources back: the row's `state` is empty then, and its
tips are all that says what the session had."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import msgspec

from harken.context.chains import SourceMemory, Sources
from harken.context.materialize import DEFAULT_FORMAT
from harken.context.names import LIVE_BRANCH
from harken.errors import HarkenError
from harken.store import SessionRow, Store

from .memory import row_of


def rejoin(
    store: Store, row: SessionRow, changed: SessionRow, sources: Sources, path: str, *, last: bool
) -> tuple[SessionRow, SourceMemory]:
    """The row that the sources make (`changed`) of what a repair left (`row`), and what is remembered of the source at
    `path`. Until all of that is read, and where it has no more than was left, the session stays where it stood, and
    lost in part. After that the tips that its chain does not contain are older ones."""
    now = sources[path]
    held = msgspec.structs.replace(changed, tip=row.tip, older=row.older, lost=True)
    if not last:
        return held, now
    chain = [link.id for link in reversed(store.walk(now.chain.tip))] if now.chain.tip else []
    left = [tip for tip in _from_sources(store, row) if not _contains(store, chain, tip)]
    if (
        row.lost
        and row.tip in left
        and (now.chain.tip in ("", *row.older) or _is_behind(store, now.chain.tip, row.tip))
    ):
        older = _different((*row.older, changed.tip, *changed.older), row.tip)
        return msgspec.structs.replace(held, older=older), now
    # Other sources that have come since the repair say themselves where they end.
    others = {tip for other, known in sources.items() if other != path for tip in (known.chain.tip, *known.old_tips)}
    old_tips = _different((*now.old_tips, *(tip for tip in left if tip not in others)), now.chain.tip)
    now = msgspec.structs.replace(now, old_tips=old_tips)
    return msgspec.structs.replace(row_of(store, row, {**sources, path: now}), lost=False), now


def _from_sources(store: Store, row: SessionRow) -> list[str]:
    """The row's tips, without those of a recording, which is compared with what the source says."""
    tips = _different((row.tip, *row.older), "")
    if store.find_name(LIVE_BRANCH + row.session) is None:
        return [*tips]
    return [tip for tip in tips if store.get_commit(tip).format != DEFAULT_FORMAT]


def _different(tips: Iterable[str], tip: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(other for other in tips if other not in ("", tip)))


def _is_behind(store: Store, commit: str, tip: str) -> bool:
    with contextlib.suppress(HarkenError):  # where the chain has a gap still, the source did not close it
        return any(link.id == commit for link in store.walk(tip))
    return False


def _contains(store: Store, chain: list[str], tip: str) -> bool:
    """Whether a chain, from its root on, has the commit, or the bytes of one that was the end when the source was
    shorter: such a tail gives way."""
    if tip in chain:
        return True
    with contextlib.suppress(HarkenError):
        commit = store.get_commit(tip)
        if commit.parent and commit.parent not in chain:
            return False
        data = store.get(commit.artifact)
        after = chain[chain.index(commit.parent) + 1 if commit.parent else 0 :]
        bytes_there = b""
        for artifact in (store.get_commit(other).artifact for other in after):
            bytes_there += store.get(artifact)
            if len(bytes_there) >= len(data):
                return bytes_there.startswith(data)
    return False
