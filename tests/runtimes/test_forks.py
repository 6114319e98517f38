"""Forks that the real Claude Code makes, calls that were cut off, and tails that a compaction preserves."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from support.conversations import compacted, heard, prompt, session_of
from support.harken_cli import harken, take_in
from support.lab import Lab
from support.scripted_model import Call, Say
from support.wire import Item

pytestmark = pytest.mark.runtimes

WORDS = ["the", "of", "parser", "store", "commit", "agent", "reads", "because", "line", "fails", "test", "value"]


def prose(length: int, seed: int) -> str:
    """Text that compresses about as well as what agents say."""
    chance = random.Random(seed)
    words = WORDS + [f"{chance.randrange(1 << 24):x}" for _ in range(2000)]
    return " ".join(chance.choice(words) for _ in range(length // 6))


def size_of_store(lab: Lab) -> int:
    return sum(path.stat().st_size for path in lab.folder.glob("store.db*") if path.is_file())


def test_a_fork_by_claude_code_costs_next_to_nothing_and_is_linked(lab: Lab) -> None:
    lab.model.play([Say(prose(150_000, 0))])
    session = session_of(lab, "claude-code", prompt(lab, "claude-code", "Write at length."))
    for round in range(1, 8):
        lab.model.play([Say(prose(150_000, round))])
        prompt(lab, "claude-code", f"And more, part {round}.", session)
    take_in(lab)
    before = size_of_store(lab)
    lab.model.play([Say("Forked.")])
    forked = lab.claude("Go another way.", "--resume", session, "--fork-session")
    fork = session_of(lab, "claude-code", forked)
    [file] = [path for path in lab.claude_sessions() if path.stem == fork]
    [line] = [line for line in take_in(lab) if line.get("session") == fork]
    grown = size_of_store(lab) - before
    assert grown <= 0.03 * file.stat().st_size, f"{grown} bytes for {file.stat().st_size}"
    original = {commit["short"] for commit in harken(lab, "log", session, "--all")}
    assert line["forked_from"] in original


def test_a_preserved_tail_is_in_the_context(lab: Lab) -> None:
    """`/compact` keeps the last answer behind the summary; a walk from the leaf to the root would lose it."""
    held = compacted(lab, "claude-code")
    take_in(lab)
    shown = lab.run("harken", "materialize", held.session, "--format", "claude-code-v1")
    assert shown.code == 0, shown.err
    assert "You are welcome." in shown.out
    assert "It worked." not in shown.out
    assert "It worked." in lab.run("harken", "materialize", held.session, "--stop", "root").out


@pytest.mark.parametrize("target", ["claude-code", "codex"])
def test_a_call_that_was_cut_off_does_not_stand_in_the_way(lab: Lab, target: str) -> None:
    """The program was killed while its tool ran. Resuming it natively is the oracle for the same program."""
    kill = Call("Bash", {"command": "sleep 1; kill -9 $PPID", "description": "end"}, id="toolu_cut")
    lab.model.play([Say("I will end it."), kill])
    dead = lab.claude("End it.")
    assert dead.code != 0
    session = session_of(lab, "claude-code", dead)
    take_in(lab)
    home = lab.home / ".claude" if target == "claude-code" else lab.codex_home
    [written] = harken(lab, "resume", session, "--in", target, "--home", str(home))
    lab.model.play([Say("Gladly.")])
    prompt(lab, target, "And now?", written["session"])
    sent = heard(lab, target)
    assert sent[-1] == Item("user", "And now?")
    if target == "codex":
        assert [(item.kind, item.id) for item in sent if item.id] == [("call", "toolu_cut"), ("result", "toolu_cut")]
    else:
        lab.model.play([Say("Gladly.")])
        prompt(lab, target, "And now?", session)
        assert sent == heard(lab, target)


def test_what_lay_beside_a_session_lies_beside_the_one_that_continues_it(lab: Lab) -> None:
    """Claude Code keeps long outputs in files of their own."""
    long = Call("Bash", {"command": "seq 1 30000", "description": "count"})
    lab.model.play([long], [Say("Counted.")])
    session = session_of(lab, "claude-code", prompt(lab, "claude-code", "Count."))
    [file] = lab.claude_sessions()
    beside = {p.relative_to(file.with_suffix("")): p.read_bytes() for p in file.with_suffix("").rglob("*.txt")}
    assert beside
    take_in(lab)
    [written] = harken(lab, "resume", session, "--in", "claude-code", "--home", str(lab.home / ".claude"))
    folder = Path(written["path"]).with_suffix("")
    assert beside == {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*.txt")}
    # #36: and the request names them where they lie now.
    lab.model.play([Say("Gladly.")])
    prompt(lab, "claude-code", "And now?", written["session"])
    [result] = [item.text for item in heard(lab, "claude-code") if item.kind == "result"]
    assert [name for name in beside if str(folder / name) in result]
    assert str(file.with_suffix("")) not in result


@pytest.mark.parametrize(("length", "expected"), [(11_000, 0), (13_000, 1)])
def test_a_loss_is_told_where_codex_cuts_a_result(lab: Lab, length: int, expected: int) -> None:
    """#26: what Codex does when it loads a session is what Harken said it would do."""
    call = Call("Bash", {"command": f"head -c {length} /dev/zero | tr '\\0' x", "description": "write"})
    lab.model.play([call], [Say("Written.")])
    session = session_of(lab, "claude-code", prompt(lab, "claude-code", "Write."))
    take_in(lab)

    [written] = harken(lab, "resume", session, "--in", "codex", "--home", str(lab.codex_home))
    lab.model.play([Say("Gladly.")])
    prompt(lab, "codex", "And now?", written["session"])

    [result] = [item.text for item in heard(lab, "codex") if item.kind == "result"]
    assert expected == sum(loss["count"] for loss in written["losses"] if loss["what"] == "middle of a long result")
    assert bool(expected) is ("truncated" in result)


def test_a_resume_in_another_folder_thinks_it_is_there(lab: Lab) -> None:
    lab.model.play([Say("Hello.")])
    session = session_of(lab, "claude-code", prompt(lab, "claude-code", "Hi."))
    take_in(lab)
    other = lab.folder / "other"
    os.mkdir(other)
    [written] = harken(
        lab, "resume", session, "--in", "claude-code", "--home", str(lab.home / ".claude"), "--cwd", str(other)
    )
    assert "-other/" in written["path"]
    lab.model.play([Call("Bash", {"command": "pwd", "description": "where"})], [Say("There.")])
    done = lab.claude("Where are you?", "--resume", written["session"], cwd=other)
    assert done.code == 0
    assert heard(lab, "claude-code")[-1].text == str(other)
