"""Edits of a transcript: one rule, and everybody who holds a transcript follows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import Session, SessionViewer
from harken.events import Event, Metric, Prompt, Response, Thinking, TranscriptEdit
from harken.events.edits import EditedEntries, apply, transcript
from harken.views.hearing import entries_at
from support.contexts import turn

Line = dict[str, Any]


class TestEntries:
    def test_an_entry_is_a_record_with_what_travels_with_it(self) -> None:
        events: list[Event] = [
            Metric(output_tokens=1, message_id="m0"),
            Thinking(content="a", message_id="m1"),
            Response(content="b", message_id="m1", index=1),
            Metric(output_tokens=1, message_id="m2"),
            Prompt(content="c", message_id="m3"),
        ]

        assert [events[:4], events[4:]] == transcript(events)

    def test_an_id_used_twice_is_two_entries(self) -> None:
        events: list[Event] = [Prompt(content="a", message_id="m1"), Prompt(content="b", message_id="m1")]

        assert [[events[0]], [events[1]]] == transcript(events)

    def test_usage_between_two_events_of_a_record_does_not_part_them(self) -> None:
        events: list[Event] = [
            Thinking(content="a", message_id="m1"),
            Metric(output_tokens=1, message_id="m2"),
            Response(content="b", message_id="m1", index=1),
        ]

        assert [events] == transcript(events)


class TestAnEdit:
    def test_truncating_keeps_the_first_entries(self) -> None:
        assert turn(1)[:2] == apply(turn(1), TranscriptEdit(action="truncate", n=2))

    def test_truncating_to_nothing_leaves_nothing(self) -> None:
        assert [] == apply(turn(1), TranscriptEdit(action="truncate", n=0))

    def test_compacting_puts_the_summary_in_their_place(self) -> None:
        change = TranscriptEdit(action="compact", start=1, n=3, content="in short", message_id="m9", time=5)

        first, folded, last = apply(turn(1), change)

        assert [turn(1)[0], turn(1)[3]] == [first, last]
        expected = Prompt(content="in short", source="injected", origin="compaction", message_id="m9", time=5)
        assert expected == folded

    @pytest.mark.parametrize(
        ("change", "expected"),
        [
            (TranscriptEdit(action="truncate"), "abcd"),
            (TranscriptEdit(action="truncate", n=-1), "abcd"),
            (TranscriptEdit(action="truncate", n=9), "abcd"),
            (TranscriptEdit(action="shuffle", n=1), "abcd"),
            (TranscriptEdit(action="", n=1), "abcd"),
            (TranscriptEdit(action="compact"), "abcd"),
            (TranscriptEdit(action="compact", start=1, n=9), "aS"),
            (TranscriptEdit(action="compact", start=9, n=9), "abcdS"),
            (TranscriptEdit(action="compact", start=3, n=2), "Scd"),
            (TranscriptEdit(action="compact", start=-3, n=2), "Scd"),
            (TranscriptEdit(action="compact", start=2, n=2), "abScd"),
            (TranscriptEdit(action="restore", start=0, n=4), "abcd"),
            (TranscriptEdit(action="restore"), "abcd"),
            (TranscriptEdit(action="place", n=1), "adbc"),
            (TranscriptEdit(action="place", n=0), "dabc"),
            (TranscriptEdit(action="place", n=3), "abcd"),
            (TranscriptEdit(action="place", n=9), "abcd"),
            (TranscriptEdit(action="place", n=-1), "abcd"),
            (TranscriptEdit(action="place"), "abcd"),
        ],
    )
    def test_each_odd_one_has_one_answer(self, change: TranscriptEdit, expected: str) -> None:
        held: EditedEntries[str] = EditedEntries()
        for letter in "abcd":
            held.add(letter)

        held.edit(change, "S")

        assert expected == "".join(held)

    @pytest.mark.parametrize(
        ("start", "n", "expected"),
        [(2, 4, "acd"), (0, 4, "abcd"), (3, 99, "adS"), (4, 5, "aS"), (9, 99, "a"), (-1, 3, "a"), (3, 2, "a")],
    )
    def test_what_was_cut_or_folded_can_be_given_back(self, start: int, n: int, expected: str) -> None:
        held: EditedEntries[str] = EditedEntries()
        for letter in "abcd":
            held.add(letter)
        held.edit(TranscriptEdit(action="compact", start=2, n=4), "S")
        held.edit(TranscriptEdit(action="truncate", n=1), "")

        held.edit(TranscriptEdit(action="restore", start=start, n=n), "")

        assert expected == "".join(held)


numbers = st.one_of(st.integers(-2, 9), st.sampled_from([None, "2", 2.5, True, [1]]))
edits = st.fixed_dictionaries(
    {"event_type": st.just("transcript_edit")},
    optional={
        "action": st.sampled_from(["truncate", *2 * ["compact", "restore", "place"], "shuffle", None, 7]),
        "n": numbers,
        "start": numbers,
        "content": st.sampled_from(["in short", None, 3]),
    },
)
said = st.fixed_dictionaries(
    {
        "event_type": st.just("transcript_entry"),
        "role": st.sampled_from(["user", "assistant", "tool", "system", "developer", None]),
    },
    optional={
        "content": st.sampled_from(["hi", None, ["a"], ""]),
        "thinking": st.just("hm"),
        "tool_calls": st.sampled_from([[], ["?"], [{"id": "c", "function": {"name": "f"}}], None]),
        "index": st.sampled_from([0, 1, -1, "1"]),
    },
)
other = st.just({"event_type": "metric", "output_tokens": 1})


@st.composite
def logs(draw: st.DrawFn) -> list[Line]:
    shapes = draw(st.lists(st.one_of(said, said, edits, other), max_size=14))
    numbers = [draw(st.integers(max(0, at - 1), at)) for at in range(len(shapes))]
    return [
        {"message_id": f"m{number}", "agent_id": draw(st.sampled_from("ab")), **shape}
        for number, shape in zip(numbers, shapes, strict=True)
    ]


@settings(max_examples=200, deadline=None)
@given(logs())
def test_the_log_its_events_and_its_views_agree_on_what_still_stands(
    tmp_path_factory: pytest.TempPathFactory, log: list[Line]
) -> None:
    """Whatever a file says of edits, there is one answer to what stands in a transcript after them."""
    path: Path = tmp_path_factory.mktemp("logs") / "log.jsonl"
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in log))

    with Session(path, readonly=True) as session:
        events = list(session.events())
        held = {agent: [entry["message_id"] for entry in session.entries(agent)] for agent in "ab"}
    index = SessionViewer(path).index

    for agent in "ab":
        stands = transcript([event for event in events if event.agent_id == agent])
        expected = [name for entry in stands if (name := _name(entry))]
        assert expected == held[agent]
        assert set(expected) == {index.ids[at] for at in entries_at(index, agent, len(log))}


def _name(entry: list[Event]) -> str:
    """The record an entry is; empty for what came before the first one."""
    return next((event.message_id for event in entry if not isinstance(event, Metric) and event.kind != "output"), "")
