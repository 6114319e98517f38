"""Hearing and knowing: to whom a content came, when, in which wording, and by which way."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import datetime
from heapq import merge
from typing import TypedDict

from harken import clock
from harken.errors import BadRequest
from harken.events import Output, Prompt, TranscriptEdit
from harken.events.base import holds
from harken.events.edits import EditedEntries, continues, is_entry

from .base import ACTION, CREATED, EDITED, HEARD, RECEIVED, SAID, SYSTEM, TEXT
from .index import Index
from .verdicts import is_withheld

_LABEL = re.compile(r"\[([^\]\n]{1,200})\]: ")
LABELS = 8
"""How many labels, one before the other, are looked for."""
When = datetime | str | float | None
"""A datetime, RFC 3339 text, seconds since 1970 (or milliseconds or microseconds), a message id; None is the end."""


class Heard(TypedDict):
    """One delivery of a content to one agent."""

    agent_id: str
    message_id: str
    """The entry in the hearer's transcript."""
    time: str | None
    content: str
    """The wording that was heard."""
    hops: int
    """Deliveries between the original and this one; 0 where the original itself was put before the agent."""
    changed: bool
    """Whether the wording differs from the original, the `[Name]: ` before it apart."""


class Compiled(TypedDict):
    """A tool result that was put together from the content, perhaps among others."""

    agent_id: str
    message_id: str
    time: str | None


class PathStep(TypedDict):
    """A station on the way to an agent."""

    message_id: str
    agent_id: str | None
    kind: str
    content: str


class Knowledge(TypedDict):
    """Whether something reached an agent, and how."""

    agent_id: str
    knows: bool | None
    """None where nothing that can be read brought it, and records that nobody can read might have."""
    how: str | None
    """`said`, `made`, `heard`, `received`, `did`, `told` (its instructions), `reminded` (a summary of its own past)."""
    message_id: str | None
    time: str | None
    changed: bool
    forgotten: bool
    """Whether all that brought it has since been cut from the agent's transcript, or folded into a summary."""
    path: list[PathStep]
    """From the original to the agent's own entry."""


_HOW = {
    SAID: "said",
    TEXT: "made",
    HEARD: "heard",
    RECEIVED: "received",
    SYSTEM: "told",
    ACTION: "did",
    EDITED: "reminded",
}


def deliveries(index: Index, root: int) -> list[Heard]:
    """Everybody's hearing of one content, in file order; saying it is not hearing it."""
    return [_delivery(index, root, at, agent) for at, agent in sorted(hearings(index, root))]


def all_deliveries(index: Index, root: int) -> list[Heard]:
    """The same, with the results that were put together from the content: these words came to somebody as well."""
    places = {*hearings(index, root), *((at, index.holders[at] or "") for at in compilations(index, root))}
    return [_delivery(index, root, at, agent) for at, agent in sorted(places)]


def _delivery(index: Index, root: int, at: int, agent: str) -> Heard:
    return {
        "agent_id": agent,
        "message_id": index.ids[at],
        "time": index.time_text(at),
        "content": index.texts[at],
        # What holds the content among other things is new content itself, and one delivery away from it.
        "hops": index.hops[at] or int(at != root),
        "changed": is_changed(index, at),
    }


def hearings(index: Index, root: int) -> Iterator[tuple[int, str]]:
    """The positions at which a content entered a transcript from outside, with the hearer."""
    for at in index.group(root):
        holder, kind = index.holders[at], index.kinds[at]
        if holder is not None and (kind == HEARD or (index.source[at] != at and kind in (RECEIVED, SYSTEM))):
            yield at, holder
    yield from _notices(index, root)


def _notices(index: Index, root: int) -> Iterator[tuple[int, str]]:
    """Where a runtime's notice brought the content: a sub-agent in the background has answered."""
    for member in index.group(root):
        for at in index.effects.get(member, ()):
            holder, first = index.holders[at], index.records[at][0]
            injected = isinstance(first, Prompt) and first.source == "injected"
            if injected and holder is not None and _carries(index, at, member):
                yield at, holder


def source_of(index: Index, root: int) -> str | None:
    """Where a content came from that no agent said; None where one did."""
    if root < 0:
        return ""
    first = index.records[root][0]
    return None if index.authors[root] is not None else first.source if isinstance(first, Prompt) else ""


def said_and_heard(index: Index, at: int) -> tuple[str, str, str]:
    """What was said, the label before what was heard, and what was heard."""
    root, heard = index.root[at], index.texts[at]
    said = index.texts[root] if root >= 0 else heard
    if at == root or said == heard:
        return said, "", heard
    names, first = _speakers(index, at), index.records[at][0]
    own = first.label if isinstance(first, Prompt) and heard.startswith(first.label) else ""
    if own and not _names_another(index, own, names):
        return said, own, heard[len(own) :]
    return said, *split_label(heard, said, names)


