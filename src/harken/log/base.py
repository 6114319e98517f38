"""What a log tells of its agents, of open calls, and of what is odd about the file."""

from __future__ import annotations

from typing import Any

import msgspec

from harken.formats.session_log import BLANK
from harken.formats.session_log.reading import text_of

BEGINS_WITH = "begins_with"
"""In the `attributes` of the line that makes an agent: how many entries follow as its beginning."""
CUT_OFF = "a beginning that was cut off"
"""An agent began with a conversation, and the process died while it wrote that."""
INCOMPLETE = frozenset(
    {
        BLANK,
        "a link outside the file",
        "a result without its call",
        "agent used but never created",
        "no parent found",
        "parent inferred",
        "several results for one call",
    }
)
"""What is told of a file that lacks something; no line of it is wrong."""


class LogProblem(msgspec.Struct, frozen=True):
    """Something odd about the file; the load went on."""

    line: int
    offset: int
    what: str
    """The kind of oddity, the same words each time."""
    detail: str = ""


class AgentInfo(msgspec.Struct):
    """What is known of an agent without its transcript."""

    agent_id: str
    name: str = ""
    language_model: str = ""
    """The model in use: the one it was made with, or the last that it was given."""
    role: str = ""
    """`root`, `child` or `hook`; empty where the log does not say."""
    parent: str | None = None
    cause: str | None = None
    """The message that made it."""
    inferred: bool = False
    """Whether parent and cause follow from order and name only, as in v1."""
    created: str = ""
    """The id of its `agent_created`; empty where it was used but never created."""
    terminated: bool = False
    reason: str = ""
    """Why it was terminated."""
    entries: int = 0
    """How many entries were ever added to its transcript."""
    begins_with: int = 0
    """How many entries its beginning has, where that is a conversation. With fewer of them it was cut off: the process
    died while it wrote them."""
    edits: int = 0
    """How many edits were ever made to its transcript."""
    attributes: dict[str, Any] = msgspec.field(default_factory=dict)
    """What else its creation says (a hook's points and instructions)."""


class OpenCall(msgspec.Struct, frozen=True):
    """A tool call that has no result yet."""

    agent_id: str
    message_id: str
    call_id: str
    name: str
    arguments: Any

    @classmethod
    def of(cls, key: tuple[str, str], call: tuple[str, dict[str, Any]]) -> OpenCall:
        """The call of this id in a message, given by whose it is, and by the message and what it calls."""
        function = call[1]
        return cls(key[0], call[0], key[1], text_of(function.get("name")), function.get("arguments"))
