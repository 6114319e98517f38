"""Spans, however they were written down: OTLP/JSON, as one document or one object per line, and what trace stores give
out (Jaeger, Langfuse). A log record that names a span is an event of that span."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from harken import ids
from harken.clock import in_calendar, parse_instant
from harken.events import Output
from harken.events.base import clean
from harken.formats.kit.jsonl import BOM, SPACE, NotJson, Record, encode, lines, parse_document, take_apart

MAX_NESTING = 60
"""A value inside an attribute that is deeper is kept as JSON text."""
_IS_REMOTE = 0x300
"""Both bits of a span's flags: it is said whether the parent is of another process, and it is."""


class SpanEvent(msgspec.Struct, kw_only=True):
    """Something that happened within a span."""

    name: str
    time: int | None = None
    attributes: Record = {}


class TraceSpan(msgspec.Struct, kw_only=True):
    """A piece of work, as tracing has it. Times are in microseconds."""

    trace_id: str = ""
    span_id: str = ""
    parent_id: str = ""
    name: str = ""
    start: int | None = None
    end: int | None = None
    attributes: Record = {}
    events: list[SpanEvent] = []
    failed: bool = False
    failure: str = ""
    remote_parent: bool = False
    """Whether the parent is of another process, and may never be seen here."""

    @property
    def key(self) -> tuple[str, str]:
        """By what it is known; ids of spans are unique within a trace."""
        return self.trace_id, self.span_id

    @property
    def parent(self) -> tuple[str, str] | None:
        """The key of the span that it is part of."""
        return (self.trace_id, self.parent_id) if self.parent_id else None


class SpanDocument(msgspec.Struct):
    """What a file holds: spans, and what on it could not be read."""

    spans: list[TraceSpan]
    unread: list[Output]


def read_documents(data: bytes) -> list[SpanDocument]:
    """The spans in the bytes. A line that says there are none (`BREAK`) ends a document: what follows is another
    session's."""
    made: list[SpanDocument] = []
    spans: list[TraceSpan] = []
    unread: list[Output] = []
    for value, problem in _values(data):
        if problem is not None:
            unread.append(problem)
        elif value == {"resourceSpans": []}:
            made.append(SpanDocument(merged(spans), unread))
            spans, unread = [], []
        else:
            found = list(spans_of(value))
            if not found and value != {} and not is_telemetry(value):  # `{}` is a body without anything in it
                unread.append(Output(raw=encode(value), why="not an OpenTelemetry document"))
            spans += found
    made.append(SpanDocument(merged(spans), unread))
    return made


BREAK = b'{"resourceSpans":[]}\n'
"""Between two documents that were joined. No exporter writes it: where there are no spans there is nothing to send."""


def _values(data: bytes) -> Iterator[tuple[Any, Output | None]]:
    """The JSON values in the bytes: all of it is one, or each line is."""
    if not data.strip(SPACE + BOM):
        return
    try:
        value = parse_document(data)
    except NotJson as problem:
        if b"\n" not in data.strip(SPACE):
            yield None, Output(raw=data, why=f"not an OpenTelemetry document: {problem}", media_type="text/plain")
            return
    else:
        for one in value if isinstance(value, list) else [value]:
            yield one, None
        return
    for start, end in lines(data):
        objects, rest = take_apart(data, start, end)
        yield from ((value, None) for value, _, _ in objects)
        if rest is not None:
            yield None, Output(raw=rest.raw, why=rest.why, media_type="text/plain")


_SIGNALS = ("resourceSpans", "resourceLogs", "resourceMetrics", "batches")


def is_telemetry(value: Any) -> bool:
    """Whether it is something that a collector or a trace store writes, with or without spans."""
    if not isinstance(value, dict):
        return False
    if any(isinstance(_get(value, key), list) for key in _SIGNALS):
        return True
    return _is_jaeger(value) or any(map(_is_jaeger, _records(value.get("data")))) or _is_langfuse(value)


def spans_of(value: Any) -> Iterator[TraceSpan]:
    """The spans and events in one document."""
    if not isinstance(value, dict):
        return
    if isinstance(inner := value.get("trace"), dict) and not _is_langfuse(value):
        value = inner
    for resource in (*_records(_get(value, "resourceSpans")), *_records(value.get("batches"))):
        scopes = (*_records(_get(resource, "scopeSpans")), *_records(_get(resource, "instrumentationLibrarySpans")))
        for scope in scopes:
            yield from map(_span, _records(scope.get("spans")))
    for resource in _records(_get(value, "resourceLogs")):
        for scope in _records(_get(resource, "scopeLogs")):
            for record in _records(_get(scope, "logRecords")):
                yield from _logged(record)
    for trace in (value, *_records(value.get("data"))):
        if _is_jaeger(trace):
            yield from map(_jaeger_span, _records(trace.get("spans")))
    if _is_langfuse(value):
        yield from map(_observation, _records(value.get("observations")))


