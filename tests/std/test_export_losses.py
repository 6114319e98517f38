"""What a document leaves out of a session, told one by one."""

from __future__ import annotations

from pathlib import Path

from harken import formats
from harken.events import (
    AgentTerminated,
    Image,
    Output,
    TranscriptEdit,
)
from harken.formats.std.document import dumps
from harken.formats.std.exporting.from_events import document_of
from harken.formats.std.importing.to_events import events_of
from support.std_documents import multi
from support.std_exported import FACTS, exported
from support.std_recording import NAME, begin, play
from support.std_sessions import Told, lone, pair


def test_several_agents_can_be_written_as_one_and_that_is_a_loss() -> None:
    found = exported(pair(), "std-001")

    data = found.document.data
    assert ["Task", "Task"] == [call["tool_name"] for call in data["tool_calls"]]
    assert not {"collaboration", "sub_sessions", "messages", "x_harken_conversation"} & data.keys()
    losses = {loss.what: loss.count for loss in found.losses}
    assert (2, 4, 1) == (
        losses["calls of sub-agents"],
        losses["what agents said"],
        losses["sub-agents that no call of the main agent made"],
    )


def test_pictures_are_kept_with_several_agents_and_lost_with_one() -> None:
    told = lone()
    told.result(told.call("Read"), "a picture", images=(Image(media_type="image/png", data="aaaa"),))
    told.say("Nice.")

    assert "pictures" in {loss.what for loss in exported(told).losses}
    kept = exported(told, "std-008")
    assert [] == kept.losses
    assert [{"media_type": "image/png", "data": "aaaa"}] == kept.document.data["x_harken_conversation"][-2]["images"]


def test_the_picture_of_what_was_asked_is_lost_with_one_agent() -> None:
    told = Told()
    told.ask("What is this?", images=(Image(media_type="image/png", data="aaaa"),))
    told.say("A clock.")

    made = exported(told)

    assert "What is this?" == made.document.data["user_prompt"]
    assert {"pictures": 1, "what agents said": 1} == {loss.what: loss.count for loss in made.losses}


def test_what_was_asked_behind_calls_is_told_as_moved() -> None:
    told = Told()
    told.ask("[Request interrupted by user]", source="injected", origin="interruption")
    told.result(told.call("Read"), "one")
    told.ask("Go on.")

    made = exported(told)

    assert "Go on." == made.document.data["user_prompt"]
    assert {"what agents heard": 1, "the place of what was asked": 1} == {loss.what: loss.count for loss in made.losses}


def test_what_was_heard_is_lost_whole_where_nobody_asked_for_anything() -> None:
    told = Told()
    told.ask("Implement the following plan: …", source="injected", origin="plan")
    told.say("Done.")

    made = exported(told)

    assert "user_prompt" not in made.document.data
    assert {"what agents heard": 1, "what agents said": 1} == {loss.what: loss.count for loss in made.losses}


def test_records_that_are_no_conversation_are_a_loss() -> None:
    told = pair()
    told.events.insert(3, Output(agent_id="main", raw=b"{}"))
    told.events.insert(3, Output(agent_id="one", raw=b"?", why="torn"))

    assert {"records that are no conversation": 1, "records that could not be read": 1} == {
        loss.what: loss.count for loss in exported(told).losses
    }


def test_std_001_says_of_every_kind_of_record_that_it_is_left_out() -> None:
    told = lone()
    told.add(TranscriptEdit(agent_id="main", n=1))
    told.add(AgentTerminated(agent_id="main"))
    told.add(Output(raw=b"{", why="no JSON"))

    lost = {loss.what: loss.count for loss in exported(told, "std-001").losses}

    assert {
        "what agents said": 1,
        "changes to a transcript": 1,
        "ends of agents": 1,
        "records that could not be read": 1,
    } == lost


def test_a_document_made_from_the_log_of_a_recording_says_that_the_recorder_s_own_has_more(tmp_path: Path) -> None:
    path = tmp_path / NAME
    with begin(path) as recorder:
        play(recorder)
    log = tmp_path / NAME.replace(".json", ".log.jsonl")

    made = document_of(formats.get("session-log-v2").read(log.read_bytes()), FACTS)

    assert ["what a recorder was told"] == [loss.what for loss in made.losses]


def test_messages_that_are_not_written_as_the_document_had_them_are_a_loss() -> None:
    given = multi()
    del given["messages"][1]["to_agent"]

    lost = document_of(events_of(dumps(given)), FACTS, "std-008").losses

    assert ("messages in the words of the document", 4) in [(loss.what, loss.count) for loss in lost]
