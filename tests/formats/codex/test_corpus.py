"""Real rollouts, and what the real Codex 0.166.0 sent after resuming them.

Those recorded for this project are always there; `HARKEN_CORPUS` may name a folder with more.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from harken.analytics import stats
from harken.events import Metric, Output, Prompt
from harken.formats import codex, openai_responses
from harken.formats.codex.context import conversation
from harken.formats.codex.cut import CAP
from harken.formats.codex.records import iter_lines, kind_of
from harken.formats.codex.request import ADDED_BEFORE_PROMPT, base_instructions
from harken.formats.codex.truncate import FALLBACK_BUDGET
from harken.formats.kit.openai import CALLS, OUTPUTS
from support.recordings import CORPUS, RecordedSession, corpus_files, named, recorded, session_files, sign_items

FILES = session_files("codex")
GOLDEN = corpus_files("golden_codex_resume/*.json")
MODEL = "gpt-5-codex"
"""The model the golden requests were made with, which this Codex has no settings for."""

each_file = pytest.mark.parametrize("path", FILES, ids=named)


@each_file
def test_every_record_is_told_and_what_is_unknown_is_counted(path: Path) -> None:
    data = path.read_bytes()

    events = codex.read(data)
    facts = codex.scan(data)

    lines = [line for line in iter_lines(data) if not line.blank]
    assert len(lines) == facts.records == len({event.message_id for event in events})
    assert facts.opaque == sum(isinstance(event, Output) and bool(event.why) for event in events)


@each_file
def test_the_scan_and_the_events_count_alike(path: Path) -> None:
    data = path.read_bytes()

    facts, told = codex.scan(data), stats(codex.read(data))

    assert told == facts.tally.figures()


@each_file
def test_what_is_cut_joins_to_the_same_bytes(path: Path) -> None:
    data = path.read_bytes()
    deltas = [delta for delta in codex.split(data) if delta.commit_type == "delta"]

    assert data == codex.FORMAT.join(data[delta.start : delta.end] for delta in deltas)
    assert tuple(codex.split(data)) == codex.scan(data).deltas
    assert max(delta.end - delta.start for delta in deltas) < 2 * CAP


@each_file
def test_no_cut_falls_between_a_call_and_its_output(path: Path) -> None:
    data = path.read_bytes()
    cuts = [delta.end for delta in codex.split(data) if delta.commit_type == "delta"]
    asked: dict[str, int] = {}
    for line in iter_lines(data):
        kind, payload = kind_of(line.record) if line.record else ("", {})
        if payload.get("type") in CALLS and payload.get("call_id"):
            asked[payload["call_id"]] = line.start
        elif payload.get("type") in OUTPUTS and payload.get("call_id") in asked:
            call = asked.pop(payload["call_id"])
            if kind == "response_item":
                assert not [cut for cut in cuts if call < cut <= line.start]


def truncations(data: bytes) -> Iterator[int]:
    """Ends of lines, and places within them."""
    ends = [line.end for line in iter_lines(data)]
    for end in ends[:: max(1, len(ends) // 40)]:
        yield from (end, max(end - 7, 0))


@each_file
def test_a_truncated_file_keeps_every_cut_it_has(path: Path) -> None:
    data = path.read_bytes()[: 600 << 10]
    expected = codex.split(data)

    for stop in truncations(data):
        closed = [delta for delta in codex.split(data[:stop]) if delta.closed]
        assert expected[: len(closed)] == closed


@each_file
def test_a_growing_file_ends_where_a_fresh_one_does(path: Path) -> None:
    data = path.read_bytes()
    facts, found, size = codex.scan(b""), [], max(len(data) // 9, 1)

    for at in range(0, len(data), size):
        facts = codex.scan(data[facts.offset : at + size], facts.state)
        found += [delta for delta in facts.deltas if delta.closed]

    assert codex.split(data) == [*found, *(delta for delta in facts.deltas if not delta.closed)]


@each_file
def test_the_context_of_the_context_is_the_context(path: Path) -> None:
    data = path.read_bytes()

    once = codex.context(data)

    assert once == codex.context(once)
    assert codex.request_items(data) == codex.request_items(once)
    lines = data.splitlines(keepends=True)
    rest = iter(lines)
    assert all(line in rest for line in once.splitlines(keepends=True))


@each_file
def test_usage_is_the_last_total_of_every_run(path: Path) -> None:
    data = path.read_bytes()
    totals = [total for line in iter_lines(data) if line.record and (total := told_total(*kind_of(line.record)))]
    ends = [now for now, after in pairwise([*totals, {}]) if any(after.get(name, 0) < now[name] for name in COUNTED)]
    last = {name: sum(total[name] for total in ends) for name in COUNTED}
    if b'"history_base"' in data.split(b"\n", 1)[0]:  # a fork: its totals go on from those of another file
        last = {name: last[name] - carried(data)[name] for name in COUNTED}
    metrics = [event for event in codex.read(data) if isinstance(event, Metric)]
    rows = codex.scan(data).tally.requests.values()

    expected = (
        last["input_tokens"] - last["cached_input_tokens"],
        last["cached_input_tokens"],
        last["output_tokens"],
    )
    assert expected == tuple(
        sum(getattr(metric, name) for metric in metrics)
        for name in ("input_tokens", "cache_read_tokens", "output_tokens")
    )
    assert expected == tuple(sum(getattr(row, name) for row in rows) for name in ("input", "cache_read", "output"))


def told_total(kind: str, payload: dict[str, Any]) -> dict[str, int] | None:
    """The running total that a record tells, where it does."""
    if kind == "token_usage_record":
        return payload["thread_token_usage"]  # type: ignore[no-any-return]
    return (payload.get("info") or {}).get("total_token_usage") if payload.get("type") == "token_count" else None


COUNTED = ("input_tokens", "cached_input_tokens", "output_tokens")


def carried(data: bytes) -> dict[str, int]:
    """What the first figure of a file holds of others' work."""
    payloads = (kind_of(line.record)[1] for line in iter_lines(data) if line.record)
    info = next(each["info"] for each in payloads if each.get("type") == "token_count" and each.get("info"))
    return {name: count - info["last_token_usage"][name] for name, count in info["total_token_usage"].items()}


