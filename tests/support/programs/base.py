"""What there is to know of a program, so that a test can hold a conversation with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.scripted_model import Call, Cue
from support.wire import Item

if TYPE_CHECKING:
    from support.lab import Lab, Run


@dataclass(frozen=True)
class Program:
    """One program, as data and functions of a laboratory."""

    name: str
    """The runtime's name in Harken."""
    home: Callable[[Lab], Path]
    """The program's own folder: what `harken resume --home` is given, and what is imported."""
    set_up: Callable[[Lab], None]
    """Write its settings; the model's port is known, and changes with every new model."""
    ask: Callable[[Lab, str, str], Run]
    """Say something to it without a screen, in a new session or (by its id) in an old one."""
    session: Callable[[Lab, Run], str]
    """The session that a run was part of."""
    items: Callable[[dict[str, Any]], list[Item]]
    """What a request says, as a flat list, without what the program adds by itself."""
    shell: Callable[[str], Call]
    """A call of the program's own tool that runs a command in a shell."""
    picture: Callable[[str], Call] | None = None
    """A call of the program's own tool that looks at the picture in a file; None where its model is shown none."""
    delegate: Callable[[str], list[Cue]] | None = None
    """The turns by which its model has a sub-agent do something and waits for the report; None where it has none."""
    compact: Callable[[Lab, str], None] | None = None
    """Have the program fold a session into the summary `SUMMARY`; None where it cannot be asked to."""
    environment: Callable[[Lab], dict[str, str]] = lambda lab: {}
    """What its commands need in their environment, beside what every program gets."""
    summary: str = "SUMMARY: they ran it."
    """What the model says when it is asked for a summary."""
