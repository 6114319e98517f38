"""Transcripts out of records: what an agent's context holds now, after every edit the log tells of.

Entries stay the lines they were; `messages` turns them into what a model is given, where two results for one call
are one. The log keeps both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from harken.events import TranscriptEdit
from harken.events.edits import SUMMARY, edit
from harken.formats.session_log import ENTRY, ROLES, LogRecord, as_id, content_text, continues, events_of
from harken.formats.session_log.lines import LogLine
from harken.formats.session_log.writing import ENVELOPE


def entries(records: Iterable[LogLine], agent_id: str) -> list[LogLine]:
    """The lines of one agent's transcript as it stands."""
    return entries_of_all(records, (agent_id,)).get(agent_id, [])


def entries_of_all(records: Iterable[LogLine], agent_ids: Iterable[str] | None = None) -> dict[str, list[LogLine]]:
    """The transcripts of several agents (or of all there are), read in one go."""
    wanted = None if agent_ids is None else set(agent_ids)
    found: dict[str, list[LogLine]] = {} if wanted is None else {agent_id: [] for agent_id in wanted}
    for data in records:
        kind = data.get("event_type")
        if kind != ENTRY and kind != "transcript_edit":
            continue
        agent_id = as_id(data.get("agent_id")) or ""
        if wanted is not None and agent_id not in wanted:
            continue
        transcript = found.setdefault(agent_id, [])
        if kind == ENTRY:
            _add(transcript, data)
        else:
            for event in events_of(data):
                if isinstance(event, TranscriptEdit):
                    edit(transcript, event, _summary(data))
    return found


def _add(transcript: list[LogLine], data: LogLine) -> None:
    role = data.get("role")
    if type(role) is not str or role not in ROLES:
        return  # nobody knows what it is, so no model is shown it
    if transcript and continues(transcript[-1], data):
        transcript[-1] = _continued(transcript[-1], data)
    else:
        transcript.append(data)


def _continued(before: LogLine, data: LogLine) -> LogLine:
    """A record that did not fit on one line, put together again."""
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
    results: dict[str, LogLine] = {}
    for data in transcript:
        message = {key: value for key, value in data.items() if key not in ENVELOPE}
        role = message.get("role")
        if role not in ROLES:
            continue
        if role == "tool":
            call_id = as_id(message.get("tool_call_id")) or ""
            if (first := results.get(call_id)) is not None:
                _merge(first, message)
                continue
            results[call_id] = message
        elif role == "assistant":
            results.clear()  # a later call may use the same id again
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
