"""Every view of the index can be had as a Parquet file, with the same rows as SQL gives, and without secrets."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

import harken
from harken.errors import BadRequest, Conflict
from harken.index.views import NAMES, VIEWS
from harken.repo import Repo
from harken.secrets import own_rule
from support.sessions import ClaudeSession, conversation

SECRET = "acme_0123456789abcdef"
OWN = [own_rule("acme", "acme_", "acme_[0-9a-f]{16}")]


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repo]:
    folder = tmp_path_factory.mktemp("parquet")
    session: ClaudeSession = conversation("aaa", 3)
    session.prompt(f"the key is {SECRET}")
    session.call("Bash", "done", prompt=f"echo {SECRET}")
    (folder / "aaa.jsonl").write_bytes(session.data.replace(b"question 0", f"a {SECRET} \\u0000 'q' ".encode()))
    with harken.open(folder / "store.db") as opened:
        list(opened.import_sessions([folder / "aaa.jsonl"]))
        yield opened


@pytest.fixture(scope="module")
def folder(repo: Repo, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of it, as it is; the folder's name is no pattern and no end of a text."""
    made = tmp_path_factory.mktemp("tables") / "it's [a] *"
    assert NAMES == tuple(file.view for file in repo.export_parquet(made, reveal=True).files())
    return made


def read(path: Path) -> list[tuple[Any, ...]]:
    with duckdb.connect() as engine:
        return engine.from_parquet([str(path).replace("[", "[[]").replace("*", "[*]")]).fetchall()


def told(value: Any) -> Any:
    """An instant as SQL gives it."""
    if not isinstance(value, datetime):
        return value
    return value.replace(tzinfo=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@pytest.mark.parametrize("view", VIEWS, ids=NAMES)
def test_has_the_rows_that_sql_gives(repo: Repo, folder: Path, view: Any) -> None:
    expected = repo.sql(f"SELECT * FROM {view.name}").rows

    found = [tuple(map(told, row)) for row in read(folder / f"{view.name}.parquet")]

    assert sorted(map(repr, expected)) == sorted(map(repr, found))


def test_costs_what_somebody_s_own_prices_say(repo: Repo, tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('[[model]]\nname = "scripted"\ninput = 1\noutput = 1\n')
    list(repo.export_parquet(tmp_path, prices=str(prices)).files())

    asked = "SELECT sum(cost) FROM usage"
    (priced,) = repo.sql(asked, prices=str(prices)).rows
    with duckdb.connect() as engine:
        (read,) = engine.execute(f"SELECT sum(cost) FROM '{tmp_path / 'usage.parquet'}'").fetchall()
    assert pytest.approx(priced) == read
    assert priced != repo.sql(asked).rows[0]


def test_is_for_its_owner_alone(folder: Path) -> None:
    assert {0o600} == {path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert {f"{name}.parquet" for name in NAMES} == {path.name for path in folder.iterdir()}


def test_holds_no_secret_unless_asked_to(repo: Repo, folder: Path, tmp_path: Path) -> None:
    made = repo.export_parquet(tmp_path, own_rules=OWN)
    files = list(made.files())

    shown = [repr(read(Path(file.path))) for file in files]
    assert not any(SECRET in text for text in shown)
    assert made.masked["acme"] >= 2
    revealed = [repr(read(folder / f"{name}.parquet")) for name in NAMES]
    assert sum(SECRET in text for text in revealed) >= 2, "a title and a call"


def test_replaces_nothing_unless_asked_to(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "calls.parquet").write_text("mine")

    with pytest.raises(Conflict, match="exists already"):
        list(repo.export_parquet(tmp_path).files())

    assert ["calls.parquet"] == [path.name for path in tmp_path.iterdir()]
    assert len(NAMES) == len(list(repo.export_parquet(tmp_path, replace=True).files()))


def test_without_duckdb_says_how_to_get_it(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)

    with pytest.raises(BadRequest) as problem:
        list(repo.export_parquet(tmp_path).files())

    assert "pip install 'harken[analytics]'" == problem.value.hint
