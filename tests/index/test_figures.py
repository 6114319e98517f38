"""The numbers in the index are those of `Repo.stats`, in whatever order sessions came."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken.analytics.prices import micros
from harken.events import Tokens
from harken.repo import Repo
from harken.repo.counting import TotalFigures
from support.double_counting import CASES, OPUS, Case, Used, answered, claude, name, said

RECORDED = Path(__file__).parents[1] / "recorded"
SUMS = "SELECT sum(input), sum(output), sum(cache_read), sum(coalesce(cache_write_5m, 0) + coalesce(cache_write_1h, 0))"


def counted(repo: Repo) -> list[int]:
    repo.index.catch_up()
    assert [] == repo.index.query("SELECT problem FROM figures WHERE problem != ''")
    ((*sums,),) = repo.index.query(f"{SUMS} FROM usage WHERE counted")
    return [each or 0 for each in sums]


def total(repo: Repo) -> list[int]:
    *_, last = repo.stats()
    figures = last.figures
    usage = figures.usage if isinstance(last, TotalFigures) or last.with_agents is None else last.with_agents.usage
    return [getattr(usage, name) or 0 for name in Tokens.__struct_fields__]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repo]:
    with harken.open(tmp_path_factory.mktemp("recorded") / "store.db") as repo:
        list(repo.import_sessions([RECORDED]))
        yield repo


def test_the_sum_over_what_is_counted_is_the_total(recorded: Repo) -> None:
    assert total(recorded) == counted(recorded) != [0, 0, 0, 0]


class TestNothingIsCountedTwice:
    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
    @pytest.mark.parametrize("order", [1, -1], ids=["first to last", "last to first"])
    def test_tokens_and_cost_are_those_that_were_used(self, case: Case, order: int, tmp_path: Path) -> None:
        used = case.write(tmp_path)
        with harken.open("memory:") as repo:
            for path in sorted(tmp_path.rglob("*.jsonl"))[::order]:
                list(repo.import_sessions([path]))
                repo.index.catch_up()

            assert tokens(used) == counted(repo) == total(repo)
            ((cost,),) = repo.index.query("SELECT sum(cost) FROM usage WHERE counted")
            assert round(sum(one.micros for one in used)) == micros(cost)


@pytest.mark.parametrize("runtime", ["claude-code", "codex"])
def test_what_a_resume_carries_over_counts_where_it_was_made(tmp_path: Path, runtime: str) -> None:
    used = Used(OPUS, 10, 200, 3000, 400, 50)
    claude(tmp_path, name(1), said(name(1), 1), answered(name(1), 2, used, "msg_1"))
    with harken.open(tmp_path / "store.db") as repo:
        list(repo.import_sessions([tmp_path / "claude"]))
        repo.resume(name(1), runtime, cwd=tmp_path, home=tmp_path / "home", environ={})
        list(repo.import_sessions([tmp_path / "home"]))

        assert tokens([used]) == counted(repo) == total(repo)
        assert 2 == len(repo.sessions())


def tokens(used: list[Used]) -> list[int]:
    columns = [*zip(*used, strict=True)][1:]
    given, output, read, for_minutes, for_an_hour = (sum(map(int, column)) for column in columns)
    return [given, output, read, for_minutes + for_an_hour]


def test_whatever_stands_in_a_session_is_counted_and_stops_no_other(tmp_path: Path) -> None:
    odd = answered(name(1), 3, Used(OPUS, 1, 1), "msg_\ud800")
    given = {"file_path": "/a/\ud800", "model": "\udfff"}
    odd["message"]["content"] = [{"type": "tool_use", "id": "\ud800", "name": "Re\ud800ad", "input": given}]
    odd["message"]["model"] = "m\ud800"
    boundary = said(name(1), 4) | {"type": "system", "subtype": "compact_boundary"}
    boundary["compactMetadata"] = {"trigger": "\ud800", "preTokens": 1e400}
    claude(tmp_path, name(1), said(name(1), 1), odd, boundary)
    claude(tmp_path, name(2), said(name(2), 1), answered(name(2), 2, Used(OPUS, 10, 20), "msg_2"))
    with harken.open("memory:") as repo:
        list(repo.import_sessions([tmp_path]))

        assert [11, 21, 0, 0] == counted(repo)
