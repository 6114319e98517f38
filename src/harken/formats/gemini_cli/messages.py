"""One message of a Gemini CLI session, as events: in a line of its own, in a list, or in the old document.

A message may be written several times, each time with more in it: `Told` remembers what was told of the present one, so
that a repetition tells only what is new. The results of its calls come twice, with the calls and as a user's message;
they are told once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from harken.clock import parse_instant
from harken.events import Error, Event, Image, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.base import clean, figure, join_parts
from harken.events.places import ATTACHED as CAME_ALONG
from harken.formats.kit.gemini import media_of, metric_of, part_events
from harken.formats.kit.jsonl import Record, encode

from .records import MODEL, NOTES, USER, text_of, words_of

SESSION_CONTEXT, SUMMARY, HOOK, EDITOR, AGENT = "session_context", "compact_summary", "hook", "ide_context", "agent"
REFERENCED = CAME_ALONG + "referenced_files"
NOTICES = frozenset({SESSION_CONTEXT, EDITOR})
"""Kinds of prompts by which Gemini CLI tells its model about its surroundings."""
_OPENINGS = (
    ("<session_context>", SESSION_CONTEXT),
    ("This is the Gemini CLI. We are setting up the context for our chat.", SESSION_CONTEXT),
    ("<hook_context>", HOOK),
    ("<state_snapshot>", SUMMARY),
    ("Here is the user's editor context", EDITOR),
    ("Here is a summary of changes in the user's editor context", EDITOR),
    ("System: Please continue.", "continue"),
    ("System: Potential loop detected.", "loop"),
)
_BEGINNINGS = tuple(opening for opening, _ in _OPENINGS)
GUARD = "\u200b"
"""A part of its own that is put before words which the program would pass over: those that begin like a command."""
_MEDIA = ("inlineData", "fileData")
ATTACHED = "\n--- Content from referenced files ---"
"""What stands between the words of a prompt and the files that they name."""
_TOKENS = ("input", "cached", "output", "thoughts", "tool", "total")
"""In the order of `metric_of`."""


class Told:
    """What was told of the model's present message, and which of its calls are answered."""

    __slots__ = ("answered", "calls", "count", "id", "texts", "thoughts", "tokens")

    def __init__(self, message_id: str = "") -> None:
        self.id = message_id
        self.count = 0
        """How many events of it there are: their numbers go on."""
        self.thoughts: list[str] = []
        self.texts: list[str] = []
        self.calls: set[str] = set()
        self.answered: set[str] = set()
        self.tokens: tuple[Any, ...] | None = None
        """What was used, in the order of `_TOKENS`."""


def origin_of(text: str) -> str:
    """What kind of injected text it is; empty for one that a person may have written."""
    head = text[:200].lstrip()
    if not head.startswith(_BEGINNINGS):
        return ""
    return next(origin for opening, origin in _OPENINGS if head.startswith(opening))


def message_events(message: Record, told: Told, *, agent: bool = False, origin: str = "") -> Iterable[Event]:
    """What a message says that was not told yet, without ids and times. In a sub-agent's file the user is its parent.
    A given `origin` says what a user's message is."""
    kind = message.get("type")
    if kind == USER:
        return _heard(message, told, agent, origin)
    if kind == MODEL:
        return _said(message, told)
    if kind == "error":
        return [Error(message=clean(words_of(message.get("content"))))]
    if kind in NOTES:
        return [System(subtype=str(kind), message=clean(words_of(message.get("content"))))]
    return [Output(raw=encode(message), why=f"unknown message {clean(str(kind))[:80]!r}")]


def time_of(message: Record) -> int | None:
    """When it was written."""
    return parse_instant(message.get("timestamp"))


# -- what the model heard ----------------------------------------------------------------------------------------------


def parts_of(content: object) -> list[Any]:
    """A content as a list of parts."""
    found = content if isinstance(content, list) else [] if content is None else [content]
    return [{"text": part} if isinstance(part, str) else part for part in found]


def is_result(message: Record) -> bool:
    """Whether a user's message brings answers of tools."""
    parts = message.get("content")
    return isinstance(parts, list) and any(
        isinstance(part, dict) and isinstance(part.get("functionResponse"), dict) for part in parts
    )


