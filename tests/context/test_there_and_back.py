"""A conversation that is carried into another format and back lacks no more than the two lists of losses say.

Any conversation, every ordered pair of formats that can be written and read. Words, calls and results are compared
whole and in order, and nothing may be added but the placeholders of pictures, one of a kind for each. Calls that were
made side by side may come back one behind the other, where a format keeps each with its result.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harken import formats
from harken.context.translate import Translation, translate
from harken.context.walk import Piece
from harken.events import Event, Image, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.formats import Format, Loss
from harken.testing.translations import NOON, everything

FORMATS = [
    known for known in map(formats.get, formats.names()) if {"read", "write"} <= known.can and not known.is_rendering
]
LAWS = settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
DOT = next(image for event in everything() if isinstance(event, Prompt) for image in event.images)
SPOKEN = ("what agents heard", "what agents said")
"""The losses that account for words, calls and results: nothing but STD-001 leaves any out."""
ASIDES = {
    "thinking": ("thinking", "thoughts"),
    "picture": ("picture", "image"),
    "error mark": ("error mark",),
}
"""What a runtime may not be able to go on with, and what a loss that accounts for it is called."""
PLACEHOLDER = re.compile(
    r"(?P<size>\[image/png, \d+ bytes\])|(?P<caption>Attached image)|(?P<result>Pictures of the result: \S+)"
)
"""Lines that formats put in the place of a picture or before it: an entry, Copilot CLI, chat completions."""
SAYS_PARTS_APART = ("opencode-v1", "opencode-rows-v1")
"""Formats in which words and pictures of one message are prompts of their own: Copilot CLI, which puts a caption before
each picture, then puts it there once more. `docs/design/003-open-faults.md` tells."""

Said = tuple[str, str, str]
"""A kind, a name and words, all of which must be the same."""

INTERRUPTED = "[Request interrupted by user]"
odd_words = [
    "{}",
    "null",
    " a\n b ",
    "a\r\nb",
    "\ufeffx",
    "<b>&amp;</b>",
    "très ☕",
    "\u2028",
    INTERRUPTED,
]
words = st.one_of(
    st.sampled_from(odd_words), st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
)
spoken = words.filter(str.strip)
arguments = st.sampled_from([b"{}", b'{"path":"/tmp/x"}', b'{"n":1.5,"deep":{"a":[1,null,"\xc3\xa9"]}}'])
pictures = st.sampled_from([(), (), (), (DOT,)])


@st.composite
def talks(draw: st.DrawFn) -> list[Event]:
    """Prompts, pictures, thinking, calls side by side, some of which fail or answer nothing."""
    events: list[Event] = []

    def add(record: str, event: Event) -> None:
        index = sum(one.message_id == record for one in events)
        events.append(event.replace(message_id=record, index=index, time=NOON + len(events) * 1_000_000))

    for turn in range(draw(st.integers(1, 3))):
        # The first is a person's: where there is none a document of STD-001 has a later one, or its title, before all.
        prompt = draw(spoken if turn else spoken.filter(lambda text: text != INTERRUPTED))
        add(f"m{turn}", Prompt(content=prompt, images=draw(pictures)))
        for step in range(draw(st.integers(0, 2))):
            record = f"m{turn}-{step}"
            if draw(st.booleans()):
                add(record, Thinking(content=draw(spoken), signature=draw(st.sampled_from(["", "c2lnbmVk"]))))
            if draw(st.booleans()):
                add(record, Response(content=draw(spoken), model="m-1"))
            calls = [f"call_{turn}_{step}_{number}" for number in range(draw(st.integers(1, 3)))]
            for call in calls:
                add(record, ToolCall(id=call, name=draw(st.sampled_from(["Read", "Bash"])), input=draw(arguments)))
            for call in calls:
                add(f"{record}-{call}", _result(call, draw(words), draw(st.booleans()), draw(pictures)))
        add(f"m{turn}-answer", Response(content=draw(spoken), model="m-1"))
    return events


def _result(call: str, output: str, failed: bool, images: tuple[Image, ...]) -> ToolResult:
    return ToolResult(id=call, output=output, is_error=failed, images=images)


def spoken_in(events: Sequence[Event]) -> list[Said]:
    """What was said, called and answered, in order; a result stands behind its call. Words of one kind that nothing
    parts are one text: some formats make several prompts of a message with pictures, and others one."""
    results = {event.id: event for event in events if isinstance(event, ToolResult)}
    found: list[Said] = []
    for event in events:
        match event:
            case Prompt() | Response() if words := plain(event.content):
                if found and found[-1][0] == event.kind:
                    words = f"{found.pop()[2]}\n{words}"
                found.append((event.kind, "", words))
            case ToolCall():
                given = orjson.dumps(orjson.loads(event.input), option=orjson.OPT_SORT_KEYS)
                found.append((event.kind, f"{event.id} {event.name}", given.decode()))
                if result := results.get(event.id):
                    found.append((result.kind, result.id, plain(result.output)))
    return found


def plain(text: str) -> str:
    """The words without what stands for a picture, and without blanks at their ends."""
    return "\n".join(line for line in text.split("\n") if not PLACEHOLDER.fullmatch(line)).strip()


def placeholders_in(events: Sequence[Event]) -> Counter[str]:
    """How often each kind of placeholder stands in what was said and answered."""
    words = [event.content for event in events if isinstance(event, Prompt | Response)]
    words += [event.output for event in events if isinstance(event, ToolResult)]
    found = (PLACEHOLDER.fullmatch(line) for text in words for line in text.split("\n"))
    return Counter(one.lastgroup or "" for one in found if one)


def asides_in(events: Sequence[Event]) -> dict[str, list[Said]]:
    """What was thought, the pictures that were shown and the calls that failed, each kind by itself."""
    found: dict[str, list[Said]] = {kind: [] for kind in ASIDES}
    for event in events:
        if isinstance(event, Thinking) and event.content.strip():
            found["thinking"].append((event.kind, "", event.content.strip()))
        if isinstance(event, Prompt | ToolResult):
            found["picture"] += [("picture", image.data, "") for image in event.images]
        if isinstance(event, ToolResult) and event.is_error:
            found["error mark"].append(("error mark", event.id, ""))
    return {kind: sorted(said) if kind == "error mark" else said for kind, said in found.items()}


def apart(before: Sequence[Said], after: Sequence[Said]) -> tuple[list[Said], list[Said]]:
    """What is gone and what was added, where as much as possible stays in its order."""
    kept = [[0] * (len(after) + 1) for _ in range(len(before) + 1)]
    for i in reversed(range(len(before))):
        for j in reversed(range(len(after))):
            same = before[i] == after[j]
            kept[i][j] = kept[i + 1][j + 1] + 1 if same else max(kept[i + 1][j], kept[i][j + 1])
    gone, added, i, j = list[Said](), list[Said](), 0, 0
    while i < len(before) and j < len(after):
        if before[i] == after[j]:
            i, j = i + 1, j + 1
        elif kept[i + 1][j] >= kept[i][j + 1]:
            gone.append(before[i])
            i += 1
        else:
            added.append(after[j])
            j += 1
    return [*gone, *before[i:]], [*added, *after[j:]]


def undeclared(before: Sequence[Event], after: Sequence[Event], losses: Sequence[Loss]) -> list[Said]:
    """What is gone and in no list, and what was added. Each kind is accounted for by losses of its own."""
    gone, wrong = apart(spoken_in(before), spoken_in(after))
    wrong += gone if len(gone) > declared(losses, SPOKEN) else []
    shown = asides_in(after)
    for kind, was in asides_in(before).items():
        gone, added = apart(was, shown[kind])
        wrong += [*added, *(gone if len(gone) > declared(losses, ASIDES[kind]) else [])]
    return wrong


def repeated(before: Sequence[Event], after: Sequence[Event]) -> list[str]:
    """Placeholders that are there more often than before, and than there were pictures."""
    shown, known = len(asides_in(before)["picture"]), placeholders_in(before)
    return [kind for kind, count in placeholders_in(after).items() if count > max(shown, known[kind])]


def declared(losses: Sequence[Loss], names: Sequence[str]) -> int:
    return sum(loss.count for loss in losses if any(name in loss.what for name in names))


def unpaired(events: Sequence[Event]) -> list[str]:
    """Results that no call stands before, calls that have none or several."""
    waiting: list[str] = []
    wrong = []
    for event in events:
        if isinstance(event, ToolCall):
            waiting.append(event.id)
        elif isinstance(event, ToolResult):
            wrong += [] if event.id in waiting else [event.id]
            waiting = [call for call in waiting if call != event.id]
    return wrong + waiting


def heard(known: Format, data: bytes) -> list[Event]:
    return known.read_conversation(known.context(data))


def carried(source: Format, data: bytes, target: Format) -> Translation:
    return translate([Piece(name=source.name, format=source, data=source.context(data), current=True)], target)


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.name)
@LAWS
@given(events=talks())
def test_what_is_written_is_read_again_but_for_what_is_declared(known: Format, events: list[Event]) -> None:
    written = known.write(events)

    again = heard(known, written.data)

    assert [] == undeclared(events, again, written.losses)
    assert [] == unpaired(again) + repeated(events, again)


@pytest.mark.parametrize("source", FORMATS, ids=lambda source: source.name)
@LAWS
@given(events=talks())
def test_there_and_back_loses_no_more_than_the_two_lists_say(source: Format, events: list[Event]) -> None:
    data = source.write(events).data
    before = heard(source, data)

    for target in FORMATS:
        there = carried(source, data, target)
        middle = heard(target, there.data)
        back = carried(target, there.data, source)
        after = heard(source, back.data)

        assert [] == undeclared(before, middle, there.losses), f"into {target.name}"
        assert [] == unpaired(middle) + repeated(before, middle), f"into {target.name}"
        assert [] == undeclared(before, after, [*there.losses, *back.losses]), f"by way of {target.name}"
        again = [] if target.name in SAYS_PARTS_APART else repeated(before, after)
        assert [] == unpaired(after) + again, f"by way of {target.name}"