@each_file
def test_a_rollout_moved_to_another_thread_says_the_same(path: Path) -> None:
    data = codex.context(path.read_bytes())

    moved = codex.rewrite(data, session_id="01a1dec9-55eb-7972-87c7-b70fb9cc6700", cwd="/tmp", time=0)

    assert codex.request_items(data) == codex.request_items(moved)
    assert b"model_provider" not in moved.split(b"\n", 1)[0]


def test_what_a_person_said_is_told_from_what_was_injected() -> None:
    """In every real file with such events, they name exactly the prompts that are a person's."""
    for path in FILES:
        data = path.read_bytes()
        typed = [
            payload.get("message")
            for line in iter_lines(data)
            if line.record and (payload := kind_of(line.record)[1]).get("type") == "user_message"
        ]
        if path.parent.name == "EntityProcess__agentv":
            prompts = [e for e in codex.read(data) if isinstance(e, Prompt) and e.source == "user" and not e.substance]
            assert typed == [prompt.content for prompt in prompts]


# -- what the program sent ---------------------------------------------------------------------------------------------


ALONE = [each for each in recorded("codex") if b'"history_base"' not in each.path.read_bytes().split(b"\n", 1)[0]]
"""Those that are whole in their own file; of forks the tests of imports know more."""


@pytest.mark.parametrize("case", ALONE, ids=lambda case: case.name)
def test_the_request_is_the_one_codex_made(case: RecordedSession) -> None:
    """Between its instructions and the new prompt Codex sends the conversation, and what changed around it."""
    ours = sign_items(codex.request_items(case.path.read_bytes(), output_budget=FALLBACK_BUDGET))

    lead, *sent = case.sent
    assert "developer" == lead["role"]
    assert sent[: len(ours)] == ours
    *added, prompt = sent[len(ours) :]
    assert {item["role"] for item in added} <= set(ADDED_BEFORE_PROMPT)
    assert "user" == prompt["role"]


