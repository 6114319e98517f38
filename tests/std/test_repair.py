"""Repair: every kind of drift that real documents have becomes a valid document, and each change is told."""

from __future__ import annotations

import copy

import pytest

from harken.formats.std.checking.rules import RULES, validate_bytes
from harken.formats.std.document import dumps, loads
from harken.formats.std.repairing.repair import repair
from support.std_documents import multi, single
from support.std_drift import DRIFT, Json, annotated, played, put, repaired, with_call, without


@pytest.mark.parametrize("kind", DRIFT)
def test_a_document_with_drift_is_made_valid_and_told(kind: str) -> None:
    document, look, expected = DRIFT[kind]
    after, answer = repaired(copy.deepcopy(document))
    assert expected == look(after)
    assert answer.is_valid, answer.findings
    assert validate_bytes(answer.data).is_valid
    assert answer.changes
    assert answer.data == repair(answer.data).data


@pytest.mark.parametrize("document", [single(), multi(), annotated()])
def test_a_valid_document_gives_its_bytes_back(document: Json) -> None:
    for data in (dumps(document), dumps(document).replace(b"\n  ", b" "), b"\xef\xbb\xbf" + dumps(document)):
        answer = repair(data)
        assert (data, []) == (answer.data, answer.changes)


STEP = {"step_id": "s1", "step_name": "code_generation", "status": "success", "input": {"a": 1}, "output": "done"}


OLDER: dict[str, Json] = {
    "v1": {
        "session_id": "2026-03-04-001-old",
        "created_at": "2026-03-04T10:00:00Z",
        "updated_at": "2026-03-04T11:00:00Z",
        "steps": [STEP, {**STEP, "step_id": "s2", "status": "running"}],
    },
    "early v2": {
        "session_id": "2026-03-04-001-old",
        "title": "An early one",
        "status": "completed",
        "phases": [
            {"phase": "understanding", "context_references": [{"type": "file", "source": "a.md"}]},
            {"phase": "execution", "tool_calls": [{"tool": "Edit", "target": "a.py", "action": "x", "details": "y"}]},
        ],
        "artifacts": ["a.py"],
        "summary": "It was done.",
    },
    "v2": {
        **single(),
        "status": "completed",
        "phases": [
            {
                "phase_id": "p1", "phase_type": "explore", "status": "success", "input": {}, "output": {},
                "tool_call_ids": ["tool-001", "tool-002"], "context_used": ["a.md"], "decisions": [],
            },
        ],
    },
}  # fmt: skip


@pytest.mark.parametrize("generation", OLDER)
def test_older_generations_with_drift_are_made_valid_and_lose_nothing(generation: str) -> None:
    document = OLDER[generation]
    after, answer = repaired(document, "2026-03-04-001-old.json")
    assert answer.is_valid, answer.findings
    assert all(after[key] == document[key] for key in ("phases", "steps", "artifacts", "title") if key in document)
    assert answer.data == repair(answer.data, "2026-03-04-001-old.json").data


def test_phases_by_their_names_are_a_list_of_them() -> None:
    document = OLDER["v2"]
    document = {**document, "phases": {one["phase_id"]: one for one in document["phases"]}}
    after, answer = repaired(document, "2026-03-04-001-old.json")

    assert answer.is_valid, answer.findings
    assert OLDER["v2"]["phases"] == after["phases"]
    assert repaired(OLDER["v2"], "2026-03-04-001-old.json")[0]["phase_annotations"] == after["phase_annotations"]
    assert answer.data == repair(answer.data, "2026-03-04-001-old.json").data


def test_what_is_derived_is_told_from_what_is_only_spelled_in_another_way() -> None:
    document = put(put(annotated(annotated_at="-"), "done", "status"), "x", "summary")
    _, answer = repaired(document)
    derived = {change.path: change.derived for change in answer.changes}
    expected = {"status": False, "phase_annotations[0].annotated_at": True, "summary": True, "updated_at": True}
    assert expected == derived


