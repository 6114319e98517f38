"""Harken's command line, called inside the laboratory as a user would call it."""

from __future__ import annotations

from typing import Any

from support.lab import Lab
from support.programs import ALL, program


def harken(lab: Lab, *words: str) -> list[dict[str, Any]]:
    """Run a command and read its JSON lines; it must end well."""
    done = lab.run("harken", *words, "--json")
    assert done.code == 0, done.err + done.out
    return done.lines


def take_in(lab: Lab) -> list[dict[str, Any]]:
    """Import everything the programs have written; a line for each session."""
    homes = (program(name).home(lab) for name in ALL)
    return harken(lab, "import", *(str(path) for path in homes if path.exists()))