AGENTS = [each for each in recorded("codex", agents=True) if each.agent]


@pytest.mark.parametrize("case", AGENTS, ids=lambda case: case.name)
def test_a_sub_agent_knew_what_it_sent_itself(case: RecordedSession) -> None:
    """Its own last request; newer versions send their instructions as its first item."""
    ours = sign_items(codex.request_items(case.path.read_bytes()))

    assert case.sent[-len(ours[:-1]) :] == ours[:-1]
    assert len(case.sent) - len(ours[:-1]) in (0, 1)


def text_of(item: dict[str, Any]) -> str | None:
    for field in ("content", "summary", "arguments", "input", "output"):
        value = item.get(field)
        if field == "content" and item["type"] == "reasoning":
            continue
        if isinstance(value, str):
            return value
        if value is not None:
            return "\n".join(part.get("text") or "" if isinstance(part, dict) else part for part in value)
    return None


def signature(item: dict[str, Any]) -> dict[str, Any]:
    """An item as the golden files describe it: SHA-1 and length of its text, the parts on lines of their own."""
    known = {key: item[key] for key in ("type", "role", "name", "call_id") if item.get(key) is not None}
    text = text_of(item)
    if text is None:
        return known
    return known | {"len": len(text), "sha": hashlib.sha1(text.encode()).hexdigest()[:12]}


def cases() -> list[tuple[str, bytes, list[dict[str, Any]]]]:
    found = []
    for path in GOLDEN:
        golden = json.loads(path.read_text())
        if "signature" in golden:
            source = Path(CORPUS or "", golden["source"])
            found.append((golden["source"], source.read_bytes(), golden["signature"]))
    return found


def around(data: bytes, golden: list[dict[str, Any]], count: int) -> bool:
    """Whether what stands around the conversation is what Codex adds itself: its instructions, then what changed."""
    lead, added, prompt = golden[0], golden[1 + count : -1], golden[-1]
    if base := base_instructions(data):
        led = signature({"type": "message", "role": "developer", "content": base}) == lead
    else:
        led = lead["role"] == "developer"
    last = conversation(list(iter_lines(data))).model
    switched = bool(last) and last != MODEL
    roles = [item.get("role") for item in added]
    # Instructions for another model than the last turn's come first; the surroundings always come, before the prompt.
    return (
        led
        and switched == (added[0]["len"] > 10_000)
        and set(roles) <= set(ADDED_BEFORE_PROMPT)
        and "user" in roles
        and prompt["role"] == "user"
    )


def test_how_many_requests_are_strictly_equal(capsys: pytest.CaptureFixture[str]) -> None:
    equal = 0
    for _, data, golden in cases():
        ours = [signature(item) for item in codex.request_items(data, output_budget=FALLBACK_BUDGET)]
        equal += golden[1 : 1 + len(ours)] == ours and around(data, golden, len(ours))
    with capsys.disabled():
        print(f"\n{equal} of {len(cases())} golden requests of Codex are strictly equal")

    assert len(cases()) == equal


WITHOUT_PICTURES = [each.path.read_bytes() for each in recorded("codex") if each.scenario != "pictures"]
"""A picture between two texts of one message is told after them."""


@pytest.mark.parametrize("data", [*WITHOUT_PICTURES, *(data for _, data, _ in cases())], ids=lambda _: "")
def test_through_events_the_same_goes_to_the_model(data: bytes) -> None:
    """`openai-responses-v1` written from the events of the context; it cuts no output."""
    sent = [signature(item) for item in codex.request_items(data)]

    written = openai_responses.FORMAT.write(codex.read(codex.context(data)))

    assert sent == [signature(item) for item in json.loads(written.data)["input"]]
