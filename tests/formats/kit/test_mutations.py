"""One field of one record changed in every way: nothing raises, and whatever is told can be written down (#40)."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from harken.events.cbor import encode_events
from harken.formats import claude_code, codex, get
from support.claude_lines import assistant, attachment, boundary, call, dump, notice, progress, result, summary, user
from support.rollouts import Rollout, message

DEEP: Any = "deep"
for _ in range(300):
    DEEP = [DEEP]
ODD = {
    "a lone surrogate": "x\ud800y",
    "a NUL": "a\0b",
    "a newline": "a\nb\r\x1b[31m",
    "a huge text": "x" * 70_000,
    "a huge number": 10**40,
    "NaN": float("nan"),
    "a negative number": -1,
    "nothing": None,
    "yes": True,
    "a list": [[], {}, "x\udfff", 1],
    "an object": {"type": "\udc00", "\ud800": 1},
    "depth": DEEP,
}
CLAUDE: list[Any] = [
    {"type": "summary", "summary": "t", "leafUuid": "u0"},
    {"type": "custom-title", "customTitle": "t", "sessionId": "s"},
    user("u1", None, "q", sessionId="s", version="2"),
    assistant("a1", "u1", [{"type": "thinking", "thinking": "t", "signature": "s"}, call("c1")], "m1"),
    result("r1", "a1", "c1", toolUseResult={"agentId": "g"}),
    progress("p1", "r1", data={"agentId": "g", "message": {"message": {"id": "m9", "usage": {"output_tokens": 1}}}}),
    attachment("t1", "p1", {"type": "queued_command", "prompt": "more", "commandMode": "prompt"}),
    notice("n1", "t1", "api_error", error={"status": 529}),
    boundary("b1", preservedMessages={"anchorUuid": "s1", "uuids": ["a1"]}),
    summary("s1", "b1"),
    {"type": "last-prompt", "leafUuid": "s1", "lastPrompt": "q"},
]
CODEX: list[Any] = [
    json.loads(line)
    for line in Rollout(parent_thread_id="p", git={"branch": "b"}, base_instructions={"text": "i"})
    .turn("hello")
    .call("c1")
    .output("c1", [{"type": "input_text", "text": "x"}])
    .tokens(10, 2)
    .event("thread_name_updated", thread_name="t")
    .event("collab_agent_spawn_end", new_thread_id="n", call_id="c1")
    .event("thread_rolled_back", num_turns=1)
    .item("reasoning", summary=[{"type": "summary_text", "text": "s"}], encrypted_content="e")
    .compacted(message("user", "hello"))
    .data.splitlines()
]


def changed(value: Any, odd: Any) -> Iterator[Any]:
    """The value with each of its fields, at any depth, changed to the odd one in turn; keys too."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield {**value, key: odd}
            if isinstance(odd, str):
                yield {**value, odd: inner}
            yield from ({**value, key: one} for one in changed(inner, odd))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield [*value[:place], odd, *value[place + 1 :]]
            yield from ([*value[:place], one, *value[place + 1 :]] for one in changed(inner, odd))


def write_down(told: Any) -> None:
    """What a store does with it: JSON, and UTF-8."""
    msgspec.json.encode(told)


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize(
    ("records", "scan", "name"),
    [(CLAUDE, claude_code.scan, "claude-code-v1"), (CODEX, codex.scan, "codex-v1")],
    ids=["claude", "codex"],
)
def test_any_field_may_hold_anything(records: list[Any], scan: Callable[..., Any], name: str, odd: Any) -> None:
    known = get(name)
    plain = [dump(record) for record in records]
    for place, record in enumerate(records):
        for mutated in changed(copy.deepcopy(record), odd):
            data = b"".join([*plain[:place], dump(mutated), *plain[place + 1 :]])

            facts, events = scan(data), known.read(data)

            write_down(facts)
            json.dumps(json.loads(facts.state), ensure_ascii=False).encode()
            encode_events(events)
            assert facts.records == len(records)
            assert data == b"".join(data[d.start : d.end] for d in facts.deltas if d.commit_type == "delta")
            assert known.context(data) == known.context(known.context(data))
