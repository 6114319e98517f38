"""One JSON document with a list of messages, which Scribe rewrites as a whole and Ledger makes of its rows.

    {"scribe": 1, "session": "…", "cwd": "…", "messages": [RECORD, …]}

All messages but the last are closed. The tail of a chain is what stands around them: `{"envelope": [TEXT, …]}`, the
bytes before, between and behind the closed messages, each byte a character. Without a tail, messages are put into the
smallest document there is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from harken.events import Event, Output
from harken.formats import Format, Written
from harken.runtimes import Place
from harken.runtimes.scans import DocumentParts, Scan, document_scan

from .records import Record, encode, events_of, parse, records_of

LIST = b'"messages":['
ENVELOPE = b'{"envelope":'
MESSAGE = b'{"id":'


def document(kind: str, session: str, cwd: str, messages: Sequence[Record]) -> bytes:
    return encode({kind: 1, "session": session, "cwd": cwd, "messages": list(messages)})


def places(data: bytes) -> list[tuple[int, int]] | None:
    """Where the messages of a document stand in it; None where it is none."""
    # Every byte is a character here, so places in the text are places in the bytes.
    text = data.decode("latin-1")
    at = data.find(LIST) + len(LIST)
    if at < len(LIST) or parse(data) is None:
        return None
    found: list[tuple[int, int]] = []
    while text[at : at + 1] not in ("]", ""):
        try:
            _, end = json.JSONDecoder().raw_decode(text, at)
        except (ValueError, RecursionError):
            return None
        found.append((at, end))
        at = end + len(text[end:]) - len(text[end:].lstrip(", \n"))
    return found


def take_apart(data: bytes) -> DocumentParts:
    """Its closed messages, the last one, and what stands around."""
    found = places(data)
    if not found:
        return DocumentParts(closed=(), open=(), tail=data)
    slices = [data[start:end] for start, end in found]
    session = (parse(data) or {}).get("session")
    ends = [0, *(end for _, end in found[:-1])]
    starts = [*(start for start, _ in found[:-1]), len(data)]
    gaps = [data[end:start].decode("latin-1") for end, start in zip(ends, starts, strict=True)]
    return DocumentParts(
        closed=slices[:-1],
        open=slices[-1:],
        tail=encode({"envelope": gaps}) if len(slices) > 1 else data,
        session=session if isinstance(session, str) else "",
    )


class DocumentFormat:
    """The functions of such a format."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.scan: Scan = document_scan(kind, events_of, take_apart)

    def read(self, data: bytes) -> Iterator[Event]:
        found = places(data)
        if found is None and data.strip():
            yield Output(raw=data, why="not such a document")
        for start, end in found or ():
            yield from events_of(data[start:end])

    def write(self, events: Sequence[Event]) -> Written:
        records, losses = records_of(events)
        return Written(data=document(self.kind, "", "", records) if records or losses else b"", losses=losses)

    def join(self, deltas: Iterable[bytes]) -> bytes:
        parts = list(deltas)
        if parts and parts[-1].startswith(ENVELOPE):
            envelope = parse(parts.pop()) or {}
            gaps = [gap.encode("latin-1") for gap in envelope["envelope"]]
            if len(gaps) == len(parts) + 1:
                return b"".join(piece for pair in zip(gaps, [*parts, b""], strict=True) for piece in pair)
        if len(parts) == 1 and not parts[0].startswith(MESSAGE):
            return parts[0]
        return b'{"%s":1,"messages":[%s]}' % (self.kind.encode(), b",".join(parts)) if parts else b""

    def native(self, data: bytes, place: Place) -> bytes:
        known = parse(data) or {}
        return document(self.kind, place.session, str(place.cwd), known.get("messages", []))

    def translated(self, events: Sequence[Event], place: Place) -> Written:
        records, losses = records_of(events)
        return Written(data=document(self.kind, place.session, str(place.cwd), records), losses=losses)

    def format(self) -> Format:
        return Format(
            name=f"{self.kind}-v1",
            runtime=self.kind,
            media_type="application/json",
            join=self.join,
            reader=self.read,
            writer=self.write,
        )
