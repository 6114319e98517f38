"""Models are heard while they answer; what was heard is in the log first, and marked as partial where it broke off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from harken import load_session
from harken.agents import Agent, ModelError, Reply, Request, Retries, ScriptedModel, Streamed, asking
from harken.errors import ModelFailed
from support.stage import call, contents, lines, open_stage, say


class Told:
    """Keeps what it is told, and what the log held at that moment."""

    def __init__(self) -> None:
        self.pieces: list[tuple[str, str, str]] = []
        self.unlogged: list[str] = []

    def __call__(self, agent: Agent, piece: Streamed) -> None:
        self.pieces.append((agent.label, piece.kind, piece.text))
        if piece.kind == "text":
            kept = "".join(
                str(line.get("metadata", {}).get("text") or line.get("content") or "")
                for line in agent.session.records_of([agent.agent_id])
            )
            if piece.text not in kept:
                self.unlogged.append(piece.text)

    def text(self, who: str = "root") -> str:
        return "".join(text for name, kind, text in self.pieces if (name, kind) == (who, "text"))


@pytest.fixture(autouse=True)
def every_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words are shown one by one, and not gathered for a moment."""
    monkeypatch.setattr(asking, "MOMENT", 0.0)


def test_a_reply_is_heard_word_by_word(tmp_path: Path) -> None:
    told = Told()
    root, session = open_stage(tmp_path / "log", {"root": ["One two three."]}, stream=told)
    with session:
        assert "One two three." == say(root, "Count.")
    texts = [text for _, kind, text in told.pieces if kind == "text"]
    assert ["One ", "two ", "three."] == texts
    assert ("root", "reply", "One two three.") == told.pieces[-1]
    assert [] == told.unlogged


def test_a_thought_right_before_the_reply_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Thinker:
        name = "scripted:thinker"

        async def complete(self, request: Request) -> Reply:
            raise AssertionError("it is streamed")

        async def stream(self, request: Request) -> AsyncIterator[Streamed | Reply]:
            yield Streamed(kind="thinking", text="Who knows?")
            yield Reply(content="I do.", thinking="Who knows?")

    monkeypatch.setattr(asking, "MOMENT", 60.0)
    told = Told()
    root, session = load_session(tmp_path / "log", language_model=Thinker(), stream=told)
    with session:
        assert "I do." == say(root, "Who knows?")
    assert [("thinking", "Who knows?"), ("text", "I do."), ("reply", "I do.")] == [one[1:] for one in told.pieces]


def test_what_is_gathered_within_a_moment_costs_no_line_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "MOMENT", 60.0)
    told = Told()
    root, session = open_stage(tmp_path / "log", {"root": ["One two three."]}, stream=told)
    with session:
        say(root, "Count.")
        assert [] == lines(session, event_type="system")
    assert [("root", "text", "One two three."), ("root", "reply", "One two three.")] == told.pieces


def test_what_is_held_is_shown_while_the_model_keeps_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "MOMENT", 0.01)
    shown = asyncio.Event()

    class Hesitating:
        name = "hesitating"

        async def complete(self, request: Request) -> Reply:
            raise AssertionError("it is streamed")

        async def stream(self, request: Request) -> Any:
            yield Streamed(text="Well, ")
            await asyncio.wait_for(shown.wait(), 20)  # nothing comes until the first words were shown
            yield Streamed(text="yes.")
            yield Reply(content="Well, yes.")

    root, session = load_session(
        tmp_path / "log", language_model=Hesitating(), ack="os", stream=lambda agent, piece: shown.set()
    )
    with session:
        assert "Well, yes." == say(root, "Is it so?")


def test_agents_below_are_heard_too_and_thoughts_apart(tmp_path: Path) -> None:
    told = Told()
    parts = {
        "root": [call("task", name="Ann", prompt="Who?"), "Done."],
        "Ann": [{"think": "Who am I?", "say": "I am Ann."}],
    }
    root, session = open_stage(tmp_path / "log", parts, stream=told)
    with session:
        say(root, "Go.")
    assert ("I am Ann.", "Done.") == (told.text("Ann"), told.text())
    assert ("root", "call", "task") in told.pieces
    assert ("Ann", "thinking", "Who am I?") in told.pieces


def test_a_model_that_cannot_be_streamed_is_shown_at_once(tmp_path: Path) -> None:
    class Whole:
        name = "whole"

        async def complete(self, request: Request) -> Reply:
            return Reply(content="All of it.")

    told = Told()
    root, session = load_session(tmp_path / "log", language_model=Whole(), ack="os", stream=told)
    with session:
        say(root, "Go.")
    assert [("root", "text", "All of it."), ("root", "reply", "All of it.")] == told.pieces


def test_where_nobody_listens_nothing_is_streamed(tmp_path: Path) -> None:
    root, session = open_stage(tmp_path / "log", {"root": [{"say": "One two.", "failures": 1, "breaks": 1}]})
    with session:
        assert "One two." == say(root, "Count.")
        assert [] == lines(session, event_type="system")


def test_an_attempt_that_breaks_off_is_told_and_begun_anew(tmp_path: Path) -> None:
    told = Told()
    parts = {"root": [{"say": "One two three.", "failures": 1, "breaks": 2}]}
    root, session = open_stage(tmp_path / "log", parts, stream=told, retries=Retries(first=0))
    with session:
        assert "One two three." == say(root, "Count.")
        partial = lines(session, subtype="partial")
        assert [("One ", 1, 0), ("two ", 1, 4), ("One ", 2, 0)] == [
            (line["metadata"]["text"], line["metadata"]["attempt"], line["metadata"]["at"]) for line in partial[:3]
        ]
        assert {root.transcript[0]["message_id"]} == {line["cause"] for line in partial}
        assert "" == root.partial
        assert ["One two three."] == contents(root, "assistant")
    failed = next(piece for piece in told.pieces if piece[1] == "failed")
    assert ("root", "failed", "scripted failure 1 of 1") == failed


