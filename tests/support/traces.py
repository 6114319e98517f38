"""Traces of OpenTelemetry as instrumentations write them, in several generations of the conventions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

SECOND = 1_000_000_000
BEGIN = 1_790_000_000 * SECOND
TRACE = "5b8efff798038103d269b633813fc60c"


def value(given: Any) -> dict[str, Any]:
    """A value as OTLP/JSON has it."""
    if isinstance(given, bool):
        return {"boolValue": given}
    if isinstance(given, int):
        return {"intValue": str(given)}
    if isinstance(given, float):
        return {"doubleValue": given}
    if isinstance(given, list):
        return {"arrayValue": {"values": [value(one) for one in given]}}
    if isinstance(given, dict):
        return {"kvlistValue": {"values": attributes(given)}}
    return {"stringValue": given}


def attributes(given: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value(one)} for key, one in given.items()]


def span(
    id: str,
    name: str,
    about: dict[str, Any],
    *,
    at: float = 0,
    lasts: float = 1,
    parent: str = "",
    events: Sequence[tuple[str, dict[str, Any]]] = (),
    failed: str | None = None,
    trace: str = TRACE,
) -> dict[str, Any]:
    """A span that begins so many seconds after the first."""
    begin = BEGIN + int(at * SECOND)
    return {
        "traceId": trace,
        "spanId": id,
        **({"parentSpanId": parent} if parent else {}),
        "name": name,
        "kind": 3,
        "startTimeUnixNano": str(begin),
        "endTimeUnixNano": str(begin + int(lasts * SECOND)),
        "attributes": attributes(about),
        "events": [{"timeUnixNano": str(begin), "name": name, "attributes": attributes(said)} for name, said in events],
        "status": {} if failed is None else {"code": 2, "message": failed},
    }


def document(*spans: dict[str, Any]) -> bytes:
    scope = {"scope": {"name": "an.instrumentation"}, "spans": list(spans)}
    resource = {"attributes": attributes({"service.name": "app"})}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}).encode()


def logs(*records: dict[str, Any]) -> bytes:
    scope = {"scope": {"name": "an.instrumentation"}, "logRecords": list(records)}
    return json.dumps({"resourceLogs": [{"resource": {}, "scopeLogs": [scope]}]}).encode()


def log(name: str, body: Any = None, about: dict[str, Any] | None = None, *, span: str = "", at: float = 0) -> Any:
    """A log record that is an event."""
    made = {"timeUnixNano": str(BEGIN + int(at * SECOND)), "traceId": TRACE, "spanId": span, "eventName": name}
    return {**made, "attributes": attributes(about or {}), **({} if body is None else {"body": value(body)})}


def said(role: str, *parts: Any, **more: Any) -> dict[str, Any]:
    """A message of the conventions; a text is a part of words."""
    made = [{"type": "text", "content": part} if isinstance(part, str) else part for part in parts]
    return {"role": role, "parts": made, **more}


def call(id: str, name: str, given: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": id, "name": name, "arguments": given}


def result(id: str, response: Any) -> dict[str, Any]:
    return {"type": "tool_call_response", "id": id, "response": response}


def chat(id: str, sent: Sequence[Any], heard: Sequence[Any], about: dict[str, Any] | None = None, **more: Any) -> Any:
    """A call of a model, by the newest conventions."""
    told: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1", **(about or {})}
    if sent:
        told["gen_ai.input.messages"] = json.dumps(list(sent))
    if heard:
        told["gen_ai.output.messages"] = json.dumps(list(heard))
    return span(id, "chat m-1", told, **more)


def agent(id: str, name: str, about: dict[str, Any] | None = None, **more: Any) -> Any:
    told = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name, **(about or {})}
    return span(id, f"invoke_agent {name}", told, **more)


def tool(id: str, name: str, call: str, given: Any = None, answer: Any = None, **more: Any) -> Any:
    told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": call}
    told |= {} if given is None else {"gen_ai.tool.call.arguments": json.dumps(given)}
    told |= {} if answer is None else {"gen_ai.tool.call.result": answer}
    return span(id, f"execute_tool {name}", told, **more)


ASKED = said("user", "What is the weather in Rome?")
CALLED = said("assistant", call("c1", "weather", {"city": "Rome"}))
ANSWERED = said("tool", result("c1", "sunny"))
TOLD = said("assistant", "It is sunny.")

LOOP = (
    agent("a1", "guide", {"gen_ai.usage.input_tokens": 30, "gen_ai.usage.output_tokens": 9}, lasts=5),
    chat(
        "b1",
        [ASKED],
        [{**CALLED, "finish_reason": "tool_call"}],
        {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 4, "gen_ai.response.id": "r1"},
        parent="a1",
    ),
    tool("b2", "weather", "c1", {"city": "Rome"}, "sunny", at=1, parent="a1"),
    chat(
        "b3",
        [ASKED, CALLED, ANSWERED],
        [{**TOLD, "finish_reason": "stop"}],
        {
            "gen_ai.usage.input_tokens": 20,
            "gen_ai.usage.output_tokens": 5,
            "gen_ai.usage.cache_read.input_tokens": 8,
            "gen_ai.response.id": "r2",
            "gen_ai.response.model": "m-1-2026",
        },
        at=2,
        parent="a1",
    ),
)
"""An agent that uses a tool."""
SAMPLES = (document(*LOOP), b"\n".join(document(one) for one in reversed(LOOP)) + b"\n")
ASKS = said("assistant", call("c9", "research", {}))
FIND, FOUND = said("user", "Find it."), said("tool", result("c9", "Found."))
AGENTS = (
    agent("1", "boss", lasts=20),
    chat("2", [ASKED], [ASKS], {"gen_ai.usage.output_tokens": 1}, parent="1"),
    tool("3", "research", "c9", at=2, lasts=6, parent="1"),
    span("4", "POST /mcp", {"http.route": "/mcp"}, at=3, lasts=4, parent="3"),
    agent("5", "helper", at=3, lasts=4, parent="4"),
    chat("6", [FIND], [said("assistant", "Found.")], {"gen_ai.usage.output_tokens": 2}, at=4, parent="5"),
    chat("7", [ASKED, ASKS, FOUND], [TOLD], {"gen_ai.usage.output_tokens": 4}, at=10, parent="1"),
)
"""An agent whose tool asks another agent."""