def _heard(message: Record, told: Told, agent: bool, origin: str) -> Iterator[Event]:
    parts = parts_of(message.get("content"))
    if parts and isinstance(parts[0], dict) and parts[0].get("text") == GUARD:
        parts = parts[1:]
    typed = _typed(message.get("displayContent"), parts)
    waiting: list[str | Image] = []
    answer: list[Any] = []
    """An answer of a tool, and the media that came with it."""
    for place, part in enumerate(parts):
        if place == typed and waiting:
            yield _prompt(waiting, agent, origin)
            waiting, origin = [], REFERENCED
        kind = _kind_of(part)
        if kind in _MEDIA and answer:
            answer.append(part)
            continue
        yield from _unsaid_result(answer, told)
        answer = []
        if kind == "text":
            waiting.append(clean(part["text"]))
        elif kind in _MEDIA:
            waiting.append(media_of(part[kind]))
        else:
            if waiting:
                yield _prompt(waiting, agent, origin)
                waiting = []
            if kind:
                answer = [part]
            else:
                yield from part_events(part, "")
    yield from _unsaid_result(answer, told)
    if waiting or not parts:
        yield _prompt(waiting, agent, origin)


def _kind_of(part: Any) -> str:
    if not isinstance(part, dict):
        return ""
    if isinstance(part.get("text"), str):
        return "text"
    return next((kind for kind in (*_MEDIA, "functionResponse") if isinstance(part.get(kind), dict)), "")


def _typed(shown: object, parts: list[Any]) -> int:
    """How many parts of a message were typed, where the program put others behind them; else 0."""
    display = parts_of(shown)
    if 0 < len(display) < len(parts) and display == parts[: len(display)]:
        return len(display)
    marks = (at for at, part in enumerate(parts) if isinstance(part, dict) and part.get("text") == ATTACHED)
    return next(marks, 0)


def _prompt(said: list[str | Image], agent: bool, origin: str) -> Prompt:
    content, images = join_parts(said)
    origin = origin or origin_of(content) or (AGENT if agent else "")
    return Prompt(content=content, images=images, source="injected" if origin else "user", origin=origin)


def _unsaid_result(parts: list[Any], told: Told) -> Iterator[Event]:
    if not parts:
        return
    response = parts[0]["functionResponse"]
    call = provider_id(response)
    if not call or call not in told.answered:
        told.answered.add(call)
        yield _result(parts, call, clean(text_of(response.get("name"))), failed=False)


def _result(parts: list[Any], call: str, name: str, *, failed: bool) -> ToolResult:
    """The answer of a tool: words in `output`, or in `error` where it failed, and media beside them."""
    words: list[str] = []
    images: list[Image] = []
    for part in parts:
        if not isinstance(part, dict):
            words.append(clean(part) if isinstance(part, str) else encode(part).decode())
            continue
        response = part.get("functionResponse")
        if isinstance(response, dict):
            text, is_error = answer_of(response.get("response"))
            words.append(text)
            failed = failed or is_error
            inside = response.get("parts")
            media = [one for one in inside if isinstance(one, dict)] if isinstance(inside, list) else []
        else:
            media = [part]
            if isinstance(part.get("text"), str):
                words.append(clean(part["text"]))
        images += [media_of(one[kind]) for one in media for kind in _MEDIA if isinstance(one.get(kind), dict)]
    return ToolResult(id=call, name=name, output="\n".join(words), is_error=failed, images=tuple(images))


def answer_of(response: Any) -> tuple[str, bool]:
    """The words of a response, and whether they tell of a failure; one of another shape as JSON."""
    if isinstance(response, str):
        return clean(response), False
    if isinstance(response, dict) and len(response) == 1:
        for key in ("output", "error"):
            if isinstance(text := response.get(key), str):
                return clean(text), key == "error"
    return encode({} if response is None else response).decode(), isinstance(response, dict) and set(response) == {
        "error"
    }


# -- what the model said -----------------------------------------------------------------------------------------------


