"""The folds: each number from events that were made for it; `test_plain_report` has real sessions."""

from __future__ import annotations

import json
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.analytics import (
    activity,
    amplification,
    compactions,
    delegation,
    files,
    flow,
    lifecycle,
    profile,
    report,
    tools,
)
from harken.analytics.steps import steps
from harken.clock import SECOND, parse_instant
from harken.events import (
    AgentCreated,
    Event,
    Metric,
    Prompt,
    Response,
    System,
    Thinking,
    Tokens,
    ToolCall,
    ToolResult,
    TranscriptEdit,
)
from harken.events.runs import EMBEDDED
from harken.events.tally import SYNTHETIC
from support.events import events as any_event

MINUTE = 60 * SECOND
STATES = ("prompt", "response", "tool", "thinking", "compaction", "idle")


def at(seconds: float, event: Event, agent: str = "") -> Event:
    placed: Event = event.replace(time=int(seconds * SECOND), agent_id=agent)
    return placed


TALK = [
    at(0, Prompt(content="hello")),
    at(2, Thinking(content="hm")),
    at(5, ToolCall(id="c1", name="Bash", input=b'{"command":"ls"}')),
    at(15, ToolResult(id="c1", output="no", is_error=True)),
    at(16, ToolCall(id="c2", name="Bash", input=b'{"command":"ls"}')),
    at(18, ToolResult(id="c2", output="yes")),
    at(20, Response(content="done!")),
    at(50, Prompt(content="more")),
    at(51, Response(content="ok")),
    at(1000, Prompt(content="again")),
]


