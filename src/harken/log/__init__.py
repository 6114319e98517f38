"""The session log: appended, acknowledged, healed and never edited."""

from __future__ import annotations

from harken.formats.session_log import Record, events_of, events_of_record, record_of, records_of

from .disk import Ack
from .registry import INCOMPLETE, AgentInfo, OpenCall, Problem, Registry
from .session import Observer, Session, read_chunks, scan
from .strings import LoggedString

__all__ = [
    "INCOMPLETE",
    "Ack",
    "AgentInfo",
    "LoggedString",
    "Observer",
    "OpenCall",
    "Problem",
    "Record",
    "Registry",
    "Session",
    "events_of",
    "events_of_record",
    "read_chunks",
    "record_of",
    "records_of",
    "scan",
]
