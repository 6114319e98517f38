"""A row of a transcript, as a page shows it: words, a call with its result, a compaction, a notice.

Everything here is a pure function of the row's events. Texts are cut to a number of characters, and how many were left
out is said. What looks like no text (half a surrogate pair) is replaced; everything else stands as it was said.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote

import msgspec

from harken.analytics import transcript_rows as kinds
from harken.analytics.files import touched
from harken.analytics.transcript_rows import RowEvents
from harken.events import (
    AgentCreated,
    AgentTerminated,
    Error,
    Event,
    Image,
    Output,
    PieceOfText,
    Prompt,
    Recovery,
    Response,
    System,
    Thinking,
    ToolCall,
    ToolResult,
    TranscriptEdit,
)
from harken.events.base import clean, excerpt
from harken.events.tool_kinds import tool_kind
from harken.events.tools import tool_and_deed

from .documents import MEDIA_TYPES, picture_bytes
from .story import ASSISTANT, NAME, TASK, USER, happened, in_words, shown_name

MOST_PICTURES = 50
_DEEPEST = 12
"""What is nested deeper in arguments stands as a text."""
_KEY = 200


class ShownPicture(msgspec.Struct, frozen=True, kw_only=True):
    """A picture in a row."""

    media_type: str
    bytes: int
    url: str | None


class ShownCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call and what became of it."""

    id: str
    tool: str
    what: str
    category: str
    input: dict[str, Any]
    input_cut: int
    answered: bool
    failed: bool
    result: str
    result_cut: int
    took_ms: int | None
    session: str | None
    files: list[tuple[str, str]]


class ShownRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row."""

    n: int
    id: str
    index: int
    agent: str
    who: str
    time: int | None
    kind: str
    text: str = ""
    cut: int = 0
    title: str = ""
    call: ShownCall | None = None
    pictures: list[ShownPicture] = []


class RowSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a row is shown with, beside its events."""

    session: str
    folder: str = ""
    """The folder that was worked in: paths stand as from there."""
    agent: str = ""
    """The agent whose session it is; empty for the session's own."""
    names: Callable[[str], str] = str
    """What an agent is called."""
    spawned: Callable[[ToolCall], str | None] = lambda _: None
    """The session of the sub-agent that a call made or speaks to."""
    most: int = 8000
    """Characters of a text."""


def shown_row(number: int, row: RowEvents, how: RowSettings) -> ShownRow:
    """The row of that number."""
    event = row.event
    text, title = _text(row), _title(row, how)
    shown, cut = clipped(text, how.most)
    return ShownRow(
        n=number,
        id=clean(event.message_id),
        index=event.index,
        agent=clean(event.agent_id),
        who=_who(row, how),
        time=event.time,
        kind=row.kind,
        text=shown,
        cut=cut,
        title=title,
        call=_call(event, row.joined, how) if isinstance(event, ToolCall) else None,
        pictures=_pictures(row, how),
    )


def unread_row(number: int, why: str) -> ShownRow:
    """A row that stands where nothing can be read."""
    return ShownRow(
        n=number,
        id="",
        index=0,
        agent="",
        who="",
        time=None,
        kind=kinds.UNREAD,
        text=clean(why),
        title="Cannot be read",
    )


def clipped(text: str, most: int) -> tuple[str, int]:
    """The beginning of a text, and how many characters are left out."""
    # The cut comes first: a text may be very long.
    return clean(text[:most]), max(0, len(text) - most)


# -- who says what -----------------------------------------------------------------------------------------------------


def _who(row: RowEvents, how: RowSettings) -> str:
    event = row.event
    name = _name(event.agent_id, how)
    if not isinstance(event, Prompt) or row.kind == kinds.COMPACTION:
        return name
    if event.source != "injected":
        return excerpt(clean(event.hook), NAME) or USER
    return TASK if row.kind == kinds.PROMPT else name


def _name(agent: str, how: RowSettings) -> str:
    return ASSISTANT if not agent else shown_name(agent, clean(how.names(agent)))


def _text(row: RowEvents) -> str:
    event = row.joined if row.kind == kinds.COMPACTION and isinstance(row.joined, Prompt) else row.event
    match event:
        case Prompt() | Response() | PieceOfText() | Thinking() | TranscriptEdit(action="compact"):
            return event.content
        case System() | Error():
            return event.message
        case ToolResult():
            return event.output
        case Output():
            return event.raw.decode("utf-8", "replace")
        case Recovery():
            return event.reason
    return ""


