"""The real pi, of two versions: what it holds is imported, and goes on in itself and in others; what others held goes
on in it. The oracle is the program that held the conversation: its own last request and the answer to it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import harken as api
from harken.events import Response
from harken.formats import get
from support.conversations import DOT, Held, heard, knew, parallel, plain, prompt, session_of, shell
from support.harken_cli import harken, take_in
from support.lab import BIN, Lab
from support.programs import pi, program
from support.scripted_model import Call, Say, Think
from support.wire import Item

pytestmark = pytest.mark.runtimes
NEXT = "And now?"
VERSIONS = {"0.73.1": "pi", "0.87.1": "pi-next"}


@dataclass(frozen=True)
class Story:
    """A session in which everything happens, and what its agent knew before it was folded, and at its end."""

    lab: Lab
    session: str
    before: list[Item]
    after: list[Item]


def tell(lab: Lab) -> Story:
    """Thinking and a tool; three calls at once, of which one fails; a picture; a compaction, and on."""
    lab.model.usage = {"cache_read_input_tokens": 40, "cache_creation_input_tokens": 20}
    lab.model.play(
        [Think("let me see"), Say("I will look."), shell("pi", "echo the first result")], [Say("It worked.")]
    )
    session = session_of(lab, "pi", prompt(lab, "pi", "Please run it."))
    calls = [shell("pi", command) for command in ("sleep 0.3; echo one", "echo two", "echo three >&2; exit 3")]
    path = lab.work / "dot.png"
    path.write_bytes(base64.b64decode(DOT))
    lab.model.play([Say("All at once."), *calls], [Call("read", {"path": str(path)})], [Say("A dot.")])
    prompt(lab, "pi", "Do it in parallel — très bien ☕!", session)
    before = knew(lab, "pi", "A dot.")
    pi.compact(lab, session)
    lab.model.play([shell("pi", "echo after the fold")], [Say("Still here.")])
    prompt(lab, "pi", "Are you there?", session)
    take_in(lab)
    return Story(lab, session, before, knew(lab, "pi", "Still here."))


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stories]:
    """The session as each version held it, once for all tests."""
    with Stories(tmp_path_factory.mktemp("pi")) as made:
        yield made


class Stories:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._told: dict[str, Story] = {}

    def __enter__(self) -> Stories:
        return self

    def __exit__(self, *_: object) -> None:
        for story in self._told.values():
            story.lab.close()

    def of(self, version: str) -> Story:
        if version not in self._told:
            lab = Lab(self._folder / version, tools=tools(self._folder / f"bin-{version}", version))
            self._told[version] = tell(lab)
        return self._told[version]


def tools(folder: Path, version: str) -> Path:
    """The programs, pi in that version."""
    if not (BIN / VERSIONS[version]).exists():
        pytest.fail(f"pi {version} is not installed; run scripts/runtimes")
    folder.mkdir()
    for path in BIN.iterdir():
        if path.name not in VERSIONS.values():
            (folder / path.name).symlink_to(path)
    (folder / "pi").symlink_to(BIN / VERSIONS[version])
    return folder


def carry_on(lab: Lab, ref: str, target: str) -> tuple[list[Item], dict[str, Any]]:
    """Resume in a program, say one thing more, and read what it sent."""
    [written] = harken(lab, "resume", ref, "--in", target, "--home", str(program(target).home(lab)))
    lab.model.play([Say("Gladly.")])
    prompt(lab, target, NEXT, written["session"])
    assert lab.model.surprises == []
    return heard(lab, target), written


def holding(story: Story, text: str) -> str:
    """The commit in which the model says a text."""
    with api.open(story.lab.folder / "store.db") as repo:
        for commit in repo.history(story.session):
            events = get(commit.format).read(repo.get(commit.artifact))
            if any(isinstance(event, Response) and event.content == text for event in events):
                return str(commit.id)
    raise AssertionError(f"no commit holds {text!r}")


@pytest.mark.parametrize("folded", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("version", "target"), [("0.73.1", "pi"), ("0.73.1", "claude-code"), ("0.73.1", "codex"), ("0.87.1", "pi")]
)
def test_what_pi_held_goes_on_everywhere(stories: Stories, version: str, target: str, folded: bool) -> None:
    story = stories.of(version)
    known = story.after if folded else story.before

    sent, written = carry_on(story.lab, story.session if folded else holding(story, "A dot."), target)

    assert [*(item for item in known if target == "pi" or item.kind != "thinking"), Item("user", NEXT)] == sent
    lost = {loss["what"]: loss["count"] for loss in written["losses"]}
    if target == "pi":
        assert ("1", {}) == (written["tier"], lost)
    else:
        assert lost == ({} if folded else {"thinking": 1} | ({"error mark": 1} if target == "codex" else {}))


@pytest.mark.parametrize("version", VERSIONS)
def test_usage_and_cost_are_the_scripted_models(stories: Stories, version: str) -> None:
    story = stories.of(version)
    [told] = harken(story.lab, "stats", story.session)
    # The second version also tells what the summary took: one request, and one for the half of a turn.
    summary = (0, 0) if version == "0.73.1" else (2, 900_000)
    used = {"input": 900_700 + 2 * summary[1], "output": 93 + 11 * summary[0]}
    used |= {"cache_read": 40 * (8 + summary[0]), "cache_write": 20 * (8 + summary[0])}

    assert used == told["usage"]
    prices = (pi.COST[name] for name in ("input", "output", "cacheRead", "cacheWrite"))
    assert (
        round(sum(price * count for price, count in zip(prices, used.values(), strict=True))) == told["cost_usd_micros"]
    )
    assert 1 == told["compactions"]


def test_a_fork_that_pi_makes_is_linked_and_counts_once(stories: Stories) -> None:
    story = stories.of("0.73.1")
    lab = story.lab
    [before] = harken(lab, "stats", story.session)
    source = next(path for path in pi.sessions(lab) if story.session in path.name)
    lab.model.play([Say("Forked.")])
    pi.set_up(lab)
    done = pi.pi(lab, "--fork", str(source), "Go another way.")
    fork = session_of(lab, "pi", done)

    [line] = [line for line in take_in(lab) if line.get("session") == fork]

    assert line["forked_from"] in {commit["short"] for commit in harken(lab, "log", story.session, "--all")}
    *_, both = harken(lab, "stats", story.session, fork)
    both = both["total"]
    assert before["usage"]["input"] + 100 == both["usage"]["input"], both


@pytest.mark.parametrize(
    ("source", "hold"), [("claude-code", plain), ("codex", parallel)], ids=["claude-code", "codex"]
)
def test_what_others_held_goes_on_in_pi(lab: Lab, source: str, hold: Any) -> None:
    held: Held = hold(lab, source)
    take_in(lab)
    pi.set_up(lab)

    sent, written = carry_on(lab, held.session, "pi")

    assert [*(item for item in held.knew if item.kind != "thinking"), Item("user", NEXT)] == sent
    assert "2s" == written["tier"]
    [line] = [line for line in take_in(lab) if line.get("session") == written["session"]]
    [row] = [row for row in harken(lab, "sessions") if row["session"] == held.session]
    assert row["tip"] == line["forked_from"]
    # It went on with the model that it is set to: what answered before is none that it could ask.
    assert "test-model" == lab.model.asked()[-1]["model"]


def test_a_run_is_wrapped_and_its_file_is_the_session(lab: Lab) -> None:
    pi.set_up(lab)
    lab.model.play([Say("One moment."), shell("pi", "echo hi")], [Say("Done.")])
    done = lab.run("harken", "run", "pi", "--", "-p", "Run it.", env={"PI_OFFLINE": "1"})

    assert (0, "Done.\n") == (done.code, done.out), done.err
    [row] = harken(lab, "sessions")
    assert ("pi", "Run it.") == (row["runtime"], row["title"])
    [told] = harken(lab, "stats", row["session"])
    assert ({"input": 200, "output": 23}, 1) == (
        {key: told["usage"][key] for key in ("input", "output")},
        len(told["tools"]),
    )
    [path] = pi.sessions(lab)
    assert path.read_text() == lab.run("harken", "materialize", row["session"], "--stop", "root").out
