"""What a new agent begins with: instructions, and messages that may come out of another agent's transcript.

A message that has an id was somebody's before. If it stands in this log, the new agent has the same content before
it, which is what `substance` says; the links of a message from another log would lead nowhere, and are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harken.errors import BadRequest
from harken.log import LoggedString, Session, messages_of

from .entries import OF_THE_RECORD, ROLES, Entry, check_text
from .models import Message
from .tools import Call

_TEXTS = frozenset({"transcript_entry", "piece_of_text"})
_ELSEWHERE = OF_THE_RECORD | {"message_id", "substance", "cause", "hook"}
"""Keys that mean something only where the message came from."""


def messages(session: Session, init_prompt: str | Sequence[Message] | None) -> Sequence[Message]:
    """What an agent is to begin with, as messages."""
    if isinstance(init_prompt, str):
        substance = init_prompt.id_in(session.path) if isinstance(init_prompt, LoggedString) else None
        return [{"role": "user", "content": str(init_prompt), "substance": substance}]
    return init_prompt or ()


def opening(session: Session, system_prompt: str | None, messages: Sequence[Message]) -> list[Entry]:
    """The entries a transcript begins with; they get their ids when they are logged."""
    for message in messages:
        if not isinstance(message, Mapping) or message.get("role") not in ROLES:
            raise BadRequest(
                f"{message!r:.80} is no message to begin with",
                hint="an init_prompt is a text, or a list of messages, each with a role and content",
            )
    messages = [message for entry in messages for message in messages_of(entry)]
    if system_prompt is not None:
        check_text(system_prompt)
    head: list[Entry] = [] if system_prompt is None else [{"role": "system", "content": system_prompt}]
    origins = _origins(session, messages)
    return head + [_copy(message, origins.get(place)) for place, message in enumerate(messages)]


def _copy(message: Message, origin: str | None) -> Entry:
    entry = {key: value for key, value in message.items() if key not in _ELSEWHERE and value is not None}
    if origin is None:
        return entry
    if entry["role"] == "user":
        entry["source"] = "injected"
    if isinstance(message.get("hook"), str):
        entry["hook"] = message["hook"]
    return entry | {"substance": origin}


def _origins(session: Session, messages: Sequence[Message]) -> dict[int, str]:
    """By place, the message of this log that has the same content: what it repeated itself, or else itself."""
    asked = {
        str(message["message_id"]): place
        for place, message in enumerate(messages)
        if message.get("message_id") and message.get("content")
    }
    found = {
        place: origin
        for place, message in enumerate(messages)
        if not message.get("message_id")
        and isinstance(origin := message.get("substance"), str)
        and origin in session.registry.messages
    }
    for data in session.records() if asked else ():
        place = asked.get(str(data.get("message_id")))
        if place is None or data.get("event_type") not in _TEXTS:
            continue
        if data.get("content") == messages[place]["content"]:
            origin = data.get("substance")
            found[place] = origin if isinstance(origin, str) else str(data["message_id"])
    return found


def made_by(call: Call | None, cause: str | None, instructions: str | None) -> dict[str, Any]:
    """What the line that makes an agent says besides: which of several calls did it, and what the agent is to be told,
    since a crash may come before it is. What `task` tells it is in the call."""
    found: dict[str, Any] = {}
    if call is not None and call.message_id == cause and call.among > 1:
        found["call_id"] = call.tool_call_id
    if instructions is not None and (call is None or call.name != "task"):
        found["instructions"] = instructions
    return found
