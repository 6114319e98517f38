"""A session written as a document of STD-008 and imported again says what it said: its agents, calls and conversation.

The recorded sessions of several agents are always there; `HARKEN_CORPUS` may name a folder with more.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import Repo, formats, runtimes
from harken.context import agents_below, session_events
from harken.events import Event, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.events.tally import Tally
from harken.formats.std.checking.rules import validate
from harken.formats.std.document import dumps, loads, write
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.exporting.spawning import session_tree
from harken.formats.std.importing.to_events import events_of
from harken.formats.std.repairing.repair import repair
from harken.runtimes.files import walk
from harken.runtimes.importer import Importer
from support.recordings import CORPUS, session_folders
from support.std_documents import BUILDER, PLANNER, Json, call, message, multi, single, sub_session, task_call
from support.std_exported import without_more
from support.std_sessions import Told

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem not in {"stage", "show"})
FOLDERS = [
    folder
    for runtime in ("claude-code", "codex")
    for found in session_folders(runtime)
    for folder in ([found] if CORPUS and CORPUS in found.parents else sorted(found.glob("*agents")))
]


def arguments(asked: ToolCall) -> Any:
    try:
        return json.loads(asked.input or b"{}")
    except ValueError:
        return asked.input.decode()


def said(events: Sequence[Event]) -> dict[str, Any]:
    """All that has to come back."""
    tree = session_tree(events)
    calls: dict[str, list[Any]] = {}
    conversation: dict[str, list[tuple[str, str]]] = {}
    for event in events:
        agent = event.agent_id or tree.main
        if isinstance(event, ToolCall):
            calls.setdefault(agent, []).append((event.id, event.name, arguments(event)))
        elif isinstance(event, ToolResult):
            calls.setdefault(agent, []).append((event.id, event.output, event.is_error))
        elif isinstance(event, Prompt | Response | Thinking):
            conversation.setdefault(agent, []).append((event.kind, event.content))
    tally = Tally.of(events)
    return {
        "agents": {agent.agent_id: (agent.name, agent.parent) for agent in tree.agents.values()},
        "calls": calls,
        "conversation": conversation,
        "messages": tally.messages,
        "tools": tally.tools,
        "tokens": tally.tokens,
    }


def exported(name: str, events: Sequence[Event]) -> bytes:
    """The document; nothing but records that are no conversation may be missing in it."""
    made = document_of(events, SessionFacts(session=name, runtime="any", title=name), "std-008")
    assert {loss.what for loss in made.losses} <= {"records that are no conversation"}, made.losses
    return write(made.document)


def imported(repo: Repo, path: Path) -> Any:
    (outcome,) = Importer(repo.store, [runtimes.get("std-001"), runtimes.get("std-008")]).run([path])
    assert outcome.error == "", outcome.error
    return repo.store.find_session(outcome.session)


def came_back(repo: Repo, path: Path, name: str, events: Sequence[Event]) -> None:
    """Export, import, and compare: all of it, and what each agent's own chain tells."""
    path.write_bytes(exported(name, events))
    row = imported(repo, path)
    again = session_events(repo.store, row)
    assert said(events) == said(again)
    for below in agents_below(repo.store, row):
        own = session_events(repo.store, below)
        whole = [event for event in again if event.agent_id == below.agent]
        # Which agent made it, a chain alone does not tell.
        assert [each for each in whole if each.kind != "agent_created"] == [
            each for each in own if each.kind != "agent_created"
        ]


@pytest.fixture(scope="module")
def recorded() -> Iterator[Repo]:
    with harken.open("memory:") as repo:
        importer = Importer(repo.store, [runtimes.get(name) for name in runtimes.names()])
        for folder in FOLDERS:
            for _ in importer.run(walk(folder)):
                pass
        yield repo


def test_every_recorded_session_of_several_agents_comes_back(recorded: Repo, repo: Repo, tmp_path: Path) -> None:
    rows = [row for row in recorded.store.sessions() if not row.parent and agents_below(recorded.store, row)]

    assert len(rows) >= 4
    for number, row in enumerate(rows):
        path = tmp_path / f"{number}-multi.json"
        came_back(repo, path, f"{number} {row.session}", session_events(recorded.store, row))


