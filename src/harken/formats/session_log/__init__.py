"""`session-log-v2`: the multi-agent session log, one JSON object per line.

Reads v2, the older v1 and the dialect that smallchat shipped, line by line; writes v2. The layout of every line is in
`docs/FORMAT.md`. Everything here is a pure function of bytes; files are the business of the package `log`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from harken.events import Event, Output
from harken.formats.base import Format, Written
from harken.formats.kit.claims import NO_CLAIM, Claim
from harken.formats.kit.jsonl import HEAD, MAX_LINE, read_head

from .copies import CARRIED_FROM, captured_names, carried_names
from .lines import BLANK, Group, LogRecord, data_of, dialect, normalise, read_about, read_groups, read_records
from .present import in_present_shape
from .reading import (
    ENTRY,
    PLAIN,
    ROLES,
    as_cause,
    as_id,
    content_text,
    events_of,
    instant_of,
    shown,
)
from .scan import LogScanner, first_digits, main_agent, origin_of, scan, told_records
from .transcripts import context, continues, owner, side_chains
from .writing import ENTRIES, encode, record_of, records_of, runs

KINDS = frozenset({ENTRY, "output", *PLAIN})
"""Every `event_type` that v2 knows."""


def events_of_record(record: LogRecord) -> list[Event]:
    """The events of a record as it was found; bytes nobody could read are an `Output` named by their place."""
    if record.data is not None:
        return events_of(record.data, record.raw)
    if record.problem == BLANK:
        return []
    return [Output(message_id=f"@{record.offset}", raw=record.raw, why=record.problem or "")]


def read(data: bytes) -> Iterator[Event]:
    """The events in a whole log."""
    for record in read_records((data,)):
        yield from events_of_record(record)


def write(events: Sequence[Event]) -> Written:
    """A log with these events; everything they say has a place in it."""
    return Written(data=b"".join(encode(data) for data in records_of(events)))


def write_entries(data: bytes) -> Written:
    """A context as transcript entries, with what its lines say of them beyond their events."""
    from harken.formats.transcript.format import write_records  # few logs are written as entries

    lines = (record.data for record in read_records((data,)) if record.data is not None)
    told = ((events_of(line), said if isinstance(said := line.get(ENTRIES), list) else ()) for line in lines)
    return write_records(told, were_entries=True)


CLAIMED_BY = ("event_type",)
"""A line without this key is no reason to claim a file."""


def claim(head: bytes, path: str = "") -> Claim:
    """How sure it is: by the first line that is not blank."""
    first = next(iter(read_head(head, most=1)), None)
    if first is None or "event_type" not in first or not ("message_id" in first or "agent_id" in first):
        return NO_CLAIM
    return Claim(score=90, reason="its first line has `event_type`, and an agent or a message id")


_BEGINNINGS = (b'{"message_id":', b'{"event_type":', b'{"agent_id":')
_SPACES = b" \t\r\0"  # a power cut may leave NULs where nothing was written yet


def may_be_log(chunks: Iterable[bytes]) -> bool:
    """Whether a file may be gone on with as a session log: some line of it is one's, or it holds nothing but torn
    beginnings of a first line, or NULs in its place, which is all that a crash may have left."""
    torn = True
    for record in read_records(chunks):
        data = record.data
        if data is not None and "event_type" in data and ("message_id" in data or "agent_id" in data):
            return True
        written = record.raw.translate(None, _SPACES)
        # No crash leaves spaces alone.
        torn = torn and data is None and _begins(written) and (bool(written) or not record.raw or b"\0" in record.raw)
    return torn


def _begins(line: bytes) -> bool:
    return any(line.startswith(known) or known.startswith(line) for known in _BEGINNINGS)


FORMAT = Format(
    name="session-log-v2",
    media_type="application/x-ndjson",
    description="One JSON object per line; `event_type`, `agent_id` and `message_id` on each. See docs/FORMAT.md.",
    claim=claim,
    reader=read,
    writer=write,
    split=lambda data: scan(data).deltas,
    context=context,
    direct={"transcript-v1": write_entries},
    older={"session-log-v2": in_present_shape},
    tells_agents=True,
    captured_names=captured_names,
    carried_names=carried_names,
)

__all__ = [
    "BLANK",
    "CARRIED_FROM",
    "CLAIMED_BY",
    "ENTRY",
    "FORMAT",
    "HEAD",
    "KINDS",
    "MAX_LINE",
    "ROLES",
    "Group",
    "LogRecord",
    "LogScanner",
    "as_cause",
    "as_id",
    "content_text",
    "context",
    "continues",
    "data_of",
    "dialect",
    "encode",
    "events_of",
    "events_of_record",
    "first_digits",
    "instant_of",
    "main_agent",
    "may_be_log",
    "normalise",
    "origin_of",
    "owner",
    "read",
    "read_about",
    "read_groups",
    "read_records",
    "record_of",
    "records_of",
    "runs",
    "scan",
    "shown",
    "side_chains",
    "told_records",
    "write",
]
