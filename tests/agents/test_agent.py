"""An agent hears, acts and speaks, and the log says so in the shape of the specification."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harken import Agent, LoggedString, Session, SessionViewer, load_session
from harken.agents import HookAgent, Retries, ScriptedModel, make_tool
from harken.errors import BadRequest, ModelFailed
from harken.events import Tokens
from harken.events.tally import Tally
from support.stage import call, contents, lines, open_stage, say

CAFE = {
    "root": [
        call("task", name="Jack", system_prompt="You work in HR."),
        call("task", name="Jill", system_prompt="You write."),
        call("discuss", prompt="You meet in a café.", speakers=["Jack", "Jill"]),
        "They have met.",
        call("discuss", prompt="Go on."),
        "They went on.",
    ],
    "Jack": ["Hi, I'm Jack.", "Bye."],
    "Jill": ["Hello, I'm Jill.", "See you."],
}


class TestTheLogOfADiscussion:
    @pytest.fixture
    def events(self, tmp_path: Path) -> list[dict]:
        root, session = open_stage(tmp_path / "cafe.jsonl", CAFE)
        with session:
            say(root, "Create Jack and Jill for a café discussion")
            return list(session.records())

    def test_is_that_of_the_specification_with_one_result(self, events: list[dict]) -> None:
        """And with causes that it leaves out: of instructions, of what was said for a call, and of the result."""
        shape = [
            (event["event_type"], event["agent_id"], event.get("role"), event.get("substance"), event.get("cause"))
            for event in events
        ]

        entry = "transcript_entry"
        assert [
            ("agent_created", "agent_001", "root", None, None),
            (entry, "agent_001", "user", None, None),
            (entry, "agent_001", "assistant", None, None),
            ("agent_created", "agent_002", "child", None, "msg_003"),
            (entry, "agent_002", "system", None, "msg_003"),
            (entry, "agent_001", "tool", None, None),
            (entry, "agent_001", "assistant", None, None),
            ("agent_created", "agent_003", "child", None, "msg_007"),
            (entry, "agent_003", "system", None, "msg_007"),
            (entry, "agent_001", "tool", None, None),
            (entry, "agent_001", "assistant", None, None),
            ("piece_of_text", "agent_001", None, None, "msg_011"),
            (entry, "agent_002", "user", "msg_012", None),
            (entry, "agent_003", "user", "msg_012", None),
            (entry, "agent_002", "assistant", None, "msg_011"),
            (entry, "agent_003", "user", "msg_015", None),
            (entry, "agent_003", "assistant", None, "msg_011"),
            (entry, "agent_002", "user", "msg_017", None),
            (entry, "agent_001", "tool", None, ["msg_015", "msg_017"]),
            (entry, "agent_001", "assistant", None, None),
        ] == shape

    def test_has_the_replies_with_their_speakers(self, events: list[dict]) -> None:
        by_id = {event["message_id"]: event.get("content") for event in events}

        assert "Created subagent: Jack" == by_id["msg_006"]
        assert "[Jack]: Hi, I'm Jack." == by_id["msg_016"]
        assert "[Jill]: Hello, I'm Jill." == by_id["msg_018"]
        assert "[Jack]: Hi, I'm Jack.\n\n[Jill]: Hello, I'm Jill." == by_id["msg_019"]


class TestTheTree:
    def test_subagents_are_found_by_name(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", CAFE)
        with session:
            say(root, "go")

            assert ["Jack", "Jill"] == list(root.subagents)
            assert "agent_002" == root.subagents["Jack"].agent_id
            assert root is root.subagents["Jack"].parent
            assert "scripted:stage" == root.subagents["Jack"].language_model

    def test_a_name_is_given_once(self, tmp_path: Path) -> None:
        parts = {"root": [call("task", name="Jack"), call("task", name="Jack"), "ok"]}
        root, session = open_stage(tmp_path / "log", parts)
        with session:
            say(root, "go")

            assert ["Created subagent: Jack", "Error: root already has a subagent 'Jack'"] == contents(root, "tool")
            assert 2 == len(session.agents)

    @pytest.mark.parametrize("name", ["", " ", "a\nb", "[Jill]", "x" * 81, "\x1b[31m"])
    def test_a_name_that_could_pass_for_something_else_is_refused(self, tmp_path: Path, name: str) -> None:
        root, session = open_stage(tmp_path / "log", {"root": [call("task", name=name), "ok"]})
        with session:
            say(root, "go")

            assert contents(root, "tool")[0].startswith("Error: ")
            assert not root.subagents

    def test_agents_cannot_be_nested_without_end(self, tmp_path: Path) -> None:
        parts = {
            "*": {"rules": [{"when": "Error", "say": "too deep"}], "otherwise": call("task", name="Next", prompt="go")}
        }
        root, session = open_stage(tmp_path / "log", parts | {"root": [call("task", name="Next", prompt="go"), "done"]})
        with session:
            assert "done" == say(root, "go")
            assert 12 == len(session.agents)

    def test_a_terminated_agent_and_all_below_it_leave(self, tmp_path: Path) -> None:
        parts = {
            "root": [
                call("task", name="Jill", prompt="think"),
                call("terminate", name="Jill"),
                "gone",
                call("discuss"),
                "alone",
            ],
            "Jill": [call("task", name="Inner"), "I have an inner voice."],
        }
        root, session = open_stage(tmp_path / "log", parts)
        with session:
            say(root, "go")
            assert {} == dict(root.subagents)
            assert [False, True, True] == [info.terminated for info in session.agents.values()]

            assert "alone" == say(root, "and now?")
            assert "Error: there is nobody to speak" == contents(root, "tool")[-1]

    def test_a_tree_leaves_the_log_in_one_write(self, tmp_path: Path) -> None:
        """A kill in between would leave half of it."""
        root, session = open_stage(tmp_path / "log", {})
        with session:
            jill = root.spawn("Jill")
            jill.spawn("Inner").spawn("Innermost")
            jill.add_hook(HookAgent(name="Guard", points=("tool",), instructions=""))
            told: list[list[str]] = []
            session.observers.append(lambda events: told.append([event.agent_id for event in events]))

            jill.terminate()

            assert [["agent_004", "agent_003", "agent_005", "agent_002"]] == told
            assert {} == dict(root.subagents)


class TestTask:
    def test_with_a_prompt_gives_the_reply_as_the_same_content(self, tmp_path: Path) -> None:
        parts = {
            "root": [call("task", name="Ann", system_prompt="Be brief.", prompt="What is 2+2?"), "4"],
            "Ann": ["Four."],
        }
        root, session = open_stage(tmp_path / "log", parts)
        with session:
            say(root, "go")

            (reply,) = lines(session, agent_id="agent_002", role="assistant")
            (result,) = lines(session, agent_id="agent_001", role="tool")
            (piece,) = lines(session, event_type="piece_of_text")
            (heard,) = lines(session, agent_id="agent_002", role="user")
            assert ("Four.", reply["message_id"]) == (result["content"], result["substance"])
            assert ("What is 2+2?", piece["message_id"]) == (heard["content"], heard["substance"])


class TestDiscuss:
    def test_remembers_who_speaks_and_who_listens(self, tmp_path: Path) -> None:
        parts = {
            "root": [
                *(call("task", name=name) for name in ("A", "B", "C")),
                call("discuss", prompt="first", speakers=["A"], listeners=["C"]),
                call("discuss", prompt="second"),
                call("discuss", prompt="third", speakers=["B"]),
                "ok",
            ],
            "A": ["a1", "a2"],
            "B": ["b1"],
        }
        root, session = open_stage(tmp_path / "log", parts)
        with session:
            say(root, "go")
            assert ["first", "[A]: a1", "second", "[A]: a2", "third", "[B]: b1"] == contents(
                root.subagents["C"], "user"
            )
            assert ["third"] == contents(root.subagents["B"], "user")
            assert (["B"], ["C"]) == (root.speakers, root.listeners)

        again, session = open_stage(tmp_path / "log", parts)
        with session:
            assert (["B"], ["C"]) == (again.speakers, again.listeners)

    def test_nobody_hears_his_own_line_again(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", CAFE)
        with session:
            say(root, "go")
            say(root, "go on")

            assert ["You meet in a café.", "[Jill]: Hello, I'm Jill.", "Go on.", "[Jill]: See you."] == contents(
                root.subagents["Jack"], "user"
            )

    def test_a_single_speaker_without_listeners_is_answered_in_plain_words(self, tmp_path: Path) -> None:
        parts = {"root": [call("task", name="Inner"), call("discuss", prompt="What now?"), "ok"], "Inner": ["Be kind."]}
        root, session = open_stage(tmp_path / "log", parts)
        with session:
            say(root, "go")

            result = lines(session, role="tool")[-1]
            assert "Be kind." == result["content"]
            assert [lines(session, content="Be kind.")[0]["message_id"]] == result["cause"]

    def test_an_unknown_name_is_an_error_result_and_not_remembered(self, tmp_path: Path) -> None:
        parts = {"root": [call("task", name="A"), call("discuss", speakers=["Nobody"]), "ok"]}
        root, session = open_stage(tmp_path / "log", parts)
        with session:
            say(root, "go")

            assert "Error: root has no subagent 'Nobody'" == contents(root, "tool")[-1]
            assert root.speakers is None
            assert lines(session, role="tool")[-1]["is_error"] is True

    def test_an_agent_that_has_heard_nothing_is_not_made_to_speak(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", {"root": [call("task", name="A"), call("discuss"), "ok"]})
        with session:
            assert "ok" == say(root, "go")
            assert "Error: A has heard nothing yet" == contents(root, "tool")[-1]


class TestHearing:
    def test_a_plain_text_is_content_of_its_own(self, tmp_path: Path) -> None:
        with Session(tmp_path / "log") as session:
            agent = Agent(session, "Be brief.")
            message_id = agent.harken("Hello")

            assert ("agent_created", "transcript_entry", "transcript_entry") == tuple(
                event["event_type"] for event in session.records()
            )
            assert "substance" not in lines(session, message_id=message_id)[0]

    def test_a_logged_string_is_the_same_content_again(self, tmp_path: Path) -> None:
        with Session(tmp_path / "log") as session:
            jack, jill = Agent(session), Agent(session)
            said = jack.harken("Hello")
            jill.harken(LoggedString("[Jack]: Hello", said))

            assert said == jill.transcript[-1]["substance"]

    def test_inform_puts_new_text_into_the_log_once(self, tmp_path: Path) -> None:
        with Session(tmp_path / "log") as session:
            jack, jill = Agent(session, name="Jack"), Agent(session, name="Jill")
            jack.inform(jill, "The key is under the mat.")
            jack.inform(jill, LoggedString("as I said", jill.transcript[-1]["substance"]))

            (piece,) = lines(session, event_type="piece_of_text")
            assert jack.agent_id == piece["agent_id"]
            assert [piece["message_id"]] * 2 == [entry["substance"] for entry in jill.transcript]

    def test_whoever_logs_the_creation_gives_name_and_cause(self, tmp_path: Path) -> None:
        """As in the specification: the constructor allocates, the tool logs, and the instructions follow."""
        with Session(tmp_path / "log") as session:
            root = Agent(session)
            asked = root.harken("make Jack")
            jack = Agent(session, "You are Jack.")
            session.log_agent_created(jack.agent_id, asked, "Jack", "some-model")
            jack.harken("hi")

            assert ["agent_created", "transcript_entry", "agent_created", "transcript_entry", "transcript_entry"] == [
                event["event_type"] for event in session.records()
            ]
            assert ["system", "user"] == [entry["role"] for entry in jack.transcript]
            assert root.agent_id == session.agents[jack.agent_id].parent

    def test_an_initial_transcript_of_a_new_agent_is_logged(self, tmp_path: Path) -> None:
        examples = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]
        with Session(tmp_path / "log") as session:
            agent = Agent(session, "Be brief.", examples)
            agent.harken("3+3?")

            assert ["Be brief.", "2+2?", "4", "3+3?"] == [
                entry["content"] for entry in session.transcript(agent.agent_id)
            ]


class TestSpeaking:
    def test_the_reply_carries_its_own_id(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", {"root": ["Hello."]})
        with session:
            reply = say(root, "Hi")

            assert isinstance(reply, LoggedString)
            assert "Hello." == lines(session, message_id=reply.message_id)[0]["content"]

    def test_thinking_is_kept_beside_the_words(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", {"root": [{"think": "He is polite.", "say": "Hello."}]})
        with session:
            say(root, "Hi")

            assert "He is polite." == lines(session, role="assistant")[0]["thinking"]

    def test_a_model_that_fails_now_and_then_is_asked_again(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", {"root": [{"say": "At last.", "failures": 2}]})
        with session:
            assert "At last." == say(root, "Hi")

    def test_a_model_that_goes_on_failing_surfaces_and_the_turn_stays_open(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", {"root": [{"say": "At last.", "failures": 4}]})
        with session:
            with pytest.raises(ModelFailed, match="scripted failure 3 of 4"):
                say(root, "Hi")
            assert root.is_pending

            assert "At last." == asyncio.run(root.resume())

    def test_a_failure_inside_a_discussion_is_taken_up_where_it_happened(self, tmp_path: Path) -> None:
        parts = CAFE | {"Jill": [{"say": "Hello, I'm Jill.", "failures": 3}]}
        root, session = open_stage(tmp_path / "log", parts)
        with session:
            with pytest.raises(ModelFailed):
                say(root, "go")

            assert "They have met." == asyncio.run(root.resume())
            assert ["Hi, I'm Jack."] == contents(root.subagents["Jack"], "assistant")
            assert 1 == len(lines(session, content="[Jack]: Hi, I'm Jack."))

    def test_an_agent_that_would_wait_for_itself_is_told_so(self, tmp_path: Path) -> None:
        async def ask_me(call) -> str:
            return await call.agent.response()

        ask_me.__annotations__["call"] = "Call"
        root, session = open_stage(tmp_path / "log", {"root": [call("ask_me"), "ok"]}, tools=[ask_me])
        with session:
            assert "ok" == say(root, "go")
            assert "middle of a turn" in contents(root, "tool")[0]

    def test_two_who_ask_the_same_agent_are_answered_one_after_the_other(self, tmp_path: Path) -> None:
        async def both() -> list[str]:
            root.harken("one")
            first = asyncio.create_task(root.response())
            second = asyncio.create_task(root.response())
            return [await first, await second]

        root, session = open_stage(tmp_path / "log", {"root": [{"say": "a", "delay": 0.01}, "b"]})
        with session:
            assert ["a", "b"] == asyncio.run(both())

    def test_a_model_without_an_end_is_stopped(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from harken.agents import turn

        monkeypatch.setattr(turn, "MAX_STEPS", 5)
        root, session = open_stage(tmp_path / "log", {"root": {"otherwise": call("nothing")}})
        with session, pytest.raises(ModelFailed, match="without saying anything"):
            say(root, "go")


class TestToolsThatGoWrong:
    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            ("{", "do not fit"),
            ('{"n": "many"}', "do not fit"),
            ('{"m": 1}', "do not fit"),
            ("[" * 100_000, "do not fit"),
            ("null", "do not fit"),
            ('{"n": 1}', "ZeroDivisionError"),
        ],
    )
    def test_give_an_error_result_and_the_turn_goes_on(self, tmp_path: Path, arguments: str, expected: str) -> None:
        def divide(n: int) -> float:
            return n / 0

        parts = {"root": [{"call": {"tool": "divide", "arguments": arguments}}, "I see."]}
        root, session = open_stage(tmp_path / "log", parts, tools=[divide])
        with session:
            assert "I see." == say(root, "go")
            (result,) = lines(session, role="tool")
            assert result["content"].startswith("Error: ") and expected in result["content"]
            assert result["is_error"] is True

    def test_a_tool_that_does_not_exist_is_an_error_result(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", {"root": [call("fly"), "I cannot."]})
        with session:
            assert "I cannot." == say(root, "go")
            assert "Error: there is no tool 'fly'" == contents(root, "tool")[0]

    def test_an_endless_result_is_cut(self, tmp_path: Path) -> None:
        root, session = open_stage(
            tmp_path / "log", {"root": [call("shout"), "ok"]}, tools=[make_tool(lambda: "a" * 30_000_000, name="shout")]
        )
        with session:
            assert "ok" == say(root, "go")
            assert len(contents(root, "tool")[0]) < 1_100_000


def test_a_new_agent_has_the_demo_model(tmp_path: Path) -> None:
    with Session(tmp_path / "log") as session:
        agent = Agent(session)

        assert "demo" == agent.language_model
        assert "not a language model" in say(agent, "hello")


def test_the_world_is_shared_by_the_agents_of_a_session(tmp_path: Path) -> None:
    model = ScriptedModel({"agents": {"*": {"otherwise": "yes"}}}, name="scripted:mine")
    with Session(tmp_path / "log") as session:
        root = Agent(session, language_model=model)
        child = root.spawn("Child")

        assert root.pool is child.pool
        assert "yes" == say(child, "there?")


def test_usage_is_logged_with_the_message_it_belongs_to(tmp_path: Path) -> None:
    from harken.agents import Reply, Request
    from harken.agents.models import Usage

    class Counting:
        name = "counting"

        async def complete(self, request: Request) -> Reply:
            return Reply(content="yes", usage=Usage(tokens=Tokens(input=7, output=2)))

    root, session = load_session(tmp_path / "log", language_model=Counting(), retries=Retries(attempts=1))
    with session:
        reply = say(root, "count")

        (metric,) = lines(session, event_type="metric")
        assert (7, 2, reply.message_id) == (metric["input_tokens"], metric["output_tokens"], metric["cause"])


def test_a_session_opened_for_reading_cannot_be_spoken_to(tmp_path: Path) -> None:
    root, session = open_stage(tmp_path / "log", {"root": ["hi"]})
    with session:
        say(root, "hello")

    root, session = load_session(tmp_path / "log", readonly=True)
    with session, pytest.raises(BadRequest, match="reading only"):
        root.harken("again")
    assert ["hi"] == [line["content"] for line in SessionViewer(tmp_path / "log").extract_dialog(["agent_001"])][1:]


def test_a_reply_that_was_copied_into_another_agent_counts_once(tmp_path: Path) -> None:
    root, session = open_stage(tmp_path / "log", {"J": ["the only reply"], "Clone": {"otherwise": "my own"}})
    with session:
        j = root.spawn("J", "s")
        say(j, "go")
        clone = Agent(session, "clone", list(j.transcript), name="Clone", parent=root)
        say(clone, "go on")

        assert ["the only reply", "my own"] == contents(clone, "assistant")
        assert 2 == Tally.of(session.events()).responses
