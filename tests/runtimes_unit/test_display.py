"""What is shown of a run: the spellings of the real programs."""

from __future__ import annotations

import pytest

from harken import runtimes
from harken.runtimes.claude_code.launch import result_text
from harken.runtimes.display import Display, parse


def shown(runtime: str, mode: str, *lines: bytes) -> tuple[bytes, list[str]]:
    out: list[bytes] = []
    notes: list[str] = []
    launch = runtimes.get(runtime).launch
    assert launch is not None
    display = Display(launch.shown, mode, out=out.append, note=notes.append)
    for line in lines:
        display.line(line, parse(line))
    display.end()
    return b"".join(out), notes


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"subtype": "success", "result": "Fine."}, b"Fine."),
        ({"subtype": "success", "is_error": True, "result": "API Error: 500"}, b"API Error: 500"),
        (
            {"subtype": "error_max_turns", "errors": ["Reached maximum number of turns (3)"]},
            b"Error: Reached max turns (3)",
        ),
        ({"subtype": "error_during_execution"}, b"Error: error_during_execution"),
        ({"subtype": "success"}, b""),
    ],
)
def test_claude_codes_last_words(result: dict[str, object], text: bytes) -> None:
    assert result_text(result) == text


def test_codex_shows_its_last_message_and_says_what_failed() -> None:
    first = b'{"type":"item.completed","item":{"type":"agent_message","text":"one"}}'
    last = b'{"type":"item.completed","item":{"type":"agent_message","text":"two"}}'
    failed = b'{"type":"turn.failed","error":{"message":"no key"}}'
    assert shown("codex", "text", first, last, failed) == (b"two\n", ["ERROR: no key"])


@pytest.mark.parametrize("line", [b"", b"not json", b"[1]", b"[" * 100_000, b'{"type":"result"', b"\xff\xfe", b"null"])
def test_lines_that_make_no_sense_are_shown_only_in_a_stream(line: bytes) -> None:
    assert shown("claude-code", "text", line) == (b"", [])
    assert shown("claude-code", "stream", line) == (line + b"\n", [])


def test_a_run_that_said_nothing_shows_nothing() -> None:
    for mode in ("text", "json", "array", "stream"):
        assert shown("claude-code", mode) == (b"", [])
