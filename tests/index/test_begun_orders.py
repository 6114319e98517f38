"""What agents of session logs began with counts as often in whatever order the logs and what they begin with come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import harken
from harken.index import StoreIndex
from harken.log import Session
from harken.repo import Repo
from support.claude_lines import assistant, call, dump, result, user
from support.indexes import digest
from support.rollouts import Rollout

WORDS = ("walrus", "otter", "heron")
PARENT, FORK = "019b88e5-0000-7b90-8953-38fce393c653", "019b88e5-ffff-7b90-8953-38fce393c653"
CALLED = {"name": "shell", "arguments": "{}", "call_id": "c1"}


def say(session: Session, text: str, agent: str = "agent_001") -> None:
    session.log_transcript_entry(agent, {"role": "user", "content": text})


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with harken.open(tmp_path / "store.db") as repo:
        yield repo


def counts(index: StoreIndex) -> dict[str, Any]:
    """How often each thing is there, whoever has it."""
    said = index.query(
        "SELECT role, tool, size, sum, count(*) FROM messages WHERE role != 'title' GROUP BY 1, 2, 3, 4"
        " ORDER BY size, sum, role"
    )
    calls = index.query("SELECT tool, failed, count(*) FROM calls GROUP BY 1, 2 ORDER BY 1, 2")
    totals = index.query("SELECT tool, sum(calls) FROM call_totals GROUP BY 1 ORDER BY 1")
    words = "SELECT count(*) FROM words JOIN messages ON n = words.rowid WHERE words MATCH ? AND role != 'title'"
    found = {word: next(iter(index.query(words, (word,))))[0] for word in WORDS}
    return {"said": said, "calls": calls, "totals": totals, "found": found}


def orders(files: Iterable[Path], folder: Path) -> list[dict[str, Any]]:
    """What an index comes to that grew with each order of the files, which has to be what one built anew says."""
    told = []
    for number, order in enumerate(permutations(files)):
        with harken.open(folder / f"order-{number}.db") as repo:
            for path in order:
                assert "failed" not in [one.status for one in repo.import_sessions([path])]
                repo.index.catch_up()
            told.append(counts(repo.index))
            with StoreIndex(repo.store, None) as anew:
                anew.catch_up()
                assert counts(anew) == told[-1]
    return told


def people(told: dict[str, Any]) -> int:
    return sum(count for role, *_, count in told["said"] if role == "human")


def test_two_logs_whose_agents_begin_with_one_another(repo: Repo, tmp_path: Path) -> None:
    one, two = (repo.session(tmp_path / name, ack="os") for name in ("one", "two"))
    with one, two:
        say(one, "walrus")
        one.checkpoint()
        bob = repo.agent(one.session_id, session=two, name="Bob")
        bob.harken("otter")
        two.checkpoint()
        repo.agent(f"{two.session_id}/{bob.agent_id}", session=one, name="Ann")
        say(one, "heron")

    first, second = orders([tmp_path / "one", tmp_path / "two"], tmp_path)

    assert first == second
    assert 3 == people(first)


STEPS = st.lists(
    st.tuples(st.sampled_from(["say", *["begin"] * 2]), *[st.integers(0, 2)] * 4),
    min_size=2,
    max_size=7,
)


@given(STEPS, st.sampled_from([3, 0, 1, 2]))
@example([("say", 0, 0, 1, 0), ("begin", 1, 0, 0, 0), ("say", 1, 1, 2, 0), ("begin", 2, 0, 1, 1)], 3)
@example([("begin", 1, 0, 0, 0), ("begin", 0, 0, 1, 1), ("say", 0, 1, 0, 0)], 3)
@settings(max_examples=15)  # three logs have six orders, and each grows an index of its own
def test_logs_in_any_order(steps: list[tuple[str, int, int, int, int]], absent: int) -> None:
    """Whichever agent begins with what which other has, and also where one of the logs is not there."""
    with TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        paths = [folder / f"log-{number}" for number in range(3)]
        repo = stack.enter_context(harken.open(folder / "store.db"))
        sessions = [stack.enter_context(repo.session(path, ack="os")) for path in paths]
        agents = [["agent_001"] for _ in sessions]
        for number, session in enumerate(sessions):
            say(session, f"hello {number}")
            session.checkpoint()
        for place, (what, number, agent, other, theirs) in enumerate(steps):
            session, known = sessions[number], agents[number]
            if what == "say":
                say(session, WORDS[other], known[agent % len(known)])
            else:
                source = f"{sessions[other].session_id}/{agents[other][theirs % len(agents[other])]}"
                begun = repo.agent(source.removesuffix("/agent_001"), session=session, name=f"Number {place}")
                known.append(begun.agent_id)
            session.checkpoint()
        stack.pop_all().close()

        first, *others = orders([path for place, path in enumerate(paths) if place != absent], folder)

        assert [first] * len(others) == others
        if absent == 3:
            assert [what for what, *_ in steps].count("say") + 3 == people(first)


def begin(repo: Repo, source: str, path: Path) -> None:
    with repo.session(path, ack="os") as session:
        say(session, "heron")
        repo.agent(source, session=session, name="Ann")


def test_an_agent_that_begins_with_a_fork_of_codex(repo: Repo, tmp_path: Path) -> None:
    """A fork that only names its parent has no copies of what was said there."""
    parent = Rollout(id=PARENT).turn("walrus", ("response_item", {"type": "function_call", **CALLED}))
    base = {"thread_id": PARENT, "end_ordinal_exclusive": 99, "end_byte_offset": len(parent.data)}
    fork = Rollout(id=FORK, forked_from_id=PARENT, history_base=base).turn("otter")
    files = [tmp_path / f"rollout-2026-01-02T00-00-00-{name}.jsonl" for name in (PARENT, FORK)]
    for path, rollout in zip(files, (parent, fork), strict=True):
        path.write_bytes(rollout.data)
        list(repo.import_sessions([path]))
    begin(repo, FORK, tmp_path / "log")

    first, *others = orders([*files, tmp_path / "log"], tmp_path)

    assert [first] * len(others) == others
    assert (3, [("shell", None, 1)]) == (people(first), first["calls"])
    with harken.open(tmp_path / "order-0.db") as other:
        assert {"shell": 1} == list(other.stats())[-1].figures.tools


def test_what_was_really_said_twice_stands_twice(repo: Repo, tmp_path: Path) -> None:
    path = tmp_path / "S.jsonl"
    records = [user("u0", None, "walrus"), assistant("a0", "u0", [call("c1")], "m0", 1), result("r0", "a0", "c1", 2)]
    path.write_bytes(dump(*records, user("u1", "r0", "walrus", 3), assistant("a1", "u1", "otter", "m1", 4)))
    list(repo.import_sessions([path]))
    with repo.session(tmp_path / "log", ack="os") as session:
        say(session, "walrus")
        repo.agent("S", session=session, name="Ann")
        repo.agent("S", session=session, name="Ben")

    first, second = orders([path, tmp_path / "log"], tmp_path)

    assert first == second
    assert (3, 1) == (people(first), len(first["calls"]))


def test_what_nobody_says_stands_once_for_each_that_has_it(repo: Repo, tmp_path: Path) -> None:
    say_it = user("u0", None, "walrus")
    (tmp_path / "S.jsonl").write_bytes(dump(say_it, assistant("a0", "u0", "otter", "m0", 1)))
    list(repo.import_sessions([tmp_path / "S.jsonl"]))
    for name in ("one", "two"):
        begin(repo, "S", tmp_path / name)

    first, second = orders([tmp_path / "one", tmp_path / "two"], tmp_path)

    assert first == second
    assert 4 == people(first)
    assert digest(repo.index)["awaited"] == []
