"""The native runtime: agents that hear, speak and use tools, and go on where a crash has stopped them."""

from __future__ import annotations

from harken.events import Image
from harken.events.verdicts import Approve, Ask, Deny, Rewrite

from .agent import Agent
from .hooks import Hook, HookAgent, Moment, hook
from .limits import RunLimits, Used
from .loading import MissingHook, load_session
from .mcp import McpServer
from .models import (
    Model,
    ModelError,
    Reply,
    Request,
    Retries,
    ScriptedModel,
    Streamed,
    StreamingModel,
    open_model,
    tool_call,
)
from .options import ModelOptions
from .pool import AgentPool
from .questions import ask_person
from .replaying import Departure, departures
from .schema_tools import tool_from_model, tool_from_schema
from .schemas import parsed
from .tools import Answer, Call, Tool, make_tool, tool
from .triggers import FileWatcher, wake

__all__ = [
    "Agent",
    "AgentPool",
    "Answer",
    "Approve",
    "Ask",
    "Call",
    "Deny",
    "Departure",
    "FileWatcher",
    "Hook",
    "HookAgent",
    "Image",
    "McpServer",
    "MissingHook",
    "Model",
    "ModelError",
    "ModelOptions",
    "Moment",
    "Reply",
    "Request",
    "Retries",
    "Rewrite",
    "RunLimits",
    "ScriptedModel",
    "Streamed",
    "StreamingModel",
    "Tool",
    "Used",
    "ask_person",
    "departures",
    "hook",
    "load_session",
    "make_tool",
    "open_model",
    "parsed",
    "tool",
    "tool_call",
    "tool_from_model",
    "tool_from_schema",
    "wake",
]
