"""The two standards as formats: one reads what the other does, since a document itself says which it is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from harken.events import Event
from harken.formats.base import Counts, Format, Written, count

from .document import Kind, write
from .importing.claiming import claim_of
from .importing.to_events import events_of, main_events


def document_format(kind: Kind) -> Format:
    """The format of one of the standards."""
    number = kind.upper()
    return Format(
        name=kind,
        media_type="application/json",
        description=f"A session document of {number}: one JSON object with `session_id`, `tool_calls` and a summary.",
        context=_stands,
        claim=claim_of(kind),
        reader=events_of,
        delta_reader=events_of,  # names of records are made up from those in the document, and no bytes hold them
        writer=partial(_written, kind=kind),
        conversation_reader=main_events,
        measurer=_measure,
        places=lambda data: len(events_of(data)),
        names_stored=True,
        tells_agents=True,
    )


def _written(events: Sequence[Event], *, kind: Kind) -> Written:
    """A document of the events."""
    from .exporting.from_events import SessionFacts, document_of  # whoever only reads one does without

    made = document_of(events, SessionFacts(), kind)
    return Written(data=write(made.document), losses=tuple(made.losses))


def _stands(data: bytes) -> bytes:
    """All of a document stands; what its own agent heard of it is told by `main_events`."""
    return data


def _measure(data: bytes) -> Counts:
    """How much the document's own agent has before it; the others have chains of their own."""
    return count(main_events(data))
