"""The rule `cut-2` of codex: its vectors, which never change, and what it promises."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import clock, ids
from harken.errors import BadRequest
from harken.formats import Delta
from harken.formats.codex.cut import CAP, LEAST
from harken.formats.codex.scan import scan, split
from support.rollouts import Rollout, message

META = b'{"timestamp":"2026-01-02T00:00:00Z","type":"session_meta","payload":{"id":"t"}}\n'
USER = b'{"timestamp":"2026-01-02T00:00:01Z","type":"response_item","payload":{"type":"message","role":"user"}}\n'
MODEL = b'{"timestamp":"2026-01-02T00:00:02Z","type":"response_item","payload":{"type":"message","role":"assistant"}}\n'
CALL = b'{"timestamp":"2026-01-02T00:00:03Z","type":"response_item","payload":{"type":"function_call","call_id":"c"}}\n'
OUTPUT = (
    b'{"timestamp":"2026-01-02T00:00:04Z","type":"response_item",'
    b'"payload":{"type":"function_call_output","call_id":"c"}}\n'
)
START = b'{"timestamp":"2026-01-02T00:00:05Z","type":"event_msg","payload":{"type":"task_started"}}\n'
ABORT = b'{"timestamp":"2026-01-02T00:00:06Z","type":"event_msg","payload":{"type":"turn_aborted"}}\n'
COMPACTED = b'{"timestamp":"2026-01-02T00:00:07Z","type":"compacted","payload":{"replacement_history":[]}}\n'
BARE_USER = b'{"type":"message","role":"user","content":[]}\n'
BARE_MODEL = b'{"type":"message","role":"assistant","content":[]}\n'
BIG = OUTPUT[:-3] + b',"output":"' + b"x" * LEAST + b'"}}\n'
HUGE = OUTPUT[:-3] + b',"output":"' + b"x" * CAP + b'"}}\n'

VECTORS = {
    "a prompt closes what the model has said": [[META, USER, MODEL], [USER, MODEL]],
    "prompts that follow each other stay together": [[META, USER, USER, MODEL]],
    "a turn begins at its mark": [[META, START, USER, MODEL], [START, USER, MODEL]],
    "the first mark closes nothing": [[META, START, USER]],
    "a call and its output stay together": [[META, USER, CALL, USER, OUTPUT], [USER]],
    "a small delta goes on through requests": [[META, USER, CALL, OUTPUT, MODEL, CALL, OUTPUT]],
    "a large one ends with a request": [[META, USER, CALL, BIG], [MODEL]],
    "an aborted turn leaves no call open": [[META, USER, CALL, ABORT], [USER]],
    "a mark closes a call that nobody answered": [[META, USER, CALL], [START, USER]],
    "a call is waited for 256 KiB": [[META, USER, CALL, HUGE.replace(b'"c"', b'"d"')], [USER]],
    "anything closes a delta of 256 KiB": [[META, USER, CALL, HUGE], [ABORT, USER]],
    "a compaction at the start of a turn stays with it": [[META, USER, MODEL], [START, COMPACTED], [COMPACTED], [USER]],
    "a call that nobody answered does not hold up a compaction": [[META, USER, CALL], [COMPACTED], [COMPACTED], [USER]],
    "a compaction ends its delta and is told again": [[META, USER, MODEL], [COMPACTED], [COMPACTED], [USER, MODEL]],
    "a broken line never cuts": [[META, USER, MODEL, b'{"type":"response_item","payload"\n', USER[:-2] + b"\n"]],
    "two objects on a line never cut": [[META, USER, MODEL, USER[:-1] + USER]],
    "a line without its newline never cuts": [[META, USER, MODEL, USER[:-1]]],
    "old bare lines are cut alike": [[BARE_USER, BARE_MODEL], [BARE_USER]],
    "an empty line belongs to what comes before": [[META, USER, MODEL, b"\n"], [USER]],
    "nothing is no delta": [],
}


def repeated(parts: list[bytes], number: int) -> bool:
    return number > 0 and parts[number] == COMPACTED and parts[number - 1].endswith(COMPACTED)


@pytest.mark.parametrize("name", VECTORS)
def test_a_vector(name: str) -> None:
    parts = [b"".join(lines) for lines in VECTORS[name]]
    data = b"".join(part for number, part in enumerate(parts) if not repeated(parts, number))

    found = [data[delta.start : delta.end] for delta in split(data)]

    assert parts == found


def test_a_delta_knows_its_records_its_time_and_its_kind() -> None:
    data = META + USER + CALL + OUTPUT + START + USER + MODEL + COMPACTED + USER
    ends = [len(META + USER + CALL + OUTPUT), len(data) - len(COMPACTED + USER), len(data) - len(USER), len(data)]

    deltas = split(data)

    second = 1_767_312_000_000_000
    assert deltas == [
        Delta(start=0, end=ends[0], checkpoint="tool_call", time=second + 4_000_000, records=4, messages=1),
        Delta(start=ends[0], end=ends[1], time=second + 2_000_000, records=3, messages=2),
        Delta(start=ends[1], end=ends[2], checkpoint="compaction", time=second + 7_000_000, records=1),
        Delta(
            start=ends[1],
            end=ends[2],
            commit_type="compaction",
            checkpoint="compaction",
            time=second + 7_000_000,
            records=1,
        ),
        Delta(start=ends[2], end=ends[3], time=second + 1_000_000, records=1, messages=1, closed=False),
    ]


def test_a_tail_that_is_closed_as_it_stands_stays_the_same_delta() -> None:
    """Else the commit of the tail and that of the closed delta would differ, though their bytes do not."""
    data = META + USER + CALL + OUTPUT
    (tail,) = split(data)

    closed = split(data + START)[0]

    assert (tail.end, tail.checkpoint, tail.time, tail.records) == (
        closed.end,
        closed.checkpoint,
        closed.time,
        closed.records,
    )


def test_a_lone_surrogate_in_an_escape_does_not_break_a_line() -> None:
    """Parsers differ over it; the rule must not."""
    odd = USER[:-3] + b',"x":"\\ud800"}}\n'

    assert [META + USER + MODEL, odd] == [
        (META + USER + MODEL + odd)[delta.start : delta.end] for delta in split(META + USER + MODEL + odd)
    ]


def test_deep_nesting_is_survived() -> None:
    data = META + b'{"payload":' + b"[" * 50_000 + b"]" * 50_000 + b"}\n" + USER

    assert len(data) == split(data)[-1].end


LINES = st.sampled_from([META, USER, MODEL, CALL, OUTPUT, START, ABORT, COMPACTED, BIG, b"{\n", b"\n", BARE_USER])


@settings(max_examples=100, deadline=None)
@given(lines=st.lists(LINES, max_size=25), data=st.data())
def test_a_file_that_grows_is_cut_as_if_it_had_never_been_shorter(lines: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(lines)
    found: list[Delta] = []
    state, offset = b"", 0
    stops = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))

    for stop in [*stops, len(whole)]:
        facts = scan(whole[offset : max(stop, offset)], state)
        found += [delta for delta in facts.deltas if delta.closed]
        tail = [delta for delta in facts.deltas if not delta.closed]
        state, offset = facts.state, facts.offset

    assert split(whole) == [*found, *tail]


def test_a_state_of_another_rule_is_refused() -> None:
    for state in (b'{"rule":"cut-1","offset":1}', b"[]", b'{"rule":"cut-2","offset":-1}'):
        with pytest.raises(BadRequest):
            scan(b"", state)


def test_the_state_names_the_rule_and_the_last_cut() -> None:
    facts = scan(Rollout().turn("a").compacted(message("user", "a")).turn("b").data)

    assert ("cut-2", facts.offset) == (json.loads(facts.state)["rule"], json.loads(facts.state)["offset"])


def names(data: bytes) -> list[str]:
    """The chain an import makes of the file: a commit per delta, each hanging from the one before."""
    chain: list[str] = []
    time = 0
    for delta in split(data):
        time = max(time, delta.time or 0)
        artifact = ids.artifact_ref(ids.artifact_id(data[delta.start : delta.end]))
        parent = chain[-1] if chain else ""
        chain.append(ids.commit_ref(ids.commit_id(parent, artifact, clock.format_seconds(time), "codex")))
    return chain


def test_the_names_of_a_chain_never_change() -> None:
    """If this fails, every archive that was imported before would be imported again under other names."""
    data = META + USER + CALL + OUTPUT + MODEL + USER + MODEL + COMPACTED + START + USER + b'{"torn'

    assert ["ctx-2530e70d", "ctx-0a0ecc53", "ctx-c4e187d1", "ctx-5b9b84ac", "ctx-a7db5066"] == names(data)
