"""Several versions of a session: the index says what the session stands as, in whatever order they were imported."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from random import Random

import pytest

import harken
from harken.formats.std.document import dumps
from harken.repo import Repo
from support.gemini_lines import SESSION, document
from support.indexes import digest, found
from support.opencode_database import OpenCodeDatabase, text, tool
from support.std_documents import multi

Write = Callable[[Path, int], None]
"""Writes the so-manieth version of a session, the newest last."""
WORDS = ("quince", "medlar", "sorbus")
"""What one message says in each of them."""


def gemini(path: Path, number: int) -> None:
    said = [
        ("user", "What grows here?", "00"),
        ("gemini", f"A {WORDS[number]}.", "01"),
        ("user", "And there?", "02"),
        ("gemini", "A hedge.", f"3{number}"),
    ]
    messages = [
        {"id": f"m{place}", "timestamp": f"2026-01-02T00:{minute}:00.000Z", "type": kind, "content": words}
        for place, (kind, words, minute) in enumerate(said)
    ]
    path.write_bytes(document(*messages))


def harken_document(path: Path, number: int) -> None:
    told = multi()
    told["user_prompt"] = f"Plant a {WORDS[number]}."
    told["completed_at"] = f"2026-03-04T10:3{number}:00Z"
    path.write_bytes(dumps(told))


def opencode(path: Path, number: int) -> None:
    database = OpenCodeDatabase(path)
    name = database.session()
    database.turn(name, "What grows here?", text(f"A {WORDS[number]}."), tool("c1", f"seen {number}"))
    database.turn(name, "And there?", text("A hedge."))
    for _ in range(number):
        database.turn(name, "And behind it?", text("A ditch."))
    database.close()


VERSIONS = [
    pytest.param(gemini, f"session-2026-01-02T00-00-{SESSION[:8]}.json", ".gemini/tmp/orchard/chats", id="document"),
    pytest.param(harken_document, "2026-03-04-002-two-hands-multi.json", "documents", id="session document"),
    pytest.param(opencode, "opencode.db", ".local/share/opencode", id="database"),
]


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with harken.open(tmp_path / "store.db") as repo:
        yield repo


def brought_in(repo: Repo, path: Path) -> None:
    assert [result.status for result in repo.import_sessions([path])] not in ([], ["failed"])


def words_found(repo: Repo) -> list[str]:
    repo.index.catch_up()
    return [word for word in WORDS if found(repo.index, word)]


@pytest.mark.parametrize(("write", "name", "folder"), VERSIONS)
@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_an_older_copy_that_comes_later_takes_no_message_s_place(
    repo: Repo, tmp_path: Path, write: Write, name: str, folder: str, order: tuple[int, ...]
) -> None:
    for number in order:
        path = tmp_path / f"copy {number}" / folder / name
        path.parent.mkdir(parents=True)
        write(path, number)
        brought_in(repo, path)
        newest = max(order[: order.index(number) + 1])

        assert [WORDS[newest]] == words_found(repo)

    grown = digest(repo.index)
    repo.index.rebuild()
    assert grown == digest(repo.index)


@pytest.mark.parametrize(("write", "name", "folder"), VERSIONS)
def test_what_a_session_changes_back_to_is_found_again(
    repo: Repo, tmp_path: Path, write: Write, name: str, folder: str
) -> None:
    path = tmp_path / folder / name
    for number in (0, 1, 0, 2, 0):
        shutil.rmtree(path.parent, ignore_errors=True)
        path.parent.mkdir(parents=True)
        write(path, number)
        brought_in(repo, path)

        assert [WORDS[number]] == words_found(repo)

    grown = digest(repo.index)
    repo.index.rebuild()
    assert grown == digest(repo.index)


def texts(repo: Repo) -> dict[tuple[str, int], tuple[int, int]]:
    repo.index.catch_up()
    said = "SELECT record, event, size, sum FROM messages WHERE role != 'title'"
    return {(record, event): (size, check) for record, event, size, check in repo.index.query(said)}


def worked_with(database: OpenCodeDatabase, chance: Random, folder: Path) -> Iterator[Path]:
    """A session that grows inside its messages and is gone back in; after each change what is imported, now and then a
    copy that was made earlier."""
    name, copies = database.session(), list[Path]()
    for number in range(8):
        asked, answer = database.turn(name, f"question {number}", text(f"begun {number}"))
        if chance.random() < 0.5:
            yield database.path
        else:  # a copy of what was never seen
            copies.append(folder / f"copy {number}" / "opencode.db")
            copies[-1].parent.mkdir()
            database.execute("VACUUM INTO ?", str(copies[-1]))
        database.execute(
            "UPDATE part SET data = replace(data, 'begun', 'finished'), time_updated = time_updated + 1"
            " WHERE message_id = ?",
            answer,
        )
        yield database.path
        yield chance.choice([database.path, *copies])
        if chance.random() < 0.3:
            database.clean_up(name, asked)
    database.turn(name, "the last question", text("the last answer"))
    yield database.path
    yield from copies


@pytest.mark.parametrize("seed", range(4))
def test_a_session_that_was_worked_with_between_copies_is_indexed_as_it_stands(
    repo: Repo, tmp_path: Path, seed: int
) -> None:
    database = OpenCodeDatabase(tmp_path / "opencode.db")
    for path in worked_with(database, Random(seed), tmp_path):
        list(repo.import_sessions([path]))
        repo.index.catch_up()
    database.close()
    with harken.open(tmp_path / "fresh.db") as fresh:
        list(fresh.import_sessions([tmp_path / "opencode.db"]))

        assert texts(fresh).items() <= texts(repo).items()

    grown = digest(repo.index)
    repo.index.rebuild()
    assert grown == digest(repo.index)
