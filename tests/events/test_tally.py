"""Tokens, money and prompts: each counted once, however often the records repeat them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.analytics.steps import steps
from harken.events import Error, Event, Metric, Prompt, Response, System, Tokens, ToolCall, ToolResult, TranscriptEdit
from harken.events.figures import Prompts
from harken.events.tally import NO_TOKENS, Tally
from harken.formats import get
from support.events import events


def metric(
    api: str,
    output: int | None,
    *,
    request: str = "r",
    status: str = "",
    scope: str = "",
    model: str = "demo",
    cost: float | None = None,
) -> Metric:
    return Metric(
        api_id=api,
        request_id=request,
        output_tokens=output,
        input_tokens=10,
        cache_read_tokens=100,
        cache_write_tokens=1000,
        status=status,
        scope=scope,
        model=model,
        cost_usd=cost,
    )


def usage(events: Iterable[Event]) -> Tokens:
    return Tally.of(events).tokens


def figures(*metrics: Metric) -> tuple[int | None, int | None]:
    total = usage(metrics)
    return total.input, total.output


def test_the_lines_of_a_message_count_once_with_the_largest_output() -> None:
    total = usage([metric("m1", 1), metric("m1", 7), metric("m1", 3), metric("m2", 5)])

    assert Tokens(input=20, output=12, cache_read=200, cache_write=2000) == total


def test_requests_of_two_logs_that_a_provider_gave_the_same_id_are_two_and_those_of_a_copied_log_one() -> None:
    """Ollama has 999 ids for its replies and no ids of requests, and every log has a `msg_005`."""
    one = metric("chatcmpl-42", 5, request="").replace(cause="msg_005", time=1)

    assert (20, 10) == figures(one, one.replace(time=2), one)


@pytest.mark.parametrize("order", [1, -1])
def test_of_reports_with_the_same_output_the_largest_input_stands_in_whatever_order_they_come(order: int) -> None:
    reports = [metric("m1", 5), metric("m1", 5).replace(input_tokens=70), metric("m1", 5).replace(input_tokens=None)]

    assert (70, 5) == figures(*reports[::order])


def test_the_same_message_asked_for_twice_is_two() -> None:
    assert (20, 2) == figures(metric("m1", 1, request="a"), metric("m1", 1, request="b"))


def test_what_the_harness_made_up_does_not_count() -> None:
    assert (0, 0) == figures(metric("m1", 9, model="<synthetic>"))
    assert 0 == Tally.of([Response(content="No response requested.", model="<synthetic>")]).responses


def test_an_embedded_figure_counts_only_where_its_message_is_seen_nowhere_else() -> None:
    embedded = metric("m1", 9, request="other", scope="embedded")

    assert (10, 9) == figures(embedded)
    assert (10, 1) == figures(embedded, metric("m1", 1))
    assert (10, 1) == figures(metric("m1", 1), embedded)


def test_figures_without_a_name_are_added_up() -> None:
    assert (20, 5) == figures(metric("", 2), metric("", 3))


def test_a_runs_total_stands_over_its_messages_where_it_is_larger() -> None:
    """While a message streams its output is not known; a run that was cut short has no total."""
    assert (10, 50) == figures(metric("m1", 1), metric("", 50, status="success"))
    assert (10, 60) == figures(metric("m1", 60), metric("", 50, status="success"))


def test_the_cost_of_a_process_is_its_last_and_processes_are_added_up() -> None:
    turns = [metric("", 1, status="success", cost=cost) for cost in (0.25, 0.5, 0.125, 0.25)]

    assert 750_000 == Tally.of(turns).cost_usd_micros


def test_sessions_that_share_messages_are_counted_together() -> None:
    one, fork = Tally.of([metric("m1", 4), metric("m2", 5)]), Tally.of([metric("m1", 4), metric("m3", 6)])

    assert 15 == Tally.merge([one, fork]).tokens.output == Tally.merge([fork, one]).tokens.output


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.integers(0, 9)), max_size=12), st.randoms())
def test_the_order_of_records_does_not_matter(rows: list[tuple[str, str, int]], random: object) -> None:
    metrics = [metric(api, output, request=request) for api, request, output in rows]
    largest: dict[tuple[str, str], int] = {}
    for api, request, output in rows:
        largest[api, request] = max(largest.get((api, request), 0), output)

    assert sum(largest.values()) == usage(metrics).output == usage(reversed(metrics)).output


def test_a_record_counts_once_whatever_it_says() -> None:
    told: list[Event] = [
        Prompt(content="seen", source="injected", origin="ide", message_id="u1", index=0),
        Prompt(content="words", message_id="u1", index=1),
        Prompt(content="note", source="injected", origin="command", message_id="u2"),
        ToolResult(id="c1", message_id="u3", index=0),
        ToolResult(id="c2", message_id="u3", index=1),
        Prompt(content="beside", source="injected", origin="beside_result", message_id="u3", index=2),
        Prompt(content="told", source="injected", origin="attachment:file", message_id="t1"),
        Prompt(content="same name again", message_id="u1"),
    ]

    found = Tally.of(told).figures()

    assert Prompts(human=2, injected=1, tool_result=1) == found.prompts
    assert {"command": 1} == found.injected


def test_a_persons_words_beside_results_are_a_prompt_of_theirs() -> None:
    told: list[Event] = [
        ToolResult(id="c1", message_id="u1", index=0),
        Prompt(content="and the other file", message_id="u1", index=1),
        Prompt(content="seen", source="injected", origin="ide", message_id="u1", index=2),
    ]

    assert Prompts(human=1, tool_result=1) == Tally.of(told).figures().prompts
    assert ["result", "prompt"] == [step.kind for step in steps(told)]


def test_what_an_agent_hands_on_to_another_is_no_persons_prompt() -> None:
    said = Prompt(content="hello", message_id="m1", agent_id="a1")
    heard = Prompt(content="[Jack]: hello", message_id="m2", agent_id="a2", substance="m1")

    tally = Tally.of([said, heard])

    assert Prompts(human=1, injected=1) == tally.prompts
    assert {"agent": 1} == tally.origins
    assert 2 == tally.messages


def test_the_rest_of_the_figures() -> None:
    told: list[Event] = [
        Prompt(content="q", time=5),
        Response(content="x"),
        ToolCall(name="Read"),
        ToolCall(name="Bash"),
        ToolCall(name="Bash"),
        Error(message="no"),
        System(subtype="compact_boundary", time=3),
        System(subtype="init"),
    ]

    found = Tally.of(told).figures()

    assert {"Bash": 2, "Read": 1} == found.tools
    assert (1, 1, 1, 3, 5) == (found.responses, found.errors, found.compactions, found.started, found.ended)


# -- unknown is not zero -----------------------------------------------------------------------------------------------

COUNTS = st.none() | st.integers(0, 1000)
TOKENS = st.builds(Tokens, input=COUNTS, output=COUNTS, cache_read=COUNTS, cache_write=COUNTS)


@settings(deadline=None)
@given(TOKENS, TOKENS, TOKENS)
def test_adding_tokens_keeps_apart_what_is_none_and_what_is_zero(one: Tokens, two: Tokens, three: Tokens) -> None:
    assert one + two == two + one
    assert (one + two) + three == one + (two + three)
    assert one + Tokens() == one
    for name in Tokens.__struct_fields__:
        known = [count for tokens in (one, two) if (count := getattr(tokens, name)) is not None]
        assert (sum(known) if known else None) == getattr(one + two, name)


def test_a_figure_that_nobody_told_is_unknown_and_one_that_was_told_is_not() -> None:
    told = [Metric(api_id="m1", output_tokens=3, cache_read_tokens=0), Metric(api_id="m2", output_tokens=4)]

    assert Tokens(input=None, output=7, cache_read=0, cache_write=None) == usage(told)


def test_an_answer_that_nobody_counted_is_unknown_and_no_answer_costs_nothing() -> None:
    assert Tokens() == usage([Prompt(content="q"), Response(content="a")])
    assert NO_TOKENS == usage([Prompt(content="q")])
    assert NO_TOKENS == usage([])


@pytest.mark.parametrize("cost", [1e13, 1e30, 1e308, float("inf"), float("nan"), -1.0])
@pytest.mark.parametrize("status", ["", "success"])
@pytest.mark.parametrize("api_id", ["", "m9"])
def test_a_cost_that_cannot_be_is_unknown(cost: float, status: str, api_id: str) -> None:
    odd = metric(api_id, 1, status=status, cost=cost)

    assert Tally.of([odd]).cost_usd_micros is None
    assert 250_000 == Tally.of([metric("m1", 1, cost=0.25), odd]).cost_usd_micros
    assert 250_000 == Tally.merge([Tally.of([odd]), Tally.of([metric("m1", 1, cost=0.25)])]).cost_usd_micros


@pytest.mark.parametrize("status", ["", "success"])
@pytest.mark.parametrize("count", [2**53, 2**64, 2**200, -1])
def test_a_count_that_cannot_be_is_unknown(count: int, status: str) -> None:
    odd = metric("", count, status=status)

    assert Tally.of([odd]).figures().usage.output is None
    assert 3 == Tally.of([metric("", 3), odd]).figures().usage.output
    assert msgspec.json.encode(Tally.of([odd]))


def test_counts_that_add_up_to_more_than_can_be_are_unknown_in_any_order() -> None:
    many = [*(metric("", 2**53 - 1) for _ in range(3000)), metric("", 5)]

    for told in (many, many[::-1]):
        assert Tally.of(told).figures().usage.output is None
        assert msgspec.json.encode(Tally.of(told))
        assert Tally.merge([Tally.of(told[:7]), Tally.of(told[7:])]).figures().usage.output is None


def test_what_nobody_priced_has_no_cost() -> None:
    assert Tally.of([metric("m1", 1)]).cost_usd_micros is None
    assert 0 == Tally.of([metric("m1", 1, cost=0.0)]).cost_usd_micros


def test_money_is_added_up_before_it_is_rounded() -> None:
    """#7: a thousand requests of a fifth of a millionth are two hundred millionths, not nothing."""
    many = [metric(f"m{number}", 1, cost=0.000_000_2) for number in range(1000)]

    assert 200 == Tally.of(many).cost_usd_micros
    assert 200 == Tally.merge([Tally.of(many[:500]), Tally.of(many[400:])]).cost_usd_micros