def thought_text(thought: Any) -> str:
    """A thought as the program sends it to the model again."""
    if not isinstance(thought, dict):
        return clean(thought) if isinstance(thought, str) else ""
    subject, text = clean(text_of(thought.get("subject"))), clean(text_of(thought.get("description")))
    return f"**{subject}** {text}" if subject else text


def calls_of(message: Record) -> list[Record]:
    """The calls of a message, as far as they are objects."""
    calls = message.get("toolCalls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def provider_id(call: Record) -> str:
    """The id of a call or of its answer as the provider knows it: the program puts the tool's name before it, and takes
    it away again when it sends it."""
    return plain_id(text_of(call.get("id")), text_of(call.get("name")))


def plain_id(given: str, name: str) -> str:
    """The same of an id and the name of its tool."""
    return clean(given.removeprefix(f"{name}__"))


def call_id(message: Record, call: Record, place: int) -> str:
    """The id of a call; one that has none is named after its message."""
    return provider_id(call) or f"{clean(text_of(message.get('id')))}#{place}"


def _said(message: Record, told: Told) -> Iterator[Event]:
    model = clean(text_of(message.get("model")))
    content, own = message.get("content"), message.get("thoughts")
    thoughts = list(filter(None, map(thought_text, own))) if own and isinstance(own, list) else []
    if isinstance(content, str):
        if thoughts:
            yield from _new_thoughts(thoughts, told)
        if content:
            yield from _new_text(0, Response(content=clean(content), model=model), told)
    else:
        parts = parts_of(content)
        if not any(isinstance(part, dict) and part.get("thought") is True for part in parts):
            yield from _new_thoughts(thoughts, told)
        yield from _new_parts(parts, model, told)
    calls = [(call_id(message, call, place), call) for place, call in enumerate(calls_of(message))]
    for name, call in calls:
        if name not in told.calls:
            told.calls.add(name)
            yield ToolCall(id=name, name=clean(text_of(call.get("name"))), input=encode(call.get("args", {})))
    usage = message.get("tokens")
    if isinstance(usage, dict) and (figures := tuple(map(usage.get, _TOKENS))) != told.tokens:
        told.tokens = figures
        metric = metric_of(list(map(figure, figures)), model=model, api_id=clean(text_of(message.get("id"))))
        if metric is not None:
            yield metric
    for name, call in calls:
        if name not in told.answered and (result := _own_result(call, name)) is not None:
            told.answered.add(name)
            yield result


def _own_result(call: Record, name: str) -> ToolResult | None:
    found = call.get("result")
    if found in (None, "", []):
        return None
    parts = found if isinstance(found, list) else [found]
    failed = call.get("status") in ("error", "cancelled")
    return _result(parts, name, clean(text_of(call.get("name"))), failed=failed)


def _new_thoughts(thoughts: list[str], told: Told) -> Iterator[Event]:
    for place, text in enumerate(thoughts):
        if told.thoughts[place : place + 1] != [text]:
            yield Thinking(content=text)
    told.thoughts = thoughts or told.thoughts


def _new_text(place: int, response: Response, told: Told) -> Iterator[Event]:
    if told.texts[place : place + 1] != [response.content]:
        told.texts[place : place + 1] = [response.content]
        yield response


def _new_parts(parts: list[Any], model: str, told: Told) -> Iterator[Event]:
    """What parts of the model's content say that was not told yet."""
    thoughts: list[str] = []
    texts = 0
    for part in parts:
        for event in part_events(_with_provider_id(part), model):
            if isinstance(event, Thinking):
                thoughts.append(event.content)
                if told.thoughts[len(thoughts) - 1 : len(thoughts)] == [event.content]:
                    continue
            elif isinstance(event, Response):
                if event.content:
                    yield from _new_text(texts, event, told)
                    texts += 1
                continue
            elif isinstance(event, ToolCall):
                if event.id and event.id in told.calls:
                    continue
                told.calls.add(event.id)
            elif isinstance(event, ToolResult):
                if event.id in told.answered:
                    continue
                told.answered.add(event.id)
            yield event
    told.thoughts = thoughts or told.thoughts


def _with_provider_id(part: Any) -> Any:
    call = part.get("functionCall") if isinstance(part, dict) else None
    return {**part, "functionCall": {**call, "id": provider_id(call)}} if isinstance(call, dict) else part