def merged(spans: Iterable[TraceSpan]) -> list[TraceSpan]:
    """Each span once; what was logged of a span is put with it."""
    found: dict[tuple[str, str], TraceSpan] = {}
    for span in map(_with_id, spans):
        known = found.get(span.key)
        found[span.key] = span if known is None else _merged_pair(known, span)
    return list(found.values())


def _with_id(span: TraceSpan) -> TraceSpan:
    """The span; one without an id has one that stands for all that it says."""
    if span.span_id:
        return span
    said = repr(span).encode("utf-8", "surrogatepass")
    return msgspec.structs.replace(span, span_id=ids.artifact_id(said)[:16])


def _merged_pair(known: TraceSpan, span: TraceSpan) -> TraceSpan:
    """Two reports of one span: a log record adds its event, the same span again adds nothing."""
    if known.name and span.name:
        return known
    own = span if span.name else known
    both = {**known.attributes, **span.attributes} if not own.name else own.attributes
    ends = [end for end in (known.end, span.end) if end is not None]
    return msgspec.structs.replace(
        own,
        attributes=both,
        events=[*known.events, *span.events],
        end=own.end if own.name else max(ends, default=None),
    )


# -- OTLP/JSON ---------------------------------------------------------------------------------------------------------


def _get(record: Record, key: str) -> Any:
    """A field by its name in JSON, or as protobuf has it."""
    if key in record:
        return record[key]
    return record.get("".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key))


def _records(value: object) -> list[Record]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text_of(value: object) -> str:
    """A text from outside; empty for anything else."""
    return clean(value) if isinstance(value, str) else ""


def _span(record: Record) -> TraceSpan:
    status = record.get("status")
    status = status if isinstance(status, dict) else {}
    flags = record.get("flags")
    return TraceSpan(
        trace_id=text_of(_get(record, "traceId")),
        span_id=text_of(_get(record, "spanId")),
        parent_id=text_of(_get(record, "parentSpanId")),
        name=text_of(record.get("name")) or "span",
        start=nanoseconds(_get(record, "startTimeUnixNano")),
        end=nanoseconds(_get(record, "endTimeUnixNano")),
        attributes=_attributes(record.get("attributes")),
        events=[_event(one) for one in _records(record.get("events"))],
        failed=status.get("code") in (2, "STATUS_CODE_ERROR"),
        failure=text_of(status.get("message")),
        remote_parent=isinstance(flags, int) and flags & _IS_REMOTE == _IS_REMOTE,
    )


def _event(record: Record) -> SpanEvent:
    return SpanEvent(
        name=text_of(record.get("name")),
        time=nanoseconds(_get(record, "timeUnixNano")),
        attributes=_attributes(record.get("attributes")),
    )


def _logged(record: Record) -> Iterator[TraceSpan]:
    """A log record as a span that is not known yet, with one event; what is not about a model is passed over."""
    attributes = _attributes(record.get("attributes"))
    name = text_of(_get(record, "eventName")) or text_of(attributes.get("event.name"))
    if not name.startswith("gen_ai."):
        return
    body = _value(record.get("body"), 0)
    said = {**(body if isinstance(body, dict) else {"content": body} if body is not None else {}), **attributes}
    times = (nanoseconds(_get(record, key)) for key in ("timeUnixNano", "observedTimeUnixNano"))
    time = next((one for one in times if one), None)
    yield TraceSpan(
        trace_id=text_of(_get(record, "traceId")),
        span_id=text_of(_get(record, "spanId")),
        start=time,
        end=time,
        attributes={key: value for key, value in attributes.items() if key.startswith("gen_ai.")},
        events=[SpanEvent(name=name, time=time, attributes=said)],
    )


