"""Real sessions, and what the real Claude Code 2.1.325 sent after resuming them.

Those recorded for this project are always there; `HARKEN_CORPUS` may name a folder with more.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harken.analytics import stats
from harken.events import Output
from harken.events.tally import Tally, merge_requests
from harken.formats import detect, get
from harken.formats.claude_code import context, messages, rewrite, scan, split
from support.recordings import (
    CORPUS,
    RecordedSession,
    Signature,
    corpus_files,
    named,
    recorded,
    session_files,
    sign_messages,
)
from support.wire import NOTIFICATION

FORMAT = get("claude-code-v1")
FILES = session_files("claude-code")
SAMPLES = corpus_files("claude_code_samples_by_type/**/claude-code/**/*.jsonl")
GROWING = [(each.name, each.growing()) for each in recorded("claude-code")] + [
    (folder.name, [path.read_bytes() for path in sorted(folder.iterdir())])
    for folder in corpus_files("claude_code_growth/*/*")
]
GOLDEN = corpus_files("golden_claude_resume/*.json")
MODEL = "claude-sonnet-4-5-20250929"
"""The model the golden requests were sent to: thinking that another model signed is not in them."""

each_file = pytest.mark.parametrize("path", FILES, ids=named)


@cache
def load(path: Path) -> bytes:
    return path.read_bytes()


@each_file
def test_every_record_is_read_and_what_is_unknown_is_counted(path: Path) -> None:
    data = load(path)

    events = FORMAT.read(data)
    facts = scan(data)

    assert facts.records == sum(event.index == 0 for event in events)
    unread = {(e.message_id, e.raw) for e in events if isinstance(e, Output) and e.why}
    assert facts.opaque == len(unread)
    assert stats(events) == facts.tally.figures()


@each_file
def test_a_file_is_recognised_by_what_it_holds(path: Path) -> None:
    found = detect(load(path)[: 64 << 10])

    assert found is not None
    assert "claude-code-v1" == found.name


@each_file
def test_deltas_join_to_the_file_and_none_parts_a_call_from_its_result(path: Path) -> None:
    data = load(path)

    deltas = [delta for delta in split(data) if delta.commit_type == "delta"]

    assert data == b"".join(data[delta.start : delta.end] for delta in deltas)
    assert 0 == parted(data, [delta.end for delta in deltas])


def parted(data: bytes, ends: list[int]) -> int:
    """How many calls have their first result in another delta."""
    calls: dict[str, int] = {}
    count, at, number = 0, 0, 0
    for line in data.splitlines(keepends=True):
        while at >= ends[number]:
            number += 1
        for block in blocks(line):
            if block.get("type") == "tool_use":
                calls.setdefault(block.get("id", ""), number)
            elif block.get("type") == "tool_result":
                count += calls.pop(block.get("tool_use_id", ""), number) != number
        at += len(line)
    return count


def blocks(line: bytes) -> Iterator[dict[str, Any]]:
    """The content blocks of a line, read as anybody would."""
    try:
        content = json.loads(line)["message"]["content"]
    except (ValueError, KeyError, TypeError):
        return
    if isinstance(content, list):
        yield from (block for block in content if isinstance(block, dict))


@each_file
def test_a_compaction_is_boundary_and_summary_and_nothing_else(path: Path) -> None:
    """So the turn before it ends where the boundary begins (#31)."""
    data = load(path)

    for before, repeated in zip(deltas := split(data), deltas[1:], strict=False):
        if repeated.commit_type == "compaction":
            lines = data[repeated.start : repeated.end].splitlines()
            assert (before.start, before.end) == (repeated.start, repeated.end)
            assert b'"compact_boundary"' in lines[0]
            assert b'"isCompactSummary":true' in lines[-1].replace(b" ", b"")


@each_file
def test_the_cuts_of_a_shorter_file_are_cuts_of_the_whole(path: Path) -> None:
    """Cut off at any byte and scanned on from its state, a file ends as if it had been scanned at once."""
    data = load(path)
    whole = scan(data)

    for end in sorted(random.Random(7).sample(range(len(data) + 1), min(4, len(data)))):
        part = scan(data[:end])
        rest = scan(data[part.offset :], part.state)

        assert whole.deltas == tuple(delta for delta in part.deltas if delta.closed) + rest.deltas
        assert (whole.records, whole.opaque, whole.messages) == (rest.records, rest.opaque, rest.messages)
        requests = dict(part.tally.requests)
        merge_requests(requests, rest.tally.requests)
        assert whole.tally == msgspec.structs.replace(rest.tally, requests=requests)


@each_file
def test_the_context_of_a_context_is_the_context(path: Path) -> None:
    data = load(path)

    once = context(data)

    assert once == context(once)
    assert messages(data) == messages(once)
    lines = iter(data.splitlines())
    assert all(line in lines for line in once.splitlines()), "verbatim and in the order of the file"


@pytest.mark.parametrize("steps", [steps for _, steps in GROWING], ids=[name for name, _ in GROWING])
def test_a_growing_session_ends_as_a_fresh_scan_does(steps: list[bytes]) -> None:
    state, offset, closed = b"", 0, []
    for data in steps:
        facts = scan(data[offset:], state)
        *done, _ = facts.deltas
        closed += done
        state, offset = facts.state, facts.offset

    assert list(scan(steps[-1]).deltas) == [*closed, facts.deltas[-1]]


def test_samples_of_every_kind_of_record_are_read() -> None:
    for path in [*SAMPLES, *(each.path for each in recorded("claude-code", agents=True))]:
        data = load(path)

        assert not [e.why for e in FORMAT.read(data) if isinstance(e, Output) and e.why], path
        assert context(data) == context(context(data)), path


# -- what the program sent ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", recorded("claude-code"), ids=lambda case: case.name)
def test_the_context_is_what_the_real_program_sent(case: RecordedSession) -> None:
    """Every message of the request, block by block, texts and results by their digests."""
    data = load(case.path)

    ours = sign_messages(messages(context(data), model=case.model, prompt="next"))[:-1]

    assert case.sent[:-1] == excused(ours, case.sent, data)


def excused(ours: Signature, sent: Signature, data: bytes) -> Signature:
    """Ours, with what the program says in words of its own and the file does not hold: of these the place counts.

    These are the results of calls that were cut off, notices of older versions, and reports of background agents.
    """
    words = b'"rendered":' not in data or b"<task-notification>" in data
    for message, real in zip(ours, sent, strict=False):
        for block, theirs in zip(message["blocks"], real["blocks"], strict=False):
            told = words and block.get("head") == theirs.get("head") == "<system-reminder>"
            repaired = block["type"] == "tool_result" and f'"tool_use_id":"{block["id"]}"'.encode() not in data
            if told or repaired:
                block |= {key: theirs[key] for key in ("len", "sha") if key in theirs}
    return ours


AGENTS = [each for each in recorded("claude-code", agents=True) if each.agent]


@pytest.mark.parametrize("case", AGENTS, ids=lambda case: case.name)
def test_a_sub_agent_knew_what_it_sent_itself(case: RecordedSession) -> None:
    """Its own last request."""
    assert case.sent == sign_messages(messages(load(case.path)))[:-1]


def signature(sent: list[dict[str, Any]]) -> list[Any]:
    """A message list as the golden files have it."""
    return [{"role": m["role"], "blocks": [block_signature(block) for block in m["content"]]} for m in sent]


def block_signature(block: dict[str, Any]) -> dict[str, Any]:
    match block["type"]:
        case "text":
            text = block["text"]
            return {"type": "text", "len": len(text), "sha": hashlib.sha1(text.encode()).hexdigest()[:12]}
        case "thinking":
            return {"type": "thinking", "len": len(block["thinking"])}
        case "tool_use":
            return {"type": "tool_use", "id": block.get("id"), "name": block.get("name")}
        case "tool_result":
            return {"type": "tool_result", "tool_use_id": block.get("tool_use_id"), "is_error": block.get("is_error")}
        case other:
            return {"type": other}


def golden(path: Path) -> tuple[list[Any], list[Any]]:
    """What the program sent, and what we say it sends: both without the message that holds the next prompt.

    An attachment without its wording is told to the model in words of the program's own; of those only the place is
    compared.
    """
    record = json.loads(path.read_bytes())
    real = [{"role": m["role"], "blocks": [plain(b) for b in m["blocks"]]} for m in record["signature"]]
    ours = messages(context(load(Path(CORPUS or "", record["source"]))), model=MODEL, prompt="next")[:-1]
    for message, theirs in zip(made := signature(ours), record["signature"], strict=False):
        for block, golden_block in zip(message["blocks"], theirs["blocks"], strict=False):
            if golden_block.get("head", "").startswith("<system-reminder>"):
                block |= {"len": golden_block["len"], "sha": golden_block["sha"]} if block["type"] == "text" else {}
    return real, made


def plain(block: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key != "head"}


def test_the_number_of_requests_that_are_strictly_equal_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Roles, blocks, calls and results in order, and the hash of every text."""
    apart = [path.stem for path in GOLDEN if (pair := golden(path))[0] != pair[1]]

    with capsys.disabled():
        print(f"\nclaude code: {len(GOLDEN) - len(apart)} of {len(GOLDEN)} golden requests of the corpus are equal")
    assert [] == apart


SOURCES = [each.path for each in recorded("claude-code")] + [
    Path(CORPUS or "", json.loads(path.read_bytes())["source"]) for path in GOLDEN
]


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_a_session_written_anew_says_the_same(path: Path) -> None:
    """Through events and back: every text, call and result, in order; nothing is lost but what the list names."""
    data = load(path)

    written = FORMAT.write(FORMAT.read_conversation(context(data)))
    moved = rewrite(written.data, session_id="0" * 8, cwd="/")

    assert said(messages(data, model="")) == said(messages(moved, model=""))
    assert {loss.what for loss in written.losses} <= {
        "thinking", "notices", "usage figures", "records that are no conversation", "calls without a result",
        "blank texts", "results without a call", "names of tools", "repeated calls",
    }  # fmt: skip


def said(sent: list[dict[str, Any]]) -> list[Any]:
    """What is said, in order, notices aside; a text that a copied message says twice counts once."""
    found: list[Any] = []
    for message in sent:
        texts: set[str] = set()
        for block in message["content"]:
            if block["type"] == "text" and block["text"].startswith(("<system-reminder>", "<task-notification>")):
                found += NOTIFICATION.findall(block["text"])
            elif block["type"] == "text" and block["text"].strip() not in texts:
                found.append(block["text"].strip())
                texts.add(found[-1])
            elif block["type"] in ("tool_use", "tool_result"):
                found.append((block["type"], block.get("id") or block.get("tool_use_id") or "call"))
    return found


def naive(files: list[Path]) -> tuple[list[int], list[int]]:
    """Usage by the rule, counted as plainly as possible, and what a sum over lines would say."""
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    own: dict[tuple[str, str], list[int]] = {}
    nested: dict[tuple[str, str], list[int]] = {}
    summed = [0, 0, 0, 0]
    for path in files:
        for line in load(path).splitlines():
            for record in objects(line):
                for table, body, request in figures_of(record):
                    row = [body["usage"].get(name) or 0 for name in names]
                    kept = own if table == "own" else nested
                    key = (body.get("id") or record.get("uuid") or str(len(own)), request or "")
                    if key not in kept or weight(row) > weight(kept[key]):
                        kept[key] = row
                    if table == "own":
                        summed = [a + b for a, b in zip(summed, row, strict=True)]
    seen = {name for name, _ in own}
    rows = [*own.values(), *(row for (name, _), row in nested.items() if name not in seen)]
    return [sum(column) for column in zip(*rows, strict=True)] or [0] * 4, summed


def weight(row: list[int]) -> tuple[int, int]:
    """The largest output stands, then the largest input, from the cache or not."""
    return row[1], row[0] + row[2] + row[3]


def objects(line: bytes) -> Iterator[dict[str, Any]]:
    decoder, text, at = json.JSONDecoder(), line.decode("utf-8", "replace"), 0
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except ValueError:
            return
        if isinstance(value, dict):
            yield value


def figures_of(record: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], str | None]]:
    found: list[tuple[str, Any, Any]] = []
    if record.get("type") == "assistant":
        found.append(("own", record.get("message"), record.get("requestId")))
    elif record.get("type") == "progress":
        inner = record.get("data", {}).get("message")
        if isinstance(inner, dict):
            found.append(("nested", inner.get("message"), inner.get("requestId")))
    for table, body, request in found:
        if isinstance(body, dict) and isinstance(body.get("usage"), dict) and body.get("model") != "<synthetic>":
            yield table, body, request


def test_usage_equals_an_independent_count_in_every_file_and_over_all() -> None:
    """By file, over all files at once (what forks copied counts once), from events and from the scan."""
    tallies = []
    for path in FILES:
        expected, _ = naive([path])
        read, scanned = Tally.of(FORMAT.read(load(path))), scan(load(path)).tally
        tallies.append(scanned)

        assert expected == [count or 0 for count in msgspec.structs.astuple(read.tokens)], path
        assert read.figures() == scanned.figures(), path

    expected, summed = naive(FILES)
    assert expected == list(msgspec.structs.astuple(Tally.merge(tallies).tokens))
    assert summed[0] > 1.2 * expected[0], "a sum over lines would be too high"


def test_sub_agents_are_linked_to_the_calls_that_started_them() -> None:
    links: dict[str, dict[str, str]] = defaultdict(dict)
    for path in FILES:
        links[path.stem] |= scan(load(path)).calls
    agents = [path for path in FILES if path.parent.name == "subagents"]

    assert agents
    for path in agents:
        assert scan(load(path)).sidechain, "a sub-agent's own file has nothing else"
        parent = links[path.parent.parent.name]
        assert not parent or path.stem.removeprefix("agent-") in parent, path
