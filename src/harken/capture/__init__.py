"""What is recorded while it happens: a session document, and the log from which it can be made again at any time."""

from __future__ import annotations

from harken.formats.std.models import AgentIdentifier

from .recorder import MultiAgentRecorder

__all__ = ["AgentIdentifier", "MultiAgentRecorder"]