def test_every_piece_says_to_which_attempt_it_belongs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "MOMENT", 60.0)  # the rest is shown when the message is in the log
    told: list[tuple[str, int]] = []
    parts = {"root": [{"say": "One two.", "call": {"tool": "look", "arguments": {}}, "failures": 1}, "Done."]}
    root, session = open_stage(
        tmp_path / "log",
        parts,
        stream=lambda _, piece: told.append((piece.kind, piece.attempt)),
        retries=Retries(first=0),
    )
    with session:
        say(root, "Count.")
    assert [("failed", 1), ("text", 2), ("call", 2), ("reply", 2), ("text", 1), ("reply", 1)] == told


def test_what_was_heard_before_a_failure_for_good_is_partial_until_the_turn_is_over(tmp_path: Path) -> None:
    parts = {"root": [{"say": "One two three.", "error": "cut", "breaks": 2}]}
    root, session = open_stage(tmp_path / "log", parts, stream=Told())
    with session:
        with pytest.raises(ModelFailed):
            say(root, "Count.")
        assert "One two " == root.partial
    root, session = open_stage(tmp_path / "log", {"root": ["Here it is."]})
    with session:
        assert "One two " == root.partial
        assert "Here it is." == asyncio.run(root.resume())
        assert "" == root.partial


def test_of_several_attempts_the_last_is_what_is_left(tmp_path: Path) -> None:
    parts = {"root": [{"say": "One two three.", "failures": 9, "breaks": 2}]}
    root, session = open_stage(tmp_path / "log", parts, stream=Told(), retries=Retries(attempts=3, first=0))
    with session:
        with pytest.raises(ModelFailed):
            say(root, "Count.")
        assert "One two " == root.partial


def test_a_log_cut_after_any_line_keeps_what_was_heard_and_comes_to_the_same_end(tmp_path: Path) -> None:
    """Whatever was shown before the cut is a prefix of what the agent says in the end."""
    path, parts = tmp_path / "log", {"root": ["One two three.", "Four five."]}
    root, session = open_stage(path, parts, stream=Told())
    with session:
        assert "One two three." == say(root, "Count.")
        assert "Four five." == say(root, "Go on.")
    whole = path.read_bytes().splitlines(keepends=True)
    heard = []
    for cut in range(2, len(whole)):
        path.write_bytes(b"".join(whole[:cut]))
        root, session = open_stage(path, parts, stream=Told())
        with session:
            heard.append(root.partial)
            if root.is_pending:
                asyncio.run(root.resume())
            assert "" == root.partial
            assert ["One two three.", "Four five."][: root.turns] == contents(root, "assistant")
    assert ["", "One ", "One two ", "One two three."] == heard[:4]


def test_who_cancels_the_turn_keeps_what_was_heard(tmp_path: Path) -> None:
    async def give_up(root: Agent) -> None:
        turn = asyncio.ensure_future(root.response())
        while not root.partial:
            await asyncio.sleep(0.001)
        turn.cancel()
        await turn

    root, session = open_stage(tmp_path / "log", {"root": [{"say": "One two three.", "delay": 60}]}, stream=Told())
    with session:
        root.harken("Count.")
        model = root.model
        assert isinstance(model, ScriptedModel)

        async def slow(request: Request) -> Any:
            yield Streamed(text="One ")
            await asyncio.sleep(60)
            yield Reply(content="One two.")

        model.stream = slow  # type: ignore[method-assign]
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(give_up(root))
        assert "One " == root.partial


def test_a_listener_that_fails_is_told_no_more_and_stops_nothing(tmp_path: Path) -> None:
    def broken(agent: Agent, piece: Streamed) -> None:
        raise ValueError("no screen")

    root, session = open_stage(tmp_path / "log", {"root": ["One two.", "Three."]}, stream=broken)
    with session:
        with pytest.warns(UserWarning, match="ValueError: no screen"):
            assert "One two." == say(root, "Count.")
        assert "Three." == say(root, "Go on.")


def test_a_stream_that_ends_without_a_message_is_a_failure(tmp_path: Path) -> None:
    class Mute:
        name = "mute"

        async def complete(self, request: Request) -> Reply:
            raise ModelError("not asked")

        async def stream(self, request: Request) -> Any:
            yield Streamed(text="Hm")

    root, session = load_session(tmp_path / "log", language_model=Mute(), ack="os", stream=Told())
    with session, pytest.raises(ModelFailed, match="not a Reply"):
        say(root, "Speak.")


def test_a_replay_of_a_streamed_session_is_exact(tmp_path: Path) -> None:
    parts = {
        "root": [call("task", name="Ann", prompt="Who?"), {"say": "She is Ann.", "failures": 1, "breaks": 1}],
        "Ann": ["I am Ann."],
    }
    root, session = open_stage(tmp_path / "log", parts, stream=Told())
    with session:
        say(root, "Go.")
    told = Told()
    root, session = load_session(tmp_path / "again", language_model=f"replay:{tmp_path / 'log'}", ack="os", stream=told)
    with session:
        assert "She is Ann." == say(root, "Go.")
    assert "She is Ann." == told.text()
