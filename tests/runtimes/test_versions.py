"""Older versions of programs whose format has changed, and Kilo: what they wrote goes on in the present version and in
another program. The oracle is the program that held the conversation: its own last request and the answer to it.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support.conversations import Held, heard, plain, prompt
from support.harken_cli import harken, take_in
from support.lab import BIN, Lab
from support.programs import program
from support.scripted_model import Say
from support.wire import Item

pytestmark = pytest.mark.runtimes
NEXT = "And now?"
ROLES = "SELECT role, count(*) AS count FROM messages GROUP BY role"
LEAVE_OUT = """\
#!/bin/sh
for word do
  shift
  [ "$word" = --auto ] || set -- "$@" "$word"
done
exec "{program}" "$@"
"""
"""A program without the option `--auto`."""


def with_version(lab: Lab, version: str) -> None:
    """From now on the laboratory has that version of a program: `gemini-json` in the place of `gemini`."""
    if not (BIN / version).exists():
        pytest.fail(f"{version} is not installed; run scripts/runtimes")
    own = version.partition("-")[0]
    lab.tools = lab.folder / f"bin-{version}"
    lab.tools.mkdir()
    for path in BIN.iterdir():
        if path.name != own:
            (lab.tools / path.name).symlink_to(path)
    if own == "opencode":  # old ones ask nobody for leave, and do not know the option that says so
        (lab.tools / own).write_text(LEAVE_OUT.format(program=BIN / version))
        (lab.tools / own).chmod(0o755)
    else:
        (lab.tools / own).symlink_to(BIN / version)


def carry_on(lab: Lab, session: str, target: str) -> tuple[list[Item], dict[str, Any]]:
    """Resume in the present version of a program, say one thing more, and read what it sent."""
    lab.tools = BIN
    program(target).set_up(lab)
    [written] = harken(lab, "resume", session, "--in", target, "--home", str(program(target).home(lab)))
    for command in written.get("prepare", ()):
        done = lab.run(*command)
        assert done.code == 0, done.err + done.out
    lab.model.play([Say("Gladly.")])
    prompt(lab, target, NEXT, written["session"])
    return heard(lab, target), written


def imported(lab: Lab, session: str) -> dict[str, Any]:
    """What the import says of a session; nothing of it may be unread."""
    [line] = [line for line in take_in(lab) if line.get("session") == session]
    assert 0 == line["total_opaque"]
    return line


def spoken(items: list[Item]) -> list[Item]:
    """All but the thinking, which is for the model alone that thought it."""
    return [item for item in items if item.kind != "thinking"]


@pytest.mark.parametrize(
    ("version", "runtime", "thinks"),
    [("gemini-json", "gemini-cli", False), ("opencode-files", "opencode", True), ("kilo", "kilo", True)],
)
def test_what_it_wrote_goes_on_in_the_present_version_and_elsewhere(
    lab: Lab, version: str, runtime: str, thinks: bool
) -> None:
    with_version(lab, version)
    held = plain(lab, runtime)
    asked = len(lab.model.asked())

    line = imported(lab, held.session)
    assert (runtime, asked, 100 * asked) == (line["runtime"], line["requests"], _heard(line))

    sent, written = carry_on(lab, held.session, runtime)
    known = held.knew if thinks else spoken(held.knew)
    assert ([*known, Item("user", NEXT)], []) == (sent, written["losses"])
    sent, _ = carry_on(lab, line["tip"], "claude-code")
    assert [*spoken(held.knew), Item("user", NEXT)] == sent


def _heard(line: dict[str, Any]) -> int:
    """What the model was told: some count what it knew already among it."""
    used = line["usage"]
    return int(used["input"] + used["cache_read"])


@pytest.mark.parametrize("first", [".json", ".jsonl"])
def test_a_document_that_gemini_cli_goes_on_with_in_a_file_is_told_once(lab: Lab, first: str) -> None:
    with_version(lab, "gemini-json")
    held = plain(lab, "gemini-cli")
    lab.tools = BIN
    lab.model.play([Say("Gladly.")])
    prompt(lab, "gemini-cli", NEXT, held.session)
    chats = [path for path in lab.home.glob(".gemini/tmp/*/chats/session-*") if path.suffix in (".json", ".jsonl")]
    for path in sorted(chats, key=lambda path: path.suffix != first):
        harken(lab, "import", str(path))

    assert {".json", ".jsonl"} == {path.suffix for path in chats}
    told = Counter(item.kind for item in [*heard(lab, "gemini-cli"), Item("assistant", "Gladly.")])
    rows = harken(lab, "sql", ROLES)
    counts = {row["role"]: row["count"] for row in rows}
    assert {kind: told[kind] for kind in ("assistant", "call", "result")} == {
        kind: counts[kind] for kind in ("assistant", "call", "result")
    }
    assert told["user"] == counts["human"]


def test_what_others_held_goes_on_in_kilo(lab: Lab) -> None:
    held: Held = plain(lab, "claude-code")
    take_in(lab)

    sent, written = carry_on(lab, held.session, "kilo")

    assert [*spoken(held.knew), Item("user", NEXT)] == sent
    assert "2s" == written["tier"]
    assert imported(lab, written["session"])["forked_from"]


def test_the_documents_of_qwen_code_go_on_in_it(lab: Lab) -> None:
    """It noted no calls in them: words are all that there is."""
    with_version(lab, "qwen-json")
    program("qwen-code").set_up(lab)
    lab.model.play([Say("It worked.")])
    done = lab.run("qwen", "--yolo", "-p", "Please do it.")
    assert (0, "It worked.\n") == (done.code, done.out), done.err
    [path] = lab.home.glob(".qwen/tmp/*/chats/session-*.json")

    [line] = [line for line in harken(lab, "import", str(path)) if "session" in line]

    assert ("qwen-code", 0, 1, 100) == (line["runtime"], line["opaque"], line["requests"], line["usage"]["input"])
    sent, _ = carry_on(lab, line["session"], "qwen-code")
    assert [Item("user", "Please do it."), Item("assistant", "It worked."), Item("user", NEXT)] == sent


def test_files_that_opencode_moved_into_its_database_are_one_session(lab: Lab) -> None:
    with_version(lab, "opencode-files")
    held = plain(lab, "opencode")
    before = imported(lab, held.session)
    with_version(lab, "opencode-moves")
    lab.model.play([Say("I have moved.")])
    prompt(lab, "opencode", "Where are you?", held.session)
    known = [*heard(lab, "opencode"), Item("assistant", "I have moved.")]

    lines = [line for line in take_in(lab) if line.get("session") == held.session]

    assert [Path(before["source"]), program("opencode").home(lab) / "opencode.db"] == sorted(
        (Path(line["source"].partition("#")[0]) for line in lines), key=lambda path: path.suffix == ".db"
    )
    [told] = harken(lab, "stats", held.session)
    assert (before["requests"] + 1, before["usage"]["input"] + 100) == (told["requests"], told["usage"]["input"])
    sent, _ = carry_on(lab, held.session, "opencode")
    assert [*known, Item("user", NEXT)] == sent


@pytest.mark.parametrize("version", ["pi", "pi-next"])
def test_a_file_of_pis_first_version_that_pi_names_the_entries_of_counts_once(lab: Lab, version: str) -> None:
    """Made of what it wrote: the first version wrote the same lines without ids."""
    held = plain(lab, "pi")
    [path] = program("pi").home(lab).glob("sessions/*/*.jsonl")
    header, *entries = map(json.loads, path.read_bytes().splitlines())
    header.pop("version")
    for entry in entries:
        entry.pop("id"), entry.pop("parentId")
    path.write_text("".join(json.dumps(record) + "\n" for record in (header, *entries)))
    before = imported(lab, held.session)
    counted = harken(lab, "sql", ROLES)
    if version != "pi":
        with_version(lab, version)
    lab.model.play([Say("Gladly.")])
    prompt(lab, "pi", NEXT, str(path))
    assert b'"parentId"' in path.read_bytes()

    after = imported(lab, held.session)

    assert before["requests"] + 1 == after["requests"]
    more = {row["role"]: row["count"] for row in harken(lab, "sql", ROLES)}
    expected = {row["role"]: row["count"] + (row["role"] in ("human", "assistant")) for row in counted}
    assert expected == {role: more[role] for role in expected}
    [line] = harken(lab, "stats", held.session)
    assert (after["requests"], more["human"]) == (line["requests"], line["prompts"]["human"])
