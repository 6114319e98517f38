"""What `codex exec --json` prints, line by line. The first sample is what Codex 0.166.0 printed."""

from __future__ import annotations

import pytest

from harken.events import Error, Event, Metric, Output, Response, System, Thinking, Tokens, ToolCall, ToolResult
from harken.events.tally import Tally
from harken.formats.codex_stream import CodexStreamReader, read_stream

REAL = rb"""{"type":"thread.started","thread_id":"01a1decc"}
{"type":"item.completed","item":{"id":"item_0","type":"error","message":"Model metadata not found."}}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"item_1","type":"reasoning","text":"**Thinking**"}}
{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"I will look."}}
{"type":"item.started","item":{"id":"item_3","type":"command_execution","command":"ls /no","aggregated_output":"","exit_code":null,"status":"in_progress"}}
{"type":"item.completed","item":{"id":"item_3","type":"command_execution","command":"ls /no","aggregated_output":"gone\n","exit_code":2,"status":"failed"}}
{"type":"item.started","item":{"id":"item_4","type":"web_search","id":"ws_1","query":"weather","action":{"type":"search","query":"weather"}}}
{"type":"item.completed","item":{"id":"item_4","type":"web_search","id":"ws_1","query":"weather","action":{"type":"search","query":"weather"}}}
{"type":"item.completed","item":{"id":"item_6","type":"agent_message","text":"All done."}}
{"type":"turn.completed","usage":{"input_tokens":600,"cached_input_tokens":150,"cache_write_input_tokens":0,"output_tokens":60,"reasoning_output_tokens":15}}
"""  # noqa: E501


def plain(events: list[Event]) -> list[Event]:
    return [event.replace(message_id="", index=0) for event in events]


def test_a_run() -> None:
    assert plain(read_stream(REAL)) == [
        System(subtype="init", metadata=b'{"session_id":"01a1decc"}'),
        Error(message="Model metadata not found."),
        Thinking(content="**Thinking**"),
        Response(content="I will look."),
        ToolCall(id="01a1decc:item_3", name="exec_command", input=b'{"cmd":"ls /no"}'),
        ToolResult(id="01a1decc:item_3", name="exec_command", output="gone\n", is_error=True),
        ToolCall(id="01a1decc:ws_1", name="web_search", input=b'{"type":"search","query":"weather"}', server_tool=True),
        Response(content="All done."),
        Metric(
            input_tokens=450,
            output_tokens=60,
            cache_read_tokens=150,
            cache_write_tokens=0,
            api_id="codex:01a1decc",
            scope="total",
        ),
        Metric(status="success", turn_count=1),
    ]


def test_every_record_has_a_name_of_its_own() -> None:
    names = [(event.message_id, event.index) for event in read_stream(REAL)]

    assert len(names) == len(set(names))


def test_two_runs_of_one_thread_keep_their_calls_apart() -> None:
    line = b'{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"ls","exit_code":0}}'
    ids = []
    for run in ("1", "2"):
        reader = CodexStreamReader(run)
        reader.feed(b'{"type":"thread.started","thread_id":"t"}')
        ids += [event.id for event in reader.feed(line) if isinstance(event, ToolCall)]

    assert ["t:1:item_0", "t:2:item_0"] == ids


@pytest.mark.parametrize(
    ("item", "name", "output", "failed"),
    [
        ('"type":"file_change","changes":[{"path":"a","kind":"add"}],"status":"completed"', "apply_patch", "", False),
        (
            '"type":"mcp_tool_call","server":"s","tool":"t","arguments":{},"result":{"ok":1},"status":"completed"',
            "mcp__s__t",
            '{"ok":1}',
            False,
        ),
        (
            '"type":"mcp_tool_call","server":"s","tool":"t","arguments":{},"error":{"message":"no"}',
            "mcp__s__t",
            '{"message":"no"}',
            True,
        ),
        ('"type":"collab_tool_call","tool":"spawn_agent","prompt":"go","agents_states":{}', "spawn_agent", "", False),
        (
            '"type":"collab_tool_call","tool":"spawn_agent","agents_states":{"t":{"status":"pending_init","message":null}}',
            "spawn_agent",
            '{"agent_id":"t"}',
            False,
        ),
        (
            '"type":"collab_tool_call","tool":"wait","agents_states":{"t":{"status":"completed","message":"Done."},'
            '"u":{"status":"running","message":null},"v":7}',
            "wait",
            '{"status":{"t":{"completed":"Done."},"u":"running","v":7}}',
            False,
        ),
    ],
)
def test_a_tool(item: str, name: str, output: str, failed: bool) -> None:
    """A call that is seen only when it is done is told as a call and its result."""
    reader = CodexStreamReader()

    call, result = reader.feed(f'{{"type":"item.completed","item":{{"id":"i",{item}}}}}')

    assert isinstance(call, ToolCall) and isinstance(result, ToolResult)
    assert (name, name, "i", output, failed) == (call.name, result.name, result.id, result.output, result.is_error)
    assert [0, 1] == [call.index, result.index]


def test_updates_do_not_repeat_a_call() -> None:
    reader = CodexStreamReader()
    item = '{"id":"i","type":"command_execution","command":"ls","aggregated_output":"a"}'

    kinds = [
        event.kind
        for step in ("item.started", "item.updated", "item.completed")
        for event in reader.feed(f'{{"type":"{step}","item":{item}}}')
    ]

    assert ["tool_call", "tool_result"] == kinds


def test_the_list_of_things_to_do_is_a_notice() -> None:
    line = b'{"type":"item.updated","item":{"id":"i","type":"todo_list","items":[{"text":"a","completed":true}]}}'

    assert [System(subtype="todo_list", metadata=b'[{"text":"a","completed":true}]')] == plain(
        CodexStreamReader().feed(line)
    )


def test_a_turn_that_failed() -> None:
    events = CodexStreamReader().feed(b'{"type":"turn.failed","error":{"message":"quota"}}')

    assert [Error(message="quota"), Metric(status="error_during_execution", turn_count=1)] == plain(events)


def test_the_total_of_a_thread_counts_once_over_turns_and_runs() -> None:
    events: list[Event] = []
    for run, totals in enumerate([((100, 10), (150, 12)), ((400, 30),)]):
        reader = CodexStreamReader(str(run))
        reader.feed(b'{"type":"thread.started","thread_id":"t"}')
        for total in totals:
            events += reader.feed(b'{"type":"turn.completed","usage":{"input_tokens":%d,"output_tokens":%d}}' % total)

    assert Tokens(input=400, output=30) == Tally.of(events).tokens


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b'{"type":"novel"}', b'{"type":"item.completed","item":{"type":"novel"}}', b"\xff", "\ud800"]
)
def test_what_cannot_be_read_is_kept_with_the_reason(line: bytes | str) -> None:
    (event,) = CodexStreamReader().feed(line)

    assert isinstance(event, Output)
    assert event.why


def test_an_empty_line_says_nothing() -> None:
    assert [] == CodexStreamReader().feed(b"\r\n")
