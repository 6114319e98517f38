"""What is recorded while it happens: transcripts of what SDKs send and hear, and session documents."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harken.formats.std.models import AgentIdentifier as AgentIdentifier
    from harken.formats.transcript.entry import TranscriptEntry as TranscriptEntry
    from harken.formats.transcript.entry import TranscriptRole as TranscriptRole
    from harken.formats.transcript.entry import format_transcript as format_transcript
    from harken.log import Session as Session
    from harken.log.bus import EventBus as EventBus
    from harken.log.dispatching import append_all as append_all
    from harken.log.dispatching import replace_latest as replace_latest
    from harken.log.slices import JsonlSliceFactory as JsonlSliceFactory
    from harken.log.slices import MemorySliceFactory as MemorySliceFactory
    from harken.log.slices import SliceFactoryConfig as SliceFactoryConfig
    from harken.log.slices import SlicePolicy as SlicePolicy

    from .anthropic_sdk.wrapping import anthropic as anthropic
    from .claude_agent_sdk.options import ClaudeAgentSDKAdapter as ClaudeAgentSDKAdapter
    from .claude_agent_sdk.options import ClaudeAgentSDKClientConfig as ClaudeAgentSDKClientConfig
    from .claude_agent_sdk.options import claude_agent as claude_agent
    from .google_sdk.wrapping import google as google
    from .litellm_sdk.wrapping import litellm as litellm
    from .openai_sdk.adapter import OpenAIAdapter as OpenAIAdapter
    from .openai_sdk.adapter import OpenAIModelConfig as OpenAIModelConfig
    from .openai_sdk.wrapping import openai as openai
    from .recorder import MultiAgentRecorder as MultiAgentRecorder
    from .spans.capturing import otel_processor as otel_processor
    from .spans.capturing import receive_otlp as receive_otlp
    from .telemetry import PromptExecuted as PromptExecuted
    from .telemetry import PromptRendered as PromptRendered
    from .telemetry import ToolInvoked as ToolInvoked

# Promised names and the module each lives in: looked up when first asked for, so that no part loads another's SDK.
_HOME = {
    "AgentIdentifier": "harken.formats.std.models",
    "ClaudeAgentSDKAdapter": "harken.capture.claude_agent_sdk.options",
    "ClaudeAgentSDKClientConfig": "harken.capture.claude_agent_sdk.options",
    "EventBus": "harken.log.bus",
    "JsonlSliceFactory": "harken.log.slices",
    "MemorySliceFactory": "harken.log.slices",
    "MultiAgentRecorder": "harken.capture.recorder",
    "OpenAIAdapter": "harken.capture.openai_sdk.adapter",
    "OpenAIModelConfig": "harken.capture.openai_sdk.adapter",
    "PromptExecuted": "harken.capture.telemetry",
    "PromptRendered": "harken.capture.telemetry",
    "Session": "harken.log",
    "SliceFactoryConfig": "harken.log.slices",
    "SlicePolicy": "harken.log.slices",
    "ToolInvoked": "harken.capture.telemetry",
    "TranscriptEntry": "harken.formats.transcript.entry",
    "TranscriptRole": "harken.formats.transcript.entry",
    "anthropic": "harken.capture.anthropic_sdk.wrapping",
    "append_all": "harken.log.dispatching",
    "claude_agent": "harken.capture.claude_agent_sdk.options",
    "format_transcript": "harken.formats.transcript.entry",
    "google": "harken.capture.google_sdk.wrapping",
    "litellm": "harken.capture.litellm_sdk.wrapping",
    "openai": "harken.capture.openai_sdk.wrapping",
    "otel_processor": "harken.capture.spans.capturing",
    "receive_otlp": "harken.capture.spans.capturing",
    "replace_latest": "harken.log.dispatching",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
