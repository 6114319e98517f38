"""What an import has to know of a document.

A document is kept as one commit: it is rewritten as a whole, so what it grows by cannot be told from what was there.
"""

from __future__ import annotations

import msgspec

from harken import ids
from harken.errors import BadRecord
from harken.events import Event, Output
from harken.events.base import clean, excerpt
from harken.events.records import by_record
from harken.events.tally import Tally
from harken.formats.base import Delta
from harken.formats.facts import FileFacts
from harken.formats.std.document import Kind

from .document_events import DocumentReading
from .pieces import session_name, text_of
from .to_events import ChainReading, read_once


def scan(data: bytes, state: bytes = b"", *, runtime: Kind) -> FileFacts:
    """The facts of a document, or of the lines of an agent's chain; refuses several documents, one behind the other:
    each is a session, and together they would be one that nobody had."""
    found, events = read_once(data)
    documents = [one for one in found if isinstance(one, DocumentReading)]
    if len(documents) > 1:
        raise BadRecord(f"{len(documents)} session documents in one file", hint="write each to a file of its own")
    tally = Tally.of(events)
    delta = Delta(start=0, end=len(data), closed=False, time=tally.ended, messages=tally.messages)
    records = list(by_record(events))
    facts = FileFacts(
        runtime=runtime,
        records=len(records),
        opaque=sum(any(isinstance(event, Output) and bool(event.why) for event in record) for record in records),
        messages=tally.messages,
        tally=tally,
        deltas=(msgspec.structs.replace(delta, records=len(records)),) if data else (),
    )
    if documents:
        return _with_document(facts, documents[0], events)
    titles = (one.title for one in found if isinstance(one, ChainReading))
    return msgspec.structs.replace(facts, title=excerpt(clean(next(titles, ""))))


def _with_document(facts: FileFacts, reading: DocumentReading, events: list[Event]) -> FileFacts:
    """What a document says of itself and of its agents."""
    data, inside = reading.data, reading.inside
    session, title = session_name(data.get("session_id")), text_of(data.get("task_title"))
    own = [event for event in events if event.agent_id not in inside]
    calls, makers = _made(reading)
    # By it a file is known again that was moved; two documents of other sessions never have the same.
    first = ids.short_digest(f"{session} {data.get('created_at')}".encode(errors="replace"))
    return msgspec.structs.replace(
        facts,
        session=session,
        agents=tuple(inside),
        title=excerpt(title or text_of(data.get("user_prompt"))),
        named=bool(title.strip()),
        inside=facts.messages - Tally.of(own).messages,
        calls=calls,
        makers=makers,
        side_chains=bool(inside),
        fingerprint=(first,) if session else (),
    )


def _made(reading: DocumentReading) -> tuple[dict[str, str], dict[str, str]]:
    """Agent to the call that made it, and to the agent that did, where that is not the main one."""
    inside = reading.inside
    calls: dict[str, str] = {}
    makers: dict[str, str] = {}
    for place, sub in enumerate(reading.subs):
        maker, _, call = reading.makers[place]
        if sub.agent in inside and sub.agent not in calls:
            calls[sub.agent] = call
            if maker in inside and maker != sub.agent:
                makers[sub.agent] = maker
    return {agent: call for agent, call in calls.items() if call}, makers
