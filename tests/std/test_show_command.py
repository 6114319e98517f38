"""`harken std show`: a document at a look, whatever state it is in."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.api.std_show import StdShowRequest, std_show
from harken.cli.ui import columns
from harken.formats.std.document import dumps, parse_session
from harken.formats.std.drawing import drawing
from harken.formats.std.parts import own_calls
from support.command_line import Run
from support.std_documents import call, multi, single
from support.std_strategies import documents, older

Json = dict[str, Any]
HOSTILE = "\x1b]0;owned\x07\x1b[31m\u202etxt\r\nforged line \ud800"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Path) -> None:
    monkeypatch.chdir(tmp_path)
    Path("multi.json").write_text(json.dumps(multi()), "utf-8")


def shown(run: Run, data: Json, *options: str) -> str:
    Path("document.json").write_text(json.dumps(data), "utf-8")
    done = run("std", "show", "document.json", *options)
    assert 0 == done.code, done.err
    return done.out


def test_a_document_is_drawn_with_agents_tasks_and_messages(run: Run) -> None:
    expected = """\
Two hands
session     2026-03-04-002-two-hands-multi, std-008
status      success, 5m, master_worker, 5 calls
verdict     approved
model       claude-opus-4-5
asked       Have the clock mended, and have it checked.
time        2026-03-04T10:00:00Z to 2026-03-04T10:05:00Z

Agents
  lead     architect  success         2m  3 calls
    perception 1, interaction 2
  builder  developer  success         1m  1 call
    action 1
  checker  reviewer   success         1m  1 call
    perception 1

Tasks
  task-001    builder  success         1m  1 call
    the work of sub-001
    → The clock is right.
  review-001  checker  approved        1m  1 call  review
    the work of sub-002
    → It is.

Messages
  1  lead → builder  task_assignment task-001
  2  builder → lead  task_completion task-001  completed
  3  lead → checker  review_request task-001
  4  checker → lead  review_result task-001 approved
