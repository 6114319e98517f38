"""The rules that a session document is held against: the one list of them."""

from __future__ import annotations

from typing import Literal

import msgspec

from harken.formats.std.findings import DocumentFinding, FindingLevel

Mends = Literal["yes", "some", "no"]


class DocumentRule(msgspec.Struct, frozen=True, kw_only=True):
    """What a document is asked."""

    id: str
    level: FindingLevel
    """What it is when it is broken."""
    asks: str
    """A sentence."""
    mends: Mends = "no"
    """Whether `repair` mends it: always (names, where it is written into a folder), in the cases that it knows, or not
    by itself."""


_TABLE: tuple[tuple[str, FindingLevel, Mends, str], ...] = (
    # what it is
    ("invalid-json", "error", "some", "The file is JSON"),
    ("not-a-session", "error", "some", "It is a session document of STD-001 or STD-008"),
    ("duplicate-key", "warning", "no", "A key stands once in its object; of two, readers see the last alone"),
    ("old-generation", "note", "no", "The document is of the newest generation; older ones are read as that"),
    # fields
    ("missing-field", "error", "some", "Every required field is there"),
    ("missing-advised", "warning", "no", "`user_prompt`, `agent` and `completed_at` are there"),
    ("not-in-generation", "warning", "no", "A required field that an older generation did not have is there"),
    ("wrong-type", "error", "some", "A field holds what its type says"),
    ("unknown-value", "error", "some", "A field with a closed list of values has one of them"),
    ("open-value", "note", "no", "A field with an open list of values has one that the standard names"),
    ("empty-field", "error", "some", "An id, and the title of the session, is not empty"),
    ("payload-field", "warning", "no", "The payload of a message has the fields that programs agreed on"),
    ("old-phase", "warning", "no", "A phase of generation v2 has what it needs, and names calls that are there"),
    ("finding-place", "error", "some", "A review's finding names a `file` or a `location`"),
    ("verification", "error", "some", "A review's verification says how tests and type check went"),
    # names
    ("file-name", "warning", "yes", "`session_id` is the name of the file without `.json`"),
    ("file-suffix", "warning", "yes", "The name of a multi-agent document ends in `-multi.json`, and no other does"),
    ("session-id-form", "note", "yes", "`session_id` is a date, a number and a few words: `2026-01-31-001-mend-it`"),
    # ids and links
    ("duplicate-id", "error", "some", "An id (of a call, a sub-session, a message, an annotation …) is there once"),
    ("repeated-task", "warning", "no", "Every sub-session has a task of its own"),
    ("repeated-agent", "warning", "no", "A participant is listed once"),
    ("no-sub-session", "error", "some", "A multi-agent session that is over has a sub-session"),
    ("trigger", "error", "some", "`triggered_by_call_id` is a call of `tool_calls`, and a call of `Task`"),
    ("unknown-sub-session", "error", "some", "The sub-session that a call names is there"),
    ("links-disagree", "error", "no", "The sub-session that a call names is one that names that call"),
    ("link-one-way", "warning", "no", "The call that a sub-session names says so in `subagent_info.sub_session_id`"),
    ("task-without-sub-session", "warning", "no", "Where there is a `collaboration`, a `Task` call has a sub-session"),
    ("parent-session", "error", "some", "`parent_session_id` is the session, or the sub-session that made the call"),
    ("unlisted-agent", "warning", "no", "The agent of a sub-session is the orchestrator or a participant"),
    ("range-call", "error", "no", "The range of an annotation begins and ends with calls that are there"),
    ("range-order", "error", "yes", "The range of an annotation does not end before it begins"),
    # messages
    ("unknown-agent", "error", "some", "Both agents of a message are the orchestrator or participants"),
    ("agent-type", "warning", "no", "An agent has one type throughout the document"),
    ("sequence", "error", "some", "`sequence_number` increases from message to message"),
    ("reply", "error", "yes", "`reply_to` is another message"),
    ("repeated-assignment", "error", "no", "A task is assigned once"),
    ("completion", "error", "no", "A task that is completed was assigned before"),
    ("review", "error", "no", "The result of a review was asked for before"),
    ("unknown-task", "warning", "no", "The task that a message is about is there"),
    ("output-task", "warning", "no", "What a sub-agent hands in is about its task; a review is about another"),
    ("unknown-finding", "error", "yes", "`related_findings` are findings of the same review"),
    # times
    ("unreadable-time", "error", "some", "A time is one of ISO 8601"),
    ("time-zone", "note", "no", "A time says its zone; one that does not is taken as UTC"),
    ("time-reversed", "error", "no", "Nothing ends before it begins"),
    ("time-outside", "warning", "no", "What happens in a session or sub-session happens while it lasts, to the second"),
    ("outlives-call", "note", "no", "A sub-session ends with its call; that of a call which only launches goes on"),
    ("call-order", "warning", "no", "Calls stand in the order in which they began"),
    ("message-order", "warning", "no", "Messages stand in the order of their times"),
    ("duration", "warning", "no", "`duration_ms` is the time from start to end, to the second"),
    # counts
    ("count", "warning", "no", "A number is that of the calls, tasks, reviews or errors that are recorded"),
    ("summary-duration", "warning", "no", "A duration of the summary is that of what is recorded, to the second"),
    ("summary-agents", "warning", "no", "The summary has a row for each agent, and for no other"),
    ("summary-verdict", "warning", "no", "`final_verdict` is that of the last review"),
    ("summary-files", "warning", "no", "The files that a developer hands in are listed in the summary"),
)  # fmt: skip


def _rules() -> dict[str, DocumentRule]:
    return {rule: DocumentRule(id=rule, level=level, mends=mends, asks=asks) for rule, level, mends, asks in _TABLE}


RULES = _rules()
"""Every rule by its id."""


def found(rule: str, path: str, message: str, *, mends: bool | None = None) -> DocumentFinding:
    """A finding of a rule. `mends` says whether this one can be repaired, for a rule that is mended in some cases."""
    known = RULES[rule]
    repairable = known.mends == "yes" if mends is None else mends
    return DocumentFinding(rule=rule, level=known.level, path=path, message=message, repairable=repairable)
