"""Transcripts out of records: what an agent's context holds now, after every edit the log tells of.

Entries stay the lines they were; `messages` turns them into what a model is given, where two results for one call
are one. The log keeps both.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

from harken.errors import NotFound
from harken.events import Event, TranscriptEdit
from harken.events.edits import SUMMARY, EditedEntries
from harken.formats.session_log import (
    ENTRY,
    ROLES,
    Group,
    LogRecord,
    as_id,
    content_text,
    continues,
    events_of,
    events_of_record,
    origin_of,
    read_about,
    read_records,
)
from harken.formats.session_log.lines import LogLine, SeveralMessages, messages_of
from harken.formats.session_log.writing import ENVELOPE

from .base import LogProblem, OpenCall
from .registry import Registry

GAP = 64 * 1024
"""Stretches of the file that are closer than this are read as one."""
_PLAIN_NAME = re.compile(r"[^\x00-\x1f\x7f\"/\\]+")
"""A name that stands in JSON as it is, unless somebody writes escapes (`\\u`) for its letters."""


def _owners(group: Group) -> set[str]:
    """Whose lines these are; lines that have to be looked at more closely may be anybody's."""
    try:
        names = set(map(itemgetter("agent_id"), group.plain or ()))
    except TypeError:  # an agent that is a list, say
        return {""}
    return names if names and {str}.issuperset(map(type, names)) else {""}


