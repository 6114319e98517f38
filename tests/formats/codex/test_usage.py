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


def figures(given: int, output: int) -> dict[str, int]:
    return {"input_tokens": given, "cached_input_tokens": 0, "output_tokens": output}


def recorded(rollout: Rollout, response: str, used: tuple[int, int], total: tuple[int, int], thread: str) -> Rollout:
    return rollout.add(
        "token_usage_record",
        thread_id=thread,
        response_id=response,
        usage=figures(*used),
        thread_token_usage=figures(*total),
    )


def test_a_request_that_only_a_record_tells_of_counts() -> None:
    """The program was killed before the total was written."""
    assert Tokens(input=100, output=10, cache_read=0) == total(
        scan(recorded(Rollout(id="one"), "r1", (100, 10), (100, 10), "one").data)
    )


def test_a_record_and_the_total_of_the_same_request_count_once() -> None:
    rollout = recorded(Rollout(id="one"), "r1", (100, 10), (100, 10), "one").tokens(100, 10)
    recorded(rollout, "r2", (50, 5), (150, 15), "one").tokens(150, 15)
    facts = scan(rollout.data)

    assert Tokens(input=150, output=15, cache_read=0) == total(facts)
    assert {"codex:one r1", "codex:one r2"} == set(facts.tally.requests)


def test_a_total_that_comes_after_the_next_requests_record_is_no_new_run() -> None:
    rollout = recorded(Rollout(id="one"), "r1", (100, 10), (100, 10), "one")
    recorded(rollout, "r2", (50, 5), (150, 15), "one").tokens(100, 10).tokens(150, 15)

    assert Tokens(input=150, output=15, cache_read=0) == total(scan(rollout.data))


def test_totals_of_an_older_version_and_records_of_a_newer_one_add_up() -> None:
    rollout = recorded(Rollout(id="one").tokens(100, 10), "r2", (50, 5), (150, 15), "one").tokens(150, 15)

    assert Tokens(input=150, output=15, cache_read=0) == total(scan(rollout.data))


def test_forks_that_used_as_much_stay_two_and_what_they_copied_counts_once() -> None:
    def fork(thread: str) -> FileFacts:
        rollout = recorded(Rollout(id=thread, forked_from_id="old").meta(id="old"), "r1", (9, 9), (9, 9), "old")
        return scan(recorded(rollout.tokens(9, 9), f"{thread}-r", (1, 1), (10, 10), thread).tokens(10, 10).data)

    assert Tokens(input=11, output=11, cache_read=0) == total(fork("one"), fork("two"))


def test_a_record_that_lacks_figures_or_an_id_leaves_the_request_to_the_total() -> None:
    rollout = Rollout(id="one").add("token_usage_record", response_id="r", usage=figures(100, 10))
    rollout.add("token_usage_record", thread_token_usage=figures(100, 10), usage=figures(100, 10), response_id=[])

    assert Tokens(input=100, output=10, cache_read=0) == total(scan(rollout.tokens(100, 10).data))


def test_numbers_that_are_none_do_no_harm() -> None:
    odd = {"input_tokens": "many", "output_tokens": -5, "cached_input_tokens": 2**70}
    rollout = Rollout().event("token_count", info={"total_token_usage": odd}).event("token_count", info=[])

    assert NO_TOKENS == total(scan(rollout.data))
