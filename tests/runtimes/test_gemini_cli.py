"""The real Gemini CLI: what it held goes on, in itself and elsewhere, and what others held goes on in it."""

from __future__ import annotations

from typing import Any

import pytest

import harken as api
from harken.events import Prompt, Response
from harken.events.cbor import encode_events
from support import conversations
from support.conversations import Held, heard, prompt, shell
from support.gemini_conversations import HELD, NAME
from support.harken_cli import harken, take_in
from support.lab import Lab
from support.programs import gemini_cli, program
from support.scripted_model import Say
from support.wire import Item

pytestmark = pytest.mark.runtimes
NEXT = "And now?"


def carry_on(lab: Lab, ref: str, target: str) -> tuple[list[Item], dict[str, Any]]:
    """Resume in a program, say one thing more, and read what it sent."""
    [written] = harken(lab, "resume", ref, "--in", target, "--home", str(program(target).home(lab)))
    lab.model.play([Say("Gladly.")])
    prompt(lab, target, NEXT, written["session"])
    return heard(lab, target), written


def used(rows: list[dict[str, Any]], session: str) -> dict[str, int]:
    """What the session used, as its last file brought it up to date."""
    usage: dict[str, int] = [row["usage"] for row in rows if row.get("session") == session][-1]
    return usage


@pytest.mark.parametrize(("conversation", "others"), [
    ("plain", ("claude-code", "codex")),
    ("parallel", ("claude-code",)),
    ("pictures", ("codex",)),
    ("sub-agents", ("claude-code",)),
    ("compacted", ("codex",)),
])  # fmt: skip
def test_what_it_held_goes_on_in_itself_and_elsewhere(lab: Lab, conversation: str, others: tuple[str, ...]) -> None:
    held = HELD[conversation](lab)
    asked = len(lab.model.asked())
    rows = take_in(lab)
    usage = used(rows, held.session)

    # The model says of each request: 100 tokens, 40 of them from the cache, and 7 thought behind what it said.
    assert (usage["input"], usage["cache_read"]) == (60 * asked, 40 * asked)
    assert all(row["opaque"] == 0 for row in rows if "opaque" in row)
    for target in others:
        sent, written = carry_on(lab, held.session, target)
        assert sent == [*held.knew, Item("user", NEXT)]
        assert written["tier"] == "2s"
        lost = {loss["what"]: loss["count"] for loss in written["losses"]}
        assert set(lost) <= {"notice of the runtime", "thinking"}
    sent, _ = carry_on(lab, held.session, NAME)
    by_harken = lab.model.asked()[-1]["contents"]
    assert sent == [*held.knew, Item("user", NEXT)]
    if conversation in ("parallel", "sub-agents"):  # starting the program takes seconds, and the others show it
        return
    lab.model.play([Say("Gladly.")])
    prompt(lab, NAME, NEXT, held.session)
    assert lab.model.asked()[-1]["contents"] == by_harken


@pytest.mark.parametrize(("source", "conversation"), [
    ("claude-code", "plain"),
    ("claude-code", "pictures"),
    ("codex", "parallel"),
    ("codex", "compacted"),
])  # fmt: skip
def test_what_others_held_goes_on_in_it(lab: Lab, source: str, conversation: str) -> None:
    held: Held = conversations.HELD[conversation](lab, source)
    take_in(lab)
    gemini_cli.set_up(lab)

    sent, written = carry_on(lab, held.session, NAME)

    assert sent == [*(item for item in held.knew if item.kind != "thinking"), Item("user", NEXT)]
    assert written["tier"] == "2s"
    lost = {loss["what"] for loss in written["losses"]}
    assert lost <= {"notice of the runtime", "instructions of the runtime", "thinking"}


def test_a_session_that_was_written_outlives_the_start_of_another_and_is_one_session(lab: Lab) -> None:
    held = HELD["parallel"](lab)
    take_in(lab)
    _, written = carry_on(lab, held.session, NAME)
    lab.model.play([Say("Hello.")])
    gemini_cli.set_up(lab, clears_up=True)
    assert gemini_cli.ask(lab, "Somebody else.").code == 0
    rows = take_in(lab)

    [row] = [row for row in harken(lab, "sessions") if row["session"] == written["session"]]
    assert row["continues"] == held.session
    assert used(rows, written["session"])["input"] == 60 * 4
    [figures] = harken(lab, "stats", written["session"])
    assert figures["carried"]["usage"]["input"] == 60 * 3


def test_a_run_under_observation_shows_what_it_would_have_shown_and_goes_on(lab: Lab) -> None:
    gemini_cli.set_up(lab)
    words = ("--yolo", "-m", "gemini-2.5-flash", "-p")
    lab.model.play([Say("I will look."), shell(NAME, "echo out")], [Say("It worked.")])
    done = lab.run("harken", "run", NAME, "--", *words, "Please run it.", env=gemini_cli.environment(lab))
    assert (done.code, done.out) == (0, "I will look.\nIt worked.\n"), done.err
    [row] = harken(lab, "sessions")
    [figures] = harken(lab, "stats", row["session"])
    assert figures["usage"]["input"] == 60 * 2
    assert figures["tools"] == {"run_shell_command": 1}
    assert figures["prompts"]["human"] == 1

    lab.model.play([Say("Gladly.")])
    again = ("harken", "run", NAME, "--from", row["session"], "--", *words, NEXT)
    assert lab.run(*again, env=gemini_cli.environment(lab)).out == "Gladly.\n"
    assert [item.text for item in heard(lab, NAME) if item.kind == "user"] == ["Please run it.", NEXT]


def test_a_prompt_that_looks_like_a_command_goes_to_the_model(lab: Lab) -> None:
    """By itself the program passes over a user's words that begin so, when it goes on with a session."""
    gemini_cli.set_up(lab)
    words = [Prompt(content="/etc/hosts: what is it?"), Response(content="A file."), Prompt(content="?")]
    with api.open(lab.folder / "store.db") as repo:
        commit = repo.checkpoint(encode_events([*words, Response(content="Yes.")]), format="events-v1")

    sent, _ = carry_on(lab, commit.id, NAME)

    said = ["/etc/hosts: what is it?", "A file.", "?", "Yes.", NEXT]
    assert [item.text for item in sent] == said


def test_a_prompt_of_its_own_that_it_passes_over_is_told_as_lost(lab: Lab) -> None:
    gemini_cli.set_up(lab)
    lab.model.play([Say("A file.")])
    assert 0 == gemini_cli.ask(lab, "/etc/hosts is what?").code
    harken(lab, "import")
    [row] = harken(lab, "sessions")
    [told] = harken(lab, "resume", row["session"], "--in", NAME)
    assert [("prompts", 1)] == [(loss["what"], loss["count"]) for loss in told["losses"]]
