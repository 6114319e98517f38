"""What `codex exec --json` prints while it works, as events: one line at a time, nothing remembered but what is open.

The stream says less than the rollout: no prompt (the wrapper knows it), no tool names of the model, and usage only as
the running total of the whole thread. Its item ids begin again with every run, so they are told apart by the thread
and by a number the caller gives the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harken.events import Error, Event, Metric, Output, Response, System, Thinking, ToolCall, ToolResult
from harken.events.base import clean
from harken.events.runs import TOTAL

from .codex.usage import tokens_of, totals_of
from .kit.jsonl import Record, lines, take_apart
from .kit.openai import Fields, dump, text_of


class CodexStreamReader:
    """Feed it lines; it answers with the events of each."""

    def __init__(self, run: str = "") -> None:
        self.run = run
        self.thread = ""
        self._line = 0
        self._open: set[str] = set()

    def feed(self, line: bytes | str, *, time: int | None = None) -> list[Event]:
        """The events of one line; what cannot be read is kept with the reason. An empty line says nothing."""
        raw = line.encode(errors="surrogatepass") if isinstance(line, str) else line
        objects, rest = take_apart(raw, 0, len(raw))
        events: list[Event] = []
        for record, start, end in objects:
            events += self._record(record, raw[start:end].rstrip(b"\r\n"), self._next(time))
        if rest is not None:
            events.append(Output(raw=rest.raw, why=rest.why, **self._next(time)))
        return events

    def _next(self, time: int | None) -> Fields:
        """The envelope of the next record."""
        self._line += 1
        return {"message_id": self._name(f"line_{self._line}"), "time": time}

    def _record(self, record: Record, raw: bytes, fields: Fields) -> list[Event]:
        handler = _HANDLERS.get(text_of(record.get("type")))
        if handler is None:
            return [Output(raw=raw, why=f"unknown line {text_of(record.get('type'))[:80]!r}", **fields)]
        try:
            events = handler(self, record, fields)
        except (TypeError, ValueError, AttributeError, KeyError, RecursionError) as problem:
            return [Output(raw=raw, why=f"damaged line: {type(problem).__name__}", **fields)]
        return [Output(raw=raw, why="unknown item", **fields)] if events is None else events

    def _name(self, what: str) -> str:
        return ":".join(part for part in (self.thread, self.run, what) if part)

    # -- one method per kind of line ----------------------------------------------------------------------------------

    def _thread(self, record: Record, fields: Fields) -> list[Event]:
        self.thread = text_of(record.get("thread_id"))
        fields["message_id"] = self._name(f"line_{self._line}")
        return [System(subtype="init", metadata=dump({"session_id": self.thread}), **fields)]

    def _turn_started(self, record: Record, fields: Fields) -> list[Event]:
        return []

    def _turn_completed(self, record: Record, fields: Fields) -> list[Event]:
        return self._end(record, fields, "success")

    def _turn_failed(self, record: Record, fields: Fields) -> list[Event]:
        problem = record.get("error")
        message = text_of(problem.get("message")) if isinstance(problem, dict) else text_of(problem)
        metric = self._end(record, {**fields, "index": 1}, "error_during_execution")
        return [Error(message=clean(message), **fields), *metric]

    def _error(self, record: Record, fields: Fields) -> list[Event]:
        return [Error(message=clean(text_of(record.get("message"))), **fields)]

    def _end(self, record: Record, fields: Fields, status: str) -> list[Event]:
        """A turn's end, and the total of the thread so far, which grows."""
        self._open.clear()
        total = totals_of({"info": {"total_token_usage": record.get("usage")}})
        end = Metric(status=status, turn_count=1, **fields)
        if total is None:
            return [end]
        tokens = tokens_of(total)
        used = Metric(scope=TOTAL, **{**fields, "api_id": f"codex:{self.thread}"}).with_tokens(tokens)
        return [used, end.replace(index=used.index + 1)]

    def _item(self, record: Record, fields: Fields) -> list[Event] | None:
        item = record.get("item")
        if not isinstance(item, dict):
            return None
        handler = _ITEMS.get(text_of(item.get("type")) or text_of(item.get("item_type")))
        if handler is None:
            return None
        done = record.get("type") == "item.completed"
        # Several objects in one have been seen to carry two ids; the line's number names the record all the same.
        call_id = self._name(text_of(item.get("id")) or f"line_{self._line}")
        return handler(self, item, fields, call_id, done)

    # -- one method per kind of item ----------------------------------------------------------------------------------

    def _message(self, item: Record, fields: Fields, call_id: str, done: bool) -> list[Event]:
        return [Response(content=clean(text_of(item.get("text"))), **fields)] if done else []

    def _reasoning(self, item: Record, fields: Fields, call_id: str, done: bool) -> list[Event]:
        return [Thinking(content=clean(text_of(item.get("text"))), **fields)] if done else []

    def _notice(self, item: Record, fields: Fields, call_id: str, done: bool) -> list[Event]:
        return [Error(message=clean(text_of(item.get("message"))), **fields)] if done else []

    def _command(self, item: Record, fields: Fields, call_id: str, done: bool) -> list[Event]:
        failed = item.get("exit_code") not in (0, None) or item.get("status") in ("failed", "declined")
        output = text_of(item.get("aggregated_output"))
        return self._called("exec_command", {"cmd": item.get("command")}, output, failed, fields, call_id, done)

    def _change(self, item: Record, fields: Fields, call_id: str, done: bool) -> list[Event]:
        failed = item.get("status") == "failed"
        return self._called("apply_patch", {"changes": item.get("changes")}, "", failed, fields, call_id, done)

    def _mcp(self, item: Record, fields: Fields, call_id: str, done: bool) -> list[Event]:
        name = f"mcp__{text_of(item.get('server'))}__{text_of(item.get('tool'))}"
        problem = item.get("error")
        result = problem if problem is not None else item.get("result")
        output = dump(result).decode() if result is not None else ""
        return self._called(name, item.get("arguments"), output, problem is not None, fields, call_id, done)

    def _search(self, item: Record, fields: Fields, call_id: str, done: bool) -> list[Event]:
        asked = item.get("action") or {"query": item.get("query")}
        if call_id in self._open:
            return []
        self._open.add(call_id)
        return [ToolCall(id=call_id, name="web_search", input=dump(asked), server_tool=True, **fields)]

    def _agents(self, item: Record, fields: Fields, call_id: str, done: bool) -> list[Event]:
        known = {key: value for key, value in item.items() if key not in ("id", "type", "status", "agents_states")}
        failed = item.get("status") == "failed"
        output = _given_back(text_of(item.get("tool")), item.get("agents_states"))
        return self._called(text_of(item.get("tool")), known, output, failed, fields, call_id, done)

    def _plan(self, item: Record, fields: Fields, call_id: str, done: bool) -> list[Event]:
        """The list of things to do is shown again whenever it changes."""
        return [System(subtype="todo_list", metadata=dump(item.get("items")), **fields)]

    def _called(
        self, name: str, arguments: Any, output: str, failed: bool, fields: Fields, call_id: str, done: bool
    ) -> list[Event]:
        events: list[Event] = []
        if call_id not in self._open:
            self._open.add(call_id)
            events.append(ToolCall(id=call_id, name=clean(name), input=dump(arguments), **fields))
        if done:
            after = {**fields, "index": len(events)}
            events.append(ToolResult(id=call_id, output=clean(output), is_error=failed, name=clean(name), **after))
        return events


