"""The span processor. Only here is OpenTelemetry's SDK imported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.trace import StatusCode, format_span_id, format_trace_id

from harken.capture.exchange import never_raising
from harken.capture.mask import Mask
from harken.formats.otel_genai.calls import kind_of
from harken.formats.otel_genai.spans import SpanEvent, TraceSpan, nanoseconds
from harken.formats.otel_genai.telling import SpanKey
from harken.log import Session

from .capturing import SpanCapture


class CapturingProcessor(SpanProcessor):
    """Puts finished spans about a model into a session. Spans that are still open say whose they are."""

    def __init__(self, session: Session, mask: Mask) -> None:
        self.capture = SpanCapture.of(session, mask)
        self._open: dict[SpanKey, ReadableSpan] = {}

    @never_raising
    def on_start(self, span: ReadableSpan, parent_context: Context | None = None) -> None:
        """A span began: it is remembered until it ends."""
        self._open[_key(span)] = span

    @never_raising
    def on_end(self, span: ReadableSpan) -> None:
        """A span ended."""
        self._open.pop(_key(span), None)
        self.capture.ended(_span(span), self._around(span))

    def _around(self, span: ReadableSpan) -> Iterator[TraceSpan]:
        """The open spans around a span, the nearest first; of those that are not about a model their places alone."""
        while span.parent is not None and (above := self._open.get((_trace(span), _id(span.parent)))) is not None:
            span = above
            yield _span(span)

    @never_raising
    def shutdown(self) -> None:
        """Nothing more comes."""
        self.capture.close()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Put what was captured on disk."""
        _flush(self)
        return True


@never_raising
def _flush(processor: CapturingProcessor) -> None:
    processor.capture.session.flush()


def _trace(span: ReadableSpan) -> str:
    context = span.get_span_context()
    return "" if context is None else format_trace_id(context.trace_id)


def _id(context: Any) -> str:
    return "" if context is None else format_span_id(context.span_id)


def _key(span: ReadableSpan) -> SpanKey:
    return _trace(span), _id(span.get_span_context())


def _plain(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    """Attributes as JSON has them; the SDK makes tuples of lists."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in (attributes or {}).items()}


def _span(span: ReadableSpan) -> TraceSpan:
    """A span of the SDK as one that was read."""
    trace, own = _key(span)
    remote = span.parent is not None and span.parent.is_remote
    made = TraceSpan(
        trace_id=trace,
        span_id=own,
        parent_id="" if remote else _id(span.parent),
        name=span.name or "span",
        attributes=_plain(span.attributes),
        start=nanoseconds(span.start_time),
        end=nanoseconds(span.end_time),
        failed=span.status.status_code is StatusCode.ERROR,
        failure=span.status.description or "",
        remote_parent=remote,
    )
    made.events = [
        SpanEvent(name=event.name, time=nanoseconds(event.timestamp), attributes=_plain(event.attributes))
        for event in span.events
    ]
    return made if kind_of(made) else TraceSpan(trace_id=trace, span_id=own, parent_id=made.parent_id, name=made.name)
