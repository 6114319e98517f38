"""What is worth a look, what a strip of lanes shows, and what a summary names: pure folds, by example."""

from __future__ import annotations

from harken.analytics import lanes
from harken.analytics.dropped import NamedWords
from harken.analytics.lanes import LaneStep
from harken.analytics.worth import TriedCall, failed_runs

SECOND = 1_000_000


def tried(*outcomes: str, what: str = "make") -> list[TriedCall]:
    """Calls that went well (`.`) or failed (`x`), a second apart; other words are other calls between them."""
    calls = []
    for number, outcome in enumerate(outcomes):
        own = outcome in ".x"
        calls.append(TriedCall("", "Bash", what if own else outcome, number * SECOND, outcome == "x", f"r{number}", 0))
    return calls


class TestFailuresInARow:
    def test_three_are_worth_a_look_and_two_are_not(self) -> None:
        assert [] == failed_runs(tried("x", "x"))
        assert [(3, "r2")] == [(run.times, run.last.record) for run in failed_runs(tried("x", "x", "x"))]

    def test_a_success_between_begins_anew(self) -> None:
        assert [] == failed_runs(tried("x", "x", ".", "x", "x"))

    def test_whatever_else_is_called_between_does_not_matter(self) -> None:
        assert [3] == [run.times for run in failed_runs(tried("x", "ls", "x", "cat", "x"))]

    def test_a_call_that_says_nothing_is_never_the_same(self) -> None:
        assert [] == failed_runs(tried("x", "x", "x", what=""))


def steps(*told: tuple[int, str]) -> list[LaneStep]:
    return [LaneStep(second * SECOND, kind, f"r{second}", 0) for second, kind in told]


class TestALane:
    def test_time_belongs_to_what_ended_it(self) -> None:
        lane = lanes.lane(steps((0, "prompt"), (3, "thinking"), (5, "answer"), (9, "tool")))

        assert {"thinking": 3 * SECOND, "answer": 2 * SECOND, "tool": 4 * SECOND} == lanes.spent(lane.segments)

    def test_a_person_who_is_away_is_a_pause(self) -> None:
        lane = lanes.lane(steps((0, "answer"), (5, "answer"), (905, "prompt"), (910, "answer")))
        worked = lanes.busy([lane])

        assert [(0, 5 * SECOND), (905 * SECOND, 910 * SECOND)] == worked
        assert [(5 * SECOND, 905 * SECOND)] == lanes.gaps([lane], worked, 0, 910 * SECOND)

    def test_agents_side_by_side_are_counted_at_once(self) -> None:
        both = [lanes.lane(steps((0, "answer"), (10, "tool"))), lanes.lane(steps((5, "answer"), (20, "tool")))]

        assert 2 == lanes.most_in(lanes.at_once(both), 0, 20 * SECOND)
        assert 1 == lanes.most_in(lanes.at_once(both), 11 * SECOND, 20 * SECOND)

    def test_however_many_there_are_few_are_drawn(self) -> None:
        lane = lanes.lane(steps(*((second, "tool") for second in range(50_000))))

        small = lanes.reduced(lane, 0, 50_000 * SECOND, 100)

        assert len(small.segments) <= 100
        assert len(lane.segments) == sum(one.merged for one in small.segments)

    def test_records_out_of_order_never_make_time_go_backwards(self) -> None:
        lane = lanes.lane(steps((9, "answer"), (3, "tool"), (6, "thinking")))

        assert all(one.start <= one.end for one in lane.segments)


class TestASummary:
    SUMMARY = NamedWords("The user said: please mend the old parser before noon. Then parse.py was changed.")

    def test_it_names_what_it_quotes(self) -> None:
        assert self.SUMMARY.names("Please mend the old parser before noon")
        assert not self.SUMMARY.names("Please paint the new door before evening comes")

    def test_a_few_words_have_to_stand_there_as_they_are(self) -> None:
        assert self.SUMMARY.names("before noon")
        assert not self.SUMMARY.names("noon before")
        assert not self.SUMMARY.names("a")

    def test_a_file_is_named_by_its_name(self) -> None:
        assert self.SUMMARY.names_file("/x/src/parse.py")
        assert not self.SUMMARY.names_file("/x/src/other.py")
