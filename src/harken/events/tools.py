"""What was done: a tool is asked for, and answers."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import msgspec

from .base import Event, Image, clean, excerpt


class ToolCall(Event, frozen=True, kw_only=True, gc=False):
    """The model asked for a tool; the call may still be refused or lost."""

    kind: ClassVar[str] = "tool_call"

    id: str = ""
    """Joins this to its `ToolResult`."""
    name: str = ""
    input: bytes = b""
    """The arguments as JSON text, just as the model wrote them; not always valid."""
    server_tool: bool = False
    """Run by the provider (a web search), so that we never see it execute."""
    call_id: str = ""
    """Which of several calls of the message in `cause` asked for it."""


class ToolResult(Event, frozen=True, kw_only=True, gc=False):
    """A tool answered, or something answered in its place."""

    kind: ClassVar[str] = "tool_result"

    id: str = ""
    output: str = ""
    is_error: bool = False
    name: str = ""
    """The tool's name, where the record repeats it."""
    images: tuple[Image, ...] = ()


# -- what a call does, in a few words ----------------------------------------------------------------------------------

PATHS = ("file_path", "filePath", "notebook_path", "path")
TELLING = (
    *("command", "cmd", *PATHS, "pattern", "query", "url", "skill", "description"),
    *("subject", "name", "prompt", "question", "message", "code", "input"),
)
"""Arguments that say what is done; the first that there is does."""
MOST = 100
"""Characters that are told of an argument."""
_SHELLS = frozenset({"bash", "sh", "zsh", "pwsh", "powershell"})
_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.+)$", re.MULTILINE)
# Of all arguments those that tell: whatever else there is, however long, is passed over.
_arguments = msgspec.json.Decoder(msgspec.defstruct("_Arguments", [(n, Any, None) for n in TELLING]) | str).decode


def doing(call: ToolCall, folder: str = "") -> str:
    """What a call does, on one line: `Bash: pytest -q`, `Edit: src/a.py`. A path stands as from the folder that was
    worked in, where it is below that; the tool's name alone where no argument tells."""
    name, what = tool_and_deed(call, folder)
    return f"{name}: {what}" if what else name


def tool_and_deed(call: ToolCall, folder: str = "") -> tuple[str, str]:
    """The tool's name and what it is to do, which is empty where no argument tells."""
    return clean(call.name) or "?", excerpt(clean(_what(call.input, folder)), MOST)


def _what(input: bytes, folder: str) -> str:
    try:
        found = _arguments(input)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        found = input[: 1 << 16].decode("utf-8", "replace")  # a text that is no JSON: a patch, or half a call
    if isinstance(found, str):
        return _patched(found, folder) or ("" if found.lstrip().startswith("{") else found)
    for name in TELLING:
        value = getattr(found, name)
        if name in PATHS and isinstance(found.pattern, str) and found.pattern.strip() and value:
            return f"{found.pattern} in {_below(str(value), folder)}"  # a search: what for tells more than where
        if isinstance(value, list) and name in ("command", "cmd"):
            value = _command(value)
        if isinstance(value, str) and value.strip():
            return _below(value, folder) if name in PATHS else _patched(value, folder) or value
    return ""


def _command(words: list[Any]) -> str:
    """A command given as words; of one that a shell is handed over, what the shell is to do."""
    texts = [word for word in words if isinstance(word, str)]
    if len(texts) == 3 and texts[0].rpartition("/")[2] in _SHELLS and texts[1].startswith("-"):
        return texts[2]
    return " ".join(texts)


def _patched(text: str, folder: str) -> str:
    """The files that a patch changes; empty where it is none."""
    if "*** Begin Patch" not in text[:1000]:
        return ""
    return ", ".join(dict.fromkeys(_below(path.strip(), folder) for path in _PATCHED.findall(text)))


def _below(path: str, folder: str) -> str:
    around = folder.rstrip("/") + "/"
    return path.removeprefix(around) if len(around) > 1 else path
