"""What the records of a Qwen Code session say, and which of them its conversation is."""

from __future__ import annotations

import json
from pathlib import Path

from harken import runtimes
from harken.events import Error, Event, Image, Metric, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.formats import qwen_code
from harken.formats.qwen_code.read import read_conversation
from harken.runtimes.importer import Importer
from harken.store import MemoryStore
from harken.testing.formats import said
from support.qwen_lines import (
    GOT_IT,
    PICTURE,
    SUMMARY,
    USAGE,
    QwenSession,
    agent_session,
    answer,
    busy_session,
    call,
)

read = qwen_code.FORMAT.read


def prompts(session: QwenSession) -> list[tuple[str, str]]:
    return [(event.origin, event.content) for event in read(session.data) if isinstance(event, Prompt)]


def spoken(events: list[Event]) -> list[str]:
    return [words for kind, words in said(events) if kind in ("prompt", "response")]


# -- what is said ------------------------------------------------------------------------------------------------------


def test_an_answer_is_its_thought_its_words_and_its_calls() -> None:
    session = (
        QwenSession().user("Go.").says({"text": "hm", "thought": True}, "I look.", call("c1", "read_file", path="x"))
    )

    events = read(session.data)

    assert [Prompt, Metric, Thinking, Response, ToolCall] == [type(event) for event in events]
    assert ("c1", "read_file", b'{"path":"x"}') == (events[4].id, events[4].name, events[4].input)  # type: ignore[attr-defined]
    assert [0, 1, 2] == [event.index for event in events[2:]]
    assert "test-model" == events[3].model  # type: ignore[attr-defined]


def test_a_result_is_its_words_and_a_failure_says_so() -> None:
    session = QwenSession().user("Go.").says(call("c1"), call("c2"), call("c3"), call("c4"))
    session.result(answer("c1", output="fine")).result(answer("c2", error="no such file"), status="error")
    session.result(answer("c3", output="stopped"), status="cancelled").result(answer("c4", rows=[1]))

    results = [event for event in read(session.data) if isinstance(event, ToolResult)]

    assert ["fine", "no such file", "stopped", '{"rows":[1]}'] == [event.output for event in results]
    assert [False, True, True, False] == [event.is_error for event in results]


def test_pictures_of_a_result_stand_inside_it_or_behind_it() -> None:
    inside = answer("c1")
    inside["functionResponse"]["parts"] = [PICTURE]
    session = QwenSession().user("Go.").says(call("c1"), call("c2")).result(inside).result(answer("c2"), PICTURE)

    results = [event for event in read(session.data) if isinstance(event, ToolResult)]

    picture = Image(media_type="image/png", data=PICTURE["inlineData"]["data"])
    assert [(picture,), (picture,)] == [event.images for event in results]


def test_what_the_program_puts_before_and_behind_the_words_of_a_person_is_injected() -> None:
    hook = "<qwen:user-prompt-submit-context>\nbe kind\n</qwen:user-prompt-submit-context>"
    session = QwenSession().user("<system-reminder>\nx\n</system-reminder>\n\n", "Look at @a.", hook)

    assert [("system_reminder", True), ("", False), ("hook", True)] == [
        (event.origin, event.source == "injected") for event in read(session.data) if isinstance(event, Prompt)
    ]
    assert "Look at @a." == qwen_code.scan(session.data).title


def test_files_that_a_prompt_names_are_not_its_words() -> None:
    found = [origin for origin, _ in prompts(busy_session()) if origin in ("", "file")]

    assert ["", "", "file", "", ""] == found


def test_who_stands_in_the_users_place_is_told_by_the_record() -> None:
    session = QwenSession()
    for subtype in ("notification", "cron", "goal_runtime", "mid_turn_user_message"):
        session.user(subtype, subtype=subtype)

    assert ["task_notification", "cron", "goal", ""] == [origin for origin, _ in prompts(session)]
    assert [("agent", "SUB: look")] == prompts(agent_session())


def test_a_failed_request_is_an_error_and_bookkeeping_is_not_opaque() -> None:
    session = QwenSession().user("Go.")
    session.system("ui_telemetry", uiEvent={"event.name": "qwen-code.api_error", "error_message": "busy"})
    session.system("something_new", x=1).system("slash_command", phase="invocation", rawCommand="/about")

    events = read(session.data)

    assert ["busy"] == [event.message for event in events if isinstance(event, Error)]
    assert [""] == [event.why for event in events if isinstance(event, Output)]
    assert ["/about"] == [event.message for event in events if isinstance(event, System)]
    assert 1 == qwen_code.scan(session.data).tally.errors


def test_a_record_of_an_unknown_type_is_kept_with_the_reason() -> None:
    data = QwenSession().user("Go.").add("dream", message={}).data + b"{torn"

    assert ["unknown record type 'dream'", "the line is not a JSON object"] == [
        event.why for event in read(data) if isinstance(event, Output)
    ]
    assert 2 == qwen_code.scan(data).opaque


