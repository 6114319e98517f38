"""Checkpoint, materialize, fork, compact, translate: what agents know, as chains of commits."""

from __future__ import annotations

from harken.formats.base import Counts, count

from .chains import project_of
from .checkpoint import checkpoint, get_artifact, instant
from .compaction import compact, snapshot
from .describe import Shown, show
from .diff import Diff, diff
from .lineage import agent_name, agents_below, below, errand_title, lineage, names_agents
from .materialize import Materialized, empty, materialize
from .refs import Found, Ref, find, find_session, get_commit, get_commits, get_session, whole_principal
from .session_events import iter_session, maker_name, session_bytes, session_events, spawning_call
from .session_records import file_records, find_remembered, session_records
from .session_tracker import SessionSettings, SessionTracker
from .spawned import commit_at
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
    "below",
    "checkpoint",
    "commit_at",
    "compact",
    "continued",
    "count",
    "diff",
    "empty",
    "errand_title",
    "file_records",
    "find",
    "find_remembered",
    "find_session",
    "get_artifact",
    "get_commit",
    "get_commits",
    "get_session",
    "instant",
    "iter_session",
    "lineage",
    "maker_name",
    "materialize",
    "names_agents",
    "project_of",
    "session_bytes",
    "session_events",
    "session_records",
    "show",
    "snapshot",
    "spawning_call",
    "whole_principal",
]
