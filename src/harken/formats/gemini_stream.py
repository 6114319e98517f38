"""What `gemini --output-format stream-json` prints while it works, as events: one line at a time.

The model's words come in pieces; they are one response, told when something else comes. The stream has no thoughts,
and usage only of the whole run. Its lines have no ids, so they are told apart by the session and by a number that the
caller gives the run.
"""

from __future__ import annotations

from typing import Any

from harken.clock import parse_instant
from harken.events import Error, Event, Metric, Output, Response, System, ToolCall, ToolResult
from harken.events.base import clean, figure

from .gemini_cli.messages import provider_id
from .gemini_cli.records import text_of
from .kit.jsonl import Record, encode, take_apart


class GeminiStreamReader:
    """Feed it lines; it answers with the events of each."""

    def __init__(self, run: str = "") -> None:
        self.run = run
        self.session = ""
        self._model = ""
        self._line = 0
        self._said: list[str] = []
        self._since: int | None = None
        self._tools: dict[str, str] = {}
        """Calls to the names of their tools."""

    def feed(self, line: bytes) -> list[Event]:
        """The events of one line; what cannot be read is kept with the reason."""
        objects, rest = take_apart(line, 0, len(line))
        events: list[Event] = []
        for record, _, _ in objects:
            events += self._record(record)
        if rest is not None:
            events.append(Output(raw=rest.raw, why=rest.why, message_id=self._name()))
        return events

    def _name(self) -> str:
        self._line += 1
        return ":".join(part for part in (self.session, self.run, f"line_{self._line}") if part)

    def _record(self, record: Record) -> list[Event]:
        kind, time = record.get("type"), parse_instant(record.get("timestamp"))
        if kind == "message":
            return self._message(record, time)
        told = self._flush()
        if kind == "init":
            self.session, self._model = (clean(text_of(record.get(key))) for key in ("session_id", "model"))
            about = encode({"session_id": self.session, "model": self._model})
            return [*told, System(subtype="init", metadata=about, message_id=self._name(), time=time)]
        if kind == "tool_use":
            return [*told, self._call(record, time)]
        if kind == "tool_result":
            return [*told, self._result(record, time)]
        if kind == "error":
            problem = Error(message=clean(text_of(record.get("message"))), message_id=self._name(), time=time)
            return [*told, problem]
        if kind == "result":
            return [*told, *self._end(record, time)]
        why = f"unknown line {clean(str(kind))[:80]!r}"
        return [*told, Output(raw=encode(record), why=why, message_id=self._name())]

    def _message(self, record: Record, time: int | None) -> list[Event]:
        """Words of the model; the prompt, which the stream repeats, is known to whoever gave it."""
        if record.get("role") != "assistant":
            return self._flush()
        told = [] if record.get("delta") is True else self._flush()
        self._since = time if self._since is None else self._since
        self._said.append(clean(text_of(record.get("content"))))
        return told

    def _flush(self) -> list[Event]:
        text, time = "".join(self._said), self._since
        self._said, self._since = [], None
        if not text:
            return []
        return [Response(content=text, model=self._model, message_id=self._name(), time=time)]

    def _call(self, record: Record, time: int | None) -> Event:
        name = clean(text_of(record.get("tool_name")))
        call = provider_id({"id": record.get("tool_id"), "name": name})
        self._tools[text_of(record.get("tool_id"))] = name
        asked = encode(record.get("parameters", {}))
        return ToolCall(id=call, name=name, input=asked, message_id=self._name(), time=time)

    def _result(self, record: Record, time: int | None) -> Event:
        name = self._tools.get(text_of(record.get("tool_id")), "")
        call = provider_id({"id": record.get("tool_id"), "name": name})
        failed = record.get("status") == "error"
        problem = record.get("error")
        output = text_of(record.get("output"))
        if failed and isinstance(problem, dict):
            output = output or text_of(problem.get("message"))
        return ToolResult(id=call, name=name, output=clean(output), is_error=failed, message_id=self._name(), time=time)

    def _end(self, record: Record, time: int | None) -> list[Event]:
        """The end of the run, and what all of it used: what was thought is in the total alone."""
        given: Any = record.get("stats")
        stats: Record = given if isinstance(given, dict) else {}
        failed = record.get("status") != "success"
        total, prompt, cached = (figure(stats.get(key)) for key in ("total_tokens", "input_tokens", "cached"))
        name = self._name()
        metric = Metric(
            status="error_during_execution" if failed else "success",
            model=self._model,
            input_tokens=None if prompt is None else max(prompt - (cached or 0), 0),
            cache_read_tokens=cached,
            output_tokens=None if total is None or prompt is None else max(total - prompt, 0),
            message_id=name,
            time=time,
        )
        problem = record.get("error")
        if not failed or not isinstance(problem, dict):
            return [metric]
        return [
            Error(message=clean(text_of(problem.get("message"))), message_id=name, time=time),
            metric.replace(index=1),
        ]