# -- the conversation as it stands -------------------------------------------------------------------------------------


def test_a_way_that_was_left_is_no_part_of_the_conversation() -> None:
    session = QwenSession().user("one").says("first")
    tail = session.tail
    session.user("two").says("second").back_to(tail).system("rewind", truncatedCount=1).user("three")

    assert ["one", "first", "three"] == spoken(read_conversation(session.data))
    assert ["one", "first", "two", "second", "three"] == spoken(read(session.data))


def test_a_compaction_stands_for_everything_before_it() -> None:
    events = read_conversation(busy_session().data)

    assert [SUMMARY, GOT_IT, "Are you there?"] == spoken(events)[:3]
    assert "compact_summary" == next(event.origin for event in events if isinstance(event, Prompt))


def test_the_last_of_several_compactions_counts_and_one_that_failed_does_not() -> None:
    session = QwenSession().user("one").compacted(("user", "S1")).user("two").compacted(("user", "S2")).user("three")
    session.system("chat_compression", info={"compressionStatus": 2}).user("four")

    assert ["S2", "three", "four"] == spoken(read_conversation(session.data))
    assert 2 == qwen_code.scan(session.data).tally.compactions


def test_records_with_one_uuid_are_fragments_of_one() -> None:
    session = QwenSession().user("one").says("first", told=False)
    session.records.append(session.records[-1] | {"message": {"role": "model", "parts": [call("c1")]}})
    session.result(answer("c1"))

    assert ["prompt", "response", "tool_call", "tool_result"] == [
        kind for kind, _ in said(read_conversation(session.data))
    ]


def test_two_records_on_one_line_are_both_read() -> None:
    data = QwenSession().user("one").says("first", told=False).data.replace(b"}\n{", b"}{")

    assert ["one", "first"] == spoken(read(data)) == spoken(read_conversation(data))
    assert data == qwen_code.context(data)


def test_what_is_beside_the_chain_is_never_its_end() -> None:
    session = QwenSession().user("one").says("first")
    tail = session.tail
    session.back_to(None).system("session_artifact_snapshot", artifacts=[])

    assert ["one", "first"] == spoken(read_conversation(session.data))
    assert tail == session.records[-2]["uuid"]


def test_a_parent_that_is_missing_ends_the_way_back_and_a_ring_does_too() -> None:
    lost = QwenSession().user("one").back_to("nowhere").user("two")
    ring = QwenSession().back_to("00000001-6b5b-4000-8000-000000000000").user("one").user("two")

    assert ["two"] == spoken(read_conversation(lost.data))
    assert ["one", "two"] == spoken(read_conversation(ring.data))


def test_a_command_that_the_program_answered_by_itself_was_never_sent() -> None:
    session = QwenSession().user("one").says("first").user("/about")
    session.system(
        "slash_command", phase="result", rawCommand="/about", outputHistoryItems=[{"type": "assistant", "text": "0.24"}]
    )

    assert ["one", "first", "two"] == spoken(read_conversation(session.user("two").data))


def test_what_was_said_aloud_to_another_model_is_not_sent() -> None:
    session = QwenSession().user("one").user("aloud", subtype="realtime_message").says("first")

    assert ["one", "first"] == spoken(read_conversation(session.data))
    assert ["one", "aloud", "first"] == spoken(read(session.data))


def test_a_fork_of_an_agent_begins_with_the_history_of_the_agent_that_started_it() -> None:
    session = QwenSession(agent="fork-1")
    history = [{"role": "user", "parts": [{"text": "before"}]}, {"role": "model", "parts": [{"text": "known"}]}]
    session.system("agent_bootstrap", kind="fork", history=history).user("SUB").says("done")

    assert ["before", "known", "SUB", "done"] == spoken(read_conversation(session.data))
    moved = qwen_code.rewrite(session.data, session_id="s", cwd="/w")
    assert ["before", "known", "SUB", "done"] == spoken(read_conversation(moved))


# -- usage -------------------------------------------------------------------------------------------------------------


def used(*sessions: QwenSession) -> tuple[int, int | None, int | None, int | None]:
    tallies = [qwen_code.scan(session.data).tally for session in sessions]
    figures = type(tallies[0]).merge(tallies).figures()
    return figures.requests, figures.usage.input, figures.usage.output, figures.usage.cache_read


def test_a_request_that_telemetry_and_answer_tell_counts_once() -> None:
    assert (2, 120, 14, 80) == used(QwenSession().user("a").says("b").user("c").says("d"))
    assert (2, 120, 14, 80) == used(QwenSession().user("a").says("b", told=False).user("c").says("d"))


def test_telemetry_may_come_late_and_helpers_between() -> None:
    late = QwenSession().user("a").says("b", told=False).asked()
    between = QwenSession().user("a").asked().asked(USAGE, "#x#0", subagent_id="x").says("b", told=False)

    assert (1, 60, 7, 40) == used(late)
    assert (2, 120, 14, 80) == used(between)


