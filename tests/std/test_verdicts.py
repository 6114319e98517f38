"""The verdicts that a document tells: of each review, and of the session."""

from __future__ import annotations

from typing import Any

import pytest

from harken.events import Prompt
from harken.formats.std.document import dumps, parse_session
from harken.formats.std.drawing import drawing, said_in
from harken.formats.std.importing.to_events import events_of
from harken.formats.std.summary import computed_summary
from support.std_documents import CHECKER, PLANNER, message, multi

Json = dict[str, Any]
GENERIC = {"output_type": "generic", "task_id": "review-001", "status": "completed", "summary": "It is."}


def reviewed(output: Json, result: Json) -> Json:
    """A document whose reviewer handed in this output, and sent this result."""
    data = multi()
    data["sub_sessions"][1]["output"] = output
    data["messages"][3]["payload"] = result
    return data


def drawn_verdicts(data: Json) -> list[str]:
    return [task.verdict for task in drawing(parse_session(data)).tasks]


def test_the_verdict_of_a_generic_output_is_drawn_with_its_task() -> None:
    data = reviewed(GENERIC | {"data": {"verdict": "rejected"}}, {"review_id": "review-001"})

    assert ["", "rejected"] == drawn_verdicts(data)


@pytest.mark.parametrize(
    "result",
    [
        {"review_id": "review-001", "verdict": "changes_requested"},
        {"task_id": "review-001", "verdict": "changes_requested"},
        {"task_id": "task-001", "verdict": "changes_requested"},
    ],
)
def test_a_verdict_that_only_a_message_tells_is_drawn_with_the_task_of_its_review(result: Json) -> None:
    assert ["", "changes_requested"] == drawn_verdicts(reviewed(GENERIC | {"data": {}}, result))


def test_of_several_reviews_of_an_agent_each_has_the_verdict_that_names_it() -> None:
    data = reviewed(GENERIC, {"review_id": "review-001", "verdict": "changes_requested"})
    again = {**data["sub_sessions"][1], "sub_session_id": "sub-003", "triggered_by_call_id": "tool-003"}
    again["task"] = {**again["task"], "task_id": "review-002"}
    data["sub_sessions"].append(again)
    asked = {"review_id": "review-002", "task_id": "task-001"}
    data["messages"] += [
        message(5, 190, PLANNER, CHECKER, "review_request", asked),
        message(6, 200, CHECKER, PLANNER, "review_result", {"task_id": "task-001", "verdict": "approved"})
        | {"reply_to": "msg-005"},
    ]

    assert ["", "changes_requested", "approved"] == drawn_verdicts(data)


def test_what_was_handed_in_counts_more_than_what_a_message_says_of_it() -> None:
    data = reviewed(GENERIC | {"data": {"verdict": "rejected"}}, {"review_id": "review-001", "verdict": "approved"})

    assert ["", "rejected"] == drawn_verdicts(data)


def test_a_task_that_is_no_review_has_no_verdict_from_a_message() -> None:
    data = multi()
    data["messages"][1] |= {"message_type": "review_result", "payload": {"task_id": "task-001", "verdict": "approved"}}

    assert ["", "approved"] == drawn_verdicts(data)


def test_the_last_verdict_of_a_generic_output_is_that_of_the_session() -> None:
    data = reviewed(GENERIC | {"data": {"verdict": "rejected"}}, {"review_id": "review-001"})

    assert "rejected" == drawing(parse_session(data)).verdict == computed_summary(data)["final_verdict"]


def test_a_request_for_a_review_is_drawn_in_the_words_that_it_was_asked_in() -> None:
    payload = {"review_id": "review-001", "task_id": "task-001", "context": "Is the clock right?"}

    assert "Is the clock right?" == said_in(payload)
    assert "approved" == said_in(payload | {"verdict": "approved"})
    assert "Mend it." == said_in({"task": {"task_description": "Mend it."}, "context": "It is late."})


def test_a_reviewer_that_is_asked_again_hears_the_words_that_it_was_asked_in() -> None:
    data = multi()
    asked = {"review_id": "review-009", "task_id": "task-001", "context": "Is the clock right?"}
    data["messages"].append(message(5, 190, PLANNER, CHECKER, "review_request", asked))

    heard = [event for event in events_of(dumps(data)) if event.message_id == "msg-005:heard"]

    assert ["[lead]: Is the clock right?"] == [event.content for event in heard if isinstance(event, Prompt)]
