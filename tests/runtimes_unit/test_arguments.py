"""What the words behind `harken run RUNTIME --` mean, and what is added to them."""

from __future__ import annotations

import pytest

from harken import runtimes
from harken.errors import BadRequest
from harken.runtimes import Launcher, Plan

STREAM = ("--output-format", "stream-json", "--verbose")


def launcher(runtime: str) -> Launcher:
    found = runtimes.get(runtime).launch
    assert found is not None
    return found


def plan_run(runtime: str, words: list[str], resume: str = "") -> Plan:
    return launcher(runtime).plan(words, resume)


CLAUDE = {
    "prompt behind -p": (["-p", "hello"], (*STREAM, "-p", "hello"), "hello", "text"),
    "prompt before -p": (["hello", "-p"], (*STREAM, "hello", "-p"), "hello", "text"),
    "an option with a value": (["--model", "x", "-p", "hi"], (*STREAM, "--model", "x", "-p", "hi"), "hi", "text"),
    "an option that takes several": (
        ["--allowedTools", "Bash", "Edit", "-p", "hi"],
        (*STREAM, "--allowedTools", "Bash", "Edit", "-p", "hi"),
        "hi",
        "text",
    ),
    "an option with an equals sign": (
        ["--model=x", "hi", "--print"],
        (*STREAM, "--model=x", "hi", "--print"),
        "hi",
        "text",
    ),
    "a value one may leave out": (["-r", "abc", "-p", "hi"], (*STREAM, "-r", "abc", "-p", "hi"), "hi", "text"),
    "json": (["-p", "hi", "--output-format", "json"], (*STREAM, "-p", "hi"), "hi", "json"),
    "json with all lines": (
        ["-p", "hi", "--output-format=json", "--verbose"],
        ("--output-format", "stream-json", "-p", "hi", "--verbose"),
        "hi",
        "array",
    ),
    "the stream": (
        ["-p", "hi", "--output-format", "stream-json", "--verbose"],
        ("-p", "hi", "--output-format", "stream-json", "--verbose"),
        "hi",
        "stream",
    ),
    "a prompt that begins with a dash": (["-p", "--", "-hi"], (*STREAM, "-p", "--", "-hi"), "-hi", "text"),
    "no prompt at all": (["-p"], (*STREAM, "-p"), "", "text"),
}

CODEX = {
    "plain": (["exec", "hi"], ("exec", "--json", "hi"), "hi", "text"),
    "with json": (["exec", "--json", "hi"], ("exec", "--json", "hi"), "hi", "stream"),
    "options before and after": (
        ["-m", "x", "e", "-s", "read-only", "hi"],
        ("-m", "x", "e", "--json", "-s", "read-only", "hi"),
        "hi",
        "text",
    ),
    "resume": (["exec", "resume", "id", "hi"], ("exec", "--json", "resume", "id", "hi"), "hi", "text"),
    "resume the last": (["exec", "resume", "--last", "hi"], ("exec", "--json", "resume", "--last", "hi"), "hi", "text"),
    "stdin": (["exec", "-"], ("exec", "--json", "-"), "", "text"),
    "nothing": (["exec"], ("exec", "--json"), "", "text"),
}


@pytest.mark.parametrize("case", CLAUDE)
def test_claude_codes_words(case: str) -> None:
    words, arguments, prompt, show = CLAUDE[case]
    plan = plan_run("claude-code", words)
    assert (arguments, prompt, show) == (plan.arguments, plan.prompt, plan.show)


@pytest.mark.parametrize("case", CODEX)
def test_codexs_words(case: str) -> None:
    words, arguments, prompt, show = CODEX[case]
    plan = plan_run("codex", words)
    assert (arguments, prompt, show) == (plan.arguments, plan.prompt, plan.show)


def test_a_session_to_continue_goes_where_the_runtime_expects_it() -> None:
    assert plan_run("claude-code", ["-p", "hi"], resume="S").arguments == (*STREAM, "--resume", "S", "-p", "hi")
    assert plan_run("codex", ["exec", "-s", "x", "hi"], resume="S").arguments == (
        *("exec", "--json", "-s", "x"),
        *("resume", "S", "hi"),
    )
    assert plan_run("codex", ["exec"], resume="S").arguments == ("exec", "--json", "resume", "S")


@pytest.mark.parametrize(
    ("runtime", "words"),
    [
        ("claude-code", ["-p", "hi", "-c"]),
        ("claude-code", ["-p", "hi", "--resume", "x"]),
        ("codex", ["exec", "resume", "x"]),
    ],
)
def test_two_things_to_continue_are_refused(runtime: str, words: list[str]) -> None:
    with pytest.raises(BadRequest, match="--from says what to continue"):
        plan_run(runtime, words, resume="S")


@pytest.mark.parametrize(("runtime", "words"), [("claude-code", ["hi"]), ("codex", ["hi"]), ("codex", [])])
def test_what_cannot_be_wrapped_is_refused(runtime: str, words: list[str]) -> None:
    with pytest.raises(BadRequest):
        plan_run(runtime, words)


def test_piped_text_joins_the_prompt_as_each_runtime_does_it() -> None:
    """Both spellings were read off the requests of the real programs."""
    claude, codex = launcher("claude-code").full_prompt, launcher("codex").full_prompt
    assert claude("ask", "piped\n") == "ask\npiped\n"
    assert claude("", "piped\n") == "piped\n"
    assert codex("ask", "piped\n") == "ask\n\n<stdin>\npiped\n</stdin>"
    assert codex("", "piped") == "piped"
    assert codex("ask", "") == "ask"
