"""Older dialects, read with the keys of v2.

Three kinds of log exist: v2 (what Harken writes), v1 (`content_id`, `caused_by`, text made for others without an
agent) and the one that smallchat shipped (`agent`, `fragment`, decimal ids, causes of the form `<message>.<call>`,
and `user` where no agent is meant). The dialect is told line by line, so a file may change it half-way.
"""

from __future__ import annotations

from typing import Any

Data = dict[str, Any]

USER = "user"
"""What smallchat writes where an agent or a message is expected and a person is meant."""
_ROLES = {"primary": "root"}


def is_current(data: Data) -> bool:
    """Whether the line needs no translation."""
    return "agent_id" in data and "content_id" not in data and "caused_by" not in data


def dialect(data: Data) -> str:
    """`v2`, `v1` or `smallchat`: which one this line is written in, as far as it shows."""
    if "agent" in data and "agent_id" not in data:
        return "smallchat"
    if "content_id" in data or "caused_by" in data:
        return "v1"
    return "v2"


def normalise(data: Data) -> Data:
    """The line with the keys of v2; a new dict, in the old order."""
    if dialect(data) == "smallchat":
        return _from_smallchat(data)
    renamed: Data = {}
    for key, value in data.items():
        new = _V1.get(key, key)
        # An old key gives way where the line has the new one too, and v1 lets a message stand for itself.
        if new == key or not (
            new in data or value is None or (key == "content_id" and value == data.get("message_id"))
        ):
            renamed[new] = value
    return renamed


_V1 = {"content_id": "substance", "caused_by": "cause"}


def _from_smallchat(data: Data) -> Data:
    renamed: Data = {}
    for key, value in data.items():
        if value is None:
            continue
        if key == "agent":
            renamed["agent_id"] = value
        elif key == "event_type" and value == "fragment":
            renamed[key] = "piece_of_text"
        elif key == "cause":
            if (cause := _cause(value)) is not None:
                renamed[key] = cause
        elif key == "role" and data.get("event_type") == "agent_created":
            renamed[key] = _ROLES.get(value, value) if isinstance(value, str) else value
        elif key != "parent" or value != USER:
            renamed[key] = value
    return renamed


def _cause(value: Any) -> Any:
    """The message that is the cause; which of its calls is left to the tool results to say."""
    if isinstance(value, list):
        causes = [_cause(item) for item in value]
        return [cause for cause in causes if cause is not None] or None
    if not isinstance(value, str):
        return value
    if value == USER:
        return None
    message, dot, _ = value.partition(".")
    return message if dot and message.isdecimal() else value
