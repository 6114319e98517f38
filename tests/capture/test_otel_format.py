"""Traces of OpenTelemetry: each message once, whoever wrote the spans and in whatever words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from harken.events import (
    AgentCreated,
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
from harken.events.session import TranscriptEdit
from harken.events.tally import Tally
from harken.formats import detect, get
from harken.testing.formats import conversations
from harken.testing.formats import said as words
from support.recordings import corpus_files, named
from support.traces import (
    ANSWERED,
    ASKED,
    BEGIN,
    CALLED,
    LOOP,
    SAMPLES,
    TOLD,
    agent,
    call,
    chat,
    document,
    log,
    logs,
    result,
    said,
    span,
    tool,
)

FORMAT = get("otel-genai-v1")
GOLDEN = Path(__file__).parents[1] / "golden" / "otel-genai"
STORY = [
    ("prompt", "What is the weather in Rome?"),
    ("tool_call", "weather"),
    ("tool_result", "sunny"),
    ("response", "It is sunny."),
]


def read(*spans: dict[str, Any]) -> list[Event]:
    return FORMAT.read(document(*spans))


def by_agent(events: list[Event]) -> dict[str, list[tuple[str, str]]]:
    names = {event.agent_id: event.name for event in events if isinstance(event, AgentCreated)}
    return {name: words([e for e in events if e.agent_id == agent_id]) for agent_id, name in names.items()}


class TestOnce:
    @pytest.mark.parametrize("sample", SAMPLES, ids=["a document", "lines, the last span first"])
    def test_a_loop_is_told_once_and_in_order(self, sample: bytes) -> None:
        assert STORY == words(FORMAT.read(sample))

    def test_usage_counts_once_whatever_an_agent_adds_up(self) -> None:
        figures = Tally.of(read(*LOOP)).figures()

        assert (22, 9, 8) == (figures.usage.input, figures.usage.output, figures.usage.cache_read)
        assert ["m-1", "m-1-2026"] == list(figures.models)

    def test_a_span_that_was_exported_twice_is_one(self) -> None:
        assert read(*LOOP) == read(*LOOP, *LOOP)

    def test_a_later_trace_goes_on_with_the_conversation(self) -> None:
        more = chat("d1", [ASKED, CALLED, ANSWERED, TOLD, said("user", "And tomorrow?")], [said("assistant", "Rain.")])
        other = {**more, "traceId": "f" * 32, "startTimeUnixNano": str(BEGIN * 2), "endTimeUnixNano": str(BEGIN * 2)}
        around = {**agent("d0", "guide", at=9, lasts=9), "traceId": "f" * 32}

        events = read(*LOOP, around, {**other, "parentSpanId": "d0"})

        assert {"guide": [*STORY, ("prompt", "And tomorrow?"), ("response", "Rain.")]} == by_agent(events)

    def test_a_history_that_was_altered_cuts_the_conversation_back(self) -> None:
        events = read(
            chat("1", [said("user", "a")], [said("assistant", "b")]),
            chat("2", [said("user", "a"), said("assistant", "c"), said("user", "d")], [said("assistant", "e")], at=2),
        )

        assert ["a", "b", "c", "d", "e"] == [text for _, text in words(events)]
        assert [1] == [event.n for event in events if isinstance(event, TranscriptEdit)]
        assert ["a", "c", "d", "e"] == [text for _, text in words(FORMAT.read_conversation(document(*_altered())))]

    def test_replies_to_which_a_server_gives_one_id_stay_several(self) -> None:
        named = {"gen_ai.response.id": "chatcmpl-7"}
        history = [ASKED, CALLED, ANSWERED]
        events = read(chat("1", [ASKED], [CALLED], named), chat("2", history, [TOLD], named, at=2))

        assert ["chatcmpl-7", ""] == [event.api_id for event in events if isinstance(event, ToolCall | Response)]

    def test_instructions_among_the_words_stand_where_the_request_has_them(self) -> None:
        first, last = said("system", "Be brief."), said("system", "Be kind.")
        events = read(
            chat("1", [first, said("user", "a"), last], [said("assistant", "b")]),
            chat("2", [first, said("user", "a"), said("assistant", "b"), said("user", "c"), last], [], at=2),
        )

        told = [getattr(event, "message", "") or getattr(event, "content", "") for event in events]
        assert ["Be brief.", "a", "Be kind.", "b", "c"] == [text for text in told if text]

    def test_a_reply_of_thinking_alone_that_is_asked_again_gives_way_to_the_next(self) -> None:
        thought = {"type": "reasoning", "content": "Hm."}
        spans = [chat("1", [said("user", "a")], [said("assistant", thought)])]
        spans.append(chat("2", [said("user", "a")], [said("assistant", "b")], at=2))

        assert ["a", "Hm.", "b"] == [e.content for e in read(*spans) if isinstance(e, Prompt | Thinking | Response)]
        assert [("prompt", "a"), ("response", "b")] == words(FORMAT.read_conversation(document(*spans)))
        assert not any(isinstance(event, Thinking) for event in FORMAT.read_conversation(document(*spans)))

    def test_what_shares_nothing_is_another_conversation(self) -> None:
        events = read(
            chat("1", [said("user", "a")], [said("assistant", "b")]),
            chat("2", [said("user", "x")], [said("assistant", "y")], at=2),
        )

        assert ["agent_001", "agent_001", "agent_002", "agent_002"] == [
            event.agent_id for event in events if isinstance(event, Prompt | Response)
        ]

    def test_a_conversation_that_is_named_goes_on_without_its_history(self) -> None:
        thread = {"gen_ai.conversation.id": "t1"}

        events = read(
            chat("1", [said("user", "a")], [said("assistant", "b")], thread),
            chat("2", [said("user", "x")], [said("assistant", "y")], thread, at=2),
        )

        assert 1 == sum(isinstance(event, AgentCreated) for event in events)
        assert ["a", "b", "x", "y"] == [text for _, text in words(events)]

    def test_conversations_of_two_names_are_two_also_where_they_begin_alike(self) -> None:
        hi, hello = said("user", "Hi."), said("assistant", "Hello.")
        one, two = ({"gen_ai.conversation.id": name} for name in ("t1", "t2"))
        events = read(
            chat("1", [hi], [hello], one),
            chat("2", [hi], [hello], two, at=2),
            chat("3", [hi, hello, said("user", "a")], [said("assistant", "b")], one, at=4),
            chat("4", [hi, hello, said("user", "x")], [said("assistant", "y")], two, at=6),
            chat("5", [hi, said("assistant", "Hey."), said("user", "z")], [said("assistant", "w")], two, at=8),
        )
        by_agent: dict[str, list[str]] = {}
        for event in events:
            if isinstance(event, Prompt | Response):
                by_agent.setdefault(event.agent_id, []).append(event.content)

        assert [["Hi.", "Hello.", "a", "b"], ["Hi.", "Hello.", "x", "y", "Hey.", "z", "w"]] == list(by_agent.values())
        assert [1] == [event.n for event in events if isinstance(event, TranscriptEdit)]

    @pytest.mark.parametrize("failed", [None, "overloaded"])
    def test_so_are_those_that_begin_alike_before_the_first_has_a_reply(self, failed: str | None) -> None:
        hi = said("user", "Hi.")
        one, two = ({"gen_ai.conversation.id": name} for name in ("t1", "t2"))
        events = read(
            chat("1", [hi], [] if failed else [said("assistant", "Hello.")], one, lasts=3, failed=failed),
            chat("2", [hi], [said("assistant", "Hey.")], two, at=1 if failed is None else 4, lasts=1),
            chat("3", [hi, said("user", "a")], [said("assistant", "b")], one, at=6),
        )
        told: dict[str, list[str]] = {}
        for event in events:
            if isinstance(event, Prompt | Response):
                told.setdefault(event.agent_id, []).append(event.content)

        first = ["Hi.", "a", "b"] if failed else ["Hi.", "Hello.", "a", "b"]
        assert [first, ["Hi.", "Hey."]] == list(told.values())

    def test_a_conversation_that_goes_on_under_another_name_is_told_once(self) -> None:
        events = read(
            chat("1", [ASKED], [TOLD], {"gen_ai.conversation.id": "t1"}),
            chat("2", [ASKED, TOLD, said("user", "x")], [said("assistant", "y")], {"session.id": "t2"}, at=2),
        )
        assert 4 == len(words(events))


def _altered() -> list[dict[str, Any]]:
    return [
        chat("1", [said("user", "a")], [said("assistant", "b")]),
        chat("2", [said("user", "a"), said("assistant", "c"), said("user", "d")], [said("assistant", "e")], at=2),
    ]


class TestAgents:
    def test_an_agent_within_a_tool_is_below_the_agent_that_called(self) -> None:
        asks, find = said("assistant", call("c9", "research", {})), said("user", "Find it.")
        events = read(
            agent("1", "boss", lasts=20),
            chat("2", [ASKED], [asks], parent="1"),
            tool("3", "research", "c9", at=2, lasts=6, parent="1"),
            span("4", "POST /mcp", {"http.route": "/mcp"}, at=3, lasts=4, parent="3"),
            agent("5", "helper", at=3, lasts=4, parent="4"),
            chat("6", [find], [said("assistant", "Found.")], at=4, parent="5"),
            chat("7", [ASKED, asks, said("tool", result("c9", "Found."))], [TOLD], at=10, parent="1"),
        )
        boss, helper = (event for event in events if isinstance(event, AgentCreated))
        made = next(event for event in events if isinstance(event, ToolCall))

        assert ("root", "", "child", boss.agent_id) == (boss.role, boss.parent, helper.role, helper.parent)
        assert made.message_id == helper.cause
        assert {
            "boss": [STORY[0], ("tool_call", "research"), ("tool_result", "Found."), STORY[3]],
            "helper": [("prompt", "Find it."), ("response", "Found.")],
        } == by_agent(events)
        times = [event.time or 0 for event in events]
        assert sorted(times) == times

    def test_a_run_that_ends_together_with_its_last_request_ends_behind_it(self) -> None:
        """The request tells what the tools answered; their spans do not."""
        asks = said("assistant", call("c1", "a", {}), call("c2", "b", {}))
        answers = [said("tool", result("c1", "one")), said("tool", result("c2", "two"))]
        events = read(
            agent("1", "boss", lasts=4),
            chat("2", [ASKED], [asks], {"harken.messages": "new"}, lasts=1, parent="1"),
            tool("3", "a", "c1", at=1, lasts=2, parent="1"),
            tool("4", "b", "c2", at=1, lasts=3, parent="1"),
            chat("5", answers, [], {"harken.messages": "new"}, at=4, lasts=0, parent="1"),
        )

        assert [("tool_result", "one"), ("tool_result", "two")] == words(events)[-2:]
        assert ["c1", "c2"] == [event.id for event in events if isinstance(event, ToolResult)]

    def test_two_runs_of_an_agent_are_two(self) -> None:
        events = read(
            agent("1", "boss", lasts=30),
            chat("2", [ASKED], [TOLD], parent="1"),
            agent("3", "helper", at=2, parent="1"),
            chat("4", [said("user", "Do it.")], [said("assistant", "Done.")], at=2, parent="3"),
            agent("5", "helper", at=4, parent="1"),
            chat("6", [said("user", "Do it.")], [said("assistant", "Done again.")], at=4, parent="5"),
        )

        assert ["boss", "helper", "helper"] == [event.name for event in events if isinstance(event, AgentCreated)]
        assert not any(isinstance(event, TranscriptEdit) for event in events)

    def test_an_agent_without_calls_inside_tells_what_it_says_itself(self) -> None:
        about = {
            "gen_ai.input.messages": json.dumps([ASKED]),
            "gen_ai.output.messages": json.dumps([TOLD]),
            "gen_ai.usage.output_tokens": 7,
        }

        events = read(agent("1", "remote", about))

        assert {"remote": [STORY[0], STORY[3]]} == by_agent(events)
        assert 7 == Tally.of(events).figures().usage.output


class TestGenerations:
    """The same loop as each generation of the conventions and each framework tells it."""

    def test_events_of_a_span(self) -> None:
        calls = json.dumps([{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}])
        asked = ("gen_ai.user.message", {"content": "What is the weather in Rome?"})
        about = {"gen_ai.operation.name": "chat"}
        events = read(
            span("1", "chat", about, events=[asked, ("gen_ai.choice", {"index": 0, "tool_calls": calls})]),
            span(
                "2",
                "chat",
                about,
                at=2,
                events=[
                    asked,
                    ("gen_ai.assistant.message", {"tool_calls": calls}),
                    ("gen_ai.tool.message", {"content": "sunny", "id": "c1"}),
                    ("gen_ai.choice", {"message": json.dumps({"content": "It is sunny."}), "finish_reason": "stop"}),
                ],
            ),
        )

        assert STORY == words(events)

    def test_log_records_with_or_without_their_span(self) -> None:
        body = {"message": {"role": "assistant", "content": "It is sunny."}, "finish_reason": "stop", "index": 0}
        told = logs(
            log("gen_ai.user.message", {"content": "What is the weather in Rome?"}, span="1"),
            log("gen_ai.choice", body, span="1", at=1),
            log("app.started", {"content": "not about a model"}),
        )
        about = span("1", "chat", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1"})

        assert [STORY[0], STORY[3]] == words(FORMAT.read(told))
        assert [STORY[0], STORY[3]] == words(FORMAT.read(told + b"\n" + document(about)))
        assert ["m-1"] == [e.model for e in FORMAT.read(told + b"\n" + document(about)) if isinstance(e, Response)]

    def test_details_in_an_event_with_values_that_are_no_text(self) -> None:
        about = {"gen_ai.input.messages": [ASKED], "gen_ai.output.messages": [TOLD]}
        about["gen_ai.system_instructions"] = [{"type": "text", "content": "Be brief."}]
        details = ("gen_ai.client.inference.operation.details", about)

        events = read(span("1", "chat", {"gen_ai.operation.name": "chat"}, events=[details]))

        assert [STORY[0], STORY[3]] == words(events)
        assert ["Be brief."] == [event.message for event in events if isinstance(event, System)]

    def test_numbered_attributes_of_openllmetry(self) -> None:
        called = {
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": "What is the weather in Rome?",
            "llm.request.type": "chat",
            "gen_ai.usage.prompt_tokens": 3,
            "gen_ai.usage.completion_tokens": 4,
        }
        asks = {"tool_calls.0.id": "c1", "tool_calls.0.name": "weather", "tool_calls.0.arguments": "{}"}
        first = called | {f"gen_ai.completion.0.{key}": value for key, value in asks.items()}
        second = called | {f"gen_ai.prompt.1.{key}": value for key, value in asks.items()}
        second |= {"gen_ai.prompt.1.role": "assistant", "gen_ai.completion.0.content": "It is sunny."}
        second |= {"gen_ai.prompt.2.role": "tool", "gen_ai.prompt.2.content": "sunny"}
        second |= {"gen_ai.prompt.2.tool_call_id": "c1"}

        events = read(span("1", "openai.chat", first), span("2", "openai.chat", second, at=2))

        assert STORY == words(events)
        assert (6, 8) == (Tally.of(events).figures().usage.input, Tally.of(events).figures().usage.output)

    def test_whole_texts_of_the_first_conventions(self) -> None:
        about = {"gen_ai.system": "openai", "gen_ai.prompt": json.dumps([{"role": "user", "content": "hi"}])}

        assert [("prompt", "hi"), ("response", "ho")] == words(
            read(span("1", "x", {**about, "gen_ai.completion": "ho"}))
        )

    def test_openinference(self) -> None:
        about = {
            "openinference.span.kind": "LLM",
            "llm.model_name": "m",
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.contents.0.message_content.type": "text",
            "llm.input_messages.0.message.contents.0.message_content.text": "What is the weather in Rome?",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "weather",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": "{}",
            "llm.token_count.prompt": 5,
        }
        ran = {"openinference.span.kind": "TOOL", "tool.name": "weather", "input.value": "{}", "output.value": "sunny"}

        events = read(span("1", "llm", about), span("2", "weather", ran, at=2))

        assert STORY[:3] == words(events)
        assert ["c1"] == [event.id for event in events if isinstance(event, ToolResult)]
        assert 5 == Tally.of(events).figures().usage.input

    def test_the_ai_sdk_whose_outer_span_adds_up(self) -> None:
        asked = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
        inner = {
            "ai.operationId": "ai.generateText.doGenerate",
            "ai.prompt.messages": json.dumps(asked),
            "ai.response.text": "ho",
            "gen_ai.usage.output_tokens": 2,
        }
        outer = {"ai.operationId": "ai.generateText", "ai.prompt": json.dumps({"messages": asked})}
        outer |= {"ai.response.text": "ho", "ai.usage.completionTokens": 2}

        events = read(span("1", "ai.generateText", outer, lasts=3), span("2", "do", inner, at=1, parent="1"))

        assert [("prompt", "hi"), ("response", "ho")] == words(events)
        assert 2 == Tally.of(events).figures().usage.output

    @pytest.mark.parametrize(
        "message",
        [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {"a": 1}}]},
            {"role": "model", "parts": [{"function_call": {"id": "c1", "name": "weather", "args": {"a": 1}}}]},
            {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"a":1}'},
            said("ai", {"type": "tool-call", "toolCallId": "c1", "toolName": "weather", "args": {"a": 1}}),
            {"role": "ai", "tool_calls": [{"id": "c1", "function": {"name": "weather", "arguments": '{"a":1}'}}]},
        ],
        ids=["anthropic", "gemini", "responses", "ai sdk", "chat"],
    )  # fmt: skip
    def test_a_call_in_the_words_of_any_provider(self, message: dict[str, Any]) -> None:
        (found,) = (event for event in read(chat("1", [ASKED], [message])) if isinstance(event, ToolCall))

        assert ("c1", "weather", b'{"a":1}') == (found.id, found.name, found.input)


class TestMore:
    def test_thoughts_pictures_and_server_tools(self) -> None:
        picture = {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "AAAA"}
        server = {"type": "server_tool_call", "id": "s1", "name": "search", "server_tool_call": {"type": "search"}}

        events = read(
            chat(
                "1",
                [said("user", "Look:", picture)],
                [said("assistant", {"type": "reasoning", "content": "Hm."}, server, {"type": "hologram"})],
            )
        )
        (prompt,) = (event for event in events if isinstance(event, Prompt))
        (thought,) = (event for event in events if isinstance(event, Thinking))
        (ran,) = (event for event in events if isinstance(event, ToolCall))
        (odd,) = (event for event in events if isinstance(event, Output))

        assert (Image(media_type="image/png", data="AAAA"),) == prompt.images
        assert ("Hm.", True, "unknown part of a message: 'hologram'") == (thought.content, ran.server_tool, odd.why)

    def test_a_call_that_failed_says_why(self) -> None:
        told = ("exception", {"exception.type": "RateLimitError", "exception.message": "slow down"})

        events = read(chat("1", [ASKED], [], failed="slow down", events=[told]))

        assert ["RateLimitError: slow down"] == [event.message for event in events if isinstance(event, Error)]

    def test_of_several_choices_the_first_was_said(self) -> None:
        choices = [said("assistant", "a", finish_reason="stop"), said("assistant", "b", finish_reason="stop")]

        events = read(chat("1", [ASKED], choices))

        assert [STORY[0], ("response", "a")] == words(events)
        assert [choices[1]] == [json.loads(event.raw) for event in events if isinstance(event, Output)]

    @pytest.mark.parametrize(
        ("counts", "expected"),
        [
            ({"gen_ai.usage.input_tokens": 10, "gen_ai.usage.cache_read.input_tokens": 4}, (6, 4)),
            ({"gen_ai.usage.input_tokens": 2, "gen_ai.usage.cache_read_input_tokens": 4}, (2, 4)),
            (
                {
                    "gen_ai.usage.input_tokens": 10,
                    "gen_ai.usage.cache_read_input_tokens": 4,
                    "gen_ai.usage.output_tokens": 1,
                    "gen_ai.usage.total_tokens": 15,
                },
                (10, 4),
            ),
        ],
        ids=["counted in", "more than all", "counted apart, as the total tells"],
    )
    def test_what_came_from_the_cache_counts_once(self, counts: dict[str, int], expected: tuple[int, int]) -> None:
        (metric,) = (event for event in read(chat("1", [ASKED], [TOLD], counts)) if isinstance(event, Metric))

        assert expected == (metric.input_tokens, metric.cache_read_tokens)

    def test_a_call_without_content_is_counted_all_the_same(self) -> None:
        events = read(chat("1", [], [], {"gen_ai.usage.output_tokens": 3}), tool("2", "weather", "c1", at=2))

        assert 3 == Tally.of(events).figures().usage.output
        assert [("tool_call", "weather"), ("tool_result", "")] == words(events)

    def test_spans_that_are_not_about_a_model_say_nothing(self) -> None:
        assert [] == read(
            span("1", "GET /", {"http.route": "/"}), span("2", "x", {"gen_ai.operation.name": "retrieval"})
        )

    def test_a_line_that_is_no_telemetry_is_kept_with_the_reason(self) -> None:
        events = FORMAT.read(document(*LOOP) + b'\n{"level":"info"}\n!!\n{"resourceMetrics":[]}\n')

        assert STORY == words(events)
        assert ["not an OpenTelemetry document", "the line is not a JSON object"] == [
            event.why for event in events if isinstance(event, Output)
        ]

    def test_odd_values_everywhere_are_read_without_an_error(self) -> None:
        odd: list[Any] = [None, 1, -1.5, "x", [], {}, [[]], [None], {"values": 3}, {"intValue": "9" * 400}, True]
        about = ["gen_ai.input.messages", "gen_ai.operation.name", "gen_ai.usage.input_tokens", "gen_ai.prompt.0.role"]
        for one in odd:
            spans = [{"spanId": "1", "attributes": [{"key": key, "value": one} for key in about]}]
            spans.append(dict.fromkeys(("traceId", "name", "status", "events", "attributes", "flags"), one))
            FORMAT.read(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode())
            FORMAT.read(document(chat("1", [], [], {"gen_ai.input.messages": json.dumps([one, {"role": one}])})))
            FORMAT.read(document(chat("1", [{"role": "user", "parts": one, "content": one, "tool_calls": one}], [one])))

    @pytest.mark.parametrize("around", [("[", "]"), ('{"messages":', "}"), ('{"role":"tool","content":', "}")])
    def test_what_is_nested_very_deep_is_read_without_an_error(self, around: tuple[str, str]) -> None:
        deep = around[0] * 900 + "1" + around[1] * 900
        keys = ("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.usage.cost")
        value: dict[str, Any] = {"stringValue": "x"}
        for _ in range(200):
            value = {"arrayValue": {"values": [value]}}
        spans = [chat("1", [], [], dict.fromkeys(keys, deep)), tool("2", "f", "c", None, deep, at=2)]
        spans.append(chat("3", [], [], at=3) | {"attributes": [{"key": key, "value": value} for key in keys]})

        events = read(*spans)

        assert {"prompt", "tool_result"} & {event.kind for event in events}
        assert FORMAT.read(FORMAT.write(events).data)

    def test_spans_that_are_their_own_ancestors_end(self) -> None:
        assert [STORY[0], STORY[3]] == words(read(agent("1", "a", parent="2"), chat("2", [ASKED], [TOLD], parent="1")))


class TestWriting:
    @settings(max_examples=40, deadline=None)
    @given(conversations())
    def test_what_is_written_says_the_same(self, events: list[Event]) -> None:
        told = words(FORMAT.read(FORMAT.write(events).data))

        assert words(events) == told

    def test_figures_errors_pictures_and_agents_come_back(self) -> None:
        picture = {"type": "uri", "modality": "image", "uri": "https://example.org/a.png"}
        events = read(
            agent("1", "boss", lasts=30),
            chat("2", [ASKED], [TOLD], {"gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 1}, parent="1"),
            agent("3", "helper", at=2, parent="1"),
            chat("4", [said("user", picture)], [], at=2, parent="3", failed="no"),
        )

        again = FORMAT.read(FORMAT.write(events).data)

        assert by_agent(events) == by_agent(again)
        assert Tally.of(events).figures() == Tally.of(again).figures()
        assert [e.images for e in events if isinstance(e, Prompt)] == [e.images for e in again if isinstance(e, Prompt)]

    def test_what_no_span_has_a_place_for_is_told(self) -> None:
        lost = FORMAT.write([System(subtype="notice"), Output(raw=b"%", why="odd"), TranscriptEdit(n=1)]).losses

        assert {"notices": 1, "records that could not be read": 1, "edits of a transcript": 1} == {
            loss.what: loss.count for loss in lost
        }

    def test_the_golden_file_is_what_is_written(self) -> None:
        assert (GOLDEN / "loop.json").read_bytes() == FORMAT.write(read(*LOOP)).data

    def test_the_messages_are_those_of_the_conventions(self) -> None:
        """Roles, types and fields that its schema requires."""
        (resource,) = json.loads(FORMAT.write(read(*LOOP)).data)["resourceSpans"]
        (scope,) = resource["scopeSpans"]
        texts = [
            attribute["value"]["stringValue"]
            for one in scope["spans"]
            for attribute in one["attributes"]
            if attribute["key"] in ("gen_ai.input.messages", "gen_ai.output.messages")
        ]
        required = {"text": {"content"}, "tool_call": {"name"}, "tool_call_response": {"response"}}

        for message in (message for text in texts for message in json.loads(text)):
            assert message["role"] in ("system", "user", "assistant", "tool")
            assert "assistant" != message["role"] or message["finish_reason"] in ("stop", "tool_call")
            assert all(required[part["type"]] <= part.keys() for part in message["parts"])


def test_a_request_that_is_reported_again_between_the_results_of_its_calls_is_told_once() -> None:
    events: list[Event] = [Prompt(content="Look", time=BEGIN // 1000)]
    events += [ToolCall(id=f"c{at}", name="Bash", input=b"{}", api_id="m", time=BEGIN // 1000 + at) for at in range(3)]
    for at in range(3):
        events.append(Metric(input_tokens=5, output_tokens=1, api_id="m", time=BEGIN // 1000 + at))
        events.append(ToolResult(id=f"c{at}", output=f"r{at}", is_error=at == 1, time=BEGIN // 1000 + at))
    events.append(Metric(input_tokens=5, output_tokens=9, api_id="m", stop_reason="tool_use", time=BEGIN // 1000 + 3))
    format = get("otel-genai-v1")

    again = format.read(format.write(events).data)

    results = [(event.id, event.output, event.is_error) for event in again if isinstance(event, ToolResult)]
    assert [("c0", "r0", False), ("c1", "r1", True), ("c2", "r2", False)] == results
    [report] = [event for event in again if isinstance(event, Metric)]
    assert (5, 9, "tool_use") == (report.input_tokens, report.output_tokens, report.stop_reason)
    assert Tally.of(events).figures().usage == Tally.of(again).figures().usage


@pytest.mark.parametrize("path", [*corpus_files("otel_genai/*/*.json"), *GOLDEN.glob("*.json")], ids=named)
def test_real_traces_are_recognised_and_told_without_a_gap(path: Path) -> None:
    data = path.read_bytes()

    found = detect(data, str(path))
    events = FORMAT.read(data)

    assert found is not None and FORMAT.name == found.name
    assert [] == [event for event in events if isinstance(event, Output)]
    assert {"prompt", "response"} <= {event.kind for event in events} or "tool_call" in {e.kind for e in events}
    assert (Tally.of(events).figures().usage.output or 0) > 0
