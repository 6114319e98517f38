"""What came of a task, heard by whoever the document says was told of it, and not only by the giver of the task."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harken.events import Event, Output, PieceOfText, Prompt, Response
from harken.formats.std.importing.to_events import events_of, main_events, side_chains
from support.std_documents import BUILDER, CHECKER, PLANNER, call, message, multi, sub_session, task_call

Json = dict[str, Any]
PACKER: Json = {"agent_id": "packer", "agent_type": "developer"}


def read(document: Json) -> list[Event]:
    return events_of(json.dumps(document).encode())


def heard(events: list[Event], name: str) -> list[tuple[str, str]]:
    """Who hears a message, and as what."""
    found = [event for event in events if isinstance(event, Prompt) and event.message_id.startswith(f"{name}:heard")]
    return sorted((event.agent_id, event.content) for event in found)


def in_chains(document: Json) -> list[Event]:
    return [event for lines in side_chains(json.dumps(document).encode()).values() for event in events_of(lines)]


def pipeline() -> Json:
    """The builder's result goes to the checker, and the checker's to a packer that works last."""
    document = multi()
    document["collaboration"] |= {"pattern": "pipeline", "participants": [BUILDER, CHECKER, PACKER]}
    document["tool_calls"].append(task_call("tool-004", 200, "sub-003", "developer"))
    made = {"output_type": "generic", "task_id": "task-003", "status": "completed", "summary": "It is packed."}
    document["sub_sessions"].append(
        sub_session("sub-003", PACKER, "tool-004", "task-003", 200, call("p-001", 210), made)
    )
    document["messages"][1]["to_agent"] = CHECKER
    document["messages"][3]["to_agent"] = PACKER
    return document


def test_a_result_that_is_handed_on_is_heard_by_whoever_it_was_sent_to() -> None:
    events = read(pipeline())

    assert [("checker", "[builder]: The clock is right.")] == heard(events, "msg-002")
    assert [("packer", "[checker]: It is.")] == heard(events, "msg-004")
    links = {event.message_id: event.substance for event in events if isinstance(event, Prompt)}
    assert ("sub-001/answer", "sub-002/answer") == (links["msg-002:heard"], links["msg-004:heard"])


def test_the_giver_has_the_result_of_its_call_and_nothing_twice() -> None:
    def own(document: Json) -> list[Event]:
        return main_events(json.dumps(document).encode())

    assert own(multi()) == own(pipeline() | {"tool_calls": multi()["tool_calls"]})


def test_the_chain_of_the_hearer_tells_it_in_the_same_record() -> None:
    document = pipeline()
    handed_on = [event for event in read(document) if event.message_id in ("msg-002:heard", "msg-004:heard")]

    assert handed_on == [event for event in in_chains(document) if event in handed_on]


def test_what_is_handed_on_in_other_words_comes_from_the_answer() -> None:
    document = pipeline()
    document["messages"][1]["payload"]["message"] = "Your turn."

    told = next(event for event in read(document) if event.message_id == "msg-002:heard")

    assert isinstance(told, Prompt)
    assert ("[builder]: Your turn.", "sub-001/answer", None) == (told.content, told.cause, told.substance)
    assert told in in_chains(document)


def test_a_completion_without_any_words_still_tells_the_next_agent() -> None:
    document = pipeline()
    del document["sub_sessions"][0]["output"]

    said = '[builder]: task_completion: {"task_id":"task-001","status":"completed"}'
    assert [("checker", said)] == heard(read(document), "msg-002") == heard(in_chains(document), "msg-002")


@pytest.mark.parametrize("hearers", ["all", [PLANNER, CHECKER, PACKER]])
def test_a_completion_to_several_is_heard_by_all_but_the_giver_and_the_sender(hearers: Any) -> None:
    document = pipeline()
    document["messages"][1]["to_agent"] = hearers

    assert ["checker", "packer"] == [agent for agent, _ in heard(read(document), "msg-002")]
    assert heard(read(document), "msg-002") == heard(in_chains(document), "msg-002")


def test_a_completion_is_heard_by_the_giver_where_no_call_brings_the_answer() -> None:
    document = multi()
    document["tool_calls"] = document["tool_calls"][:1]

    assert [("lead", "[builder]: The clock is right.")] == heard(read(document), "msg-002")


def test_an_agent_that_only_launched_another_hears_what_came_of_it() -> None:
    document = pipeline()
    launched = document["tool_calls"].pop()
    launched |= {"ended_at": launched["started_at"], "output": {"status": "success"}}
    document["sub_sessions"][0]["tool_calls"].append(launched)
    document["sub_sessions"][2]["parent_session_id"] = "sub-001"
    document["messages"].append(
        message(5, 260, PACKER, BUILDER, "task_completion", {"task_id": "task-003", "status": "completed"})
    )

    assert [("builder", "[packer]: It is packed.")] == heard(read(document), "msg-005")


def test_a_long_answer_to_everybody_does_not_become_gigabytes() -> None:
    document = pipeline()
    document["sub_sessions"][0]["output"]["summary"] = "x" * 100_000
    document["collaboration"]["participants"] += [{"agent_id": f"a{n}", "agent_type": "x"} for n in range(1000)]
    document["messages"][1]["to_agent"] = "all"

    events = read(document)

    assert [] == heard(events, "msg-002")
    assert ["msg-002:heard"] == [event.message_id for event in events if isinstance(event, Output) and event.why]


def test_a_message_that_claims_to_bring_an_answer_is_read_like_any_other() -> None:
    document = multi()
    forged = message(5, 200, PLANNER, BUILDER, "feedback", {"content": "Well done."})
    document["messages"].append(forged | {"x_harken_answer": {"message_id": "x", "content": "Something else."}})

    assert [("builder", "[lead]: Well done.")] == heard(read(document), "msg-005")
    assert heard(read(document), "msg-005") == heard(in_chains(document), "msg-005")


@pytest.mark.parametrize(
    "missing", [("triggered_by_call_id",), ("task", "task_id")], ids=["the call that began it", "the id of its task"]
)
def test_what_a_sub_session_lacks_and_others_say_of_it_makes_nothing_heard_twice(missing: tuple[str, ...]) -> None:
    document = multi()
    holder = document["sub_sessions"][0]
    for step in missing[:-1]:
        holder = holder[step]
    del holder[missing[-1]]

    assert all_heard(multi()) == all_heard(document)


def test_an_agent_hears_the_assignment_where_its_sub_session_does_not_say_the_task() -> None:
    document = multi()
    del document["sub_sessions"][0]["task"]
    document["messages"][0]["payload"]["content"] = "Mend the clock."

    assert [("builder", "[lead]: Mend the clock.")] == heard(read(document), "msg-001")


def all_heard(document: Json) -> list[tuple[str, str, str]]:
    events = [event for event in read(document) if isinstance(event, Prompt | PieceOfText | Response)]
    return [(event.agent_id, event.message_id, str(event.content)) for event in events]