def nanoseconds(value: object) -> int | None:
    """An instant in nanoseconds, as a number or as text, in microseconds; None for what is none."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 24:
        value = int(value)
    if type(value) is not int or value <= 0:
        return None
    return value // 1000 if in_calendar(value // 1000) else None


def _attributes(value: object) -> Record:
    if isinstance(value, Mapping):  # not OTLP, but what some write
        return {clean(str(key)): inner for key, inner in value.items()}
    return {text_of(one.get("key")): _value(one.get("value"), 0) for one in _records(value)}


def _value(value: Any, depth: int) -> Any:
    """A value of an attribute as JSON has it."""
    if not isinstance(value, dict) or depth > MAX_NESTING:
        return encode(value).decode() if isinstance(value, dict | list) else value
    if "kvlistValue" in value or "kvlist_value" in value:
        inner = _get(value, "kvlistValue")
        inner = inner.get("values") if isinstance(inner, dict) else None
        return {text_of(one.get("key")): _value(one.get("value"), depth + 1) for one in _records(inner)}
    if "arrayValue" in value or "array_value" in value:
        inner = _get(value, "arrayValue")
        inner = inner.get("values") if isinstance(inner, dict) else None
        return [_value(one, depth + 1) for one in inner] if isinstance(inner, list) else []
    if (number := _get(value, "intValue")) is not None:
        whole = isinstance(number, str) and number.removeprefix("-").isdecimal() and len(number) < 24
        return int(number) if whole else number
    for key in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
        if (found := _get(value, key)) is not None:
            return found
    return None


# -- what trace stores give out ----------------------------------------------------------------------------------------


def _is_jaeger(value: Record) -> bool:
    return "traceID" in value and isinstance(value.get("spans"), list)


def _jaeger_span(record: Record) -> TraceSpan:
    above = [one for one in _records(record.get("references")) if one.get("refType", "CHILD_OF") == "CHILD_OF"]
    tags = {text_of(tag.get("key")): tag.get("value") for tag in _records(record.get("tags"))}
    start, duration = record.get("startTime"), record.get("duration")
    begun = start if type(start) is int and in_calendar(start) else None
    ended = begun + duration if begun is not None and type(duration) is int else begun
    return TraceSpan(
        trace_id=text_of(record.get("traceID")),
        span_id=text_of(record.get("spanID")),
        parent_id=text_of(above[0].get("spanID")) if above else "",
        name=text_of(record.get("operationName")) or "span",
        start=begun,
        end=ended if ended is not None and in_calendar(ended) else begun,
        attributes=tags,
        events=[_jaeger_event(one) for one in _records(record.get("logs"))],
        failed=tags.get("error") is True or tags.get("otel.status_code") == "ERROR",
        failure=text_of(tags.get("otel.status_description")),
    )


def _jaeger_event(record: Record) -> SpanEvent:
    said = {text_of(one.get("key")): one.get("value") for one in _records(record.get("fields"))}
    time = record.get("timestamp")
    instant = time if type(time) is int and in_calendar(time) else None
    return SpanEvent(name=text_of(said.get("event")), time=instant, attributes=said)


def _is_langfuse(value: Record) -> bool:
    first = next(iter(_records(value.get("observations"))), {})
    return "traceId" in first and "type" in first


_KINDS = {"GENERATION": "LLM", "TOOL": "TOOL", "AGENT": "AGENT", "EMBEDDING": "EMBEDDING"}


def _observation(record: Record) -> TraceSpan:
    """An observation of Langfuse. It keeps the attributes beside what it takes for input and output."""
    about = _parsed(record.get("metadata"))
    inner = _parsed(about.get("attributes")) if isinstance(about, dict) else None
    attributes: Record = dict(inner) if isinstance(inner, dict) else {}
    used = record.get("usageDetails")
    used = used if isinstance(used, dict) else {}
    for key, value in (
        ("gen_ai.usage.input_tokens", used.get("input")),
        ("gen_ai.usage.output_tokens", used.get("output")),
        ("input.value", record.get("input")),
        ("output.value", record.get("output")),
        ("openinference.span.kind", _KINDS.get(text_of(record.get("type")))),
        ("gen_ai.response.model", record.get("model")),
    ):
        if value is not None:
            attributes.setdefault(key, value)
    return TraceSpan(
        trace_id=text_of(record.get("traceId")),
        span_id=text_of(record.get("id")),
        parent_id=text_of(record.get("parentObservationId")),
        name=text_of(record.get("name")) or "span",
        start=_iso(record.get("startTime")),
        end=_iso(record.get("endTime")),
        attributes=attributes,
        failed=record.get("level") == "ERROR",
        failure=text_of(record.get("statusMessage")),
    )


def _iso(value: object) -> int | None:
    return parse_instant(value) if isinstance(value, str) else None


def _parsed(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return parse_document(value.encode("utf-8", "replace"))
    except NotJson:
        return None
