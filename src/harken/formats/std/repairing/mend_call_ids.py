"""Mending ids that stand twice: of calls that are numbered anew in each sub-session, and of messages."""

from __future__ import annotations

from collections import Counter
from typing import Any

from harken.formats.std.document import Json
from harken.formats.std.models import TASK
from harken.formats.std.parts import objects, range_ends, tells_agent, text, values

from .mend_sub_sessions import mark_nested
from .mending import Mending, Spot, path_steps


def repeated_id(spot: Spot) -> bool:
    """A call with the id of another one: it is listed twice, or each sub-session counts its own. A message with such an
    id gets another, where nobody replies to it."""
    if path_steps(spot.path)[0] == "messages":
        return _own_message_id(spot)
    return mark_nested(spot) or _own_call_id(spot)


def _own_message_id(spot: Spot) -> bool:
    messages = values(spot.doc.data.get("messages"))
    answered = spot.doc.once("replies", lambda: {text(one, "reply_to") for one in messages})
    name = spot.value
    if name in answered or not isinstance(name, str):
        return False
    made = spot.doc.free_id(
        "message", lambda number: f"{name}-{number + 1}", lambda: [text(one, "message_id") for one in messages]
    )
    return spot.put(made, "another message has the id, and nobody replies to it", derived=True)


def _own_call_id(spot: Spot) -> bool:
    """A call of a sub-session gets its id with that of the sub-session before it; whatever names it there follows."""
    name, place, *below = path_steps(spot.path)
    if name != "sub_sessions" or below[:1] != ["tool_calls"] or not isinstance(place, int):
        return False
    new = spot.doc.once("call ids", lambda: _new_call_ids(spot.doc)).get(place, {})
    if spot.value not in new:
        return False
    sub = spot.doc.data["sub_sessions"][place]
    spot.doc.once(("followed", place), lambda: _follow(sub, new))
    why = "another call has the id; what names it in its sub-session follows"
    return spot.put(new[spot.value], why, derived=True)


def _new_call_ids(doc: Mending) -> dict[int, dict[str, str]]:
    """The place of a sub-session to the ids that its calls get. A call that may have started an agent keeps its id, and
    so does one of two in a sub-session, or one that an annotation may mean."""
    data, found = doc.data, dict[int, dict[str, str]]()
    main = {text(call, "call_id") for call in values(data.get("tool_calls"))}
    notes = values(data.get("phase_annotations"))
    meant = {name for note in notes for name in range_ends(note.get("tool_call_range"))} - main
    started = {text(sub, "triggered_by_call_id") for sub in values(data.get("sub_sessions"))} - main
    subs = [(place, sub, values(sub.get("tool_calls"))) for place, sub in objects(data.get("sub_sessions"))]
    taken = {*main, *(text(call, "call_id") for _, _, calls in subs for call in calls)}
    seen = set(main)
    for place, sub, calls in subs:
        count = Counter(text(call, "call_id") for call in calls)
        for call in calls:
            name, own = text(call, "call_id"), text(sub, "sub_session_id")
            is_worker = text(call, "tool_name") != TASK and not tells_agent(call) and name not in started
            is_sure = count[name] == 1 and name not in meant and own and f"{own}/{name}" not in taken
            if name and name in seen and is_worker and is_sure:
                found.setdefault(place, {})[name] = f"{own}/{name}"
                taken.add(f"{own}/{name}")
        seen.update(count)
    return found


def _follow(sub: Json, new: dict[str, str]) -> None:
    """Give whatever names a call in its own sub-session the new name. What tools were given and gave is their own, and
    the call that started the sub-session is another agent's."""
    for entry in values(sub.get("x_harken_conversation")):
        for key in ("call", "result"):
            if (name := new.get(text(entry, key))) is not None:
                entry[key] = name
    others = ("tool_calls", "x_harken_conversation", "triggered_by_call_id")
    waiting: list[tuple[Any, tuple[str, ...]]] = [(sub, others)]
    waiting += [(call, ("call_id", "input", "output")) for call in values(sub.get("tool_calls"))]
    while waiting:
        one, left_out = waiting.pop()
        if isinstance(one, list):
            waiting += [(item, ()) for item in one]
            continue
        for key, value in one.items() if isinstance(one, dict) else ():
            if key in left_out:
                continue
            if isinstance(value, str) and key.endswith("call_id"):
                one[key] = new.get(value, value)
            elif isinstance(value, list) and key.endswith("call_ids"):
                one[key] = [new.get(name, name) if isinstance(name, str) else name for name in value]
            else:
                waiting.append((value, ()))
