"""What a compaction dropped, what it kept, and what of it its summary still names. Pure folds over events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from harken.events import Event, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.events.base import clean
from harken.events.edits import SUMMARIES
from harken.events.tools import doing

from .files import touched

KINDS = ("prompt", "injected", "answer", "thinking", "call", "result")
ROW = 4
"""Words in a row that tell that a text is quoted."""
LOOKED_AT = 200
"""Words at the beginning of a text that are looked for."""
SHARE = 0.5
"""How many of its rows of words a summary has to have to name a text."""
_WORDS = re.compile(r"\w+")


class FoldedThing(msgspec.Struct, frozen=True, kw_only=True):
    """Something that stood in the context before a compaction."""

    kind: str
    """One of `KINDS`."""
    record: str
    event: int
    time: int | None
    tool: str
    text: str
    kept: bool
    """Whether it stands in the context behind it as it was."""
    named: bool
    """Whether the summary has its words, or most of them."""


class NamedWords:
    """The words of a summary, to be asked whether they name something."""

    def __init__(self, text: str) -> None:
        self._text = text.casefold()
        self._rows = set(_rows(_WORDS.findall(self._text)))

    def names(self, text: str) -> bool:
        """Whether the summary has a text: as it is, or most of its words in their order."""
        words = _WORDS.findall(text[: LOOKED_AT * 20].casefold())[:LOOKED_AT]
        if len(words) < ROW:
            plain = " ".join(text.casefold().split())
            return len(plain) > 2 and plain in self._text
        rows = _rows(words)
        return sum(row in self._rows for row in rows) >= SHARE * len(rows)

    def names_file(self, path: str) -> bool:
        """Whether it names a file, by its path or by its name alone."""
        name = path.rstrip("/").rpartition("/")[2].casefold()
        return bool(name) and name in self._text


def _rows(words: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(words[at : at + ROW]) for at in range(len(words) - ROW + 1)]


def is_summary(event: Event) -> bool:
    """Whether it stands in the place of what was folded."""
    return isinstance(event, Prompt) and event.origin in SUMMARIES


def things(before: Iterable[Event], after: Iterable[Event], summary: NamedWords) -> list[FoldedThing]:
    """Everything that stood in the context before, in its order."""
    held = list(before)
    known = {_key(event) for event in held}
    standing = [event for event in after if not is_summary(event)]
    kept = {_key(event) for event in standing}
    # Codex writes what it keeps down again, in the record of the compaction.
    repeated = {(_kind(event), _text(event)) for event in standing if _key(event) not in known}
    found = []
    for event in held:
        if (kind := _kind(event)) and not is_summary(event):
            text = _text(event)
            found.append(
                FoldedThing(
                    kind=kind,
                    record=event.message_id,
                    event=event.index,
                    time=event.time,
                    tool=clean(event.name) if isinstance(event, ToolCall | ToolResult) else "",
                    text=text,
                    kept=_key(event) in kept or (kind, text) in repeated,
                    named=kind not in ("thinking", "result") and summary.names(text),
                )
            )
    return found


def _key(event: Event) -> object:
    """Two places of one chain call a record by the same name; what has none is told by what it says."""
    return (event.message_id, event.index) if event.message_id else (_kind(event), _text(event))


def _kind(event: Event) -> str:
    match event:
        case Prompt():
            return "injected" if event.source == "injected" else "prompt"
        case Response():
            return "answer" if event.content.strip() else ""
        case Thinking():
            return "thinking"
        case ToolCall():
            return "call"
        case ToolResult():
            return "result"
    return ""


def _text(event: Event) -> str:
    match event:
        case ToolCall():
            return doing(event)
        case ToolResult():
            return clean(event.output)
        case Prompt() | Response() | Thinking():
            return clean(event.content)
    return ""


def files_in(events: Iterable[Event]) -> list[str]:
    """The files that calls name, each once, in their order."""
    paths = (path for event in events if isinstance(event, ToolCall) for path, _ in touched(event))
    return list(dict.fromkeys(paths))
