"""Spans as they end, and as they arrive: what frameworks trace becomes a session."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import Tracer, TracerProvider
from opentelemetry.trace import Status, StatusCode

import harken.capture
from harken.capture import EventBus, PromptExecuted, Session, ToolInvoked, TranscriptEntry
from harken.errors import BadRequest
from harken.events import Prompt
from harken.events.tally import Tally
from harken.formats import find, session_log
from support.traces import (
    ANSWERED,
    ASKED,
    CALLED,
    LOOP,
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

STORY = [
    ("user", "What is the weather in Rome?"),
    ("assistant", '{\n  "city": "Rome"\n}'),
    ("tool", "sunny"),
    ("assistant", "It is sunny."),
]


@pytest.fixture
def session() -> Iterator[Session]:
    with Session() as session:
        yield session


@pytest.fixture
def tracer(session: Session) -> Iterator[Tracer]:
    provider = TracerProvider()
    provider.add_span_processor(harken.capture.otel_processor(session))
    yield provider.get_tracer("a.framework")
    provider.shutdown()


def told(session: Session, source: str = "primary") -> list[tuple[str, str]]:
    return [(one.role, one.content) for one in session[TranscriptEntry].all() if one.source == source]


def sources(session: Session) -> list[str]:
    return list(dict.fromkeys(entry.source for entry in session[TranscriptEntry].all()))


def attributes(sent: list[Any], heard: list[Any], **more: Any) -> dict[str, Any]:
    told = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1", "gen_ai.provider.name": "openai"}
    return {
        **told,
        "gen_ai.input.messages": json.dumps(sent),
        "gen_ai.output.messages": json.dumps(heard),
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 4,
        "gen_ai.response.finish_reasons": ["stop"],
        **more,
    }


def loop(tracer: Tracer) -> None:
    """An agent that uses a tool, as a framework traces it: attributes come when they are known."""
    with tracer.start_as_current_span("POST /ask"), tracer.start_as_current_span("invoke_agent guide") as around:
        around.set_attribute("gen_ai.operation.name", "invoke_agent")
        around.set_attribute("gen_ai.agent.name", "guide")
        with tracer.start_as_current_span("chat m-1") as one:
            one.set_attributes(attributes([ASKED], [CALLED], **{"gen_ai.response.id": "r1"}))
        with tracer.start_as_current_span("execute_tool weather") as ran:
            ran.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather"})
            ran.set_attributes({"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": "sunny"})
        with tracer.start_as_current_span("chat m-1") as two:
            two.set_attributes(attributes([ASKED, CALLED, ANSWERED], [TOLD], **{"gen_ai.response.id": "r2"}))
        around.set_attributes({"gen_ai.usage.input_tokens": 20, "gen_ai.usage.output_tokens": 8})


class TestProcessor:
    def test_a_loop_is_captured_once_and_in_order(self, session: Session, tracer: Tracer) -> None:
        loop(tracer)

        assert STORY == told(session)
        assert ["guide"] == [info.name for info in session.agents.values()]

    def test_usage_counts_once(self, session: Session, tracer: Tracer) -> None:
        loop(tracer)

        events = [event for line in session.records() for event in session_log.events_of(line)]
        usage = Tally.of(events).figures().usage
        assert (20, 8) == (usage.input, usage.output)

    def test_the_first_entry_of_a_reply_says_what_the_span_says(self, session: Session, tracer: Tracer) -> None:
        loop(tracer)

        about = session[TranscriptEntry].all()[-1].metadata or {}
        assert ("m-1", "r2", "openai", ["stop"]) == tuple(
            about[key] for key in ("model", "response_id", "provider", "finish_reason")
        )

    def test_two_users_who_begin_alike_have_a_conversation_each(self, session: Session, tracer: Tracer) -> None:
        for name, answer in (("t1", "Hello, one."), ("t2", "Hello, two.")):
            with tracer.start_as_current_span("chat") as span:
                named = {"gen_ai.conversation.id": name}
                span.set_attributes(attributes([ASKED], [said("assistant", answer)], **named))

        assert [STORY[0], ("assistant", "Hello, one.")] == told(session)
        assert [STORY[0], ("assistant", "Hello, two.")] == told(session, "conversation:1")

    def test_each_reply_is_there_before_the_span_around_it_ends(self, session: Session, tracer: Tracer) -> None:
        with tracer.start_as_current_span("invoke_agent guide", attributes={"gen_ai.agent.name": "guide"}):
            with tracer.start_as_current_span("chat") as one:
                one.set_attributes(attributes([ASKED], [TOLD]))

            assert [STORY[0], STORY[3]] == told(session)

    def test_an_agent_within_an_agent_is_below_it(self, session: Session, tracer: Tracer) -> None:
        asks = said("assistant", call("c9", "ask", {}))
        with tracer.start_as_current_span("a", attributes={"gen_ai.agent.name": "boss"}):
            with tracer.start_as_current_span("chat", attributes=attributes([ASKED], [asks])):
                pass
            for words in ("Found.", "Found more."):
                name = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "ask", "gen_ai.tool.call.id": "c9"}
                with (
                    tracer.start_as_current_span("t", attributes=name),
                    tracer.start_as_current_span("b", attributes={"gen_ai.agent.name": "helper"}),
                    tracer.start_as_current_span(
                        "chat", attributes=attributes([said("user", "Look.")], [said("assistant", words)])
                    ),
                ):
                    pass
        boss, first, second = session.agents.values()

        assert (None, boss.agent_id, boss.agent_id) == (boss.parent, first.parent, second.parent)
        assert ("boss", "helper", "helper 2") == (boss.name, first.name, second.name)
        assert [("user", "Look."), ("assistant", "Found more.")] == told(session, f"subagent:{second.agent_id}")

    def test_spans_of_other_kinds_are_passed_over(self, session: Session, tracer: Tracer) -> None:
        with tracer.start_as_current_span("GET /"), tracer.start_as_current_span("SELECT"):
            pass

        assert [] == list(session.records())

    def test_a_call_that_failed_is_an_error(self, session: Session, tracer: Tracer) -> None:
        with tracer.start_as_current_span("chat", attributes={"gen_ai.operation.name": "chat"}) as one:
            one.set_attribute("gen_ai.input.messages", json.dumps([ASKED]))
            one.set_attribute("error.type", "RateLimitError")
            one.set_status(Status(StatusCode.ERROR, "slow down"))

        (asked, failed) = session[TranscriptEntry].all()
        assert (STORY[0][1], "RateLimitError: slow down") == (asked.content, failed.content)
        assert "error" == (failed.metadata or {})["kind"]

    def test_what_the_bus_carries(self) -> None:
        bus, heard = EventBus(), []
        for kind in (ToolInvoked, PromptExecuted):
            bus.subscribe(kind, heard.append)
        with Session(bus=bus) as session:
            provider = TracerProvider()
            provider.add_span_processor(harken.capture.otel_processor(session))
            loop(provider.get_tracer("x"))
            provider.shutdown()

        assert ["weather", "It is sunny."] == [getattr(one, "name", "") or one.result for one in heard]

    def test_secrets_are_masked(self, session: Session) -> None:
        provider = TracerProvider()
        provider.add_span_processor(harken.capture.otel_processor(session, mask=lambda text: text.replace("Rome", "X")))
        loop(provider.get_tracer("x"))
        provider.shutdown()

        assert "Rome" not in json.dumps(list(session.records()))
        assert "What is the weather in X?" == told(session)[0][1]
        with pytest.raises(BadRequest):
            harken.capture.otel_processor(session, mask="secret")  # type: ignore[arg-type]

    def test_nothing_is_raised_into_the_program(self, caplog: pytest.LogCaptureFixture) -> None:
        session = Session()
        provider = TracerProvider()
        provider.add_span_processor(harken.capture.otel_processor(session))
        session.close()
        with caplog.at_level(logging.WARNING, "harken.capture"):
            loop(provider.get_tracer("x"))
            loop(provider.get_tracer("x"))
        provider.shutdown()

        assert 1 == len(caplog.records)

    def test_a_session_goes_on_in_another_process(self, tmp_path: Path) -> None:
        for words in ("", "And tomorrow?"):
            with Session(tmp_path / "s.jsonl") as session:
                provider = TracerProvider()
                provider.add_span_processor(harken.capture.otel_processor(session))
                tracer = provider.get_tracer("x")
                if not words:
                    loop(tracer)
                else:
                    sent = [ASKED, CALLED, ANSWERED, TOLD, said("user", words)]
                    with tracer.start_as_current_span("a", attributes={"gen_ai.agent.name": "guide"}):
                        one = attributes(sent, [said("assistant", "Rain.")])
                        tracer.start_span("chat", attributes=one).end()
                provider.shutdown()

        with Session(tmp_path / "s.jsonl", readonly=True) as session:
            assert [*STORY, ("user", "And tomorrow?"), ("assistant", "Rain.")] == told(session)

    def test_the_sdk_is_imported_when_it_is_called(self) -> None:
        code = (
            "import sys, harken.capture as c; c.otel_processor, c.receive_otlp; print('opentelemetry' in sys.modules)"
        )
        environ = {**os.environ, "PYTHONPATH": ""}

        assert "False" == subprocess.check_output([sys.executable, "-c", code], text=True, env=environ).strip()


class TestReceiving:
    def test_spans_that_arrive_one_by_one_before_their_parents_are_put_in_order(self, session: Session) -> None:
        asks, find = said("assistant", call("c9", "research", {})), said("user", "Find it.")
        spans = [
            chat("6", [find], [said("assistant", "Found.")], at=4, parent="5"),
            chat("7", [ASKED, asks, said("tool", result("c9", "Found."))], [TOLD], at=10, parent="1"),
            chat("2", [ASKED], [asks], parent="1"),
            agent("5", "helper", at=3, lasts=4, parent="4"),
            tool("3", "research", "c9", at=2, lasts=6, parent="1"),
            agent("1", "boss", lasts=20),
            span("4", "POST /mcp", {"http.route": "/mcp"}, at=3, lasts=4, parent="3"),
        ]

        assert [1, 1, 1, 1, 1, 1, 0] == [harken.capture.receive_otlp(session, document(one)) for one in spans]

        boss, helper = session.agents.values()
        assert ("boss", "helper", boss.agent_id) == (boss.name, helper.name, helper.parent)
        assert ["user", "assistant", "tool", "assistant"] == [role for role, _ in told(session)]
        assert [("user", "Find it."), ("assistant", "Found.")] == told(session, f"subagent:{helper.agent_id}")
        made = next(line for line in session.records() if "c9" in json.dumps(line) and "tool_calls" in json.dumps(line))
        assert made["message_id"] == helper.cause

    def test_a_body_twice_is_one(self, session: Session) -> None:
        for _ in range(3):
            harken.capture.receive_otlp(session, document(*LOOP))

        assert STORY == told(session)

    @pytest.mark.parametrize(
        ("spans", "story"),
        [(LOOP, STORY), ([chat("1", [], [], failed="boom")], [("assistant", "boom")])],
        ids=["a loop with a tool", "a call that failed"],
    )
    def test_a_body_twice_is_one_in_another_process_too(self, tmp_path: Path, spans: list[Any], story: Any) -> None:
        for _ in range(2):
            with Session(tmp_path / "s.jsonl") as session:
                harken.capture.receive_otlp(session, document(*spans))
                assert story == told(session)
        with Session(tmp_path / "s.jsonl", readonly=True) as session:
            assert ({"primary"}, 1) == ({one.source for one in session[TranscriptEntry].all()}, len(session.agents))

    def test_the_span_of_an_agent_that_comes_in_another_process_takes_nothing_back(self, tmp_path: Path) -> None:
        words = {"gen_ai.input.messages": json.dumps([ASKED]), "gen_ai.output.messages": json.dumps([TOLD])}
        for spans in (LOOP[1:], [agent("a1", "guide", words, lasts=5)]):
            with Session(tmp_path / "s.jsonl") as session:
                harken.capture.receive_otlp(session, document(*spans))

        with Session(tmp_path / "s.jsonl", readonly=True) as session:
            assert STORY == [(entry.role, entry.content) for entry in session[TranscriptEntry].all()]
            assert "transcript_edit" not in {line["event_type"] for line in session.records()}

    @pytest.mark.parametrize("again", [False, True], ids=["in one process", "in another process"])
    def test_a_request_that_arrives_behind_a_later_one_takes_nothing_back(self, tmp_path: Path, again: bool) -> None:
        around, first, used, second = LOOP
        bodies = [(around, second), (used,), (around, first)]
        for own in [[one] for one in bodies] if again else [bodies]:
            with Session(tmp_path / "s.jsonl") as session:
                for body in own:
                    harken.capture.receive_otlp(session, document(*body))

        with Session(tmp_path / "s.jsonl", readonly=True) as session:
            assert STORY == told(session)
            assert STORY == [(entry.role, entry.content) for entry in session[TranscriptEntry].all()]
            assert "transcript_edit" not in {line["event_type"] for line in session.records()}
            events = [event for line in session.records() for event in session_log.events_of(line)]
        assert (2, 9) == (Tally.of(events).figures().requests, Tally.of(events).figures().usage.output)

    def test_spans_without_an_id_are_told_each_and_once(self, session: Session) -> None:
        spans = [{**chat("", [said("user", words)], [TOLD], at=at)} for at, words in enumerate(("One?", "Two?"))]
        for _ in range(2):
            harken.capture.receive_otlp(session, document(*spans))

        asked = [entry.content for entry in session[TranscriptEntry].all() if entry.role == "user"]
        assert ["One?", "Two?"] == asked
        read = find("otel-genai-v1").read(document(*spans))
        assert ["One?", "Two?"] == [event.content for event in read if isinstance(event, Prompt)]

    def test_times_are_those_of_the_spans(self, session: Session) -> None:
        harken.capture.receive_otlp(session, document(*LOOP))

        first, *_, last = session[TranscriptEntry].all()
        assert 3 == (last.created_at - first.created_at).total_seconds()
        assert 2026 == first.created_at.year

    def test_what_waits_for_its_parents_is_told_when_the_session_closes(self, tmp_path: Path) -> None:
        with Session(tmp_path / "s.jsonl") as session:
            harken.capture.receive_otlp(session, document(*LOOP[1:]))
            assert [] == told(session)

        with Session(tmp_path / "s.jsonl", readonly=True) as session:
            assert STORY == told(session)

    def test_a_parent_in_another_process_is_not_waited_for(self, session: Session) -> None:
        one = {**chat("1", [ASKED], [TOLD], parent="9"), "flags": 0x301}

        harken.capture.receive_otlp(session, document(one))

        assert [STORY[0], STORY[3]] == told(session)

    @pytest.mark.parametrize("first", [0, 1], ids=["the logs first", "the spans first"])
    def test_words_that_come_as_logs_find_their_span(self, session: Session, first: int) -> None:
        about = {"gen_ai.operation.name": "chat", "gen_ai.usage.output_tokens": 3}
        bodies = [
            logs(
                log("gen_ai.user.message", {"content": "hi"}, span="1"),
                log("gen_ai.choice", {"message": {"content": "ho"}}, span="1", at=1),
            ),
            document(span("1", "chat", about)),
        ]

        for body in bodies if not first else reversed(bodies):
            harken.capture.receive_otlp(session, body)

        assert [("user", "hi"), ("assistant", "ho")] == [one for one in told(session) if one[1]]
        events = [event for line in session.records() for event in session_log.events_of(line)]
        assert 3 == Tally.of(events).figures().usage.output

    @pytest.mark.parametrize("body", [b"\xff\x00", b'{"resourceSpans":3}', b"[" * 2000, b'{"a":1}\n{'])
    def test_a_body_that_is_none_says_so_and_raises_nothing(
        self, session: Session, body: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.WARNING, "harken.capture"):
            assert 0 == harken.capture.receive_otlp(session, body)

        assert [] == list(session.records())
        assert 1 == len(caplog.records)

    def test_a_body_without_spans_is_nothing(self, session: Session, caplog: pytest.LogCaptureFixture) -> None:
        assert [0, 0, 0] == [harken.capture.receive_otlp(session, body) for body in (b"", b"{}", b"[]")]
        assert [] == caplog.records

    def test_secrets_are_masked(self, session: Session) -> None:
        harken.capture.receive_otlp(session, document(*LOOP), mask=lambda text: text.replace("sunny", "X"))

        assert "sunny" not in json.dumps(list(session.records()))
