"""A brief look at a delta gives the line that all of its events would give."""

from __future__ import annotations

import orjson
import pytest

from harken.context.summary import line, line_of
from harken.formats.claude_code import FORMAT
from harken.formats.claude_code.brief import read_briefly
from support.recordings import corpus_files, recorded


def sessions():
    return [*(session.path for session in recorded("claude-code")), *corpus_files("claude_code/**/*.jsonl")]


def record(kind, content, **fields):
    return orjson.dumps({"type": kind, "message": {"role": kind, "content": content}, **fields}) + b"\n"


def text(said):
    return {"type": "text", "text": said}


RESULT = {"type": "tool_result", "tool_use_id": "c", "content": "done"}
CALL = {"type": "tool_use", "id": "c", "name": "Read", "input": {}}
ANSWER = record("assistant", [text("I have looked")])
QUEUED = {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "typed while it was busy"}}
NOTICE = {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "told", "commandMode": "task"}}


@pytest.mark.parametrize("path", sessions(), ids=lambda path: path.stem[:40])
def test_every_delta_of_a_real_session_has_the_line_of_its_events(path):
    data = path.read_bytes()
    deltas = [data[delta.start : delta.end] for delta in FORMAT.split(data)]

    assert [line(FORMAT.read(delta)) for delta in deltas] == [line_of(FORMAT, delta) for delta in deltas]


@pytest.mark.parametrize(
    ("expected", "lines"),
    [
        ("what is it? → I have looked", [record("user", "what is it?"), ANSWER]),
        ("first → I have looked", [record("user", [text("first")]), record("user", "second"), ANSWER]),
        ("one two → I have looked", [record("user", [text("one"), text("two")]), ANSWER]),
        ("typed → Read", [record("user", "put in", isMeta=True), record("user", "typed"), record("assistant", [CALL])]),
        ("put in → I have looked", [record("user", "put in", isMeta=True), record("user", " "), ANSWER]),
        ("beside → I have looked", [record("user", [RESULT, text("beside")]), ANSWER]),
        ("<command-name>x → I have looked", [record("user", "<command-name>x"), record("user", [RESULT]), ANSWER]),
        ("spawned → I have looked", [record("user", "spawned", isSidechain=True), ANSWER]),
        ("typed while it was busy → Read ×2", [record("assistant", [CALL, CALL]), orjson.dumps(QUEUED) + b"\n"]),
        ("told → Read", [record("assistant", [CALL]), orjson.dumps(NOTICE) + b"\n"]),
        ("I have looked", [record("assistant", "no", isApiErrorMessage=True), ANSWER]),
    ],
)
def test_prompts_of_people_come_first_and_what_was_put_in_only_where_there_is_none(expected, lines):
    data = b"".join(lines)

    assert expected == line(FORMAT.read(data)) == line_of(FORMAT, data)
    assert read_briefly(data) is not None


@pytest.mark.parametrize(
    "odd",
    [
        b'{"type":"assistant","message":{"content":[7]}}\n',
        b'{"type":"user","message":{}}\n',
        b'{"type":"user","x":"\xff","message":{"content":"no text"}}\n',
        b'{"type":"summary","summary":"a title"}\n',
        b'{"type":"x"}{"type":"user","message":{"content":"two on a line"}}\n',
        b"not JSON\n",
        b'{"type":"user","message":{"content":"torn',
    ],
)
def test_what_is_unusual_is_left_to_the_reader(odd):
    assert read_briefly(record("user", "asked") + odd) is None


@pytest.mark.parametrize("number", [b"1e999", b"-1e999", b"9" * 5000])
def test_a_number_that_no_double_holds_hides_no_prompt(number):
    blocks = b'[{"type":"text","text":"one"},{"type":"text","text":"two"}]'
    data = b'{"type":"user","uuid":"u1","message":{"role":"user","content":' + blocks + b'},"cost":' + number + b"}\n"

    assert line(FORMAT.read(data)) == line_of(FORMAT, data)