class TestProfile:
    def test_time_belongs_to_what_ended_it(self) -> None:
        whole = profile.of(TALK).whole

        expected = profile.TimeSpent(
            thinking=2 * SECOND,
            response=(3 + 1 + 2 + 1) * SECOND,
            tool=(10 + 2) * SECOND,
            prompt=30 * SECOND,
            idle=949 * SECOND,
            events={"call": 2, "prompt": 3, "response": 2, "result": 2, "thinking": 1},
        )
        assert expected == whole

    def test_what_says_nothing_takes_no_time_away(self) -> None:
        told = [*TALK[:4], at(17, System(subtype="hook")), at(17.5, Response(model=SYNTHETIC)), *TALK[5:]]

        # The records between two steps are the harness's: the time is still that of what ended it.
        assert profile.of([*TALK[:4], *TALK[5:]]).whole == profile.of(told).whole

    def test_what_a_compaction_repeats_was_said_before(self) -> None:
        again = [at(30, System(subtype="compact_boundary")), at(30, Prompt(content="hello", index=1))]

        found = report.of([*TALK[:7], *again, *TALK[7:]])

        assert {"prompt": 3, "compaction": 1}.items() <= found.profile.whole.events.items()
        assert (3, 14) == (found.amplification.prompts, found.amplification.characters_in)
        assert len(TALK) + 1 == sum(map(sum, found.activity.hours))

    @pytest.mark.parametrize(
        ("source", "expected"), [("injected", {"result": 1}), ("user", {"result": 1, "prompt": 1})]
    )
    def test_injected_words_beside_results_and_attachments_are_no_prompts(
        self, source: str, expected: dict[str, int]
    ) -> None:
        mixed = [
            ToolResult(id="c"),
            Prompt(content="beside", source=source, index=1),
            Prompt(source="injected", origin="attachment:file"),
        ]

        assert expected == profile.of(mixed).whole.events

    def test_very_many_windows_become_windows_of_several_times_the_length(self) -> None:
        long = [at(0, Prompt()), at(50_000, Response())]

        assert {0} == {window.start % (6 * SECOND) for window in profile.of(long, SECOND).windows}

    def test_agents_have_times_of_their_own(self) -> None:
        both = [at(0, Prompt(content="a")), at(1, Prompt(content="b"), "x"), at(5, Response(), "x"), at(9, Response())]

        found = profile.of(both).agents

        assert {"": 9 * SECOND, "x": 4 * SECOND} == {agent: spent.response for agent, spent in found.items()}

    def test_a_compaction_takes_time_and_an_injected_prompt_is_nobodys(self) -> None:
        told = [at(0, Response()), at(30, System(subtype="compact_boundary")), at(40, Prompt(source="injected"))]

        assert (30 * SECOND, 10 * SECOND) == (profile.of(told).whole.compaction, profile.of(told).whole.idle)

    def test_a_stretch_is_split_where_windows_meet(self) -> None:
        windows = profile.of(TALK, 10 * SECOND).windows

        assert [0, 10, 20, 30, 40, 50] == [window.start // SECOND for window in windows[:6]]
        assert [5 * SECOND, 5 * SECOND + 2 * SECOND] == [window.spent.tool for window in windows[:2]]
        assert {"prompt": 1, "thinking": 1, "call": 1} == windows[0].spent.events

    @given(st.lists(any_event(), max_size=20), st.integers(1, 10**9))
    def test_windows_add_up_to_the_whole_and_an_agents_times_to_all_of_its_time(
        self, told: list[Event], size: int
    ) -> None:
        found = profile.of(told, size)

        for name in STATES:
            whole = getattr(found.whole, name)
            assert whole == sum(getattr(window.spent, name) for window in found.windows)
            assert whole == sum(getattr(spent, name) for spent in found.agents.values())
        for agent, spent in found.agents.items():
            times = [event.time for _, event in steps(told) if event.agent_id == agent and event.time is not None]
            assert (max(times) - times[0] if times else 0) == sum(getattr(spent, name) for name in STATES)


class TestAmplification:
    def test_what_came_of_what_people_said(self) -> None:
        found = amplification.of([*TALK, Prompt(content="notice", source="injected"), Response(model=SYNTHETIC)])

        assert (3, 2, 2, 14, 7) == msgspec.structs.astuple(found)
        assert (2 / 3, 2 / 3, 0.5) == (found.responses_per_prompt, found.calls_per_prompt, found.characters_ratio)

    def test_without_people_there_is_no_ratio(self) -> None:
        found = amplification.of([Response(content="hi")])

        assert (None, None, None) == (found.responses_per_prompt, found.calls_per_prompt, found.characters_ratio)


class TestCompactions:
    def test_the_context_fills_up_and_is_compacted(self) -> None:
        def asked(seconds: int, name: str, tokens: int) -> Event:
            return at(seconds, Metric(api_id=name, request_id="r", input_tokens=10, cache_read_tokens=tokens - 10))

        facts = b'{"compactMetadata":{"trigger":"auto","preTokens":95000}}'
        told = [
            asked(0, "m1", 20_000),
            asked(60, "m2", 90_000),
            asked(61, "m2", 90_000),
            at(3600, System(subtype="compact_boundary", metadata=facts)),
            asked(3700, "m3", 15_000),
            at(7200, TranscriptEdit(action="compact", n=3)),
        ]

        found = compactions.of([*told, Metric(api_id="x", input_tokens=5, scope=EMBEDDED)])

        first, second = found.compactions
        assert ("auto", 95_000, 15_000, 3600 * SECOND) == (first.trigger, first.before, first.after, first.took)
        assert ("", 15_000, None, 3600 * SECOND) == (second.trigger, second.before, second.after, second.took)
        assert [20_000, 90_000, 15_000] == [point.tokens for point in found.curve]
        assert 1.0 == found.per_hour

    def test_what_a_record_says_of_it_may_be_anything(self) -> None:
        for metadata in (b"no json", b"[1]", b'{"compactMetadata":3}', b'{"trigger":{},"preTokens":-1}'):
            (one,) = compactions.of([System(subtype="compact_boundary", metadata=metadata)]).compactions

            assert ("", None, None, None) == (one.trigger, one.before, one.took, one.time)


class TestActivity:
    def test_events_stand_at_their_weekday_and_hour(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        late = parse_instant("2026-03-01T23:30:00Z")  # a Sunday in Greenwich, and Monday morning in Tokyo

        found = activity.of([Prompt(time=late), Prompt(time=late), Prompt()])
        monkeypatch.undo()
        time.tzset()

        assert (2, 2, 1) == (found.hours[0][8], sum(map(sum, found.hours)), found.unknown)
        assert 4 == (found + found).hours[0][8]

    def test_the_peak_is_when_most_sessions_overlap(self) -> None:
        assert activity.Peak(sessions=2, time=5) == activity.peak([(0, 10), (5, 20), (10, 12), (None, 3), (30, None)])
        assert activity.Peak() == activity.peak([])

    @given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=8))
    def test_the_peak_is_what_counting_every_instant_finds(self, spans: list[tuple[int, int]]) -> None:
        found = activity.peak(spans)

        running = [sum(start <= now < max(end, start + 1) for start, end in spans) for now in range(40)]
        assert max(running) == found.sessions
        assert found.time is None or running.index(found.sessions) == found.time


