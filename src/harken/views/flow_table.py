"""The flow of a session as a table: a column for each agent, a row for each thing said, and who heard it how.

One pass over the index of a session; what comes out is small and holds no record, so that it can be kept while
somebody looks at it. Who knew what at a moment is then a question about positions: a content had reached an agent when
one of its places before that moment is the agent's.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from harken.errors import BadRequest
from harken.events import ToolResult
from harken.events.base import clean
from harken.events.verdicts import Deny

from .agents import agent_tree
from .base import ACTION, CREATED, EDITED, RECEIVED, SAID, SYSTEM, TEXT, THOUGHT
from .flow import contents
from .hearing import reaches, said_and_heard, source_of
from .index import Index
from .interventions import interventions
from .perspective import deeds, thoughts
from .wording import Differ

SPOKEN, INJECTED, MADE, CALL = "spoken", "injected", "made", "call"
RESULT, THINKING, OTHER_KIND = "result", "thinking", "other"
VERBATIM, NAMED, IN_RESULT, CHANGED, BLOCKED = "verbatim", "named", "result", "changed", "blocked"
WORDS = 2000
"""Characters of a text that the table keeps."""
LEVELS = {"none": (SPOKEN, MADE), "some": (SPOKEN, INJECTED, MADE, CALL), "all": ()}
"""Which kinds of rows there are beside what was said; nothing stands for all."""


class FlowColumn(NamedTuple):
    """An agent, as a column."""

    agent: str
    """Its id; empty for whoever is outside the session."""
    name: str
    role: str
    parent: str | None
    model: str
    begins: int
    """The position of its first record."""


class FlowReach(NamedTuple):
    """Somebody to whom a content came."""

    position: int
    agent: str
    how: str
    """`said`; `verbatim`, `named`, `result`, `changed` or `blocked`."""
    message: str
    time: int | None
    heard: str = ""
    """The words that were heard, where they are others."""
    pieces: tuple[tuple[str, str], ...] = ()
    """How they differ: `same`, `removed` or `added`, and the words."""
    hook: str = ""
    """Who changed or blocked it."""


class FlowRow(NamedTuple):
    """Something that was said, made or done."""

    position: int
    """Where it happened; what nobody logged stands where it was first heard."""
    kind: str
    """`spoken`, `injected` (by a program), `made` (agents), `call`, `result`, `thinking` or `other`."""
    speaker: str
    """The agent's id; empty for whoever is outside."""
    source: str
    """Where it came from if no agent said it, as in the flow."""
    message: str
    time: int | None
    text: str
    cut: int
    """Characters that were left out."""
    reached: tuple[FlowReach, ...] = ()
    """Those to whom it came, whoever said it included, in the order of it."""
    made: tuple[str, ...] = ()
    failed: bool = False


class FlowTable(msgspec.Struct, frozen=True, kw_only=True):
    """A session's flow."""

    columns: list[FlowColumn]
    rows: list[FlowRow]
    """Of every kind, in the order in which they happened."""
    times: list[int]
    """When each record happened, or the last before it that says so; 0 before any does."""
    places: dict[str, int]
    """The positions of the messages that rows and hearings name."""
    changed: int
    blocked: int

    def until(self, moment: str) -> int:
        """How many records had happened by a moment: an instant in microseconds as text, or a message; empty is the
        end."""
        if not moment:
            return len(self.times)
        if moment in self.places:
            return self.places[moment] + 1
        if not moment.lstrip("-").isdigit():
            raise BadRequest(
                f"{moment!r:.80} is neither a time nor a message of this session",
                hint="a time is 2026-01-31T12:00:00Z; or name the last message that counts",
            )
        return bisect_right(self.times, int(moment))

    def known_to(self, row: FlowRow, agent: str, until: int) -> FlowReach | None:
        """By which of its reaches an agent first knew a row, in the first `until` records; None where it did not.

        What an agent tells another it made stands in the other's records alone. It said that all the same."""
        own = (one for one in row.reached if one.agent == agent and one.how != BLOCKED and one.position < until)
        said = FlowReach(row.position, agent, "said", "", row.time)
        return next(own, said if row.speaker == agent and row.position < until else None)


def flow_table(index: Index) -> FlowTable:
    """The table of a session."""
    hooks = {info.agent_id for info in index.agents.values() if info.role == "hook"}
    meddled = interventions(index)
    by_delivery = {one["message_id"]: one["hook"] or "" for one in meddled}
    found = [*_spoken(index, hooks, by_delivery), *_made(index, hooks), *_deeds(index, hooks)]
    found.sort(key=lambda row: (row.position, row.kind != SPOKEN))
    places = {row.message: row.position for row in found if row.message}
    for row in found:
        places.update((one.message, one.position) for one in row.reached if one.message not in places)
    return FlowTable(
        columns=_columns(index, hooks, found),
        rows=found,
        times=_times(index),
        places=places,
        changed=sum(one["kind"] == "changed" for one in meddled),
        blocked=sum(one["kind"] != "changed" for one in meddled),
    )


def _times(index: Index) -> list[int]:
    """Each at least as late as the one before, so that a moment can be looked up."""
    found, last = [], 0
    for record in index.records:
        time = record[0].time
        last = max(last, time) if time is not None else last
        found.append(last)
    return found


def _columns(index: Index, hooks: set[str], rows: Iterable[FlowRow]) -> list[FlowColumn]:
    begins: dict[str, int] = {}
    for at, holder in enumerate(index.holders):
        if holder is not None:
            begins.setdefault(holder, at)
    outside = any(row.kind == SPOKEN and not row.speaker for row in rows)
    found = [FlowColumn("", "You", "outside", None, "", 0)] if outside else []
    for agent in agent_tree(index):
        name = agent["agent_id"]
        if name not in hooks:
            model, parent = agent["language_model"], agent["parent"]
            found.append(
                FlowColumn(name, clean(agent["name"]), agent["role"], parent, clean(model), begins.get(name, 0))
            )
    return found