def test_what_left_no_answer_counts_too() -> None:
    """A summary, and an attempt that was made again."""
    assert (3, 180, 21, 120) == used(QwenSession().user("a").asked().says("b").asked(prompt="compress"))


def test_a_sub_agent_counts_by_its_own_file_where_that_is_there() -> None:
    main = QwenSession().user("a").says("b", call("c3", "agent", prompt="SUB: look"))
    for number in range(2):
        main.asked(USAGE, f"#general-purpose-c3#{number}", subagent_id="general-purpose-c3")

    assert (3, 180, 21, 120) == used(main)
    assert (3, 180, 21, 120) == used(main, agent_session("general-purpose-c3"))


def test_before_0_23_a_sub_agent_is_known_by_its_name_and_session() -> None:
    main = QwenSession().user("a").says("b", call("c3", "agent", prompt="SUB: look"))
    for number in range(2):
        main.asked(USAGE, f"#general-purpose-53483755#{number}", subagent_name="general-purpose")
    agent, elsewhere = agent_session(), QwenSession("other").user("a").says("b")
    elsewhere.asked(USAGE, "#general-purpose-1#0", subagent_name="general-purpose")
    for session in (main, agent, elsewhere):
        session.records = [record | {"version": "0.21.2"} for record in session.records]

    assert (3, 180, 21, 120) == used(main) == used(main, agent)
    assert (5, 300, 35, 200) == used(main, agent, elsewhere)


def test_a_fork_counts_what_it_copied_once() -> None:
    session = busy_session()
    copy = QwenSession()
    copy.records = [
        record | {"sessionId": "other", "forkedFrom": {"sessionId": session.session, "messageUuid": record["uuid"]}}
        for record in session.records
    ]

    assert used(session) == used(session, copy)
    assert session.session == qwen_code.scan(copy.data).forked_from


def test_zeros_say_that_nobody_counted() -> None:
    assert (1, None, None, None) == used(QwenSession().user("a").asked({}).says("b", usage={}))


# -- cuts --------------------------------------------------------------------------------------------------------------


def test_a_cut_falls_before_a_prompt_and_around_a_compaction_and_never_inside_a_call() -> None:
    session = busy_session()
    deltas = qwen_code.split(session.data)
    pieces = [session.data[delta.start : delta.end] for delta in deltas if delta.commit_type == "delta"]

    for piece in pieces:
        events = read(piece)
        calls = {event.id for event in events if isinstance(event, ToolCall)}
        assert calls == {event.id for event in events if isinstance(event, ToolResult)}
    [compaction] = [delta for delta in deltas if delta.commit_type == "compaction"]
    assert b'"chat_compression"' in session.data[compaction.start : compaction.end]
    first = [json.loads(piece.splitlines()[0]) for piece in pieces]
    assert ["user", "at_command", "user", "chat_compression", "user", "notification"] == [
        record.get("subtype", record["type"]) for record in first
    ]


def test_a_long_delta_is_cut_where_no_call_is_open() -> None:
    session = QwenSession().user("Go.")
    for number in range(6):
        session.says(call(f"c{number}")).result(answer(f"c{number}", output="x" * 100_000))

    deltas = qwen_code.split(session.data)

    assert 6 == len(deltas)
    assert all(b'"functionCall"' in session.data[delta.start : delta.end] for delta in deltas)


def test_the_names_of_a_sessions_commits_are_frozen(tmp_path: Path) -> None:
    """Whoever imported last year gets the same ids next year; a change here is a change of format."""
    file = tmp_path / "session.jsonl"
    file.write_bytes(busy_session().data)
    store = MemoryStore()

    [done] = Importer(store, [runtimes.get("qwen-code")]).run([file])

    assert [
        "ctx-461fef8e",
        "ctx-105a2c0e",
        "ctx-eb3ad5f2",
        "ctx-80f8ecca",
        "ctx-a5f888f0",
        "ctx-9e4ce97c",
        "ctx-cc9205ec",
    ] == [commit.short for commit in reversed(store.chain(done.tip))]


def test_the_example_in_the_description_is_cut_as_it_says(tmp_path: Path) -> None:
    section = (Path(__file__).parents[3] / "docs" / "FORMAT.md").read_text().partition("## Qwen Code: ")[2]
    file = tmp_path / "session.jsonl"
    file.write_text(section.partition("```jsonl\n")[2].partition("```")[0])
    store = MemoryStore()

    [done] = Importer(store, [runtimes.get("qwen-code")]).run([file])

    table = section.partition("|---|---|---|\n")[2].partition("\n\n")[0]
    names = [line.split("`")[1] for line in table.splitlines()]
    assert names == [commit.short for commit in reversed(store.chain(done.tip))]
