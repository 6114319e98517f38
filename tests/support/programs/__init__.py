"""The real programs of the laboratory: how each is set up, asked and resumed, and what its requests say.

A module for each, with one value, `PROGRAM`. What is alike in all of them (a network of their own, a scripted model, a
home folder) is in `support/lab.py`; conversations that any of them can hold are in `support/conversations.py`.
"""

from __future__ import annotations

import importlib

from support.programs.base import Program

MODULES = {
    "claude-code": "claude_code",
    "codex": "codex",
    "gemini-cli": "gemini_cli",
    "opencode": "opencode",
    "pi": "pi",
    "qwen-code": "qwen_code",
    "copilot-cli": "copilot_cli",
}
"""The name of the runtime to the module of its program."""
ALL = {**MODULES, "kilo": "kilo"}
"""With those that no matrix has, since they are another under another name."""


def program(runtime: str) -> Program:
    """The program of a runtime."""
    found: Program = importlib.import_module(f"support.programs.{ALL[runtime]}").PROGRAM
    return found
