"""Real sessions of pi and OpenClaw, and what the real pi sent when it held and resumed them.

Sessions that are composed like real ones are always there; `HARKEN_CORPUS` may name a folder with real ones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import runtimes
from harken.events import Event, Output, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.events.base import split_parts
from harken.events.tally import Tally
from harken.formats import get, pi
from harken.formats.pi.records import iter_lines, message_of
from harken.runtimes.importer import Importer
from support import pi_lines
from support.recordings import corpus_files

FORMAT = get("pi-v1")
RECORDED = corpus_files("recorded_runtimes/pi/sessions-*/*/*.jsonl")
FOREIGN = corpus_files("recorded_runtimes/pi/foreign/*.jsonl")
OPENCLAW = corpus_files("misc_agents/*/openclaw/*.jsonl")
FILES = [*RECORDED, *FOREIGN, *corpus_files("pi/**/*.jsonl"), *corpus_files("misc_agents/*/pi/*.jsonl"), *OPENCLAW]
DRIFTED = "schema_drift.jsonl"
"""Made up with an entry that no program writes."""
Sign = tuple[str, ...]

COMPOSED = ("conversation", "compacted", "branched", "legacy", "openclaw")
CASES = {name: getattr(pi_lines, name)().data for name in COMPOSED}
CASES |= {"-".join(path.parts[-2:]): path.read_bytes() for path in FILES}

each_case = pytest.mark.parametrize(("name", "data"), CASES.items(), ids=CASES)


@each_case
def test_every_record_is_read_and_none_is_unknown(name: str, data: bytes) -> None:
    events = list(FORMAT.read(data))

    assert len([line for line in iter_lines(data) if not line.blank]) == len({event.message_id for event in events})
    unknown = [event.why for event in events if isinstance(event, Output) and event.why]
    assert (["unknown record 'compact'"] if name.endswith(DRIFTED) else []) == unknown
    facts = pi.scan(data)
    assert Tally.of(events).figures() == facts.tally.figures()
    assert len(unknown) == facts.opaque


@each_case
def test_a_file_scanned_line_by_line_is_as_one_scanned_at_once(name: str, data: bytes) -> None:
    data = data[: 200 << 10]
    state, offset, deltas = b"", 0, []
    for line in iter_lines(data):
        facts = pi.scan(data[offset : line.end], state)
        deltas += [delta for delta in facts.deltas if delta.closed]
        state, offset = facts.state, facts.offset
    whole = pi.scan(data)

    assert [delta for delta in whole.deltas if delta.closed] == deltas
    assert (whole.state, whole.offset) == (state, offset)


@each_case
def test_the_context_is_made_of_its_lines_and_is_its_own_context(name: str, data: bytes) -> None:
    once = pi.context(data)

    assert once == pi.context(once)
    assert set(once.splitlines()) <= set(data.splitlines())
    assert signs(FORMAT.read_conversation(data)) == signs(FORMAT.read_conversation(once))


def import_all(repo: Any, paths: list[Path]) -> list[Any]:
    return list(Importer(repo.store, [runtimes.get("pi"), runtimes.get("openclaw")]).run(paths))


def test_every_file_goes_in_comes_back_and_has_the_same_name_everywhere(tmp_path: Path) -> None:
    if not FILES:
        return
    with harken.open(tmp_path / "one.db") as repo, harken.open(tmp_path / "two.db") as other:
        first, second = import_all(repo, FILES), import_all(other, FILES[::-1])
        again = import_all(repo, FILES)
        assert {"new"} == {outcome.status for outcome in first}
        assert {"openclaw"} == {o.runtime for o in first if Path(o.source) in OPENCLAW}
        assert {"pi"} == {o.runtime for o in first if Path(o.source) not in OPENCLAW}
        assert {o.source: o.tip for o in first} == {o.source: o.tip for o in second}
        assert {("unchanged", 0)} == {(outcome.status, outcome.commits) for outcome in again}
        for outcome in first:
            data = Path(outcome.source).read_bytes()
            assert data == repo.materialize(outcome.tip, stop="root").bytes, outcome.source


# -- on the wire -------------------------------------------------------------------------------------------------------


NEUTRAL = "62 18bfb462dca9"
"""The one text in which a path stands."""


def sign(text: str) -> str:
    return f"{len(text)} {hashlib.sha1(text.encode()).hexdigest()[:12]}"


def signs(events: list[Event], *, foreign: bool = False) -> list[Sign]:
    """What a conversation says, texts as length and digest; `foreign` thinking is sent as the model's words."""
    found: list[Sign] = []
    for event in events:
        match event:
            case Prompt():
                parts = split_parts(event.content, event.images)
                found += [("user", sign(part)) if isinstance(part, str) else ("image",) for part in parts]
            case Response():
                found.append(("assistant", sign(event.content)))
            case Thinking():
                found.append(("assistant" if foreign else "thinking", sign(event.content)))
            case ToolCall():
                found.append(("call", event.id, event.name))
            case ToolResult():
                found.append(("result", event.id, sign(event.output)))
    return found


