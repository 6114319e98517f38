"""The rows of a session: how they are kept, read and cut, and what stands of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken.events import Error, Event, Metric, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.cbor import encode_events
from harken.formats import get
from harken.formats.opencode.records import blocks
from harken.runtimes import get as runtime
from harken.runtimes.importer import Importer
from harken.runtimes.opencode.database import session_rows, versions
from harken.testing.formats import said
from support.opencode_database import OpenCodeDatabase, text, tool

ROWS, SCAN = get("opencode-rows-v1"), runtime("opencode").read.scan
PICTURE = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,aGk=", "filename": "a.png"}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[OpenCodeDatabase]:
    made = OpenCodeDatabase(tmp_path / "opencode.db")
    yield made
    made.close()


def rows(database: OpenCodeDatabase, session: str = "ses_one") -> bytes:
    connection = sqlite3.connect(database.path)
    try:
        return session_rows(connection, session)
    finally:
        connection.close()


def told(data: bytes) -> list[tuple[str, str]]:
    return said(ROWS.read(data))


def stands(data: bytes) -> list[tuple[str, str]]:
    return said(ROWS.read_conversation(ROWS.context(data)))


def kinds(events: list[Event], *wanted: type) -> list[Event]:
    return [event for event in events if isinstance(event, wanted)]


# -- how they are kept -------------------------------------------------------------------------------------------------


def test_every_row_of_the_session_is_a_line_with_the_very_bytes_of_its_data(database: OpenCodeDatabase) -> None:
    session = database.session()
    database.turn(session, "Hello?", text("Hello."))
    database.execute("INSERT INTO todo VALUES (?, 'write', 'open', 'high', 0, 1, 1)", session)
    database.execute("INSERT INTO session_share VALUES (?, 'x', 'SECRET', 'u')", session)
    odd = '{"role": "user",  "time": {"created": 1.0e3}, "agent": "\\u00e9"}'
    database.execute("INSERT INTO message VALUES ('msg_odd', ?, ?, 1, ?)", session, database.now + 100, odd)

    data = rows(database)

    tables = [next(iter(json.loads(line))) for line in data.splitlines()]
    counts = {table: tables.count(table) for table in set(tables)}
    assert {"message": 3, "part": 4, "event": 7, "session": 1, "todo": 1} == counts
    assert odd.encode() in data
    assert b"SECRET" not in data


def test_data_that_is_no_json_on_one_line_is_kept_as_a_text(database: OpenCodeDatabase) -> None:
    session = database.session()
    for name, content in (("a", "{broken"), ("b", '{\n"role": "user"}'), ("c", '"text"')):
        database.execute("INSERT INTO message VALUES (?, ?, ?, 1, ?)", f"msg_{name}", session, ord(name), content)

    lines = [json.loads(line) for line in rows(database).splitlines() if line.startswith(b'{"message"')]

    assert ["{broken", '{\n"role": "user"}', '"text"'] == [line["message"]["data"] for line in lines]
    unread = [event.why for event in ROWS.read(rows(database)) if isinstance(event, Output) and event.why]
    assert ["the data of the message is no JSON object"] * 3 == unread


def test_bytes_that_are_no_utf_8_are_kept(database: OpenCodeDatabase) -> None:
    session = database.session()
    asked = database.user(session, "Hello?")
    database.execute(
        "UPDATE part SET data = CAST(x'7b2274797065223a2274657874222c2274657874223a22fffe227d' AS TEXT)"
        " WHERE message_id = ?",
        asked,
    )

    assert b'"text":"\xff\xfe"' in rows(database)
    assert [("prompt", "\ufffd\ufffd")] == told(rows(database))


def test_a_database_of_another_version_has_fewer_tables(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "opencode.db")
    connection.execute("CREATE TABLE session (id text, time_created integer, title text)")
    connection.execute("INSERT INTO session VALUES ('ses_a', 1, 'Old')")

    assert b'{"session":{"id":"ses_a","time_created":1,"title":"Old"}}\n' == session_rows(connection, "ses_a")
    [version] = versions(connection)
    assert version.changed > 1 << 62, "no version of it is sure"
    connection.close()


def test_what_was_logged_stands_with_the_message_it_begins_with_and_never_moves(database: OpenCodeDatabase) -> None:
    session = database.session()
    database.turn(session, "One?", text("One."))
    database.turn(session, "Two?", text("Two."))
    before = [rows(database)[block.start : block.end] for block in blocks(rows(database))]
    asked, _ = database.turn(session, "Three?", text("Three."))
    database.log(session, "message.updated.1", info={"id": asked, "time": {"created": database.now}})

    after = [rows(database)[block.start : block.end] for block in blocks(rows(database))]

    assert before[:3] == after[:3]


# -- what they say -----------------------------------------------------------------------------------------------------


def test_a_turn_is_read_with_thoughts_calls_results_and_figures(database: OpenCodeDatabase) -> None:
    session = database.session()
    seal = {"anthropic": {"signature": "sig"}}
    thought = {"type": "reasoning", "text": "Hm.", "metadata": seal, "time": {"start": 1}}
    failed = tool("c2", status="error", error="no such file")
    database.turn(session, "Look.", thought, text("Looking."), tool("c1", "a b"), failed)

    events = ROWS.read(rows(database))

    spoken = kinds(events, Prompt, Thinking, Response, ToolCall, ToolResult)
    assert ["prompt", "thinking", "response", "tool_call", "tool_call", "tool_result", "tool_result"] == [
        event.kind for event in spoken
    ]
    assert [("sig", "Hm.")] == [(e.signature, e.content) for e in events if isinstance(e, Thinking)]
    assert [("a b", False), ("no such file", True)] == [
        (e.output, e.is_error) for e in events if isinstance(e, ToolResult)
    ]
    [metric] = [event for event in events if isinstance(event, Metric)]
    assert (100, 7, 40, 20, 0.000492) == (
        metric.input_tokens,
        metric.output_tokens,
        metric.cache_read_tokens,
        metric.cache_write_tokens,
        metric.cost_usd,
    )


@pytest.mark.parametrize(
    ("tokens", "output"),
    [
        ({"input": 1, "output": 7, "reasoning": 3}, 10),
        ({"input": 1, "output": 7, "reasoning": 3, "total": 11}, 10),
        ({"input": 1, "output": 7, "reasoning": 3, "total": 8}, 7),
        ({"output": 7}, 7),
    ],
)
def test_reasoning_counts_as_written_once(database: OpenCodeDatabase, tokens: dict[str, int], output: int) -> None:
    session = database.session()
    asked = database.user(session, "Hi")
    info = {"role": "assistant", "parentID": asked, "modelID": "m", "providerID": "p", "tokens": tokens, "cost": 1}
    database.message(session, info, text("Hello."))

    assert [output] == [e.output_tokens for e in ROWS.read(rows(database)) if isinstance(e, Metric)]


def test_texts_that_the_program_put_there_and_pictures_are_told_apart(database: OpenCodeDatabase) -> None:
    session = database.session()
    made = [text("Called the Read tool", synthetic=True), text("<system-reminder>\nPlan.", synthetic=True), PICTURE]
    database.user(session, "What is this?", *made)

    prompts = [event for event in ROWS.read(rows(database)) if isinstance(event, Prompt)]

    assert [("injected", "attachment:synthetic"), ("injected", "reminder"), ("user", "")] == [
        (prompt.source, prompt.origin) for prompt in prompts
    ]
    assert [("aGk=", 0)] == [(image.data, image.at) for image in prompts[-1].images]
    assert {prompts[0].message_id} == {prompt.message_id for prompt in prompts}


def test_in_a_sub_agents_session_the_user_is_another_agent(database: OpenCodeDatabase) -> None:
    database.session()
    database.turn(database.session("ses_sub", parent="ses_one"), "SUBTASK", text("Done."))

    [prompt] = [event for event in ROWS.read(rows(database, "ses_sub")) if isinstance(event, Prompt)]

    assert ("injected", "agent") == (prompt.source, prompt.origin)


def test_what_failed_is_told_and_not_sent(database: OpenCodeDatabase) -> None:
    session = database.session()
    asked = database.user(session, "Hi")
    error = {"name": "APIError", "data": {"message": "too busy"}}
    database.assistant(session, asked, text("I was abo"), error=error)
    broken = {"name": "MessageAbortedError", "data": {"message": "aborted"}}
    database.assistant(session, asked, text("Half"), tool("c1", status="running"), error=broken)

    data = rows(database)

    assert ["APIError: too busy", "MessageAbortedError: aborted"] == [
        event.message for event in ROWS.read(data) if isinstance(event, Error)
    ]
    assert [
        ("prompt", "Hi"),
        ("response", "Half"),
        ("tool_call", "bash"),
        ("tool_result", "[Tool execution was interrupted]"),
    ] == stands(data)


def test_a_part_of_an_unknown_type_is_told_as_such(database: OpenCodeDatabase) -> None:
    session = database.session()
    database.turn(session, "Hi", {"type": "hologram", "x": 1}, text("Hello."))

    unread = [event for event in ROWS.read(rows(database)) if isinstance(event, Output) and event.why]

    assert ["a part of an unknown type, 'hologram'"] == [event.why for event in unread]
    assert 1 == SCAN(rows(database), b"").opaque


def test_words_that_are_no_text_cannot_be_read_and_a_result_is_told_as_json(database: OpenCodeDatabase) -> None:
    session = database.session()
    state = {"status": "completed", "input": {}, "output": {"n": 1}}
    call = {"type": "tool", "tool": "bash", "callID": "c", "state": state}
    database.turn(session, "Hi", {"type": "text", "text": ["Hello."]}, {"type": "reasoning", "text": {"a": 1}}, call)
    events = list(ROWS.read(rows(database)))

    unread = [event.why for event in events if isinstance(event, Output) and event.why]
    assert ["a part whose words are no text"] * 2 == unread
    assert ['{"n":1}'] == [event.output for event in events if isinstance(event, ToolResult)]


def test_figures_that_no_request_can_have_are_none(database: OpenCodeDatabase) -> None:
    session = database.session()
    tokens = {"input": -5, "output": 10**30, "reasoning": 1 << 70, "cache": {"read": 3, "write": 0}}
    finish = {"type": "step-finish", "reason": "stop", "tokens": tokens, "cost": 0}
    database.message(session, {"role": "assistant", "modelID": "m"}, finish)
    [metric] = [event for event in ROWS.read(rows(database)) if isinstance(event, Metric)]

    assert (0, 0, 3) == (metric.input_tokens, metric.output_tokens, metric.cache_read_tokens)
    assert metric.reasoning_tokens is None
    encode_events([metric])


def test_columns_of_a_newer_version_are_kept_whatever_they_hold(database: OpenCodeDatabase) -> None:
    session = database.session()
    database.user(session, "Hello?")
    database.execute("ALTER TABLE message ADD COLUMN packed blob")
    database.execute('ALTER TABLE message ADD COLUMN "it\'s ""new""" text DEFAULT \'x\'')
    database.execute("UPDATE message SET packed = x'61620063'")
    [row] = [line["message"] for line in map(json.loads, rows(database).splitlines()) if "message" in line]

    assert ("ab\0c", "x") == (row["packed"], row['it\'s "new"'])
    assert [("prompt", "Hello?")] == told(rows(database))


