"""The plug-in's own test suite: its formats and runtimes pass what ours pass. Run by `test_contracts.py` where the
plug-in is installed."""

from __future__ import annotations

import json

from demo_runtimes import ledger, notebook, scribe
from demo_runtimes.documents import document
from demo_runtimes.records import encode, events_of

from harken.testing import FormatContract, RuntimeContract

RECORDS = [
    {"id": "a", "time": 1_794_738_000_000_000, "role": "user", "text": "Run it."},
    {"id": "b", "time": 1_794_738_001_000_000, "role": "call", "call": "c1", "name": "Bash", "arguments": {"x": 1}},
    {"id": "c", "time": 1_794_738_002_000_000, "role": "result", "call": "c1", "text": "a file", "error": False},
    {"id": "d", "time": 1_794_738_003_000_000, "role": "assistant", "text": "Done.", "tokens": [100, 7]},
    {"id": "e", "time": 1_794_738_004_000_000, "role": "user", "text": "And again."},
    {"id": "f", "time": 1_794_738_005_000_000, "role": "assistant", "text": "Done again."},
]
BOOK = notebook.head("one", "/work") + b"".join(encode(record) + b"\n" for record in RECORDS)
WORDS = (("ask", "hi"), ("ask", "--model", "x", "hi"), ("ask", "--json", "hi"))
LINES = (
    json.dumps({"type": "begin", "session": "one"}).encode(),
    json.dumps({"type": "said", "record": RECORDS[3]}).encode(),
)


NAMELESS = [{key: value for key, value in record.items() if key != "id"} for record in RECORDS]


class TestNotebookFormat(FormatContract):
    format = notebook.FORMAT
    samples = (BOOK,)


class TestNotebook(RuntimeContract):
    runtime = notebook.RUNTIME
    samples = (("books/one.jsonl", BOOK),)
    words = WORDS
    lines = LINES


class TestScribeFormat(FormatContract):
    format = scribe.FORMAT
    samples = (document("scribe", "one", "/work", RECORDS),)


class TestScribe(RuntimeContract):
    runtime = scribe.RUNTIME
    samples = (
        ("sessions/one.json", document("scribe", "one", "/work", RECORDS)),
        ("sessions/two.json", document("scribe", "two", "/work", NAMELESS)),
    )
    words = WORDS
    lines = LINES


class TestLedgerFormat(FormatContract):
    format = ledger.FORMAT
    samples = (document("ledger", "one", "/work", RECORDS),)


class TestLedger(RuntimeContract):
    runtime = ledger.RUNTIME
    samples = (("ledger.db", document("ledger", "one", "/work", RECORDS)),)
    words = WORDS
    lines = LINES


def test_a_document_is_put_together_from_its_deltas() -> None:
    for count in range(len(RECORDS) + 1):
        data = document("scribe", "one", "/work", RECORDS[:count])
        deltas = scribe.SHAPE.scan(data, b"").deltas
        contents = [delta.content or b"" for delta in deltas]

        assert data == scribe.FORMAT.join(contents)
        assert max(0, count - 1) == sum(delta.closed for delta in deltas)
        alone = scribe.FORMAT.join(contents[:-1])
        assert [event.message_id for event in scribe.FORMAT.read(alone)] == [
            event.message_id for record in RECORDS[: max(0, count - 1)] for event in events_of(encode(record))
        ]