def test_a_runs_cost_includes_what_its_requests_told() -> None:
    run = [metric("m1", 5, cost=0.25), metric("", 1, status="success", cost=0.5)]

    assert 500_000 == Tally.of(run).cost_usd_micros == Tally.merge([Tally.of(run)]).cost_usd_micros


def test_a_native_log_that_was_folded_counts_a_compaction() -> None:
    """#7: the edit by which an agent folds its transcript is its compaction."""
    edits = [TranscriptEdit(action="compact", n=4, content="so far"), TranscriptEdit(action="truncate", n=2)]

    assert 1 == Tally.of(edits).compactions


def test_what_a_compaction_puts_in_place_is_not_said_again() -> None:
    boundary = System(subtype="compact_boundary", message_id="b", index=0)
    again = [Prompt(content="q", message_id="b", index=1), ToolCall(name="Read", message_id="b", index=2)]

    found = Tally.of([Prompt(content="q", message_id="a"), boundary, *again]).figures()

    assert (1, {}, 1) == (found.prompts.human, found.tools, found.compactions)


STREAMS = st.lists(
    st.one_of(
        st.builds(metric, st.sampled_from(["", "a", "b"]), COUNTS, request=st.sampled_from("xy")),
        st.builds(metric, st.sampled_from("ab"), COUNTS, scope=st.just("embedded")),
        st.builds(Prompt, source=st.sampled_from(["user", "injected"]), time=COUNTS),
        st.builds(ToolCall, name=st.sampled_from(["Read", "Bash"])),
        st.builds(Response, content=st.just("x")),
    ),
    max_size=12,
)


