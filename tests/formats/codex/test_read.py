"""A rollout as events."""

from __future__ import annotations

from harken.events import (
    Error,
    Event,
    Image,
    Metric,
    Output,
    Prompt,
    Response,
    System,
    Thinking,
    ToolCall,
    ToolResult,
)
from harken.formats.codex import read
from support.rollouts import PICTURE, Rollout, message


def told(rollout: Rollout) -> list[Event]:
    """The events behind the first line, without envelopes."""
    events = read(rollout.data)
    return [event.replace(message_id="", time=None, index=0) for event in events if event.message_id != "@0"]


def test_what_was_said() -> None:
    rollout = Rollout().developer("be nice").user("hello", "there").model("hi")

    assert told(rollout) == [
        System(subtype="instructions", message="be nice", metadata=b'{"role":"developer"}'),
        Prompt(content="hello\nthere"),
        Response(content="hi"),
    ]


def test_the_model_is_that_of_the_turn() -> None:
    events = read(Rollout().turn("a", model="one").turn("b", model="two").data)

    assert ["one", "two"] == [event.model for event in events if isinstance(event, Response)]


def test_reasoning_is_shown_as_far_as_it_can_be_read() -> None:
    summary = [{"type": "summary_text", "text": "first"}, {"type": "summary_text", "text": "second"}]
    rollout = Rollout().item("reasoning", summary=summary, encrypted_content="sealed").item("reasoning", summary=[])

    assert told(rollout) == [Thinking(content="first\nsecond", signature="sealed"), Thinking()]


def test_every_kind_of_call_and_its_output() -> None:
    rollout = (
        Rollout()
        .item("function_call", id="fc_1", name="shell", arguments='{"a": 1}', call_id="c1")
        .output("c1", "done")
        .item("custom_tool_call", name="apply_patch", input="*** Begin", call_id="c2")
        .item("custom_tool_call_output", call_id="c2", output="ok")
        .item("local_shell_call", call_id="c3", action={"type": "exec", "command": ["ls"]})
        .item("web_search_call", id="ws_1", action={"type": "search", "query": "q"})
        .item("tool_search_call", call_id="c4", execution="client", arguments={"query": "x"})
        .item("tool_search_output", call_id="c4", tools=[{"name": "t"}])
        .item("image_generation_call", id="ig_1", revised_prompt="a cat", result="QUJD")
    )

    assert told(rollout) == [
        ToolCall(id="c1", name="shell", input=b'{"a": 1}', api_id="fc_1"),
        ToolResult(id="c1", output="done"),
        ToolCall(id="c2", name="apply_patch", input=b"*** Begin"),
        ToolResult(id="c2", output="ok"),
        ToolCall(id="c3", name="local_shell", input=b'{"type":"exec","command":["ls"]}'),
        ToolCall(id="ws_1", name="web_search", input=b'{"type":"search","query":"q"}', server_tool=True, api_id="ws_1"),
        ToolCall(id="c4", name="tool_search", input=b'{"query":"x"}'),
        ToolResult(id="c4", name="tool_search", output='[{"name":"t"}]'),
        ToolCall(id="ig_1", name="image_generation", input=b'{"prompt":"a cat"}', server_tool=True, api_id="ig_1"),
        ToolResult(
            id="ig_1", name="image_generation", images=(Image(media_type="image/png", data="QUJD"),), api_id="ig_1"
        ),
    ]


