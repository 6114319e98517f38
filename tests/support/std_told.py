"""What the agents of a story told each other, held against the types of the standard."""

from __future__ import annotations

from typing import Any

import msgspec

from harken.formats.std.exporting.spawning import session_tree
from harken.formats.std.exporting.telling import ToldMessages, messages_of
from harken.formats.std.models import PAYLOADS, AgentMessage
from support.std_stories import Story


def told(story: Story) -> ToldMessages:
    found = messages_of(session_tree(story.events))
    msgspec.convert(found.messages, list[AgentMessage])
    for message in found.messages:
        if message["message_type"] != "review_result" or "verdict" in message["payload"]:
            msgspec.convert(message["payload"], PAYLOADS[message["message_type"]])
    return found


def lines(story: Story) -> list[str]:
    """Who told whom, in which kind of message, about which task."""
    return [
        f"{m['from_agent']['agent_id']} > {m['to_agent']['agent_id']} "
        f"{m['message_type']} {m.get('correlation_id', '-')}"
        for m in told(story).messages
    ]


def payloads(story: Story, kind: str) -> list[dict[str, Any]]:
    return [m["payload"] for m in told(story).messages if m["message_type"] == kind]
