"""Who took part in a session and who led it, where a document says so in other places or words than the standard."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harken.events import AgentCreated, ToolCall
from harken.formats.std.importing.to_events import events_of
from harken.formats.std.repairing.repair import Repaired, repair
from support.std_documents import BUILDER, CHECKER, PLANNER, multi, single

Json = dict[str, Any]


def repaired(document: Json) -> tuple[Json, Repaired]:
    """The collaboration after a repair that leaves no error, and that a second one leaves as it is."""
    answer = repair(json.dumps(document, ensure_ascii=False).encode())
    assert answer.is_valid, answer.findings
    assert answer.data == repair(answer.data).data
    return json.loads(answer.data)["collaboration"], answer


def agents_in(data: bytes) -> set[tuple[str, str]]:
    """The agents that an import makes, each with who made it, and those who called something."""
    events = events_of(data)
    made = {(event.agent_id, event.parent or "") for event in events if isinstance(event, AgentCreated)}
    return made | {(event.agent_id, "calls") for event in events if isinstance(event, ToolCall)}


def lacking(*names: str) -> tuple[Json, Json]:
    """A document whose collaboration lacks fields, and these."""
    document = multi()
    return document, {name: document["collaboration"].pop(name) for name in names}


class TestFieldsOfTheCollaboration:
    def test_those_at_the_top_of_the_document_are_its(self) -> None:
        document = multi()
        document |= document.pop("collaboration")
        document["pattern"] = "pipeline"
        document["participants"].append({"agent_id": "watcher", "agent_type": "challenger"})

        team, answer = repaired(document)

        assert ("multi_agent", "pipeline", PLANNER) == (team["mode"], team["pattern"], team["orchestrator"])
        assert ["builder", "checker", "watcher"] == [one["agent_id"] for one in team["participants"]]
        assert not json.loads(answer.data).keys() & {"mode", "pattern", "orchestrator", "participants"}
        assert 4 == sum("at the top of the document" in change.message for change in answer.changes)
        assert agents_in(json.dumps(document).encode()) == agents_in(answer.data)

    @pytest.mark.parametrize("name", ["agents", "members", "teamMembers"])
    def test_participants_stand_under_another_name(self, name: str) -> None:
        document, taken = lacking("participants")
        document["collaboration"][name] = [*taken["participants"], {"agent_id": "watcher", "agent_type": "challenger"}]

        team, answer = repaired(document)

        assert ["builder", "checker", "watcher"] == [one["agent_id"] for one in team["participants"]]
        assert name not in team
        assert ("watcher", "lead") in agents_in(json.dumps(document).encode())
        assert agents_in(json.dumps(document).encode()) == agents_in(answer.data)

    def test_participants_stand_by_their_types(self) -> None:
        document, _ = lacking("participants")
        document["collaboration"]["agents"] = {"developers": ["builder"], "reviewer": {"agent_id": "checker"}}

        team, _ = repaired(document)

        assert [BUILDER, CHECKER] == team["participants"]

    def test_agents_with_a_number_of_calls_are_no_sub_sessions(self) -> None:
        document, taken = lacking("participants")
        document["agents"] = [one | {"tool_calls": 1} for one in taken["participants"]]

        team, _ = repaired(document)

        assert ["builder", "checker"] == [one["agent_id"] for one in team["participants"]]

    def test_a_pattern_that_stands_as_mode_is_the_pattern(self) -> None:
        document, _ = lacking("pattern")
        document["collaboration"]["mode"] = "pipeline"

        team, _ = repaired(document)

        assert ("multi_agent", "pipeline") == (team["mode"], team["pattern"])

    def test_a_mode_of_a_session_of_one_agent_is_about_something_else(self) -> None:
        document = single() | {"mode": "auto", "agents": ["main"], "status": "completed"}

        answer = repair(json.dumps(document).encode())

        assert {"mode": "auto", "agents": ["main"]}.items() <= json.loads(answer.data).items()
        assert "collaboration" not in json.loads(answer.data)


FIRST = {"agent_id": "watcher", "agent_type": "challenger"}
"""The first participant, whom nobody calls the leader."""
SAYING: list[Json] = [
    {"role_category": "orchestrator"},
    {"role": "orchestrator"},
    {"role": "Team Lead"},
    {"role": "协调者"},
    {"is_orchestrator": True},
    {"isLead": True},
    {"agent_type": "orchestrator"},
]


class TestWhoLeads:
    @pytest.mark.parametrize("said", SAYING, ids=str)
    def test_a_participant_that_says_so_does(self, said: Json) -> None:
        document, _ = lacking("orchestrator")
        document["messages"] = []
        document["collaboration"]["participants"] = [FIRST, BUILDER, {**PLANNER, **said}, CHECKER]

        team, answer = repaired(document)

        assert "lead" == team["orchestrator"]["agent_id"]
        key = next(iter(said))
        assert any('"lead": `' in change.message and key[:4] in change.message for change in answer.changes)
        assert ("lead", "") in agents_in(json.dumps(document).encode())

    @pytest.mark.parametrize("name", ["lead", "leader", "orchestrator_id", "orchestratorId", "coordinator"])
    @pytest.mark.parametrize("said", ["lead", PLANNER])
    def test_the_collaboration_names_the_one_under_another_name(self, name: str, said: Any) -> None:
        document, _ = lacking("orchestrator")
        document["messages"] = []
        document["collaboration"] |= {"participants": [FIRST, BUILDER, CHECKER, PLANNER], name: said}

        team, answer = repaired(document)

        assert PLANNER == team["orchestrator"]
        assert any(f"it stood under `{name}`" in change.message for change in answer.changes)
        assert ("lead", "") in agents_in(json.dumps(document).encode())

    def test_the_agent_that_the_document_is_of_does(self) -> None:
        document, _ = lacking("orchestrator")
        document["messages"] = []
        document["collaboration"]["participants"] = [FIRST, BUILDER, CHECKER, PLANNER]
        document["agent"] = {"model_id": "claude-opus-4-5", "agent_id": "lead"}

        assert PLANNER == repaired(document)[0]["orchestrator"]

    @pytest.mark.parametrize("is_row", [False, True])
    def test_the_only_architect_who_has_no_sub_session_does_where_no_message_tells(self, is_row: bool) -> None:
        document, _ = lacking("orchestrator")
        document["messages"] = []
        if is_row:
            rows = document["summary"]["agents"]
            document["summary"]["agents"] = [rows["architect"], *rows["developers"], rows["reviewer"]]

        assert [BUILDER, CHECKER] == document["collaboration"]["participants"]
        assert PLANNER == repaired(document)[0]["orchestrator"]
        assert ("lead", "") in agents_in(json.dumps(document).encode())

    def test_who_was_given_no_work_and_is_no_architect_leads_nobody(self) -> None:
        document, _ = lacking("orchestrator")
        document["messages"] = []
        del document["summary"]["agents"]
        document["collaboration"]["participants"] = [BUILDER, CHECKER, FIRST]

        assert BUILDER == repaired(document)[0]["orchestrator"]

    def test_of_two_that_say_so_it_is_the_one_that_was_given_no_work(self) -> None:
        document, _ = lacking("orchestrator")
        document["messages"] = []
        both = [{**one, "role": "lead"} for one in (BUILDER, PLANNER)]
        document["collaboration"]["participants"] = [FIRST, *both, CHECKER]

        assert "lead" == repaired(document)[0]["orchestrator"]["agent_id"]

    def test_where_two_say_so_nobody_is_taken_at_their_word(self) -> None:
        document, _ = lacking("orchestrator")
        document["messages"] = []
        both = [{**one, "role": "lead"} for one in ({"agent_id": "boss", "agent_type": "architect"}, PLANNER)]
        document["collaboration"]["participants"] = [FIRST, *both, BUILDER, CHECKER]

        assert "watcher" == repaired(document)[0]["orchestrator"]["agent_id"]
