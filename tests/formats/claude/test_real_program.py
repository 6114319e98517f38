"""The tables of `test_request.py` and `test_branch.py`, given to the real Claude Code: it sends what they say."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from harken.formats.claude_code import context, messages
from support.claude_lines import MODEL, dump, line_of
from support.lab import Lab, installed
from support.scripted_model import Say

from . import test_branch, test_request

pytestmark = pytest.mark.runtimes
TABLES = {
    "records": test_request.RECORDS,
    "left out": test_request.LEFT_OUT,
    "ends": test_request.ENDS,
    "attached": test_request.ATTACHED,
    "branches": test_branch.BRANCHES,
}
CASES = {f"{table}: {name}": records for table, rows in TABLES.items() for name, (records, _) in rows.items()}
PROMPT = "and what now?"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    if not installed():
        pytest.fail("Claude Code is not installed; run scripts/runtimes")
    laboratory = Lab(tmp_path_factory.mktemp("lab"))
    try:
        yield laboratory
    finally:
        laboratory.close()


def resumed(lab: Lab, data: bytes) -> list[str]:
    """What the program sends for the session, without the message that holds the next prompt."""
    session = str(uuid.uuid5(uuid.NAMESPACE_OID, data.hex()))
    folder = lab.home / ".claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(lab.work.resolve()))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{session}.jsonl").write_bytes(data)
    lab.model.requests.clear()
    lab.model.play([Say("fine")])

    done = lab.claude(PROMPT, "--resume", session, "--model", MODEL)

    assert 0 == done.code, done.err + done.out[-500:]
    (sent,) = [request.body["messages"] for request in lab.model.requests if request.kind == "main"]
    return [line_of(_with_blocks(message)) for message in sent[:-1]]


def _with_blocks(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    return message | {"content": [{"type": "text", "text": content}] if isinstance(content, str) else content}


@pytest.mark.parametrize("records", CASES.values(), ids=CASES)
def test_the_real_program_sends_what_we_say(records: list[Any], lab: Lab) -> None:
    data = dump(*records)

    ours = [line_of(message) for message in messages(context(data), model=MODEL, prompt=PROMPT)[:-1]]

    assert ours == resumed(lab, data)