def test_unknown_fields_stay_in_place() -> None:
    document = {"zeta": 1, **put(single(), "done", "status"), "team_mode": {"on": [1, {"deep": None}]}}
    document["tool_calls"][0] = {"weight": 2, **document["tool_calls"][0]}
    after, _ = repaired(document)
    assert [*document, "updated_at"] == list(after)
    assert document["team_mode"] == after["team_mode"]
    assert "weight" == next(iter(after["tool_calls"][0]))


def test_a_rule_is_said_to_be_mended_where_a_repair_mends_it() -> None:
    documents = [dumps(document) for document, *_ in DRIFT.values()]
    documents += [dumps(multi()).replace(b"Two hands", b'"Two" hands')]
    placeless = {"finding_id": "f-1", "severity": "minor", "category": "style", "description": "a bad name"}
    documents += [dumps(put(multi(), [placeless], "sub_sessions", 1, "output", "findings")), dumps([single()])]
    documents += [dumps(put(multi(), {}, "sub_sessions", 1, "output", "verification"))]
    documents += [dumps(put(multi(), 9, "messages", 0, "sequence_number"))]
    documents += [dumps(put(multi(), "gone", "messages", 1, "reply_to"))]
    documents += [dumps(put(multi(), "gone", "tool_calls", 1, "subagent_info", "sub_session_id"))]
    change = {"change_id": "c", "priority": "must_fix", "related_findings": ["gone"], "description": "mend it"}
    documents += [dumps(put(multi(), [change], "sub_sessions", 1, "output", "required_changes"))]
    mended = {one.rule for data in documents for one in repair(data).changes}
    assert {rule for rule, known in RULES.items() if known.mends != "no"} - NAMES == mended
    found = [one for data in documents for one in validate_bytes(data).findings]
    assert {one.repairable for one in found if one.level == "error"} == {True}


NAMES = {"file-name", "file-suffix", "session-id-form"}


def test_rules_about_names_are_mended_where_a_new_name_is_given() -> None:
    data = dumps(put(multi(), "my session", "session_id"))
    assert NAMES <= {one.rule for one in validate_bytes(data, "a.json").findings if one.repairable}
    name = "2026-03-04-001-two-hands-multi"
    answer = repair(data, "a.json", session_id=name)
    assert [] == validate_bytes(answer.data, f"{name}.json").findings


def test_a_start_that_is_missing_is_never_put_behind_the_end() -> None:
    document = single()
    first, second = document["tool_calls"]
    first["ended_at"], first["duration_ms"] = "2026-03-04T10:01:00Z", 55000  # the second call ran beside it
    del second["started_at"]
    for took, start in ((1000, "2026-03-04T10:00:20Z"), ("?", "2026-03-04T10:00:05Z")):
        second["duration_ms"] = took
        after, answer = repaired(document)
        assert start == after["tool_calls"][1]["started_at"]
        assert not [one for one in answer.findings if one.rule == "time-reversed"]


def test_the_earliest_time_of_a_document_may_be_the_end_of_a_call() -> None:
    document = without(without(single(), "created_at"), "tool_calls", 0, "started_at")
    document["tool_calls"][0]["duration_ms"] = None
    after, answer = repaired(document)
    assert "2026-03-04T10:00:06Z" == after["created_at"]
    assert answer.is_valid


def test_a_call_without_an_id_is_the_one_that_its_sub_session_names() -> None:
    document = put(multi(), "toolu_7", "sub_sessions", 0, "triggered_by_call_id")
    after, answer = repaired(without(document, "tool_calls", 1, "call_id"))
    assert "toolu_7" == after["tool_calls"][1]["call_id"]
    assert answer.is_valid


def test_a_type_of_agent_that_nobody_can_read_is_kept_beside_the_new_one() -> None:
    odd = ["developer", 5]
    after, _ = repaired(put(multi(), odd, "tool_calls", 1, "subagent_info", "subagent_type"))
    info = after["tool_calls"][1]["subagent_info"]
    assert ("developer", odd) == (info["subagent_type"], info["x_harken_old_subagent_type"])


def test_phases_whose_calls_get_their_ids_are_annotated_by_the_same_repair() -> None:
    document = single()
    for one in document["tool_calls"]:
        del one["call_id"]
        one["phase_id"] = "p-1"
    document["phases"] = [{"phase_id": "p-1", "phase_type": "explore", "decisions": ["look first"]}]
    after, answer = repaired(document)
    assert answer.is_valid
    assert ["p-1"] == [one["annotation_id"] for one in after["phase_annotations"]]
    assert [] == repair(answer.data).changes


