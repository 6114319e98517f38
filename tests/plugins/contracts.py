"""The plug-in's own test suite: its formats and runtimes pass what ours pass. Run by `test_contracts.py` where the
plug-in is installed."""

from __future__ import annotations

import json

from demo_runtimes import notebook
from demo_runtimes.records import encode

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


class TestNotebookFormat(FormatContract):
    format = notebook.FORMAT
    samples = (BOOK,)


class TestNotebook(RuntimeContract):
    runtime = notebook.RUNTIME
    samples = (("books/one.jsonl", BOOK),)
    words = WORDS
    lines = LINES
