"""Requests of sub-agents that the session which started them tells of too.

Of the two reports that in the sub-agent's own records counts. It may lack the model, which the other has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from .base import Event
from .records import SessionRecord
from .runs import EMBEDDED, Metric


def embedded_models(events: Iterable[Event]) -> dict[str, str]:
    """The model of each message or agent whose requests are told inside another's records; empty where there are
    several."""
    models: dict[str, str] = {}
    for event in events:
        note_model(event, models)
    return models


def note_model(event: Event, models: dict[str, str]) -> None:
    """Remember the model of a request that is told inside another's records."""
    if isinstance(event, Metric) and event.scope == EMBEDDED and event.api_id:
        known = models.setdefault(event.api_id, event.model)
        models[event.api_id] = known if known == event.model else ""


def with_models(records: list[SessionRecord], models: Mapping[str, str]) -> list[SessionRecord]:
    """The records, with the models of requests that others tell."""
    if not any(
        isinstance(event, Metric) and event.api_id in models and not event.model for event in events_of(records)
    ):
        return records
    return [
        msgspec.structs.replace(each, events=[with_model(event, models) for event in each.events]) for each in records
    ]


def with_model(event: Event, models: Mapping[str, str]) -> Event:
    """An event; a request that does not say which model answered it with the one that others tell."""
    if isinstance(event, Metric) and not event.model and (model := models.get(event.api_id)):
        named: Event = event.replace(model=model)
        return named
    return event


def lacks_models(records: Iterable[SessionRecord]) -> bool:
    """Whether a request in them does not tell which model answered it."""
    requests = (event for event in events_of(records) if isinstance(event, Metric))
    return any(request.api_id and not request.model and not request.scope for request in requests)


def events_of(records: Iterable[SessionRecord]) -> Iterable[Event]:
    """What all of them say."""
    return (event for record in records for event in record.events)
