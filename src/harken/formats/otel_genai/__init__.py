"""`otel-genai-v1`: traces of OpenTelemetry with GenAI attributes, as OTLP/JSON.

One document (`{"resourceSpans": […]}`) or one such object per line, as a collector's file exporter writes them, with
the log records that belong to the spans. Read, each message is told once, however often the calls repeat it, and usage
counts once, whatever the spans around the calls add up. What Jaeger and Langfuse give out is read as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harken.events import Event
from harken.formats.base import Format, Written
from harken.formats.kit.claims import NO_CLAIM, Claim
from harken.formats.kit.jsonl import BOM, SPACE, NotJson, encode, parse_beginning, parse_document, read_head

from .reading import count_places, read, read_conversation
from .spans import BREAK, is_telemetry

_WORDS = (b"gen_ai.", b"openinference.", b"llm.", b"traceloop.", b"ai.operationId")
SURE = 90
"""The score of a file that speaks of a model."""


def _write(events: Sequence[Event]) -> Written:
    from .writing import write  # whoever reads needs none of it

    return write(events)


def _join(deltas: Iterable[bytes]) -> bytes:
    """Line behind line, and between two documents one that says so; a single one is left as it is."""
    parts = list(deltas)
    if len(parts) == 1:
        return parts[0]
    return BREAK.join(_line(part) for part in parts if part.strip(SPACE + BOM))


def _line(part: bytes) -> bytes:
    """A document on one line; lines as they are."""
    try:
        value = parse_document(part)
    except NotJson:
        return part if part.endswith(b"\n") else part + b"\n"
    return b"".join(encode(one) + b"\n" for one in (value if isinstance(value, list) else [value]))


def claim(head: bytes, path: str = "") -> Claim:
    """How sure it is: by the first object, and whether a model is spoken of near the beginning."""
    # A line may be an object; a document may go over many lines.
    if not is_telemetry(next(iter(read_head(head, most=1)), None)) and not is_telemetry(parse_beginning(head)):
        return NO_CLAIM
    if any(word in head for word in _WORDS):
        return Claim(score=SURE, reason="it has spans of OpenTelemetry that speak of a model")
    return Claim(score=55, reason="it has spans of OpenTelemetry")


FORMAT = Format(
    name="otel-genai-v1",
    media_type="application/json",
    description="A trace of OpenTelemetry as OTLP/JSON: `resourceSpans` with GenAI attributes, one object or several.",
    join=_join,
    claim=claim,
    reader=read,
    conversation_reader=read_conversation,
    writer=_write,
    places=count_places,
    tells_agents=True,
    repeats_history=True,
)
