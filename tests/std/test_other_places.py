"""What stands in another place of a document than the standard has for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harken.events import Event, PieceOfText, Prompt, ToolCall
from harken.formats.std.importing.to_events import events_of
from harken.formats.std.repairing.repair import Repaired, repair
from support.std_documents import BUILDER, PLANNER, call, message, multi

Json = dict[str, Any]


def repaired(document: Json) -> tuple[Json, Repaired]:
    """The document after a repair that leaves no error, and that a second one leaves as it is."""
    answer = repair(json.dumps(document).encode())
    assert answer.is_valid, answer.findings
    assert answer.data == repair(answer.data).data
    return json.loads(answer.data), answer


def messages_inside() -> Json:
    """Each sub-session has the messages of its own agent, counted by itself."""
    document = multi()
    told = document.pop("messages")
    for sub, own in zip(document["sub_sessions"], (told[:2], told[2:]), strict=True):
        sub["messages"] = [one | {"sequence_number": number} for number, one in enumerate(own, 1)]
    words = message(3, 40, BUILDER, PLANNER, "task_progress", {"current_step": "The hands turn."})
    document["sub_sessions"][0]["messages"].insert(1, words | {"message_id": "msg-005", "sequence_number": 2})
    document["sub_sessions"][0]["messages"][2]["sequence_number"] = 3
    return document


def conversation(events: list[Event]) -> set[tuple[str, str, str]]:
    """Who said or heard what."""
    return {(type(one).__name__, one.agent_id, one.content) for one in events if isinstance(one, PieceOfText | Prompt)}


class TestMessagesInSubSessions:
    def test_they_are_the_documents_in_order_of_time(self) -> None:
        document, answer = repaired(messages_inside())

        assert ["msg-001", "msg-005", "msg-002", "msg-003", "msg-004"] == [
            one["message_id"] for one in document["messages"]
        ]
        assert [1, 2, 3, 4, 5] == [one["sequence_number"] for one in document["messages"]]
        assert not any("messages" in sub for sub in document["sub_sessions"])
        assert 5 == sum("it stood in `messages` of `sub_sessions" in change.message for change in answer.changes)

    def test_they_join_those_that_the_document_lists(self) -> None:
        given = multi()
        document = multi()
        document["sub_sessions"][1]["messages"] = document["messages"][2:]
        document["messages"] = document["messages"][:2]
        document["status"] = "completed"  # so that there is something to mend

        made, _ = repaired(document)

        assert given["messages"] == made["messages"]

    def test_an_import_hears_them_as_after_the_repair(self) -> None:
        document = messages_inside()
        data = json.dumps(document).encode()

        heard = conversation(events_of(data))

        assert ("PieceOfText", "builder", "The hands turn.") in heard
        assert ("Prompt", "lead", "[builder]: The hands turn.") in heard
        assert heard == conversation(events_of(repair(data).data))

    def test_a_message_that_both_sides_list_is_told_once(self) -> None:
        document = messages_inside()
        document["sub_sessions"][1]["messages"].insert(0, dict(document["sub_sessions"][0]["messages"][1]))

        made, _ = repaired(document)

        assert 5 == len(made["messages"])

    def test_ids_that_each_sub_session_counts_by_itself_are_told_apart_and_replies_follow(self) -> None:
        document = messages_inside()
        for sub in document["sub_sessions"]:
            for number, one in enumerate(sub["messages"], 1):
                one["message_id"] = f"m{number}"
            sub["messages"][-1]["reply_to"] = "m1"

        made, _ = repaired(document)

        assert ["m1", "m2", "m3", "sub-002/m1", "sub-002/m2"] == [one["message_id"] for one in made["messages"]]
        assert [None, None, "m1", None, "sub-002/m1"] == [one.get("reply_to") for one in made["messages"]]

    def test_who_is_not_named_is_the_other_one_of_the_two(self) -> None:
        document = messages_inside()
        for one in document["sub_sessions"][0]["messages"]:
            del one["to_agent"]
        for one in document["sub_sessions"][1]["messages"]:
            del one["from_agent"], one["to_agent"]

        made, answer = repaired(document)

        assert [
            ("lead", "builder"),
            ("builder", "lead"),
            ("builder", "lead"),
            ("lead", "checker"),
            ("checker", "lead"),
        ] == [(one["from_agent"]["agent_id"], one["to_agent"]["agent_id"]) for one in made["messages"]]
        assert 7 == sum(change.derived and "the sub-session of the two" in change.message for change in answer.changes)

    def test_those_of_the_collaboration_are_the_documents_too(self) -> None:
        document = multi()
        document["collaboration"]["messages"] = document.pop("messages")

        made, _ = repaired(document)

        assert multi()["messages"] == made["messages"]

    def test_what_a_model_was_told_and_said_is_no_message_between_agents(self) -> None:
        document = multi()
        chat = [{"role": "user", "content": "Mend it."}, {"role": "assistant", "content": "I did."}]
        document["sub_sessions"][0]["messages"] = chat
        document["status"] = "completed"

        made, _ = repaired(document)

        assert multi()["messages"] == made["messages"]
        assert chat == made["sub_sessions"][0]["messages"]


class TestAttempts:
    @pytest.mark.parametrize("name", ["attempts", "iterations"])
    def test_their_calls_are_those_of_the_sub_session(self, name: str) -> None:
        document = multi()
        sub = document["sub_sessions"][0]
        del sub["tool_calls"]
        sub[name] = [
            {"status": "failed", "tool_calls": [call("b-001", 40), call("b-002", 42)]},
            {"status": "success", "tool_calls": [call("b-001", 50)]},
        ]

        made, answer = repaired(document)

        assert ["b-001", "b-002", "b-001-2"] == [one["call_id"] for one in made["sub_sessions"][0]["tool_calls"]]
        assert sub[name] == made["sub_sessions"][0][name]
        assert any(f"stand in `{name}`" in change.message for change in answer.changes)
        called = [one.id for one in events_of(json.dumps(document).encode()) if isinstance(one, ToolCall)]
        assert called == [one.id for one in events_of(answer.data) if isinstance(one, ToolCall)]
        assert {"b-001", "b-002"} <= set(called)
