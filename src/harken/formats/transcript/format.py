"""`transcript-v1`: the entries of a conversation, a line of JSON each, as a LOG slice on disk has them.

A source is an agent: `primary` is the file's own, `subagent:<id>` the agent of that id, any other one an agent of that
name. Lines may come in any order: within a source the numbers decide, unless some stand twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

import msgspec

from harken.clock import from_datetime, in_calendar
from harken.events import AgentCreated, Event, Metric, Output, PieceOfText, Prompt, ToolResult, TranscriptEdit
from harken.events.base import clean, figure, speaker_of
from harken.formats.base import Delta, Format, Loss, Written
from harken.formats.kit.claims import NO_CLAIM, Claim
from harken.formats.kit.jsonl import is_blank, lines, parse, read_head

from .entry import PRIMARY, ROLES, SUBAGENT, TranscriptEntry
from .events import EPOCH, Rest, derived_id, drafts_of, event_of, parse_id, parse_time, plain_json

_COUNTS = (
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_1h_tokens",
    "reasoning_tokens",
)  # fmt: skip
_WORDS = ("model", "stop_reason", "served", "request_id")
_FIGURES = frozenset({*_COUNTS, *_WORDS, "cost_usd", "api_id"})
USAGE = "usage"
"""The key of an entry's metadata under which stands what its request used."""


# -- reading -----------------------------------------------------------------------------------------------------------


def _read(data: bytes) -> list[Event]:
    found: list[tuple[str, int, list[Event]]] = []
    known: set[str] = set()
    for start, end in lines(data):
        line = data[start:end].strip()
        if not is_blank(line):
            found.append(_line(line, start, known))
    return [event for events in _in_order(found) for event in events]


def _in_order(found: list[tuple[str, int, list[Event]]]) -> Iterator[list[Event]]:
    """Lines that came late stand at their places; where numbers are there twice, several files were put together."""
    numbers = Counter((source, number) for source, number, _ in found)
    mixed = {source for (source, _), count in numbers.items() if count > 1}
    own: dict[str, list[tuple[int, list[Event]]]] = {}
    for source, number, events in found:
        own.setdefault(source, []).append((number, events))
    turns = {
        source: iter(held if source in mixed else sorted(held, key=lambda one: one[0])) for source, held in own.items()
    }
    for source, _, _ in found:
        yield next(turns[source])[1]


def _line(line: bytes, at: int, known: set[str]) -> tuple[str, int, list[Event]]:
    value = parse(line)
    entry = None if value is None else _entry(value)
    if entry is None:
        return "", at, [Output(message_id=f"@{at}", raw=line, why="not a transcript entry")]
    source, name = entry.source, value.get("entry_id") if value else None
    agent_id = "" if source == PRIMARY else clean(source.removeprefix(SUBAGENT))
    event = event_of(entry)
    if entry.created_at == EPOCH:
        event = event.replace(time=None)
    place = {"message_id": clean(name) if isinstance(name, str) and name else f"@{at}", "agent_id": agent_id}
    events: list[Event] = [event.replace(**place), *_usage(entry, event, place)]
    if agent_id and agent_id not in known:
        known.add(agent_id)
        role = "child" if source.startswith(SUBAGENT) else ""
        events.insert(0, AgentCreated(agent_id=agent_id, message_id=f"{place['message_id']}-agent", role=role))
    return source, entry.sequence, events


def _entry(value: dict[str, Any]) -> TranscriptEntry | None:
    """The entry that an object is; what has no role or no words is none."""
    role, content = value.get("role"), value.get("content")
    if role not in ROLES or not isinstance(content, str):
        return None
    number, source = value.get("sequence"), value.get("source")
    time = parse_time(value.get("created_at"))
    return TranscriptEntry(
        role=role,
        content=clean(content),
        created_at=time if time is not None and in_calendar(from_datetime(time)) else EPOCH,
        tool_name=_text(value.get("tool_name")),
        tool_call_id=_text(value.get("tool_call_id")),
        tool_input=given if isinstance(given := value.get("tool_input"), dict) else None,
        metadata=about if isinstance(about := value.get("metadata"), dict) else None,
        source=clean(source) if isinstance(source, str) and source else PRIMARY,
        sequence=number if type(number) is int and number >= 0 else 0,
    )


def _text(value: object) -> str | None:
    return clean(value) if isinstance(value, str) else None


def _usage(entry: TranscriptEntry, event: Event, place: dict[str, str]) -> list[Event]:
    """What the request of a reply used, where its metadata says so in our words."""
    about = entry.metadata or {}
    used = about.get(USAGE)
    if not isinstance(used, dict) or not used.keys() <= _FIGURES:
        return []  # a provider's own words: some count what was cached among the input, others beside it
    said: dict[str, Any] = {name: figure(used.get(name)) for name in _COUNTS}
    if all(count is None for count in said.values()):
        return []
    words = {**used, "model": used.get("model") or about.get("model")}  # adapters say it beside the usage
    said |= {name: clean(text) for name in (*_WORDS, "api_id") if isinstance(text := words.get(name), str)}
    if isinstance(cost := used.get("cost_usd"), int | float) and not isinstance(cost, bool):
        said["cost_usd"] = float(cost)
    name = place["message_id"]
    return [Metric(**said, time=event.time, agent_id=place["agent_id"], message_id=name + "-usage", cause=name)]


