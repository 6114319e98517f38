"""The rule `cut-1` of pi: its vectors, which never change, and what it promises."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import clock, ids
from harken.errors import BadRequest
from harken.formats import Delta
from harken.formats.pi.cut import CAP, LEAST
from harken.formats.pi.scan import scan, split

HEADER = b'{"type":"session","version":3,"id":"s","timestamp":"2026-01-02T00:00:00.000Z","cwd":"/x"}\n'


def entry(second: int, message: bytes, kind: bytes = b"message") -> bytes:
    stamp = b"2026-01-02T00:00:%02d.000Z" % second
    return b'{"type":"%s","id":"%d","parentId":null,"timestamp":"%s",%s}\n' % (kind, second, stamp, message)


USER = entry(1, b'"message":{"role":"user","content":"one"}')
SHELL = entry(2, b'"message":{"role":"bashExecution","command":"ls"}')
CALL = entry(3, b'"message":{"role":"assistant","content":[{"type":"toolCall","id":"c"}]}')
CALLS = entry(
    3, b'"message":{"role":"assistant","content":[{"type":"toolCall","id":"d"},{"type":"toolCall","id":"c"}]}'
)
BROKEN_OFF = CALL.replace(b'"role"', b'"stopReason":"aborted","role"')
RESULT = entry(4, b'"message":{"role":"toolResult","toolCallId":"c","content":[]}')
MODEL = entry(5, b'"message":{"role":"assistant","content":[{"type":"text","text":"1"}]}')
LEVEL = entry(6, b'"thinkingLevel":"high"', b"thinking_level_change")
COMPACTION = entry(7, b'"summary":"s","firstKeptEntryId":"1"', b"compaction")
RESET = entry(8, b'"reason":"new"', b"reset")
SUMMARY = entry(9, b'"summary":"s"', b"branch_summary")
CUSTOM = entry(10, b'"customType":"x","content":"y"', b"custom_message")
SYSTEM = entry(11, b'"message":{"role":"system","content":""}')
BIG = RESULT.replace(b"[]", b'["%s"]' % (b"x" * LEAST))
HUGE = RESULT.replace(b"[]", b'["%s"]' % (b"x" * CAP))

VECTORS = {
    "a prompt closes what the model has said": [[HEADER, LEVEL, USER, MODEL], [USER, MODEL]],
    "prompts that follow each other stay together": [[HEADER, USER, SHELL, USER, MODEL]],
    "a command, an extension and a summary are heard": [
        [HEADER, USER, MODEL],
        [SHELL, MODEL],
        [CUSTOM, MODEL],
        [SUMMARY],
    ],
    "what is set stays with what comes before": [[HEADER, USER, MODEL, LEVEL, SYSTEM], [USER, MODEL]],
    "a call and its result stay together": [[HEADER, USER, CALL, USER, RESULT], [USER]],
    "all results are waited for": [[HEADER, USER, CALLS, RESULT, USER, RESULT.replace(b'"c"', b'"d"')], [USER]],
    "a small delta goes on through requests": [[HEADER, USER, CALL, RESULT, CALL, RESULT, MODEL]],
    "a large one ends with a request": [[HEADER, USER, CALL, BIG], [MODEL]],
    "a call of an answer that broke off is not waited for": [[HEADER, USER, BROKEN_OFF], [USER, MODEL]],
    "an answer ends the waiting": [[HEADER, USER, CALL, USER, MODEL], [USER]],
    "a call is waited for 256 KiB": [[HEADER, USER, CALL, HUGE.replace(b'"c"', b'"d"')], [USER]],
    "anything closes a delta of 256 KiB": [[HEADER, USER, CALL, HUGE], [LEVEL, USER]],
    "a compaction ends its delta and is told again": [[HEADER, USER, MODEL], [COMPACTION], [COMPACTION], [USER, MODEL]],
    "an open call does not hold up a compaction": [[HEADER, USER, CALL], [COMPACTION], [COMPACTION], [RESULT, USER]],
    "what is set may stand before a compaction": [[HEADER, LEVEL, COMPACTION], [COMPACTION], [USER]],
    "a reset begins anew and is not told again": [[HEADER, USER, MODEL], [RESET, USER, MODEL]],
    "a broken line never cuts": [[HEADER, USER, MODEL, b'{"type":"message"\n', USER[:-2] + b"\n"]],
    "two objects on a line never cut": [[HEADER, USER, MODEL, USER[:-1] + USER]],
    "a line without its newline never cuts": [[HEADER, USER, MODEL, USER[:-1]]],
    "an empty line belongs to what comes before": [[HEADER, USER, MODEL, b"\n"], [USER]],
    "nothing is no delta": [],
}


def repeated(parts: list[bytes], number: int) -> bool:
    return number > 0 and parts[number] == COMPACTION and parts[number - 1].endswith(COMPACTION)


@pytest.mark.parametrize("name", VECTORS)
def test_a_vector(name: str) -> None:
    parts = [b"".join(lines) for lines in VECTORS[name]]
    data = b"".join(part for number, part in enumerate(parts) if not repeated(parts, number))

    assert parts == [data[delta.start : delta.end] for delta in split(data)]


def test_a_tail_that_is_closed_as_it_stands_stays_the_same_delta() -> None:
    """Else the commit of the tail and that of the closed delta would differ, though their bytes do not."""
    for data in (HEADER + USER + CALL, HEADER + USER + CALL + RESULT, HEADER + USER + MODEL):
        (tail,) = split(data)
        closed = split(data + COMPACTION)[0]

        assert (tail.end, tail.checkpoint, tail.time) == (closed.end, closed.checkpoint, closed.time)


LINES = st.sampled_from([HEADER, USER, MODEL, CALL, RESULT, LEVEL, COMPACTION, RESET, BIG, SUMMARY, b"{\n", b"\n"])


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
    for state in (b'{"rule":"cut-2","offset":1}', b"[]", b'{"rule":"cut-1","offset":-1}'):
        with pytest.raises(BadRequest):
            scan(b"", state)


FILE = b"""\
{"type":"session","version":3,"id":"s","timestamp":"2026-01-02T00:00:00.000Z","cwd":"/x"}
{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02T00:00:01.000Z","message":{"role":"user","content":"one"}}
{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-02T00:00:02.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c"}]}}
{"type":"message","id":"c","parentId":"b","timestamp":"2026-01-02T00:00:03.000Z","message":{"role":"toolResult","toolCallId":"c","content":[]}}
{"type":"message","id":"d","parentId":"c","timestamp":"2026-01-02T00:00:04.000Z","message":{"role":"assistant","content":[{"type":"text","text":"1"}]}}
{"type":"message","id":"e","parentId":"d","timestamp":"2026-01-02T00:00:05.000Z","message":{"role":"user","content":"two"}}
{"type":"message","id":"f","parentId":"e","timestamp":"2026-01-02T00:00:06.000Z","message":{"role":"assistant","content":[{"type":"text","text":"2"}]}}
{"type":"compaction","id":"g","parentId":"f","timestamp":"2026-01-02T00:00:07.000Z","summary":"s","firstKeptEntryId":"e","tokensBefore":9}
{"type":"message","id":"h","parentId":"g","timestamp":"2026-01-02T00:00:08.000Z","message":{"role":"user","content":"three"}}
{"torn"""


def names(data: bytes) -> list[str]:
    """The chain an import makes of the file: a commit per delta, each hanging from the one before."""
    chain: list[str] = []
    time = 0
    for delta in split(data):
        time = max(time, delta.time or 0)
        artifact = ids.artifact_ref(ids.artifact_id(data[delta.start : delta.end]))
        parent = chain[-1] if chain else ""
        chain.append(ids.commit_ref(ids.commit_id(parent, artifact, clock.format_seconds(time), "pi")))
    return chain


def test_the_names_of_a_chain_never_change() -> None:
    """If this fails, every archive that was imported before would be imported again under other names."""
    assert ["ctx-9e6e1b73", "ctx-026adc26", "ctx-a50984ae", "ctx-fb3f00fd", "ctx-0bfb09fe"] == names(FILE)
