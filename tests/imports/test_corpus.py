"""Real sessions: all of them go in, come back as they were, and have the same names everywhere.

Those recorded for this project are always there; `HARKEN_CORPUS` may name a folder with more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import formats, runtimes
from harken.runtimes.files import walk
from harken.runtimes.importer import Importer
from harken.runtimes.memory import ImportResult
from support.recordings import FOLDER, RecordedSession, corpus_files, recorded, session_folders

from .conftest import age

FOLDERS = [*session_folders("claude-code"), *session_folders("codex")]


def import_all(repo: Any, *folders: Path) -> list[ImportResult]:
    importer = Importer(repo.store, [runtimes.get(name) for name in runtimes.names()])
    return [outcome for folder in folders for outcome in importer.run(walk(folder))]


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, list[ImportResult]]]:
    with harken.open(tmp_path_factory.mktemp("real") / "store.db") as repo:
        yield repo, import_all(repo, *FOLDERS)


def test_every_session_goes_in(imported: tuple[Any, list[ImportResult]]) -> None:
    _, outcomes = imported

    assert {"new"} == {outcome.status for outcome in outcomes}
    assert len(outcomes) == sum(1 for folder in FOLDERS for _ in folder.rglob("*.jsonl"))


def test_every_file_comes_back_byte_for_byte(imported: tuple[Any, list[ImportResult]]) -> None:
    repo, outcomes = imported

    changed = [
        outcome.source
        for outcome in outcomes
        if Path(outcome.source).read_bytes() != repo.materialize(outcome.tip, stop="root").bytes
    ]

    assert [] == changed


def test_a_second_import_adds_nothing(imported: tuple[Any, list[ImportResult]]) -> None:
    repo, first = imported

    again = import_all(repo, *FOLDERS)

    assert {("unchanged", 0)} == {(outcome.status, outcome.commits) for outcome in again}
    assert {outcome.session: outcome.tip for outcome in first} == {outcome.session: outcome.tip for outcome in again}


def test_two_stores_give_the_same_names(imported: tuple[Any, list[ImportResult]], tmp_path: Path) -> None:
    _, first = imported
    with harken.open(tmp_path / "store.db") as other:
        second = import_all(other, *reversed(FOLDERS))

    assert {o.source: o.tip for o in first} == {o.source: o.tip for o in second}


def test_the_context_of_a_context_is_itself(imported: tuple[Any, list[ImportResult]]) -> None:
    repo, outcomes = imported

    for outcome in outcomes:
        made = repo.materialize(outcome.session)
        context = formats.get(made.format).context
        assert made.bytes == context(made.bytes), outcome.source


def test_every_sub_agent_that_was_recorded_is_below_its_session(imported: tuple[Any, list[ImportResult]]) -> None:
    _, outcomes = imported
    parents = {outcome.source: outcome.parent for outcome in outcomes}

    alone = [each.name for each in recorded(agents=True) if each.agent and not parents[str(each.path)]]

    assert [] == alone


STEADY = [each for each in recorded() if len(each.steps) > 1]
GROWING = [(each.name, each.path.name, each.growing()) for each in STEADY] + [
    (folder.name, "session.jsonl", [path.read_bytes() for path in sorted(folder.iterdir())])
    for folder in corpus_files("claude_code_growth/*/*")
]


@pytest.mark.parametrize(("name", "steps"), [case[1:] for case in GROWING], ids=[case[0] for case in GROWING])
def test_a_session_imported_as_it_grew_ends_where_a_fresh_import_ends(
    tmp_path: Path, name: str, steps: list[bytes]
) -> None:
    path = tmp_path / "grown" / name
    path.parent.mkdir()
    with harken.open(tmp_path / "grown.db") as repo:
        for data in steps:
            path.write_bytes(data)
            (grown,) = import_all(repo, path.parent)
    age(path)
    with harken.open(tmp_path / "fresh.db") as repo:
        (fresh,) = import_all(repo, path.parent)

    assert (fresh.tip, fresh.figures, fresh.total_records, fresh.total_commits) == (
        grown.tip,
        grown.figures,
        grown.total_records,
        grown.total_commits,
    )


FORKED = [each for each in recorded() if each.scenario == "forked"]


@pytest.mark.parametrize("runtime", ["claude-code", "codex"])
def test_a_fork_that_the_program_made_is_linked_to_where_it_left(
    imported: tuple[Any, list[ImportResult]], runtime: str
) -> None:
    repo, outcomes = imported
    one, other = (outcome for outcome in outcomes for each in of(runtime) if outcome.source == str(each.path))

    original, fork = (one, other) if other.forked_from else (other, one)

    assert fork.forked_from in {commit.id for commit in repo.history(original.session)}


def of(runtime: str) -> list[RecordedSession]:
    return [each for each in FORKED if each.runtime == runtime]


def largest() -> list[Path]:
    """Where the cost of a copy shows: sessions of some size."""
    files = corpus_files("claude_code/**/*.jsonl") or list(FOLDER.glob("claude-code-*/compacted/**/*.jsonl"))
    return sorted(files, key=lambda path: path.stat().st_size)[-3:]


def test_a_copy_of_a_real_session_costs_at_most_three_percent(tmp_path: Path) -> None:
    """#38. Of its size, and for small ones of the pages that hold a session's rows."""
    for number, original in enumerate(largest()):
        data = original.read_bytes()
        name = next(json.loads(line)["sessionId"] for line in data.splitlines() if b'"sessionId":"' in line)
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "fork.jsonl").write_bytes(data.replace(name.encode(), b"ffffffff-2222-4333-8444-555555555555"))
        store = folder / "store.db"
        with harken.open(store) as repo:
            import_all(repo, original)
        before = store.stat().st_size
        with harken.open(store) as repo:
            (fork,) = import_all(repo, folder / "fork.jsonl")

        assert fork.forked_from
        assert store.stat().st_size - before <= max(0.03 * len(data), 16_384), original.name
