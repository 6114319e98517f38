"""Chat completions: requests, lists of messages and responses, read into events and written from them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.errors import BadRecord
from harken.events import Event, Image, Metric, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.cbor import encode_events
from harken.formats import get
from harken.testing.formats import conversations, said
from support.chat_checks import accepted

FORMAT = get("openai-chat-v1")
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
PICTURE = Image(media_type="image/png", data=DOT)


def read(*messages: Any, **body: Any) -> list[Event]:
    return FORMAT.read(json.dumps({**body, "messages": messages}).encode())


def written(*events: Event) -> list[dict[str, Any]]:
    return accepted(FORMAT.write(events).data)


def lost(*events: Event) -> dict[str, int]:
    return {loss.what: loss.count for loss in FORMAT.write(events).losses}


def call(name: str = "f", arguments: str = "{}", id: str = "c1") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


class TestReading:
    def test_thoughts_that_stand_in_the_content_are_thoughts(self) -> None:
        """Mistral's are a list of texts."""
        thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}, {"type": "text", "text": "so"}]}
        events = read({"role": "assistant", "content": [thought, {"type": "text", "text": "yes"}]})

        assert [Thinking, Response] == [type(event) for event in events]
        assert ["hm\nso", "yes"] == [event.content for event in events if isinstance(event, Thinking | Response)]

    def test_each_role_is_an_event(self) -> None:
        events = read(
            {"role": "system", "content": "be brief"},
            {"role": "developer", "content": [{"type": "text", "text": "be kind"}]},
            {"role": "user", "content": "what is in x?"},
            {"role": "assistant", "content": "I look.", "tool_calls": [call(arguments='{"a":1}')]},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "nothing"}]},
            {"role": "assistant", "content": "Nothing."},
            model="m",
        )

        assert [
            System(message_id="@0", subtype="instructions", message="be brief", metadata=b'{"role":"system"}'),
            System(message_id="@1", subtype="instructions", message="be kind", metadata=b'{"role":"developer"}'),
            Prompt(message_id="@2", content="what is in x?"),
            Response(message_id="@3", content="I look.", model="m"),
            ToolCall(message_id="@3", index=1, id="c1", name="f", input=b'{"a":1}'),
            ToolResult(message_id="@4", id="c1", output="nothing"),
            Response(message_id="@5", content="Nothing.", model="m"),
        ] == events

    def test_a_list_and_a_single_message_are_read_too(self) -> None:
        expected = [Prompt(message_id="@0", content="hi")]

        assert expected == FORMAT.read(b'[{"role":"user","content":"hi"}]')
        assert expected == FORMAT.read(b'{"role":"user","content":"hi"}')

    def test_parts_keep_words_and_pictures_in_their_order(self) -> None:
        parts = [
            {"type": "text", "text": "a"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DOT}", "detail": "low"}},
            {"type": "image_url", "image_url": "https://example.org/b.png"},
            {"type": "text", "text": "b"},
            {"type": "file", "file": {"filename": "c.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
        ]

        prompt, _ = read({"role": "user", "content": parts})

        assert isinstance(prompt, Prompt)
        assert "a\nb" == prompt.content
        assert [("image/png", 1), ("", 1), ("application/pdf", None)] == [(i.media_type, i.at) for i in prompt.images]

    def test_what_no_event_has_a_place_for_is_kept_with_the_reason(self) -> None:
        film = {"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}}

        _, kept, odd = read({"role": "user", "content": ["hi", film, {"type": "hologram"}]})

        assert isinstance(kept, Output) and isinstance(odd, Output)
        assert film == json.loads(kept.raw)
        assert ("neither words nor a picture: 'video_url'", "unknown part of a message: 'hologram'") == (
            kept.why,
            odd.why,
        )

    def test_reasoning_is_read_once_with_its_signature(self) -> None:
        blocks = [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "redacted_thinking", "data": "sealed"},
        ]

        events = read(
            {"role": "assistant", "content": "a", "reasoning_content": "hm", "thinking_blocks": blocks},
            {"role": "assistant", "content": "b", "reasoning_content": "plain"},
            {"role": "assistant", "content": "c", "reasoning": "of others"},
        )

        thoughts = [(e.content, e.signature) for e in events if isinstance(e, Thinking)]
        assert [("hm", "sig"), ("", "sealed"), ("plain", ""), ("of others", "")] == thoughts

    def test_a_function_call_of_old_finds_its_answer_by_its_name(self) -> None:
        asked, told = read(
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "x"},
        )

        assert isinstance(asked, ToolCall) and isinstance(told, ToolResult)
        assert asked.id == told.id == "function_f"
        assert ("f", "x") == (told.name, told.output)

    def test_a_custom_tool_is_given_text(self) -> None:
        custom = {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "*** Begin Patch"}}

        (asked,) = read({"role": "assistant", "tool_calls": [custom]})

        assert ToolCall(message_id="@0", id="c1", name="patch", input=b"*** Begin Patch") == asked

    def test_a_refusal_and_a_spoken_answer_are_words(self) -> None:
        events = read(
            {"role": "assistant", "content": None, "refusal": "I cannot."},
            {"role": "assistant", "content": None, "audio": {"id": "a1", "data": "AAAA", "transcript": "Good day."}},
        )

        assert ["I cannot.", "Good day."] == [e.content for e in events if isinstance(e, Response)]

    @pytest.mark.parametrize(
        ("message", "why"),
        [
            (1, "not a message"),
            ({"content": "x"}, "a message without a role"),
            ({"role": "narrator", "content": "x"}, "a message of 'narrator'"),
            ({"role": ["user"], "content": "x"}, "a message without a role"),
        ],
    )
    def test_what_is_no_message_is_kept(self, message: Any, why: str) -> None:
        (kept,) = read(message)

        assert isinstance(kept, Output)
        assert (message, why) == (json.loads(kept.raw), kept.why)

    @pytest.mark.parametrize("data", [b"nonsense", b"{}", b"1", b'{"messages":1}', b'"x"', b"[" * 5000])
    def test_what_is_no_chat_document_is_kept_with_the_reason(self, data: bytes) -> None:
        (kept,) = FORMAT.read(data)

        assert isinstance(kept, Output) and kept.why
        assert data == kept.raw
        with pytest.raises(BadRecord):
            FORMAT.join([data, b"[]"])


