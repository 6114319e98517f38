"""Models: from a script, from a recording, and from LiteLLM where it is installed."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harken import load_session
from harken.agents import ModelError, Reply, Request, Retries, ScriptedModel, open_model, tool_call
from harken.agents.models import lite
from harken.agents.models.lite import LiteLLMModel, read_answer
from harken.errors import BadRequest, ModelFailed, NotFound
from support.discussion import DIALOG, HOOKS, dialog, play
from support.stage import say


def ask(model: Any, **request: Any) -> Any:
    return asyncio.run(model.complete(Request(messages=request.pop("messages", []), **request)))


def test_a_call_whose_arguments_are_an_object_is_run_with_them(tmp_path: Path) -> None:
    class Objects:
        name = "scripted:objects"

        async def complete(self, request: Request) -> Reply:
            shown.extend(request.messages)
            call = tool_call("c1", "pay", {"whom": "Zoë"})
            return Reply(content="Paid.") if request.turn else Reply(tool_calls=(call,))

    def pay(whom: str = "nobody") -> str:
        paid.append(whom)
        return "paid"

    shown: list[Any] = []
    paid: list[str] = []
    root, session = load_session(tmp_path / "log", language_model=Objects(), tools=[pay])
    with session:
        assert "Paid." == say(root, "Pay Zoë.")
    assert ["Zoë"] == paid
    (arguments,) = [call["function"]["arguments"] for one in shown for call in one.get("tool_calls") or ()]
    assert {"whom": "Zoë"} == json.loads(arguments)


class TestScripted:
    def test_the_line_that_is_due_follows_from_the_turn(self) -> None:
        model = ScriptedModel({"agents": {"Jack": ["one", "two"]}})

        assert "two" == ask(model, path=("root", "Jack"), turn=1).content
        assert "one" == ask(model, path=("root", "Jack"), turn=0).content

    @pytest.mark.parametrize(
        ("path", "expected"),
        [
            (("root",), "top"),
            (("Chief",), "top"),
            (("root", "Jack"), "by name"),
            (("root", "Jill", "Jack"), "by path"),
            (("root", "Ann"), "anybody"),
        ],
    )
    def test_a_part_is_found_by_path_then_name_then_the_star(self, path: tuple[str, ...], expected: str) -> None:
        model = ScriptedModel(
            {"agents": {"Jack": ["by name"], "root/Jill/Jack": ["by path"], "*": ["anybody"], "root": ["top"]}}
        )

        assert expected == ask(model, path=path).content

    def test_rules_follow_when_the_lines_are_used_up(self) -> None:
        part = {"lines": ["first"], "rules": [{"when": "rain", "say": "Take a coat."}], "otherwise": "Hm."}
        model = ScriptedModel({"agents": {"*": part}})
        heard = [{"role": "user", "content": "It looks like RAIN."}]

        assert "first" == ask(model, messages=heard).content
        assert "Take a coat." == ask(model, messages=heard, turn=1).content
        assert "Hm." == ask(model, turn=1).content

    def test_a_script_at_its_end_is_an_error_that_asking_again_does_not_mend(self) -> None:
        with pytest.raises(ModelError) as caught:
            ask(ScriptedModel({"agents": {"root": ["one"]}}), path=("root",), turn=1)

        assert not caught.value.retryable

    def test_json_and_toml_say_the_same(self, tmp_path: Path) -> None:
        line = {"think": "hm", "call": [{"tool": "task", "arguments": {"name": "Ann"}}]}
        (tmp_path / "s.json").write_text(json.dumps({"agents": {"root": [line]}}))
        (tmp_path / "s.toml").write_text(
            '[[agents.root]]\nthink = "hm"\ncall = [{tool = "task", arguments = {name = "Ann"}}]'
        )

        first, second = (
            ask(open_model(f"scripted:{tmp_path / name}"), path=("root",)) for name in ("s.json", "s.toml")
        )

        assert first == second
        assert '{"name":"Ann"}' == first.tool_calls[0]["function"]["arguments"]

    @pytest.mark.parametrize(
        "text", ["{", '{"agents": {"x": [{"sya": "typo"}]}}', '{"agents": 3}', "[" * 5000, '{"agents": {"x": [1]}}']
    )
    def test_a_script_that_does_not_fit_says_so(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "bad.json").write_text(text)

        with pytest.raises(BadRequest, match=r"bad\.json"):
            open_model(f"scripted:{tmp_path / 'bad.json'}")

    def test_a_script_that_is_not_there_says_so(self) -> None:
        with pytest.raises(NotFound, match="no script"):
            open_model("scripted:/nowhere/x.json")

    def test_a_script_is_found_beside_the_log(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A session begun in one folder is resumed from another."""
        (tmp_path / "s.json").write_text('{"agents": {"root": ["one", "two"]}}')
        monkeypatch.chdir(tmp_path)
        root, session = load_session("log.jsonl", language_model="scripted:s.json")
        with session:
            say(root, "hello")
        monkeypatch.chdir("/")

        root, session = load_session(tmp_path / "log.jsonl")
        with session:
            assert "two" == say(root, "again")


