"""What only a multi-agent session has: agents come and go, text is made for others, transcripts are edited."""

from __future__ import annotations

from typing import ClassVar

from .base import Event


class AgentCreated(Event, frozen=True, kw_only=True, gc=False):
    """An agent came into being; `agent_id` is the new agent, `cause` the call that made it."""

    kind: ClassVar[str] = "agent_created"

    name: str = ""
    language_model: str = ""
    role: str = ""
    """`root`, `child` or `hook`; empty where the log does not say."""
    parent: str = ""
    """The parent agent, where the log names it outright; else it follows from `cause`."""
    attributes: bytes = b""
    """What else the log says of the agent (a hook's points and instructions), as JSON text."""


class AgentTerminated(Event, frozen=True, kw_only=True, gc=False):
    """An agent left the tree; it stays in the registry for ever."""

    kind: ClassVar[str] = "agent_terminated"

    reason: str = ""


class PieceOfText(Event, frozen=True, kw_only=True, gc=False):
    """Text made for others to hear, in nobody's transcript; `agent_id` made it."""

    kind: ClassVar[str] = "piece_of_text"

    content: str = ""
    call_id: str = ""
    """Which of several calls of the message in `cause` asked for it."""


class TranscriptEdit(Event, frozen=True, kw_only=True, gc=False):
    """An agent's transcript was cut back, folded, given back what was cut, or put in order; a replay has to do the
    same."""

    kind: ClassVar[str] = "transcript_edit"

    action: str = "truncate"
    """`truncate`: only the first `n` entries stay. `compact`: entries `start` up to `n` become `content`. `restore`: of
    all that ever stood, those from `start` up to `n` stand again. `place`: the last one is put behind the first `n`."""
    n: int | None = None
    """Without it nothing is edited."""
    start: int = 0
    content: str = ""


class Recovery(Event, frozen=True, kw_only=True, gc=False):
    """A writer found a torn line and closed it; nothing was removed."""

    kind: ClassVar[str] = "recovery"

    offset: int = 0
    length: int = 0
    reason: str = ""
