"""Repair of messages whose numbers do not increase: their times tell the order, or nothing does."""

from __future__ import annotations

from typing import Any

from harken.events import PieceOfText, Prompt
from harken.formats.std.document import dumps, loads
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.importing.to_events import events_of
from harken.formats.std.repairing.repair import Repaired, repair
from harken.formats.std.summary import computed_summary
from support.std_checks import errors_of, findings_of
from support.std_documents import multi

Json = dict[str, Any]


def numbered(*numbers: int) -> Json:
    document = multi()
    for message, number in zip(document["messages"], numbers, strict=True):
        message["sequence_number"] = number
    return document


def messages(document: Json) -> tuple[list[tuple[str, int]], Repaired]:
    answer = repair(dumps(document))
    assert answer.data == repair(answer.data).data
    return [(one["message_id"], one["sequence_number"]) for one in loads(answer.data)["messages"]], answer


def test_messages_that_stand_newest_first_are_put_in_order() -> None:
    document = numbered(1, 2, 3, 4)
    ordered = [(one["message_id"], one["sequence_number"]) for one in document["messages"]]
    document["messages"].reverse()

    made, answer = messages(document)

    assert ordered == made
    assert answer.is_valid
    assert ["the messages stand in the order of their numbers now, as their times do"] == [
        change.message for change in answer.changes if change.path == "messages"
    ]


def test_numbers_that_each_agent_counts_by_itself_become_one_count() -> None:
    for numbers in ((1, 1, 2, 1), (0, 0, 1, 1), (4, 3, 2, 1)):
        made, answer = messages(numbered(*numbers))

        assert [1, 2, 3, 4] == [number for _, number in made]
        assert answer.is_valid
        assert all(change.derived for change in answer.changes if "sequence_number" in change.path)
    assert 4 == loads(answer.data)["messages"][0]["x_harken_old_sequence_number"]


def test_messages_whose_times_tell_nothing_stay_as_they_are() -> None:
    document = numbered(1, 1, 2, 3)
    document["messages"][2]["timestamp"] = document["created_at"]  # before the others, though it stands behind them

    made, answer = messages(document)

    assert [1, 1, 2, 3] == [number for _, number in made]
    assert not answer.is_valid


def test_an_import_and_export_has_messages_in_their_words_whatever_their_numbers_are() -> None:
    document = numbered(1, 1, 2, 1)
    said = [(one["message_id"], one["message_type"], one["payload"]) for one in document["messages"]]

    events = events_of(dumps(document))
    made = document_of(events, SessionFacts(title="Two hands"), "std-008").document.data["messages"]

    assert said == [(one["message_id"], one["message_type"], one["payload"]) for one in made]
    assert any(isinstance(event, Prompt | PieceOfText) for event in events)


def test_an_assignment_may_name_its_task_without_an_object_around_it() -> None:
    document = multi()
    document["messages"][0]["payload"] = {"task_id": document["messages"][1]["payload"]["task_id"]}

    found = findings_of(document)

    assert ["payload-field"] == [one.rule for one in found]
    assert multi()["summary"]["tasks"] == computed_summary(document)["tasks"]
    document["messages"].insert(1, {**document["messages"][0], "message_id": "again"})
    for number, message in enumerate(document["messages"], 1):
        message["sequence_number"] = number
    assert [("repeated-assignment", "messages[1].payload.task_id")] == [
        (one.rule, one.path) for one in errors_of(document)
    ]


def test_types_of_messages_in_other_words_are_those_of_the_standard() -> None:
    document = multi()
    for message, word in zip(
        document["messages"], ("assign", "task_result", "Code Review Request", "reviewResponse"), strict=True
    ):
        message["message_type"] = word

    made = loads(repair(dumps(document)).data)["messages"]

    assert [one["message_type"] for one in multi()["messages"]] == [one["message_type"] for one in made]
