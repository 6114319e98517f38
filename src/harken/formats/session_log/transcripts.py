"""The agents of a log: the main one's conversation as it stands, and the lines of every other one.

A log is read like a file with side chains. The root agent is the main line; what the others heard and said stands
between its lines, is left out of its context, and makes a chain of its own for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from harken.events import TranscriptEdit
from harken.events.edits import EditedEntries, summary_prompt
from harken.events.prints import COMPACT_SUMMARY

from .lines import LogLine, LogRecord, read_records
from .reading import ENTRY, ROLES, as_id, events_of
from .scan import agent_of, is_told, main_agent, told_records
from .writing import encode, record_of

_SAID = (ENTRY, "output")
"""What a message is made of: its entries, and what it says that no entry has a place for."""


def context(data: bytes) -> bytes:
    """The entries of the main agent's transcript as they stand after every edit, verbatim; what was folded away is
    one entry with the summary. A summary that only its provider can open is no entry, which edits would count: it goes
    with the entry before it, or with the next one where none stands."""
    main: str | None = None
    entries: EditedEntries[tuple[LogLine, list[bytes]]] = EditedEntries()
    ahead: list[bytes] = []
    for record, line in _objects(read_records((data,))):
        if main is None:  # a context may begin with a sealed summary
            main = agent_of(line) if _is_sealed(line) else main_agent(line)
        if main is None or agent_of(line) != main:
            continue
        if line.get("event_type") in _SAID:
            if _add(entries, line, [*ahead, record.raw]):
                ahead = []
        elif _is_sealed(line):
            (entries.last[1] if entries.last is not None else ahead).append(record.raw)
        elif line.get("event_type") == "transcript_edit":
            for event in events_of(line):
                if isinstance(event, TranscriptEdit):
                    summary = record_of([summary_prompt(event.content, like=event)])
                    entries.edit(event, (summary, [encode(summary)[:-1]]))
    return b"".join(raw + b"\n" for raws in (*(raws for _, raws in entries), ahead) for raw in raws)


def _add(entries: EditedEntries[tuple[LogLine, list[bytes]]], line: LogLine, raws: list[bytes]) -> bool:
    """Put a line with the entry that it belongs to; whether there is one."""
    last = entries.last
    if last is not None and continues(last[0], line):
        last[1].extend(raws)
        return True
    if isinstance(role := line.get("role"), str) and role in ROLES and line.get("event_type") == ENTRY:
        entries.add((line, raws))
        return True
    return False


def _is_sealed(line: LogLine) -> bool:
    """Whether the provider made a summary of the conversation that only it can open."""
    if line.get("event_type") != "system" or line.get("subtype") != COMPACT_SUMMARY:
        return False
    item = line.get("metadata")
    return isinstance(item, dict) and bool(item.get("encrypted_content")) and not line.get("message")


def continues(last: LogLine, line: LogLine) -> bool:
    """`harken.events.edits.continues`, asked of lines."""
    index = line.get("index")
    return type(index) is int and index > 0 and as_id(line.get("message_id")) == as_id(last.get("message_id"))


def side_chains(data: bytes) -> Mapping[str, bytes]:
    """The lines of each agent but the main one, verbatim and in order, by agent id."""
    agents: dict[str, list[bytes]] = {}
    main: str | None = None
    for record, _, ended in told_records(data):
        if record.data is None:
            continue
        main = main_agent(record.data) if main is None else main
        if main is not None and (agent := owner(record.data)) and agent != main:
            agents.setdefault(agent, []).append(record.raw + b"\n" if ended else record.raw)
    return {agent: b"".join(lines) for agent, lines in agents.items()}


def owner(line: LogLine) -> str:
    """The agent in whose own chain a line stands; empty where it is in nobody's."""
    return agent_of(line) if is_told(line) else ""


def _objects(records: Iterable[LogRecord]) -> Iterator[tuple[LogRecord, LogLine]]:
    return ((record, record.data) for record in records if record.data is not None)