# -- what stands -------------------------------------------------------------------------------------------------------


def test_what_was_gone_back_over_does_not_stand(database: OpenCodeDatabase) -> None:
    session = database.session()
    database.turn(session, "One?", text("One."))
    asked, _ = database.turn(session, "Two?", text("Two."))
    database.revert(session, asked)

    data = rows(database)

    assert [("prompt", "One?"), ("response", "One.")] == stands(data)
    assert [("prompt", "Two?"), ("response", "Two.")] == told(data)[2:]
    assert ROWS.context(data) == ROWS.context(ROWS.context(data))


def test_what_the_program_removed_is_read_from_its_log(database: OpenCodeDatabase) -> None:
    session = database.session()
    database.turn(session, "One?", text("One."))
    asked, _ = database.turn(session, "Two?", text("Two."), tool("c1"))
    database.revert(session, asked)
    database.clean_up(session, asked)
    database.turn(session, "Three?", text("Three."))

    data = rows(database)

    assert ["One?", "One.", "Two?", "Two.", "bash", "done", "Three?", "Three."] == [words for _, words in told(data)]
    assert ["One?", "One.", "Three?", "Three."] == [words for _, words in stands(data)]
    assert 3 == sum(isinstance(event, Metric) for event in ROWS.read(data))


def compact(database: OpenCodeDatabase, session: str, **part: str) -> None:
    info = {"role": "user", "agent": "build", "model": {"providerID": "loop", "modelID": "test-model"}}
    asked = database.message(session, info, {"type": "compaction", "auto": False, **part})
    database.assistant(session, asked, text("SUMMARY"), mode="compaction", summary=True)


