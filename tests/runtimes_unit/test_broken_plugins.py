"""The contracts catch what a plug-in gets wrong: each of these is a small runtime with one fault."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from harken import formats
from harken.events import Event, Output, Prompt, Response
from harken.formats import Format, Loss, Written
from harken.formats.facts import FileFacts
from harken.runtimes import Claim, Identity, Place, ResumeWriter, Runtime, SessionReader
from harken.runtimes.scans import DocumentParts, document_scan, line_scan
from harken.testing import FormatContract, RuntimeContract

NAME = "parrot-v1"
SESSION = b'{"parrot":1,"id":"a","who":"human","text":"Hello?"}\n{"parrot":1,"id":"b","who":"model","text":"Hello."}\n'
SPEAKERS = {"human": Prompt, "model": Response}


def read(data: bytes) -> Iterator[Event]:
    for line in filter(bytes.strip, data.split(b"\n")):
        try:
            record = json.loads(line)
            yield SPEAKERS[record["who"]](message_id=str(record["id"]), content=str(record["text"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            yield Output(raw=line, why="not a line of Parrot's")


def write(events: Sequence[Event]) -> Written:
    names = {cls: who for who, cls in SPEAKERS.items()}
    said = [cast(Prompt, event) for event in events if type(event) in names]
    lines = [{"parrot": 1, "id": e.message_id, "who": names[type(e)], "text": e.content} for e in said]
    lost = len(events) - len(said)
    losses = (Loss(what="other event", count=lost, why="Parrot keeps words alone"),) if lost else ()
    return Written(data=b"".join(json.dumps(line).encode() + b"\n" for line in lines), losses=losses)


scan = line_scan("parrot", read, lambda record: "one")


def place(home: Path, cwd: Path, now: int) -> Place:
    session = uuid.uuid4().hex
    return Place(session=session, path=home / f"{session}.jsonl", command=("parrot", session), cwd=cwd, time=now)


FORMAT = Format(name=NAME, runtime="parrot", reader=read, writer=write, split=lambda data: scan(data, b"").deltas)
RUNTIME = Runtime(
    name="parrot",
    label="Parrot",
    format=NAME,
    home=lambda environ: Path(environ["HOME"], ".parrot"),
    roots=lambda home: (home,),
    claim=lambda data, path: Claim(score=90, reason="its own") if data.startswith(b'{"parrot":') else Claim(),
    environment=lambda home: {},
    read=SessionReader(scan=scan, identify=lambda path, facts: Identity(session=facts.session)),
    resume=ResumeWriter(place=place, native=lambda data, place: data, translated=lambda events, place: write(events)),
)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., RuntimeContract]:
    """The contract of a runtime, whose format is found by its name."""

    def made(runtime: Runtime, format: Format) -> RuntimeContract:
        monkeypatch.setattr(formats, "get", lambda name, known=formats.get: format if name == NAME else known(name))
        return contract(RuntimeContract, runtime=runtime, samples=(("one.jsonl", SESSION),))

    return made


def contract(suite: type[Any], **about: object) -> Any:
    return type("Broken", (suite,), about)()


LAWS = [
    "test_it_claims_no_noise",
    "test_a_scan_counts_what_the_reader_reads",
    "test_each_delta_alone_says_what_it_adds",
    "test_nothing_that_was_said_elsewhere_is_dropped_in_silence",
]


@pytest.mark.parametrize("law", LAWS)
def test_a_runtime_without_a_fault_passes(install: Callable[..., RuntimeContract], law: str) -> None:
    getattr(install(RUNTIME, FORMAT), law)()


def one_prompt_more(data: bytes, state: bytes) -> FileFacts:
    facts = scan(data, state)
    facts.tally.prompt("")
    return facts


def silent(events: Sequence[Event]) -> Written:
    """Leaves out what it has no place for, and every second thing it has one for."""
    return msgspec.structs.replace(write(list(events)[::2]), losses=())


def excused(events: Sequence[Event]) -> Written:
    """Names one loss, and drops more than that."""
    return Written(data=write(list(events)[:1]).data, losses=(Loss(what="thinking", count=1, why="it is sealed"),))


def by_message(data: bytes) -> DocumentParts:
    """Each message is a delta, which nobody but a document's `join` can read."""
    lines = [line for line in data.split(b"\n") if line.strip()]
    return DocumentParts(closed=[line[1:] for line in lines[:-1]], open=lines[-1:], tail=b"\n".join(lines[-1:]))


BROKEN = {
    "a scan that counts one prompt more": (
        "test_a_scan_counts_what_the_reader_reads",
        msgspec.structs.replace(RUNTIME, read=SessionReader(scan=one_prompt_more, identify=RUNTIME.read.identify)),
        FORMAT,
    ),
    "a scan that passes over what cannot be read": (
        "test_a_scan_counts_what_the_reader_reads",
        msgspec.structs.replace(
            RUNTIME,
            read=SessionReader(
                scan=line_scan(
                    "parrot", lambda line: [e for e in read(line) if not isinstance(e, Output)], lambda _: "one"
                ),
                identify=RUNTIME.read.identify,
            ),
        ),
        FORMAT,
    ),
    "a writer that drops without a word": (
        "test_nothing_that_was_said_elsewhere_is_dropped_in_silence",
        msgspec.structs.replace(
            RUNTIME,
            resume=ResumeWriter(
                place=place, native=lambda data, place: data, translated=lambda events, place: silent(events)
            ),
        ),
        FORMAT,
    ),
    "a claim on anything that begins like JSON": (
        "test_it_claims_no_noise",
        msgspec.structs.replace(
            RUNTIME, claim=lambda data, path: Claim(score=60, reason="JSON") if data.startswith(b'{"') else Claim()
        ),
        FORMAT,
    ),
    "a claim on the path alone": (
        "test_it_claims_no_noise",
        msgspec.structs.replace(
            RUNTIME, claim=lambda data, path: Claim(score=60, reason="its name") if path.stem == "one" else Claim()
        ),
        FORMAT,
    ),
    "deltas that cannot be read alone": (
        "test_each_delta_alone_says_what_it_adds",
        msgspec.structs.replace(
            RUNTIME,
            source="document",
            read=SessionReader(scan=document_scan("parrot", read, by_message), identify=RUNTIME.read.identify),
        ),
        msgspec.structs.replace(
            FORMAT, join=lambda deltas: b"\n".join(d if d.startswith(b"{") else b"{" + d for d in deltas)
        ),
    ),
}


@pytest.mark.parametrize(("law", "runtime", "format"), BROKEN.values(), ids=BROKEN)
def test_a_broken_runtime_is_caught(
    install: Callable[..., RuntimeContract], law: str, runtime: Runtime, format: Format
) -> None:
    with pytest.raises(AssertionError):
        getattr(install(runtime, format), law)()


@pytest.mark.parametrize("writer", [silent, excused])
def test_a_format_that_drops_without_a_word_is_caught(writer: Callable[[Sequence[Event]], Written]) -> None:
    broken = contract(FormatContract, format=msgspec.structs.replace(FORMAT, writer=writer), samples=(SESSION,))

    with pytest.raises(AssertionError, match="gone without a word"):
        broken.test_nothing_is_dropped_in_silence()


def test_a_format_whose_deltas_are_read_otherwise_than_its_files_is_caught() -> None:
    def half(data: bytes) -> Iterator[Event]:
        yield from list(read(data))[::2]

    broken = contract(FormatContract, format=msgspec.structs.replace(FORMAT, delta_reader=half), samples=(SESSION,))

    with pytest.raises(AssertionError):
        broken.test_a_whole_file_is_a_delta_too()
