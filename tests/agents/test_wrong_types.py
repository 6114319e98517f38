"""What is of the wrong type is refused in words, with a hint, before anything is logged of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harken import Agent, Session, SessionViewer, load_session
from harken.agents import Answer, Approve, Deny, Reply, Rewrite, hook
from harken.errors import BadRequest, HarkenError, ModelFailed
from support.stage import call, contents, open_stage, say


class Returning:
    """A model that returns what it was given."""

    name = "returning"

    def __init__(self, value: Any) -> None:
        self.value = value

    async def complete(self, request: Any) -> Any:
        """What it was given."""
        return self.value


@pytest.mark.parametrize(
    "value", [None, "text", Reply(tool_calls=("x",)), Reply(tool_calls=5), Reply(content=5), Reply(thinking=5)]
)
def test_a_model_that_returns_no_reply_has_failed(tmp_path: Path, value: Any) -> None:
    root, session = load_session(tmp_path / "log", language_model=Returning(value), ack="os")
    with session:
        root.harken("go")

        with pytest.raises(ModelFailed, match="a model returned") as failed:
            asyncio.run(root.response())

        assert "Reply(" in (failed.value.hint or "")
        assert root.is_pending
        assert [] == contents(root, "assistant")


@pytest.mark.parametrize("wrong", [{"content": 5}, {"content": "a", "substance": 5}])
def test_a_tool_whose_answer_is_no_text_has_failed(tmp_path: Path, wrong: dict[str, Any]) -> None:
    def count() -> Answer:
        """Count."""
        return Answer(**wrong)

    root, session = open_stage(tmp_path / "log", {"root": [call("count"), "done"]}, tools=[count])
    with session:
        assert "done" == say(root, "go")
        assert contents(root, "tool")[0].startswith("Error: an Answer is text")


@pytest.mark.parametrize("verdict", [Approve, Deny, Rewrite])
def test_a_verdict_says_text(verdict: Callable[[Any], object]) -> None:
    with pytest.raises(BadRequest, match="must be text") as refused:
        verdict(5)

    assert refused.value.hint


def test_a_guard_that_gives_such_a_verdict_refuses(tmp_path: Path) -> None:
    guard = hook("tool", name="guard")(lambda moment: Approve(say=5))  # type: ignore[arg-type]
    root, session = open_stage(tmp_path / "log", {"root": [call("task", name="A"), "done"]}, hooks=[guard])
    with session:
        assert "done" == say(root, "go")
        assert {} == dict(root.subagents)


@pytest.mark.parametrize(
    "options",
    [
        {"system_prompt": 5},
        {"window": "big"},
        {"window": -1},
        {"window": True},
        {"hooks": [print]},
        {"language_model": 5},
        {"language_model": object()},
    ],
)
def test_load_session_refuses_what_makes_no_sense(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(BadRequest) as refused:
        load_session(tmp_path / "log", **options)

    assert refused.value.hint


def test_an_agent_needs_a_session() -> None:
    with pytest.raises(BadRequest, match="session") as refused:
        Agent(None)  # type: ignore[arg-type]

    assert refused.value.hint


def test_an_agent_is_asked_for_by_text(tmp_path: Path) -> None:
    with Session(tmp_path / "log") as session:
        session.log_agent_created("a")
    with pytest.raises(BadRequest, match="None"):
        SessionViewer(tmp_path / "log").get_transcript(None)  # type: ignore[arg-type]


def test_who_replays_something_else_is_not_told_to_wait(tmp_path: Path) -> None:
    root, session = open_stage(tmp_path / "log", {"root": ["hello"]})
    with session:
        say(root, "go")

    root, session = load_session(tmp_path / "again", language_model=f"replay:{tmp_path / 'log'}", ack="os")
    with session, pytest.raises(ModelFailed, match="departs") as failed:
        say(root, "something else")

    assert "another model" in (failed.value.hint or "")


def test_a_file_that_is_no_log_is_no_recording(tmp_path: Path) -> None:
    (tmp_path / "hostname").write_text("machine\n")
    root, session = load_session(tmp_path / "log", language_model=f"replay:{tmp_path / 'hostname'}", ack="os")
    with session, pytest.raises(HarkenError, match="is not a session log"):
        say(root, "go")


def test_who_speaks_to_a_root_that_is_gone_is_not_told_to_spawn(tmp_path: Path) -> None:
    root, session = open_stage(tmp_path / "log", {"root": ["hello"]})
    with session:
        root.terminate()

        with pytest.raises(BadRequest, match="terminated") as refused:
            root.harken("hello?")

        assert "spawn" not in (refused.value.hint or "")