def _title(row: RowEvents, how: RowSettings) -> str:
    event = row.event
    if row.kind == kinds.COMPACTION:
        return "Compaction"
    match event:
        case Prompt() if row.kind == kinds.INJECTED:
            if event.substance is not None:
                return f"{_name(event.agent_id, how)} heard it"
            return f"Injected: {in_words(clean(event.origin)) or 'text'}"
        case Thinking():
            return "Reasoning"
        case ToolResult():
            return f"{'Failed result' if event.is_error else 'Result'} {excerpt(clean(event.name), NAME)}".rstrip()
        case System():
            return "Instructions" if row.kind == kinds.INSTRUCTED else f"Notice: {in_words(clean(event.subtype))}"
        case Output():
            return f"A record that could not be read: {excerpt(clean(event.why), 200)}"
        case Recovery():
            return "The log was torn here"
        case AgentCreated() | AgentTerminated() | TranscriptEdit():
            return happened(event, _name(event.agent_id, how))
    return ""


# -- calls -------------------------------------------------------------------------------------------------------------


def _call(call: ToolCall, joined: Event | None, how: RowSettings) -> ShownCall:
    result = joined if isinstance(joined, ToolResult) else None
    tool, what = tool_and_deed(call, how.folder)
    given, left_out = shown_input(call.input, how.most)
    output, cut = clipped(result.output, how.most) if result else ("", 0)
    took = None
    if result is not None and call.time is not None and result.time is not None:
        took = max(0, result.time - call.time) // 1000
    return ShownCall(
        id=clean(call.id),
        tool=excerpt(tool, NAME),
        what=what,
        category=tool_kind(call.name),
        input=given,
        input_cut=left_out,
        answered=result is not None,
        failed=result is not None and result.is_error,
        result=output,
        result_cut=cut,
        took_ms=took,
        session=how.spawned(call) if call.id else None,
        files=touched(call)[:20],
    )


def shown_input(data: bytes, most: int) -> tuple[dict[str, Any], int]:
    """What a tool was given, and how many characters of it are left out. What is no object stands without a name."""
    try:
        given = json.loads(data) if data else {}
    except (ValueError, RecursionError):
        given = data.decode("utf-8", "replace")
    clip = _Clip(most)
    value = clip.value(given if isinstance(given, dict) else {"": given}, 0)
    return value, clip.left_out


class _Clip:
    """Copies a value of JSON as far as a number of characters goes; what a value is stays as it was."""

    def __init__(self, most: int) -> None:
        self._left = most
        self.left_out = 0

    def value(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict | list) and depth >= _DEEPEST:
            return self._text(_dumped(value))
        if isinstance(value, dict):
            return dict(self._items(value.items(), depth))
        if isinstance(value, list):
            return [inner for _, inner in self._items((("", one) for one in value), depth)]
        # Beyond these no program that knows only floating numbers counts; infinities are no JSON.
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return value if not is_number or abs(value) < 1 << 53 else self._text(str(value)[:_KEY])

    def _items(self, items: Iterable[tuple[str, Any]], depth: int) -> Iterable[tuple[str, Any]]:
        for name, inner in items:
            if self._left <= 0:
                self.left_out += len(name) + (len(inner) if isinstance(inner, str) else len(_dumped(inner)))
                continue
            self._left -= len(name) + 2
            yield clean(name[:_KEY]), self.value(inner, depth + 1)

    def _text(self, text: str) -> str:
        shown, cut = clipped(text, max(self._left, 0))
        self._left -= len(shown)
        self.left_out += cut
        return shown


def _dumped(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        return "…"


# -- pictures ----------------------------------------------------------------------------------------------------------


def _pictures(row: RowEvents, how: RowSettings) -> list[ShownPicture]:
    found: list[ShownPicture] = []
    for event in (row.event, row.joined):
        for number, image in enumerate(pictures_of(event) if event is not None else ()):
            if len(found) < MOST_PICTURES and event is not None:
                found.append(_picture(image, event, number, how))
    return found


def pictures_of(event: Event) -> tuple[Image, ...]:
    """The pictures of an event, in the order in which they are numbered."""
    return event.images if isinstance(event, Prompt | ToolResult) else ()


def _picture(image: Image, event: Event, number: int, how: RowSettings) -> ShownPicture:
    known = picture_bytes(image)
    if known is None:
        return ShownPicture(media_type=clean(image.media_type)[:_KEY], bytes=len(image.data) * 3 // 4, url=None)
    name = "/".join(quote(clean(part), safe="") for part in (how.session, event.message_id))
    url = f"/api/v1/pictures/{name}/{event.index}/{number}"
    return ShownPicture(media_type=MEDIA_TYPES[known[0]], bytes=len(known[1]), url=url)
