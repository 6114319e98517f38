"""Checkpoint, materialize, fork, compact, translate: what agents know, as chains of commits."""

from __future__ import annotations

from harken.formats.base import Counts, count

from .checkpoint import checkpoint, get_artifact, instant, measure
from .compaction import compact, snapshot
from .describe import Shown, show
from .diff import Diff, diff
from .materialize import Materialized, empty, materialize
from .refs import Found, Ref, agents_below, find, find_session, get_commit, get_session
from .session_events import agent_name, all_versions, session_bytes, session_events
from .session_tracker import SessionSettings, SessionTracker
from .tracker import Tracker, TrackerSettings
from .translate import TIERS, continued

__all__ = [
    "TIERS",
    "Counts",
    "Diff",
    "Found",
    "Materialized",
    "Ref",
    "SessionSettings",
    "SessionTracker",
    "Shown",
    "Tracker",
    "TrackerSettings",
    "agent_name",
    "agents_below",
    "all_versions",
    "checkpoint",
    "compact",
    "continued",
    "count",
    "diff",
    "empty",
    "find",
    "find_session",
    "get_artifact",
    "get_commit",
    "get_session",
    "instant",
    "materialize",
    "measure",
    "session_bytes",
    "session_events",
    "show",
    "snapshot",
]
