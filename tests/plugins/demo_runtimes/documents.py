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


def document(kind: str, session: str, cwd: str, messages: Sequence[Record]) -> bytes:
    return encode({kind: 1, "session": session, "cwd": cwd, "messages": list(messages)})


def places(data: bytes) -> list[tuple[int, int]] | None:
    """Where the messages of a document stand in it; None where it is none."""
    at = data.find(LIST) + len(LIST)
    if at < len(LIST) or parse(data) is None:
        return None
    # Every byte is a character here, so places in the text are places in the bytes.
    return values(data.decode("latin-1"), at)


def values(text: str, at: int) -> list[tuple[int, int]] | None:
    """Where the values of a list stand in a text, from one of them to the end of the list."""
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
        damage = "not such a document" if found is None and data.strip() else ""
        return DocumentParts(closed=(), open=(), tail=data, damage=damage)
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


def _numbered(messages: Iterable[bytes]) -> Iterator[Event]:
    """The events of messages; one without a name is called after its place among them."""
    for number, message in enumerate(messages):
        for event in events_of(message):
            yield event if event.message_id else event.replace(message_id=f"@{number}")


class DocumentFormat:
    """The functions of such a format."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.scan: Scan = document_scan(kind, events_of, take_apart)

    def read(self, data: bytes) -> Iterator[Event]:
        found = places(data)
        if found is None and data.strip():
            yield Output(raw=data, why="not such a document")
        yield from _numbered(data[start:end] for start, end in found or ())

    def read_delta(self, delta: bytes) -> Iterator[Event]:
        found = self.messages(delta)
        if found is None and delta.strip():
            yield Output(raw=delta, why="no part of such a document")
        yield from _numbered(found or ())

    def messages(self, delta: bytes) -> list[bytes] | None:
        """The messages in a delta: a closed one, those in a tail, those of a document; None where there are none."""
        record = parse(delta)
        if record is None:
            return None
        if delta.startswith(ENVELOPE):
            # What is not closed stands behind the last closed message.
            text = str(record["envelope"][-1])
            found = values(text, len(text) - len(text.lstrip(", \n")))
            return None if found is None else [text[start:end].encode("latin-1") for start, end in found]
        if self.kind not in record:
            return [delta] if "role" in record else None
        found = places(delta)
        return None if found is None else [delta[start:end] for start, end in found]

    def write(self, events: Sequence[Event]) -> Written:
        records, losses = records_of(events)
        return Written(data=document(self.kind, "", "", records) if records or losses else b"", losses=losses)

    def join(self, deltas: Iterable[bytes]) -> bytes:
        parts = list(deltas)
        if parts and parts[-1].startswith(ENVELOPE):
            gaps = [gap.encode("latin-1") for gap in (parse(parts[-1]) or {})["envelope"]]
            if len(gaps) == len(parts):
                return b"".join(piece for pair in zip(gaps, [*parts[:-1], b""], strict=True) for piece in pair)
        if len(parts) == 1 and (self.messages(parts[0]) != parts or "role" not in (parse(parts[0]) or {})):
            return parts[0]  # a document, or a file that never was one; no message alone
        messages = [message for part in parts for message in self.messages(part) or ()]
        return b'{"%s":1,"messages":[%s]}' % (self.kind.encode(), b",".join(messages)) if parts else b""

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
            delta_reader=self.read_delta,
            places=lambda delta: len(self.messages(delta) or ()),
            writer=self.write,
        )
