"""Where sub-agents branch off: from a chain's `spawned_from` to the commit of its parent's chain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from harken.errors import Evicted
from harken.events import ToolCall
from harken.formats import find as find_format
from harken.store.base import Commit, SessionRow, Store, WalkStep

from . import refs, walk
from .chains import SourceMemory
from .message_places import may_hold


def spawn_points(store: Store, firsts: Iterable[Commit]) -> dict[str, str]:
    """For each chain's first commit the commit it was spawned at, as far as that can be told."""
    found: dict[str, str] = {}
    open_calls: dict[str, dict[str, list[str]]] = {}
    for first in firsts:
        origin = first.spawned_from if not first.parent else None
        if not origin:
            continue
        if commit := origin.get("commit"):
            found[first.id] = str(commit)
        elif isinstance(offset := origin.get("offset"), int):
            if commit := _at_offset(store, first, str(origin.get("session", "")), offset):
                found[first.id] = commit
        elif call := origin.get("call_id"):
            calls = open_calls.setdefault(str(origin.get("session", "")), {})
            calls.setdefault(str(call), []).append(first.id)
    for session, calls in open_calls.items():
        for call, commit in _holders(store, session, set(calls)).items():
            found.update(dict.fromkeys(calls[call], commit))
    return found


def resolve_origin(store: Store, origin: dict[str, Any] | None, time: int) -> dict[str, Any] | None:
    """`spawned_from` with the commit whose context is handed over, while it can still be told."""
    if not origin or not origin.get("inherits") or origin.get("commit"):
        return origin
    session, call = str(origin.get("session", "")), str(origin.get("call_id") or "")
    found = _holders(store, session, {call}).get(call) if call else None
    if found is None and (row := refs.find_session(store, session)) and row.tip:
        found = next((commit.id for commit in store.chain(row.tip) if commit.time <= time), None)
    return origin | {"commit": found} if found else origin


def _at_offset(store: Store, first: Commit, session: str, offset: int) -> str:
    """The commit of another file's chain that holds the last of its first `offset` bytes.

    The file may be one of the same session, which then is the newest that is older than the chain itself."""
    row = refs.find_session(store, session)
    tips = [row.tip, *row.older] if row is not None and row.tip else []
    chains = [[step for step in reversed(store.walk(tip)) if step.commit_type == walk.DELTA] for tip in tips]
    own = next((place for place, chain in enumerate(chains) if chain and chain[0].id == first.id), -1)
    return next(filter(None, (_reaching(store, chain, offset) for chain in chains[own + 1 :])), "")


def commit_at(store: Store, row: SessionRow, offset: int) -> str:
    """The commit of a session's chain that holds the last of the first `offset` bytes; empty where it is shorter."""
    steps = [step for step in reversed(store.walk(row.tip)) if step.commit_type == walk.DELTA]
    return _reaching(store, steps, offset)


def from_beginning(store: Store, session: str, ranked: Sequence[SourceMemory]) -> tuple[str, int]:
    """The title and the messages of a session whose newest source goes on from older ones, the newest of them first: a
    conversation that went back to an earlier point lies in a file for each time. The title chosen last wins."""
    known, *older = ranked
    title, named, messages = known.title, known.named, known.messages
    while (origin := known.spawned_from) and origin.get("session") == (known.session or session):
        place, before = _messages_before(store, [each.chain.tip for each in older], int(origin.get("offset") or 0))
        if place < 0:
            break
        known, *older = older[place:]
        messages += before
        if before and not named:
            title, named = known.title or title, known.named
    return title, messages


def _messages_before(store: Store, tips: Sequence[str], offset: int) -> tuple[int, int]:
    """Which of these chains first holds the `offset` bytes that another goes on from, and how many messages it has up
    to there; -1 where none does."""
    for place, tip in enumerate(tips):
        steps = [step for step in reversed(store.walk(tip)) if step.commit_type == walk.DELTA] if tip else []
        if offset and (last := _reaching(store, steps, offset)):
            until = next(at for at, step in enumerate(steps) if step.id == last)
            return place, sum(step.message_count or 0 for step in steps[: until + 1])
    return -1, 0


def _reaching(store: Store, chain: Sequence[WalkStep], offset: int) -> str:
    end, infos = 0, store.infos([step.artifact for step in chain])
    for step in chain:
        # One that is not here is asked for by itself, which says so.
        end += (infos.get(step.artifact) or store.info(step.artifact)).size
        if end >= offset:
            return step.id
    return ""


def _holders(store: Store, session: str, calls: set[str]) -> dict[str, str]:
    """The first commit of a session's chain that makes each call; the chain is read once."""
    row = refs.find_session(store, session)
    if row is None or not row.tip:
        return {}
    deltas = walk.all_deltas(store.walk(row.tip))[::-1]
    waiting = {call.encode("utf-8", "replace"): call for call in calls}
    found: dict[str, str] = {}
    for delta, data in _with_bytes(store, deltas):
        for needle in _called(delta.format, data, waiting):
            found[waiting.pop(needle)] = delta.id
        if not waiting:
            break
    return found


def _with_bytes(store: Store, deltas: Sequence[WalkStep]) -> Iterator[tuple[WalkStep, bytes]]:
    """The deltas with what they hold. What was evicted or forgotten is left out: nobody can say who called there."""
    done = 0
    try:
        for delta, data in zip(deltas, store.get_many([delta.artifact for delta in deltas]), strict=True):
            yield delta, data
            done += 1
    except Evicted:
        for delta in deltas[done:]:
            with suppress(Evicted):
                yield delta, store.get(delta.artifact)


def _called(format: str, data: bytes, waiting: Iterable[bytes]) -> list[bytes]:
    """Those of the calls that a delta makes. Their ids alone say little: Claude Code writes down what it sends to the
    model as well, and may do so before the call itself. They will do where nobody can read the delta."""
    held = [needle for needle in waiting if may_hold(format, data, needle)]
    known = find_format(format)
    if not held or known is None or "read" not in known.can:
        return held
    calls = {event.id.encode("utf-8", "replace") for event in known.read_delta(data) if isinstance(event, ToolCall)}
    return [needle for needle in held if needle in calls]
