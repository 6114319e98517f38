"""What a resume carried over stands once in whatever order its file and the one that it goes on from come, in a store
that wrote neither."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.index import StoreIndex
from harken.repo import Repo
from support import claude_lines as claude
from support.opencode_database import OpenCodeDatabase, text
from support.recordings import FOLDER
from support.rollouts import Rollout

RUNTIMES = ("claude-code", "codex")
OTHERS = ("gemini-cli", "opencode", "pi", "qwen-code", "copilot-cli")
CALLED = (
    ("response_item", {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"}),
    ("response_item", {"type": "function_call_output", "call_id": "c1", "output": "in the harbour"}),
)


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with harken.open(tmp_path / "store.db") as repo:
        yield repo


def counts(index: StoreIndex) -> dict[str, Any]:
    """How often each thing is there, whoever has it."""
    said = "SELECT role, count(*) FROM messages WHERE role NOT IN ('title', 'system') GROUP BY role ORDER BY role"
    calls = "SELECT tool, failed, count(*) FROM calls GROUP BY 1, 2 ORDER BY 1, 2"
    words = "SELECT count(*) FROM words JOIN messages ON n = words.rowid WHERE words MATCH 'walrus' AND role != 'title'"
    totals = "SELECT tool, sum(calls) FROM call_totals GROUP BY tool"
    return {query: index.query(query) for query in (said, calls, words, totals)}


def take_in(repo: Repo, path: Path) -> None:
    assert "failed" not in [one.status for one in repo.import_sessions([path])]
    repo.index.catch_up()


def in_order(files: Sequence[Path], store: Path) -> dict[str, Any]:
    """What an index comes to that grew with the files, which has to be what one built anew says."""
    with harken.open(store) as repo:
        for path in files:
            take_in(repo, path)
        told = counts(repo.index)
        with StoreIndex(repo.store, None) as anew:
            anew.catch_up()
            assert told == counts(anew)
        return told


def held(folder: Path, *more: dict[str, Any]) -> Path:
    path = folder / "S.jsonl"
    called = claude.assistant("a1", "a0", [claude.call("c1")], "m1", 2)
    said = [claude.user("u0", None, "walrus"), claude.assistant("a0", "u0", "in the harbour", "m0", 1), called]
    said += [claude.result("r1", "a1", "c1", 3), claude.user("u2", "r1", "go on", 4)]
    path.write_bytes(claude.dump(*said, claude.assistant("a2", "u2", "so it is", "m2", 5), *more))
    return path


def thread(folder: Path) -> Path:
    path = folder / "rollout-2026-01-02T00-00-00-019b88e5-0000-7b90-8953-38fce393c653.jsonl"
    made = Rollout(id=path.stem[-36:]).turn("walrus", *CALLED)
    path.write_bytes(made.turn("go on").data)
    return path


def go_on(path: Path, runtime: str, *words: str) -> None:
    """More is said in a session of Claude Code or Codex, each answered alike."""
    if runtime == "codex":
        more = b"".join(Rollout(bare=True).user(said).model("so it is").data for said in words)
    elif runtime == "claude-code":
        told = map(json.loads, reversed(path.read_bytes().splitlines()))
        last = next(line["uuid"] for line in told if "uuid" in line)  # a name may stand behind
        lines = []
        for number, said in enumerate(words):
            asked, answered = f"{path.stem}-u{number}", f"{path.stem}-a{number}"
            lines += [claude.user(asked, last, said, 90), claude.assistant(answered, asked, "so it is", answered, 91)]
            last = answered
        more = claude.dump(*(line | {"sessionId": path.stem} for line in lines))
    path.write_bytes(path.read_bytes() + more)


def resumed(repo: Repo, session: str, runtime: str, folder: Path, *words: str) -> tuple[str, Path]:
    home = folder / (".gemini" if runtime == "gemini-cli" else "home")
    ready = repo.resume(session, runtime, cwd=folder, home=home)
    if words:
        go_on(Path(ready.path), runtime, *words)
    take_in(repo, Path(ready.path))
    return ready.session, Path(ready.path)


@pytest.mark.parametrize("target", [*RUNTIMES, *OTHERS])
@pytest.mark.parametrize("source", ["claude-code", "codex"])
def test_a_resume_that_comes_before_its_source(repo: Repo, tmp_path: Path, source: str, target: str) -> None:
    first = held(tmp_path) if source == "claude-code" else thread(tmp_path)
    take_in(repo, first)
    before = counts(repo.index)
    _, second = resumed(repo, repo.sessions()[0].session, target, tmp_path)

    assert before == in_order([first, second], tmp_path / "one.db")
    assert before == in_order([second, first], tmp_path / "other.db")


@pytest.mark.parametrize("target", [*RUNTIMES, *OTHERS])
def test_a_resume_of_a_fork_that_only_points_at_its_thread(repo: Repo, tmp_path: Path, target: str) -> None:
    """What the fork has from there is in no record of its own, and in the resumed copy it is."""
    thread, fork = sorted((FOLDER / "codex-0.166.0" / "forked").rglob("*.jsonl"))
    take_in(repo, thread)
    take_in(repo, fork)
    before = counts(repo.index)
    [session] = [row.session for row in repo.sessions() if row.session in fork.name]
    _, copy = resumed(repo, session, target, tmp_path)

    assert before == counts(repo.index)
    for number, order in enumerate([[thread, fork, copy], [copy, thread, fork], [thread, copy, fork]]):
        assert before == in_order(order, tmp_path / f"{number}.db"), number


@pytest.mark.parametrize("version", ["codex-0.110.0", "codex-0.166.0"])
def test_a_resume_of_a_compacted_thread_in_codex(repo: Repo, tmp_path: Path, version: str) -> None:
    """The copy begins with the compaction, and the thread with what was said before."""
    [thread] = (FOLDER / version / "compacted").rglob("*.jsonl")
    take_in(repo, thread)
    before = spoken(repo.index)
    _, copy = resumed(repo, repo.sessions()[0].session, "codex", tmp_path)

    assert before == spoken(repo.index)
    for number, order in enumerate(permutations([thread, copy])):
        with harken.open(tmp_path / f"{number}.db") as other:
            for path in order:
                take_in(other, path)
            assert before == spoken(other.index), number


def spoken(index: StoreIndex) -> list[tuple[object, ...]]:
    return index.query(
        "SELECT role, count(*) FROM messages WHERE role NOT IN ('title', 'system') GROUP BY 1 ORDER BY 1"
    )


@pytest.mark.parametrize("runtimes", [(one, other) for one in RUNTIMES for other in RUNTIMES], ids="-".join)
@pytest.mark.parametrize("source", ["claude-code", "codex"])
def test_resumes_of_resumes_in_any_order(repo: Repo, tmp_path: Path, source: str, runtimes: tuple[str, str]) -> None:
    """Each of which went on in words that were said before."""
    files = [held(tmp_path) if source == "claude-code" else thread(tmp_path)]
    take_in(repo, files[0])
    session = repo.sessions()[0].session
    for runtime in runtimes:
        session, path = resumed(repo, session, runtime, tmp_path, "go on", "go on")
        files.append(path)
    whole = counts(repo.index)
    people = dict(next(iter(whole.values())))["human"]

    assert 6 == people
    for number, order in enumerate(permutations(files)):
        assert whole == in_order(order, tmp_path / f"{number}.db"), number


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("source", RUNTIMES)
def test_a_source_that_went_on_in_the_same_words(repo: Repo, tmp_path: Path, source: str, runtime: str) -> None:
    first = held(tmp_path) if source == "claude-code" else thread(tmp_path)
    take_in(repo, first)
    half = first.read_bytes()
    _, second = resumed(repo, repo.sessions()[0].session, runtime, tmp_path, "go on")
    go_on(first, source, "go on")
    take_in(repo, first)
    whole = counts(repo.index)
    grown = first.read_bytes()

    assert 4 == dict(next(iter(whole.values())))["human"]
    for number, order in enumerate(["-+2", "-2+", "2-+", "+2", "2+"]):
        with harken.open(tmp_path / f"{number}.db") as other:
            for step in order:
                first.write_bytes(half if step == "-" else grown)
                take_in(other, second if step == "2" else first)
            assert whole == counts(other.index), order


def test_a_conversation_that_comes_back_to_a_database_twice(repo: Repo, tmp_path: Path) -> None:
    """Its messages are known by their times, and so have their old names each time."""
    database = OpenCodeDatabase(tmp_path / "opencode.db")
    session = database.session()
    for words in ("walrus", "the other one"):
        database.turn(session, words, text("in the harbour"))
    take_in(repo, database.path)
    files = [database.path]
    for number in range(2):
        ready = repo.resume(session, "claude-code", cwd=tmp_path, home=tmp_path / "home")
        files.append(Path(ready.path))
        go_on(files[-1], "claude-code", f"walrus {number} there")
        take_in(repo, files[-1])
        ready = repo.resume(ready.session, "opencode", cwd=tmp_path, home=tmp_path / "home")
        session = ready.session
        database.take_in(Path(ready.path).read_bytes())
        database.wait(3_600_000)
        database.turn(session, f"walrus {number} here", text("so it is"))
        take_in(repo, database.path)
    database.close()

    expected = counts(repo.index)
    for number, order in enumerate(permutations(files)):
        assert expected == in_order(order, tmp_path / f"{number}.db"), [path.name for path in order]
