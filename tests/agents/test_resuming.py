"""Whatever the log held when the process died, the resumed session comes to the same end."""

from __future__ import annotations

from pathlib import Path

import pytest

from harken import SessionViewer
from harken.agents.turns import INTERRUPTED
from support.discussion import DIALOG, dialog, play, transcripts


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "discussion.jsonl"
    play(path, ack="os")
    return path


def test_the_discussion_has_everything_that_can_be_interrupted(whole: Path) -> None:
    assert DIALOG == dialog(whole)
    heard = transcripts(whole)
    assert ("user", "[Jack]: Hi, I'm Jack. password: [REDACTED]") in heard["Jill"]
    assert ("user", "[Reviewer]: Say who you are first.") in heard["Jill"]
    assert ("user", "[remind]: Keep it short.") in heard["root"]
    assert ("assistant", "Be kind.") in heard["Inner"]


def test_a_log_cut_after_any_line_is_resumed_to_the_same_end(whole: Path, tmp_path: Path) -> None:
    """Every agent, hooks included, ends with the very transcript it would have had without the crash.

    A `terminate` that was cut off is the exception: it is answered as interrupted, and the guard is not asked again.
    """
    lines = whole.read_bytes().splitlines(keepends=True)
    expected, spoken = transcripts(whole), dialog(whole)
    path = tmp_path / "cut.jsonl"
    for cut in range(len(lines)):
        path.write_bytes(b"".join(lines[:cut]))

        reply = play(path, ack="os")

        assert "They have met." == reply, f"cut after line {cut}"
        assert spoken == dialog(path), f"cut after line {cut}"
        found = transcripts(path)
        if ("tool", INTERRUPTED) in found["root"]:
            assert cut > len(lines) - 8
            found["root"] = [
                ("tool", "Terminated subagent: Ann") if line[1] == INTERRUPTED else line for line in found["root"]
            ]
            expected_guard, found_guard = expected["Guard"], found.pop("Guard")
            assert expected_guard[: len(found_guard)] == found_guard
            found["Guard"] = expected_guard
        assert expected == found, f"cut after line {cut}"


def test_a_resumed_log_begins_with_the_very_bytes_that_were_there(whole: Path, tmp_path: Path) -> None:
    lines = whole.read_bytes().splitlines(keepends=True)
    path = tmp_path / "cut.jsonl"
    before = b"".join(lines[: len(lines) // 2])
    path.write_bytes(before)

    play(path, ack="os")

    assert path.read_bytes().startswith(before)
    ids = [entry["message_id"] for entry in SessionViewer(path).index.events]
    assert len(ids) == len(set(ids))
