"""Tools are plain functions; one that asks for the running call can do what `discuss` does, outside Harken."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest

from harken import Agent, LoggedString, SessionViewer
from harken.agents import Answer, Call, make_tool
from harken.agents.entries import as_entry
from harken.agents.tools import as_text
from harken.errors import BadRequest
from support.stage import call, contents, lines, open_stage, say


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(msgspec.Struct):
    x: int
    y: int = 0


class TestTheSchema:
    def test_comes_from_the_signature_and_the_docstring(self) -> None:
        def look_up(
            word: Annotated[str, "The word to find"], limit: int = 3, where: Literal["here", "there"] = "here"
        ) -> str:
            """Find a word."""
            return word

        assert {
            "type": "function",
            "function": {
                "name": "look_up",
                "description": "Find a word.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "word": {"type": "string", "description": "The word to find"},
                        "limit": {"type": "integer", "default": 3},
                        "where": {"enum": ["here", "there"], "default": "here"},
                    },
                    "required": ["word"],
                    "additionalProperties": False,
                },
            },
        } == make_tool(look_up).schema()

    def test_leaves_out_the_running_call(self) -> None:
        def shout(call: Call, text: str) -> None: ...

        assert ["text"] == list(make_tool(shout).schema()["function"]["parameters"]["properties"])

    def test_finds_the_running_call_where_annotations_cannot_be_resolved(self) -> None:
        class Local:
            pass

        def shout(thing: Local, call: Call) -> None: ...

        tool = make_tool(shout)

        assert "call" == tool.call_parameter
        assert ["thing"] == list(tool.arguments.__struct_fields__)

    def test_knows_enums_lists_and_structs(self) -> None:
        def paint(colour: Colour, points: list[Point], name: str | None = None) -> None: ...

        tool = make_tool(paint)

        assert {"colour": Colour.RED, "points": [Point(1, 2)], "name": None} == tool.bind(
            '{"colour": "red", "points": [{"x": 1, "y": 2}]}'
        )
        assert "Point" in tool.schema()["function"]["parameters"]["$defs"]

    def test_an_untyped_parameter_takes_anything(self) -> None:
        def echo(what) -> str:
            return str(what)

        assert {"what": [1, {"a": None}]} == make_tool(echo).bind('{"what": [1, {"a": null}]}')

    @pytest.mark.parametrize("function", [lambda: 1, lambda *words: 1, lambda **more: 1])
    def test_a_function_that_cannot_be_described_is_refused(self, function: Any) -> None:
        with pytest.raises(BadRequest):
            make_tool(function)

    def test_a_default_list_is_not_shared(self) -> None:
        def gather(words: list[str] = []) -> None: ...  # noqa: B006

        tool = make_tool(gather)
        tool.bind("{}")["words"].append("x")

        assert {"words": []} == tool.bind("")


class TestTheResult:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ("words", "words"),
            (None, "Done."),
            (3, "3"),
            ({"a": [1]}, '{"a":[1]}'),
            (Point(1, 2), '{"x":1,"y":2}'),
            ({2, 1}, "[1,2]"),
            (Path("a"), "a"),
            (True, "true"),
            (float("nan"), "null"),
        ],
    )
    def test_is_text(self, value: Any, text: str) -> None:
        assert text == as_text(value)

    def test_may_be_the_same_content_as_a_message(self, tmp_path: Path) -> None:
        def recall(call: Call) -> LoggedString:
            first = call.agent.transcript[0]
            return LoggedString(first["content"].upper(), first["message_id"])

        root, session = open_stage(tmp_path / "log", {"root": [call("recall"), "ok"]}, tools=[recall])
        with session:
            say(root, "hello")

            (result,) = lines(session, role="tool")
            assert ("HELLO", root.transcript[0]["message_id"]) == (result["content"], result["substance"])


async def broadcast(call: Call, text: str) -> str:
    """Tell every subagent the same."""
    await call.deliver(text, call.agent.subagents.values())
    return "Everybody has heard it."


async def whisper(call: Call, to: str, text: str) -> str:
    """Tell one subagent something in secret."""
    call.agent.inform(call.agent.subagents[to], text)
    return f"{to} has heard it."


async def translate(call: Call, speaker: str, to: str) -> Answer:
    """Let one subagent speak and another hear it in his own language."""
    said = await call.agent.subagents[speaker].response()
    french = {"Good day.": "Bonjour."}[said]
    heard = LoggedString(f"[{speaker}]: {french}", said.message_id)
    call.agent.subagents[to].harken(heard)
    return Answer(content=str(said), cause=(said.message_id or "",))


class TestToolsOfOnesOwn:
    PARTS = {  # noqa: RUF012
        "root": [
            call("task", name="Ann"),
            call("task", name="Luc"),
            call("broadcast", text="The train is late."),
            call("whisper", to="Ann", text="It is not coming."),
            call("translate", speaker="Ann", to="Luc"),
            "ok",
        ],
        "Ann": ["Good day."],
    }

    @pytest.fixture
    def viewer(self, tmp_path: Path) -> SessionViewer:
        root, session = open_stage(tmp_path / "log", self.PARTS, tools=[broadcast, whisper, translate])
        with session:
            say(root, "go")
            assert ["[Ann]: Bonjour."] == contents(root.subagents["Luc"], "user")[-1:]
        return SessionViewer(tmp_path / "log")

    def test_a_broadcast_is_one_text_heard_by_all(self, viewer: SessionViewer) -> None:
        (line,) = [line for line in viewer.extract_dialog(["Ann", "Luc"]) if "train" in line["content"]]

        assert ["Ann", "Luc"] == [viewer.name(heard["agent_id"]) for heard in viewer.who_heard(line["message_id"])]

    def test_a_whisper_is_known_to_one(self, viewer: SessionViewer) -> None:
        assert viewer.knows("Ann", "not coming")["knows"]
        assert not viewer.knows("Luc", "not coming")["knows"]

    def test_a_translation_is_the_same_content_in_other_words(self, viewer: SessionViewer) -> None:
        (case,) = viewer.said_vs_heard()

        assert ("Good day.", "Bonjour.") == (case["said"], case["heard"])
        assert ["Good day."] == [line["content"] for line in viewer.extract_dialog(["Ann", "Luc"])][-1:]

    def test_what_a_tool_wrote_leads_back_to_its_call(self, viewer: SessionViewer) -> None:
        (line,) = [line for line in viewer.extract_dialog(["Luc"]) if "train" in line["content"]]
        flow = viewer.trace_message_flow(line["message_id"])

        assert "broadcast" == flow[-2]["tool_calls"][0]["function"]["name"]


def recruit(call: Call, name: str, trade: str) -> str:
    """Hire somebody for a trade; a plain function, as any program may have one."""
    hired = call.agent.spawn(name, f"Your trade is {trade}.")
    call.agent.inform(hired, "Welcome.")
    return f"{name} is hired."


class TestAToolThatMakesAgents:
    PARTS = {  # noqa: RUF012
        "root": [
            {
                "call": [
                    {"tool": "recruit", "arguments": {"name": "Ann", "trade": "joinery"}},
                    {"tool": "recruit", "arguments": {"name": "Bob", "trade": "masonry"}},
                ]
            },
            call("discuss", speakers=["Ann"]),
            "ok",
        ],
        "Ann": ["Good wood."],
    }

    def test_puts_them_below_the_one_who_calls_it(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", self.PARTS, tools=[recruit])
        with session:
            say(root, "hire")
            assert ["Ann", "Bob"] == list(root.subagents)
            assert ["Ann is hired.", "Bob is hired.", "Good wood."] == contents(root, "tool")
            # Both come from the message that holds the calls, not from what was last in the transcript.
            (asked,) = {line["cause"] for line in lines(session, event_type="agent_created", role="child")}
            assert 2 == len(lines(session, message_id=asked)[0]["tool_calls"])

        root, session = open_stage(tmp_path / "log", self.PARTS, tools=[recruit])
        with session:
            assert ["Ann", "Bob"] == list(root.subagents)
            assert ["Your trade is masonry."] == contents(root.subagents["Bob"], "system")

    def test_does_not_put_them_there_by_hand(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", {})
        with session:
            root.spawn("Ann")
            with pytest.raises(BadRequest) as refused:
                root.subagents["Bob"] = Agent(session, "You are Bob.")
            assert "agent.spawn(" in (refused.value.hint or "")
            with pytest.raises(BadRequest) as refused:
                del root.subagents["Ann"]
            assert "terminate()" in (refused.value.hint or "")
            assert ["Ann"] == list(root.subagents)


def test_a_tool_that_fails_beyond_words_gives_an_error_result(tmp_path: Path) -> None:
    class Speechless(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    def fall() -> None:
        raise Speechless

    root, session = open_stage(tmp_path / "log", {"root": [call("fall"), "ok"]}, tools=[fall])
    with session:
        assert "ok" == say(root, "go")
        assert "Error: Speechless (which could not be put into words)" == contents(root, "tool")[0]


def test_what_a_tool_says_that_is_no_text_reaches_the_model_as_the_log_is_read(tmp_path: Path) -> None:
    """A file whose name is no UTF-8 has halves of surrogate pairs in it, and no provider takes these."""

    def listing() -> str:
        """List the files."""
        return "caf\udce9.txt"

    root, session = open_stage(tmp_path / "log.jsonl", {"root": [call("listing"), "One file."]}, tools=[listing])
    with session:
        say(root, "Which files? caf\udce9")
        assert ["Which files? caf\ufffd"] == contents(root, "user")
        assert ["caf\ufffd.txt"] == contents(root, "tool")
        assert [as_entry(line) for line in session.entries(root.agent_id)] == root.transcript
    assert "caf\\udce9.txt" in (tmp_path / "log.jsonl").read_text()
