"""What an import says it added is what the store has more than before, and a session counts once."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.api.runtimes import ImportCounts, ImportReport, ImportRequest, WatchRequest, import_sessions, watch
from harken.api.stats import StatsRequest, StatsTotal, stats
from support.sessions import conversation

from .conftest import age


def imported(repo: harken.Repo, *paths: Path) -> tuple[list[Any], ImportCounts]:
    *lines, last = import_sessions(repo, ImportRequest(paths=tuple(map(str, paths))))
    assert isinstance(last, ImportReport)
    return lines, last.report


def test_a_copy_of_a_stored_session_adds_nothing(repo: harken.Repo, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("aaa.jsonl", "a.txt", "c")]
    for path in paths:
        path.write_bytes(conversation("aaa").data)
    _, first = imported(repo, paths[0])
    stored = len(repo.store.commits())

    lines, report = imported(repo, *paths[1:])

    assert stored == first.commits == len(repo.store.commits())
    assert ["unchanged", "unchanged"] == [line.status for line in lines]
    assert (1, 0, 0, 0, 0) == (report.sessions, report.changed, report.commits, report.records, report.bytes)


def test_a_session_in_two_files_counts_once_with_the_commits_of_both(repo: harken.Repo, tmp_path: Path) -> None:
    whole = conversation("aaa", 3)
    (tmp_path / "a.jsonl").write_bytes(b"".join(whole.lines[:4]))
    (tmp_path / "b.jsonl").write_bytes(whole.data)

    _, report = imported(repo, tmp_path)

    assert 1 == report.sessions
    assert len(repo.store.commits()) == report.commits


def test_agents_inside_a_file_are_counted_apart_and_by_the_rule_of_stats(repo: harken.Repo, tmp_path: Path) -> None:
    for name in ("aaa", "bbb"):
        session = conversation(name)
        for record in (conversation(name, 1, agent="x1", salt="side").lines,):
            for line in record:
                session.lines.append(line)
        (tmp_path / f"{name}.jsonl").write_bytes(session.data)

    _, report = imported(repo, tmp_path)
    _, again = imported(repo, tmp_path)

    *_, last = stats(repo, StatsRequest())
    assert isinstance(last, StatsTotal)
    rows = repo.sessions()
    assert 4 == len(rows)
    assert (2, 2) == (report.sessions, report.agents) == (last.total.sessions, last.total.agents)
    assert (2, 2, 0) == (again.sessions, again.agents, again.changed)
    assert len(repo.store.commits()) == report.commits


def test_a_file_that_grew_twice_under_watch_is_one_session(repo: harken.Repo, tmp_path: Path) -> None:
    whole = conversation("aaa", 3)
    path = tmp_path / "aaa.jsonl"
    ends = iter((8, 12))
    path.write_bytes(b"".join(whole.lines[:4]))
    age(path)
    stop = threading.Event()
    report = None

    for one in watch(repo, WatchRequest(paths=(str(path),), interval=0.01), stop=stop):
        if isinstance(one, ImportReport):
            report = one.report
        elif (end := next(ends, None)) is not None:
            path.write_bytes(b"".join(whole.lines[:end]))
            age(path, 10 + end)
        else:
            stop.set()

    assert report is not None
    assert (1, 1) == (report.sessions, report.changed)
    assert len(repo.store.commits()) == report.commits


def test_what_is_not_looked_at_because_of_its_name_is_told(repo: harken.Repo, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    (folder / "aaa" / "tool-results").mkdir(parents=True)
    (folder / "aaa" / "tool-results" / "long.txt").write_text("the session's own")
    (folder / "below").mkdir()
    for name in ("aaa.jsonl", "a.txt", "below/c", "d.jsonl.bak"):
        (folder / name).write_bytes(conversation("aaa").data)

    lines, report = imported(repo, folder)

    assert ["aaa"] == [line.session for line in lines]
    names = [str(folder / name) for name in ("a.txt", "d.jsonl.bak", "below/c")]
    assert (3, names) == (report.skipped, [one.source for one in report.passed_over])


def test_in_its_own_place_a_runtime_says_what_a_session_is_called(repo: harken.Repo, tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "-work"
    folder.mkdir(parents=True)
    for name in ("aaa.jsonl", "memory.md"):
        (folder / name).write_bytes(conversation("aaa").data)

    *_, last = import_sessions(repo, ImportRequest(environ={"HOME": str(tmp_path)}))

    assert isinstance(last, ImportReport)
    assert (1, 0) == (last.report.sessions, last.report.skipped)


def test_a_session_of_many_files_is_read_once_for_what_it_amounts_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file costs the same, however many the session has, and its lines say what `stats` does."""

    def reads(count: int) -> int:
        (folder := tmp_path / str(count)).mkdir()
        for number in range(count):
            (folder / f"{number}.jsonl").write_bytes(conversation("aaa", 2, salt=f"{number}").data)
        with harken.open(tmp_path / f"{count}.db") as repo:
            done: list[str] = []
            for name in ("walk", "get_many"):
                method = getattr(type(repo.store), name)

                def noted(*args: Any, _method: Any = method, **options: Any) -> Any:
                    done.append(args[1])
                    return _method(*args, **options)

                monkeypatch.setattr(type(repo.store), name, noted)
            lines, _ = imported(repo, folder)
            monkeypatch.undo()
            again, _ = imported(repo, folder)
            (told,) = repo.stats(["aaa"])
            # The first line was told when nothing else was known.
            assert {2 * count} == {line.prompts.human for line in lines[1:] + again}
            assert {told.figures.usage.output} == {line.usage.output for line in lines[1:] + again}
            return len(done)

    few, many = reads(10), reads(30)

    assert many < 3.5 * few