def test_a_circle_of_parents_is_made_part_of_the_session() -> None:
    document = multi()
    document["sub_sessions"][0]["parent_session_id"] = "sub-002"
    document["sub_sessions"][1]["parent_session_id"] = "sub-001"
    after, answer = repaired(document)
    assert {document["session_id"]} == {one["parent_session_id"] for one in after["sub_sessions"]}
    assert answer.is_valid


def test_no_task_call_is_invented() -> None:
    after, _ = repaired(played())
    assert all("Task" != one["tool_name"] for one in after["tool_calls"])
    document = put(multi(), [], "tool_calls")
    after, answer = repaired(document)
    assert [] == after["tool_calls"]
    assert not answer.is_valid


def test_what_a_repeated_key_hid_is_kept() -> None:
    data = dumps(put(single(), "done", "status")).replace(b'"task_title":', b'"task_title": "Old", "task_title":', 1)
    answer = repair(data)
    assert [{"path": "task_title", "value": "Old"}] == loads(answer.data)["x_harken_hidden"]
    assert ["task_title"] == [change.path for change in answer.changes if change.rule == "duplicate-key"]


def test_what_a_repeated_key_hid_is_kept_beside_whatever_stands_there() -> None:
    document = put(put(single(), "done", "status"), 1.5, "x_harken_hidden")
    answer = repair(dumps(document).replace(b'"task_title":', b'"task_title": "Old", "task_title":', 1))
    assert [1.5, {"path": "task_title", "value": "Old"}] == loads(answer.data)["x_harken_hidden"]


def test_what_cannot_be_mended_stays_as_a_finding() -> None:
    document = put(
        without(
            single(),
            "task_title",
        ),
        "",
        "user_prompt",
    )
    document["status"] = "purple"
    after, answer = repaired(document)
    assert "purple" == after["status"]
    assert {"task_title", "status"} == {one.path for one in answer.findings if one.level == "error"}


def test_what_is_said_of_a_change_is_short_however_long_the_value_is() -> None:
    document = with_call(
        tool_name="x" * 5000, tool_category="y" * 5000, output={"status": "success", "result": "z" * 5000}
    )
    document["status"] = "done " * 3000
    _, answer = repaired(document)
    assert answer.changes
    assert 400 > max(len(change.message) for change in answer.changes)


def test_wrong_counts_are_warnings_and_stay() -> None:
    document = put(put(single(), 99, "summary", "tool_calls_count"), "done", "status")
    after, answer = repaired(document)
    assert 99 == after["summary"]["tool_calls_count"]
    assert answer.is_valid


def test_broken_json_is_mended_first() -> None:
    data = dumps(put(single(), "done", "status")).replace(b"an hour late", b'an "hour" late')
    answer = repair(data)
    assert answer.is_valid
    assert ["invalid-json", "unknown-value"] == [change.rule for change in answer.changes][:2]
    assert 'The clock is an "hour" late, mend it.' == loads(answer.data)["user_prompt"]


def test_a_mended_file_keeps_its_layout_where_nothing_else_is_wrong() -> None:
    data = dumps(single()).replace(b'"task_title"', b'// the title\n  "task_title"')
    assert dumps(single()) == repair(data).data.replace(b"  \n", b"")


def test_a_file_that_was_cut_off_stays_as_it_is() -> None:
    data = dumps(single())[:-40]
    answer = repair(data)
    assert (data, [], None) == (answer.data, answer.changes, answer.document)
    assert ["invalid-json"] == [one.rule for one in answer.findings]


def test_a_new_session_id_is_followed_by_whatever_names_it() -> None:
    answer = repair(dumps(multi()), session_id="2026-03-04-009-two-hands-multi")
    after = loads(answer.data)
    assert {"2026-03-04-009-two-hands-multi"} == {
        after["session_id"], *(sub["parent_session_id"] for sub in after["sub_sessions"]),
    }  # fmt: skip
    assert answer.is_valid and {"file-name"} == {change.rule for change in answer.changes}
    told = [change.path for change in answer.changes]
    assert ["session_id", *(f"sub_sessions[{place}].parent_session_id" for place in (0, 1))] == told


