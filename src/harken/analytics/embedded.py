"""Requests of sub-agents that the session which started them tells of too.

Of the two reports that in the sub-agent's own records counts. It may lack the model, which the other has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from harken.events import Event, Metric
from harken.events.records import SessionRecord
from harken.events.runs import EMBEDDED


def embedded_models(records: Iterable[SessionRecord]) -> dict[str, str]:
    """The model of each message or agent whose requests are told inside another's records; empty where there are
    several."""
    found: dict[str, set[str]] = {}
    for metric in _metrics(records):
        if metric.scope == EMBEDDED and metric.api_id:
            found.setdefault(metric.api_id, set()).add(metric.model)
    return {api: models.pop() if len(models) == 1 else "" for api, models in found.items()}


def with_models(records: list[SessionRecord], models: Mapping[str, str]) -> list[SessionRecord]:
    """The records, with the models of requests that others tell."""
    if not any(metric.api_id in models and not metric.model for metric in _metrics(records)):
        return records

    def known(event: Event) -> Event:
        if isinstance(event, Metric) and not event.model and (model := models.get(event.api_id)):
            named: Event = event.replace(model=model)
            return named
        return event

    return [msgspec.structs.replace(each, events=[known(event) for event in each.events]) for each in records]


def lacks_models(records: Iterable[SessionRecord]) -> bool:
    """Whether a request in them does not tell which model answered it."""
    return any(metric.api_id and not metric.model and not metric.scope for metric in _metrics(records))


def _metrics(records: Iterable[SessionRecord]) -> Iterable[Metric]:
    return (event for record in records for event in record.events if isinstance(event, Metric))
