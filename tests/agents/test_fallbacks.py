"""A model that fails is asked again when it wants to be, then another one is; the log says so."""

from __future__ import annotations

import asyncio
import email.utils
from pathlib import Path
from typing import Any

import pytest

from harken import load_session
from harken.agents import ModelError, ModelOptions, Reply, Request, Retries, ScriptedModel, Streamed
from harken.agents.models.lite import retry_after
from harken.errors import ModelFailed, NotFound
from support.stage import call, contents, lines, open_stage, say


def script(name: str, *said: Any) -> ScriptedModel:
    return ScriptedModel({"agents": {"*": list(said)}}, name=f"scripted:{name}")


class TestRetries:
    def test_wait_as_long_as_the_provider_asks_for(self, tmp_path: Path) -> None:
        told: list[Streamed] = []
        root, session = open_stage(
            tmp_path / "log",
            {"root": [{"say": "At last.", "failures": 2, "wait": 0.02}]},
            stream=lambda _, piece: told.append(piece),
        )
        with session:
            assert "At last." == say(root, "Hello?")
            assert [0.02, 0.02] == [piece.pause for piece in told if piece.kind == "failed"]
            assert lines(session, event_type="error")[0]["message"].endswith("(asks to wait 0.02 s)")

    def test_do_not_wait_for_ever(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", {"root": [{"say": "Never.", "failures": 1, "wait": 3600}]})
        with session, pytest.raises(ModelFailed, match="scripted failure 1"):
            say(root, "Hello?")

    @pytest.mark.parametrize(
        ("planned", "asked", "pause"),
        [(1.0, None, 1.0), (1.0, 5.0, 5.0), (8.0, 5.0, 8.0), (None, 5.0, None), (1.0, 301.0, None)],
    )
    def test_take_the_longer_of_the_two(self, planned: float, asked: float, pause: float) -> None:
        failure = ModelError("busy", retryable=True, retry_after=asked)
        assert pause == Retries().pause_after(planned, failure)
        assert Retries().pause_after(planned, ModelError("refused", retry_after=asked)) is None


class Refusal(Exception):
    def __init__(self, **headers: str) -> None:
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


@pytest.mark.parametrize(
    ("refusal", "seconds"),
    [
        (Refusal(retry_after="12"), 12.0),
        (Refusal(Retry_After="1.5"), 1.5),
        (Refusal(retry_after_ms="250", retry_after="1"), 0.25),
        (Refusal(retry_after=email.utils.formatdate(1_000_030, usegmt=True)), 30.0),
        (Refusal(retry_after=email.utils.formatdate(999_000, usegmt=True)), 0.0),
        (Refusal(retry_after="-1"), None),
        (Refusal(retry_after="inf"), None),
        (Refusal(retry_after="soon"), None),
        (Refusal(), None),
        (ValueError(), None),
    ],
)
def test_what_a_provider_asks_for_is_read_from_its_headers(refusal: Exception, seconds: float | None) -> None:
    assert seconds == retry_after(refusal, 1_000_000 * 10**6)


class TestFallbacks:
    def test_another_model_answers_where_the_first_fails_for_good(self, tmp_path: Path) -> None:
        first = script("first", {"error": "no money"}, "I am back.")
        options = ModelOptions(fallbacks=(script("second", {"error": "no power"}), script("third", "I am here.")))
        told: list[Streamed] = []
        root, session = load_session(
            tmp_path / "log", language_model=first, options=options, ack="os", stream=lambda _, one: told.append(one)
        )
        with session:
            assert "I am here." == say(root, "Who is there?")
            notices = lines(session, subtype="fallback")
            assert [
                ("scripted:second", "scripted:first", "no money"),
                ("scripted:third", "scripted:second", "no power"),
            ] == [(one["message"], one["metadata"]["from"], one["metadata"]["why"]) for one in notices]
            assert {root.transcript[0]["message_id"]} == {one["cause"] for one in notices}
            (spoken,) = lines(session, role="assistant")
            assert "scripted:third" == spoken["model"]
            assert "scripted:first" == root.language_model
            assert "I am back." == say(root, "And now?"), "for that message alone"
        kinds = [piece.kind for piece in told]
        assert ["failed", "fallback", "failed", "fallback"] == kinds[:4]

    def test_are_asked_after_the_retries_of_the_one_before(self, tmp_path: Path) -> None:
        busy = script("busy", {"say": "Never.", "failures": 9})
        options = ModelOptions(fallbacks=(script("free", {"say": "Here.", "failures": 1}),))
        root, session = load_session(
            tmp_path / "log", language_model=busy, options=options, retries=Retries(attempts=3, first=0), ack="os"
        )
        with session:
            assert "Here." == say(root, "Who is there?")
            failed = [line["message"].split(":")[1] for line in lines(session, event_type="error")]
            assert ["busy", "busy", "busy", "free"] == failed

    def test_of_the_parent_are_those_of_the_agents_below_and_come_back_by_name(self, tmp_path: Path) -> None:
        (tmp_path / "second.json").write_text('{"agents": {"*": {"otherwise": "I am the second."}}}')
        parts = {"root": [call("task", name="Ann", prompt="Go."), "Done."], "Ann": [{"error": "no"}]}
        options = ModelOptions(fallbacks=("scripted:second.json",))
        root, session = open_stage(tmp_path / "log", parts, options=options)
        with session:
            say(root, "Go.")
            assert ["I am the second."] == contents(root, "tool")
        root, session = open_stage(tmp_path / "log", parts)
        with session:
            assert "I am the second." == say(root.subagents["Ann"], "Again?")

    def test_a_mistake_of_the_program_is_no_reason_for_another_model(self, tmp_path: Path) -> None:
        options = ModelOptions(fallbacks=(script("second", "Hello."),))
        root, session = load_session(tmp_path / "log", language_model="scripted:none.json", options=options, ack="os")
        with session, pytest.raises(NotFound):
            say(root, "Hello?")

    def test_a_model_that_was_shown_too_much_is_shown_less_before_another_is_asked(self, tmp_path: Path) -> None:
        class Narrow(ScriptedModel):
            async def complete(self, request: Request) -> Reply:
                if sum(len(str(message["content"])) for message in request.messages) > 500 and not request.purpose:
                    raise ModelError("too much", too_long=True)
                return Reply(content="Summed up." if request.purpose else "I see.")

        options = ModelOptions(fallbacks=(script("second", "Never."),))
        root, session = load_session(tmp_path / "log", language_model=Narrow({}), options=options, ack="os")
        with session:
            for _ in range(4):
                assert "I see." == say(root, "x" * 200)
            assert [] == lines(session, subtype="fallback")
            assert lines(session, event_type="transcript_edit")

    def test_a_log_cut_after_any_line_comes_to_the_same_end(self, tmp_path: Path) -> None:
        path = tmp_path / "log"

        def play() -> str:
            first = script("first", {"error": "no money"})
            options = ModelOptions(fallbacks=(script("second", "I am here."),))
            root, session = load_session(path, language_model=first, options=options, ack="os")
            with session:
                if not root.transcript:
                    root.harken("Who is there?")
                return asyncio.run(root.resume()) or root.transcript[-1]["content"]

        play()
        whole = path.read_bytes().splitlines(keepends=True)
        for cut in range(len(whole)):
            path.write_bytes(b"".join(whole[:cut]))
            assert "I am here." == play(), f"cut after line {cut}"