def _given_back(tool: str, states: Any) -> str:
    """What a call about agents gave back, as the rollout has it: the agent that was made, or what became of those that
    were waited for. Of other calls the stream tells only how the agents are."""
    if not isinstance(states, dict) or not states:
        return ""
    if tool == "spawn_agent":
        return "\n".join(dump({"agent_id": agent}).decode() for agent in states)
    return dump({"status": {agent: _became(state) for agent, state in states.items()}}).decode()


def _became(state: Any) -> Any:
    """The state of an agent, as the rollout has it: its name alone, or with the agent's last words."""
    status, message = (state.get("status"), state.get("message")) if isinstance(state, dict) else (state, None)
    return {status: message} if isinstance(status, str) and message is not None else status


_HANDLERS: dict[str, Callable[[CodexStreamReader, Record, Fields], list[Event] | None]] = {
    "thread.started": CodexStreamReader._thread,
    "turn.started": CodexStreamReader._turn_started,
    "turn.completed": CodexStreamReader._turn_completed,
    "turn.failed": CodexStreamReader._turn_failed,
    "error": CodexStreamReader._error,
    "item.started": CodexStreamReader._item,
    "item.updated": CodexStreamReader._item,
    "item.completed": CodexStreamReader._item,
}
_ITEMS: dict[str, Callable[[CodexStreamReader, Record, Fields, str, bool], list[Event]]] = {
    "agent_message": CodexStreamReader._message,
    "assistant_message": CodexStreamReader._message,
    "reasoning": CodexStreamReader._reasoning,
    "error": CodexStreamReader._notice,
    "command_execution": CodexStreamReader._command,
    "file_change": CodexStreamReader._change,
    "mcp_tool_call": CodexStreamReader._mcp,
    "web_search": CodexStreamReader._search,
    "collab_tool_call": CodexStreamReader._agents,
    "todo_list": CodexStreamReader._plan,
}


def read_stream(data: bytes) -> list[Event]:
    """The events of a whole stream."""
    reader = CodexStreamReader()
    return [event for start, end in lines(data) for event in reader.feed(data[start:end])]


__all__ = ["CodexStreamReader", "read_stream"]
