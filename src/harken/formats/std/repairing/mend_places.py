"""What stands in another place than the standard has for it: sub-sessions in the calls or the sub-sessions that started
them, messages in the sub-sessions whose agents told or heard them, calls in the attempts that an agent made. Each comes
to the list that the standard has."""

from __future__ import annotations

from collections.abc import Callable, Container
from copy import deepcopy
from typing import Any

from harken.formats.std.checking.schema import shown
from harken.formats.std.document import Json
from harken.formats.std.flat_calls import flat_calls, owner_of
from harken.formats.std.json_text import compact
from harken.formats.std.parts import (
    MESSAGE_LISTS,
    SUB_NAMES,
    attempts_with_calls,
    calls_of_attempt,
    objects,
    text,
)
from harken.formats.std.spellings import plain_key
from harken.formats.std.team_fields import is_sub_session
from harken.formats.std.told_inside import is_message

from .lift_messages import lift_messages
from .mending import Mending


def lift_nested(doc: Mending) -> bool:
    """Sub-sessions that stand under another name, inside the calls that started them, or inside the sub-sessions that
    did, come to `sub_sessions`; whether there were any."""
    before = len(doc.changes)
    doc.start_round()
    _take_other_name(doc, "sub_sessions", SUB_NAMES, _is_sub)
    _take_other_name(doc, "messages", MESSAGE_LISTS, is_message)
    subs = doc.data.get("sub_sessions") or []
    if not isinstance(subs, list):
        return len(doc.changes) > before
    _join_attempts(doc, doc.data, "")
    for place, call in objects(doc.data.get("tool_calls")):
        _lift_from_call(doc, subs, call, f"tool_calls[{place}]", "")
    for place, sub in objects(subs):  # grows while it is walked through: what was inside may hold more
        own = text(sub, "sub_session_id")
        _join_attempts(doc, sub, f"sub_sessions[{place}].")
        for at, call in objects(sub.get("tool_calls")):
            _lift_from_call(doc, subs, call, f"sub_sessions[{place}].tool_calls[{at}]", own)
        for key in [key for key in sub if plain_key(key) in _INSIDE]:
            _lift(doc, subs, sub, key, f"sub_sessions[{place}]", {"parent_session_id": own})
    _give_calls(doc)
    lift_messages(doc)
    return len(doc.changes) > before


def _join_attempts(doc: Mending, part: Json, path: str) -> None:
    """The calls of attempts are those of the session or the sub-session, one attempt behind the other. The attempts
    stay as they were written; where each counts its own calls, a number goes behind the ids of later ones."""
    if not (key := attempts_with_calls(part)):
        return
    calls, taken, renamed = list[Json](), set[str](), list[str]()
    for number, attempt in enumerate(part[key], 1):
        found = deepcopy(calls_of_attempt(attempt))
        for call in found:
            name = text(call, "call_id")
            if name in taken and (made := f"{name}-{number}") not in taken:
                call["call_id"] = made
                renamed.append(made)
        taken |= {text(call, "call_id") for call in found} - {""}
        calls += found
    part["tool_calls"] = calls
    said = f"`tool_calls` are the {len(calls)} calls that stand in `{key}`, in their order; `{key}` stays as it is"
    doc.tell("missing-field", f"{path}tool_calls", said)
    if renamed:
        names, more = ", ".join(map(shown, renamed[:9])), " …" if len(renamed) > 9 else ""
        said = f"calls of an earlier one of `{key}` have the same ids: a number is behind these ({names}{more})"
        doc.tell("duplicate-id", f"{path}tool_calls", said, derived=True)


def _give_calls(doc: Mending) -> None:
    """Calls of sub-agents that stand among the main ones alone come to their sub-sessions, too."""
    for place, its in flat_calls(doc.data).items():
        calls, sub = doc.data["tool_calls"], doc.data["sub_sessions"][place]
        sub["tool_calls"] = [deepcopy(calls[at]) for at in its]
        for at in its:
            calls[at]["x_harken_owner"] = owner_of(sub)
        said = f"`tool_calls` has what stands among the main calls and is said to be its own ({len(its)})"
        said += "; it stays there, too, marked `x_harken_owner`"
        doc.tell("missing-field", f"sub_sessions[{place}].tool_calls", said, derived=True)


def _take_other_name(doc: Mending, name: str, others: Container[str], is_one: Callable[[object], bool]) -> None:
    data = doc.data
    for key in [key for key in data if plain_key(key) in others] if not data.get(name) else ():
        held = list(data[key].values()) if isinstance(data[key], dict) else data[key]
        if isinstance(held, list) and held and all(map(is_one, held)):
            data[name] = data.pop(key)
            rule = "no-sub-session" if name == "sub_sessions" else "missing-field"
            doc.tell(rule, name, f"it stood under `{key}`: the name that the standard has")
            return


def _lift_from_call(doc: Mending, subs: list[Any], call: Json, where: str, parent: str) -> None:
    for key in [key for key in call if plain_key(key) in _INSIDE]:
        links = {"triggered_by_call_id": text(call, "call_id"), "parent_session_id": parent}
        _lift(doc, subs, call, key, where, links)


def _lift(doc: Mending, subs: list[Any], holder: Json, key: str, where: str, links: dict[str, str]) -> None:
    """Put what an object holds under a key among the sub-sessions, with the links that its place tells. One that stands
    there already, word for word, is not told twice."""
    held = holder[key] if isinstance(holder[key], list) else [holder[key]]
    if not held or not all(_is_sub(one) for one in held):
        return
    del holder[key]
    known = doc.once("whole sub-sessions", lambda: {compact(one) for one in subs})
    for sub in held:
        if (whole := compact(sub)) in known:
            doc.tell(
                "no-sub-session", where, f"`{key}` of `{where}` is among the sub-sessions, too; it stands there alone"
            )
            continue
        known.add(whole)
        said_of = set(map(plain_key, sub))
        sub.update({link: name for link, name in links.items() if name and link not in said_of})
        subs.append(sub)
        doc.data["sub_sessions"] = subs
        said = f"`{key}` of `{where}` stands here now, where the standard has it"
        doc.tell("no-sub-session", f"sub_sessions[{len(subs) - 1}]", said)


def _is_sub(value: object) -> bool:
    return is_sub_session(value) or (isinstance(value, dict) and "task" in map(plain_key, value))


_INSIDE = ("sub_session", "subagent_session", "sub_agent_session", "sub_sessions", *SUB_NAMES)