RESPONSE: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1794739067,
    "model": "m-2026",
    "service_tier": "priority",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "logprobs": None,
            "message": {
                "role": "assistant",
                "content": None,
                "refusal": None,
                "annotations": [],
                "audio": None,
                "function_call": None,
                "tool_calls": [call()],
            },
        },
        {"index": 1, "finish_reason": "stop", "message": {"role": "assistant", "content": "another"}},
    ],
    "usage": {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 40, "cache_creation_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 5},
        "cost": 0.25,
    },
}


class TestResponses:
    def test_the_first_choice_is_what_was_said_and_the_others_are_kept(self) -> None:
        asked, other, metric = FORMAT.read(json.dumps(RESPONSE).encode())

        fields: dict[str, Any] = {"time": 1794739067_000_000, "api_id": "chatcmpl-1"}
        assert ToolCall(message_id="@0", id="c1", name="f", input=b"{}", **fields) == asked
        assert isinstance(other, Output)
        assert (RESPONSE["choices"][1], "") == (json.loads(other.raw), other.why)
        assert (
            Metric(
                message_id="usage",
                model="m-2026",
                input_tokens=50,
                output_tokens=20,
                cache_read_tokens=40,
                cache_write_tokens=10,
                reasoning_tokens=5,
                cost_usd=0.25,
                stop_reason="tool_calls",
                served="priority",
                **fields,
            )
            == metric
        )

    @pytest.mark.parametrize(
        ("usage", "expected"),
        [
            ({}, (None, None, None)),
            ({"prompt_tokens": 7}, (7, None, None)),
            ({"prompt_tokens": 100, "prompt_cache_hit_tokens": 60}, (40, 60, None)),
            (
                {"prompt_tokens": 100, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 20},
                (50, 30, 20),
            ),
            ({"prompt_tokens": 5, "cache_read_input_tokens": 30}, (5, 30, None)),
            ({"prompt_tokens": -1, "prompt_tokens_details": [1], "cost": "much"}, (None, None, None)),
            ({"prompt_tokens": 2**60, "completion_tokens_details": None}, (None, None, None)),
        ],
    )
    def test_figures_are_taken_from_wherever_a_provider_puts_them(
        self, usage: dict[str, Any], expected: tuple[int | None, ...]
    ) -> None:
        metric = FORMAT.read(json.dumps({**RESPONSE, "usage": usage}).encode())[-1]

        assert isinstance(metric, Metric)
        assert expected == (metric.input_tokens, metric.cache_read_tokens, metric.cache_write_tokens)

    def test_joined_with_its_request_a_response_is_the_next_request(self) -> None:
        asked = b'{"model":"m","stream":true,"tools":[],"messages":[{"role":"user","content":"hi"}]}'
        result = b'[{"role":"tool","tool_call_id":"c1","content":"x"}]'

        joined = FORMAT.join([asked, json.dumps(RESPONSE).encode(), result])

        expected = {
            "model": "m-2026",
            "tools": [],
            "service_tier": "priority",
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": None, "tool_calls": [call()]},
                {"role": "tool", "tool_call_id": "c1", "content": "x"},
            ],
        }
        assert expected == json.loads(joined)
        assert expected["messages"] == accepted(joined)
        assert [1, 1, 1] == [FORMAT.places(part) for part in (asked, json.dumps(RESPONSE).encode(), result)]

    def test_what_was_spoken_is_sent_back_as_words(self) -> None:
        audio = {"id": "a1", "data": "AAAA", "expires_at": 1, "transcript": "Good day."}
        spoken = {"choices": [{"message": {"role": "assistant", "content": None, "audio": audio}}]}

        joined = FORMAT.join([b'{"messages":[]}', json.dumps(spoken).encode()])

        assert [{"role": "assistant", "content": "Good day."}] == accepted(joined)