@pytest.mark.parametrize("name", NAMES)
def test_every_demonstration_comes_back(name: str, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    log = tmp_path / "session.jsonl"
    asyncio.run(importlib.import_module(name).play(log))

    came_back(repo, tmp_path / f"{name}-multi.json", name, formats.get("session-log-v2").read(log.read_bytes()))


def test_a_document_written_again_from_what_was_imported_tells_the_same(recorded: Repo) -> None:
    rows = [row for row in recorded.store.sessions() if not row.parent and agents_below(recorded.store, row)]
    first = events_of(exported("again", session_events(recorded.store, rows[0])))

    assert first == events_of(exported("again", first))


def test_what_reviewers_and_developers_of_a_document_handed_in_is_written_again(repo: Repo, tmp_path: Path) -> None:
    given = multi()
    path = tmp_path / f"{given['session_id']}.json"
    path.write_bytes(dumps(given))
    list(repo.import_sessions([path]))

    again = repo.document(given["session_id"]).document.data

    assert [sub["output"] for sub in given["sub_sessions"]] == [sub["output"] for sub in again["sub_sessions"]]
    assert "approved" == again["summary"]["final_verdict"]
    assert ["approved"] == [m["payload"]["verdict"] for m in again["messages"] if "verdict" in m["payload"]]


# -- documents that other programs wrote -------------------------------------------------------------------------------


def exported_again(given: Json) -> Json:
    """The document that is written of a document's events; it satisfies the standard."""
    facts = SessionFacts(title=given["task_title"], name=given["session_id"])
    made = document_of(events_of(dumps(given)), facts, "std-008").document
    assert [] == [one for one in validate(made, f"{given['session_id']}.json") if one.level == "error"]
    return made.data


FINDING: Json = {
    "finding_id": "f-1", "severity": "minor", "category": "bug", "file": "a.py", "description": "It is late.",
}  # fmt: skip


@pytest.mark.parametrize(
    ("place", "part"),
    [
        (0, {"changes": {"files_created": [3], "files_modified": [], "files_deleted": []}}),
        (0, {"changes": {"files_created": [{"path": None}], "files_modified": [], "files_deleted": []}}),
        (0, {"changes": {"files_created": [], "files_modified": [], "files_deleted": [{}]}}),
        (1, {"verdict": "unsure"}),
        (1, {"findings": [{**FINDING, "file": None}]}),
        (1, {"findings": [FINDING, FINDING]}),
        (1, {"required_changes": [
            {"change_id": "c", "priority": "must_fix", "related_findings": ["gone"], "description": "Set it."}
        ]}),
    ],
)  # fmt: skip
def test_an_output_that_is_not_as_the_standard_has_it_is_not_written_again(place: int, part: Json) -> None:
    given = multi()
    given["sub_sessions"][place]["output"] |= part
    handed_in = exported_again(given)["sub_sessions"][place]["output"]
    assert [] == [key for key, value in part.items() if value == handed_in.get(key)]


def agents_of(given: Json) -> list[Json]:
    return [given["collaboration"]["orchestrator"], *given["collaboration"]["participants"]]


def told_twice(given: Json) -> None:
    """What a document tells is what the one tells that is written of it."""
    again = exported_again(given)
    assert agents_of(given) == sorted(agents_of(again), key=agents_of(given).index)
    assert said(events_of(dumps(given))) == said(events_of(dumps(again)))


def generic(task: str, words: str) -> Json:
    return {"output_type": "generic", "task_id": task, "status": "completed", "summary": words}


def with_own_sub_session() -> Json:
    """The orchestrator has a sub-session, too."""
    given = multi()
    given["tool_calls"].append(task_call("tool-004", 200, "sub-003", "architect"))
    work = call("l-001", 210)
    given["sub_sessions"].append(
        sub_session("sub-003", PLANNER, "tool-004", "task-003", 200, work, generic("task-003", "Planned."))
    )
    return given


@pytest.mark.parametrize("left_out", ["", "output", "task"])
def test_a_sub_session_of_the_orchestrator_is_no_other_agent(left_out: str) -> None:
    given = with_own_sub_session()
    given["sub_sessions"][2].pop(left_out, None)

    told_twice(given)
    assert ["tool-001", "tool-002", "tool-003", "tool-004", "l-001"] == [
        one["call_id"] for one in exported_again(given)["tool_calls"]
    ]


def with_nested_call_listed_twice() -> Json:
    """The builder starts a helper, by a call that stands among the main calls as well, without a mark."""
    given, helper = multi(), {"agent_id": "helper", "agent_type": "helper"}
    given["collaboration"]["participants"].append(helper)
    nested = task_call("b-002", 45, "sub-003", "helper")
    given["sub_sessions"][0]["tool_calls"].append(nested)
    given["tool_calls"].insert(2, {**nested})
    output = generic("task-003", "Helped.")
    sub = sub_session("sub-003", helper, "b-002", "task-003", 46, call("h-001", 50), output)
    given["sub_sessions"].append({**sub, "parent_session_id": "sub-001"})
    return given


def test_a_nested_call_that_is_listed_twice_is_one_call_of_its_agent() -> None:
    given = with_nested_call_listed_twice()

    told_twice(given)
    again = exported_again(given)
    assert [("tool-001", None), ("tool-002", None), ("b-002", "builder"), ("tool-003", None)] == [
        (one["call_id"], one.get("x_harken_owner")) for one in again["tool_calls"]
    ]
    assert {"helper": "sub-001"} == {
        sub["agent"]["agent_id"]: sub["parent_session_id"]
        for sub in again["sub_sessions"]
        if sub["parent_session_id"] != given["session_id"]
    }


def test_a_nested_sub_session_whose_call_is_a_main_one_alone_stays_nested() -> None:
    given = multi()
    given["sub_sessions"][1]["parent_session_id"] = "sub-001"

    again = exported_again(given)

    told_twice(given)
    assert [given["session_id"], "sub-001"] == [sub["parent_session_id"] for sub in again["sub_sessions"]]
    assert [("tool-001", None), ("tool-002", None), ("tool-003", None)] == [
        (one["call_id"], one.get("x_harken_owner")) for one in again["tool_calls"]
    ]


def test_calls_that_happen_to_have_one_id_are_two() -> None:
    given = with_nested_call_listed_twice()
    given["tool_calls"][2] = call("b-002", 44)

    calls = said(events_of(dumps(given)))["calls"]

    assert ["Read"] == [name for one, name, *_ in calls["lead"] if one == "b-002" and name in ("Read", "Task")]
    assert ["Task"] == [name for one, name, *_ in calls["builder"] if one == "b-002" and name in ("Read", "Task")]


def with_many_kinds() -> Json:
    """A task that is acknowledged, asked about, broken off and done in part, in the document's own ids and times."""
    given, name = multi(), "clock-7"
    given["messages"] = [
        message(1, 30, PLANNER, BUILDER, "task_assignment", {"task": {"task_id": name}}),
        message(2, 31, BUILDER, PLANNER, "acknowledgment", {"task_id": name, "content": "I take it."}),
        message(3, 35, PLANNER, BUILDER, "status_query", {"task_id": name}),
        message(4, 36, BUILDER, PLANNER, "status_response", {"task_id": name, "content": "Half of it."}),
        message(5, 80, PLANNER, BUILDER, "abort", {"scope": "task", "target_id": name, "reason": "Enough."}),
        message(9, 85, BUILDER, PLANNER, "task_completion", {"task_id": name, "status": "partial", "summary": "Half."}),
    ]
    given["collaboration"]["pattern"] = "pipeline"
    given["collaboration"]["participants"][0]["instance_id"] = "second"
    sub = given["sub_sessions"][0]
    sub |= {"sub_session_id": "work-7", "completed_at": "2026-03-04T18:01:25+08:00", "status": "failed", "cost": 3}
    sub["task"] = {"task_id": name, "description": "the work", "priority": "high", "dependencies": ["none"]}
    sub["output"] |= {"task_id": name, "status": "partial"}
    given["tool_calls"][1]["subagent_info"] |= {"sub_session_id": "work-7", "subagent_type": "general"}
    given["sub_sessions"][1]["output"]["task_id"] = name
    return given


def without_calls(given: Json) -> list[Json]:
    return [{key: sub[key] for key in sub if not key.startswith(("tool_calls", "x_"))} for sub in given["sub_sessions"]]


def test_what_a_document_says_of_tasks_and_messages_is_said_again() -> None:
    given = with_many_kinds()

    again = exported_again(given)

    told_twice(given)
    assert given["messages"] == again["messages"]
    assert without_calls(given) == without_calls(again)
    assert given["collaboration"] == again["collaboration"]
    assert (given["created_at"], given["completed_at"]) == (again["created_at"], again["completed_at"])
    assert again["messages"] == exported_again(again)["messages"]
    assert without_calls(again) == without_calls(exported_again(again))
    assert [] == [path for path in again["x_harken"]["derived"] if path.startswith("messages")]


def test_messages_that_break_the_standard_are_told_as_the_session_has_them() -> None:
    given = with_many_kinds()
    given["messages"][5]["sequence_number"] = 1
    given["messages"].append("no message")

    again = exported_again(given)

    assert ["task_assignment", "task_completion"] == [
        one["message_type"]
        for one in again["messages"]
        if "clock-7" in (one.get("correlation_id"), one["payload"].get("task_id"))
        and one["message_type"] in ("task_assignment", "task_completion")
    ]
    assert without_calls(given) == without_calls(again)
    assert given["collaboration"] == again["collaboration"]


def test_two_sub_sessions_of_one_name_are_told_apart() -> None:
    given = multi()
    given["sub_sessions"][1]["sub_session_id"] = "sub-001"

    assert ["sub-001", "sub-002"] == [sub["sub_session_id"] for sub in exported_again(given)["sub_sessions"]]


def test_a_session_ended_when_its_document_says_so() -> None:
    given = single() | {"completed_at": "2026-03-04T10:00:20Z"}

    assert "2026-03-04T10:00:20.000000Z" == exported_again(given)["completed_at"]


@pytest.mark.parametrize(("word", "last", "expected"), [
    ("partial_success", "success", "failed"),
    ("部分完成", "success", "failed"),
    ("merged", "success", "success"),
    ("merged", "failed", "failed"),
])  # fmt: skip
@pytest.mark.parametrize("make", [single, multi])
def test_a_session_that_is_over_is_not_written_as_one_that_goes_on(
    make: Any, word: str, last: str, expected: str
) -> None:
    given = make() | {"status": word}
    given["tool_calls"][-1]["output"] = {"status": last, "error": "no" if last == "failed" else ""}
    given.get("messages", []).append(message(9, 290, BUILDER, PLANNER, "feedback", {"content": "Good night."}))

    assert expected == exported_again(given)["status"]


def test_a_status_without_an_end_is_said_again() -> None:
    given = multi()
    del given["completed_at"]

    assert "success" == exported_again(given)["status"]


def test_an_agent_of_which_only_its_call_and_answer_are_kept_is_told_again() -> None:
    told = Told()
    told.ask("Look around.")
    told.result(told.call("Task", '{"prompt": "Look."}'), "All quiet.")
    told.agent("looker", cause=told.call("Task", '{"prompt": "Look again."}').message_id, role="child")
    told.say("Looked.", agent="looker")
    told.say("Done.")
    facts = SessionFacts(title="Looks", name="2026-03-04-001-looks-multi")
    first = document_of(told.events, facts, "std-008").document.data

    again = exported_again(first)

    assert ["c2", "looker"] == [sub["agent"]["agent_id"] for sub in first["sub_sessions"]]
    assert without_calls(first) == without_calls(again)
    assert ["task_completion"] == [
        one["message_type"] for one in again["messages"] if one["from_agent"]["agent_id"] == "c2"
    ]
    assert first["messages"] == again["messages"]


def test_a_task_call_without_a_sub_session_makes_no_agent() -> None:
    given = multi()
    given["tool_calls"].append(task_call("tool-004", 200, "", "architect"))
    del given["tool_calls"][3]["subagent_info"]

    told_twice(given)


@pytest.mark.parametrize("status", ["failed", "success"])
@pytest.mark.parametrize("result", [{"display": "2 failed", "exit_code": 1}, {"display": "2 failed"}, {"tests": ["a"]}])
def test_the_error_of_a_call_and_its_result_stay_two(result: Json, status: str) -> None:
    given = multi()
    given["tool_calls"][0]["output"] = {"status": status, "error": "exit code 1", "result": result}

    again = exported_again(given)

    told_twice(given)
    assert given["tool_calls"][0]["output"] == again["tool_calls"][0]["output"]


UNRECORDED: Json = {
    "subagent_type": "Explore",
    "tool_uses": 9,
    "tokens_used": 15000,
    "tools_breakdown": [{"tool_name": "Read", "count": 9}],
}


def with_unrecorded(given: Json) -> Json:
    """A document with an agent of which its call alone tells, as the standard has it for a single `Task` call."""
    asked = {"params": {"subagent_type": "Explore", "prompt": "Look around."}}
    made = call("tool-009", 100, "Task", "interaction", input=asked, subagent_info=dict(UNRECORDED))
    given["tool_calls"].append(made)
    return given


def unrecorded_in(given: Json) -> Json:
    return next(one for one in given["tool_calls"] if one["call_id"] == "tool-009")


def as_migrated(given: Json) -> Json:
    who = {"agent_id": "main", "agent_type": "architect"}
    how = {"mode": "single", "pattern": "master_worker", "orchestrator": who, "participants": []}
    return {**given, "collaboration": how, "sub_sessions": [], "messages": []}


@pytest.mark.parametrize("kind", ["std-001", "std-008", None])
@pytest.mark.parametrize("make", [single, multi, lambda: as_migrated(single())])
def test_what_a_document_says_of_an_agent_without_a_record_is_said_again(make: Any, kind: Any) -> None:
    given, facts = with_unrecorded(make()), SessionFacts(title="Looks", name="2026-03-04-001-looks")
    for _ in range(2):
        made = document_of(events_of(dumps(given)), facts, kind)
        given = made.document.data

        info = unrecorded_in(given)["subagent_info"]
        assert UNRECORDED == {key: value for key, value in info.items() if key != "sub_session_id"}
        assert [] == [path for path in made.derived if "subagent_info" in path]
        assert [] == [one for one in validate(made.document) if one.level == "error"]


def test_calls_of_an_agent_that_are_recorded_are_counted_whatever_a_document_says() -> None:
    given = multi()
    given["tool_calls"][1]["subagent_info"] |= {**UNRECORDED, "subagent_type": "developer"}

    info = exported_again(given)["tool_calls"][1]["subagent_info"]

    assert (1, 15000, None) == (info["tool_uses"], info["tokens_used"], info.get("tools_breakdown"))


def test_what_is_not_enough_to_tell_of_an_agent_is_set_aside() -> None:
    given = with_unrecorded(multi())
    del given["tool_calls"][-1]["subagent_info"]["tool_uses"]

    made = unrecorded_in(exported_again(given))

    assert (False, 15000) == ("subagent_info" in made, made["x_harken_old_subagent_info"]["tokens_used"])


def with_fields(given: Json) -> Json:
    """A document with fields that no event tells, at every level."""
    first = given["tool_calls"][0]
    first["input"] |= {"description": "Look at it", "raw_command": "cat clock.py"}
    first["output"] |= {"result": {"display": "HOUR = 1", "lines": 1}, "truncated": False}
    first |= {"context_contribution": {"type": "file_content", "summary": "one line"}, "mood": "good"}
    ids = {"start_call_id": first["call_id"], "end_call_id": first["call_id"]}
    remark = {"annotation_id": "a1", "phase_type": "explore", "tool_call_range": ids, "annotated_by": "agent"}
    remark |= {"annotated_at": given["created_at"], "confidence": "high", "description": "a look around"}
    given["agent"] |= {"capability_snapshot": "2026-03-01"}
    given["summary"] |= {"outcome": "it is right"}
    more = {"task_description": "The clock", "updated_at": given["completed_at"], "reflection": {"good": ["all"]}}
    return {**given, **more, "phase_annotations": [remark]}


@pytest.mark.parametrize("make", [single, multi])
def test_fields_that_no_event_tells_are_written_again_in_their_places(make: Any) -> None:
    given = with_fields(make())
    found = exported_again(given)

    keys = ("task_description", "updated_at", "reflection", "phase_annotations", "agent")
    assert {key: given[key] for key in keys} == {key: found.get(key) for key in keys}
    assert "it is right" == found["summary"]["outcome"]
    kept = ("input", "output", "context_contribution", "mood")
    assert {key: given["tool_calls"][0][key] for key in kept} == {key: found["tool_calls"][0].get(key) for key in kept}
    assert [] == document_of(events_of(dumps(given)), SessionFacts()).losses


def test_fields_that_break_the_standard_are_written_as_a_repair_writes_them() -> None:
    given = with_fields(single())
    given["phase_annotations"][0]["tool_call_range"] = ["tool-001"]
    del given["phase_annotations"][0]["annotated_at"]
    given["tool_calls"][1]["context_contribution"] = "words"
    found, expected = exported_again(given), loads(repair(dumps(given)).data)

    assert expected["phase_annotations"] == without_more(found["phase_annotations"])
    for key in ("context_contribution", "x_harken_old_context_contribution"):
        assert expected["tool_calls"][1][key] == found["tool_calls"][1][key]
    assert "phase_annotations[0].annotated_at" in found["x_harken"]["derived"]
    assert found == exported_again(found) | {"x_harken": found["x_harken"]}


def test_fields_that_break_the_standard_and_no_repair_mends_are_set_aside_and_the_rest_stands() -> None:
    given = with_fields(single())
    given["phase_annotations"][0]["tool_call_range"] = 7
    given["tool_calls"][1]["context_contribution"] = {"type": "file_content", "summary": [{"b": 1}]}
    given["summary"] = "It is right."
    found = exported_again(given)

    assert "phase_annotations" not in found
    assert given["phase_annotations"] == found["x_harken_old_phase_annotations"]
    assert {"context_contribution": given["tool_calls"][1]["context_contribution"]} == (
        found["tool_calls"][1]["x_harken_old_call"]
    )
    assert ("The clock", "It is right.") == (found["task_description"], found["x_harken_old_summary"])
    assert found == exported_again(found) | {"x_harken": found["x_harken"]}


def test_secrets_in_messages_of_a_document_are_masked(repo: Repo, tmp_path: Path) -> None:
    given, secret = multi(), "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    given["messages"][1]["payload"]["notes"] = given["reflection"] = secret
    path = tmp_path / f"{given['session_id']}.json"
    path.write_bytes(dumps(given))
    list(repo.import_sessions([path]))

    masked, revealed = (repo.document(given["session_id"], reveal=reveal).document.data for reveal in (False, True))

    assert secret == revealed["messages"][1]["payload"]["notes"] == revealed["reflection"]
    assert secret not in json.dumps(masked)
    assert "task_completion" == masked["messages"][1]["message_type"]


def test_a_secret_with_colour_in_it_is_masked_and_the_rest_of_the_document_stands(repo: Repo, tmp_path: Path) -> None:
    given = multi()
    given["messages"][1]["payload"]["notes"] = "\x1b[1mghp_\x1b[0m" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    given["reflection"] = given["messages"][1]["payload"]["notes"]
    path = tmp_path / f"{given['session_id']}.json"
    path.write_bytes(dumps(given))
    list(repo.import_sessions([path]))

    found = repo.document(given["session_id"]).document.data

    masked = "[masked: github-token]"
    assert (masked, masked) == (found["reflection"], found["messages"][1]["payload"]["notes"])
    assert ["msg-001", "msg-002", "msg-003", "msg-004"] == [one["message_id"] for one in found["messages"]]


@pytest.mark.parametrize("times", [{}, {"completed_at": "2026-03-04T10:02:00Z"}])
def test_a_session_that_goes_on_behind_a_summary_in_words_goes_on_when_it_is_written_again(times: Json) -> None:
    given = single() | {"status": "in_progress", "summary": "Half of it is done."}
    given.pop("completed_at")

    assert "in_progress" == exported_again(given | times)["status"]


def test_of_calls_with_one_id_each_has_its_own_result_again() -> None:
    given = single()
    first = call("tool-001", 5) | {"ended_at": "2026-03-04T10:00:50Z", "duration_ms": 45000}
    given["tool_calls"] = [first, call("tool-001", 10, output={"status": "failed", "error": "no such file"})]

    found = exported_again(given)["tool_calls"]

    assert ["success", "failed"] == [one["output"]["status"] for one in found]
    assert [45000, 1000] == [one["duration_ms"] for one in found]


@pytest.mark.parametrize("second", [50, 100])
def test_two_sub_sessions_of_one_agent_are_two_tasks_also_where_they_overlap(second: int) -> None:
    given = multi() | {"messages": []}
    given["tool_calls"].insert(2, task_call("tool-010", second, "sub-010", "developer"))
    work = call("b-010", second + 10)
    given["sub_sessions"].append(
        sub_session("sub-010", BUILDER, "tool-010", "task-010", second, work, generic("task-010", "That too."))
    )

    told_twice(given)
    again = exported_again(given)
    expected = {"task_assignment": ["task-001", "task-010"], "task_completion": ["task-001", "task-010"]}
    assert expected == {
        kind: [one["correlation_id"] for one in again["messages"] if one["message_type"] == kind] for kind in expected
    }
    assert again["messages"] == exported_again(again)["messages"]


def test_what_agents_of_a_document_say_is_not_what_a_person_asked_for() -> None:
    given = multi()
    del given["user_prompt"]
    said = {"feedback_type": "guidance", "content": "I am on it."}
    given["messages"].insert(1, message(2, 31, given["sub_sessions"][0]["agent"], PLANNER, "feedback", said))
    for number, one in enumerate(given["messages"], 1):
        one |= {"message_id": f"msg-{number:03}", "sequence_number": number}

    facts = SessionFacts(session="s", title="Two hands", name=given["session_id"])

    assert "user_prompt" not in document_of(events_of(dumps(given)), facts).document.data
