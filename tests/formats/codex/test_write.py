"""Conversations of any origin as rollouts that Codex resumes."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from harken.events import Event, Image, Metric, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.formats.codex import FORMAT, context, read, request_items, rewrite, with_base, write, write_session
from harken.formats.codex.write import in_present_shape
from support.rollouts import PICTURE, THREAD, Rollout, message, texts_of

NEW = "01a1dec9-55eb-7972-87c7-b70fb9cc6700"
NOON = 1_794_739_067_123_456
PNG = Image(media_type="image/png", data=PICTURE.partition(",")[2])

FOREIGN: list[Event] = [
    System(subtype="init", message="hi"),
    System(subtype="instructions", message="be nice"),
    Prompt(content="look", images=(PNG,), time=NOON),
    Thinking(content="hm", signature="foreign"),
    Response(content="I look"),
    ToolCall(id="toolu_1", name="Bash", input=b'{"command":"ls"}'),
    ToolCall(id="toolu_2", name="Read", input=b'{"file":"a"}'),
    ToolResult(id="toolu_1", output="a.txt"),
    ToolResult(id="toolu_2", output="hello", images=(PNG,)),
    Prompt(content="<system-reminder>x</system-reminder>", source="injected"),
    Metric(input_tokens=1),
    Response(content="done"),
]


def lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def lost(events: list[Event]) -> dict[str, int]:
    return {loss.what: loss.count for loss in write(events).losses}


def test_a_session_meta_and_then_items() -> None:
    first, *rest = lines(write_session(FOREIGN, session_id=NEW, cwd="/work", time=NOON).data)

    assert first == {
        "timestamp": "2026-11-15T10:37:47.123Z",
        "type": "session_meta",
        "payload": {
            "id": NEW,
            "session_id": NEW,
            "timestamp": "2026-11-15T10:37:47.123Z",
            "cwd": "/work",
            "originator": "harken",
            "cli_version": "0.166.0",
            "source": "cli",
        },
    }
    assert {"response_item", "event_msg"} == {line["type"] for line in rest}


def test_what_people_and_the_model_said_is_shown_on_the_screen() -> None:
    """#24: Codex shows its events, and lists no thread in which nobody speaks."""
    events = [
        Prompt(content="look", images=(PNG,)),
        Prompt(content="<environment_context>x</environment_context>", source="injected"),
        Response(content="I look"),
    ]
    data = write_session(events, session_id=NEW, cwd="/work", time=NOON, provider="lab").data

    first, *rest = lines(data)
    assert "lab" == first["payload"]["model_provider"]
    assert [("user_message", "look"), ("agent_message", "I look")] == [
        (line["payload"]["type"], line["payload"]["message"]) for line in rest if line["type"] == "event_msg"
    ]
    said = [event.content for event in read(data) if isinstance(event, Prompt | Response)]
    assert ["look", "<environment_context>x</environment_context>", "I look"] == said


def test_what_nobody_typed_is_for_the_model_and_not_on_the_screen() -> None:
    put_in = [
        Prompt(content="<command-name>/compact</command-name>", source="injected", origin="command"),
        Prompt(content="<local-command-stdout>Done</local-command-stdout>", source="injected", origin="bash_output"),
        Prompt(content="<task-notification>x</task-notification>", source="injected", origin="task_notification"),
    ]
    data = write_session([*put_in, Prompt(content="go on")], session_id=NEW, cwd="/work", time=NOON).data

    assert ["go on"] == [line["payload"]["message"] for line in lines(data) if line["type"] == "event_msg"]
    assert [*(event.content for event in put_in), "go on"] == [
        item["content"][0]["text"] for item in request_items(data)
    ]
    assert ["injected"] * 3 + ["user"] == [event.source for event in read(data) if isinstance(event, Prompt)]


def test_what_an_agent_told_its_sub_agent_is_on_the_screen() -> None:
    """Codex lists no thread in which nobody speaks."""
    events = [Prompt(content="look into it", source="injected", origin="agent"), Response(content="I do")]
    data = write_session(events, session_id=NEW, cwd="/work", time=NOON).data

    assert ["look into it", "I do"] == [
        line["payload"]["message"] for line in lines(data) if line["type"] == "event_msg"
    ]