class TestWriting:
    def test_a_conversation_is_what_would_go_to_the_model(self) -> None:
        messages = written(
            System(subtype="instructions", message="be brief"),
            System(subtype="instructions", message="be kind", metadata=b'{"role":"developer"}'),
            Prompt(content="what is in x?"),
            Thinking(content="look", signature="sig"),
            Response(content="I look.", message_id="m1"),
            ToolCall(id="c1", name="Read", input=b'{"path":"x"}', message_id="m2"),
            ToolResult(id="c1", output="nothing", message_id="m3"),
            Response(content="Nothing."),
        )

        assert [
            {"role": "system", "content": "be brief"},
            {"role": "developer", "content": "be kind"},
            {"role": "user", "content": "what is in x?"},
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [call("Read", '{"path":"x"}')],
                "reasoning_content": "look",
                "thinking_blocks": [{"type": "thinking", "thinking": "look", "signature": "sig"}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "nothing"},
            {"role": "assistant", "content": "Nothing."},
        ] == messages

    def test_results_stand_right_behind_their_calls_wherever_they_came(self) -> None:
        messages = written(
            ToolCall(id="a", name="f", message_id="m1"),
            ToolCall(id="b", name="f", message_id="m1", index=1),
            Prompt(content="meanwhile"),
            ToolResult(id="b", output="2"),
            ToolResult(id="a", output="1"),
        )

        assert ["assistant", "tool", "tool", "user"] == [one["role"] for one in messages]
        assert ["b", "a"] == [one["tool_call_id"] for one in messages[1:3]]

    @pytest.mark.parametrize("ids", [("", ""), ("fc_1", "fc_2"), ("chatcmpl-1", "chatcmpl-1")], ids=str)
    def test_calls_at_once_are_one_message_though_each_is_a_record(self, ids: tuple[str, str]) -> None:
        """As Codex and the Responses API have them: the ids are those of items."""
        messages = written(
            ToolCall(id="a", name="f", message_id="m1", api_id=ids[0]),
            ToolCall(id="b", name="f", message_id="m2", api_id=ids[1]),
            ToolResult(id="a", output="1", message_id="m3"),
            ToolResult(id="b", output="2", message_id="m4"),
        )

        assert ["assistant", "tool", "tool"] == [one["role"] for one in messages]

    def test_calls_of_several_replies_are_several_messages(self) -> None:
        messages = written(
            ToolCall(id="a", name="f", message_id="m1", api_id="chatcmpl-1"),
            ToolCall(id="b", name="f", message_id="m2", api_id="chatcmpl-2"),
            ToolResult(id="a", output="1"),
            ToolResult(id="b", output="2"),
        )

        assert ["assistant", "tool"] * 2 == [one["role"] for one in messages]

    def test_a_call_without_a_result_is_answered_in_its_place(self) -> None:
        events = (Prompt(content="go"), ToolCall(id="a", name="f"), Prompt(content="stop"))

        assert ["user", "assistant", "tool", "user"] == [one["role"] for one in written(*events)]
        assert {"calls without a result": 1} == lost(*events)

    def test_calls_of_one_id_are_told_apart_and_all_answered(self) -> None:
        one, two = (ToolCall(id="a", name="f", message_id=f"m{n}") for n in range(2))

        messages = written(one, two, ToolResult(id="a", output="x"), one.replace(message_id="m3"), one)

        ids = [made["id"] for message in messages for made in message.get("tool_calls", ())]
        assert len(ids) == len(set(ids)) == 4

    def test_calls_of_one_message_and_id_are_answered_in_their_order(self) -> None:
        calls = [ToolCall(id="", name="f", input=b"%d" % n, message_id="m", index=n) for n in range(2)]

        messages = written(*calls, ToolResult(output="first"), ToolResult(output="second"))

        assert [("call", "first"), ("call-2", "second")] == [
            (one["tool_call_id"], one["content"]) for one in messages if one["role"] == "tool"
        ]

    def test_ids_and_names_are_such_as_the_api_takes(self) -> None:
        long = "call_" + "x" * 60
        events = (
            ToolCall(id=long + "1", name="mcp__a.b__" + "c" * 80, message_id="m"),
            ToolCall(id=long + "2", name="", message_id="m", index=1),
            ToolResult(id=long + "2", output="two"),
            ToolResult(id=long + "1", output="one"),
        )

        first, two, one = written(*events)

        by_id = {two["tool_call_id"]: "two", one["tool_call_id"]: "one"}
        assert ["one", "two"] == [by_id[made["id"]] for made in first["tool_calls"]]
        assert {"ids of calls": 2, "names of tools": 2} == lost(*events)

    def test_free_text_is_given_to_a_custom_tool_and_half_an_object_to_a_function(self) -> None:
        given = [b"*** Begin Patch", b'{"path": "x', b"[1]", b"", b"null", b"ls -l"]

        (message, *_) = written(*(ToolCall(id=str(n), name="f", input=text) for n, text in enumerate(given)))

        assert ["custom", "function", "function", "function", "function", "custom"] == [
            made["type"] for made in message["tool_calls"]
        ]
        assert ['{"path": "x', "[1]", "{}", "null"] == [
            made["function"]["arguments"] for made in message["tool_calls"] if made["type"] == "function"
        ]

    def test_pictures_of_a_result_follow_in_a_message(self) -> None:
        events = (ToolCall(id="a", name="look"), ToolResult(id="a", output="seen", images=(PICTURE,)))

        _, result, shown = written(*events)

        assert "seen" == result["content"]
        assert ["text", "image_url"] == [part["type"] for part in shown["content"]]
        assert {"pictures of results": 1} == lost(*events)

    def test_what_is_no_picture_is_told(self) -> None:
        images = (
            PICTURE,
            Image(url="https://example.org/a.png"),
            Image(media_type="image/png", data="AAAA"),
            Image(url="file:///tmp/a.png"),
            Image(media_type="application/pdf", data="AAAA"),
            Image(media_type="text/plain", data="words"),
            Image(),
        )

        (message,) = written(Prompt(content="look", images=images))

        assert ["text", "image_url", "image_url", "text", "file"] == [p["type"] for p in message["content"]]
        assert {"damaged pictures": 2, "files": 1, "pictures without content": 1} == lost(
            Prompt(content="look", images=images)
        )

    def test_reasoning_goes_where_its_provider_takes_it_back(self) -> None:
        sealed = Thinking(content="sum", signature="gAAAAx", api_id="rs_1", message_id="m1")
        (openai,) = written(sealed, Response(content="a", api_id="msg_1", message_id="m2"))
        (plain,) = written(Thinking(content="hm"), Response(content="a"))

        item = {"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAAAx"}
        assert [item | {"summary": [{"type": "summary_text", "text": "sum"}]}] == openai["reasoning_items"]
        assert {"role": "assistant", "content": "a", "reasoning_content": "hm"} == plain

    def test_reasoning_without_anything_behind_it_is_told(self) -> None:
        events = (Prompt(content="hi"), Thinking(content="hm"))

        assert [{"role": "user", "content": "hi"}] == written(*events)
        assert {"thinking": 1} == lost(*events)

    def test_answers_one_behind_the_other_stay_two(self) -> None:
        messages = written(Response(content="a", message_id="m1"), Response(content="b", message_id="m2"))

        assert ["a", "b"] == [one["content"] for one in messages]

    def test_whatever_is_not_said_is_told(self) -> None:
        events = (
            Prompt(content=" "),
            Response(content=""),
            System(subtype="instructions", message=" "),
            System(subtype="notice", message="The battery is low."),
            Metric(input_tokens=1),
            Output(raw=b"%!", why="nobody knows"),
            Prompt(content="other", agent_id="b"),
            Response(content="own", agent_id=""),
            ToolResult(id="none", output="x"),
            ToolCall(id="c", name="f"),
            ToolResult(id="c", output="bad", is_error=True),
        )

        assert {
            "blank texts": 3,
            "notices": 1,
            "usage figures": 1,
            "records that are no conversation": 1,
            "records of other agents": 1,
            "results without a call": 1,
            "error marks": 1,
        } == lost(*events)


