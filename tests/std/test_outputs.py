"""What sub-agents handed in: files that were changed, reviews, and nothing that nobody said."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from harken.formats.std.exporting.outputs import AgentOutputs
from harken.formats.std.exporting.spawning import session_tree
from harken.formats.std.exporting.telling import messages_of
from harken.formats.std.file_edits import FileEdit, edits_of
from harken.formats.std.models import output_model
from support.std_stories import Story

PATCH = """*** Begin Patch
*** Add File: new.py
+one
+two
*** Update File: old.py
@@
-a
+b
+c
 d
*** Update File: here.py
*** Move to: there.py
@@
-x
*** Delete File: gone.py
*** End Patch"""


def output(story: Story, agent: str = "ann") -> dict[str, Any]:
    tree = session_tree(story.events)
    found = AgentOutputs(tree, messages_of(tree).tasks).of(tree.agents[agent])
    msgspec.convert(found, output_model(found, tree.agents[agent].agent_type))
    return found


def worked(*calls: tuple[str, dict[str, Any]], kind: str = "developer", words: str = "It ticks.") -> Story:
    """An agent that makes calls and answers."""
    story = Story()
    made = story.spawn("ann", "Mend the clock.", kind=kind)
    for tool, params in calls:
        story.work("ann", tool, "fine", **params)
    story.answer("ann", words, made)
    return story


def test_an_agent_that_changed_nothing_hands_in_its_words() -> None:
    assert {
        "output_type": "generic",
        "task_id": "task-001",
        "status": "completed",
        "summary": "It ticks.",
        "data": {},
    } == output(worked(("Read", {"file_path": "clock.py"})))


def test_an_agent_that_changed_files_hands_them_in() -> None:
    story = worked(
        ("Write", {"file_path": "new.py", "content": "a\nb\n"}),
        ("Edit", {"file_path": "new.py", "old_string": "b", "new_string": "b\nc"}),
        ("Read", {"file_path": "old.py"}),
        ("Write", {"file_path": "old.py", "content": "x"}),
        ("Edit", {"file_path": "other.py", "old_string": "a\nb\nc", "new_string": "a\nB\nc"}),
    )

    assert {
        "task_id": "task-001",
        "status": "completed",
        "changes": {
            "files_created": [{"path": "new.py", "lines_added": 3, "lines_removed": 0}],
            "files_modified": [{"path": "old.py"}, {"path": "other.py", "lines_added": 1, "lines_removed": 1}],
            "files_deleted": [],
        },
        "summary": "It ticks.",
    } == output(story)


def test_a_patch_creates_modifies_moves_and_deletes() -> None:
    changes = output(worked(("apply_patch", {"input": PATCH})))["changes"]

    assert {
        "files_created": [{"path": "new.py", "lines_added": 2, "lines_removed": 0}, {"path": "there.py"}],
        "files_modified": [{"path": "old.py", "lines_added": 2, "lines_removed": 1}],
        "files_deleted": ["here.py", "gone.py"],
    } == changes


@pytest.mark.parametrize(
    ("tool", "params", "raw", "expected"),
    [
        ("shell", {"command": ["apply_patch", PATCH]}, "", 5),
        ("apply_patch", {}, PATCH, 5),
        ("apply_patch", {"changes": [{"path": "a", "kind": "add"}, {"path": "b", "kind": "delete"}]}, "", 2),
        ("mcp__files__write_file", {"path": "a", "content": "x"}, "", 1),
        ("Write", {"content": "x"}, "", 0),
        ("Edit", {"file_path": 7}, "", 0),
        ("Bash", {"command": "echo '*** Add File: a'"}, "", 0),
        ("apply_patch", {}, "*** Begin Patch", 0),
        ("apply_patch", {"changes": [{"path": "a", "kind": "other"}, 3]}, "", 0),
    ],
)
def test_edits_are_found_wherever_they_stand(tool: str, params: dict[str, Any], raw: str, expected: int) -> None:
    assert expected == len(edits_of(tool, params, raw))


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"old_string": "a", "new_string": "b", "replace_all": True}, (None, None)),
        ({"old_string": "a"}, (None, None)),
        ({"edits": [{"old_string": "a", "new_string": ""}, {"old_string": "b", "new_string": "b\nc"}]}, (1, 1)),
        ({"old_string": "same\nx\nsame", "new_string": "same\nsame"}, (0, 1)),
    ],
)
def test_lines_are_counted_where_the_call_says_them(params: dict[str, Any], expected: tuple[Any, Any]) -> None:
    (edit,) = edits_of("Edit", {"file_path": "a", **params})

    assert FileEdit(path="a", kind="modify", added=expected[0], removed=expected[1]) == edit


def test_what_failed_or_was_never_answered_changed_nothing() -> None:
    story = Story()
    made = story.spawn("ann", "Mend the clock.")
    story.work("ann", "Write", "no room", failed=True, file_path="a", content="x")
    story.call("ann", "lost", "Write", file_path="b", content="x")
    story.answer("ann", "It ticks.", made)

    assert "changes" not in output(story)


def test_what_was_made_and_removed_again_has_left_nothing() -> None:
    delete = "*** Begin Patch\n*** Delete File: a\n*** End Patch"
    changes = output(worked(("Write", {"file_path": "a", "content": "x"}), ("apply_patch", {"input": delete})))[
        "changes"
    ]

    assert {"files_created": [], "files_modified": [], "files_deleted": []} == changes


def test_a_file_that_another_agent_made_was_there_before() -> None:
    story = Story()
    story.work("main", "Write", "fine", file_path="a", content="x")
    made = story.spawn("ann", "Mend it.")
    story.work("ann", "Write", "fine", file_path="a", content="y")
    story.answer("ann", "It ticks.", made)

    assert [{"path": "a"}] == output(story)["changes"]["files_modified"]


def test_a_tool_that_says_it_wrote_over_a_file_is_believed() -> None:
    story = Story()
    made = story.spawn("ann", "Mend it.")
    story.work("ann", "Write", "The file a has been updated.", file_path="a", content="y")
    story.answer("ann", "It ticks.", made)

    assert [{"path": "a"}] == output(story)["changes"]["files_modified"]


def test_an_agent_that_failed_says_so() -> None:
    story = Story()
    made = story.spawn("ann", "Mend it.")
    story.work("ann", "Write", "fine", file_path="a", content="y")
    story.result("main", made, "API error", is_error=True)

    assert ("failed", "API error") == (output(story)["status"], output(story)["summary"])


CHECKS = [("Bash", {"command": "cd app && pytest -q"}), ("Bash", {"command": "mypy"})]


def test_a_reviewer_hands_in_its_verdict_and_what_it_checked() -> None:
    assert {
        "review_id": "task-001",
        "task_id": "task-001",
        "verdict": "approved",
        "findings": [],
        "verification": {"tests_passed": True, "type_check_passed": True},
        "summary": "Approved.",
    } == output(worked(*CHECKS, kind="reviewer", words="Approved."))


def test_a_reviewer_that_lists_findings_hands_them_in() -> None:
    finding = {"finding_id": "f1", "severity": "major", "category": "bug", "file": "a.py", "description": "off by one"}
    change = {"change_id": "c1", "priority": "must_fix", "related_findings": ["f1"], "description": "count anew"}
    reply = {
        "verdict": "changes_requested",
        "findings": [finding, {"finding_id": "f2"}, finding, {**finding, "finding_id": ""}],
        "required_changes": [
            change,
            {**change, "change_id": "c2", "related_findings": ["f9"]},
            {**change, "change_id": ""},
        ],
        "verification": {"tests_passed": False, "type_check_passed": True},
    }

    found = output(worked(kind="reviewer", words=f"Here it is.\n```json\n{json.dumps(reply)}\n```\nThat is all."))

    assert ("changes_requested", [finding], [change]) == (
        found["verdict"],
        found["findings"],
        found["required_changes"],
    )
    assert {"tests_passed": False, "type_check_passed": True} == found["verification"]


@pytest.mark.parametrize(
    ("words", "calls", "data"),
    [
        ("Looks good.", CHECKS, {"verification": {"tests_passed": True, "type_check_passed": True}}),
        ("Approved.", [], {"verdict": "approved"}),
        ("Approved.", CHECKS[:1], {"verdict": "approved", "verification": {"tests_passed": True}}),
        ("It is not approved.", [], {}),
    ],
)
def test_what_a_reviewer_does_not_say_is_not_made_up(words: str, calls: list[Any], data: dict[str, Any]) -> None:
    found = output(worked(*calls, kind="reviewer", words=words))

    assert ("generic", {"reviewed_task_id": "task-001", **data}) == (found["output_type"], found["data"])


@pytest.mark.parametrize(
    ("command", "output_text", "failed", "expected"),
    [
        ("pytest", "", False, {"tests_passed": True}),
        ("pytest", "", True, {"tests_passed": False}),
        ("npm test", "Exit code: 1\n", False, {"tests_passed": False}),
        ("uv run pytest -q", "Process exited with code 0", False, {"tests_passed": True}),
        ("CI=1 npx tsc --noEmit", "", False, {"type_check_passed": True}),
        ("make test && mypy", "", False, {"tests_passed": True, "type_check_passed": True}),
        ("make test && mypy", "", True, None),
        ("pytest | tail", "", False, None),
        ("pytest; true", "", False, None),
        ("cat pytest.ini", "", False, None),
    ],
)
def test_a_check_is_known_by_how_its_command_ended(
    command: str, output_text: str, failed: bool, expected: dict[str, bool] | None
) -> None:
    story = Story()
    made = story.spawn("ann", "Review it.", kind="reviewer")
    story.work("ann", "Bash", output_text, failed=failed, command=command)
    story.answer("ann", "Fine.", made)

    assert expected == output(story)["data"].get("verification")
