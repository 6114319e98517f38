"""How often the conversation was replaced by a summary, and how the context filled up until then."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from harken.events import Event, Metric, System
from harken.events.base import clean, figure
from harken.events.runs import AGENT, AGENTS, EMBEDDED, SEVERAL, TOTAL
from harken.events.tally import SYNTHETIC

from .steps import is_compaction


class Compaction(msgspec.Struct, kw_only=True, frozen=True):
    """One time that it was."""

    time: int | None
    agent: str = ""
    trigger: str = ""
    """`auto` or `manual`; empty where the runtime does not say."""
    before: int | None = None
    """Tokens in the context before, as the runtime says, else as the last request had them."""
    after: int | None = None
    """Tokens of the next request behind it, or as the runtime says."""
    took: int | None = None
    """Microseconds since the compaction before, or since the beginning: how long the context lasted."""


class Pressure(msgspec.Struct, kw_only=True, frozen=True):
    """A point of the curve: how many tokens stood before the model."""

    time: int | None
    tokens: int
    agent: str = ""


class Compactions(msgspec.Struct, kw_only=True, frozen=True):
    """All of them, and the curve between."""

    compactions: tuple[Compaction, ...] = ()
    curve: tuple[Pressure, ...] = ()
    """One point per request of the session's own agents, in order."""
    per_hour: float | None = None
    """How many in an hour of the session; None where it took no time."""


def of(events: Iterable[Event]) -> Compactions:
    """Every compaction of a stream of events."""
    found: list[Compaction] = []
    curve: dict[tuple[str, str], Pressure] = {}
    waiting: dict[str, int] = {}
    begun: dict[str, int] = {}
    size: dict[str, int] = {}
    times: list[int] = []
    for event in events:
        if event.time is not None:
            times.append(event.time)
            begun.setdefault(event.agent_id, event.time)
        if isinstance(event, Metric) and is_request(event):
            tokens = event.tokens.possible.prompt
            if tokens:
                key = event.request_key if event.api_id else ("", str(len(curve)))
                curve[key] = Pressure(time=event.time, tokens=tokens, agent=event.agent_id)
                size[event.agent_id] = tokens
                if (place := waiting.pop(event.agent_id, None)) is not None and found[place].after is None:
                    found[place] = msgspec.structs.replace(found[place], after=tokens)
        elif is_compaction(event):
            told = _told(event)
            before = told.before if told.before is not None else size.get(event.agent_id)
            start = begun.get(event.agent_id)
            took = None if event.time is None or start is None else max(0, event.time - start)
            waiting[event.agent_id] = len(found)
            found.append(msgspec.structs.replace(told, before=before, took=took))
            if event.time is not None:
                begun[event.agent_id] = event.time
    hours = (max(times) - min(times)) / 3.6e9 if times else 0
    return Compactions(
        compactions=tuple(found), curve=tuple(curve.values()), per_hour=len(found) / hours if hours else None
    )


def is_request(metric: Metric) -> bool:
    """Whether it tells of one request of the agent itself."""
    others = metric.of_process or metric.scope in (EMBEDDED, AGENT, AGENTS, TOTAL, SEVERAL)
    return not others and metric.model != SYNTHETIC


def _told(event: Event) -> Compaction:
    before, after, trigger = compaction_facts(event.metadata if isinstance(event, System) else b"")
    return Compaction(time=event.time, agent=event.agent_id, trigger=trigger, before=before, after=after)


def compaction_facts(metadata: bytes) -> tuple[int | None, int | None, str]:
    """Tokens before and after, and the trigger, as the record of a compaction says: Claude Code has `compactMetadata`,
    others the same names without it."""
    try:
        held: Any = json.loads(metadata) if metadata else {}
    except (ValueError, RecursionError):
        held = {}
    about = held.get("compactMetadata", held) if isinstance(held, dict) else {}
    about = about if isinstance(about, dict) else {}
    trigger = about.get("trigger")
    told = clean(trigger) if isinstance(trigger, str) else ""
    return figure(about.get("preTokens")), figure(about.get("postTokens")), told
