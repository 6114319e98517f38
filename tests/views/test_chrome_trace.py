"""A trace for Perfetto: a thread per agent, a slice per call, thought and answer, instants for the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import harken
from harken.events import AgentCreated, Error, Event, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.views.chrome_trace import ChromeTrace
from support.contexts import keep, turn

RECORDED = Path(__file__).parents[1] / "recorded"
START = 1_794_738_000_000_000
SECOND = 1_000_000


def told(events: list[Event]) -> list[dict[str, Any]]:
    trace = ChromeTrace(lambda: "a session")
    return [one for event in events for one in trace.add(event)] + list(trace.end())


def at(second: int, event: Event) -> Event:
    found: Event = event.replace(message_id=f"m{second}", time=START + second * SECOND)
    return found


def call(second: int, name: str = "c", tool: str = "Bash", agent: str = "") -> Event:
    return at(second, ToolCall(id=name, name=tool, input=b'{"command": "make"}', agent_id=agent))


def test_a_call_is_a_slice_until_its_result() -> None:
    found = told([call(1), at(4, ToolResult(id="c", output="done", is_error=True))])

    (slice_,) = [one for one in found if one["ph"] == "X"]
    assert ("Bash", START + SECOND, 3 * SECOND) == (slice_["name"], slice_["ts"], slice_["dur"])
    assert ("Bash: make", "m1", True) == (slice_["args"]["what"], slice_["args"]["record"], slice_["args"]["failed"])


def test_an_answer_begins_when_the_model_was_asked() -> None:
    events = [at(1, Prompt(content="hi")), at(3, Thinking(content="hm")), at(7, Response(content="hello"))]

    found = [(one["name"], one["ts"] - START, one["dur"]) for one in told(events) if one["ph"] == "X"]

    assert [("thinking", SECOND, 2 * SECOND), ("answer", 3 * SECOND, 4 * SECOND)] == found


def test_prompts_failures_and_compactions_are_instants() -> None:
    events = [
        at(1, Prompt(content="hi")),
        at(2, Prompt(content="a notice", source="injected")),
        at(3, Error(message="no")),
        at(4, System(subtype="compact_boundary")),
    ]

    found = [one["name"] for one in told(events) if one["ph"] == "i"]

    assert ["prompt", "injected", "failure", "compaction"] == found


def test_every_agent_is_a_thread_with_its_name_and_an_arrow_leads_to_it() -> None:
    made = AgentCreated(agent_id="a1", name="Jill", cause="m1")
    later = AgentCreated(agent_id="a2", name="Jack", cause="m1")
    events = [call(1, tool="Task"), at(2, made), at(3, Response(content="yes", agent_id="a1"))]
    events += [at(4, ToolResult(id="c", output="it works")), at(5, later)]

    found = told(events)

    names = {one["tid"]: one["args"]["name"] for one in found if one["name"] == "thread_name"}
    assert {1: "agent", 2: "Jill", 3: "Jack"} == names
    assert [("s", 1), ("f", 2), ("s", 1), ("f", 3)] == [(one["ph"], one["tid"]) for one in found if one["ph"] in "sf"]


def test_a_call_without_a_result_ends_with_the_trace() -> None:
    (slice_,) = [one for one in told([call(1), at(9, Prompt(content="hi"))]) if one["ph"] == "X"]

    assert (8 * SECOND, True) == (slice_["dur"], slice_["args"]["unanswered"])


def test_no_slice_of_a_thread_crosses_another() -> None:
    made = AgentCreated(agent_id="", name="Jill")
    results = [at(second, ToolResult(id=name)) for second, name in [(4, "a"), (5, "c"), (7, "b")]]
    events = [call(1, "a"), call(2, "b"), call(3, "c"), *results, at(8, made), at(9, Response(content="done"))]

    found = told(events)

    slices = {one["args"].get("call", "answer"): one for one in found if one["ph"] == "X"}
    assert {"a": 1, "b": 2, "c": 2, "answer": 1} == {name: one["tid"] for name, one in slices.items()}
    assert [3, 5, 2, 1] == [slices[name]["dur"] // SECOND for name in ("a", "b", "c", "answer")]
    names = {one["tid"]: one["args"]["name"] for one in found if one["name"] == "thread_name"}
    order = {one["tid"]: one["args"]["sort_index"] for one in found if one["name"] == "thread_sort_index"}
    assert ({1: "Jill", 2: "Jill (2)"}, {1: 1, 2: 1}) == (names, order)


def test_what_has_no_time_is_no_part_of_it() -> None:
    assert [] == told([Prompt(message_id="1", content="hi")])


def test_an_export_is_one_array_of_json() -> None:
    with harken.open("memory:") as repo:
        keep(repo, turn(0, time=START), session_id="talk", template="claude-code")
        keep(repo, [Prompt(message_id="1", content="hi")], session_id="timeless", template="claude-code")
        data, nothing = (b"".join(repo.export(one, to="trace").pieces()) for one in ("talk", "timeless"))  # type: ignore[arg-type]

    assert {"M", "i", "X"} == {one["ph"] for one in json.loads(data)}
    assert all(one["dur"] >= 0 for one in json.loads(data) if one["ph"] == "X")
    assert [] == json.loads(nothing)


def test_every_agent_that_another_made_in_a_real_session_has_an_arrow(tmp_path: Path) -> None:
    recorded = RECORDED / "claude-code-2.1.325" / "parallel-agents"
    with harken.open(tmp_path / "store.db") as repo:
        assert list(repo.import_sessions([recorded]))
        (session,) = [row.session for row in repo.sessions() if not row.parent]
        found = json.loads(b"".join(repo.export(session, to="trace").pieces()))  # type: ignore[arg-type]

    threads = {one["tid"] for one in found if one["name"] == "thread_name" and "(" not in one["args"]["name"]}
    assert threads - {1} == {one["tid"] for one in found if one["ph"] == "f"}


def test_the_thread_of_a_sub_agent_without_a_name_is_called_as_the_call_that_made_it_says() -> None:
    errand = ToolCall(id="c", name="Task", input=b'{"description": "Review the speed", "prompt": "Look."}')
    made = AgentCreated(agent_id="a1", name="a1", parent="main", cause="m1")

    found = told([at(1, errand), at(2, made.replace(cause="m1")), at(3, Prompt(agent_id="a1", content="Look."))])

    assert "Review the speed" == [one["args"]["name"] for one in found if one["name"] == "thread_name"][-1]


def test_the_thread_of_a_sub_agent_of_which_nobody_knows_the_call_is_called_by_its_first_words() -> None:
    made = AgentCreated(agent_id="a1", name="a1", parent="main")

    found = told([at(1, made), at(2, Prompt(agent_id="a1", content="Look for slow\ncode."))])

    assert "Look for slow code." == [one["args"]["name"] for one in found if one["name"] == "thread_name"][-1]