def test_what_was_said_goes_out_in_order_with_names_and_ids_as_they_were() -> None:
    sent = request_items(write(FOREIGN).data)

    assert [
        "be nice",
        "look|picture",
        "I look",
        "function_call toolu_1",
        "function_call toolu_2",
        "function_call_output toolu_1 a.txt",
    ] == texts_of(sent)[:6]
    assert ["Bash", "Read"] == [item["name"] for item in sent if item["type"] == "function_call"]
    assert '{"command":"ls"}' == sent[3]["arguments"]
    assert [{"type": "input_text", "text": "hello"}, {"type": "input_image", "image_url": PICTURE}] == sent[6]["output"]
    assert ["<system-reminder>x</system-reminder>", "done"] == texts_of(sent[7:])
    assert ["developer", "user", "assistant", "user", "assistant"] == [
        i["role"] for i in sent if i["type"] == "message"
    ]


def test_nothing_else_is_lost_than_thinking() -> None:
    assert {"thinking": 1} == lost(FOREIGN)


def test_an_unanswered_call_is_answered_and_told() -> None:
    events: list[Event] = [ToolCall(id="a", name="Bash", input=b"{}"), Response(content="on")]

    assert ["function_call a", "function_call_output a aborted", "on"] == texts_of(request_items(write(events).data))
    assert {"result of a tool call": 1} == lost(events)


@pytest.mark.parametrize(
    ("event", "what"),
    [
        (ToolResult(id="nobody", output="x"), "tool result without its call"),
        (Prompt(content="see", images=(Image(url="https://x/y.png"),)), "picture"),
        (Prompt(content="see", images=(Image(media_type="image/png", data="AAAA"),)), "picture"),
        (ToolCall(id="s", name="code_execution", input=b"{}", server_tool=True), "provider's own tool call"),
        (Output(raw=b"x", why="bad"), "unreadable record"),
    ],
)
def test_a_loss(event: Event, what: str) -> None:
    assert {what: 1} == lost([event])


def test_the_second_answer_to_a_call_and_the_mark_of_an_error_are_lost() -> None:
    call = ToolCall(id="a", name="Bash", input=b"{}")

    assert {"error mark": 1, "repeated tool result": 1} == lost(
        [call, ToolResult(id="a", output="1", is_error=True), ToolResult(id="a", output="2")]
    )


def test_a_call_that_is_told_twice_is_answered_twice() -> None:
    pair: list[Event] = [ToolCall(id="a", name="Bash", input=b"{}"), ToolResult(id="a", output="1")]

    assert {} == lost(pair * 2)
    assert 4 == len(request_items(write(pair * 2).data))


def test_what_came_from_codex_becomes_the_same_items_again() -> None:
    rollout = (
        Rollout()
        .developer("dev")
        .user("hello")
        .item("reasoning", summary=[{"type": "summary_text", "text": "hm"}], encrypted_content="sealed")
        .item("custom_tool_call", name="apply_patch", input="*** Begin", call_id="c1", status="completed")
        .item("custom_tool_call_output", call_id="c1", output="ok")
        .item("local_shell_call", call_id="c2", status="completed", action={"type": "exec", "command": ["ls"]})
        .output("c2", "a")
        .item("tool_search_call", call_id="c3", status="completed", execution="client", arguments={"query": "x"})
        .item("tool_search_output", call_id="c3", status="completed", execution="client", tools=[{"name": "t"}])
        .item("web_search_call", status="completed", action={"type": "search", "query": "q"})
        .item("function_call", id="fc_1", name="f", arguments="not json", call_id="c4")
        .output("c4")
        .compacted(message("user", "again"), {"type": "compaction", "encrypted_content": "sealed"})
        .model("bye")
    )
    before = request_items(rollout.data.replace(b"compacted", b"world_state"))

    after = request_items(write(read(rollout.data.replace(b"compacted", b"world_state"))).data)

    assert [{key: value for key, value in item.items() if key != "id"} for item in before] == after
    assert request_items(rollout.data) == request_items(write(read(context(rollout.data))).data)
    assert () == FORMAT.write(read(rollout.data)).losses