def test_after_a_compaction_the_summary_and_what_follows_stand(database: OpenCodeDatabase) -> None:
    session = database.session()
    database.turn(session, "One?", text("One."))
    compact(database, session)
    database.turn(session, "Two?", text("Two."))

    data = rows(database)

    assert ["What did we do so far?", "SUMMARY", "Two?", "Two."] == [words for _, words in stands(data)]
    assert 1 == sum(isinstance(e, System) and e.subtype == "compact_boundary" for e in ROWS.read(data))
    assert 1 == SCAN(data, b"").tally.compactions


def test_turns_that_a_compaction_left_follow_its_summary(database: OpenCodeDatabase) -> None:
    session = database.session()
    database.turn(session, "One?", text("One."))
    kept, _ = database.turn(session, "Two?", text("Two."))
    compact(database, session, tail_start_id=kept)
    database.turn(session, "Three?", text("Three."))

    data = rows(database)

    told = ["What did we do so far?", "SUMMARY", "Two?", "Two.", "Three?", "Three."]
    assert told == [words for _, words in stands(data)]
    assert ROWS.context(data) == ROWS.context(ROWS.context(data))


def test_a_result_that_was_cleared_is_not_sent_and_not_forgotten(database: OpenCodeDatabase) -> None:
    session = database.session()
    time = {"start": 1, "end": 2, "compacted": 3}
    database.turn(session, "Look.", tool("c1", "long", time=time), text("Ok."))

    data = rows(database)

    assert ("tool_result", "long") in told(data)
    assert ("tool_result", "[Old tool result content cleared]") in stands(data)


