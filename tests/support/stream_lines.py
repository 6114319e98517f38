"""Lines as Claude Code and Codex print them, in the shapes their current versions use."""

from __future__ import annotations

from typing import Any

SESSION = "5b6258c8-5c25-4e31-81dd-09c6c2f6fa67"
THREAD = "01a1deb4-dffc-7cc3-bb2a-e6fd2a2a0c2c"
Line = dict[str, Any]


def step(line: Line) -> Line:
    """A line as a step of the fake runtime."""
    return {"line": line}


def init(session: str = SESSION) -> Line:
    return step({"type": "system", "subtype": "init", "session_id": session, "model": "m", "tools": [], "uuid": "u0"})


def _assistant(number: int, block: Line, **more: Any) -> Line:
    usage = {"input_tokens": 10, "output_tokens": 3}
    message = {"id": f"msg_{number}", "role": "assistant", "model": "m", "content": [block], "usage": usage}
    return step(
        {"type": "assistant", "message": message, "session_id": SESSION, "uuid": f"a{number}-{id(block)}"} | more
    )


def says(text: str, number: int = 1, **more: Any) -> Line:
    return _assistant(number, {"type": "text", "text": text}, **more)


def calls(name: str, call: str, number: int = 1, **more: Any) -> Line:
    block = {"type": "tool_use", "id": call, "name": name, "input": more.pop("input", {"command": "x"})}
    return _assistant(number, block, **more)


def answers(call: str, text: str, **more: Any) -> Line:
    block = {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": False}
    message = {"role": "user", "content": [block]}
    return step({"type": "user", "message": message, "session_id": SESSION, "uuid": f"r-{call}"} | more)


def result(text: str, **more: Any) -> Line:
    line = {"type": "result", "subtype": "success", "is_error": False, "result": text, "num_turns": 1}
    line |= {"total_cost_usd": 0.5, "duration_ms": 1200, "usage": {"input_tokens": 10, "output_tokens": 3}}
    return step(line | {"session_id": SESSION, "uuid": "end"} | more)


def thread() -> Line:
    return step({"type": "thread.started", "thread_id": THREAD})


def item(kind: str, number: int, *, state: str = "completed", **fields: Any) -> Line:
    return step({"type": f"item.{state}", "item": {"id": f"item_{number}", "type": kind} | fields})


def turn_completed() -> Line:
    usage = {"input_tokens": 20, "cached_input_tokens": 0, "output_tokens": 5, "reasoning_output_tokens": 0}
    return step({"type": "turn.completed", "usage": usage})
