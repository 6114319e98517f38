"""Messages that stand in a sub-session, or in the collaboration, come to `messages` of the document, where the standard
has them, in order of time. What only their place said goes along: an id that another message has, too, gets that of the
sub-session before it, and who is not named is the other of the two."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import msgspec

from harken import clock
from harken.formats.std.as_meant import known_type
from harken.formats.std.checking.schema import shown
from harken.formats.std.document import Json
from harken.formats.std.findings import OLD
from harken.formats.std.hearers import agent_named
from harken.formats.std.json_text import compact
from harken.formats.std.parts import (
    agent_at,
    agent_kind,
    inner,
    instant,
    objects,
    orchestrator,
    text,
    values,
)
from harken.formats.std.spellings import known_time, plain_key
from harken.formats.std.told_inside import messages_at

from .mending import Mending

_SIDES = {"from_agent": ("from_agent", "from", "sender"), "to_agent": ("to_agent", "to", "receiver", "recipient")}
"""The agents of a message, each with the names under which they are told."""
_TIMES = ("timestamp", "time", "created_at", "sent_at", "date", "datetime")
_TO_WORKER = ("task_assignment", "review_request", "status_query")
_FROM_WORKER = ("task_progress", "task_completion", "acknowledgment", "review_result", "status_response")


class _MessagesInside(msgspec.Struct, frozen=True, kw_only=True):
    """Messages that stand in one place."""

    holder: Json
    key: str
    path: str
    sub: Json
    """The sub-session that they stand in; empty where it is none."""
    messages: list[Json]


def lift_messages(doc: Mending) -> None:
    """Put them all into the list of the document, and say so."""
    own, found = doc.data.get("messages"), list(_inside(doc.data))
    if not found or not isinstance(own, list | None):
        return
    taken = {text(one, "message_id"): compact(one) for one in values(own)}
    lists: list[tuple[list[Any], int | None, str]] = [(own or [], None, "")]
    for place in found:
        del place.holder[place.key]
        _name_apart(doc, place, taken)
        _name_both(doc, place)
        lists.append((place.messages, instant(place.sub, "started_at"), f"`{place.key}` of `{place.path}`"))
    order = _in_order(lists)
    doc.move("messages", {place: new for new, (which, place) in enumerate(order) if not which})
    doc.data["messages"] = merged = [lists[which][0][place] for which, place in order]
    for new, (which, _) in enumerate(order):
        if which:
            said = f"it stood in {lists[which][2]}: the standard has one list of them, in order of time"
            doc.tell("missing-field", f"messages[{new}]", said)
    if doc.derives:
        _count_anew(doc, merged)


def _inside(data: Json) -> Iterator[_MessagesInside]:
    subs = ((f"sub_sessions[{place}]", sub, sub) for place, sub in objects(data.get("sub_sessions")))
    for path, holder, sub in [("collaboration", inner(data, "collaboration"), Json()), *subs]:
        for key in list(holder):
            if messages := messages_at(holder, key):
                yield _MessagesInside(holder=holder, key=key, path=path, sub=sub, messages=messages)


def _in_order(lists: list[tuple[list[Any], int | None, str]]) -> list[tuple[int, int]]:
    """The entries of several lists, each as its list and its place there, in the order of the numbers that they have,
    where these are all different; else of time. Each list keeps its own order."""
    entries = [(which, place) for which, (listed, *_) in enumerate(lists) for place in range(len(listed))]
    numbers = [_number(lists[which][0][place]) for which, place in entries]
    known = [number for number in numbers if number is not None]
    if len(set(known)) == len(entries):
        return [one for _, one in sorted(zip(known, entries, strict=True))]
    times = [when for listed, begun, _ in lists for when in _times(listed, begun)]
    return [one for _, one in sorted(zip(times, entries, strict=True))]


def _number(message: object) -> int | None:
    number = message.get("sequence_number") if isinstance(message, dict) else None
    return number if type(number) is int else None


def _times(listed: list[Any], begun: int | None) -> Iterator[int]:
    """When each entry was told: not before the one that it stands behind."""
    latest = begun or 0
    for message in listed:
        told = (_instant(message.get(key)) for key in _TIMES) if isinstance(message, dict) else ()
        latest = max(latest, next((when for when in told if when is not None), latest))
        yield latest


def _instant(value: object) -> int | None:
    return clock.parse_instant(known_time(value)) if clock.parse_instant(value) is None else clock.parse_instant(value)


def _name_apart(doc: Mending, place: _MessagesInside, taken: dict[str, bytes]) -> None:
    """Where each sub-session counts its own messages, their ids get that of the sub-session before them, and so does
    what replies to them there."""
    own, new = text(place.sub, "sub_session_id"), dict[str, str]()
    for message in list(place.messages):
        name, whole = text(message, "message_id"), compact(message)
        if not name or name not in taken:
            taken[name] = whole
        elif taken[name] == whole:
            place.messages.remove(message)
            said = f"{shown(name)} is among the messages of the document, too, word for word; it stands there once"
            doc.tell("duplicate-id", place.path, said)
        elif own and (made := f"{own}/{name}") not in taken:
            taken[made] = whole
            new[name] = message["message_id"] = made
    for message in place.messages if new else ():
        if (made := new.get(text(message, "reply_to"), "")) != "":
            message["reply_to"] = made
    if new:
        names = ", ".join(map(shown, new))
        said = f"other messages have the ids {names}, too: each is behind that of its sub-session now ({shown(own)})"
        doc.tell("duplicate-id", place.path, said, derived=True)


def _name_both(doc: Mending, place: _MessagesInside) -> None:
    """A message in a sub-session is of its agent and whoever gave the task: where one of them is not named, it is the
    other one, and where none is, the type of the message tells."""
    worker, giver = agent_at(place.sub, "agent") or agent_at(place.sub, "agent_id"), _giver(doc.data, place.sub)
    if not doc.derives or not worker or not giver or worker == giver:
        return
    for message in place.messages:
        keys = {plain_key(key): key for key in message}
        said = {side: next((keys[name] for name in names if name in keys), "") for side, names in _SIDES.items()}
        kind = known_type(message.get(keys.get("message_type", "type")))
        for side, other in (("from_agent", "to_agent"), ("to_agent", "from_agent")):
            if said[side] or not (found := _meant(message, said[other], kind, side, worker, giver)):
                continue
            message[side] = deepcopy(found)
            told = f"`{side}` of a message was missing, is {shown(found)}: it stood in the sub-session of the two"
            doc.tell("missing-field", place.path, told, derived=True)
            said[side] = side


def _meant(message: Json, other: str, kind: str | None, side: str, worker: Json, giver: Json) -> Json | None:
    """Who is at one side of a message that does not say so."""
    if other:
        return giver if _is(message[other], worker) else worker if _is(message[other], giver) else None
    if kind in _TO_WORKER:
        return giver if side == "from_agent" else worker
    if kind in _FROM_WORKER:
        return worker if side == "from_agent" else giver
    return None


def _is(named: Any, agent: Json) -> bool:
    name = agent_named({"agent": named}, "agent") or agent_kind(named)
    return name in (text(agent, "agent_id"), text(agent, "agent_type"))


def _giver(data: Json, sub: Json) -> Json:
    """The agent that gave a sub-session its task: that of the sub-session it is part of, else who leads."""
    above = text(sub, "parent_session_id")
    for one in values(data.get("sub_sessions")) if above else ():
        if one is not sub and text(one, "sub_session_id") == above:
            return agent_at(one, "agent")
    return orchestrator(data)


def _count_anew(doc: Mending, messages: list[Any]) -> None:
    """Numbers that were counted in each place by itself become the places in the whole list."""
    numbers = [_number(one) for one in messages]
    known = [one for one in numbers if one is not None]
    if not known or (len(known) == len(numbers) and known == sorted(set(known))):
        return
    for place, message in enumerate(messages):
        if isinstance(message, dict) and message.get("sequence_number") != place + 1:
            if (old := message.get("sequence_number")) is not None:
                message.setdefault(OLD + "sequence_number", old)
            message["sequence_number"] = place + 1
    said = "numbers were counted in several lists: each message has its place in the whole list now"
    doc.tell("sequence", "messages", f"{said}; the old ones are kept as `{OLD}sequence_number`", derived=True)
