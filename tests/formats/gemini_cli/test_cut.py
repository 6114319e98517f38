"""The rule `cut-1` of gemini-cli: its vectors, which never change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harken import runtimes
from harken.formats.gemini_cli import split
from harken.formats.gemini_cli.cut import CAP, LEAST
from harken.repo import Repo
from harken.runtimes.importer import Importer
from harken.store import MemoryStore


def line(**record: Any) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def call(name: str, *, result: str = "", text: str = "") -> bytes:
    answer = {"functionResponse": {"id": name, "name": "run", "response": {"output": result}}}
    made = {"id": name, "name": "run", "args": {}} | ({"result": [answer]} if result else {})
    return line(id="g", timestamp="2026-01-02T00:00:03Z", type="gemini", content=text, toolCalls=[made])


HEADER = line(sessionId="s", projectHash="p", startTime="2026-01-02T00:00:00Z")
USER = line(id="u", timestamp="2026-01-02T00:00:01Z", type="user", content=[{"text": "Hi."}])
OTHER = line(id="v", timestamp="2026-01-02T00:00:05Z", type="user", content="Again.")
MODEL = line(id="g", timestamp="2026-01-02T00:00:02Z", type="gemini", content="Hello.")
NEXT = line(id="h", timestamp="2026-01-02T00:00:06Z", type="gemini", content="More.")
CALL, ANSWERED = call("c"), call("c", result="done")
RESULT = line(
    id="r",
    timestamp="2026-01-02T00:00:04Z",
    type="user",
    content=[{"functionResponse": {"id": "c", "name": "run", "response": {"output": "done"}}}],
)
NOTE = line(id="n", type="info", content="a note")
SET = line(**{"$set": {"lastUpdated": "2026-01-02T00:00:07Z"}})
AGAIN = line(**{"$set": {"messages": [json.loads(USER), json.loads(MODEL)], "lastUpdated": "2026-01-03T00:00:00Z"}})
FOLD = line(
    **{
        "$set": {
            "messages": [
                {"id": "1", "timestamp": "2026-01-02T00:00:08Z", "type": "user", "content": "<state_snapshot/>"},
                {
                    "id": "2",
                    "timestamp": "2026-01-02T00:00:08Z",
                    "type": "gemini",
                    "content": [{"text": "Got it. Thanks for the additional context!"}],
                },
            ],
            "lastUpdated": "2026-01-02T00:00:08.100Z",
        }
    }
)
BACK = line(**{"$rewindTo": "u"})
BIG, HUGE = call("c", result="x" * LEAST), call("c", result="x" * CAP)

VECTORS = {
    "a prompt closes what the model has said": [[HEADER, USER, MODEL, SET], [OTHER, NEXT]],
    "prompts that follow each other stay together": [[HEADER, USER, OTHER, NEXT]],
    "a message that is written again stays with itself": [
        [HEADER, USER, MODEL, SET, CALL, ANSWERED, RESULT, SET, NEXT]
    ],
    "a call and its result stay together": [[HEADER, USER, CALL, OTHER, RESULT], [USER]],
    "a small delta goes on through requests": [[HEADER, USER, ANSWERED, RESULT, NEXT]],
    "a large one ends with a request": [[HEADER, USER, BIG, RESULT, SET], [NEXT]],
    "a call is waited for 256 KiB": [[HEADER, USER, CALL, HUGE.replace(b'"c"', b'"d"')], [OTHER]],
    "a delta of 256 KiB is closed before a message of somebody": [[HEADER, USER, HUGE, NOTE, SET, RESULT], [NEXT]],
    "another header begins a delta": [[HEADER, USER, MODEL], [HEADER, AGAIN, OTHER]],
    "a header that nothing stands between begins none": [[HEADER, HEADER, USER]],
    "a compaction ends its delta and is told again": [[HEADER, USER, MODEL, SET], [FOLD], [FOLD], [OTHER, NEXT]],
    "a call that nobody answered does not hold up a compaction": [[HEADER, USER, CALL], [FOLD], [FOLD], [OTHER]],
    "what a resume repeats is no compaction": [[HEADER, USER, MODEL, AGAIN], [OTHER]],
    "what is taken back stays": [[HEADER, USER, MODEL, BACK], [OTHER]],
    "a broken line never cuts": [[HEADER, USER, MODEL, OTHER[:-3] + b"\n"], [USER]],
    "two objects on a line never cut": [[HEADER, USER, MODEL, OTHER[:-1] + OTHER], [USER]],
    "a line without its newline never cuts": [[HEADER, USER, MODEL, OTHER[:-1]]],
}


@pytest.mark.parametrize("name", VECTORS)
def test_where_lines_are_cut(name: str) -> None:
    wanted = [b"".join(lines) for lines in VECTORS[name]]
    repeated = [at for at, lines in enumerate(VECTORS[name]) if at and lines == VECTORS[name][at - 1] == [FOLD]]
    data = b"".join(part for at, part in enumerate(wanted) if at not in repeated)

    found = split(data)

    assert [data[delta.start : delta.end] for delta in found] == wanted
    assert [at for at, delta in enumerate(found) if delta.commit_type == "compaction"] == repeated


def test_the_names_of_a_chain_never_change(tmp_path: Path) -> None:
    data = b"".join([HEADER, USER, MODEL, CALL, ANSWERED, RESULT, NEXT, OTHER, NEXT, FOLD, USER, b'{"torn'])
    (tmp_path / "session.jsonl").write_bytes(data)
    store = MemoryStore()

    list(Importer(store, [runtimes.get("gemini-cli")]).run([tmp_path / "session.jsonl"]))

    names = [(commit.short, commit.commit_type) for commit in reversed(Repo(store).history("s"))]
    assert names == [
        ("ctx-12d89bc4", "delta"),
        ("ctx-1514785d", "delta"),
        ("ctx-4b2e5f3c", "delta"),
        ("ctx-e4b0cc98", "compaction"),
        ("ctx-d77751d9", "delta"),
    ]
