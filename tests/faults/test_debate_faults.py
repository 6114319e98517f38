"""A debate of twenty agents and two thousand messages: played again to the line, and killed in the middle."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.debate import Debater, hold, open_debate, same_lines

pytestmark = pytest.mark.faults

SPEAKERS, ROUNDS = 20, 100


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hold(tmp_path_factory.mktemp("debate") / "log", Debater(SPEAKERS, ROUNDS))


def test_it_is_played_again_line_by_line(recorded: Path, tmp_path: Path) -> None:
    lines = same_lines(recorded)
    assert SPEAKERS * ROUNDS + 3 == sum(line.get("role") == "assistant" for line in lines)
    assert lines == same_lines(hold(tmp_path / "again", f"replay:{recorded}"))


@pytest.mark.parametrize("part", [0.1, 0.6, 0.99])
def test_killed_in_the_middle_it_comes_to_the_same_end(recorded: Path, tmp_path: Path, part: float) -> None:
    whole = recorded.read_bytes()
    path = tmp_path / "cut"
    path.write_bytes(whole[: int(len(whole) * part)])

    root, session = open_debate(path, Debater(SPEAKERS, ROUNDS))
    with session:
        assert "It is over." == asyncio.run(root.resume())

    assert _said(recorded) == _said(path)


def _said(path: Path) -> list[tuple[str, str, str]]:
    """Who said and heard what, in order."""
    entries = (line for line in same_lines(path) if line.get("event_type") == "transcript_entry")
    return [(line["agent_id"], line["role"], str(line.get("content"))) for line in entries]
