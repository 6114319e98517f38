"""What a real program said under `harken run` is in the index once, though its stream and its file both tell it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

import harken as api
from support.conversations import shell
from support.harken_cli import take_in
from support.lab import Lab
from support.programs import copilot_cli, gemini_cli, program
from support.scripted_model import Say

pytestmark = pytest.mark.runtimes

SAID = ("human", "assistant", "call", "result")


def _nothing(lab: Lab) -> dict[str, str]:
    return {}


WAYS: dict[str, tuple[tuple[str, ...], Callable[[Lab], dict[str, str]]]] = {
    "claude-code": (("-p", "--dangerously-skip-permissions"), _nothing),
    "codex": (("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"), _nothing),
    "gemini-cli": (("--yolo", "-m", "gemini-2.5-flash", "-p"), gemini_cli.environment),
    "opencode": (("run", "--auto"), _nothing),
    "pi": (("-p",), lambda lab: {"PI_OFFLINE": "1"}),
    "qwen-code": (("--yolo",), _nothing),
    "copilot-cli": (("--allow-all-tools", "-p"), copilot_cli.environment),
}


@pytest.mark.parametrize("runtime", WAYS)
def test_each_word_is_found_once(lab: Lab, runtime: str) -> None:
    program(runtime).set_up(lab)
    lab.model.play([Say("I will look for the otter."), shell(runtime, "echo heron")], [Say("It was a newt.")])
    words, environment = WAYS[runtime]
    done = lab.run("harken", "run", runtime, "--", *words, "Find the walrus.", env=environment(lab))
    assert 0 == done.code, done.err

    take_in(lab)

    with api.open(lab.folder / "store.db") as repo:
        repo.index.catch_up()
        rows = repo.index.query("SELECT role FROM messages")
        calls = repo.index.query("SELECT failed, took IS NOT NULL FROM calls")
        hits = {word: Counter(hit.role for hit in repo.search(word).hits) for word in ("walrus", "otter", "newt")}
    assert {"human": 1, "assistant": 2, "call": 1, "result": 1} == {
        role: count for role, count in Counter(role for (role,) in rows).items() if role in SAID
    }
    assert (1, 1, 1) == (hits["walrus"]["human"], hits["otter"]["assistant"], hits["newt"]["assistant"])
    assert [(0, 1)] == calls
