"""What a session promises whoever logs into it."""

from __future__ import annotations

import copy
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from harken.errors import BadRequest, Closed, Conflict, NotFound
from harken.events import AgentCreated, Event, Prompt, Response, Thinking, ToolCall
from harken.log import LoggedString, Session, scan

INSTANT = 1_700_000_000_123_456


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def lines(path: Path) -> list[dict[str, Any]]:
    found = [record.data for record in scan(path)]
    assert None not in found
    return found  # type: ignore[return-value]


def call(call_id: str, name: str = "task", arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


class TestLoggedString:
    def test_it_is_a_string_that_knows_its_message(self) -> None:
        text = LoggedString("Hello", "msg_001")

        assert "Hello" == text
        assert "msg_001" == text.message_id
        assert LoggedString("Hello").message_id is None

    def test_it_survives_copying(self) -> None:
        text = LoggedString("Hello", "msg_001")

        copies = [copy.copy(text), copy.deepcopy(text)]
        copies += [pickle.loads(pickle.dumps(text, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]

        assert {("Hello", "msg_001", LoggedString)} == {(one, one.message_id, type(one)) for one in copies}

    def test_it_is_logged_as_plain_text(self, path: Path) -> None:
        with Session(path) as session:
            session.log_transcript_entry("a", {"role": "user", "content": LoggedString("Hello", "msg_001")})

        assert ["Hello"] == [line["content"] for line in lines(path)]


class TestTheLines:
    def test_every_line_has_an_id_a_kind_an_agent_and_a_time(self, path: Path) -> None:
        with Session(path, clock=lambda: INSTANT) as session:
            agent_id = session.allocate_agent_id()
            ids = [
                session.log_agent_created(agent_id, None, "Jack", "example/model-1", role="root"),
                session.log_transcript_entry(agent_id, {"role": "user", "content": "Hello"}),
            ]

        assert ["msg_001", "msg_002"] == ids
        stamp = "2023-11-14T22:13:20.123456Z"
        assert [
            {
                "message_id": "msg_001",
                "event_type": "agent_created",
                "agent_id": "agent_001",
                "timestamp": stamp,
                "name": "Jack",
                "language_model": "example/model-1",
                "role": "root",
            },
            {
                "message_id": "msg_002",
                "event_type": "transcript_entry",
                "agent_id": "agent_001",
                "timestamp": stamp,
                "role": "user",
                "content": "Hello",
            },
        ] == lines(path)

    def test_the_clock_is_asked_for_every_line(self, path: Path) -> None:
        instants = iter([INSTANT, INSTANT + 1, INSTANT + 2_000_000])
        with Session(path, clock=lambda: next(instants)) as session:
            for _ in range(3):
                session.log_piece_of_text("a", "x", "msg_001")

        assert ["20.123456Z", "20.123457Z", "22.123456Z"] == [line["timestamp"][17:] for line in lines(path)]

    def test_links_are_written_as_given(self, path: Path) -> None:
        with Session(path) as session:
            session.log_piece_of_text("a", "x", "m1")
            session.log_piece_of_text("a", "x", ["m1", "m2"])
            session.log_transcript_entry("a", {"role": "user", "content": "x"}, "m1")
            session.log_transcript_entry("a", {"role": "tool", "content": "x"}, cause=["m1", "m2"])

        assert [("m1", None), (["m1", "m2"], None), (None, "m1"), (["m1", "m2"], None)] == [
            (line.get("cause"), line.get("substance")) for line in lines(path)
        ]

    def test_substance_and_cause_together_are_refused(self, path: Path) -> None:
        with Session(path) as session:
            with pytest.raises(BadRequest, match="both"):
                session.log_transcript_entry("a", {"role": "user", "content": "x"}, "m1", cause="m2")

            assert [] == lines(path)

    @pytest.mark.parametrize("message", [{"role": "robot"}, {"content": "x"}, {"role": "user", "message_id": "m"}])
    def test_a_message_that_is_none_is_refused(self, path: Path, message: dict[str, Any]) -> None:
        with Session(path) as session, pytest.raises(BadRequest):
            session.log_transcript_entry("a", message)

    def test_what_cannot_be_written_leaves_no_trace(self, path: Path) -> None:
        with Session(path) as session:
            with pytest.raises(BadRequest):
                session.log_transcript_entry("a", {"role": "user", "content": object()})
            session.log_transcript_entry("a", {"role": "user", "content": "x"})

            assert ["x"] == [line["content"] for line in lines(path)]
            assert 1 == session.agents["a"].entries

    def test_what_a_provider_sends_empty_is_left_out(self, path: Path) -> None:
        with Session(path) as session:
            session.log_transcript_entry("a", {"role": "assistant", "content": "", "tool_calls": [call("c")]})
            session.log_transcript_entry("a", {"role": "assistant", "content": "x", "tool_calls": [], "name": None})

        assert [{"tool_calls"}, {"content"}] == [
            line.keys() & {"content", "tool_calls", "name"} for line in lines(path)
        ]

    def test_keys_we_do_not_know_stay_in_the_transcript(self, path: Path) -> None:
        message = {"role": "assistant", "content": "x", "thinking": "hm", "provider_specific": {"a": [1]}}
        with Session(path) as session:
            session.log_transcript_entry("a", message)

            assert [message] == session.transcript("a")

    def test_a_new_log_is_for_its_owner_alone(self, path: Path) -> None:
        umask = os.umask(0)
        try:
            Session(path).close()
        finally:
            os.umask(umask)

        assert 0o600 == path.stat().st_mode & 0o777


class TestAnyEvents:
    def test_events_without_an_id_or_a_time_get_one(self, path: Path) -> None:
        with Session(path, clock=lambda: INSTANT) as session:
            ids = session.append([Prompt(agent_id="a", content="x"), Prompt(agent_id="a", content="y", time=5)])

            assert ["msg_001", "msg_002"] == ids
            assert [
                Prompt(message_id="msg_001", agent_id="a", content="x", time=INSTANT),
                Prompt(message_id="msg_002", agent_id="a", content="y", time=5),
            ] == list(session.events())

    def test_parts_of_one_record_share_an_id_and_a_line(self, path: Path) -> None:
        parts: list[Event] = [
            Thinking(agent_id="a", content="hm"),
            Response(agent_id="a", content="yes", index=1),
            ToolCall(agent_id="a", id="c", name="go", input=b"{}", index=2),
        ]
        with Session(path) as session:
            assert ["msg_001"] == session.append(parts)

        assert 1 == len(lines(path))
        assert ["hm", "yes", "go"] == [
            lines(path)[0]["thinking"],
            lines(path)[0]["content"],
            lines(path)[0]["tool_calls"][0]["function"]["name"],
        ]

    def test_an_id_that_is_taken_is_refused(self, path: Path) -> None:
        with Session(path) as session:
            session.append([Prompt(message_id="mine", agent_id="a")])

            with pytest.raises(Conflict):
                session.append([Prompt(message_id="mine", agent_id="a")])

    def test_an_id_of_ours_given_by_others_is_not_given_again(self, path: Path) -> None:
        with Session(path) as session:
            session.append([Prompt(message_id="msg_002", agent_id="a")])

            assert ["msg_003", "msg_004"] == [session.log_piece_of_text("a", "x", "m") for _ in range(2)]


class TestIds:
    def test_ids_go_on_where_the_file_ends(self, path: Path) -> None:
        with Session(path) as session:
            jack = session.allocate_agent_id()
            session.log_agent_created(jack, name="Jack")
            session.log_agent_terminated(jack, reason="done")

        with Session.load(path) as session:
            jill = session.allocate_agent_id()
            session.log_agent_created(jill, name="Jill")

            assert ("agent_001", "agent_002") == (jack, jill)
            assert ["msg_001", "msg_002", "msg_003"] == list(session.registry.messages)
            assert [True, False] == [session.agents[agent_id].terminated for agent_id in (jack, jill)]

    def test_a_session_opened_by_its_name_alone_goes_on_too(self, path: Path) -> None:
        with Session(path) as session:
            session.log_piece_of_text("a", "x", "m")
        with Session(path) as session:
            assert "msg_002" == session.log_piece_of_text("a", "x", "m")

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ('{"message_id":"msg_041","event_type":"error","agent_id":""}', "msg_042"),
            ('{"message_id":"41","event_type":"error","agent_id":""}', "msg_042"),
            ('{"message_id":41,"event_type":"error","agent_id":""}', "msg_042"),
            ('{"message_id":"x","substance":"msg_041","event_type":"error","agent_id":""}', "msg_042"),
            ('{"message_id":"msg_041","event_type":"transcr', "msg_042"),
            ('{"message_id":"agent_jack","event_type":"error","agent_id":""}', "msg_001"),
            ('{"message_id":"msg_' + "9" * 5000 + '","event_type":"error","agent_id":""}', "msg_001"),
            ('{"message_id":"msg_1000","event_type":"error","agent_id":""}', "msg_1001"),
        ],
    )
    def test_a_fresh_id_is_above_every_number_in_the_file(self, path: Path, text: str, expected: str) -> None:
        path.write_text(text + "\n")

        with Session.load(path) as session:
            assert expected == session.log_piece_of_text("a", "x", "m")

    def test_an_agent_id_in_a_broken_line_is_not_given_again(self, path: Path) -> None:
        path.write_text('{"event_type":"agent_created","agent_id":"agent_007","name":\n')

        with Session.load(path) as session:
            assert "agent_008" == session.allocate_agent_id()


class TestTheRegistry:
    def test_an_agent_is_known_without_its_transcript(self, path: Path) -> None:
        with Session(path) as session:
            root, hook = session.allocate_agent_id(), session.allocate_agent_id()
            session.log_agent_created(root, language_model="m", role="root")
            made = session.log_transcript_entry(root, {"role": "assistant", "tool_calls": [call("c")]})
            born = session.log_agent_created(hook, made, "Censor", role="hook", attributes={"points": ["deliver"]})
            session.log_transcript_entry(hook, {"role": "system", "content": "Watch."})

        info = Session.load(path, readonly=True).agents[hook]
        assert ("Censor", "hook", root, made, born, 1, {"points": ["deliver"]}) == (
            info.name,
            info.role,
            info.parent,
            info.cause,
            info.created,
            info.entries,
            info.attributes,
        )

    def test_attributes_are_known_however_they_were_written(self, path: Path) -> None:
        with Session(path) as session:
            session.append([AgentCreated(agent_id="a", attributes=b'{ "points": [] }')])
            session.append([AgentCreated(agent_id="b", attributes=b"no object")])

        agents = Session.load(path, readonly=True).agents
        assert [{"points": []}, {}] == [agents["a"].attributes, agents["b"].attributes]

    def test_an_agent_may_speak_before_it_is_said_to_be_created(self, path: Path) -> None:
        with Session(path) as session:
            session.log_transcript_entry("agent_001", {"role": "system", "content": "You are root."})
            session.log_agent_created("agent_001", role="root")

        session = Session.load(path, readonly=True)
        assert [] == session.report
        assert 1 == session.agents["agent_001"].entries

    def test_an_agent_is_not_created_twice(self, path: Path) -> None:
        with Session(path) as session:
            session.log_agent_created("a")

            with pytest.raises(Conflict):
                session.log_agent_created("a")

    def test_only_who_exists_can_be_terminated(self, path: Path) -> None:
        with Session(path) as session, pytest.raises(NotFound):
            session.log_agent_terminated("nobody")

    def test_the_terminated_are_in_the_registry_and_not_in_the_tree(self, path: Path) -> None:
        with Session(path) as session:
            session.log_agent_created("root", role="root")
            session.log_agent_created("jack", parent="root", name="Jack")
            session.log_agent_created("jill", parent="root", name="Jill")
            session.log_agent_terminated("jack", reason="done")

            assert ["Jill"] == [info.name for info in session.children("root")]
            assert "done" == session.agents["jack"].reason

    def test_calls_without_a_result_are_known(self, path: Path) -> None:
        with Session(path) as session:
            session.log_transcript_entry("a", {"role": "assistant", "tool_calls": [call("c1"), call("c2", "discuss")]})
            session.log_transcript_entry("a", {"role": "tool", "tool_call_id": "c1", "content": "ok"})

            assert [("a", "msg_001", "c2", "discuss")] == [
                (waiting.agent_id, waiting.message_id, waiting.call_id, waiting.name) for waiting in session.open_calls
            ]

    def test_an_agent_below_itself_is_refused_its_parent(self, path: Path) -> None:
        with Session(path) as session:
            session.log_agent_created("a", parent="b")
            session.log_agent_created("b", parent="a")
            session.log_agent_created("c", parent="c")

            assert {"a": "b", "b": None, "c": None} == {key: info.parent for key, info in session.agents.items()}
            assert session.agents == Session.load(path, readonly=True).agents


class TestTranscripts:
    def say(self, session: Session, count: int) -> None:
        for at in range(count):
            session.log_transcript_entry("a", {"role": "user", "content": str(at)})

    def test_a_truncated_transcript_keeps_its_first_entries(self, path: Path) -> None:
        with Session(path) as session:
            self.say(session, 5)
            session.log_transcript_edit("a", "truncate", 2)
            session.log_transcript_entry("a", {"role": "user", "content": "after"})

            assert ["0", "1", "after"] == [message["content"] for message in session.transcript("a")]
            assert 6 == session.agents["a"].entries

    def test_a_transcript_can_be_truncated_to_nothing(self, path: Path) -> None:
        with Session(path) as session:
            self.say(session, 3)
            session.log_transcript_edit("a", "truncate", 0)

            assert [] == session.transcript("a")

    def test_a_compacted_stretch_is_one_message(self, path: Path) -> None:
        with Session(path) as session:
            self.say(session, 5)
            session.log_transcript_edit("a", "compact", 4, start=1, content="in short")

            assert ["0", "in short", "4"] == [message["content"] for message in session.transcript("a")]
            assert "user" == session.transcript("a")[1]["role"]

    @pytest.mark.parametrize(("action", "n", "start"), [("erase", 1, 0), ("truncate", -1, 0), ("compact", 1, 2)])
    def test_an_edit_that_makes_no_sense_is_refused(self, path: Path, action: str, n: int, start: int) -> None:
        with Session(path) as session, pytest.raises(BadRequest):
            session.log_transcript_edit("a", action, n, start=start)

    def test_a_record_on_several_lines_is_one_entry(self, path: Path) -> None:
        with Session(path) as session:
            session.append(
                [
                    ToolCall(agent_id="a", id="c1", name="look", input=b"{}"),
                    Response(agent_id="a", content="Looking.", index=1),
                    ToolCall(agent_id="a", id="c2", name="go", input=b"{}", index=2),
                ]
            )

            assert 2 == len(lines(path))
            (message,) = session.transcript("a")
            assert ("Looking.", ["c1", "c2"]) == (message["content"], [call["id"] for call in message["tool_calls"]])
            assert 1 == session.agents["a"].entries

    def test_all_transcripts_come_with_one_reading(self, path: Path) -> None:
        with Session(path) as session:
            for agent_id in ("a", "b", "a"):
                session.log_transcript_entry(agent_id, {"role": "user", "content": "x"})

            assert {"a": 2, "b": 1} == {key: len(value) for key, value in session.transcripts().items()}
            assert session.transcript("b") == session.transcripts(["b"])["b"]
            assert [] == session.transcript("nobody")


class TestObservers:
    def test_they_are_told_what_is_on_disk(self, path: Path) -> None:
        told: list[tuple[list[Event], int]] = []
        session = Session(path, observers=[lambda events: told.append((events, len(lines(path))))])
        with session:
            session.log_transcript_entry("a", {"role": "assistant", "thinking": "hm", "content": "yes"})
            with session.batch():
                session.log_piece_of_text("a", "x", "msg_001")
                session.log_piece_of_text("a", "y", "msg_001")
                assert 1 == len(told)

        assert [(["thinking", "response"], 1), (["piece_of_text", "piece_of_text"], 3)] == [
            ([event.kind for event in events], count) for events, count in told
        ]

    def test_what_they_raise_does_not_unlog_anything(self, path: Path) -> None:
        def fail(events: list[Event]) -> None:
            raise RuntimeError("not my day")

        with Session(path, observers=[fail]) as session, pytest.raises(RuntimeError):
            session.log_piece_of_text("a", "x", "m")

        assert 1 == len(lines(path))


class TestBatches:
    def test_nothing_is_written_before_the_end(self, path: Path) -> None:
        with Session(path) as session:
            with session.batch():
                session.log_agent_created("a", role="root")
                session.log_transcript_entry("a", {"role": "user", "content": "x"})
                assert 0 == path.stat().st_size
                assert [{"role": "user", "content": "x"}] == session.transcript("a")
                assert "a" in session.agents

            assert 2 == len(lines(path))

    def test_a_batch_in_a_batch_ends_with_the_outer_one(self, path: Path) -> None:
        with Session(path) as session:
            with session.batch():
                with session.batch():
                    session.log_piece_of_text("a", "x", "m")
                assert [] == lines(path)

            assert 1 == len(lines(path))

    def test_what_was_logged_before_an_exception_happened_all_the_same(self, path: Path) -> None:
        with Session(path) as session:
            with pytest.raises(RuntimeError), session.batch():
                session.log_piece_of_text("a", "x", "m")
                raise RuntimeError

            assert 1 == len(lines(path))


class TestOpening:
    def test_a_log_that_is_not_there_cannot_be_loaded(self, path: Path) -> None:
        with pytest.raises(NotFound):
            Session.load(path)
        with pytest.raises(NotFound):
            Session(path, readonly=True)
        with pytest.raises(NotFound):
            Session(path / "below" / "nothing")

    def test_a_folder_is_no_log(self, tmp_path: Path) -> None:
        with pytest.raises(BadRequest):
            Session(tmp_path, readonly=True)

    def test_a_reader_cannot_write(self, path: Path) -> None:
        Session(path).close()

        with pytest.raises(BadRequest, match="reading only"):
            Session(path, readonly=True).log_piece_of_text("a", "x", "m")

    @pytest.mark.parametrize("how", ["events", "records", "scan", "records_of", "appended"])
    def test_what_reads_a_closed_session_says_so_and_reads_no_other_file(self, tmp_path: Path, how: str) -> None:
        for name in ("a", "b"):
            with Session(tmp_path / name, ack="os") as made, made.batch():
                made.log_agent_created("agent_001", None, "root")
                for _ in range(400):
                    made.log_transcript_entry("agent_001", {"role": "user", "content": name * 400})
        session = Session(tmp_path / "a")
        arguments = {"records_of": [["agent_001"]], "appended": [0]}.get(how, [])
        begun, later = getattr(session, how)(*arguments), getattr(session, how)(*arguments)
        next(begun)
        session.close()
        with Session(tmp_path / "b"), pytest.raises(Closed):
            list(begun)

        with pytest.raises(Closed):
            next(later)
        with pytest.raises(Closed):
            list(getattr(session, how)(*arguments))

    def test_a_closed_session_cannot_write_and_can_be_closed_again(self, path: Path) -> None:
        session = Session(path)
        session.close()
        session.close()

        with pytest.raises(BadRequest, match="closed"):
            session.log_piece_of_text("a", "x", "m")

    def test_no_other_acknowledgement_is_known(self, path: Path) -> None:
        with pytest.raises(BadRequest):
            Session(path, ack="maybe")  # type: ignore[arg-type]


class TestTheDoor:
    """What is wrong is told at once, and leaves no line and no gap in the ids."""

    @pytest.mark.parametrize(
        "log",
        [
            lambda session: session.log_transcript_entry(None, {"role": "user", "content": "x"}),
            lambda session: session.log_transcript_entry(5, {"role": "user", "content": "x"}),
            lambda session: session.log_transcript_entry("", {"role": "user", "content": "x"}),
            lambda session: session.log_transcript_entry("a", "not a message"),
            lambda session: session.log_transcript_entry("a", None),
            lambda session: session.log_transcript_entry("a", {"role": ["user"]}),
            lambda session: session.log_transcript_entry("a", {"role": "user", "content": "x"}, 5),
            lambda session: session.log_transcript_entry("a", {"role": "user", "content": "x"}, ""),
            lambda session: session.log_transcript_entry("a", {"role": "user", "content": "x"}, cause=[None]),
            lambda session: session.log_transcript_entry("a", {"role": "user", "content": "x"}, cause=7),
            lambda session: session.log_transcript_entry("a", {"role": "user", "content": float("nan")}),
            lambda session: session.log_transcript_entry("a", {"role": "user", "content": [{"x": float("inf")}]}),
            lambda session: session.log_transcript_entry("a", {"role": "user", "content": (2**70, float("nan"))}),
            lambda session: session.log_transcript_entry("a", {"role": "user", "content": {"x": object()}}),
            lambda session: session.log_piece_of_text("a", None, "m"),
            lambda session: session.log_agent_created("b", name=5),
            lambda session: session.log_agent_created(None),
            lambda session: session.log_agent_terminated("a", reason=5),
            lambda session: session.log_transcript_edit("a", "truncate", 1.0),
            lambda session: session.append([Prompt(agent_id=5)]),  # type: ignore[arg-type]
            lambda session: session.append([Prompt(agent_id="a", cause=("m", None))]),  # type: ignore[arg-type]
            lambda session: session.append([{"role": "user"}]),
        ],
    )
    def test_refuses_with_a_hint_what_cannot_be_meant(self, path: Path, log: Any) -> None:
        with Session(path) as session:
            session.log_agent_created("a")

            with pytest.raises(BadRequest) as refused:
                log(session)

            assert refused.value.hint
            assert 1 == len(lines(path))
            session.log_transcript_entry("a", {"role": "user", "content": "x"})

    def test_takes_an_empty_list_of_causes_for_none(self, path: Path) -> None:
        with Session(path) as session:
            session.log_transcript_entry("a", {"role": "user", "content": "x"}, cause=[])
            session.log_transcript_entry("a", {"role": "user", "content": "x"}, "msg_001", cause=())
            session.log_piece_of_text("a", "x", [])

        assert [False, False, False] == ["cause" in line for line in lines(path)]

    @pytest.mark.parametrize("depth", [195, 260, 600, 995, 998, 999, 1000, 5000])
    def test_takes_no_nesting_that_a_reader_would_not_follow(self, path: Path, depth: int) -> None:
        content: Any = "x"
        for _ in range(depth):
            content = [content]
        with Session(path) as session:
            try:
                session.log_transcript_entry("a", {"role": "user", "content": content})
            except BadRequest as refused:
                assert refused.hint
                assert depth >= 1000
                assert b"" == path.read_bytes()
            else:
                assert depth < 1000
        assert [] == [
            problem for problem in Session.load(path, readonly=True).report if problem.what.startswith("nest")
        ]

    def test_the_word_null_and_nothing_inside_a_message_are_welcome(self, path: Path) -> None:
        message = {"role": "user", "content": [{"type": "text", "text": "null and void", "more": None}]}
        with Session(path) as session:
            session.log_transcript_entry("a", message)

            assert [message] == session.transcript("a")
