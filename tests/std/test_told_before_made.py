"""What a document says in other words or in other places is read before anything is made from the rest of it."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

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