def test_pictures_in_messages_and_outputs() -> None:
    parts = [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": PICTURE}]
    rollout = Rollout().item("message", role="user", content=parts).call("c").output("c", parts)
    picture = Image(media_type="image/png", data=PICTURE.partition(",")[2])

    prompt, _, result = told(rollout)

    assert prompt == Prompt(content="see", images=(picture,))
    assert result == ToolResult(id="c", output="see", images=(picture,))


def test_what_the_screen_repeats_is_not_said_twice() -> None:
    events = read(Rollout().turn("hello").event("agent_reasoning", text="hm").data)

    assert ["hello", "answer to hello"] == [e.content for e in events if isinstance(e, Prompt | Response)]


def test_in_a_file_that_has_nothing_else_the_screens_copy_speaks() -> None:
    rollout = Rollout().event("user_message", message="review").event("agent_message", message="fine")
    rollout.event("agent_reasoning", text="hm")

    events = told(rollout)

    assert [True] * 3 == [event.api_id.startswith("event_msg@") for event in events]
    assert [event.replace(api_id="") for event in events] == [
        Prompt(content="review"),
        Response(content="fine"),
        Thinking(content="hm"),
    ]


def test_a_compaction_is_a_boundary_and_what_stands_in_its_place() -> None:
    sealed = {"type": "compaction", "encrypted_content": "x"}
    rollout = Rollout().exchange("first").compacted(message("user", "first"), message("user", "new"), sealed)

    events = read(rollout.data)
    boundary = [event for event in events if event.message_id == events[-1].message_id]

    assert [0, 1, 2, 3] == [event.index for event in boundary]
    assert "compact_boundary" == boundary[0].subtype
    first = next(event for event in events if isinstance(event, Prompt))
    assert [("first", first.message_id), ("new", None)] == [(e.content, e.substance) for e in boundary[1:3]]
    assert b'{"type":"compaction","encrypted_content":"x"}' == boundary[3].metadata


def test_an_old_compaction_brings_its_summary() -> None:
    *_, boundary, summary = told(Rollout().exchange("a").add("compacted", message="SUM"))

    assert System(subtype="compact_boundary") == boundary
    assert Prompt(content="SUM", source="injected", origin="compact_summary") == summary


def test_the_first_line_says_what_the_session_is() -> None:
    init, instructions, again = read(Rollout(base_instructions={"text": "be brief"}).meta().data)

    assert isinstance(init, System)
    assert ("init", True, False) == (init.subtype, b'"cwd":"/tmp"' in init.metadata, b"brief" in init.metadata)
    assert ("instructions", "be brief", 1) == (instructions.subtype, instructions.message, instructions.index)
    assert "init" == again.subtype


def test_a_failure_an_interruption_and_a_step_back() -> None:
    rollout = Rollout().event("error", message="no network").event("turn_aborted", reason="interrupted")
    rollout.event("thread_rolled_back", num_turns=2)

    assert told(rollout) == [
        Error(message="no network"),
        System(
            subtype="turn_aborted", message="interrupted", metadata=b'{"type":"turn_aborted","reason":"interrupted"}'
        ),
        System(subtype="thread_rolled_back", metadata=b'{"type":"thread_rolled_back","num_turns":2}'),
    ]


def test_every_record_is_among_the_events_under_its_own_name() -> None:
    rollout = Rollout().turn("a").add("world_state", full=True).raw(b"{broken").raw(b"").item("telepathy", x=1)
    rollout.event("premonition").add("seance").raw(b"[1]").add("token_usage_record", usage={})
    lines = [line for line in rollout.lines if line]

    events = read(rollout.data)

    assert len(lines) == len({event.message_id for event in events})
    opaque = [event for event in events if isinstance(event, Output) and event.why]
    assert [
        "the line is not a JSON object",
        "unknown item 'telepathy'",
        "unknown event 'premonition'",
        "unknown record 'seance'",
        "the line is not a JSON object",
    ] == [event.why for event in opaque]
    assert b"{broken" == opaque[0].raw


def test_a_name_is_the_place_in_the_file() -> None:
    data = Rollout().user("hello").data

    prompt = read(data)[-1]

    assert f"@{data.index(chr(10).encode()) + 1}" == prompt.message_id


def test_a_damaged_item_is_kept_with_the_reason() -> None:
    rollout = Rollout().item("message", role="user", content=[{"type": "input_image", "image_url": {"x": 1}}])

    (event,) = told(rollout)

    assert isinstance(event, Output)
    assert "damaged response_item: KeyError" == event.why


def test_lone_surrogates_become_visible() -> None:
    (prompt,) = told(Rollout().user("a\ud800b"))

    assert Prompt(content="a�b") == prompt


def test_the_bare_lines_of_the_first_versions() -> None:
    data = b"""{"id":"t1","timestamp":"2025-07-01T00:00:00Z","instructions":"be brief","git":{}}
{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}
{"record_type":"state"}
{"type":"function_call","name":"shell","arguments":"{}","call_id":"c1"}
{"type":"function_call_output","call_id":"c1","output":{"content":"no","success":false}}
{"created_at":"2025-07-01T00:00:01Z","role":"assistant","content":"bye"}
"""

    events = read(data)

    assert [System, System, Prompt, Output, ToolCall, ToolResult, Response] == [type(event) for event in events]
    assert ["be brief", "hello", "bye"] == [events[1].message, events[2].content, events[6].content]
    assert ("no", True) == (events[5].output, events[5].is_error)
    assert events[6].time is not None


def test_totals_become_steps_that_add_up_to_the_last_total() -> None:
    rollout = Rollout().tokens(100, 10, 40).tokens(100, 10, 40).event("token_count", info=None).tokens(300, 30, 200)

    metrics = [event for event in read(rollout.data) if isinstance(event, Metric)]

    assert [(60, 10, 40), (40, 20, 160)] == [(m.input_tokens, m.output_tokens, m.cache_read_tokens) for m in metrics]
    assert 2 == len({(metric.api_id, metric.request_id) for metric in metrics})
