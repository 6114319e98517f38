"""The laws of contexts, for any chain."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from harken.context import Tracker, TrackerSettings
from harken.events import Event
from harken.events.cbor import encode_events
from harken.formats import bureau_agent
from harken.repo import Repo
from harken.store import Commit
from harken.testing.formats import conversations
from support.contexts import START, heard, memory_repo
from support.events import events as any_event

LAWS = settings(max_examples=60, deadline=None)

deltas = st.lists(st.lists(any_event(), min_size=1, max_size=3), min_size=1, max_size=6)
steps = st.lists(st.sampled_from(["delta", "delta", "compact", "snapshot"]), min_size=1, max_size=12)


def build(repo: Repo, plan: Sequence[str], contents: Sequence[Sequence[Event]]) -> tuple[Commit, list[bytes]]:
    """A chain after the plan, and the delta artifacts that went into it."""
    tip = repo.checkpoint(encode_events(contents[0]), format="events-v1", created_at=START)
    kept = [encode_events(contents[0])]
    for number, step in enumerate(plan, 1):
        time = START + number * 1_000_000
        if step == "compact":
            tip = repo.compact(tip, f"summary {number}", created_at=time)
        elif step == "snapshot":
            tip = repo.snapshot(tip, created_at=time)
        else:
            kept.append(encode_events(contents[number % len(contents)]))
            tip = repo.checkpoint(kept[-1], format="events-v1", parent=tip, created_at=time)
    return tip, kept


@LAWS
@given(plan=steps, contents=deltas)
def test_compaction_hides_but_never_loses(plan: list[str], contents: list[list[Event]]) -> None:
    """Root gives back every record of every delta exactly once, byte for byte, and nothing that Harken added."""
    from harken.events.cbor import join_arrays

    repo = memory_repo()
    tip, kept = build(repo, plan, contents)

    assert join_arrays(kept) == repo.materialize(tip, stop="root").bytes


@LAWS
@given(plan=steps, contents=deltas, data=st.data())
def test_a_fork_hears_what_its_origin_heard(plan: list[str], contents: list[list[Event]], data: st.DataObject) -> None:
    repo = memory_repo()
    tip, _ = build(repo, plan, contents)
    origin = data.draw(st.sampled_from(repo.history(tip)))
    stop = data.draw(st.sampled_from(["compaction", "root"]))

    fork = repo.fork(origin, "fork")

    assert repo.materialize(origin, stop=stop) == repo.materialize(fork, stop=stop)
    assert repo.materialize(origin, stop=stop) == repo.materialize("fork", stop=stop)


@LAWS
@given(plan=steps, contents=deltas)
def test_a_snapshot_anywhere_changes_nothing_that_is_heard(plan: list[str], contents: list[list[Event]]) -> None:
    plain, snapped = memory_repo(), memory_repo()
    without = [step for step in plan if step != "snapshot"]
    tip, _ = build(plain, without, contents)
    with_snapshots = [step for pair in ((step, "snapshot") for step in without) for step in pair]
    # The same deltas in the same order: the plan's numbers would choose others.
    other = snapped.checkpoint(encode_events(contents[0]), format="events-v1", created_at=START)
    number = 0
    for step in with_snapshots:
        if step == "snapshot":
            other = snapped.snapshot(other)
            continue
        number += 1
        if step == "compact":
            other = snapped.compact(other, f"summary {number}")
        else:
            content = encode_events(contents[number % len(contents)])
            other = snapped.checkpoint(content, format="events-v1", parent=other)

    assert plain.materialize(tip).bytes == snapped.materialize(other).bytes


@LAWS
@given(plan=steps, contents=deltas)
def test_the_same_deltas_give_the_same_commits_on_two_stores(plan: list[str], contents: list[list[Event]]) -> None:
    def names(repo: Repo) -> list[tuple[str, str]]:
        tip, _ = build(repo, plan, contents)
        return [(commit.id, commit.seal) for commit in repo.history(tip)]

    assert names(memory_repo()) == names(memory_repo())


@LAWS
@given(stream=conversations(turns=5), data=st.data())
def test_however_a_stream_arrives_the_tracker_keeps_all_of_it(stream: list[Event], data: st.DataObject) -> None:
    """Cut anywhere, fed by any process, with any frequency: the chain holds every event once, in order."""
    frequency = data.draw(st.sampled_from(["turn", "tool", "every=2", "end"]))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=5)))
    repo = memory_repo()
    live = Tracker(repo, TrackerSettings(session_id="s", frequency=frequency))
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        if data.draw(st.booleans()):
            live = Tracker(repo, TrackerSettings(session_id="s", frequency=frequency))
            live.feed(stream[:start])
        live.feed(stream[start:end])
    live.close()

    kept = heard(repo, "s") if stream else []

    assert stream == kept


@LAWS
@given(parts=st.lists(st.tuples(st.booleans(), conversations(turns=2)), min_size=1, max_size=5))
def test_a_chain_may_mix_formats(parts: list[tuple[bool, list[Event]]]) -> None:
    """What was said comes back in order, whichever format each commit is in and whichever is asked for."""
    repo = memory_repo()
    tip: Commit | None = None
    for as_messages, events in parts:
        name = "bureau-agent-v1" if as_messages else "events-v1"
        data = bureau_agent.FORMAT.write(events).data if as_messages else encode_events(events)
        tip = repo.checkpoint(data, format=name, parent=tip)
    assert tip is not None

    def said(events: Sequence[Event]) -> list[str]:
        return [getattr(event, "content", "") or getattr(event, "output", "") for event in events]

    expected = said([event for _, events in parts for event in events])

    assert expected == said(heard(repo, tip))
    assert expected == said(bureau_agent.FORMAT.read(repo.materialize(tip, format="bureau-agent-v1").bytes))


@LAWS
@given(event=any_event())
def test_the_quick_way_to_read_an_event_reads_what_the_thorough_one_reads(event: Event) -> None:
    from harken.events import wire

    written = wire.to_wire(event)

    assert wire._read_any(written) == (wire._read_own(written) or wire._read_any(written))
    assert wire._read_own(written | {"from the future": 1}) is None