class TestReplay:
    def test_answers_as_recorded(self, tmp_path: Path) -> None:
        play(tmp_path / "recorded.jsonl", ack="os")
        model = open_model(f"replay:{tmp_path / 'recorded.jsonl'}")

        root, session = load_session(tmp_path / "again.jsonl", name="root", language_model=model, hooks=HOOKS, ack="os")
        with session:
            assert "They have met." == say(root, "Create Jack and Jill.")
        assert DIALOG == dialog(tmp_path / "again.jsonl")

    def test_a_recording_at_its_end_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "empty.jsonl").write_text("")
        root, session = load_session(tmp_path / "log", language_model=f"replay:{tmp_path / 'empty.jsonl'}")

        with session, pytest.raises(ModelFailed, match="no message 1 of 'root'"):
            say(root, "hello")

    def test_a_recording_that_is_not_there_says_so(self) -> None:
        with pytest.raises(NotFound):
            open_model("replay:/nowhere/x.jsonl")


class TestLiteLLM:
    def test_an_answer_is_read(self) -> None:
        function = SimpleNamespace(name="task", arguments='{"name": "Ann"}')
        message = SimpleNamespace(
            content="", tool_calls=[SimpleNamespace(id="c1", function=function)], reasoning_content="hm"
        )
        usage = SimpleNamespace(prompt_tokens=5, completion_tokens=2, prompt_tokens_details=None)
        reply = read_answer(SimpleNamespace(choices=[SimpleNamespace(message=message)], usage=usage))

        assert (None, "hm", 5, 2) == (
            reply.content,
            reply.thinking,
            reply.usage.tokens.input,
            reply.usage.tokens.output,
        )
        assert [{"id": "c1", "type": "function", "function": {"name": "task", "arguments": '{"name": "Ann"}'}}] == list(
            reply.tool_calls
        )

    def test_it_is_read_which_model_answered_and_why_it_stopped(self) -> None:
        """#7"""
        message = SimpleNamespace(content="cut", tool_calls=None)
        choice = SimpleNamespace(message=message, finish_reason="length")
        reply = read_answer(SimpleNamespace(choices=[choice], usage=None, model="exact-1", id="r1"))

        assert ("exact-1", "length", "r1") == (reply.model, reply.stop_reason, reply.api_id)

    @pytest.mark.parametrize(
        ("status", "said", "expected"),
        [
            (400, "This model's maximum context length is 8192 tokens", True),
            (400, "prompt is too long: 210000 tokens > 200000 maximum", True),
            (413, "Request too large", True),
            (400, "input length and `max_tokens` exceed context limit", True),
            (400, "unknown parameter 'tools'", False),
            (429, "rate limit: too many tokens per minute", False),
            (None, "connection reset", False),
        ],
    )
    def test_a_request_that_is_too_long_is_told_from_others(
        self, status: int | None, said: str, expected: bool
    ) -> None:
        """#9"""
        problem = RuntimeError(said)
        problem.status_code = status  # type: ignore[attr-defined]

        assert expected == lite.is_too_long(problem)

    def test_litellms_own_error_for_it_is_known(self) -> None:
        """#9"""

        class ContextWindowExceededError(Exception):
            pass

        assert lite.is_too_long(ContextWindowExceededError("of any wording"))

    def test_an_answer_without_a_message_is_worth_another_try(self) -> None:
        with pytest.raises(ModelError) as caught:
            read_answer(SimpleNamespace(choices=[]))

        assert caught.value.retryable

    def test_without_the_extra_it_says_what_to_install(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "litellm", None)  # as if it were not installed
        root, session = load_session(tmp_path / "log", language_model="openai/gpt-x", retries=Retries(attempts=1))

        with session, pytest.raises(BadRequest, match="not installed") as caught:
            say(root, "hello")
        assert ".[agents]" in (caught.value.hint or "")

    def test_any_other_name_is_for_litellm(self) -> None:
        assert isinstance(open_model("anthropic/claude-sonnet-4-5"), LiteLLMModel)

    @pytest.mark.parametrize("name", ["", "two\nlines"])
    def test_a_name_that_is_none_is_refused(self, name: str) -> None:
        with pytest.raises(BadRequest):
            open_model(name)


class TestRetries:
    def test_pauses_grow_and_are_bounded(self) -> None:
        assert [1.0, 2.0, 4.0, 5.0, 5.0] == list(Retries(attempts=6, longest=5.0).pauses())