class TestTools:
    def test_failures_retries_and_durations(self) -> None:
        told = [*TALK, ToolCall(id="c3", name="Read", input=b"{}"), TALK[2].replace(message_id="again")]

        found = tools.of(told)

        assert ["Bash", "Read"] == list(found)
        assert tools.ToolUse(calls=2, failed=1, retries=1, durations=(10 * SECOND, 2 * SECOND)) == found["Bash"]
        assert tools.ToolUse(calls=1, unanswered=1) == found["Read"]
        assert (12 * SECOND, 2 * SECOND, None) == (found["Bash"].took, found["Bash"].median, found["Read"].median)

    def test_the_same_call_after_a_success_is_no_retry(self) -> None:
        assert 0 == tools.of([*TALK[4:6], TALK[4].replace(id="c9")])["Bash"].retries


class TestLifecycle:
    def test_the_outcome_is_what_the_run_says(self) -> None:
        ends = [at(60, Metric(status="error_max_turns", turn_count=4)), at(90, System(subtype="shutdown"))]

        found = lifecycle.of([*TALK[:7], *ends])

        expected = lifecycle.Lifecycle(
            outcome="error_max_turns", started=0, ended=MINUTE, duration=MINUTE, turns=1, told_turns=4
        )
        assert expected == found

    def test_without_a_status_it_is_unknown(self) -> None:
        found = lifecycle.of(TALK)

        assert (None, 1000 * SECOND, None) == (found.outcome, found.duration, found.told_turns)
        assert lifecycle.Lifecycle() == lifecycle.of([])


class TestDelegation:
    def test_what_others_did_is_told_apart(self) -> None:
        def used(name: str, agent: str, output: int, scope: str = "") -> Metric:
            return Metric(api_id=name, request_id="r", output_tokens=output, agent_id=agent, scope=scope)

        told = [
            Response(content="mine"),
            used("m1", "", 5),
            used("m2", "x", 7, EMBEDDED),
            ToolCall(id="c", name="Read", agent_id="x"),
            used("m2", "x", 7),
            used("m3", "y", 1),
        ]

        found = delegation.of(told)

        assert delegation.Share(agents=1, responses=1, requests=1, tokens=Tokens(output=5)) == found.own
        assert delegation.Share(agents=2, calls=1, requests=2, tokens=Tokens(output=8)) == found.delegated

    def test_the_own_agent_is_the_one_that_none_of_the_others_made(self) -> None:
        made = AgentCreated(agent_id="x", parent="me")
        told = [at(0, made, "x"), at(1, AgentCreated(parent="elsewhere"), "me")]
        said = [at(2, Response(content="early"), "x"), at(3, ToolCall(id="c", name="Task"), "me")]

        for stream in ([*told, *said], [AgentCreated(agent_id="me"), made.replace(cause="m", parent=""), *said]):
            found = delegation.of(stream)

            assert (0, 1) == (found.own.responses, found.own.calls)
            assert (1, 0) == (found.delegated.responses, found.delegated.calls)

    def test_whoever_has_no_name_is_the_own_agent_and_else_the_first(self) -> None:
        early, late = at(0, Response(content="a"), "x"), at(1, ToolCall(id="c", name="Task"))

        assert (0, 1) == (delegation.of([early, late]).own.responses, delegation.of([early, late]).own.calls)
        assert 1 == delegation.of([early, at(1, Response(), "y")]).own.responses