def _cut(text: str) -> tuple[str, int]:
    text = clean(text)
    return text[:WORDS], max(0, len(text) - WORDS)


# -- what was said -----------------------------------------------------------------------------------------------------


def _spoken(index: Index, hooks: set[str], by_delivery: dict[str, str]) -> Iterator[FlowRow]:
    differ = Differ()
    for root in contents(index):
        reached = sorted(_reached(index, root, hooks, by_delivery, differ))
        speaker = (index.authors[root] if root >= 0 else None) or ""
        if speaker in hooks or not (speaker or reached):
            continue  # what hooks are asked and answer is told with what they changed
        position = root if root >= 0 else reached[0].position
        text, cut = _cut(index.texts[root] if root >= 0 and index.texts[root] else index.texts[position])
        source = source_of(index, root) or ""
        kind = INJECTED if source == "injected" else SPOKEN
        yield FlowRow(
            position, kind, speaker, source, index.id_of(root), index.time(position), text, cut, tuple(reached)
        )


def _reached(
    index: Index, root: int, hooks: set[str], by_delivery: dict[str, str], differ: Differ
) -> Iterator[FlowReach]:
    seen: set[tuple[int, str]] = set()
    for at, member in reaches(index, root):
        agent = index.holders[at] or index.authors[at] or ""
        if not agent or agent in hooks or (at, agent) in seen:
            continue
        seen.add((at, agent))
        yield _reach(index, at, member, agent, by_delivery, differ)
    told = {agent for _, agent in seen}
    for ruling in index.verdicts.by_content.get(root, ()):
        if isinstance(ruling.verdict, Deny):
            for agent in ruling.recipients or ():
                if agent not in told:
                    name = index.name(index.holders[ruling.answer])
                    time = index.time(ruling.answer)
                    yield FlowReach(ruling.answer, agent, BLOCKED, index.ids[ruling.answer], time, "", (), name)


def _reach(index: Index, at: int, member: int, agent: str, by_delivery: dict[str, str], differ: Differ) -> FlowReach:
    kind, message, time = index.kinds[at], index.ids[at], index.time(at)
    if index.authors[at] == agent and at == member and kind in (SAID, TEXT, ACTION):
        return FlowReach(at, agent, "said", message, time)
    if at != member:
        return FlowReach(at, agent, IN_RESULT, message, time)
    said, label, heard = said_and_heard(index, at)
    if at != index.root[at] and index.root[at] >= 0 and said != heard:
        said, heard = clean(said[:WORDS]), clean(heard[:WORDS])
        pieces = tuple((one["op"], one["text"]) for one in differ.compare(said, heard)[:PIECES])
        return FlowReach(at, agent, CHANGED, message, time, heard, pieces, by_delivery.get(message, ""))
    if kind == RECEIVED:
        return FlowReach(at, agent, IN_RESULT, message, time)
    return FlowReach(at, agent, NAMED if label else VERBATIM, message, time)


PIECES = 200
"""Pieces of a comparison that are kept."""


# -- what was made and done --------------------------------------------------------------------------------------------


def _made(index: Index, hooks: set[str]) -> Iterator[FlowRow]:
    """Agents that were made one after the other by the same one are one row."""
    waiting: list[int] = []

    def maker(at: int) -> str | None:
        return index.agents[index.holders[at] or ""].parent

    def row() -> FlowRow:
        first = waiting[0]
        names = tuple(index.holders[at] or "" for at in waiting)
        return FlowRow(first, MADE, maker(first) or "", "", index.ids[first], index.time(first), "", 0, (), names)

    for at, kind in enumerate(index.kinds):
        if kind != CREATED or index.holders[at] in hooks:
            continue
        own = index.agents[index.holders[at] or ""]
        if own.created != at or own.parent not in index.agents:
            continue
        if waiting and (at - waiting[-1] > _NEAR or maker(waiting[0]) != own.parent):
            yield row()
            waiting = []
        waiting.append(at)
    if waiting:
        yield row()


_NEAR = 8
"""Records between two creations that still are one row."""
_DONE = {ACTION: CALL, RECEIVED: RESULT, THOUGHT: THINKING, SYSTEM: OTHER_KIND, EDITED: OTHER_KIND}


def _deeds(index: Index, hooks: set[str]) -> Iterator[FlowRow]:
    """Calls, results, thoughts and whatever else stands in a transcript and is nobody's words to others."""
    failed = _failed_calls(index)
    for at, kind in enumerate(index.kinds):
        holder = index.holders[at]
        if kind not in _DONE or holder is None or holder in hooks:
            continue
        if kind == ACTION:
            told = "\n".join(deeds(index.records[at]))
        elif kind == THOUGHT:
            told = "\n".join(thoughts(index.records[at]))
        else:
            told = index.texts[at]
        text, cut = _cut(told)
        wrong = at in failed
        yield FlowRow(at, _DONE[kind], holder, "", index.ids[at], index.time(at), text, cut, (), (), wrong)


def _failed_calls(index: Index) -> set[int]:
    """The positions of calls and results that failed."""
    found: set[int] = set()
    for at, kind in enumerate(index.kinds):
        if kind == RECEIVED and any(isinstance(event, ToolResult) and event.is_error for event in index.records[at]):
            found.add(at)
            if (call := index.answers.get(at)) is not None:
                found.add(call)
    return found
