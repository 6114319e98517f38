"""The matrix on the wire: what each of the programs knew is what every other one sends when it goes on.

`make test-matrix` runs all pairs and prints the table that is kept in `docs/guides/run-and-resume.md`; the rest of the
laboratory runs those in which each program is source and target twice.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.conversations import heard, prompt
from support.conversations import plain as plain_talk
from support.harken_cli import harken, take_in
from support.lab import Lab
from support.matrix import Crossing, continue_in, cross, hold, plain, table
from support.programs import MODULES, program
from support.scripted_model import Say
from support.wire import Item

pytestmark = pytest.mark.runtimes
RUNTIMES = tuple(MODULES)
WHOLE = bool(os.environ.get("HARKEN_MATRIX"))
"""Where it names a file, every pair is tried, and the table is written there."""


def targets(source: str) -> list[str]:
    """All of them; otherwise the two that follow in the list."""
    at = RUNTIMES.index(source)
    return list(RUNTIMES) if WHOLE else [RUNTIMES[(at + step) % len(RUNTIMES)] for step in (1, 2)]


@pytest.mark.parametrize("source", RUNTIMES)
def test_what_a_program_knew_goes_on_in_the_others(lab: Lab, source: str) -> None:
    held = hold(lab, source)
    harken(lab, "import", str(program(source).home(lab)), "--runtime", source)

    crossings = [cross(lab, held, target) for target in targets(source)]

    if WHOLE:
        _write(crossings)
    assert [] == [(one.target, one.expected, one.sent) for one in crossings if not one.is_whole]


def _write(crossings: list[Crossing]) -> None:
    """Add rows to the table."""
    path = Path(os.environ["HARKEN_MATRIX"])
    rows = table(crossings).splitlines()
    lines = path.read_text().splitlines() if path.exists() else rows[:2]
    path.write_text("\n".join([*lines, *rows[2:]]) + "\n")


HOPS = ("codex", "gemini-cli", "pi", "qwen-code", "claude-code")


def test_five_hops_return_to_the_first_with_nothing_doubled(lab: Lab) -> None:
    held = plain_talk(lab, "claude-code")
    known = [item for item in held.knew if item.kind != "thinking"]
    session = held.session
    for number, target in enumerate(HOPS, 1):
        take_in(lab)
        session = continue_in(lab, session, target)["session"]
        lab.model.play([Say(f"Answer {number}.")])
        prompt(lab, target, f"Hop {number}?", session)

        assert plain([*known, Item("user", f"Hop {number}?")]) == plain(heard(lab, target)), target
        known += [Item("user", f"Hop {number}?"), Item("assistant", f"Answer {number}.")]
    take_in(lab)
    figures = [harken(lab, "stats", row["session"])[0] for row in harken(lab, "sessions") if not row["parent"]]
    own = sum(each["requests"] - ((each["carried"] or {}).get("requests") or 0) for each in figures)
    assert len(lab.model.asked()) == own, "each request counts once, in the session that made it"