# -- writing -----------------------------------------------------------------------------------------------------------


def _write(events: Sequence[Event]) -> Written:
    return write_records(([event], ()) for event in events)


def write_records(records: Iterable[tuple[Sequence[Event], Sequence[Rest]]], *, were_entries: bool = False) -> Written:
    """Records as lines: the events of each, and what stands beside them in a log. Where they were entries before, it is
    told how many of them have got another id."""
    records = list(records)
    root = speaker_of(event for events, _ in records for event in events)
    kept = {parse_id(rest.get("entry_id")) for _, rests in records for rest in rests if isinstance(rest, dict)}
    names: dict[str, str] = {}
    numbers: Counter[str] = Counter()
    free: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    made: dict[UUID, dict[str, Any]] = {}
    last: dict[str, dict[str, Any]] = {}
    for event, beside in ((event, rests[at : at + 1]) for events, rests in records for at, event in enumerate(events)):
        draft, rest = next(drafts_of([event], beside, names), (None, {}))
        if draft is None:
            if not (isinstance(event, Metric) and _add_usage(event, last.get(event.agent_id))):
                lost[_what(event)] += 1
            continue
        if isinstance(event, Prompt | ToolResult):
            lost[_PICTURE] += len(event.images)
        source = PRIMARY if event.agent_id in ("", root) else SUBAGENT + event.agent_id
        stored, number = parse_id(rest.get("entry_id")), numbers[source]
        numbers[source] += 1
        if stored is None or stored in made:
            lost[_IDS] += were_entries
            free[source] = max(number, free[source])
            # What was written before and came back has such an id, perhaps in another place than it had.
            while (made_up := derived_id(_SESSION, source, free[source])) in made or made_up in kept:
                free[source] += 1
            stored = made_up
        entry = draft.entry(entry_id=stored, source=source, sequence=number)
        made[stored] = last[event.agent_id] = msgspec.to_builtins(entry, str_keys=True)
    losses = tuple(
        Loss(what=what, count=count, why=_WHY.get(what, _NO_ENTRY)) for what, count in lost.items() if what and count
    )
    return Written(data=b"".join(plain_json(line) + b"\n" for line in made.values()), losses=losses)


_SESSION = "transcript-v1"
_IDS = "ids of entries"
_PICTURE = "picture"
_NO_ENTRY = "an entry is what was said or heard, or what a tool was asked and answered"
_WHY = {
    _IDS: "an entry whose id is not stored is called by its place among those that are written",
    _PICTURE: "an entry is text: it tells that a picture was there, of which kind and size, not what it shows",
}


def _what(event: Event) -> str:
    match event:
        case AgentCreated():
            return ""  # the source of its entries says it
        case Metric():
            return "usage"
        case Output():
            return "records that are no conversation"
        case PieceOfText():
            return "text made for others"
        case TranscriptEdit():
            return "edits"
    return "notices"


def _add_usage(event: Metric, line: dict[str, Any] | None) -> bool:
    """Put what a request used beside its reply; False where there is none, or the figures are of something else."""
    if line is None or line["role"] != "assistant" or event.scope or event.status:
        return False
    about = line["metadata"] = line["metadata"] or {}
    if USAGE in about:
        return False
    said = {
        name: value
        for name in (*_COUNTS, *_WORDS, "cost_usd", "api_id")
        if (value := getattr(event, name)) not in (None, "")
    }
    about[USAGE] = said
    return bool(said)


# -- the format --------------------------------------------------------------------------------------------------------


def _split(data: bytes) -> list[Delta]:
    """One delta: a line that comes late belongs before others."""
    return [Delta(start=0, end=len(data), closed=False)] if data else []


def _join(deltas: Iterable[bytes]) -> bytes:
    return b"".join(deltas)


def _claim(head: bytes, path: str = "") -> Claim:
    """Whether the lines are entries."""
    found = list(read_head(head, 3))
    if found and all(one.get("role") in ROLES and {"content", "created_at"} <= one.keys() for one in found):
        sure = all({"entry_id", "source", "sequence"} <= one.keys() for one in found)
        return Claim(score=95 if sure else 70, reason="its lines have a role, content and created_at")
    return NO_CLAIM


FORMAT = Format(
    name="transcript-v1",
    media_type="application/x-ndjson",
    description="Transcript entries, a line of JSON each: role, content, created_at, tool fields, source, sequence.",
    join=_join,
    split=_split,
    claim=_claim,
    reader=_read,
    writer=_write,
)
