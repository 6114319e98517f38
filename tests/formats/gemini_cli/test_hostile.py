"""Files whose values are of any type: nothing raises, and whoever counts comes to the same numbers."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from harken import runtimes
from harken.events import Event, Output
from harken.events.records import by_record
from harken.events.tally import Tally
from harken.formats import get
from harken.formats.gemini_cli import quick, rewrite, scan
from support import gemini_lines

LINES, DOCUMENT = get("gemini-cli-v1"), get("gemini-json-v1")
ODD: list[Any] = [
    *(
        None,
        True,
        0,
        -1,
        1.5,
        10**30,
        "",
        "x",
        "@5",
        [],
        {},
        [None],
        {"a": 1},
        [{}],
        [[]],
        {"text": None},
        [{"text": 3}],
    ),
    *({"functionResponse": {}}, [{"functionResponse": {"id": 1}}], [{"functionCall": {}}], "gemini", "user"),
    *([{"inlineData": {"data": 5}}], [{"thought": True, "text": "t"}], "2026-01-02T00:00:00.000Z"),
]
KEYS = ("id", "$set", "type", "content", "messages", "$rewindTo", "sessionId")
FILES = 150


def mutated(value: Any, chance: Random) -> Any:
    if chance.random() < 0.06:
        return chance.choice(ODD)
    if isinstance(value, list):
        return [mutated(one, chance) for one in value]
    if not isinstance(value, dict):
        return value
    made: dict[str, Any] = {}
    for key, one in value.items():
        if chance.random() < 0.02:
            continue
        if chance.random() < 0.02:
            made[chance.choice(KEYS)] = one
        made[key] = mutated(one, chance)
    return made


def names(events: list[Event]) -> list[tuple[str, int, str]]:
    return [("@" if e.message_id.startswith("@") else e.message_id, e.index, e.kind) for e in events]


def test_lines_of_any_values_are_read_counted_and_written() -> None:
    samples = gemini_lines.samples()
    for seed in range(FILES):
        chance = Random(seed)
        records = [json.loads(line) for line in chance.choice(samples).splitlines()]
        records = [mutated(one, chance) if chance.random() < 0.25 else one for one in records]
        lines = [json.dumps(one, separators=(",", ":")) for one in records]  # as the program writes them
        if chance.random() < 0.2:
            chance.shuffle(lines)
        data = "\n".join(lines).encode() + b"\n" * chance.randrange(2)

        events, facts = LINES.read(data), scan(data)

        assert Tally.of(events).figures() == facts.tally.figures(), seed
        assert sum(any(isinstance(e, Output) and e.why for e in one) for one in by_record(events)) == facts.opaque, seed
        deltas = [data[delta.start : delta.end] for delta in facts.deltas if delta.commit_type == "delta"]
        assert names(events) == [name for delta in deltas for name in names(LINES.read(delta))], seed
        context = LINES.context(data)
        assert LINES.context(context) == context, seed
        LINES.read_conversation(context)
        LINES.read(rewrite(context, session_id="s", project="p", time=0))


REFERENCED = {"text": "\n--- Content from referenced files ---"}
PICTURE = {"inlineData": {"data": "aGk=", "mimeType": "image/png"}}
CONTENTS: list[Any] = [
    *([{"text": "look"}, PICTURE], [PICTURE], [PICTURE, {"text": "<session_context>"}], [REFERENCED], []),
    *([{"text": "a"}, REFERENCED, PICTURE, {"text": "end"}], [{"text": "\u200b"}, {"text": "<hook_context>"}]),
    *([{"text": "a", **PICTURE}], [{"text": "a", "inlineData": None}], [{"inlineData": None}], "<hook_context>"),
    *([{"text": "a"}, {"functionResponse": {"id": "c", "name": "t"}}], [{"functionResponse": {"id": "", "name": "t"}}]),
]
SENT: list[Any] = [{"prompt": "go"}, {"prompt": 5}, {"prompt": ""}, {}, None, "go", ["go"]]


def of_many_shapes(chance: Random) -> bytes:
    """A session of messages that are nearly of the usual shape."""
    lines = [
        '{"sessionId":"s","projectHash":"p"}',
        *(f'{{"id":"u{at}","type":"user","content":"hi"}}' for at in range(16)),
    ]
    for number in range(60):
        one: dict[str, Any] = {"id": f"m{number - (chance.random() < 0.3)}", "timestamp": "2026-01-02T00:00:00.000Z"}
        if chance.random() < 0.5:
            one |= {"type": "user", "content": chance.choice(CONTENTS)}
            if chance.random() < 0.4:
                shown = one["content"] if isinstance(one["content"], list) else []
                one["displayContent"] = chance.choice([shown[:1], shown, shown[1:], chance.choice(CONTENTS), None, ""])
        else:
            call: dict[str, Any] = {"id": chance.choice(["c", "invoke_agent__c", ""]), "name": "invoke_agent"}
            call |= {"args": chance.choice(SENT), "result": chance.choice([None, [], [{"text": "done"}]])}
            call |= chance.choice([{}, {"agentId": "agent"}, {"agentId": ""}, {"agentId": None}])
            one |= {"type": "gemini", "content": chance.choice(["", "words", *CONTENTS]), "toolCalls": [call]}
        if chance.random() < 0.05:
            one["$rewindTo"] = chance.choice(["u3", 5, None])
        line = json.dumps(one, separators=(",", ":"))
        lines.append(line.replace("$", chance.choice(["$", "\\u0024"])))
    return "\n".join(lines).encode() + b"\n"


def test_lines_that_are_counted_quickly_count_as_the_long_way_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [of_many_shapes(Random(seed)) for seed in range(FILES)]
    quickly = [scan(data) for data in files]

    monkeypatch.setattr(quick, "message", lambda line: None)
    monkeypatch.setattr(quick, "listed", lambda line: None)

    for seed, (data, facts) in enumerate(zip(files, quickly, strict=True)):
        assert scan(data) == facts, seed
        assert Tally.of(LINES.read(data)).figures() == facts.tally.figures(), seed


def test_documents_of_any_values_are_read_counted_and_joined() -> None:
    older, samples = runtimes.get("gemini-cli-json"), gemini_lines.documents()
    for seed in range(FILES):
        chance = Random(seed)
        value = mutated(json.loads(chance.choice(samples)), chance)
        data = json.dumps(value, indent=chance.choice([None, 2])).encode()

        facts = older.read.scan(data, b"")

        assert Tally.of(DOCUMENT.read(data)).figures() == facts.tally.figures(), seed
        assert DOCUMENT.join([delta.content or b"" for delta in facts.deltas]) == data, seed
        LINES.read(LINES.older["gemini-json-v1"](data) or b"")


def test_a_file_of_one_object_that_is_no_message_comes_back_as_it_is() -> None:
    for source in (b'{"type":"user"}', b'{"type":"model"}\n', b"{}"):
        assert source == DOCUMENT.join([source[delta.start : delta.end] for delta in DOCUMENT.split(source)])


def test_a_message_of_a_chain_without_its_tail_is_a_document() -> None:
    message = {"id": "m1", "type": "user", "content": "hello"}

    assert {"messages": [message]} == json.loads(DOCUMENT.join([json.dumps(message).encode()]))
