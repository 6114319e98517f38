"""A wrapper's chain follows its branch: it goes on where the last run stopped and leaves an imported session alone."""

from __future__ import annotations

import msgspec

from harken.context import Tracker, TrackerSettings
from harken.events import Metric, Prompt, Response
from harken.repo import Repo
from harken.store.base import SessionRow
from harken.store.memory import MemoryStore


def say(tracker: Tracker, text: str) -> str:
    tracker.feed([Prompt(content=text, time=1_000_000), Response(content=f"{text}!", time=2_000_000)])
    return tracker.checkpoint("session_end")


def texts(repo: Repo, ref: str) -> list[str]:
    from harken.events.cbor import decode_events

    return [event.content for event in decode_events(repo.materialize(ref, format="events-v1").bytes)]


def live(repo: Repo, **facts: str) -> Tracker:
    return Tracker(repo, TrackerSettings(session_id="S", template="claude-code", branch="live/S", **facts))


def test_a_second_run_goes_on_from_the_branch_and_skips_nothing() -> None:
    repo = Repo(MemoryStore())
    say(live(repo), "one")
    say(live(repo), "two")
    assert texts(repo, "live/S") == ["one", "one!", "two", "two!"]
    assert texts(repo, "S") == texts(repo, "live/S")


def test_a_session_that_was_read_from_its_file_stays_on_the_files_chain_and_stands_above_it() -> None:
    repo = Repo(MemoryStore())
    before = repo.commit(say(live(repo), "one"))
    commit = repo.checkpoint(b'{"type":"user"}\n', format="claude-code-v1")
    row = SessionRow(session="S", runtime="claude-code", tip=commit.id, source="/file.jsonl", state=b"import")
    with repo.store.write() as writer:
        writer.save_session(row)
    say(live(repo), "two")
    (kept,) = repo.store.sessions(prefix="S")
    assert (commit.id, "/file.jsonl", b"import") == (kept.tip, kept.source, kept.state)
    assert kept.stand == repo.commit("live/S").id == repo.commit("S").id
    assert ["two", "two!"] == texts(repo, "live/S")[-2:]
    assert commit.id == repo.commit("live/S").parent
    assert ["one", "one!"] == texts(repo, before.id), "what was recorded before the import stays where it was"


def test_a_run_from_a_commit_hangs_from_it() -> None:
    repo = Repo(MemoryStore())
    source = repo.commit(say(live(repo), "before"))
    fork = Tracker(repo, TrackerSettings(session_id="T", branch="live/T", parent=source.id, forked_from=source.id))
    first = repo.commit(say(fork, "after"))
    assert texts(repo, "live/T") == ["before", "before!", "after", "after!"]
    assert (first.forked_from, first.session_id) == (source.id, "T")
    second = repo.commit(say(fork, "more"))
    assert (second.parent, second.forked_from) == (first.id, "")
    assert msgspec.structs.asdict(repo.commit("live/S"))["id"] == source.id


def test_the_cost_of_a_second_run_may_include_the_firsts() -> None:
    """#29: Claude Code goes on from what the session has cost; a report of less begins anew."""
    repo = Repo(MemoryStore())
    costs = []
    for run in ([0.25, 0.5], [0.75, 1.0], [0.125]):
        tracker = live(repo)
        for cost in run:
            tracker.feed([Metric(cost_usd=cost, status="success", time=3_000_000)])
            tracker.checkpoint("turn_boundary")
            costs.append(repo.store.sessions()[0].cost_usd_micros)
    assert [250_000, 500_000, 750_000, 1_000_000, 1_125_000] == costs
    assert 1_125_000 == next(iter(repo.stats(["S"]))).figures.cost_usd_micros