def _names_another(index: Index, label: str, names: Collection[str] | None) -> bool:
    """Whether a label puts the words into another mouth; it may say how they were said (`[Ann, whispering]: `)."""
    if (found := _LABEL.fullmatch(label)) is None or names is None or found[1] in names:
        return False
    how = tuple(f"{one}, " for one in names if one)
    return not found[1].startswith(how) or found[1] in map(index.name, index.agents)


def is_changed(index: Index, at: int) -> bool:
    """Whether a delivery says something else than its original, as far as both are in the file."""
    root = index.root[at]
    if root < 0 or root == at or index.texts[root] == index.texts[at]:
        return False
    said, _, heard = said_and_heard(index, at)
    return said != heard


def _speakers(index: Index, at: int) -> set[str] | None:
    """The names of those on the way from the original to a delivery; None where the original's speaker is unknown."""
    names: set[str] = set()
    for _ in range(LABELS):
        at = index.source[at]
        agent = (index.authors[at] or index.holders[at]) if at >= 0 else None
        if agent is not None:
            names.add(agent)
            names.add(index.name(agent))
            if _is_nameless_root(index, agent):
                names.add("root")
        if at < 0 or at == index.root[at]:
            break
    return names if at >= 0 and index.authors[at] is not None else None


def _is_nameless_root(index: Index, agent_id: str) -> bool:
    """A root without a name is called `root` by the runtime that delivers its words."""
    found = index.agents.get(agent_id)
    return found is not None and found.role == "root" and not found.name


def compiled_into(index: Index, root: int) -> list[Compiled]:
    """The tool results that name the content among their causes."""
    return [
        Compiled(agent_id=index.holders[at] or "", message_id=index.ids[at], time=index.time_text(at))
        for at in compilations(index, root)
    ]


def compilations(index: Index, root: int) -> list[int]:
    """Where a tool result was put together from the content."""
    if root >= 0 and index.kinds[root] in _ACTS:
        return []
    members = list(index.group(root))
    found = {at for member in members for at in index.effects.get(member, ()) if index.kinds[at] == RECEIVED}
    found.difference_update(members)  # a record may name itself as its cause
    if index.verdicts.by_content:
        found = {at for at in found if not is_withheld(index, at, root)}
    return sorted(found)


_ACTS = (ACTION, CREATED)


def _carries(index: Index, at: int, cause: int) -> bool:
    """Whether what a content caused also holds it: a result that gathers utterances, a question that quotes one.

    A result of a call does not repeat the call.
    """
    if index.kinds[cause] in _ACTS or not index.texts[cause]:
        return False
    return index.kinds[at] == RECEIVED or (
        index.kinds[at] == HEARD and holds(index.texts[at], index.texts[cause].strip())
    )


def reaches(index: Index, root: int) -> Iterator[tuple[int, int]]:
    """Every place at which a content stands before somebody, and the event of it that is there or brought it there."""
    for member in index.group(root):
        if index.kinds[member] in _HOW:
            yield member, member
        for at in index.effects.get(member, ()):
            if _carries(index, at, member) and not is_withheld(index, at, root):
                yield at, member


def knows_message(index: Index, agent_id: str, position: int, until: int) -> Knowledge:
    """Whether the content of a message reached the agent in the first `until` events."""
    root = index.content_root(position)
    near = ((at, member) for at, member in reaches(index, root) if at < until)
    reached = sorted(
        (at, member)
        for at, member in near
        if index.holders[at] == agent_id or (at == member and index.authors[at] == agent_id)
    )
    if not reached:
        return _not_known(index, agent_id, until)
    at, member = reached[0]
    way = _way(index, member)
    changed = is_changed(index, at) if member == at else not holds(index.texts[at], index.texts[member].strip())
    found = _known(index, agent_id, at, way if member == at else [*way, at], changed=changed)
    found["forgotten"] = _forgotten(index, agent_id, [place for place, _ in reached], until)
    return found


def knows_text(index: Index, agent_id: str, text: str, until: int) -> Knowledge:
    """Whether the words, in any case, were in anything the agent heard, received, was told, or said or made itself."""
    wanted = text.casefold()
    own = (at for at in range(until) if agent_id in (index.holders[at], index.authors[at]) and index.kinds[at] in _HOW)
    reached = [at for at in own if wanted in index.texts[at].casefold()]
    if not reached:
        return _not_known(index, agent_id, until)
    at = reached[0]
    gathered = [one for one in index.parents(at) if wanted in index.texts[one].casefold()]
    before = _way(index, gathered[0]) if gathered and index.source[at] == at else []
    found = _known(index, agent_id, at, [*before, *_way(index, at)], changed=is_changed(index, at))
    found["forgotten"] = _forgotten(index, agent_id, reached, until)
    return found