# -- how they are cut --------------------------------------------------------------------------------------------------


def test_messages_are_closed_once_a_later_turn_is_answered(database: OpenCodeDatabase) -> None:
    session = database.session()
    database.turn(session, "One?", text("One."))
    assert [False] == [delta.closed for delta in SCAN(rows(database), b"").deltas]
    later = database.user(session, "Two?")
    assert [False] == [delta.closed for delta in SCAN(rows(database), b"").deltas]
    database.assistant(session, later, text("Two."))

    facts = SCAN(rows(database), b"")

    assert [True, True, False] == [delta.closed for delta in facts.deltas]
    assert len(rows(database)) == facts.deltas[-1].end


def test_a_sub_agent_is_linked_by_the_call_that_started_it(database: OpenCodeDatabase) -> None:
    session = database.session()
    given = {"prompt": "SUBTASK", "subagent_type": "general"}
    task = tool("c1", name="task", input=given, metadata={"sessionId": "ses_sub"})
    database.turn(session, "Delegate.", task)
    database.turn(database.session("ses_sub", parent=session), "SUBTASK", text("Done."))

    assert {"ses_sub": "c1"} == SCAN(rows(database), b"").calls
    assert session == SCAN(rows(database, "ses_sub"), b"").parent


def test_a_title_that_nobody_gave_is_the_first_prompt(database: OpenCodeDatabase) -> None:
    database.turn(database.session(title="New session - 2026-11-15T10:00:00.000Z"), "Hello?", text("Hello."))

    assert "Hello?" == SCAN(rows(database), b"").title


# -- what never changes ------------------------------------------------------------------------------------------------


def test_the_commits_of_a_session_are_what_they_were(database: OpenCodeDatabase, tmp_path: Path) -> None:
    """Frozen: a change here is a change of the format."""
    session = database.session("ses_e209d7d5effeuScj3qQPfa350s")
    database.turn(session, "One?", text("One."), tool("c1"))
    asked, _ = database.turn(session, "Two?", text("Two."))
    database.clean_up(session, asked)
    database.turn(session, "Three?", text("Three."))
    with harken.open(tmp_path / "store.db") as repo:
        list(Importer(repo.store, [runtime("opencode")]).run([database.path]))

        assert FROZEN == [commit.short for commit in repo.history(session)]


FROZEN = ["ctx-9f37a462", "ctx-a4afdf01", "ctx-ca70593e", "ctx-cf39c209", "ctx-8dfdcdb0"]
