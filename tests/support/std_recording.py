"""A recording of three agents at a clock, for tests of the recorder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harken.capture import MultiAgentRecorder
from harken.formats.std.document import read

NAME = "2026-03-04-001-mend-the-clock-multi.json"
Json = dict[str, Any]


class Ticking:
    """A clock that goes on by a second each time it is asked."""

    def __init__(self) -> None:
        self.instant = 1_772_618_400_000_000

    def __call__(self) -> int:
        self.instant += 1_000_000
        return self.instant


def begin(path: Path | str, **more: Any) -> MultiAgentRecorder:
    about: Json = {
        "task_title": "Mend the clock",
        "user_prompt": "The clock is late.",
        "orchestrator": "architect-main",
        "participants": ["developer-01", ("checker", "reviewer")],
        "model": "model-1",
        "clock": Ticking(),
    }
    return MultiAgentRecorder(path, **{**about, **more})


def written(path: Path) -> Json:
    data: Json = read(path.read_bytes()).data
    return data


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / NAME


def play(recorder: MultiAgentRecorder) -> None:
    """One agent has work done by a second, and has it reviewed by a third."""
    recorder.call("Read", {"file_path": "clock.py"}, result="tick")
    sub = recorder.start_sub("developer-01", "Mend it", priority="high")
    task = {"task_id": "task-001", "task_description": "Mend it"}
    said = recorder.message("architect-main", "developer-01", "task_assignment", {"task": task})
    recorder.sub_call(sub, "Write", {"file_path": "clock.py", "content": "tock"}, result="written")
    changes = {"files_created": ["clock.py"], "files_modified": [], "files_deleted": []}
    recorder.finish_sub(sub, {"changes": changes, "summary": "It is mended"}, tokens_used=7)
    done = {"task_id": "task-001", "status": "completed"}
    recorder.message("developer-01", "architect-main", "task_completion", done, reply_to=said)
    review = {"review_id": "review-001", "task_id": "task-001"}
    recorder.message("architect-main", "checker", "review_request", review)
    sub = recorder.start_sub("checker", "Look at it", task_id="review-001")
    flags = {"tests_passed": True, "type_check_passed": True}
    verdict = {**review, "verdict": "approved", "findings": [], "verification": flags, "summary": "It is good"}
    recorder.finish_sub(sub, verdict)
    recorder.message("checker", "architect-main", "review_result", {**review, "verdict": "approved"})