class TestFlow:
    def test_who_told_whom(self) -> None:
        told = [
            Response(message_id="m1", agent_id="jack", content="hello"),
            Prompt(message_id="m2", agent_id="jill", content="[Jack]: hello", substance="m1"),
            Prompt(message_id="m3", agent_id="joan", content="[Jack]: hello", substance="m2"),
            Prompt(message_id="m4", agent_id="jill", content="hello", substance="m1"),
            Prompt(message_id="m5", agent_id="jill", content="lost", substance="nowhere"),
        ]

        assert (
            flow.FlowEdge(source="jack", target="jill", messages=2, characters=18),
            flow.FlowEdge(source="jack", target="joan", messages=1, characters=13),
        ) == flow.of(told)

    def test_circles_end(self) -> None:
        round_ = [Prompt(message_id="a", substance="b"), Prompt(message_id="b", substance="a", agent_id="x")]

        assert flow.of(round_) is not None


class TestFiles:
    def test_what_calls_name(self) -> None:
        told = [
            ToolCall(id="1", name="Read", input=b'{"file_path":"/a"}'),
            at(1, ToolCall(id="2", name="Edit", input=b'{"file_path":"/a"}')),
            at(1, ToolCall(id="2", name="Edit", input=b'{"file_path":"/a"}')),
            ToolCall(id="3", name="Bash", input=b'{"command":"cat /b"}'),
        ]

        assert {"/a": files.FileUse(read=1, edit=1)} == files.of(told)

    @pytest.mark.parametrize(
        ("tool", "done"),
        [
            ("mcp__fs__read_file", [("/a", "read")]),
            ("mcp__editor__list", []),
            ("mcp__reader__write", [("/a", "write")]),
        ],
    )
    def test_the_name_of_a_server_says_nothing_of_what_its_tool_does(
        self, tool: str, done: list[tuple[str, str]]
    ) -> None:
        assert done == files.touched(ToolCall(name=tool, input=b'{"path": "/a"}'))


@given(st.lists(any_event(), max_size=15))
def test_any_events_can_be_reported_and_the_report_is_json(told: list[Event]) -> None:
    assert json.loads(msgspec.json.encode(report.of(told, window=SECOND)))


class TestCallsWithOneId:
    FIRST = at(1, ToolCall(id="c1", name="Read", input=b'{"file_path":"/a"}', message_id="m1"))
    SECOND = at(5, ToolCall(id="c1", name="Edit", input=b'{"file_path":"/a"}', message_id="m2"))

    def test_of_two_replies_are_two_each_with_its_own_result(self) -> None:
        first, second = at(2, ToolResult(id="c1", is_error=True)), at(9, ToolResult(id="c1"))

        found = tools.of([self.FIRST, first, self.SECOND, second, second.replace(message_id="told again")])

        assert tools.ToolUse(calls=1, failed=1, durations=(SECOND,)) == found["Read"]
        assert tools.ToolUse(calls=1, durations=(4 * SECOND,)) == found["Edit"]
        assert {"/a": files.FileUse(read=1, edit=1)} == files.of([self.FIRST, first, self.SECOND, second])

    def test_end_with_the_last_where_the_first_was_left_alone(self) -> None:
        found = tools.of([self.FIRST, self.SECOND, at(6, ToolResult(id="c1"))])

        assert (1, 0) == (found["Read"].unanswered, found["Edit"].unanswered)

    def test_of_one_reply_whose_results_are_one_message_have_each_its_own(self) -> None:
        both = [self.FIRST, self.FIRST.replace(name="Edit", index=1)]
        results = [at(2, ToolResult(id="c1", is_error=True)), at(2, ToolResult(id="c1", index=1))]

        found = tools.of([*both, *results, *both, *results])

        assert (1, 0) == (found["Read"].failed, found["Edit"].failed)
        assert [0, 0] == [use.unanswered for use in found.values()]

    def test_a_result_that_a_file_tells_before_its_call_is_still_its_own(self) -> None:
        assert 0 == tools.of([at(2, ToolResult(id="c1")), self.FIRST])["Read"].unanswered