@settings(max_examples=80, deadline=None)
@given(st.lists(STREAMS, max_size=4))
def test_merging_is_counting_everything_at_once(streams: list[list[Event]]) -> None:
    together = Tally.of([event for stream in streams for event in stream])
    merged = Tally.merge(map(Tally.of, streams))

    assert together.figures() == merged.figures()
    halves = [Tally.merge(map(Tally.of, streams[:2])), Tally.merge(map(Tally.of, streams[2:]))]
    assert merged.figures() == Tally.merge(halves).figures()


@settings(max_examples=60, deadline=None)
@given(STREAMS)
def test_a_tally_survives_a_sessions_row(stream: list[Event]) -> None:
    tally = Tally.of(stream)

    assert tally == msgspec.json.decode(msgspec.json.encode(tally), type=Tally)


@pytest.mark.parametrize("format", ["events-v1", "session-log-v2"])
@settings(max_examples=60, deadline=None)
@given(st.lists(events(), max_size=8))
def test_what_is_kept_counts_as_it_did_before(format: str, told: list[Event]) -> None:
    """A native session counts the same from its events, its log's lines and an array of events."""
    told = [event.replace(index=0, message_id=f"m{number}") for number, event in enumerate(told)]
    known = get(format)

    assert Tally.of(told).figures() == Tally.of(known.read(known.write(told).data)).figures()