def test_a_session_id_that_is_replaced_is_kept_and_one_that_was_made_up_is_not() -> None:
    first = repair(dumps(single()), session_id="2026-03-04-009-session")
    again = repair(first.data, session_id="2026-03-04-010-session")
    assert single()["session_id"] == loads(again.data)["x_harken_old_session_id"]
    made_up = repair(dumps(without(single(), "session_id")), "clock.json", session_id="2026-03-04-009-session")
    assert "x_harken_old_session_id" not in loads(made_up.data)


def test_a_result_that_is_no_text_is_said_to_be_a_value() -> None:
    after, answer = repaired(with_call(output={"status": "success", "result": ["a", "b"]}))
    assert {"value": ["a", "b"]} == after["tool_calls"][0]["output"]["result"]
    assert "`result` was a list, is an object: the value is its `value`" == answer.changes[0].message


def test_what_was_read_from_an_older_generation_is_told_once() -> None:
    early = {
        "title": "Begin",
        "phases": [{"phase": "execute", "tool_calls": [{"tool": "Read"}]}],
        "status": "completed",
    }
    answer = repair(dumps(early))
    assert [
        "`task_title` was added: what `title` says, as the newest generation has it",
        "`tool_calls` was added: what `phases` says, as the newest generation has it",
        "`phase_annotations` was added: what `phases` says, as the newest generation has it",
    ] == [one.message for one in answer.changes if one.rule == "old-generation"]
    assert [] == repair(answer.data).changes


def test_no_time_is_filled_in_that_would_be_wrong() -> None:
    document = put(put(single(), "completed", "status"), "2026-03-04T09:00:00Z", "completed_at")
    after, answer = repaired(document)
    assert "updated_at" not in after
    assert ["completed_at"] == [one.path for one in answer.findings if one.level == "error"]


@pytest.mark.parametrize("ids", [["tool-001"], ["tool-001", "tool-002", "tool-004"]])
def test_calls_that_stand_whole_in_a_range_are_kept(ids: list[str]) -> None:
    calls = [{"call_id": name, "note": f"why {name}"} for name in ids]
    after, _ = repaired(annotated(tool_call_range=calls))
    assert calls == after["phase_annotations"][0]["x_harken_old_tool_call_range"]


def test_a_list_of_three_calls_with_a_hole_is_two_ranges() -> None:
    after, _ = repaired(annotated(tool_call_range=["tool-001", "tool-002", "tool-004"]))
    assert [("tool-001", "tool-002"), ("tool-004", "tool-004")] == [
        tuple(one["tool_call_range"].values()) for one in after["phase_annotations"]
    ]


def test_an_annotation_without_a_time_was_made_when_the_session_was_completed() -> None:
    document = annotated(annotated_at="-") | {"updated_at": "2026-03-05T10:00:00Z"}
    after, answer = repaired(document)
    assert document["completed_at"] == after["phase_annotations"][0]["annotated_at"]
    assert [True] == [one.derived for one in answer.changes if one.path == "phase_annotations[0].annotated_at"]


def test_a_document_with_task_calls_was_not_played_by_one_agent() -> None:
    document = {**multi(), "sub_sessions": [], "messages": []}
    for one in document["tool_calls"]:
        one.pop("subagent_info", None)
    answer = repair(dumps(document))
    assert "multi_agent" == loads(answer.data)["collaboration"]["mode"]
    assert ["no-sub-session"] == [one.rule for one in answer.findings if one.level == "error"]


def test_an_orchestrator_that_nobody_named_is_said_to_be_made_up() -> None:
    document = multi()
    document["collaboration"]["participants"].insert(0, document["collaboration"].pop("orchestrator"))
    after, answer = repaired(document)
    assert {"agent_id": "lead", "agent_type": "architect"} == after["collaboration"]["orchestrator"]
    assert [True] == [one.derived for one in answer.changes if one.path == "collaboration.orchestrator"]
