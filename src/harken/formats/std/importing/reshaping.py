"""A document that says everything under other names than the standard does, or in another place: it is read as a repair
writes it, with nothing derived."""

from __future__ import annotations

from harken import clock
from harken.formats.std.document import Document, Json
from harken.formats.std.meant_tasks import words_beside
from harken.formats.std.parts import (
    ARGUMENTS,
    CALL_ENDS,
    CALL_IDS,
    CALL_STARTS,
    MESSAGE_LISTS,
    SUB_NAMES,
    TOOL_NAMES,
    attempts_with_calls,
    calls_elsewhere,
    inner,
    text,
    values,
)
from harken.formats.std.spellings import known_time, plain_key
from harken.formats.std.team_fields import misplaced_team
from harken.formats.std.told_inside import holds_messages

_LISTS = ("tool_calls", "sub_sessions", "messages")
_TEXTS = ("user_prompt", "task_title", "task_description")
_OF_SUB = ("sub_session_id", "agent", "triggered_by_call_id", "started_at")
_AGENTS = ("from_agent", "to_agent")
_OF_MESSAGE = frozenset({*_AGENTS, "message_type"})
_OTHER_LISTS = (*SUB_NAMES, *MESSAGE_LISTS)
_TOLD = 5
"""How many of the changes are told."""


def in_shape(document: Document) -> tuple[Document, str]:
    """The document in the shape of the standard, and what was done to get it there; empty where nothing was. Most
    documents have that shape, and what mends the others is not loaded for them."""
    if not _is_odd(document):
        return document, ""
    from harken.formats.std.repairing.repair import reshaped

    document, changes = reshaped(document)
    done = "; ".join(f"{change.path}: {change.message}" for change in changes[:_TOLD])
    more = f"; and {len(changes) - _TOLD} more" if len(changes) > _TOLD else ""
    return document, f"the document is read as a repair writes it: {done}{more}" if changes else ""


def _is_odd(document: Document) -> bool:
    data = document.data
    if any(isinstance(data.get(key), dict) for key in _LISTS) or any(key != plain_key(key) for key in data):
        return True
    if any(not isinstance(data.get(key), str | None) for key in _TEXTS) or isinstance(data.get("agent"), list):
        return True
    subs = values(data.get("sub_sessions"))
    if any(map(_is_odd_sub, subs)) or _is_spelled(data, _OF_SESSION):
        return True
    for message in values(data.get("messages")):
        if (
            not message.keys() >= _OF_MESSAGE
            or _is_spelled(message, ("timestamp",))
            or any(isinstance(message[key], str) for key in _AGENTS)
        ):
            return True
    team = inner(data, "collaboration")
    if (
        holds_messages(team)
        or misplaced_team(data)
        or isinstance(team.get("orchestrator"), list)
        or not isinstance(team.get("participants"), list | None)
    ):
        return True
    calls = [values(data.get("tool_calls")), *(values(sub.get("tool_calls")) for sub in subs)]
    if any(_is_odd_call(call) for listed in calls for call in listed):
        return True
    if any(key != plain_key(key) for key in _keys_inside(data, team, subs, calls)):
        return True
    return bool(calls_elsewhere(data) or attempts_with_calls(data)) or any(
        _holds_sub(data, key) for key in _OTHER_LISTS
    )


def _keys_inside(data: Json, team: Json, subs: list[Json], calls: list[list[Json]]) -> set[str]:
    """Every key of the objects that the standard names inside a document; what tools were given and gave is their
    own."""
    messages = values(data.get("messages"))
    agents = [inner(team, "orchestrator"), *values(team.get("participants"))]
    agents += [inner(message, key) for message in messages for key in _AGENTS]
    parts = [inner(sub, key) for sub in subs for key in ("agent", "task", "output")]
    parts += [inner(call, "subagent_info") for listed in calls for call in listed if "subagent_info" in call]
    return set().union(team, *agents, *subs, *messages, *parts, *(call for listed in calls for call in listed))


def _holds_sub(holder: Json, key: str) -> bool:
    """Whether a sub-session may stand under a key, in a place that the standard has not for it."""
    return isinstance(holder.get(key), dict | list)


def _is_odd_sub(sub: Json) -> bool:
    """Whether the agent, the call, the task or the answer of a sub-session stands elsewhere."""
    task, output = sub.get("task"), sub.get("output")
    if calls_elsewhere(sub) or attempts_with_calls(sub) or holds_messages(sub):
        return True
    if any(key.startswith("sub") and _holds_sub(sub, key) for key in sub):
        return True
    if (
        "priority" in sub
        or isinstance(sub.get("agent"), str)
        or any(sub.get(key) in (None, "") for key in _OF_SUB)
        or _is_spelled(sub, ("started_at", "completed_at"))
    ):
        return True
    if task is None and words_beside(sub):
        return True
    return (isinstance(task, dict | list) and not text(task, "description")) or (
        output is not None and not text(output, "summary")
    )


def _is_odd_call(call: Json) -> bool:
    if not call.keys() >= _OF_CALL and any(
        key not in call and any(isinstance(call.get(name), kind) for name in names) for key, names, kind in _ELSEWHERE
    ):
        return True
    return _is_spelled(call, _TIMES) or any(
        key.startswith("sub") and _holds_sub(call, key) for key in call if key not in _OWN
    )


def _is_spelled(part: Json, keys: tuple[str, ...]) -> bool:
    """Whether one of these times is told, and not as the standard does."""
    told = (value for key in keys if (value := part.get(key)) is not None)
    return any(clock.parse_instant(value) is None and known_time(value) is not None for value in told)


_OF_SESSION = ("created_at", "completed_at", "started_at")
_TIMES = ("started_at", "ended_at")
_OF_CALL = frozenset({"call_id", "tool_name", "input", *_TIMES})
_ELSEWHERE: tuple[tuple[str, tuple[str, ...], type | tuple[type, ...]], ...] = (
    ("started_at", CALL_STARTS, (str, int, float)),
    ("ended_at", CALL_ENDS, (str, int, float)),
    ("input", (*ARGUMENTS, "function"), dict),
    ("tool_name", TOOL_NAMES, (str, dict)),
    ("call_id", CALL_IDS, str),
)
"""A field of a call, other names of it, and what stands under these."""


_OWN = frozenset({"subagent_info"})
"""What a call has that begins as a sub-session does."""
