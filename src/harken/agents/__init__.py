"""The native runtime: agents that hear, speak and use tools, and go on where a crash has stopped them."""

from __future__ import annotations

from harken.events.verdicts import Approve, Deny, Rewrite

from .agent import Agent
from .hooks import Hook, HookAgent, Moment, hook
from .limits import RunLimits, Used
from .loading import MissingHook, load_session
from .models import Model, ModelError, Reply, Request, Retries, ScriptedModel, Streamed, StreamingModel, open_model
from .options import ModelOptions
from .pool import AgentPool
from .replaying import Departure, departures
from .schemas import parsed
from .tools import Answer, Call, Tool, make_tool, tool
from .triggers import FileWatcher, wake

__all__ = [
    "Agent",
    "AgentPool",
    "Answer",
    "Approve",
    "Call",
    "Deny",
    "Departure",
    "FileWatcher",
    "Hook",
    "HookAgent",
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
    "departures",
    "hook",
    "load_session",
    "make_tool",
    "open_model",
    "parsed",
    "tool",
    "wake",
]
