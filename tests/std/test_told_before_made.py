"""What a document says in other words or in other places is read before anything is made from the rest of it."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from harken.events import Event, Prompt
from harken.formats.std.importing.to_events import events_of
from harken.formats.std.repairing.repair import repair
from support.std_documents import multi

Json = dict[str, Any]


def repaired(document: Json) -> Json:
    answer = repair(json.dumps(document).encode())
    assert answer.is_valid, answer.findings
    assert answer.data == repair(answer.data).data
    return json.loads(answer.data)


def in_numbers(value: Any) -> Any:
    """The same with its times as milliseconds since 1970."""
    if isinstance(value, dict):
        return {key: in_numbers(inside) for key, inside in value.items()}
    if isinstance(value, list):
        return [in_numbers(inside) for inside in value]
    if isinstance(value, str) and value.startswith("2026-03-04T"):
        return round(datetime.fromisoformat(value).timestamp() * 1000)
    return value


class TestTimesInOtherSpellings:
    def test_a_session_begins_with_the_earliest_of_them(self) -> None:
        document = multi()
        del document["created_at"]

        assert repaired(document)["created_at"] == repaired(in_numbers(document))["created_at"]

    def test_a_call_that_started_a_sub_session_has_those_of_that(self) -> None:
        document = multi()
        for call in document["tool_calls"]:
            for key in ("started_at", "ended_at", "duration_ms"):
                call.pop(key)
        expected = repaired(document)

        document = repaired(in_numbers(document))

        assert "2026-03-04T10:00:30Z" == document["tool_calls"][1]["started_at"]
        assert expected["tool_calls"] == document["tool_calls"]

    def test_a_call_ends_after_its_duration_though_its_begin_stands_under_another_name(self) -> None:
        document = in_numbers(multi())
        call = document["tool_calls"][0]
        began = call.pop("started_at")
        call["start_time"], _ = began, call.pop("ended_at")

        assert multi()["tool_calls"][0]["ended_at"] == repaired(document)["tool_calls"][0]["ended_at"]


def with_tasks_beside(key: str) -> Json:
    """The fields of a task stand in its sub-session, where its words differ from those of the call."""
    document = multi()
    for number, sub in enumerate(document["sub_sessions"]):
        task = sub.pop("task")
        sub |= {"task_id": task["task_id"], key: f"the work {number}", "priority": task["priority"]}
    return document


@pytest.mark.parametrize("key", ["description", "task_description"])
class TestTheFieldsOfATask:
    def test_those_of_a_sub_session_are_its_tasks(self, key: str) -> None:
        tasks = [sub["task"] for sub in repaired(with_tasks_beside(key))["sub_sessions"]]

        assert ["the work 0", "the work 1"] == [task["description"] for task in tasks]
        assert [sub["task"]["task_id"] for sub in multi()["sub_sessions"]] == [task["task_id"] for task in tasks]
        assert [sub["task"]["priority"] for sub in multi()["sub_sessions"]] == [task["priority"] for task in tasks]

    def test_its_agent_hears_them_in_an_import(self, key: str) -> None:
        document = with_tasks_beside(key)
        for sub in document["sub_sessions"]:
            del sub["priority"]

        heard = prompts(events_of(json.dumps(document).encode()))

        assert {"the work 0", "the work 1"} <= heard
        assert not heard & {call["input"]["params"].get("prompt") for call in multi()["tool_calls"]}

    def test_a_task_without_words_has_them_too(self, key: str) -> None:
        document = multi()
        for sub in document["sub_sessions"]:
            sub["task"].pop("description")
            sub[key] = "the work"

        assert {"the work"} == {sub["task"]["description"] for sub in repaired(document)["sub_sessions"]}
        assert "the work" in prompts(events_of(json.dumps(document).encode()))


def prompts(events: list[Event]) -> set[str]:
    return {event.content for event in events if isinstance(event, Prompt)}
