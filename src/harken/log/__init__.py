"""The session log: appended, acknowledged, healed and never edited."""

from __future__ import annotations

from harken.events import LoggedString
from harken.formats.session_log import LogRecord, events_of, events_of_record, record_of, records_of
from harken.formats.session_log.lines import SeveralMessages, messages_of

from .base import INCOMPLETE, AgentInfo, LogProblem, OpenCall
from .disk import Ack, read_chunks, scan
from .questions import GivenAnswer, OpenQuestion
from .registry import Registry
from .session import LineObserver, Observer, Session

__all__ = [
    "INCOMPLETE",
    "Ack",
    "AgentInfo",
    "GivenAnswer",
    "LineObserver",
    "LogProblem",
    "LogRecord",
    "LoggedString",
    "Observer",
    "OpenCall",
    "OpenQuestion",
    "Registry",
    "Session",
    "SeveralMessages",
    "events_of",
    "events_of_record",
    "messages_of",
    "read_chunks",
    "record_of",
    "records_of",
    "scan",
]