def test_the_same_events_give_the_same_bytes_and_an_id_of_codexs_shape() -> None:
    one, other = write(FOREIGN).data, write(FOREIGN[:-1]).data

    thread = lines(one)[0]["payload"]["id"]
    assert one == write(FOREIGN).data
    assert thread != lines(other)[0]["payload"]["id"]
    assert 7 == uuid.UUID(thread).version
    assert uuid.RFC_4122 == uuid.UUID(thread).variant


class TestAnotherThread:
    """The same runtime gets its own lines back."""

    data = Rollout(model_provider="openai", base_instructions={"text": "be brief"}, source={"subagent": "review"})
    data.turn("hello").meta(model_provider="openai").raw(b"{broken").tokens(10, 2)

    def test_the_lines_are_verbatim_behind_a_new_first_one(self) -> None:
        first, *rest = rewrite(self.data.data, session_id=NEW, cwd="/there", time=NOON).splitlines()

        assert [line for line in self.data.lines if b"session_meta" not in line] == rest
        payload = json.loads(first)["payload"]
        assert (NEW, "/there", THREAD, "cli") == tuple(
            payload[key] for key in ("id", "cwd", "forked_from_id", "source")
        )
        assert {"text": "be brief"} == payload["base_instructions"]
        assert "model_provider" not in payload

    def test_events_name_the_new_thread_and_are_read_as_before(self) -> None:
        """#24: Codex showed none of those that named another thread. Usage stays that of the thread that paid."""
        data = Rollout(history_mode="paginated").turn("hello")
        data.event("item_completed", thread_id=THREAD, item={"type": "AgentMessage", "id": "m"})
        data.add("token_usage_record", thread_id=THREAD, response_id="r")

        moved = lines(rewrite(data.data, session_id=NEW, provider="lab"))

        assert ("paginated", "lab") == tuple(moved[0]["payload"][key] for key in ("history_mode", "model_provider"))
        assert [NEW, THREAD] == [line["payload"]["thread_id"] for line in moved if "thread_id" in line["payload"]]

    def test_a_way_of_telling_that_codex_does_not_know_stays_behind(self) -> None:
        """It refuses the file otherwise."""
        data = Rollout(history_mode="default").turn("hello")

        assert "history_mode" not in lines(rewrite(data.data, session_id=NEW))[0]["payload"]

    def test_what_has_no_events_gets_them(self) -> None:
        """#24: the files of the first versions came up blank."""
        data = Rollout()
        data.lines = [line for line in data.turn("hello").lines if b"event_msg" not in line]
        shown = [line["payload"] for line in lines(rewrite(data.data, session_id=NEW)) if line["type"] == "event_msg"]

        assert ["hello"] == [payload["message"] for payload in shown if payload["type"] == "user_message"]
        assert ["agent_message"] == [payload["type"] for payload in shown[1:]]

    def test_it_says_the_same_to_the_model(self) -> None:
        moved = rewrite(self.data.data, session_id=NEW)

        assert request_items(self.data.data) == request_items(moved)

    def test_moving_it_again_changes_the_first_line_alone(self) -> None:
        once = rewrite(self.data.data, session_id=NEW, cwd="/there", time=NOON)
        twice = rewrite(once, session_id=THREAD, cwd="/there", time=NOON)

        assert once.splitlines()[1:] == twice.splitlines()[1:]
        assert NEW == lines(twice.partition(b"\n")[0])[0]["payload"]["forked_from_id"]

    def test_a_torn_last_line_is_closed(self) -> None:
        moved = rewrite(self.data.data + b'{"torn', session_id=NEW)

        assert moved.endswith(b'{"torn\n')

    def test_bare_lines_are_wrapped_so_that_todays_codex_reads_them(self) -> None:
        old = b"""{"id":"t1","timestamp":"2025-07-01T00:00:00Z","instructions":null}
{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}
{"record_type":"state"}
{"role":"assistant","content":"hi"}
"""

        moved = rewrite(old, session_id=NEW)

        items = [line["type"] for line in lines(moved) if line["type"] != "event_msg"]
        assert ["session_meta", "response_item", "response_item"] == items
        assert ["hello", "hi"] == texts_of(request_items(moved))
        assert "forked_from_id" not in lines(moved)[0]["payload"]

    def test_a_bare_compaction_is_wrapped_too(self) -> None:
        old = (
            b'{"id":"t1","timestamp":"2025-07-01T00:00:00Z","instructions":null}\n'
            b'{"role":"user","content":"hello"}\n{"type":"compacted","message":"SUMMED UP"}\n'
        )

        assert ["hello", "SUMMED UP"] == texts_of(request_items(old))
        assert ["hello", "SUMMED UP"] == texts_of(request_items(rewrite(old, session_id=NEW)))

    def test_a_bare_line_that_nobody_knows_stays_as_it_is(self) -> None:
        unknown = b'{"type":"function_result","call_id":"c1","output":"a.txt"}\n'

        assert rewrite(self.data.data + unknown, session_id=NEW).endswith(unknown)
        assert in_present_shape(self.data.data + unknown) is None

    def test_bytes_without_a_first_line_get_one(self) -> None:
        assert "session_meta" == lines(rewrite(b"", session_id=NEW))[0]["type"]


