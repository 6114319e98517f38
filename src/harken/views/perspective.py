"""A perspective: what one agent, or several side by side, heard, did, received and said."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import TypedDict

from harken.events import Output, Response, Thinking, ToolCall

from .base import ACTION, HEARD, RECEIVED, SAID, SYSTEM, TEXT, THOUGHT, RecordEvents
from .event_lines import parts
from .index import Index

LABELS = {
    HEARD: "Heard",
    SAID: "Said",
    ACTION: "Action",
    RECEIVED: "Received",
    THOUGHT: "Thought",
    SYSTEM: "System",
}

_SHOWN = frozenset({*LABELS, TEXT})
_THINKING = frozenset({SAID, ACTION, THOUGHT})
"""Records of an assistant, which alone may think."""

UNREADABLE = "(a call that cannot be read)"


class Impression(TypedDict):
    """One thing as one agent lived it."""

    message_id: str
    agent_id: str
    kind: str
    """`heard`, `said`, `action`, `received`, `thought` or `system`."""
    content: str
    speaker: str | None
    """Who first said what was heard; None where that is not an agent of the session."""
    time: str | None


def perspective(index: Index, agent_ids: Iterable[str], *, system: bool = False) -> list[Impression]:
    """The transcripts of the agents and what else they told others, interleaved in file order; instructions only where
    asked for."""
    chosen = dict.fromkeys(agent_ids)
    transcripts: Sequence[list[int]] = [index.transcripts.get(agent_id, []) for agent_id in chosen]
    told = [_told(index, agent_id) for agent_id in chosen]
    return [
        moment
        for at in heapq.merge(*transcripts, *told)
        if index.kinds[at] in _SHOWN and (system or index.kinds[at] != SYSTEM)
        for moment in _moments(index, at)
    ]


def _told(index: Index, agent_id: str) -> list[int]:
    """What the agent told others of its own accord. A text that something brought about (a call, a verdict) is told by
    that, and one that the agent says in its transcript as well by the transcript."""
    return [at for at in index.pieces.get(agent_id, []) if at not in index.links and not _is_said(index, at, agent_id)]


def _is_said(index: Index, piece: int, agent_id: str) -> bool:
    said = (at for at in index.copies.get(piece, ()) if index.kinds[at] in (SAID, ACTION))
    return any(index.holders[at] == agent_id for at in said)


def _moments(index: Index, at: int) -> Iterator[Impression]:
    record, kind, root = index.records[at], index.kinds[at], index.root[at]
    kind = SAID if kind == TEXT else kind
    lines = [(THOUGHT, thought) for thought in thoughts(record)] if kind in _THINKING else []
    if kind == ACTION:
        lines += [(kind, action) for action in actions(record)]
    elif kind != THOUGHT:
        lines.append((kind, index.texts[at]))
    for label, content in lines:
        yield {  # as a display: calling the type takes twice as long, and a session has many of these
            "message_id": index.ids[at],
            "agent_id": index.holders[at] or "",
            "kind": label,
            "content": content,
            "speaker": index.authors[root] if root >= 0 else None,
            "time": index.time_text(at),
        }


def thoughts(record: RecordEvents) -> list[str]:
    """The reasoning that a record keeps; what is sealed has no words."""
    return [event.content for event in record if isinstance(event, Thinking) and event.content]


def actions(record: RecordEvents) -> list[str]:
    """What was said while acting, then each call as it was written: its name and its arguments, unread."""
    lines = []
    for event in record:
        if isinstance(event, Response) and event.content:
            lines.append(event.content)
        elif isinstance(event, ToolCall):
            words = (event.name, event.input.decode("utf-8", "replace"))
            lines.append(" ".join(filter(None, words)) or UNREADABLE)
        elif isinstance(event, Output):
            lines.append(UNREADABLE)
    return lines


def deeds(record: RecordEvents) -> list[str]:
    """`actions` for people: a call in a few words, as `Bash: pytest -q`."""
    told = (parts(event)[1] if isinstance(event, ToolCall) and event.name else "" for event in record)
    return [line for event, few in zip(record, told, strict=True) for line in ([few] if few else actions((event,)))]


def perspective_text(index: Index, agent_ids: Sequence[str]) -> str:
    """The perspective as lines `[Heard]:`, `[Said]:`, `[Action]:`, `[Received]:`; `[Thought]:` where the log has it.

    With several agents each line begins with the name. Further lines of a text are set in, so that no text can
    pass for a line of its own.
    """
    several = len(dict.fromkeys(agent_ids)) > 1
    lines = []
    for moment in perspective(index, agent_ids):
        who = f"{_one_line(index.name(moment['agent_id']))} " if several else ""
        lines.append(f"{who}[{LABELS[moment['kind']]}]: {_set_in(moment['content'])}")
    return "\n".join(lines)


def _one_line(name: str) -> str:
    return " ".join(name.split())


def _set_in(content: str) -> str:
    return "\n    ".join(content.splitlines()) if content else ""