"""
    assert expected == run("std", "show", "multi.json").out


def test_a_document_of_one_agent_is_drawn(run: Run) -> None:
    info = {"subagent_type": "explorer", "tool_uses": 7}
    data = single()
    data["tool_calls"].append(
        call("tool-003", 60, "Task", "interaction", input={"params": {"prompt": "Look"}}, subagent_info=info)
    )

    out = shown(run, data)

    assert "  main  success       3.0s  3 calls\n    perception 1, action 1, interaction 1\n" in out
    assert "  tool-003  explorer  success       1.0s  7 calls\n    Look\n    → what tool-003 found\n" in out


def test_an_old_document_is_drawn(run: Run) -> None:
    steps = [{"step_id": "s1", "step_name": "code_generation", "status": "success", "input": {}, "duration_ms": 5}]
    out = shown(run, {"session_id": "old", "created_at": "2026-01-01T00:00:00Z", "steps": steps})

    assert "session     old, std-001 (v1)" in out
    assert "action 1" in out
    assert "\nPhases\n  execute" in out


def test_agents_without_ids_and_ranges_in_other_shapes_are_drawn(run: Run) -> None:
    listed = [{"agent_type": "developer"}, {"agent_type": "developer"}, "reviewer"]
    ranges = [["tool-001", "tool-002"], {"start": "tool-001", "end": "tool-002"}, ["tool-002"], "tool-001..tool-002"]
    data = {
        "started_at": "2026-03-04T09:59:00Z",
        **single(),
        "collaboration": {"mode": "multi_agent", "orchestrator": "lead", "participants": listed},
        "phase_annotations": [{"phase_type": "plan", "tool_call_range": one} for one in ranges],
    }
    del data["created_at"]

    answer = json.loads(shown(run, data, "--json"))

    assert ["lead", "developer-1", "developer-2", "reviewer"] == [agent["agent_id"] for agent in answer["agents"]]
    assert [("tool-001", "tool-002")] * 2 == [(one["first_call"], one["last_call"]) for one in answer["phases"][:2]]
    assert ["tool-002", "tool-001..tool-002"] == [one["last_call"] for one in answer["phases"][2:]]
    assert ("2026-03-04T09:59:00Z", []) == (answer["created_at"], answer["left_out"])


def test_json_says_the_same(run: Run) -> None:
    (answer,) = run("std", "show", "multi.json", "--json").json

    assert ("Two hands", "approved", 300000) == (answer["title"], answer["verdict"], answer["duration_ms"])
    assert ["lead", "builder", "checker"] == [agent["agent_id"] for agent in answer["agents"]]
    assert {"perception": 1, "interaction": 2} == answer["agents"][0]["categories"]
    assert [("builder", "lead", False), ("checker", "lead", True)] == [
        (task["agent_id"], task["given_by"], task["review"]) for task in answer["tasks"]
    ]


def test_one_agent_can_be_asked_for(run: Run) -> None:
    out = run("std", "show", "multi.json", "--agent", "checker").out

    assert "builder" not in out
    assert "  4  checker → lead" in out
    missing = run("std", "show", "multi.json", "--agent", "nobody")
    assert (3, True) == (missing.code, "there are lead, builder, checker" in missing.err)


@pytest.mark.parametrize("wide", [60, 80, 120])
def test_no_line_is_wider_than_the_window(run: Run, monkeypatch: pytest.MonkeyPatch, wide: int) -> None:
    data = multi()
    data["task_title"] = data["user_prompt"] = "鐘を直す " * 40
    data["collaboration"]["participants"][0]["agent_id"] = "a-very-long-name-of-an-agent-" * 4
    data["messages"][0]["payload"]["task"]["description"] = "word " * 100
    monkeypatch.setenv("COLUMNS", str(wide))

    assert [] == [line for line in shown(run, data).splitlines() if columns(line) > wide]


@pytest.mark.parametrize("wide", [60, 80, 120])
def test_only_words_are_cut_at_the_end_of_a_row(run: Run, monkeypatch: pytest.MonkeyPatch, wide: int) -> None:
    told = json.dumps(multi()).replace('"lead"', '"architect-of-it-all"').replace('"builder"', '"developer-of-clocks"')
    data = json.loads(told.replace("task-001", "task-2026-03-04-mend"))
    data["tool_calls"] += [
        call(f"more-{place}", 200 + place, "Bash", category)
        for place, category in enumerate(["action", "verification", "reasoning", "test", "other"])
    ]
    data["tool_calls"][0]["output"]["status"] = "failed"
    data["messages"][3]["payload"]["summary"] = "word " * 100
    monkeypatch.setenv("COLUMNS", str(wide))

    lines = shown(run, data).splitlines()

    assert [] == [line for line in lines if "…" in line and "word" not in line]
    assert any(line.endswith("8 calls (1 failed)") for line in lines)
    assert any(line.endswith("verification 1") for line in lines)
    assert any(line.endswith("1 call  review") for line in lines)
    assert any(line.endswith("task_assignment task-2026-03-04-mend") for line in lines)
    assert [] == [line for line in lines if columns(line) > wide or line != line.rstrip()]


def test_nothing_in_a_document_reaches_the_terminal_as_it_is(run: Run) -> None:
    def poisoned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: poisoned(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [poisoned(inner) for inner in value]
        return value + HOSTILE if isinstance(value, str) and value != "multi_agent" else value

    for data in (poisoned(multi()), poisoned(single())):
        out = shown(run, data)
        assert "owned" in out
        assert [] == [line for line in out.splitlines() if line.startswith("forged") or not line.isprintable()]


def test_what_cannot_be_drawn_is_told(run: Run) -> None:
    data = multi()
    data["messages"] = "none"
    data["sub_sessions"][0]["tool_calls"] = [1, None]
    data["collaboration"]["participants"].append(7)
    Path("document.json").write_text(json.dumps(data), "utf-8")

    done = run("std", "show", "document.json")

    assert 0 == done.code
    assert "not drawn: `messages` is no list\n" in done.err
    assert "not drawn: 2 of 2 entries of `sub_sessions[0].tool_calls` are no objects\n" in done.err
    assert "not drawn: 1 of 3 entries of `collaboration.participants` is no object\n" in done.err


def test_a_number_that_is_none_is_left_out(run: Run) -> None:
    data = multi()
    data["messages"][0]["sequence_number"] = True
    Path("document.json").write_text(json.dumps(data), "utf-8")

    assert None is json.loads(run("std", "show", "document.json", "--json").out)["messages"][0]["sequence_number"]


def test_agents_without_ids_are_called_by_their_types(run: Run) -> None:
    data = multi()
    data["collaboration"] = {"mode": "multi_agent", "participants": [{"agent_type": "product_owner"}]}
    data["sub_sessions"], data["messages"] = [], []

    out = shown(run, data)

    assert "  main " not in out
    assert "  product_owner  product_owner" in out


def test_a_file_that_is_no_json_is_shown_as_it_would_be_mended(run: Run) -> None:
    Path("broken.json").write_text(json.dumps(single()).replace("an hour late", 'an "hour" late'), "utf-8")

    done = run("std", "show", "broken.json")

    assert 0 == done.code
    assert 'asked       The clock is an "hour" late, mend it.' in done.out
    assert "broken.json is no JSON" in done.err


def test_what_is_shown_of_a_file_that_is_no_json_is_what_a_repair_writes(run: Run) -> None:
    data = multi() | {"status": "completed"}
    Path("broken.json").write_text(json.dumps(data)[:-1] + ",}", "utf-8")

    assert "status      success" in run("std", "show", "broken.json").out


def test_agents_that_are_named_by_their_ids_alone_are_shown(run: Run) -> None:
    data = multi()
    as_it_was = shown(run, data)
    for message in data["messages"]:
        message["from_agent"] = message["from_agent"]["agent_id"]
        message["to_agent"] = message["to_agent"]["agent_id"]
    for sub in data["sub_sessions"]:
        sub["agent"] = sub["agent"]["agent_id"]

    assert as_it_was == shown(run, data)


def test_a_document_whose_keys_are_spelled_in_another_way_is_shown(run: Run) -> None:
    data = multi()
    as_it_was = shown(run, data)
    data["sessionId"], data["taskTitle"] = data.pop("session_id"), data.pop("task_title")
    data["toolCalls"], data["subSessions"] = data.pop("tool_calls"), data.pop("sub_sessions")

    assert as_it_was == shown(run, data)


@pytest.mark.parametrize(
    ("file", "stdin", "code", "said"),
    [
        ("missing.json", b"", 3, "cannot read missing.json"),
        (".", b"", 2, "is a folder"),
        ("-", b'{"session_id": ', 5, "line 1, column"),
        ("-", b"[1]", 5, "a session document is a JSON object"),
        ("-", b'{"name": "x", "version": "1.0"}', 5, "this is no session document"),
        ("-", b'{"name": "x", "version": "1.0",}', 5, "this is no session document"),
    ],
)
def test_what_is_no_document_is_told_in_a_sentence(run: Run, file: str, stdin: bytes, code: int, said: str) -> None:
    done = run("std", "show", file, stdin=stdin)

    assert (code, "") == (done.code, done.out)
    assert said in done.err
    assert "hint: " in done.err


def _places(value: Any) -> list[tuple[Any, Any]]:
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in [(value, key), *_places(value[key])]]


ODD = st.sampled_from(
    [None, 0, -1, 1e300, 10**400, True, "", "x\ud800", [], {}, [[]], {"agent_id": 3}, ["x"], {"": {}}]
)


@given(st.sampled_from([multi(), single()]), st.lists(st.tuples(st.integers(0, 10**6), ODD), max_size=12))
def test_no_document_is_too_broken_to_be_drawn(data: Json, changes: list[tuple[int, Any]]) -> None:
    data = copy.deepcopy(data)
    for number, odd in changes:
        places = _places(data)
        value, key = places[number % len(places)]
        value[key] = copy.deepcopy(odd)

    drawn = std_show(None, StdShowRequest(body=dumps(data)))

    assert drawn.agents
    assert drawn.calls == sum(agent.calls for agent in drawn.agents)


@given(documents() | older())
def test_a_document_of_any_generation_is_drawn_whole(data: Json) -> None:
    document = parse_session(data)
    drawn = drawing(document)

    subs = document.data.get("sub_sessions", [])
    calls = [*own_calls(document.data), *(call for sub in subs for call in sub["tool_calls"])]
    assert len(calls) == drawn.calls == sum(sum(agent.categories.values()) for agent in drawn.agents)
    assert [sub["task"]["task_id"] for sub in subs] == [task.task_id for task in drawn.tasks if task.sub_session_id]
    assert len(document.data.get("messages", [])) == len(drawn.messages)


def test_a_phase_without_calls_is_told(run: Run) -> None:
    phases = [{"phase": "plan", "tool_calls": [{"tool": "Read"}]}, {"phase": "understand", "context_references": []}]
    Path("document.json").write_text(json.dumps({"title": "Early", "phases": phases}), "utf-8")

    assert "not drawn: 1 of 2 phases has no calls\n" in run("std", "show", "document.json").err


def test_a_recorded_document_is_drawn_while_it_grows(run: Run, tmp_path: Path) -> None:
    from harken.capture import MultiAgentRecorder

    about: Json = {"task_title": "Clock", "user_prompt": "Mend", "orchestrator": "lead"}
    recorder = MultiAgentRecorder("clock-multi.json", participants=["developer-01"], **about)
    recorder.start_sub("developer-01", "Mend it")
    recorder.close("in_progress")

    out = run("std", "show", "clock-multi.json").out

    assert "in_progress" in out
    assert parse_session(json.loads(Path("clock-multi.json").read_text())).kind == "std-008"


@pytest.mark.parametrize("key", ["from_agent", "to_agent"])
def test_whoever_a_message_does_not_name_is_no_agent(key: str) -> None:
    document = multi()
    del document["messages"][0][key]

    drawn = drawing(parse_session(document))

    assert ["lead", "builder", "checker"] == [agent.agent_id for agent in drawn.agents]
    assert "?" == getattr(drawn.messages[0], key)
