"""Tokens: running totals are never added up, and forks share what they share."""

from __future__ import annotations

from harken.events import Tokens
from harken.events.tally import NO_TOKENS, Tally
from harken.formats.codex import scan
from harken.formats.facts import FileFacts
from support.rollouts import Rollout


def total(*facts: FileFacts) -> Tokens:
    return Tally.merge(fact.tally for fact in facts).tokens


def test_the_sum_is_the_last_total() -> None:
    facts = scan(Rollout().tokens(100, 10, 40).tokens(300, 30, 200).tokens(300, 30, 200).data)

    assert Tokens(input=100, output=30, cache_read=200) == total(facts)


def test_a_fork_by_copy_counts_the_copied_part_once() -> None:
    original = scan(Rollout(id="old").tokens(100, 10).tokens(200, 20).data)
    fork = scan(Rollout(id="new", forked_from_id="old").meta(id="old").tokens(100, 10).tokens(150, 17).data)
    fork_of_fork = scan(
        Rollout(id="newest", forked_from_id="new")
        .meta(id="new", forked_from_id="old")
        .meta(id="old")
        .tokens(100, 10)
        .tokens(170, 18)
        .data
    )

    assert Tokens(input=200, output=20, cache_read=0) == total(original)
    assert Tokens(input=250, output=27, cache_read=0) == total(original, fork)
    assert Tokens(input=320, output=35, cache_read=0) == total(original, fork, fork_of_fork)


def test_a_fork_by_reference_counts_its_own_part() -> None:
    base = {"thread_id": "old", "end_ordinal_exclusive": 3, "end_byte_offset": 400}
    last = {"input_tokens": 50, "cached_input_tokens": 0, "output_tokens": 7}
    original = scan(Rollout(id="old").tokens(100, 10).data)
    fork = scan(Rollout(id="new", forked_from_id="old", history_base=base).tokens(150, 17, last=last).data)

    assert Tokens(input=50, output=7, cache_read=0) == total(fork)
    assert Tokens(input=150, output=17, cache_read=0) == total(original, fork)
    assert ("old", 400) == (fork.forked_from, fork.fork_base)


def test_threads_that_happen_to_have_the_same_totals_are_counted_each() -> None:
    assert Tokens(input=200, output=20, cache_read=0) == total(
        scan(Rollout(id="one").tokens(100, 10).data), scan(Rollout(id="two").tokens(100, 10).data)
    )


def test_a_total_that_falls_is_another_runs_and_both_count() -> None:
    """Codex 0.47 counts from zero whenever it resumes; also where two runs come to the same total."""
    runs = Rollout().tokens(100, 10).tokens(30, 3).tokens(100, 10).tokens(30, 3)

    assert Tokens(input=230, output=23, cache_read=0) == total(scan(runs.data))


def test_numbers_that_are_none_do_no_harm() -> None:
    odd = {"input_tokens": "many", "output_tokens": -5, "cached_input_tokens": 2**70}
    rollout = Rollout().event("token_count", info={"total_token_usage": odd}).event("token_count", info=[])

    assert NO_TOKENS == total(scan(rollout.data))
