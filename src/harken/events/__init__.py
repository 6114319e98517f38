"""What happened, as frozen values: one model that every format reads into and writes from."""

from __future__ import annotations

from .base import Cause, Event, Image, LoggedString, Tokens
from .messages import Prompt, Response, System, Thinking
from .runs import Error, Metric, Output
from .session import AgentCreated, AgentTerminated, PieceOfText, Recovery, TranscriptEdit
from .tools import ToolCall, ToolResult

KINDS: dict[str, type[Event]] = {
    cls.kind: cls
    for cls in (
        Prompt,
        Response,
        Thinking,
        ToolCall,
        ToolResult,
        System,
        Metric,
        Error,
        Output,
        AgentCreated,
        AgentTerminated,
        PieceOfText,
        TranscriptEdit,
        Recovery,
    )
}

__all__ = [
    "KINDS",
    "AgentCreated",
    "AgentTerminated",
    "Cause",
    "Error",
    "Event",
    "Image",
    "LoggedString",
    "Metric",
    "Output",
    "PieceOfText",
    "Prompt",
    "Recovery",
    "Response",
    "System",
    "Thinking",
    "Tokens",
    "ToolCall",
    "ToolResult",
    "TranscriptEdit",
]
