"""What a document says in another type than the standard has there: an import reads it, or keeps it and tells why."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from harken.events import AgentCreated, Output, Prompt, Response
from harken.formats.std.checking.rules import validate_bytes
from harken.formats.std.document import dumps, loads
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.importing.to_events import events_of
from harken.formats.std.repairing.repair import repair
from support.std_documents import multi, single

Json = dict[str, Any]


def changed(document: Json, path: str, value: Any) -> bytes:
    made = copy.deepcopy(document)
    *above, last = path.split(".")
    holder: Any = made
    for step in above:
        holder = holder[int(step) if step.isdigit() else step]
    holder[int(last) if last.isdigit() else last] = value
    return json.dumps(made, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (["Mend it.", "Then stop."], "Mend it.\nThen stop."),
        ([{"type": "text", "text": "Mend it."}, "Then stop."], "Mend it.\nThen stop."),
        ({"content": "修好时钟", "language": "zh"}, "修好时钟"),
        (42, "42"),
    ],
)
def test_a_prompt_in_another_shape_is_what_was_asked(said: Any, words: str) -> None:
    data = changed(single(), "user_prompt", said)

    assert [words] == [event.content for event in events_of(data) if isinstance(event, Prompt)]
    assert [words] == [event.content for event in events_of(repair(data).data) if isinstance(event, Prompt)]
    assert repair(data).is_valid


def test_what_a_prompt_says_beside_its_words_is_kept() -> None:
    said = {"content": "Mend it.", "language": "Elvish"}

    assert b"Elvish" in b"".join(
        event.raw for event in events_of(changed(single(), "user_prompt", said)) if isinstance(event, Output)
    )
    assert said == json.loads(repair(changed(single(), "user_prompt", said)).data)["x_harken_old_user_prompt"]


def test_a_summary_that_is_a_list_of_texts_is_what_the_agent_said_in_the_end() -> None:
    data = changed(single(), "summary", ["It ticks.", "It is on time."])

    for told in (data, repair(data).data):
        said = [event.content for event in events_of(told) if isinstance(event, Response)]
        assert ["It ticks.\nIt is on time."] == said


def test_an_agent_in_a_list_names_the_model() -> None:
    events = events_of(changed(single(), "agent", [{"model_id": "claude-x"}]))

    assert ["claude-x"] == [event.language_model for event in events if isinstance(event, AgentCreated)]


@pytest.mark.parametrize("said", ["builder, checker", "builder、checker", "builder；checker", "builder\nchecker"])
def test_participants_that_are_a_text_are_those_that_it_names(said: str) -> None:
    data = changed(multi(), "collaboration.participants", said)

    made = [event.agent_id for event in events_of(data) if isinstance(event, AgentCreated)]
    mended = json.loads(repair(data).data)["collaboration"]["participants"]

    assert ["builder", "checker", "lead"] == sorted(made)
    assert ["builder", "checker"] == [one["agent_id"] for one in mended]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("session_id", {"id": "odd words"}),
        ("session_id", "odd words / more"),
        ("user_prompt", {"en": "odd words"}),
        ("task_title", {"en": "odd words"}),
        ("task_description", [["odd words", None]]),
        ("created_at", "odd words"),
        ("completed_at", {"at": "odd words"}),
        ("status", ["odd words"]),
        ("agent", ["odd words", "and more"]),
        ("summary", [{"outcome": "odd words"}]),
    ],
)
def test_what_cannot_be_read_at_the_top_is_told_with_the_reason(path: str, value: Any) -> None:
    events = events_of(changed(single(), path, value))

    told = [event for event in events if isinstance(event, Output) and event.why]
    assert [(True, True)] == [(path in event.why, b"odd words" in event.raw) for event in told]


@pytest.mark.parametrize("make", [single, multi])
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("call_id", ["odd words"]),
        ("tool_name", ["odd words"]),
        ("tool_category", "odd words"),
        ("tool_category", ["odd words"]),
        ("started_at", "odd words"),
        ("ended_at", {"at": "odd words"}),
        ("duration_ms", "odd words"),
        ("output.status", "odd words"),
        ("output.status", ["odd words"]),
        ("subagent_info", "odd words"),
    ],
)
def test_what_cannot_be_read_in_a_call_is_kept_and_exported_beside_it(
    make: Callable[[], Json], path: str, value: Any
) -> None:
    events = events_of(changed(make(), f"tool_calls.0.{path}", value))

    assert any(b"odd words" in event.raw for event in events if isinstance(event, Output))
    document = document_of(events, SessionFacts(session="s", runtime="std-008", title="t")).document
    exported = json.dumps(document.data).encode()
    assert "odd words" in exported.decode()
    assert validate_bytes(exported).is_valid


ROWS_BY_NAME = [
    {"lead": {"tool_calls_count": 3}, "builder": {"tool_calls_count": 1}, "checker": {"tool_calls_count": 1}},
    {"architect": {"tool_calls_count": 3}, "developer": {"note": "quick"}, "reviewer": {}},
    {"architect": {}, "developer": [{"agent_id": "builder"}], "reviewer": {"agent_id": "checker"}},
]


@pytest.mark.parametrize("rows", ROWS_BY_NAME)
def test_rows_of_the_summary_under_other_names_become_a_list(rows: Json) -> None:
    given = multi()
    given["summary"]["agents"] = rows

    answer = repair(dumps(given))

    assert answer.is_valid
    made = loads(answer.data)["summary"]["agents"]
    assert [("lead", 3), ("builder", 1), ("checker", 1)] == [(row["agent_id"], row["tool_calls_count"]) for row in made]
    assert answer.data == repair(answer.data).data


def test_a_row_that_the_standards_summary_lacks_is_counted() -> None:
    given = multi()
    del given["summary"]["agents"]["architect"]

    answer = repair(dumps(given))

    assert answer.is_valid
    assert "lead" == loads(answer.data)["summary"]["agents"]["architect"]["agent_id"]


def test_a_number_of_the_summary_that_is_a_text_stays_that_number() -> None:
    given = multi()
    given["summary"] |= {"review_iterations": "3", "tool_calls_count": "7"}

    made = loads(repair(dumps(given)).data)["summary"]

    assert (3, 7) == (made["review_iterations"], made["tool_calls_count"])


def test_files_that_were_changed_are_found_under_other_names() -> None:
    given = multi()
    given["sub_sessions"][0]["output"]["changes"] = {"created": ["a.py"], "modified": [{"path": "b.py"}]}

    answer = repair(dumps(given))

    assert answer.is_valid
    made = loads(answer.data)["sub_sessions"][0]["output"]["changes"]
    assert [["a.py"], ["b.py"], []] == [
        [one if isinstance(one, str) else one["path"] for one in made[key]]
        for key in ("files_created", "files_modified", "files_deleted")
    ]


@pytest.mark.parametrize(("said", "expected"), [("P0", "high"), ("p1", "high"), ("P2", "medium"), ("P3", "low")])
def test_a_priority_by_its_number_is_the_word_for_it(said: str, expected: str) -> None:
    given = multi()
    given["sub_sessions"][0]["task"]["priority"] = said

    assert expected == loads(repair(dumps(given)).data)["sub_sessions"][0]["task"]["priority"]
