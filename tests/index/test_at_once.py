"""How many sessions went on at the same time: a copy went on when something was done in it, not when what it begins
with was said."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.index import StoreIndex
from harken.index.spending import Spent, UsageWindow
from harken.repo import Repo
from support import claude_lines as claude
from support.rollouts import Rollout

ALWAYS = UsageWindow()


def said(session: str, hour: float, *words: str, after: Sequence[dict[str, Any]] = ()) -> list[dict[str, Any]]:
    """Records of a session, one exchange an hour."""
    found, last = list(after), after[-1]["uuid"] if after else None
    for number, asked in enumerate(words):
        begun = f"{session}{number}"
        found.append(claude.user(f"u{begun}", last, asked) | at(hour + number))
        found.append(claude.assistant(f"a{begun}", f"u{begun}", "so it is", f"m{begun}") | at(hour + number + 0.1))
        last = f"a{begun}"
    return [record | {"sessionId": session} for record in found]


def at(hour: float) -> dict[str, str]:
    return {"timestamp": f"2026-01-{1 + int(hour) // 24:02d}T{int(hour) % 24:02d}:{int(hour % 1 * 60):02d}:00.000Z"}


def write(folder: Path, session: str, records: list[dict[str, Any]]) -> Path:
    path = folder / f"{session}.jsonl"
    path.write_bytes(claude.dump(*records))
    return path


def take_in(repo: Repo, *paths: Path) -> None:
    assert "failed" not in [one.status for one in repo.import_sessions(paths)]
    repo.index.catch_up()


def most(repo: Repo) -> tuple[int, int | None]:
    """As many as an index says that grew with the files; one that is built anew says the same."""
    found = repo.usage()[0].peak()
    with StoreIndex(repo.store, None) as anew:
        anew.catch_up()
        assert found == Spent(anew, ALWAYS).peak()
    return found.sessions, found.time


def in_order(files: Sequence[Path], store: Path) -> tuple[int, int | None]:
    with harken.open(store) as repo:
        for path in files:
            take_in(repo, path)
        return most(repo)


@pytest.mark.parametrize("target", ["claude-code", "codex", "gemini-cli", "pi"])
def test_a_resume_in_which_nothing_was_done_went_on_at_no_time(tmp_path: Path, target: str) -> None:
    first, second = write(tmp_path, "S", said("S", 0, "one", "two")), write(tmp_path, "T", said("T", 1, "three"))
    with harken.open(tmp_path / "store.db") as repo:
        take_in(repo, first, second)
        before = most(repo)
        copy = Path(repo.resume("S", target, cwd=tmp_path, home=tmp_path / ".gemini").path)
        take_in(repo, copy)
        after = most(repo)

    assert before == after == in_order([copy, second, first], tmp_path / "other.db")
    assert 2 == after[0]


def test_a_resume_went_on_when_more_was_said_in_it(tmp_path: Path) -> None:
    first, second = write(tmp_path, "S", said("S", 0, "one", "two")), write(tmp_path, "T", said("T", 3, "three"))
    with harken.open(tmp_path / "store.db") as repo:
        take_in(repo, first, second)
        copy = Path(repo.resume("S", "claude-code", cwd=tmp_path, home=tmp_path / "home").path)
        last = json.loads(copy.read_bytes().splitlines()[-1])
        more = said(copy.stem, 9, "on", "and on", after=[last])[1:]
        copy.write_bytes(copy.read_bytes() + claude.dump(*more))
        take_in(repo, copy)
        alone = most(repo)
        take_in(repo, write(tmp_path, "U", said("U", 8, "four", "five", "six")))
        beside = most(repo)

    assert 1 == alone[0]
    assert 2 == beside[0]
    for number, order in enumerate(permutations([first, second, copy, tmp_path / "U.jsonl"])):
        assert beside == in_order(order, tmp_path / f"{number}.db")


@pytest.mark.parametrize("name", ["A", "Z"])
def test_a_fork_that_repeats_the_records_went_on_behind_them(tmp_path: Path, name: str) -> None:
    whole = said("M", 0, "one", "two")
    fork = said(name, 9, "on", after=whole)
    files = [write(tmp_path, "M", whole), write(tmp_path, name, fork), write(tmp_path, "T", said("T", 5, "three"))]

    for number, order in enumerate(permutations(files)):
        assert 1 == in_order(order, tmp_path / f"{number}.db")[0]


def test_an_original_that_goes_on_meets_its_fork(tmp_path: Path) -> None:
    whole = said("M", 0, "one", "two")
    fork = said("A", 9, "on", "and on", after=whole)
    first = write(tmp_path, "M", whole)
    with harken.open(tmp_path / "store.db") as repo:
        take_in(repo, first, write(tmp_path, "A", fork))
        assert 1 == most(repo)[0]
        take_in(repo, write(tmp_path, "M", said("M", 10, "later", after=whole)))
        assert 2 == most(repo)[0]


def test_a_fork_of_codex_that_repeats_its_thread_went_on_behind_it(tmp_path: Path) -> None:
    name = "rollout-2026-01-02T00-00-00-{}.jsonl"
    thread = Rollout().turn("one").turn("two")
    fork = "019b88e5-0000-7b90-8953-38fce393c653"
    copied = Rollout(id=fork, forked_from_id="019b88e5-a2e4-7b90-8953-38fce393c653")
    copied.lines += thread.lines
    first = tmp_path / name.format("019b88e5-a2e4-7b90-8953-38fce393c653")
    first.write_bytes(thread.data)
    second = tmp_path / name.format(fork)
    second.write_bytes(copied.turn("three").data)

    for number, order in enumerate(permutations([first, second])):
        assert 1 == in_order(order, tmp_path / f"{number}.db")[0]


def test_an_agent_went_on_from_when_something_was_said_to_it(tmp_path: Path) -> None:
    files = [write(tmp_path, "S", said("S", 0, "one", "two")), write(tmp_path, "T", said("T", 3, "three"))]
    with harken.open(tmp_path / "store.db") as repo:
        take_in(repo, *files)
        with repo.session(tmp_path / "log", ack="os") as session:
            agent = repo.agent("S", session=session, name="Ann")
            session.checkpoint()
            before = most(repo)
            agent.harken("hello")
        after = most(repo)

    assert (1, 1) == (before[0], after[0])
    for number, order in enumerate(permutations([*files, tmp_path / "log"])):
        assert after == in_order(order, tmp_path / f"{number}.db")
