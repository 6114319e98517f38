"""Tokens, money and prompts: each counted once, however often the records repeat them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from harken.analytics import Prompts, Usage, UsageCounter, stats, usage
from harken.events import Error, Event, Metric, Prompt, Response, System, ToolCall, ToolResult


def metric(
    api: str, output: int, *, request: str = "r", status: str = "", model: str = "demo", cost: float = 0.0
) -> Metric:
    return Metric(
        api_id=api,
        request_id=request,
        output_tokens=output,
        input_tokens=10,
        cache_read_tokens=100,
        cache_write_tokens=1000,
        status=status,
        model=model,
        cost_usd=cost,
    )


def figures(*metrics: Metric) -> tuple[int, int]:
    total = usage(metrics)
    return total.input, total.output


def test_the_lines_of_a_message_count_once_with_the_largest_output() -> None:
    total = usage([metric("m1", 1), metric("m1", 7), metric("m1", 3), metric("m2", 5)])

    assert Usage(input=20, output=12, cache_read=200, cache_write=2000) == total


def test_the_same_message_asked_for_twice_is_two() -> None:
    assert (20, 2) == figures(metric("m1", 1, request="a"), metric("m1", 1, request="b"))


def test_what_the_harness_made_up_does_not_count() -> None:
    assert (0, 0) == figures(metric("m1", 9, model="<synthetic>"))


def test_an_embedded_figure_counts_only_where_its_message_is_seen_nowhere_else() -> None:
    embedded = metric("m1", 9, request="other", status="embedded")

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

    assert 750_000 == usage(turns).cost_usd_micros


def test_sessions_that_share_messages_are_counted_together() -> None:
    counter = UsageCounter()
    for one in [metric("m1", 4), metric("m2", 5), metric("m1", 4), metric("m3", 6)]:
        counter.add(one)

    assert 15 == counter.total().output


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

    found = stats(told)

    assert Prompts(human=2, injected=1, tool_result=1) == found.prompts
    assert {"command": 1} == found.injected


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

    found = stats(told)

    assert {"Bash": 2, "Read": 1} == found.tools
    assert (1, 1, 1, 3, 5) == (found.responses, found.errors, found.compactions, found.started, found.ended)
    assert stats([]) == stats(iter(()))