class TestAForkThatOnlyPoints:
    """Since 0.160 a fork names the bytes it goes on from instead of copying them."""

    base = Rollout(id="old").turn("one").turn("two").data

    def fork(self, end: int) -> bytes:
        position = {"thread_id": "old", "end_ordinal_exclusive": 7, "end_byte_offset": end}
        return Rollout(forked_from_id="old", history_base=position).turn("three").data

    def test_the_part_it_goes_on_from_is_put_before_it(self) -> None:
        end = len(Rollout(id="old").turn("one").data)

        whole = with_base(self.fork(end), self.base)

        said = ["one", "answer to one", "three", "answer to three"]
        assert said == texts_of(request_items(whole))
        assert said == texts_of(request_items(rewrite(context(whole), session_id=NEW)))

    @pytest.mark.parametrize("end", [5, 10**9])
    def test_a_place_that_is_not_there_changes_nothing(self, end: int) -> None:
        assert self.fork(end) == with_base(self.fork(end), self.base)
        assert self.base == with_base(self.base, self.base)


def test_what_only_the_screen_has_is_a_loss() -> None:
    events = list(read(Rollout().event("user_message", message="review").event("agent_message", message="fine").data))

    assert {"message that only the screen has": 2} == lost(events)


def test_a_message_of_another_program_is_written_whatever_its_id() -> None:
    events: list[Event] = [Prompt(content="hello"), Response(content="hi", api_id="event_msg@1")]

    again = read(write(events).data)

    assert ["hello", "hi"] == [event.content for event in again if isinstance(event, Prompt | Response)]


@pytest.mark.parametrize(
    ("origin", "text"),
    [
        ("compact_summary", "<state_snapshot>They ran it.</state_snapshot>"),
        ("task_notification", "It is done."),
        ("", "Mind the gap."),
    ],
)
def test_what_a_program_said_in_the_users_place_comes_back_as_that(origin: str, text: str) -> None:
    pictured = Prompt(content=text, source="injected", origin=origin, images=(PNG,))
    events = [pictured, Prompt(content="And now?"), Response(content="Fine.")]

    again = read(write(events).data)

    told = [(event.source, event.origin, event.content) for event in again if isinstance(event, Prompt)]
    assert [("injected", origin or "notice", text), ("user", "", "And now?")] == [
        (source, kind, words.partition("\n")[0]) for source, kind, words in told
    ]


def test_the_model_is_not_sent_who_said_it() -> None:
    data = write([Prompt(content="Mind the gap.", source="injected"), Prompt(content="And now?")]).data

    assert b"content_item_kinds" in data
    assert "content_item_kinds" not in json.dumps(request_items(data))