def sent(request: dict[str, Any]) -> Iterator[Sign]:
    """What a recorded request says, in the same words."""
    for message in request["messages"]:
        content = message["content"]
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            match block["type"]:
                case "text":
                    yield message["role"], told(block["text"])
                case "thinking":
                    yield "thinking", told(block["thinking"])
                case "tool_use":
                    yield "call", block["id"], block["name"]
                case "tool_result":
                    yield "result", block["tool_use_id"], told(block["content"])
                case "image":
                    yield ("image",)


def told(text: dict[str, Any]) -> str:
    return f"{text['len']} {text['sha']}"


def requests(name: str) -> list[list[Sign]]:
    [path] = corpus_files(f"recorded_runtimes/pi/{name}")
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [list(sent(request)) for request in found if len(request["messages"]) > 1 or len(found) > 1]


def before_each_answer(data: bytes) -> Iterator[bytes]:
    """The file as it stood whenever the model was asked."""
    for line in iter_lines(data):
        message = message_of(line.record or {})
        if message is not None and message.get("role") == "assistant":
            yield data[: line.start]


HELD = [
    ("2026-11-15T13-34-45*", "requests-turns.signatures.jsonl"),
    ("2026-11-15T13-35-52*", "resume-golden/requests-0.87.1.signatures.jsonl"),
]


def test_the_context_before_every_answer_is_what_the_program_sent() -> None:
    for session, golden in HELD if RECORDED else []:
        [path] = corpus_files(f"recorded_runtimes/pi/sessions-*/*/{session}")
        asked = requests(golden)

        known = [signs(FORMAT.read_conversation(pi.context(data))) for data in before_each_answer(path.read_bytes())]

        assert len(known) >= 5
        # Between them the program asked for a summary; behind them are requests of other sessions.
        left = iter(asked)
        assert [] == [each for each in known if not any(are_alike(each, request) for request in left)]


def are_alike(known: list[Sign], request: list[Sign]) -> bool:
    """Whether they say the same. Where paths were made neutral in the recording, the length has to do."""
    pairs = zip(known, request, strict=False)
    return len(known) == len(request) and all(
        one == other or (NEUTRAL in one and one[1].split()[0] == other[1].split()[0]) for one, other in pairs
    )


RESUMED = [("a", "PROBE-a"), ("c", "PROBE-c")]


def test_a_session_from_elsewhere_is_known_as_the_program_knew_it() -> None:
    for name, prompt in RESUMED if FOREIGN else []:
        [path] = corpus_files(f"recorded_runtimes/pi/foreign/{name}.jsonl")
        known = signs(FORMAT.read_conversation(pi.context(path.read_bytes())), foreign=True)

        assert [*known, ("user", sign(prompt))] in requests("resume-golden/requests-0.73.1.signatures.jsonl")


def test_usage_and_cost_are_those_of_the_scripted_model() -> None:
    for path in RECORDED:
        facts = pi.scan(path.read_bytes())
        asked = [line for line in path.read_text().splitlines() if '"totalTokens":167' in line]
        figures = facts.tally.figures()

        assert len(asked) == figures.requests
        assert [100, 7, 40, 20] == [
            (count or 0) / len(asked)
            for count in (
                figures.usage.input,
                figures.usage.output,
                figures.usage.cache_read,
                figures.usage.cache_write,
            )
        ]
        assert 492 * len(asked) == figures.cost_usd_micros
