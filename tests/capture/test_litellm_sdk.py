"""What goes through LiteLLM becomes a session: as it went over the wire, in order, once.

The programs are in `support/litellm_host.py`, and run in a process of their own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harken import Session, capture
from harken.capture.litellm_sdk.replies import read_whole
from harken.events import Output
from support.openai_loop import QUESTION, SYSTEM

Came = dict[str, dict[str, Any]]
HOST = Path(__file__).parents[1] / "support" / "litellm_host.py"


@pytest.fixture(scope="module")
def came(tmp_path_factory: pytest.TempPathFactory) -> Came:
    """By the name of a program: what came of it."""
    folder = tmp_path_factory.mktemp("litellm")
    done = subprocess.run(
        [sys.executable, "-m", "support.litellm_host", str(folder)],
        cwd=HOST.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr[-4000:]
    # LiteLLM prints advice where a call fails.
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"name"')]
    return {one["name"]: one for one in found} | {"": {"stderr": done.stderr}}


def said(program: dict[str, Any]) -> list[str]:
    return [content for _, content, _, _ in program["captured"]]


# -- through the wrapper -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["wrapped", "wrapped_stream", "wrapped_async", "wrapped_async_stream", "thinking"])
def test_a_loop_is_captured_as_it_went_over_the_wire(came: Came, name: str) -> None:
    assert came[name]["wire"] == came[name]["captured"]
    assert ["primary"] == came[name]["sources"]


def test_what_takes_an_input_and_is_no_conversation_is_not_captured(came: Came) -> None:
    assert ["Hi.", "Hello."] == said(came["embedded"])


def test_a_function_of_litellm_that_asks_no_model_stays_as_it_is(came: Came) -> None:
    assert ["Hi.", "Hello."] == said(came["counted"])


def test_several_conversations_at_once_are_captured_as_callbacks_tell_of_them(came: Came) -> None:
    assert ["Go.", "Hello.", "Hello.", "Hi."] == sorted(content for content, _ in came["in_a_batch"]["entries"])


def test_a_function_of_the_hosts_own_that_takes_no_names_of_calls_is_captured_once(came: Came) -> None:
    assert ["Hi.", "Hello.", "Go.", "Bye."] == said(came["own_function"])
    assert came["own_function"]["wire"] == came["own_function"]["captured"]


def test_a_function_of_the_hosts_own_may_give_words_and_what_nobody_can_read_is_told(came: Came) -> None:
    *told, (problem, about) = came["own_replies"]["entries"]
    assert ["Hi.", "Hello.", "Go."] == [content for content, _ in told]
    assert ("error", True) == (about["kind"], "Bye." in problem)


def test_what_litellm_knows_of_a_reply_is_kept(came: Came) -> None:
    *_, last = came["wrapped"]["metadata"]
    names = ("model", "provider", "finish_reason", "request_id", "response_id")
    assert ["gpt-4o-mini", "openai", "stop", "req_000004", "chatcmpl-000003"] == [last[name] for name in names]
    assert "openai/gpt-4o-mini" == came["wrapped"]["notices"][0]["model"]


def test_figures_and_cost_are_those_of_the_provider_and_of_litellm(came: Came) -> None:
    assert [[100, 12, 2.22e-05], [100, 11, 2.16e-05]] == [
        [given, made, round(cost, 10)] for given, made, cost in came["wrapped"]["usage"]
    ]
    assert [[100, 12, 2.22e-05]] == [[given, made, round(cost, 10)] for given, made, cost in came["thinking"]["usage"]]


def test_figures_that_nobody_told_are_unknown_and_not_zero(came: Came) -> None:
    assert [] == came["wrapped_stream"]["usage"]
    assert [] == came["told_stream"]["usage"]
    assert [[100, 11, None]] == came["routed"]["usage"]  # a model that has no price


def test_the_other_api_is_captured_too(came: Came) -> None:
    assert came["responses"]["wire"] == came["responses"]["captured"]
    assert [SYSTEM, QUESTION, "A greeting.", "Hello."] == said(came["responses"])
    assert [QUESTION, "Hello there.", "And then?", "Go on."] == said(came["responses_stream"])
    assert ["primary"] == came["responses_stream"]["sources"]


def test_a_provider_of_another_api_is_captured_with_its_signed_thinking_in_one_piece(came: Came) -> None:
    call = '{\n  "path": "a.txt"\n}'
    assert ["Hi.", "A greeting.", "Hello.", call] == said(came["anthropic"])
    thought = came["anthropic"]["metadata"][1]
    assert ("thinking", "c2lnbmVk", "anthropic") == tuple(thought[key] for key in ("kind", "signature", "provider"))
    assert [[100, 13, 0.000495]] == came["anthropic"]["usage"]


@pytest.mark.parametrize(
    "name",
    [
        "messages_api",
        "messages_api_by_its_other_name",
        "messages_api_of_another_provider",
        "messages_api_of_a_router",
        "messages_api_stream",
        "told_messages_api",
    ],
)
def test_the_messages_api_is_captured_as_it_went_over_the_wire(came: Came, name: str) -> None:
    told = [
        ["system", SYSTEM, None, None],
        ["user", "Hi.", None, None],
        ["assistant", "I look.", None, None],
        ["assistant", '{\n  "path": "a.txt"\n}', "read", "toolu_a"],
        ["tool", "hello", "read", "toolu_a"],
        ["assistant", "It says hello.", None, None],
    ]
    assert told == came[name]["captured"]
    assert ["primary"] == came[name]["sources"]
    # This provider is not asked for figures in a stream; then LiteLLM makes up its own.
    given = [tokens == 100 or name == "messages_api_stream" for tokens, _, _ in came[name]["usage"]]
    assert [True, True] == given
    first = came[name]["metadata"][2]
    assert (first.get("stop_reason") or first.get("finish_reason")) in ("tool_use", "tool_calls")


def test_a_stream_of_the_messages_api_that_is_left_is_one_entry_with_what_came(came: Came) -> None:
    assert ["Hi.", "Hello "] == said(came["messages_api_left"])
    assert came["messages_api_left"]["metadata"][1]["partial"] is True


def test_a_generator_of_the_hosts_own_is_captured_while_it_is_read(came: Came) -> None:
    assert "Hello." == "".join(came["own_stream"]["answer"])
    assert ["Hi.", "Hello.", "Bye."] == [words for words, _ in came["own_stream"]["entries"]][:3]
    assert came["own_stream"]["metadata"][3]["partial"] is True
    assert ["Say.", "Only words."] == [words for words, _ in came["own_stream"]["entries"]][4:]


def test_a_call_that_litellm_makes_of_another_is_captured_once(came: Came) -> None:
    assert ["Hi.", "Hello."] == said(came["other_api"])
    assert ["primary"] == came["other_api"]["sources"]


def test_choices_beside_the_first_are_entries_and_no_part_of_the_conversation(came: Came) -> None:
    assert ["Hi.", "Hello.", "Hello."] == said(came["choices"])
    assert {"kind": "choice", "choice": 1, "finish_reason": "stop"} == came["choices"]["metadata"][2]


@pytest.mark.parametrize("name", ["dropped", "closed_early", "broken", "cancelled"])
def test_a_stream_that_did_not_come_to_its_end_is_one_entry_with_what_came(came: Came, name: str) -> None:
    assert ["Hi.", "Hello there"] == said(came[name])
    assert came[name]["metadata"][1]["partial"] is True


def test_what_broke_a_stream_is_raised_and_told(came: Came) -> None:
    assert "MidStreamFallbackError" == came["broken"]["answer"]
    assert came["broken"]["metadata"][1]["error"].startswith("MidStreamFallbackError: ")
    assert "CancelledError" == came["cancelled"]["answer"] == came["cancelled"]["metadata"][1]["error"]


def test_a_stream_is_of_the_class_that_it_was(came: Came) -> None:
    assert "CustomStreamWrapper" == came["dropped"]["answer"]


def test_a_host_that_goes_on_behind_half_a_reply_is_captured_in_order(came: Came) -> None:
    assert ["Hi.", "Hello there", "Stop.", "Yes?"] == said(came["gone_on_behind"])


def test_a_refusal_is_raised_and_an_entry_and_a_fallback_is_another_attempt(came: Came) -> None:
    assert ["BadRequestError", "answered"] == came["refused"]["answer"]
    _, failure, answer = came["refused"]["metadata"]
    assert ("error", "BadRequestError", 400) == tuple(failure[key] for key in ("kind", "type", "status"))
    assert ("other", 2) == (answer["model"], answer["attempts"])


def test_retries_and_fallbacks_of_a_router_are_attempts(came: Came) -> None:
    assert ["Hi.", "Hello."] == said(came["routed"])
    assert 3 == came["routed"]["metadata"][1]["attempts"]
    assert ["Hi.", "Hello there."] == said(came["routed_stream"])
    assert (2, None) == tuple(came["routed_stream"]["metadata"][1].get(key) for key in ("attempts", "partial"))


def test_what_a_cache_has_is_captured_and_costs_nothing(came: Came) -> None:
    assert 1 == len(came["cached"]["requests"])
    assert ["Hi.", "Hello.", "Hello.", "Hello."] == said(came["cached"])
    assert [None, None, True, True] == [about.get("cache_hit") for about in came["cached"]["metadata"]]
    assert 1 == len(came["cached"]["usage"])


def test_a_stream_that_the_host_made_up_is_whole(came: Came) -> None:
    assert ["Hi.", "Hello."] == said(came["made_up"])
    assert [None, None] == [about.get("partial") for about in came["made_up"]["metadata"]]


# -- through callbacks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["told", "told_stream", "told_async", "told_async_stream", "not_waited_for"])
def test_calls_that_others_make_are_captured_as_they_went_over_the_wire(came: Came, name: str) -> None:
    assert came[name]["wire"] == came[name]["captured"]
    assert ["primary"] == came[name]["sources"]


def test_callbacks_tell_of_the_other_api_and_of_what_the_host_made_up(came: Came) -> None:
    assert came["told_responses"]["wire"] == came["told_responses"]["captured"]
    assert [60, 11] == came["told_responses"]["usage"][0][:2]
    assert ["Hi.", "Hello."] == said(came["told_made_up"])


def test_a_call_that_goes_both_ways_is_captured_once(came: Came) -> None:
    assert came["both_ways"]["wire"] == came["both_ways"]["captured"]


def test_closing_takes_the_callback_out_again(came: Came) -> None:
    assert [False, False, False] == came["both_ways"]["answer"]


def test_callbacks_tell_of_attempts_and_failures(came: Came) -> None:
    program = came["told_failures"]
    assert "BadRequestError" == program["answer"]
    assert ["Hi.", "Hello."] == said(program)
    # The reply is reported from a thread, and may come when the next conversation has begun.
    assert [("Hello.", 3)] == [(words, about["attempts"]) for words, about in program["entries"] if "attempts" in about]
    assert [400] == [about["status"] for _, about in program["entries"] if about.get("kind") == "error"]


def test_a_stream_of_others_that_was_given_up_is_marked(came: Came) -> None:
    assert ["Hi.", "LiteLLM did not report what came of it"] == said(came["told_dropped"])
    assert came["told_dropped"]["metadata"][1]["partial"] is True


# -- whatever happens --------------------------------------------------------------------------------------------------


def test_nothing_is_added_to_a_request(came: Came) -> None:
    bare, captured = came["nothing_added"]["requests"]
    assert bare == captured


def test_arguments_that_are_no_part_of_the_request_are_not_kept(came: Came) -> None:
    (notice,) = came["nothing_added"]["notices"]
    assert {"adapter": "litellm", "model": "openai/gpt-4o-mini", "temperature": 0.5} == notice


def test_secrets_are_masked_where_the_caller_asks(came: Came) -> None:
    question, answer = said(came["masked"])
    assert "Which key?" == question
    assert answer.startswith("Your key is ") and "Zx9Zx9" not in json.dumps(came["masked"]["metadata"]) + answer


def test_capture_that_fails_is_told_once_and_not_raised(came: Came) -> None:
    assert ["Hello.", "Hello."] == came["capture_fails"]["answer"]
    assert 1 == came[""]["stderr"].count("capture failed")


def test_a_program_that_is_killed_leaves_the_request_and_the_reply_is_marked_missing(came: Came) -> None:
    assert [["user", "Are you there?", None, None]] == came["killed"]["before"]
    assert {"kind": "missing"} == came["killed"]["metadata"][1]


class _Answer:
    """An answer as LiteLLM gives it."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._message = {"role": "assistant", "content": "Yes.", "provider_specific_fields": fields}

    def model_dump(self, **how: Any) -> dict[str, Any]:
        return {"id": "x", "choices": [{"index": 0, "message": self._message, "finish_reason": "stop"}]}


def test_fields_of_litellm_that_say_nothing_are_not_kept() -> None:
    """OpenAI refuses a message that has them."""
    assert ["Response"] == [type(event).__name__ for event in read_whole(_Answer({"refusal": None}), {}).events]
    kept = read_whole(_Answer({"refusal": None, "citations": ["a"]}), {}).events[1]
    assert isinstance(kept, Output) and b"citations" in kept.raw


def test_litellm_is_imported_when_it_is_needed() -> None:
    code = "import sys, harken.capture; harken.capture.litellm; print('litellm' in sys.modules)"
    assert b"False\n" == subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout


def test_without_litellm_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from harken.errors import NotFound

    monkeypatch.setitem(sys.modules, "litellm", None)
    for name in [name for name in sys.modules if name.startswith("harken.capture.litellm_sdk.capturing")]:
        monkeypatch.delitem(sys.modules, name)
    with Session() as session, pytest.raises(NotFound, match="LiteLLM is not installed"):
        capture.litellm(session)
