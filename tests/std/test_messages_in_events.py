"""A session document as events: what agents told each other, and who heard it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harken.events import Event, Output, PieceOfText, Prompt, Response
from harken.formats.std.importing.to_events import events_of, main_events, side_chains
from support.std_documents import BUILDER, CHECKER, PLANNER, multi
from support.std_events import message, read, record


def test_messages_that_repeat_calls_and_outputs_are_not_told_twice() -> None:
    assert [] == [event for event in read(multi()) if event.message_id.startswith("msg-")]


def test_other_messages_are_said_by_one_agent_and_heard_by_another() -> None:
    document = multi()
    document["messages"].append(message("feedback", PLANNER, BUILDER, {"content": "Mind the hands."}))
    events = read(document)

    said, heard = record(events, "msg-009"), record(events, "msg-009:heard")

    assert ("lead", "Mind the hands.") == (said.agent_id, said.content)
    assert ("builder", "[lead]: Mind the hands.", "msg-009") == (heard.agent_id, heard.content, heard.substance)
    assert isinstance(said, PieceOfText)
    assert isinstance(heard, Prompt)
    names = [event.message_id for event in events]
    assert names.index("sub-001/b-001:result") < names.index("msg-009:heard") < names.index("sub-001/answer")


def test_what_an_agent_sent_is_in_its_conversation_once_as_words_of_its_own() -> None:
    document = multi()
    document["messages"] += [
        message("feedback", PLANNER, BUILDER, "Mind it."),
        message("feedback", BUILDER, PLANNER, "Yes."),
    ]
    data = json.dumps(document).encode()

    def words(events: list[Event]) -> list[str]:
        return [event.content for event in events if isinstance(event, Response | PieceOfText)]

    main, chain = main_events(data), main_events(side_chains(data)["builder"])

    assert ["Mind it."] == words(main)
    assert ["Yes."] == [said for said in words(chain) if said == "Yes."]
    assert not any(isinstance(event, PieceOfText) for event in (*main, *chain))


def test_text_that_a_call_made_for_others_is_told_by_the_call() -> None:
    document = multi()
    piece = {"type": "piece_of_text", "message_id": "m1", "piece_of_text": {"content": "Hear me."}}
    document["x_harken_conversation"] = [{**piece, "cause": "tool-001"}, {**piece, "message_id": "m2"}]
    said = [event for event in main_events(json.dumps(document).encode()) if isinstance(event, Response)]
    assert ["m2"] == [event.message_id for event in said]


def test_a_second_assignment_of_a_task_is_heard() -> None:
    document = multi()
    document["messages"].append(message("task_assignment", PLANNER, BUILDER, {"task": {"task_id": "task-001"}}))

    assert 'task_assignment: {"task":{"task_id":"task-001"}}' == record(read(document), "msg-009").content


def test_a_task_that_a_message_alone_gives_is_heard_in_its_own_words() -> None:
    document = multi()
    task = {"task_id": "task-009", "task_description": "Write the docs, too."}
    document["messages"].append(message("task_assignment", PLANNER, BUILDER, {"task": task}))

    assert "Write the docs, too." == record(read(document), "msg-009").content


def test_a_completion_with_words_is_the_answer_where_the_output_has_none() -> None:
    document = multi()
    del document["sub_sessions"][0]["output"]
    document["messages"][1]["payload"]["summary"] = "Done, it ticks."

    assert "Done, it ticks." == record(read(document), "sub-001/answer").content


def test_a_completion_is_heard_where_the_call_only_launched() -> None:
    document = multi()
    document["tool_calls"][1] |= {"ended_at": "2026-03-04T10:00:31Z", "duration_ms": 1000}

    heard = record(read(document), "msg-002:heard")

    assert ("lead", "[builder]: The clock is right.") == (heard.agent_id, heard.content)
    assert "sub-001/answer" == heard.substance


def test_a_completion_in_words_of_its_own_comes_from_the_answer() -> None:
    document = multi()
    del document["tool_calls"][1]["output"]
    document["messages"][1]["payload"]["message"] = "Ready for review."

    heard = record(read(document), "msg-002:heard")

    assert ("[builder]: Ready for review.", "sub-001/answer") == (heard.content, heard.cause)


def told_to(event: Event) -> str:
    return event.agent_id


@pytest.mark.parametrize(
    "hearers",
    ["all", "*", {"agent_id": "all"}, ["all"], [{"agent_id": "team"}], ["builder", "checker"], [BUILDER, CHECKER]],
)
def test_a_message_to_several_agents_is_heard_by_each_of_them(hearers: Any) -> None:
    document = multi()
    document["messages"].append(message("feedback", PLANNER, hearers, {"content": "Mind the clock."}))

    heard = [event for event in read(document) if isinstance(event, Prompt) and "Mind the clock." in event.content]

    assert ["builder", "checker"] == sorted(event.agent_id for event in heard)
    assert len(heard) == len({event.message_id for event in heard})
    assert {"lead", "builder", "checker"} == {event.agent_id for event in read(document)}
    chains = side_chains(json.dumps(document).encode())
    own = [event for lines in chains.values() for event in events_of(lines) if event in heard]
    assert sorted(heard, key=told_to) == sorted(own, key=told_to)


def test_an_agent_that_is_called_all_hears_alone_what_is_told_to_it() -> None:
    document = multi()
    document["collaboration"]["participants"].append({"agent_id": "all", "agent_type": "developer"})
    document["messages"].append(message("feedback", PLANNER, {"agent_id": "all"}, {"content": "Mind the clock."}))

    heard = [event for event in read(document) if isinstance(event, Prompt) and "Mind the clock." in event.content]

    assert ["all"] == [event.agent_id for event in heard]


def test_a_message_to_everybody_is_heard_by_each_of_sixty_agents() -> None:
    document = multi()
    names = [f"worker-{number}" for number in range(60)]
    document["collaboration"]["participants"] += [{"agent_id": name, "agent_type": "developer"} for name in names]
    document["messages"].append(message("feedback", PLANNER, "all", {"content": "Mind the clock."}))

    heard = [event for event in read(document) if isinstance(event, Prompt) and "Mind the clock." in event.content]

    assert {"builder", "checker", *names} == {event.agent_id for event in heard}


@pytest.mark.parametrize("is_list", [False, True])
def test_what_is_too_much_to_be_heard_by_everybody_is_kept_and_told(is_list: bool) -> None:
    document = multi()
    names = [f"worker-{number}" for number in range(2000)]
    document["collaboration"]["participants"] += [{"agent_id": name, "agent_type": "developer"} for name in names]
    long = message("feedback", PLANNER, names if is_list else "all", {"content": "Mind the clock. " * 1000})
    document["messages"].append(long)

    events = read(document)

    said = [event for event in events if isinstance(event, PieceOfText) and "Mind the clock." in event.content]
    assert ["lead"] == [event.agent_id for event in said]
    assert [] == [event for event in events if isinstance(event, Prompt) and "Mind the clock." in event.content]
    [kept] = [event for event in events if isinstance(event, Output) and event.why]
    assert long == json.loads(kept.raw)
    assert f"a message to {2000 if is_list else 2002} agents is in the transcript of none of them" in kept.why
    chains = side_chains(json.dumps(document).encode())
    assert not any(b"Mind the clock." in lines for lines in chains.values())


@pytest.mark.parametrize("key", ["to", "recipient"])
def test_a_message_that_names_several_hearers_under_another_key_is_heard_by_each(key: str) -> None:
    document = multi()
    document["messages"].append(message("feedback", PLANNER, "", {"content": "Mind the clock."}))
    del document["messages"][-1]["to_agent"]
    document["messages"][-1][key] = ["builder", "checker"]

    heard = [event for event in read(document) if isinstance(event, Prompt) and "Mind the clock." in event.content]

    assert ["builder", "checker"] == sorted(event.agent_id for event in heard)
