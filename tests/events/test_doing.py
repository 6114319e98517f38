"""What a call does, in a few words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.events import ToolCall
from harken.events.tools import MOST, doing

PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Add File: /work/b.py\n+z\n*** End Patch"


@pytest.mark.parametrize(
    ("name", "input", "expected"),
    [
        ("Bash", b'{"command": "pytest -q", "description": "run the tests"}', "Bash: pytest -q"),
        ("Bash", b'{"command": "cd x\\n  make\\n"}', "Bash: cd x make"),
        ("Edit", b'{"old_string": "a", "file_path": "/work/src/a.py"}', "Edit: src/a.py"),
        ("Edit", b'{"file_path": "/elsewhere/a.py"}', "Edit: /elsewhere/a.py"),
        ("Read", b'{"file_path": "/workshop/a.py"}', "Read: /workshop/a.py"),
        ("Grep", b'{"pattern": "def x", "path": "/work/src"}', "Grep: def x in src"),
        ("WebFetch", b'{"url": "https://example.org/"}', "WebFetch: https://example.org/"),
        ("Task", b'{"description": "look around", "prompt": "please look"}', "Task: look around"),
        ("shell", b'{"command": ["bash", "-lc", "ls | wc"]}', "shell: ls | wc"),
        ("shell", b'{"command": ["git", "status", 7]}', "shell: git status"),
        ("exec_command", b'{"cmd": "ls"}', "exec_command: ls"),
        ("apply_patch", PATCH.encode(), "apply_patch: src/a.py, b.py"),
        ("shell", b'{"command": ["apply_patch", "*** Begin Patch\\n*** Delete File: c"]}', "shell: c"),
        ("TodoWrite", b'{"todos": [{"content": "x"}]}', "TodoWrite"),
        ("Bash", b'{"command": 7, "description": " "}', "Bash"),
        ("Bash", b'{"command": "half', "Bash"),
        ("", b"", "?"),
        ("say", b"hello \xff", "say: hello \N{REPLACEMENT CHARACTER}"),
    ],
)
def test_it_says_what_is_done_to_what(name: str, input: bytes, expected: str) -> None:
    assert expected == doing(ToolCall(name=name, input=input), "/work")


@given(st.text(max_size=20), st.binary(max_size=300) | st.text().map(lambda text: text.encode(errors="replace")))
def test_whatever_is_called_it_is_one_short_line(name: str, input: bytes) -> None:
    told = doing(ToolCall(name=name, input=input), "/work")

    assert told and len(told) <= len(name) + 2 + MOST
    told.encode()


def test_it_does_not_matter_how_deep_or_long_the_rest_is() -> None:
    deep = b'{"x": ' + b"[" * 5000 + b"]" * 5000 + b', "command": "ls"}'
    long = b'{"content": "' + b"x" * 1_000_000 + b'", "file_path": "a"}'

    assert ("Write: a", "Bash") == (doing(ToolCall(name="Write", input=long)), doing(ToolCall(name="Bash", input=deep)))