MESSAGES = [
    {"role": "system", "content": "be brief", "cache_control": {"type": "ephemeral"}},
    {"role": "developer", "content": "be kind", "name": "boss"},
    {
        "role": "user",
        "name": "ada",
        "content": [
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DOT}"}},
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
            {"type": "file", "file": {"file_id": "file-1"}, "cache_control": {"type": "ephemeral"}},
        ],
    },
    {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [
            call() | {"provider_specific_fields": {"thought_signature": "s"}},
            {"id": "c2", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}},
            call(id="c3") | {"extra_content": {"google": {"thought_signature": "s"}}},
        ],
        "extra_content": {"google": {"thought": True}},
        "reasoning_content": "hm",
        "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "sig"}],
        "reasoning_details": [{"type": "reasoning.text", "text": "hm", "signature": "sig", "index": 0}],
        "provider_specific_fields": {"citations": None},
    },
    {"role": "tool", "tool_call_id": "c1", "content": "x", "cache_control": {"type": "ephemeral"}},
    {"role": "tool", "tool_call_id": "c2", "content": "y"},
    {"role": "tool", "tool_call_id": "c3", "content": "z"},
    {"role": "assistant", "content": [{"type": "text", "text": "No."}, {"type": "refusal", "refusal": "I cannot."}]},
]


