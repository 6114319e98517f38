"""Usage row by row: the rows of a session add up to what `Tally` tells of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from harken.analytics.prices import packaged
from harken.analytics.spending import price_of
from harken.analytics.usage import UsageRow, total_tokens, usage_rows
from harken.events import Event, Metric, Response, Tokens
from harken.events.records import SessionRecord, by_record
from harken.events.runs import AGENT, AGENTS, EMBEDDED, SEVERAL, SO_FAR, TOTAL
from harken.events.tally import MICROS, SYNTHETIC, Tally
from harken.formats import get
from support.claude_lines import assistant, dump, user
from support.recordings import corpus_files
from support.rollouts import Rollout

figures = st.none() | st.integers(0, 10**9)
metrics = st.builds(
    Metric,
    api_id=st.sampled_from(["", "m1", "m2", "codex:t"]),
    request_id=st.sampled_from(["", "r1", "r2"]),
    message_id=st.sampled_from(["a", "b", "c"]),
    input_tokens=figures,
    output_tokens=figures,
    cache_read_tokens=figures,
    cache_write_tokens=figures,
    cache_write_1h_tokens=figures,
    reasoning_tokens=figures,
    cost_usd=st.none() | st.integers(0, 10**6).map(lambda micros: micros / 64),
    scope=st.sampled_from(["", "", "", EMBEDDED, SO_FAR, AGENT, AGENTS, TOTAL]),
    status=st.sampled_from(["", "", "", "success"]),
    model=st.sampled_from(["one", "two", SYNTHETIC]),
    time=st.none() | st.integers(0, 10**15),
)


def records(events: Sequence[Event], *, carried: bool = False, name: str = "") -> list[SessionRecord]:
    return [SessionRecord(events=record, carried=carried, name=name) for record in by_record(events)]


def said(rows: Sequence[UsageRow]) -> int | None:
    costs = [row.said_usd for row in rows if row.said_usd is not None]
    return round(math.fsum(costs) * MICROS) if costs else None


@given(st.lists(metrics, max_size=8))
def test_the_rows_of_a_session_add_up_to_its_tally(told: list[Metric]) -> None:
    rows = usage_rows(records(told))
    tally = Tally.of(told)

    expected = tally.tokens
    found = total_tokens(rows)
    assert [getattr(expected, name) or 0 for name in Tokens.__struct_fields__] == [
        getattr(found, name) or 0 for name in Tokens.__struct_fields__
    ]
    assert tally.cost_usd_micros == said(rows)
    assert len(rows) == len({row.key for row in rows})


@given(st.lists(metrics, max_size=6), st.lists(metrics, max_size=6))
def test_what_was_carried_over_is_marked_and_the_rest_is_what_was_done(before: list[Metric], own: list[Metric]) -> None:
    rows = usage_rows([*records(before, carried=True), *records(own)])

    made = [row for row in rows if not row.carried]
    assert usage_rows(records(own)) == made
    assert {row.key for row in usage_rows(records(before))} <= {row.key for row in rows}


def test_the_parts_of_what_was_written_into_a_cache_are_told_apart() -> None:
    line = assistant("A", None, "hello", "m1", model="claude-opus-4-6")
    line["message"]["usage"] |= {
        "cache_creation_input_tokens": 100,
        "cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 70},
        "output_tokens_details": {"thinking_tokens": 1},
    }

    (row,) = usage_rows(records(get("claude-code-v1").read(dump(user("U", None, "hi"), line))))

    assert (30, 70, 1, "claude-opus-4-6") == (row.cache_write_5m, row.cache_write_1h, row.reasoning, row.model)


def test_a_request_of_codex_says_how_much_of_it_was_reasoning() -> None:
    usage = {"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 20, "reasoning_output_tokens": 15}
    rollout = Rollout().add("turn_context", model="gpt-5.5", cwd="/w").user("hi").model("hello")
    rollout.event("token_count", info={"total_token_usage": usage, "last_token_usage": usage})

    (row,) = usage_rows(records(get("codex-v1").read(rollout.data)))

    expected = UsageRow(
        key=row.key, api=row.api, time=row.time, model="gpt-5.5", input=60, output=20, cache_read=40, reasoning=15
    )
    assert expected == msgspec.structs.replace(row, cache_write_5m=None, agent="")


def test_reports_that_nothing_names_are_known_by_the_record_that_tells_them() -> None:
    told = [Response(content="a", message_id="a"), Metric(output_tokens=3, index=1, message_id="a")]

    (first,) = usage_rows(records(told, name="shared a"))
    (again,) = usage_rows(records(told, name="shared a"))
    (other,) = usage_rows(records(told, name="shared b"))

    assert first.key == again.key != other.key


def test_on_the_corpus_the_rows_add_up_to_the_tally_of_every_file() -> None:
    for pattern, format in (("claude_code/**/*.jsonl", "claude-code-v1"), ("codex_rollout/**/*.jsonl", "codex-v1")):
        for path in sorted(corpus_files(pattern), key=lambda path: path.stat().st_size)[:40]:
            told = get(format).read(path.read_bytes())
            expected = Tally.of(told).tokens

            found = total_tokens(usage_rows(records(told)))

            counts = [getattr(expected, name) or 0 for name in Tokens.__struct_fields__]
            assert counts == [getattr(found, name) or 0 for name in Tokens.__struct_fields__], path


class TestOnlyTheOutput:
    """Some programs tell of a request what came out of it, and at the end of a run what went into all of them."""

    ANSWERED = Metric(output_tokens=7, api_id="r1", model="claude-sonnet-4-5", message_id="a")
    WHOLE = Metric(input_tokens=100, scope=SEVERAL, api_id="w", model="claude-sonnet-4-5", message_id="w")

    def partial(self, *told: Metric) -> list[bool]:
        return [row.partial for row in usage_rows(records(told))]

    def test_what_a_request_cost_is_unknown_while_nobody_says_what_went_into_it(self) -> None:
        unnamed = self.ANSWERED.replace(api_id="")
        for one in (self.ANSWERED, unnamed):
            assert [True] == self.partial(one)
            found = price_of(usage_rows(records([one])), packaged())
            assert (None, {"claude-sonnet-4-5": 1}) == (found.usd_micros, found.unpriced)

    def test_the_whole_at_the_end_of_a_run_says_it_for_those_before(self) -> None:
        later = self.ANSWERED.replace(api_id="r2", message_id="b")

        assert [False, False] == self.partial(self.ANSWERED, self.WHOLE)
        assert [False, False, True] == self.partial(self.ANSWERED, self.WHOLE, later)
        found = price_of(usage_rows(records([self.ANSWERED, self.WHOLE])), packaged())
        assert (100 * 3 + 7 * 15, {}) == (found.usd_micros, found.unpriced)

    def test_another_report_of_the_request_says_it(self) -> None:
        told = self.ANSWERED.replace(input_tokens=1, message_id="b")

        assert [False] == self.partial(self.ANSWERED, told)
        assert [False] == self.partial(told, self.ANSWERED)
