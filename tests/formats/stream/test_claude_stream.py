"""`claude-stream-v1`: what Claude Code prints is read as it comes, in the real shape and in the specification's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harken.analytics import stats
from harken.events import Error, Metric, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.formats.claude_stream import FORMAT, ClaudeStreamReader
from support.recordings import named, streams


def lines(*records: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def assistant(*blocks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    message = {"id": "msg_1", "role": "assistant", "model": "m", "content": list(blocks)}
    if tokens := fields.pop("usage", None):
        message["usage"] = tokens
    return {
        "type": "assistant",
        "message": message,
        "session_id": "S",
        "uuid": "u1",
        "parent_tool_use_id": None,
    } | fields


class TestTheRealShape:
    def test_blocks_become_events_that_share_their_record_and_message(self) -> None:
        record = assistant(
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "text", "text": "Hello"},
            {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "/a"}},
        )

        thinking, said, call = FORMAT.read(lines(record))

        assert Thinking(content="hm", signature="sig", message_id="u1", api_id="msg_1") == thinking
        assert Response(content="Hello", model="m", message_id="u1", api_id="msg_1", index=1) == said
        assert isinstance(call, ToolCall)
        assert ("t1", "Read", {"path": "/a"}, 2) == (call.id, call.name, json.loads(call.input), call.index)

    @pytest.mark.parametrize(
        ("content", "output"),
        [("plain", "plain"), ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "one\ntwo")],
    )
    def test_results_arrive_in_the_users_place(self, content: Any, output: str) -> None:
        block = {"type": "tool_result", "tool_use_id": "t1", "content": content, "is_error": True}
        record = {"type": "user", "message": {"role": "user", "content": [block]}, "session_id": "S", "uuid": "u2"}

        (result,) = FORMAT.read(lines(record))

        assert isinstance(result, ToolResult)
        assert ("t1", True, output) == (result.id, result.is_error, result.output)

    def test_a_sub_agents_lines_are_its_own(self) -> None:
        (said,) = FORMAT.read(
            lines(assistant({"type": "text", "text": "found"}, parent_tool_use_id="t9", agent_id="a1"))
        )

        assert "a1" == said.agent_id

    def test_a_compaction_is_a_boundary_with_its_figures(self) -> None:
        record = {"type": "system", "subtype": "compact_boundary", "compact_metadata": {"pre_tokens": 9}, "uuid": "u3"}

        (event,) = FORMAT.read(lines(record))

        assert isinstance(event, System)
        assert ("compact_boundary", 9) == (event.subtype, json.loads(event.metadata)["compact_metadata"]["pre_tokens"])

    def test_cost_is_that_of_the_whole_process_and_tokens_count_once(self) -> None:
        def result(cost: float, tokens: int) -> dict[str, Any]:
            models = {"m": {"inputTokens": tokens, "outputTokens": tokens}}
            return {
                "type": "result",
                "subtype": "success",
                "total_cost_usd": cost,
                "modelUsage": models,
                "num_turns": 1,
            }

        events = FORMAT.read(lines(result(0.001, 10), result(0.003, 25)))

        total = stats(events)
        assert (25, 25, 3000) == (total.usage.input, total.usage.output, total.cost_usd_micros)
        assert ["success", "success"] == [event.status for event in events if isinstance(event, Metric)]

    def test_a_run_that_failed_says_so(self) -> None:
        record = {"type": "result", "subtype": "error_during_execution", "is_error": True, "result": "it broke"}

        events = FORMAT.read(lines(record))

        assert ["it broke"] == [event.message for event in events if isinstance(event, Error)]
        assert ["error_during_execution"] == [event.status for event in events if isinstance(event, Metric)]


class TestTheSpecificationsShape:
    @pytest.mark.parametrize(
        ("record", "expected"),
        [
            ({"type": "assistant", "subtype": "text", "text": "Hello"}, Response(content="Hello")),
            (
                {"type": "assistant", "subtype": "thinking", "thinking": "hm", "signature": "s"},
                Thinking(content="hm", signature="s"),
            ),
            (
                {"type": "assistant", "subtype": "tool_use", "tool_use_id": "t1", "name": "Read", "input": {"a": 1}},
                ToolCall(id="t1", name="Read", input=b'{"a":1}'),
            ),
            (
                {"type": "assistant", "subtype": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
                ToolCall(id="s1", name="web_search", input=b"{}", server_tool=True),
            ),
            (
                {"type": "tool", "subtype": "result", "tool_use_id": "t1", "is_error": False, "content": "done"},
                ToolResult(id="t1", output="done"),
            ),
            ({"type": "user", "content": "go on"}, Prompt(content="go on")),
            (
                {"type": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                Prompt(content="a\nb"),
            ),
        ],
    )
    def test_each_line_is_one_event(self, record: dict[str, Any], expected: Any) -> None:
        assert [expected.replace(message_id="@0")] == FORMAT.read(lines(record))


class TestDirt:
    def test_what_is_not_json_is_kept_with_the_reason(self) -> None:
        (event,) = FORMAT.read(b"npm warn something\n")

        assert isinstance(event, Output)
        assert (b"npm warn something", "the line is not a JSON object") == (event.raw, event.why)

    def test_an_unknown_type_is_kept_whole(self) -> None:
        data = lines({"type": "telepathy", "to": "Jill"})

        (event,) = FORMAT.read(data)

        assert isinstance(event, Output)
        assert (data.strip(), "unknown record type 'telepathy'") == (event.raw, event.why)

    def test_an_array_is_read_like_lines(self) -> None:
        records = [assistant({"type": "text", "text": "one"}), assistant({"type": "text", "text": "two"}, uuid="u2")]

        assert FORMAT.read(lines(*records)) == FORMAT.read(json.dumps(records, indent=2).encode())

    def test_a_line_of_two_megabytes_is_a_line(self) -> None:
        (event,) = FORMAT.read(lines(assistant({"type": "text", "text": "x" * 2_000_000})))

        assert isinstance(event, Response)
        assert 2_000_000 == len(event.content)

    def test_a_stream_fed_line_by_line_gives_what_the_whole_gives(self) -> None:
        data = lines(
            {"type": "system", "subtype": "init", "session_id": "S", "uuid": "u0"},
            assistant({"type": "text", "text": "Hello"}, usage={"input_tokens": 1, "output_tokens": 2}),
            {"type": "result", "subtype": "success", "uuid": "u9"},
        )
        reader = ClaudeStreamReader()

        fed = [event for line in data.splitlines(keepends=True) for event in reader.feed(line)]

        assert FORMAT.read(data) == fed
        assert "S" == reader.session_id


class TestRealStreams:
    @pytest.mark.parametrize("path", streams("claude-code"), ids=named)
    def test_every_record_of_a_real_stream_is_understood(self, path: Path) -> None:
        data = path.read_bytes()

        events = FORMAT.read(data)

        # One of the files begins with a comment of its collector, which is no record.
        opaque = [event for event in events if isinstance(event, Output) and event.why]
        assert events
        assert [] == [event.why for event in opaque if not event.raw.startswith(b"#")]

    def test_what_was_said_and_done_in_a_real_stream_is_there(self) -> None:
        for path in [path for path in streams("claude-code") if "generated" in str(path) or "recorded" in path.parts]:
            events = FORMAT.read(path.read_bytes())
            blocks = [
                block
                for record in map(json.loads, path.read_bytes().splitlines())
                if record["type"] in ("assistant", "user") and isinstance(record["message"]["content"], list)
                for block in record["message"]["content"]
            ]

            assert [b["id"] for b in blocks if b["type"] == "tool_use"] == [
                event.id for event in events if isinstance(event, ToolCall)
            ]
            assert [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"] == [
                event.id for event in events if isinstance(event, ToolResult)
            ]