def test_what_litellm_adds_comes_back_where_it_was() -> None:
    made = FORMAT.write(read(*MESSAGES))

    assert MESSAGES == json.loads(made.data)["messages"]
    assert () == made.losses


def test_fields_of_answers_are_no_part_of_a_request_and_told() -> None:
    answer = {"role": "assistant", "content": "a", "annotations": [{"type": "url_citation"}], "name": "no name!"}

    made = FORMAT.write(read(answer))

    assert [{"role": "assistant", "content": "a"}] == accepted(made.data)
    assert {"fields of messages": 2} == {loss.what: loss.count for loss in made.losses}


def test_fields_that_nobody_knows_are_kept_and_told() -> None:
    """Groq's, for one. What an SDK has read out of the content is that again."""
    answer = {
        "role": "assistant",
        "content": "42",
        "executed_tools": [{"type": "python"}],
        "part": 1,
        "parsed": {"a": 1},
    }

    events = read(answer)
    made = FORMAT.write(events)

    assert b"executed_tools" in next(event.raw for event in events if isinstance(event, Output))
    assert [{"role": "assistant", "content": "42"}] == accepted(made.data)
    assert {"fields of messages": 2} == {loss.what: loss.count for loss in made.losses}
    assert "records that are no conversation" in {
        loss.what for loss in get("anthropic-messages-v1").write(events).losses
    }


