"""What runtimes are told and tell: where a new session goes, what to start, whose a line of output is."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a new session goes, and how it is continued. Nothing in it is taken from a transcript."""

    session: str
    path: Path
    command: tuple[str, ...]
    """What continues the session."""
    cwd: Path
    """The folder the runtime is going to work in."""
    time: int
    """The instant the session is said to begin."""
    prepare: tuple[tuple[str, ...], ...] = ()
    """Commands that have to run first, where the runtime takes sessions in by itself."""
    provider: str = ""
    """Whose models the runtime is set to use there, where a session has to name them."""
    longest_result: int = 0
    """How many bytes of a tool's result the runtime keeps when it loads a session; 0 where it keeps all."""


class Template(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What kind of agent to start; `templates.py` reads it from a file."""

    name: str
    runtime: str
    model: str = ""
    system_prompt: str = ""
    append_system_prompt: str = ""
    arguments: tuple[str, ...] = ()


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How to start the runtime, and what to make of its output."""

    arguments: tuple[str, ...]
    prompt: str = ""
    """The prompt given as an argument."""
    show: Literal["text", "json", "array", "stream"] = "text"
    """What the user is to see: the final `text`, its last result as `json`, all lines as an `array`, the `stream`."""
    typed_lines: bool = False
    """Whether stdin is a stream of JSON lines rather than text of the prompt."""
    echoes_prompts: bool = False
    """Whether the output repeats prompts that are typed into the running session."""
    continues: str = ""
    """The session that the user's words go on with, where they name one."""
    session: str = ""
    """The session of the run, where its arguments say which it is to be."""
    wants_more: bool = False
    """Whether the user asked for the lines that `Launcher.more` makes it print."""


class LineOwner(msgspec.Struct, frozen=True, kw_only=True):
    """Whose line of output it is."""

    session: str = ""
    """The session that begins with this line, where one does."""
    agent: str = ""
    """The sub-agent that said it; empty for the main agent."""
    call: str = ""
    """The call that started that sub-agent."""


class ShownLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a line of output means to the user who waits for the answer."""

    answer: bytes | None = None
    """Shown at the end."""
    replaces: bool = False
    """Whether it takes the place of the answer so far, rather than standing behind it."""
    joins: bool = False
    """Whether it goes on with the answer so far, without a gap: some programs print their words in pieces."""
    note: str = ""
    """Said at once, beside the answer."""
