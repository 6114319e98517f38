"""OpenCode before 1.2: a session is many files, and the same one that the program later moves into its database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import runtimes
from harken.formats import get
from harken.runtimes.files import session_files
from harken.runtimes.importer import Importer
from harken.runtimes.memory import ImportResult
from support.opencode_database import OpenCodeDatabase
from support.opencode_storage import spread, write

TOOL = {"type": "tool", "tool": "bash", "callID": "toolu_1", "state": {
    "status": "completed", "input": {"command": "ls"}, "output": "a.txt\n", "title": "", "metadata": {},
    "time": {"start": 1_794_738_000_100, "end": 1_794_738_000_200}}}  # fmt: skip


@pytest.fixture
def database(tmp_path: Path) -> Iterator[OpenCodeDatabase]:
    """Two turns, the first with a tool."""
    made = OpenCodeDatabase(tmp_path / "migrated" / "opencode.db")
    session = made.session()
    made.turn(session, "Look — très bien ☕!", {"type": "text", "text": "I look."}, TOOL)
    made.turn(session, "Again.", {"type": "text", "text": "Done."})
    made.execute("DELETE FROM event")  # what the files tell, the log does not
    yield made
    made.close()


def take_in(store: Path, *points: Path) -> dict[str, ImportResult]:
    """Import what lies there, by the files that it came from."""
    chosen = runtimes.chosen(())
    with harken.open(store) as repo:
        found = list(Importer(repo.store, chosen).run(session_files(points, chosen)))
    return {result.source.rpartition("/")[2]: result for result in found if result.status != "skipped"}


def rows_of(store: Path, ref: str) -> list[dict[str, Any]]:
    with harken.open(store) as repo:
        return [json.loads(line) for line in repo.materialize(ref, stop="root").bytes.splitlines()]


def test_the_files_of_a_session_are_the_rows_that_the_database_has_of_it(
    database: OpenCodeDatabase, tmp_path: Path
) -> None:
    home = spread(database, tmp_path / "opencode")

    [found] = take_in(tmp_path / "a.db", home).values()

    assert ("ses_one", "opencode", "new", 4, 0) == (
        found.session, found.runtime, found.status, found.records, found.opaque,
    )  # fmt: skip
    take_in(tmp_path / "b.db", database.path)
    rows, migrated = rows_of(tmp_path / "a.db", "ses_one"), rows_of(tmp_path / "b.db", "ses_one")
    assert [row["data"] for line in migrated[:-1] for row in line.values()] == [
        row["data"] for line in rows[:-1] for row in line.values()
    ]
    assert [(table, row["id"]) for line in migrated for table, row in line.items()] == [
        (table, row["id"]) for line in rows for table, row in line.items()
    ]
    assert "A title" == rows[-1]["session"]["title"] == rows[-1]["session"]["data"]["title"]


def test_a_second_import_adds_nothing_and_one_after_growth_ends_as_a_fresh_one(
    database: OpenCodeDatabase, tmp_path: Path
) -> None:
    home = spread(database, tmp_path / "opencode")
    take_in(tmp_path / "a.db", home)
    [again] = take_in(tmp_path / "a.db", home).values()
    assert ("unchanged", 0) == (again.status, again.commits)

    database.turn("ses_one", "And on.", {"type": "text", "text": "Gladly."})
    spread(database, tmp_path / "opencode")
    [grown] = take_in(tmp_path / "a.db", home).values()
    [fresh] = take_in(tmp_path / "b.db", home).values()

    assert ("grown", fresh.tip) == (grown.status, grown.tip)


def test_a_part_alone_that_changes_is_noticed(database: OpenCodeDatabase, tmp_path: Path) -> None:
    home = spread(database, tmp_path / "opencode")
    [before] = take_in(tmp_path / "a.db", home).values()
    part = sorted(home.glob("part/*/*.json"))[-2]
    write(part, json.loads(part.read_text()) | {"text": "Done, and well."})

    [after] = take_in(tmp_path / "a.db", home).values()

    assert before.tip != after.tip
    assert "Done, and well." in json.dumps(rows_of(tmp_path / "a.db", "ses_one"))


@pytest.mark.parametrize("order", [("files", "database"), ("database", "files")], ids=["before", "after"])
def test_what_the_program_moved_into_its_database_is_the_same_session(
    database: OpenCodeDatabase, tmp_path: Path, order: tuple[str, str]
) -> None:
    places = {"files": spread(database, tmp_path / "opencode"), "database": database.path}
    database.turn("ses_one", "And on.", {"type": "text", "text": "Gladly."})
    for kind in order:
        take_in(tmp_path / "a.db", places[kind])
    [alone] = take_in(tmp_path / "b.db", database.path).values()

    with harken.open(tmp_path / "a.db") as repo:
        [row] = repo.sessions()
        [told] = repo.stats(["ses_one"])
    assert ("ses_one", alone.tip) == (row.session, row.tip)
    assert (alone.figures, 3) == (told.figures, told.figures.prompts.human)


def test_what_is_gone_stays_in_the_store(database: OpenCodeDatabase, tmp_path: Path) -> None:
    home = spread(database, tmp_path / "opencode")
    [before] = take_in(tmp_path / "a.db", home).values()
    for path in home.rglob("*.json"):
        path.unlink()

    assert {} == take_in(tmp_path / "a.db", home)

    with harken.open(tmp_path / "a.db") as repo:
        assert [before.tip] == [row.tip for row in repo.sessions()]


def test_broken_files_are_kept_and_missing_ones_cost_nothing_else(database: OpenCodeDatabase, tmp_path: Path) -> None:
    home = spread(database, tmp_path / "opencode")
    first, second, *_ = sorted(home.glob("message/*/*.json"))
    next(home.glob(f"part/{first.stem}/*.json")).write_bytes(b'{"type": "text", "text": "cut off')
    for part in home.glob(f"part/{second.stem}/*.json"):
        part.unlink()
    (home / "message" / "ses_one" / "msg_zzz.json").write_bytes(b"")

    [found] = take_in(tmp_path / "a.db", home).values()

    assert 2 == found.opaque
    rows = json.dumps(rows_of(tmp_path / "a.db", "ses_one"))
    assert "cut off" in rows and "Again." in rows


def test_sessions_of_the_oldest_layout_are_read_too(database: OpenCodeDatabase, tmp_path: Path) -> None:
    take_in(tmp_path / "a.db", spread(database, tmp_path / "old", old=True))
    take_in(tmp_path / "b.db", spread(database, tmp_path / "new"))

    assert rows_of(tmp_path / "b.db", "ses_one") == rows_of(tmp_path / "a.db", "ses_one")


def test_the_files_of_messages_are_no_sources_of_their_own_unless_their_session_is_not_there(
    database: OpenCodeDatabase, tmp_path: Path
) -> None:
    home = spread(database, tmp_path / "opencode")
    write(home / "message" / "ses_gone" / "msg_1.json", {"id": "msg_1", "sessionID": "ses_gone", "role": "user"})
    chosen = runtimes.chosen(())

    found = {Path(str(path)).name: path for path in session_files([home], chosen)}

    assert {"ses_one.json", "msg_1.json"} == found.keys()
    with harken.open(tmp_path / "a.db") as repo:
        results = {result.status: result for result in Importer(repo.store, chosen).run(found.values())}
    assert "whose own file was not found" in results["skipped"].error


def test_a_session_cannot_name_files_outside_its_folder(database: OpenCodeDatabase, tmp_path: Path) -> None:
    home = spread(database, tmp_path / "opencode")
    write(tmp_path / "secret" / "prt_1.json", {"id": "prt_1", "type": "text", "text": "a secret"})
    write(home / "message" / "ses_one" / "odd.json", {"id": "../../secret", "role": "user", "time": {"created": 1}})

    take_in(tmp_path / "a.db", home)

    assert "a secret" not in json.dumps(rows_of(tmp_path / "a.db", "ses_one"))


def test_every_token_of_a_file_is_kept_as_it_stands(database: OpenCodeDatabase, tmp_path: Path) -> None:
    home = spread(database, tmp_path / "opencode")
    path = sorted(home.glob("message/*/*.json"))[0]
    own = f'"id": "{path.stem}", "sessionID": "ses_one"'
    path.write_text(f'{{\n  {own}, "role": "user", "time": {{"created": 1794738000001}}, "n": [1.0e3,\n "\\u00e9"]}}')

    take_in(tmp_path / "a.db", home)

    with harken.open(tmp_path / "a.db") as repo:
        data = repo.materialize("ses_one", stop="root").bytes
    assert b'"data":{"role":"user","time":{"created":1794738000001},"n":[1.0e3,"\\u00e9"]}}}\n' in data
    assert [] == [event for event in get("opencode-rows-v1").read(data) if getattr(event, "why", "")]