LOOK = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DOT}", "detail": "low"}}
NAMED = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjQK"}}


def test_how_closely_to_look_and_the_name_of_a_file_come_back() -> None:
    plain = {"type": "image_url", "image_url": {"url": "https://a.org/b.png"}}
    asked = {"role": "user", "content": [{"type": "text", "text": "see"}, plain, LOOK, NAMED]}

    made = FORMAT.write(read(asked))

    assert [asked] == accepted(made.data)
    assert () == made.losses


def test_how_closely_to_look_is_told_where_a_picture_before_it_is_damaged() -> None:
    broken = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}

    made = FORMAT.write(read({"role": "user", "content": [broken, LOOK]}))

    assert {"fields of messages": 1, "damaged pictures": 1} == {loss.what: loss.count for loss in made.losses}


# -- whatever it is given ----------------------------------------------------------------------------------------------

ODD: list[Any] = ["x\ud800y", "tool", "file", 10**40, float("nan"), None, {"type": ["text"], "\ud800": 1}]
ODD += [[[], {}, "x\udfff", {"type": "text", "text": 1}, {"type": "refusal", "refusal": {}}]]


def changed(value: Any, odd: Any) -> Iterator[Any]:
    """The value with each of its fields, at any depth, changed to the odd one in turn."""
    places: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in places:
        for one in (odd, *changed(inner, odd)):
            copy = value.copy()
            copy[key] = one
            yield copy


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: f"{odd!r:.20}")
def test_any_field_may_hold_anything_and_what_is_written_is_accepted(odd: Any) -> None:
    for body in changed({"messages": MESSAGES, **RESPONSE}, odd):
        data = json.dumps(body).encode()

        events = FORMAT.read(data)

        encode_events(events)
        once = FORMAT.write(events).data
        accepted(once)
        assert once == FORMAT.write(FORMAT.read(once)).data
        assert FORMAT.claim is not None and FORMAT.claim(data, "") is not None


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: f"{odd!r:.20}")
def test_joined_and_apart_the_deltas_of_a_chain_say_the_same(odd: Any) -> None:
    """Names of messages rest on it: a message has the place that the deltas before it leave to it."""
    for body in changed(RESPONSE, odd):
        deltas = [json.dumps(part).encode() for part in ({"messages": MESSAGES}, body, [])]
        try:
            joined = FORMAT.join(deltas)
        except BadRecord:
            continue

        assert [said(FORMAT.read(part)) for part in deltas[:2]] == [
            said(FORMAT.read(joined)[: len(FORMAT.read(deltas[0]))]),
            said(FORMAT.read(joined)[len(FORMAT.read(deltas[0])) :]),
        ]
        assert FORMAT.places(joined) == sum(map(FORMAT.places, deltas))


_ids = st.sampled_from(["", "a", "b", "ü" * 50, "x" * 41])
_events = st.one_of(
    st.builds(Prompt, content=st.text(max_size=5), message_id=_ids),
    st.builds(Response, content=st.text(max_size=5), api_id=_ids, message_id=_ids),
    st.builds(Thinking, content=st.text(max_size=3), signature=_ids, api_id=_ids, message_id=_ids),
    st.builds(ToolCall, id=_ids, name=st.text(max_size=3), input=st.binary(max_size=4), api_id=_ids, message_id=_ids),
    st.builds(ToolResult, id=_ids, output=st.text(max_size=3), is_error=st.booleans(), message_id=_ids),
    st.builds(System, subtype=st.sampled_from(["instructions", "init"]), message=st.text(max_size=3)),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(_events, max_size=12))
def test_any_events_make_a_request_that_the_api_takes(events: list[Event]) -> None:
    once = FORMAT.write(events)

    accepted(once.data)
    assert once.data == FORMAT.write(FORMAT.read(once.data)).data


@given(conversations())
def test_a_conversation_says_afterwards_what_it_said(events: list[Event]) -> None:
    kept = [words for words in said(events) if words[0] == "tool_result" or words[1].strip()]

    assert kept == said(FORMAT.read(FORMAT.write(events).data))
