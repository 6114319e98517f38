"""The suite every format passes, ours and those that come through an entry point.

Subclass it in a test module, name the format, and give samples of real bytes:

    class TestMyFormat(FormatContract):
        format = my_package.FORMAT
        samples = (Path("session.jsonl").read_bytes(),)

It needs pytest and Hypothesis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harken.context.summary import line, line_of
from harken.errors import BadRecord
from harken.events import Error, Event, Metric, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.formats import Format, Written
from harken.formats.kit.claims import ENOUGH, HEAD, NO_CLAIM

EXAMPLES = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow]
)

_words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=40)
_arguments = st.sampled_from([b"{}", b'{"path":"/tmp/x"}', b'{"n":1,"deep":{"a":[1,2]}}'])


@st.composite
def conversations(draw: st.DrawFn, *, turns: int = 4) -> list[Event]:
    """A conversation as a runtime would have it: prompts, answers, and every call with its result."""
    events: list[Event] = []
    instant = 1_794_738_000_000_000

    def add(event: Event, **changes: object) -> None:
        events.append(event.replace(time=instant + len(events) * 1_000_000, **changes))

    for turn in range(draw(st.integers(0, turns))):
        add(Prompt(content=draw(_words)), message_id=f"m{turn}-user")
        for step in range(draw(st.integers(0, 2))):
            record, call = f"m{turn}-{step}", f"call-{turn}-{step}"
            if draw(st.booleans()):
                add(Response(content=draw(_words)), message_id=f"{record}-say")
            name = draw(st.sampled_from(["Read", "Bash"]))
            add(ToolCall(id=call, name=name, input=draw(_arguments)), message_id=f"{record}-call")
            add(ToolResult(id=call, output=draw(_words), is_error=draw(st.booleans())), message_id=f"{record}-result")
        add(Response(content=draw(_words)), message_id=f"m{turn}-answer")
    return events


_besides: list[Event] = [
    Thinking(content="Let me see."),
    System(subtype="notice", message="The battery is low."),
    System(subtype="instructions", message="Be brief."),
    Error(message="The line was busy."),
    Metric(input_tokens=10, output_tokens=2, api_id="m-metric"),
    Output(raw=b"%!", why="nobody knows what it is"),
]


@st.composite
def happenings(draw: st.DrawFn) -> list[Event]:
    """A conversation, and among it what not every format has a place for."""
    events = draw(conversations())
    for number in draw(st.lists(st.sampled_from(range(len(_besides))), unique=True, max_size=3)):
        event = _besides[number].replace(message_id=f"m-besides-{number}")
        events.insert(draw(st.integers(0, len(events))), event)
    return events


def unsaid(events: Sequence[Event], written: Written, again: Sequence[Event]) -> Counter[tuple[str, str]]:
    """What is missing when it is read again, where the list of losses does not account for as much."""
    missing = Counter(_kept(events)) - Counter(_kept(again))
    return missing if missing.total() > sum(loss.count for loss in written.losses) else Counter()


def _kept(events: Sequence[Event]) -> list[tuple[str, str]]:
    """What a model heard or said, and what nobody could read. Figures and notices went to no model; providers refuse
    words of blanks alone."""
    kept = [words for words in said(events) if words[1].strip()]
    kept += [(e.kind, e.message) for e in events if isinstance(e, System) and e.subtype == "instructions"]
    return kept + [(event.kind, "unread") for event in events if is_opaque(event)]


def is_opaque(event: Event) -> bool:
    """Whether it is something that could not be read."""
    return isinstance(event, Output) and bool(event.why)


@st.composite
def damaged(draw: st.DrawFn, samples: Sequence[bytes]) -> bytes:
    """A sample as a crash or a hostile hand leaves it, or bytes that never were one."""
    if not samples or draw(st.booleans()):
        return draw(st.binary(max_size=200))
    data = bytearray(draw(st.sampled_from(list(samples)))[: 64 << 10])
    cut = draw(st.integers(0, len(data)))
    del data[cut:]
    for _ in range(draw(st.integers(0, 4))):
        if data:
            data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data)


class FormatContract:
    """What holds for every format."""

    format: ClassVar[Format]
    samples: ClassVar[Sequence[bytes]] = ()
    """Bytes as the runtime writes them."""
    lossless: ClassVar[bool] = False
    """Whether everything an event says has a place in the format."""

    @EXAMPLES
    @given(data=st.data())
    def test_reading_never_raises_whatever_the_bytes(self, data: st.DataObject) -> None:
        """What cannot be read is among the events, with the reason."""
        if "read" not in self.format.can:
            return
        hostile = data.draw(damaged(self.samples))

        events = self.format.read(hostile)

        assert all(isinstance(event, Event) for event in events)

    @EXAMPLES
    @given(data=st.data())
    def test_a_whole_file_is_a_delta_too(self, data: st.DataObject) -> None:
        """Whoever keeps a session by hand gives all of it: read as a delta it says the same."""
        if "read" not in self.format.can:
            return
        source = data.draw(damaged(self.samples))

        assert _told(self.format.read(source)) == _told(self.format.read_delta(source))

    @EXAMPLES
    @given(data=st.data())
    def test_events_that_come_with_their_names_are_the_same_under_the_same_names(self, data: st.DataObject) -> None:
        source = data.draw(damaged(self.samples))
        if self.format.named_reader is None or self.format.shared_names is None:
            return

        events, named = self.format.named_reader(source)

        assert self.format.read_delta(source) == events
        shared = self.format.shared_names(source)
        assert [shared(event.message_id) for event in events] == [named(event.message_id) for event in events]

    @EXAMPLES
    @given(first=conversations(), second=conversations())
    def test_two_conversations_joined_say_what_each_says(self, first: list[Event], second: list[Event]) -> None:
        if not {"read", "write"} <= self.format.can:
            return
        deltas = [self.format.write(events).data for events in (first, second)]

        joined = self.format.read(self.format.join([delta for delta in deltas if delta]))

        assert said(joined) == [words for delta in deltas for words in said(self.format.read_delta(delta))]

    @EXAMPLES
    @given(data=st.data())
    def test_the_line_of_a_brief_look_is_the_line_of_all_events(self, data: st.DataObject) -> None:
        source = data.draw(damaged(self.samples))
        if self.format.brief_reader is None:
            return
        for delta in self.format.split(source):
            content = source[delta.start : delta.end]

            assert line(self.format.read_delta(content)) == line_of(self.format, content)

    @EXAMPLES
    @given(data=st.data())
    def test_what_is_split_joins_to_the_same_bytes(self, data: st.DataObject) -> None:
        source = data.draw(damaged(self.samples))
        deltas = [delta for delta in self.format.split(source) if delta.commit_type == "delta"]

        ends = [0, *(delta.end for delta in deltas)]

        assert [delta.start for delta in deltas] == ends[:-1], "deltas follow each other without a gap"
        assert ends[-1] == len(source)
        try:
            joined = self.format.join([source[delta.start : delta.end] for delta in deltas])
        except BadRecord:
            return  # an array of items says so where bytes are not one
        assert (source or self.format.empty) == joined

    @EXAMPLES
    @given(data=st.data())
    def test_a_delta_depends_on_what_comes_before_it_alone(self, data: st.DataObject) -> None:
        """The closed deltas of a file are those of the file when it was shorter, and perhaps more."""
        if not self.samples:
            return
        source = data.draw(st.sampled_from(list(self.samples)))[: 64 << 10]
        shorter = source[: data.draw(st.integers(0, len(source)))]

        before = [(d.start, d.end, d.commit_type) for d in self.format.split(shorter) if d.closed]
        after = [(d.start, d.end, d.commit_type) for d in self.format.split(source)]

        assert before == after[: len(before)]

    @EXAMPLES
    @given(data=st.data())
    def test_the_context_of_a_context_is_the_context(self, data: st.DataObject) -> None:
        once = self.format.context(data.draw(damaged(self.samples)))

        assert once == self.format.context(once)

    def test_the_context_of_a_sample_is_stable(self) -> None:
        for sample in self.samples:
            once = self.format.context(sample)

            assert once == self.format.context(once)

    def test_the_empty_conversation_is_empty(self) -> None:
        assert self.format.empty == self.format.join([])
        if "read" in self.format.can:
            assert self.format.read(self.format.empty) == []

    def test_samples_are_recognised(self) -> None:
        for sample in self.samples:
            assert self.format.claim is None or self.format.claim(sample[:HEAD], "").score >= ENOUGH

    def test_a_claim_on_any_bytes_is_a_score_with_a_reason(self) -> None:
        for data in (b"", b"{}", b"[]", b"{}\n{}\n", b"\x80", b"\0" * 100, b"#!/bin/sh\n", b'{"type":"user"}'):
            made = NO_CLAIM if self.format.claim is None else self.format.claim(data, "notes.txt")

            assert 0 <= made.score <= 100
            assert bool(made.reason) == bool(made.score)

    @EXAMPLES
    @given(events=conversations())
    def test_what_is_written_reads_back(self, events: list[Event]) -> None:
        """Exactly, where the format has a place for everything; else once through changes nothing more."""
        if not {"read", "write"} <= self.format.can:
            return
        again = self.format.read(self.format.write(events).data)

        if self.lossless:
            assert events == again
        assert said(again) == said(self.format.read(self.format.write(again).data))

    @EXAMPLES
    @given(events=conversations())
    def test_writing_is_a_function_of_the_events(self, events: list[Event]) -> None:
        if "write" in self.format.can:
            assert self.format.write(events) == self.format.write(events)

    @EXAMPLES
    @given(events=happenings())
    def test_nothing_is_dropped_in_silence(self, events: list[Event]) -> None:
        """Where fewer things are said afterwards, the list of losses accounts for as many."""
        if not {"read", "write"} <= self.format.can:
            return
        written = self.format.write(events)

        missing = unsaid(events, written, self.format.read(written.data))

        assert not missing, f"gone without a word: {missing}"
        assert all(loss.count > 0 and loss.why for loss in written.losses)


def _told(events: Sequence[Event]) -> list[Event]:
    """The events, whatever reason is given for those that could not be read."""
    return [event.replace(why="unread") if isinstance(event, Output) and event.why else event for event in events]


def said(events: Sequence[Event]) -> list[tuple[str, str]]:
    """What is said, in order: kind, and text or name."""
    found = []
    for event in events:
        match event:
            case Prompt(content=text) | Response(content=text) | Thinking(content=text):
                found.append((event.kind, text))
            case ToolCall():
                found.append((event.kind, event.name))
            case ToolResult():
                found.append((event.kind, event.output))
    return found
