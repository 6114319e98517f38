"""What a program that goes on with a conversation shows of its calls on the screen.

Programs keep this beside what goes to the model, and show an empty box where it is missing. They print it as they find
it, and a result is hostile: what would move the cursor or change the terminal is left out.
"""

from __future__ import annotations

import re

from .anthropic import Block
from .jsonl import encode

_TERMINAL = re.compile(
    "\x1b\\][^\x07\x1b]*+(?:\x07|\x1b\\\\)?"  # titles and links
    "|\x1b\\[[0-?]*+[ -/]*+[@-~]?"  # colours and the cursor
    "|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)
LONGEST_CALL = 200
"""Characters of a call's arguments that stand beside its name."""


def shown_call(call: Block) -> str:
    """The arguments of a call in one line: the command where there is one."""
    given = call["input"]
    command = given.get("command") if isinstance(given, dict) else None
    words = command if isinstance(command, str) else encode(given).decode(errors="replace")
    line = " ".join(shown_text(words).split())
    return line if len(line) <= LONGEST_CALL else line[: LONGEST_CALL - 1] + "…"


def shown_result(result: Block) -> str:
    """The words of a result."""
    content = result["content"]
    if isinstance(content, str):
        return shown_text(content)
    return shown_text("\n".join(part["text"] for part in content if part["type"] == "text"))


def shown_text(words: str) -> str:
    """A text without what a terminal would obey."""
    return _TERMINAL.sub("", words)
