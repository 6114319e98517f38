"""A session of Copilot CLI as events.

`user.message`, `assistant.message` and `tool.execution_complete` are the conversation. A picture is an event of its own
(`session.binary_asset`) that messages name by its hash. `session.compaction_complete` says that the conversation was
replaced by a summary: in the order of the file it is a boundary and the summary; in the order in which the model reads
it, it is one prompt in which the program repeats all that people said before.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from harken.clock import parse_instant
from harken.events import (
    Error,
    Event,
    Image,
    Metric,
    Output,
    Prompt,
    Response,
    System,
    Thinking,
    Tokens,
    ToolCall,
    ToolResult,
)
from harken.events.base import clean, figure, join_parts, named
from harken.events.runs import SEVERAL
from harken.formats.kit.jsonl import Record, encode, take_apart
from harken.formats.kit.openai import Fields

from .records import (
    ANSWER,
    ASSET,
    AT_PATH,
    ATTACHED,
    CLEARED,
    COMPACTED,
    DELIVERED,
    FAILURES,
    INSTRUCTIONS,
    KNOWN,
    NOTIFICATION,
    PROMPT,
    RESULT,
    REWOUND,
    SHUTDOWN,
    START,
    USAGE,
    agent_of,
    applied,
    content_of,
    iter_lines,
    kind_of,
    text_of,
    why_unknown,
)

FOLDED = (
    "Some of the conversation history has been summarized to free up context.\n\n"
    "You were originally given instructions from a user over one or more turns. Here were the user messages:\n"
    "{prompts}\n\nHere is a summary of the prior context:\n<summary>\n{summary}\n</summary>"
)
"""What the program tells its model behind a compaction."""
NOTICES = frozenset({"mode_notice"})
"""Kinds of injected prompts by which the program tells its model about itself."""
_ACCOUNTS = ("accountingSnapshot", "usageAccountingWatermarks")
"""What the end of a run has in versions that write usage records."""
TELLING = frozenset(
    {
        *(PROMPT, ANSWER, RESULT, USAGE, SHUTDOWN, ASSET, COMPACTED, START, INSTRUCTIONS, NOTIFICATION, "abort"),
        *(CLEARED, REWOUND),
        *DELIVERED,
        *FAILURES,
    }
)
"""Types of events that say something, or that something needs which does."""
QUIET = KNOWN - TELLING
"""All others that are known: bookkeeping, as two lines of three are."""
_AGENT = "agent-"
"""How the source of a prompt begins that another agent gave."""


class FoundRecord(NamedTuple):
    """A record of the file with its place, or what is none."""

    start: int
    record: Record
    raw: bytes
    why: str = ""


def records_in(data: bytes) -> Iterator[FoundRecord]:
    """Every record of the bytes, in order, and what on a line is none."""
    for line in iter_lines(data):
        if line.record is not None:
            yield FoundRecord(line.start, line.record, data[line.start : line.end].rstrip(b"\r\n"))
            continue
        objects, rest = take_apart(data, line.start, line.end)
        for record, start, end in objects:
            yield FoundRecord(start, record, data[start:end].rstrip(b"\r\n"))
        if rest is not None:
            yield FoundRecord(rest.start, {}, rest.raw, rest.why)


def read(data: bytes) -> Iterator[Event]:
    """Every event of the file, in its order."""
    reader = SessionEvents()
    return (event for found in records_in(data) for event in reader.events(found))


def events_of_line(line: bytes) -> list[Event]:
    """The events on a line of the program's output, where it is one of the session's own: those between them are only
    for whoever watches, and the last one is no event."""
    reader = SessionEvents()
    found = [one for one in records_in(line) if not one.record.get("ephemeral") and kind_of(one.record) != "result"]
    return [event for one in found for event in reader.events(one)]


def read_conversation(data: bytes) -> Iterator[Event]:
    """The conversation that a context holds, as the model reads it."""
    reader = SessionEvents(for_model=True)
    events = [event for found in records_in(data) for event in reader.events(found)]
    return iter(_in_order_of_calls(_folded(events, data)))


def _folded(events: list[Event], data: bytes) -> list[Event]:
    """Behind a compaction, one prompt stands for all that was said before; it repeats the words without pictures."""
    fold = max((at for at in range(1, len(events)) if _is_compaction(*events[at - 1 : at + 1])), default=None)
    if fold is None:
        return events
    summary = events[fold]
    assert isinstance(summary, Prompt)
    before = itertools.takewhile(lambda event: event.message_id != summary.message_id, read(data))
    said = [event.content for event in before if isinstance(event, Prompt) and event.source != "injected"]
    begun = [event for event in events[:fold] if isinstance(event, System) and event.subtype == "init"]
    return [*begun, summary.replace(content=folded(said, summary.content), index=0), *events[fold + 1 :]]


def _in_order_of_calls(events: list[Event]) -> list[Event]:
    """Results come as tools end; the model is given them in the order of the calls. What is no part of the conversation
    and comes in between stands behind them: the figures there are those of the request that has the results."""
    order: dict[str, int] = {}
    placed: list[Event] = []
    waiting: list[tuple[int, ToolResult]] = []
    behind: list[Event] = []
    for event in events:
        if isinstance(event, ToolResult):
            waiting.append((order.get(event.id, len(order)), event))
            continue
        if isinstance(event, Prompt | Response | Thinking | ToolCall):
            placed += [*_sorted(waiting), *behind]
            waiting.clear()
            behind.clear()
        if isinstance(event, ToolCall):
            order[event.id] = len(order)
        (behind if waiting else placed).append(event)
    return [*placed, *_sorted(waiting), *behind]


def _sorted(waiting: list[tuple[int, ToolResult]]) -> list[ToolResult]:
    return [result for _, result in sorted(waiting, key=itemgetter(0))]


def folded(said: Iterable[str], summary: str) -> str:
    """The prompt that stands for what was folded."""
    prompts = "\n".join(f"<user_message>\n{text}\n</user_message>" for text in said)
    return FOLDED.format_map({"prompts": prompts, "summary": summary})


def _is_compaction(boundary: Event, summary: Event) -> bool:
    """Whether these two are what a compaction left. A summary that came along from another program has no boundary: the
    program has it as a prompt like any other, and sends all that stands before it."""
    is_boundary = isinstance(boundary, System) and boundary.subtype == "compact_boundary"
    return is_boundary and boundary.message_id == summary.message_id and isinstance(summary, Prompt)


class SessionEvents:
    """Turns records into events. It remembers pictures, which a message names by their hash."""

    def __init__(self, *, for_model: bool = False) -> None:
        """`for_model`: with the words that the program puts before a picture."""
        self._assets: dict[str, Record] = {}
        self._for_model = for_model

    def events(self, found: FoundRecord) -> list[Event]:
        """The events of one record, at least one."""
        fields: Fields = {"message_id": f"@{found.start}", "time": None}
        if found.why:
            return [Output(raw=found.raw, why=found.why, **fields)]
        record = found.record
        name = record.get("id")
        if isinstance(name, str) and named(name) and not name.startswith("@"):
            fields["message_id"] = named(name)
        fields |= {"time": parse_instant(record.get("timestamp")), "agent_id": clean(agent_of(record))}
        if why := why_unknown(record):
            return [Output(raw=found.raw, why=why, **fields)]
        kind = kind_of(record)
        try:
            events = self._said(kind, content_of(record), fields) if kind not in QUIET else []
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as problem:
            why = f"damaged {kind}: {type(problem).__name__}"
            return [Output(raw=found.raw, why=why, **fields)]
        return events or [Output(raw=found.raw, **fields)]

    def _said(self, kind: str, data: Record, fields: Fields) -> list[Event]:
        if kind == PROMPT:
            return [self._prompt(data, fields)]
        if kind == ANSWER:
            return _answer(data, fields)
        if kind == RESULT:
            return [self._result(data, fields)]
        if kind == USAGE:
            return _usage(data.get("usage"), fields)
        if kind == SHUTDOWN:
            return _sums(data, fields)
        if kind == ASSET:
            self._assets[text_of(data.get("assetId"))] = data
            return []
        if kind == COMPACTED:
            return _compaction(data, fields)
        return _notice(kind, data, fields)

    def _prompt(self, data: Record, fields: Fields) -> Event:
        source = text_of(data.get("source"))
        said: Fields = {"source": "user"}
        if fields["agent_id"] or source.startswith(_AGENT):
            said = {"source": "injected", "origin": "agent"}
        elif source and source != "user":
            said = {"source": "injected", "origin": clean(source)[:80]}
        attached = data.get("attachments")
        parts: list[str | Image] = [_words(data, "content")]
        for one in attached if isinstance(attached, list) else ():
            if (image := self._picture(one)) is not None:
                parts += [_caption(one), image] if self._for_model else [image]
        text, images = join_parts(parts)
        return Prompt(content=text, images=images, **said, **fields)

    def _result(self, data: Record, fields: Fields) -> Event:
        result, error = data.get("result"), data.get("error")
        told = error if data.get("success") is False and isinstance(error, dict) else result
        said = told.get("message", told.get("content")) if isinstance(told, dict) else told
        text = said if isinstance(said, str) else "" if said is None else encode(said).decode()
        shown = result.get("binaryResultsForLlm") if isinstance(result, dict) else None
        found = (self._picture(one) for one in shown) if isinstance(shown, list) else ()
        return ToolResult(
            id=clean(text_of(data.get("toolCallId"))),
            output=clean(text),
            is_error=data.get("success") is False,
            images=tuple(image for image in found if image is not None),
            **fields,
        )

    def _picture(self, attached: object) -> Image | None:
        """A picture that came along; None for a file that only the tools look at."""
        if not isinstance(attached, dict):
            return None
        asset = self._assets.get(text_of(attached.get("assetId")), {})
        media = text_of(attached.get("mimeType")) or text_of(asset.get("mimeType"))
        if not media.startswith("image/"):
            return None
        data = text_of(attached.get("data")) or text_of(asset.get("data"))
        return Image(
            media_type=clean(media), data=clean(data), url="" if data else clean(text_of(attached.get("assetId")))
        )


def _caption(attached: Record) -> str:
    """What the program says before a picture."""
    if attached.get("type") == "file":
        return f"{AT_PATH}{clean(text_of(attached.get('path')))}"
    return clean(text_of(attached.get("displayName"))) or ATTACHED


def _answer(data: Record, fields: Fields) -> list[Event]:
    """Reasoning, words and calls of one message."""
    api_id = clean(text_of(data.get("apiCallId")))
    fields = {**fields, "api_id": api_id}
    events: list[Event] = []

    def add(cls: type[Event], **said: Any) -> None:
        events.append(cls(**said, **{**fields, "index": len(events)}))

    thought, sealed = _words(data, "reasoningText"), text_of(data.get("reasoningOpaque"))
    sealed = sealed or text_of(data.get("encryptedContent"))
    if thought or sealed:
        add(Thinking, content=thought, signature=clean(sealed))
    calls = data.get("toolRequests")
    calls = [] if calls is None else calls
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise TypeError("toolRequests")
    if text := _words(data, "content"):
        add(Response, content=text, model=clean(text_of(data.get("model"))))
    for call in calls:
        given = call.get("arguments")
        said = given.encode(errors="replace") if isinstance(given, str) else encode({} if given is None else given)
        add(ToolCall, id=clean(text_of(call.get("toolCallId"))), name=clean(text_of(call.get("name"))), input=said)
    # The versions before usage records told this much, and nothing else.
    if (tokens := figure(data.get("outputTokens"))) is not None:
        add(Metric, output_tokens=tokens, model=clean(text_of(data.get("model"))))
    return events


def _tokens(usage: Record) -> Tokens:
    """The figures of one request or several. Input is told with what came from the cache and what went into it."""
    read, write = figure(usage.get("cacheReadTokens")), figure(usage.get("cacheWriteTokens"))
    whole = figure(usage.get("inputTokens"))
    return Tokens(
        input=None if whole is None else max(0, whole - (read or 0) - (write or 0)),
        output=figure(usage.get("outputTokens")),
        cache_read=read,
        cache_write=write,
    )


def _sums(data: Record, fields: Fields) -> list[Event]:
    """What went into the requests of a run, for each model, as the versions before usage records tell it alone. Each of
    their runs counts from zero, and their messages tell the output. Versions with usage records say here what a session
    used from its beginning."""
    metrics = data.get("modelMetrics")
    if any(mark in data for mark in _ACCOUNTS) or not isinstance(metrics, dict):
        return []
    events: list[Event] = []
    for model, one in metrics.items():
        usage = one.get("usage") if isinstance(one, dict) else None
        if isinstance(usage, dict):
            tokens = msgspec.structs.replace(_tokens(usage), output=None)
            key = {"api_id": fields["message_id"], "request_id": clean(model)}
            metric = Metric(model=clean(model), scope=SEVERAL, **fields, **key, index=len(events))
            events.append(metric.with_tokens(tokens))
    return events


def _usage(usage: object, fields: Fields) -> list[Event]:
    """What a request used."""
    if not isinstance(usage, dict):
        return []
    duration = usage.get("duration")
    metric = Metric(
        model=clean(text_of(usage.get("model"))),
        reasoning_tokens=figure(usage.get("reasoningTokens")),
        duration_seconds=duration / 1000 if isinstance(duration, int | float) and 0 <= duration < 1e12 else 0.0,
        **{**fields, "api_id": clean(text_of(usage.get("apiCallId"))) or fields["message_id"]},
    )
    return [metric.with_tokens(_tokens(usage))]


def _compaction(data: Record, fields: Fields) -> list[Event]:
    """A summary takes the place of what was said; asking for it was a request too, which no usage record tells of."""
    if not applied(data):
        message = text_of(data.get("error"))
        return [Error(message=clean(message), **fields)] if message else []
    about = {key: value for key, value in data.items() if key != "summaryContent"}
    summary = clean(text_of(data.get("summaryContent")))
    events = _usage(data.get("compactionTokensUsed"), fields)
    events.append(System(subtype="compact_boundary", metadata=encode(about), **{**fields, "index": len(events)}))
    told = {**fields, "index": len(events)}
    return [*events, Prompt(content=summary, source="injected", origin="compact_summary", **told)]


def _notice(kind: str, data: Record, fields: Fields) -> list[Event]:
    """What the program says by itself."""
    if kind == START:
        return [System(subtype="init", metadata=encode(data), **fields)]
    if kind == INSTRUCTIONS:
        return [System(subtype="instructions", message=_words(data, "content"), **fields)]
    if kind == NOTIFICATION or kind in DELIVERED:
        text = _words(data, "content")
        origin = {NOTIFICATION: "task_notification", "skill.context_delivered": "skill"}.get(kind, "mode_notice")
        return [Prompt(content=text, source="injected", origin=origin, **fields)] if text else []
    if kind in FAILURES:
        message = text_of(data.get("message")) or text_of(data.get("error")) or text_of(data.get("errorMessage"))
        return [Error(message=clean(message), **fields)]
    if kind == "abort":
        return [System(subtype="turn_aborted", message=clean(text_of(data.get("reason"))), **fields)]
    if kind in (CLEARED, REWOUND):
        return [System(subtype=kind.partition(".")[2], metadata=encode(data), **fields)]
    return []


def _words(data: Record, key: str) -> str:
    """What somebody said; words that are no text are a damaged record, and not silence."""
    said = data.get(key)
    if said is not None and not isinstance(said, str):
        raise TypeError(key)
    return clean(said or "")
