"""What `qwen --output-format stream-json` prints: lines in the shape of Claude Code's stream.

What differs is the usage. An answer is printed as a line for each of its parts; the last one tells what the request
used, the others have zeros, and what came from the cache is part of the input. The result of a run counts the whole
session, from before the run too.
"""

from __future__ import annotations

from collections.abc import Iterator

from harken.events import Error, Event, Metric, Tokens
from harken.events.base import clean, figure
from harken.formats.claude_stream import ClaudeStreamReader
from harken.formats.kit.jsonl import Record, parse

from .records import inner, text


class QwenStreamReader:
    """Reads a stream as it comes; one reader per process that is listened to."""

    def __init__(self) -> None:
        self._reader = ClaudeStreamReader()

    def feed(self, line: bytes) -> list[Event]:
        """The events on the next line, which may lack its newline."""
        return list(self._told(self._reader.feed(line), parse(line) or {}))

    def _told(self, events: list[Event], record: Record) -> Iterator[Event]:
        said = clean(text(inner(record, "error"), "message"))
        for event in events:
            if isinstance(event, Metric):
                metric = _counted(event, inner(inner(record, "message"), "usage"))
                if metric is not None:
                    yield metric
            elif isinstance(event, Error) and said:
                failed: Event = event.replace(message=said)
                yield failed
            else:
                yield event


def _counted(metric: Metric, usage: Record) -> Metric | None:
    """The metric in Harken's terms; None for one of a line on which nobody counted."""
    if metric.ends_run:
        return metric.with_tokens(Tokens())
    used, made = metric.tokens, figure(usage.get("output_tokens"))
    if not used.prompt and not made:
        return None
    fresh = None if used.input is None else max(0, used.input - (used.cache_read or 0))
    # It says why a message stopped only where it calls a tool, so that tells nothing of the figure.
    counted: Metric = metric.replace(input_tokens=fresh, output_tokens=made)
    return counted
