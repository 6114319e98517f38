"""Real sessions of others: all of them go in, come back as they were, and have the same names everywhere."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import runtimes
from harken.runtimes.files import walk
from harken.runtimes.importer import Importer
from harken.runtimes.memory import ImportResult

from .conftest import age

CORPUS = os.environ.get("HARKEN_CORPUS", "")
pytestmark = pytest.mark.skipif(not CORPUS, reason="HARKEN_CORPUS names no folder of real sessions")


def import_all(repo: Any, *folders: Path) -> list[ImportResult]:
    importer = Importer(repo.store, [runtimes.get(name) for name in runtimes.names()])
    return [outcome for folder in folders for outcome in importer.run(walk(folder))]


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, list[ImportResult]]]:
    with harken.open(tmp_path_factory.mktemp("corpus") / "store.db") as repo:
        yield repo, import_all(repo, Path(CORPUS, "claude_code"), Path(CORPUS, "codex_rollout"))


def test_every_session_goes_in(imported: tuple[Any, list[ImportResult]]) -> None:
    _, outcomes = imported

    assert {"new"} == {outcome.status for outcome in outcomes}
    assert len(outcomes) == sum(
        1 for kind in ("claude_code", "codex_rollout") for _ in Path(CORPUS, kind).rglob("*.jsonl")
    )


def test_every_file_comes_back_byte_for_byte(imported: tuple[Any, list[ImportResult]]) -> None:
    repo, outcomes = imported

    changed = [
        outcome.source
        for outcome in outcomes
        if Path(outcome.source).read_bytes() != repo.materialize(f"ctx-{outcome.tip}", stop="root").bytes
    ]

    assert [] == changed


def test_a_second_import_adds_nothing(imported: tuple[Any, list[ImportResult]]) -> None:
    repo, first = imported

    again = import_all(repo, Path(CORPUS, "claude_code"), Path(CORPUS, "codex_rollout"))

    assert {("unchanged", 0)} == {(outcome.status, outcome.commits) for outcome in again}
    assert {outcome.session: outcome.tip for outcome in first} == {outcome.session: outcome.tip for outcome in again}


def test_two_stores_give_the_same_names(imported: tuple[Any, list[ImportResult]], tmp_path: Path) -> None:
    _, first = imported
    with harken.open(tmp_path / "store.db") as other:
        second = import_all(other, Path(CORPUS, "codex_rollout"), Path(CORPUS, "claude_code"))

    assert {o.source: o.tip for o in first} == {o.source: o.tip for o in second}


def test_the_context_of_a_context_is_itself(imported: tuple[Any, list[ImportResult]]) -> None:
    repo, outcomes = imported
    from harken import formats

    for outcome in outcomes:
        made = repo.materialize(outcome.session)
        context = formats.get(made.format).context
        assert made.bytes == context(made.bytes), outcome.source


def test_a_session_imported_as_it_grew_ends_where_a_fresh_import_ends(tmp_path: Path) -> None:
    (series,) = {path.parent for path in Path(CORPUS, "claude_code_growth").rglob("*.jsonl")}
    steps = sorted(series.glob("*.jsonl"))
    path = tmp_path / "grown" / "session.jsonl"
    path.parent.mkdir()
    with harken.open(tmp_path / "grown.db") as repo:
        for step in steps:
            shutil.copyfile(step, path)
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


def test_a_copy_of_a_real_session_costs_at_most_three_percent(tmp_path: Path) -> None:
    largest = sorted(Path(CORPUS, "claude_code").rglob("*.jsonl"), key=lambda path: path.stat().st_size)[-3:]
    for number, original in enumerate(largest):
        data = original.read_bytes()
        name = next(json.loads(line)["sessionId"] for line in data.splitlines() if b'"sessionId":"' in line)
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "fork.jsonl").write_bytes(data.replace(name.encode(), b"11111111-2222-4333-8444-555555555555"))
        store = folder / "store.db"
        with harken.open(store) as repo:
            import_all(repo, original)
        before = store.stat().st_size
        with harken.open(store) as repo:
            (fork,) = import_all(repo, folder / "fork.jsonl")

        assert fork.forked_from
        assert store.stat().st_size - before <= 0.03 * len(data), original.name