def _whole_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces that end where a line does; a torn line comes last."""
    rest = b""
    for piece in pieces:
        end = piece.rfind(b"\n") + 1
        if end:
            yield rest + piece[:end]
            rest = piece[end:]
        else:
            rest += piece
    if rest:
        yield rest


class LogReader(ABC):
    """What can be read from the file of a session at any time; it is never kept in memory. `Session` says how the file
    is opened."""

    path: Path
    registry: Registry
    _batched: list[LogLine]
    _places: dict[str, array[int]]
    """Where in the file each agent's lines are: where each stretch of whole lines begins and ends, enough to pass over
    the rest. Those of the name `""` may be anybody's."""
    _seen: int
    """What stands behind here in the file was not there when it was loaded."""

    @abstractmethod
    def _chunks(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The bytes of the file between two places, in pieces."""

    @property
    @abstractmethod
    def readonly(self) -> bool:
        """Whether this session cannot be written."""

    @abstractmethod
    def close(self) -> None:
        """Let others write."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Session({str(self.path)!r}, agents={len(self.registry.agents)}, records={self.registry.records})"

    @property
    def batched(self) -> list[LogLine]:
        """The lines of an open batch so far; the same list as long as the batch is open."""
        return self._batched

    @property
    def report(self) -> list[LogProblem]:
        """What was odd about the file when it was loaded, in the order of the file."""
        return self.registry.report

    @property
    def open_calls(self) -> list[OpenCall]:
        """Tool calls that still wait for a result, oldest first."""
        return self.registry.open_calls

    def scan(self) -> Iterator[LogRecord]:
        """Every record of the file as it is now, oldest first, with bounded memory."""
        return read_records(self._chunks())

    def appended(self, start: int) -> Iterator[bytes]:
        """The whole lines of the file from a byte on, in pieces that end where a line does; a torn one comes last."""
        return _whole_lines(self._chunks(start))

    def records(self) -> Iterator[LogLine]:
        """Every line that could be read, with the keys of v2; lines of an open batch come last."""
        yield from readable(self.scan())
        yield from list(self._batched)

    def own_records(self) -> Iterator[LogLine]:
        """As `records`, without the conversation that the log goes on from where Harken began it with one."""
        carried = 0
        for record in self.scan():
            if record.data is not None and record.offset >= carried:
                yield record.data
            if record.data is not None and not record.offset and (origin := origin_of(record.data, record.length + 1)):
                carried = origin.prefix
        yield from list(self._batched)

    def records_of(self, agent_ids: Iterable[str]) -> Iterator[LogLine]:
        """The lines of these agents, as `records` gives them; what lies between is not read, where that is known."""
        wanted = set(agent_ids)
        plain = all(_PLAIN_NAME.fullmatch(name) for name in wanted)
        names = [name.encode("utf-8", "replace") for name in wanted] if plain else [b""]
        stretches: list[tuple[int, int | None]] = [*_stretches(self._places, wanted)]
        if self.readonly:  # somebody else may have written on, and a line that was torn may be whole now
            seen = self._seen
            stretches = [(start, min(end or 0, seen)) for start, end in stretches if start < seen] + [(seen, None)]
        for start, end in stretches:
            for data in readable(read_about(self._chunks(start, end), names)):
                if (as_id(data.get("agent_id")) or "") in wanted:
                    yield data
        yield from [data for data in self._batched if data["agent_id"] in wanted]

    def _noting(self, groups: Iterable[Group]) -> Iterator[Group]:
        """The same groups; whose lines are where is noted on the way."""
        for group in groups:
            end = group.offset + sum(map(len, group.raws)) + len(group.raws) + group.longer
            for name in _owners(group):
                place = self._places.setdefault(name, array("Q"))
                if place and group.offset - place[-1] < GAP:
                    place[-1] = end
                else:
                    place.extend((group.offset, end))
            self._seen = end if group.ended else self._seen
            yield group

    def line(self, message_id: str) -> LogLine:
        """The line of a message as it was logged, with the keys of v2; the first one, where it has several."""
        for data in self.records():
            if as_id(data.get("message_id")) == message_id:
                return data
        raise NotFound(f"no message {message_id!r} in {self.path}", hint="`session.registry.messages` has every id")

    def events(self) -> Iterator[Event]:
        """Every event, oldest first; what cannot be read is among them as `Output`."""
        for record in self.scan():
            yield from events_of_record(record)
        for data in list(self._batched):
            yield from events_of(data)

    def entries(self, agent_id: str) -> list[LogLine]:
        """The lines of an agent's transcript as it stands after every edit, ids and links included, one for each entry;
        `messages_of` gives the messages of one that has several (results, and words beside them)."""
        return entries(self.records_of([agent_id]), agent_id)

    def transcript(self, agent_id: str) -> list[LogLine]:
        """The messages of an agent as a model is given them; several results for one call are one."""
        return messages(self.entries(agent_id))

    def transcripts(self, agent_ids: Iterable[str] | None = None) -> dict[str, list[LogLine]]:
        """The transcripts of several agents, or of all, for one reading of the file."""
        found = entries_of_all(self.records(), agent_ids)
        return {agent_id: messages(lines) for agent_id, lines in found.items()}


def _stretches(places: dict[str, array[int]], names: Iterable[str]) -> list[tuple[int, int]]:
    """Where lines of these agents may be, in the order of the file."""
    found: list[tuple[int, int]] = []
    wanted = [places[name] for name in {*names, ""} if name in places]
    for start, end in sorted(pair for place in wanted for pair in zip(place[::2], place[1::2], strict=True)):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def entries(records: Iterable[LogLine], agent_id: str) -> list[LogLine]:
    """The lines of one agent's transcript as it stands."""
    return entries_of_all(records, (agent_id,)).get(agent_id, [])


def entries_of_all(records: Iterable[LogLine], agent_ids: Iterable[str] | None = None) -> dict[str, list[LogLine]]:
    """The transcripts of several agents (or of all there are), read in one go."""
    wanted = None if agent_ids is None else set(agent_ids)
    found: dict[str, EditedEntries[LogLine]] = {agent_id: EditedEntries() for agent_id in wanted or ()}
    for data in records:
        kind = data.get("event_type")
        if kind != ENTRY and kind != "transcript_edit":
            continue
        agent_id = as_id(data.get("agent_id")) or ""
        if wanted is not None and agent_id not in wanted:
            continue
        transcript = found.get(agent_id)
        if transcript is None:
            transcript = found[agent_id] = EditedEntries()
        if kind == ENTRY:
            _add(transcript, data)
        else:
            for event in events_of(data):
                if isinstance(event, TranscriptEdit):
                    transcript.edit(event, _summary(data))
    return {agent_id: list(transcript) for agent_id, transcript in found.items()}


def _add(transcript: EditedEntries[LogLine], data: LogLine) -> None:
    role = data.get("role")
    if type(role) is not str or role not in ROLES:
        return  # nobody knows what it is, so no model is shown it
    last = transcript.last
    if last is not None and continues(last, data):
        transcript.replace_last(_continued(last, data))
    else:
        transcript.add(data)


def _continued(before: LogLine, data: LogLine) -> LogLine:
    """A record that did not fit on one line, put together again. What an assistant said is one message; any other line
    is a message of its own."""
    if not before.get("role") == data["role"] == "assistant" or isinstance(before, SeveralMessages):
        return SeveralMessages.of(before, *messages_of(before)[1:], data)
    joined = {**before}
    for key in ("thinking", "tool_calls"):
        if data.get(key) is not None:
            joined[key] = _as_list(before.get(key)) + _as_list(data[key])
    if data.get("content") is not None:
        texts = [content_text(text) for text in (before.get("content"), data["content"]) if text is not None]
        joined["content"] = "".join(texts)
    return joined


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _summary(data: LogLine) -> LogLine:
    """The entry that a compaction leaves behind."""
    about = {"event_type": ENTRY, "role": "user", "source": "injected", "origin": SUMMARY}
    return {"content": "", **{key: value for key, value in data.items() if key not in _OF_AN_EDIT}, **about}


_OF_AN_EDIT = frozenset({"action", "n", "start"})


def messages(transcript: Iterable[LogLine]) -> list[LogLine]:
    """What a model is given: the messages alone, and one result for each call."""
    found: list[LogLine] = []
    results: dict[str, list[LogLine]] = {}
    calls: Counter[str] = Counter()
    for data in (message for entry in transcript for message in messages_of(entry)):
        message = {key: value for key, value in data.items() if key not in ENVELOPE}
        role = message.get("role")
        if role not in ROLES:
            continue
        if role == "tool":
            call_id = as_id(message.get("tool_call_id")) or ""
            answers = results.setdefault(call_id, [])
            if answers and len(answers) >= calls[call_id]:
                _merge(answers[-1], message)
                continue
            answers.append(message)
        elif role == "assistant":
            results.clear()  # a later call may use the same id again
            made = message.get("tool_calls")
            calls = Counter(
                as_id(call.get("id")) or ""
                for call in (made if isinstance(made, list) else ())
                if isinstance(call, dict)
            )
        found.append(message)
    return found


def _merge(first: LogLine, second: LogLine) -> None:
    texts = (content_text(first.get("content")), content_text(second.get("content")))
    first["content"] = "\n\n".join(text for text in texts if text)
    if second.get("is_error") is True:
        first["is_error"] = True


def readable(records: Iterable[LogRecord]) -> Iterator[LogLine]:
    """The data of the records that have some."""
    return (record.data for record in records if record.data is not None)