def _saying(index: Index, at: int, agent_id: str) -> int | None:
    """The call with which an agent said what stands in the transcript of another one alone, since it told it that."""
    if index.kinds[at] != HEARD or index.holders[at] == agent_id or index.authors[at] != agent_id:
        return None
    return next((one for one in index.parents(at) if index.holders[one] == agent_id), None)


def _forgotten(index: Index, agent_id: str, reached: list[int], until: int) -> bool:
    """Text that an agent made for others stands in no transcript, so it cannot be cut from one."""
    if agent_id not in index.edits:
        return False
    own = (at if (call := _saying(index, at, agent_id)) is None else call for at in reached)
    entries = [at for at in own if index.kinds[at] != TEXT]
    return bool(entries) and not entries_at(index, agent_id, until).intersection(entries)


def entries_at(index: Index, agent_id: str, until: int) -> set[int]:
    """The entries of an agent's transcript that stood after the first `until` records.

    Entries may be cut off or folded into a summary later on; the log keeps them all, and the views show them."""
    entries: EditedEntries[list[int]] = EditedEntries()
    for at in merge(index.transcripts.get(agent_id, ()), index.edits.get(agent_id, ())):
        if at >= until:
            break
        event = index.records[at][0]
        if isinstance(event, TranscriptEdit):
            entries.edit(event, [at])
        elif is_entry(event):
            if (last := entries.last) is not None and continues(index.records[last[0]][0], event):
                last.append(at)
            else:
                entries.add([at])
    return {at for entry in entries for at in entry}


def _way(index: Index, at: int) -> list[int]:
    """From the root of a content to one of its events."""
    way = [at]
    while index.source[at] != at and at != index.root[at]:
        at = index.source[at]
        way.append(at)
        if at < 0:
            break
    return way[::-1]


def _known(index: Index, agent_id: str, at: int, way: list[int], *, changed: bool) -> Knowledge:
    call = _saying(index, at, agent_id)
    own = at if call is None else call
    path = [_step(index, one) for one in way]
    if call is not None:
        path = [PathStep(message_id=index.ids[call], agent_id=agent_id, kind=SAID, content=index.texts[at])]
    return Knowledge(
        agent_id=agent_id,
        knows=True,
        how=_HOW[index.kinds[at] if call is None else SAID],
        message_id=index.ids[own],
        time=index.time_text(own),
        changed=changed,
        forgotten=False,
        path=path,
    )


def _step(index: Index, at: int) -> PathStep:
    if at < 0:
        return PathStep(message_id=index.id_of(at), agent_id=None, kind="outside", content="")
    return PathStep(
        message_id=index.ids[at],
        agent_id=index.holders[at] or index.authors[at],
        kind=index.kinds[at],
        content=index.texts[at],
    )


def _not_known(index: Index, agent_id: str, until: int) -> Knowledge:
    return Knowledge(
        agent_id=agent_id,
        knows=None if any(_is_unread(index, at, agent_id) for at in range(until)) else False,
        how=None,
        message_id=None,
        time=None,
        changed=False,
        forgotten=False,
        path=[],
    )


def _is_unread(index: Index, at: int, agent_id: str) -> bool:
    """Whether nobody could read the record, and it may have been this agent's."""
    event = index.records[at][0]
    return isinstance(event, Output) and bool(event.why) and index.holders[at] in (None, agent_id)


def events_until(index: Index, moment: When) -> int:
    """How many events had happened by then: a time, or a message that was just logged.

    The file is in the order of happening, so an event without a time stands with the last time before it."""
    if moment is None:
        return len(index.records)
    if isinstance(moment, str) and moment in index.by_id:
        return index.by_id[moment] + 1
    instant = clock.meant_instant(moment)
    if instant is None:
        raise BadRequest(
            f"{moment!r:.80} is neither a time nor a message of this session",
            hint="a time is 2026-01-31T12:00:00Z or seconds since 1970; or name the last message that counts",
        )
    known = False
    for at, record in enumerate(index.records):
        if (time := record[0].time) is not None:
            known = True
            if time > instant:
                return at
    if not known:
        raise BadRequest("this session has no times", hint="name the last message that counts instead of a time")
    return len(index.records)


def split_label(heard: str, said: str, names: Collection[str] | None) -> tuple[str, str]:
    """The label that delivery put before the words (`[Name]: `, perhaps several) and the words after it.

    Only a label with one of `names` counts, since a line put into somebody else's mouth is a change; None, where
    the speaker is not known, takes any.
    """
    start = 0
    for _ in range(LABELS if names is not None else 1):
        found = _LABEL.match(heard, start)
        if found is None or heard[start:] == said or (names is not None and found[1] not in names):
            break
        start = found.end()
    return heard[:start], heard[start:]
