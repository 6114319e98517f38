"""What may enter the log: each thing is looked at before an id is spent on it, and what is wrong is said with a hint.

The log is read by programs in a year's time. A mistake of today's caller (an agent instead of its id, a list with a
None in it) is cheap to tell now and cannot be mended later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harken.errors import BadRequest
from harken.events import Event
from harken.formats.session_log import ROLES

Cause = str | Sequence[str] | None

ENVELOPE = frozenset({"message_id", "event_type", "agent_id", "timestamp", "substance", "cause", "index", "api_id"})
"""Keys of a line that are about the record, not part of the message."""


def check_agent(agent_id: Any) -> None:
    """Whose record it is must be said, in words."""
    if not isinstance(agent_id, str) or not agent_id:
        raise BadRequest(f"{agent_id!r:.80} is no agent id", hint="ids are text; `allocate_agent_id` gives a fresh one")


def check_text(**named: Any) -> None:
    """Each of these is text, or left out."""
    for name, value in named.items():
        if value is not None and not isinstance(value, str):
            raise BadRequest(f"{name} must be text, not {type(value).__name__}", hint=f"pass {name} as a str")


def links(substance: Any, cause: Any) -> dict[str, Any]:
    """The link as it stands on the line: one of the two, or none. An empty list of causes is none."""
    if isinstance(cause, (list, tuple)):
        cause = list(cause) or None
    if substance is not None and cause is not None:
        raise BadRequest(
            "an event cannot have both a substance and a cause",
            hint="substance says 'the same content as', cause says 'triggered by'",
        )
    if substance is not None:
        _check_message_id("substance", substance)
        return {"substance": substance}
    if cause is None:
        return {}
    for one in cause if isinstance(cause, list) else (cause,):
        _check_message_id("cause", one)
    return {"cause": cause}


def _check_message_id(what: str, value: Any) -> None:
    if not isinstance(value, str) or not value:
        hint = "it is the id of a message" + (", or a list of ids" if what == "cause" else "")
        raise BadRequest(f"{value!r:.80} is no {what}", hint=hint)


def check_event(event: Any) -> None:
    """An event goes on the line as it is, so what it names must be text."""
    if not isinstance(event, Event):
        raise BadRequest(
            f"{type(event).__name__} is no event", hint="`harken.events` has them; or use the log_… methods"
        )
    check_text(message_id=event.message_id, agent_id=event.agent_id, substance=event.substance)
    for one in event.cause if isinstance(event.cause, (list, tuple)) else (event.cause or "",):
        if not isinstance(one, str):
            raise BadRequest(f"{one!r:.80} is no cause", hint="it is the id of a message, or a tuple of ids")


def message_of(message: Any) -> dict[str, Any]:
    """A message as it goes on the line: with a role, and without keys that stand for nothing."""
    if not isinstance(message, dict):
        raise BadRequest(
            f"a message is a dict, not {type(message).__name__}",
            hint='for example {"role": "user", "content": "Hello"}',
        )
    role = message.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise BadRequest(f"no role is called {role!r:.80}", hint="there are " + ", ".join(ROLES))
    if not ENVELOPE.isdisjoint(message):
        own = sorted(ENVELOPE & message.keys())[0]
        raise BadRequest(f"a message cannot bring its own {own}", hint="pass it as an argument")
    if role == "assistant":
        return _without_nothing(message)
    if None in message.values():
        return {key: value for key, value in message.items() if value is not None}
    return message


def _without_nothing(message: dict[str, Any]) -> dict[str, Any]:
    """An assistant's message without the keys under which nothing stands; some providers send them all."""
    data = {key: value for key, value in message.items() if value is not None}
    if "tool_calls" in data:
        if not data["tool_calls"]:
            del data["tool_calls"]
        elif data.get("content") == "":
            del data["content"]  # empty words beside a call: nobody said anything
    return data
