"""The three kinds of sources, each with a small runtime of its own: a file that grows, a document that is rewritten, a
database. Whatever the kind, the chain keeps the same laws."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harken import clock
from harken.context.chains import recall
from harken.formats import Delta
from harken.formats.facts import FileFacts
from harken.formats.kit.claims import Claim
from harken.runtimes.base import Identity, Runtime, SessionReader
from harken.runtimes.importer import Importer
from harken.runtimes.memory import ImportResult

from .conftest import age

OPEN, CLOSE = b'{"session": %s, "messages": [\n', b'], "title": %s}\n'


def document(session: str, messages: Iterable[dict[str, Any]], title: str = "") -> bytes:
    """A session as one JSON document, a message to a line."""
    lines = b",\n".join(json.dumps(message).encode() for message in messages)
    return OPEN % json.dumps(session).encode() + lines + b"\n" + CLOSE % json.dumps(title).encode()


def message(number: int, text: str = "", *, done: bool = True) -> dict[str, Any]:
    return {
        "id": f"m{number}",
        "text": text or f"text {number}",
        "done": done,
        "time": f"2026-01-01T00:00:{number:02}Z",
    }


def scan(data: bytes, state: bytes = b"") -> FileFacts:
    """A message is closed when it is done and a later one exists; the rest, with a hole where the closed ones were, is
    the tail."""
    known = json.loads(data)
    head, *lines, foot = data.splitlines(keepends=True)
    closed = 0
    while closed < len(known["messages"]) - 1 and known["messages"][closed]["done"]:
        closed += 1
    deltas = []
    at = len(head)
    for line, said in zip(lines[:closed], known["messages"], strict=False):
        time = clock.parse_instant(said["time"])
        deltas.append(Delta(start=at, end=at + len(line), time=time, messages=1, content=line))
        at += len(line)
    tail = json.dumps([head.decode(), "".join(line.decode() for line in lines[closed:]) + foot.decode()]).encode()
    deltas.append(Delta(start=at, end=len(data), closed=False, content=tail))
    return FileFacts(
        runtime="notes",
        session=known["session"],
        title=known["title"],
        records=len(known["messages"]),
        messages=len(known["messages"]),
        fingerprint=tuple(said["id"] for said in known["messages"][:1]),
        deltas=tuple(deltas),
        offset=at,
    )


def join(deltas: Iterable[bytes]) -> bytes:
    *messages, tail = deltas
    head, rest = json.loads(tail)
    return str(head).encode() + b"".join(messages) + str(rest).encode()


NOTES = Runtime(
    name="notes",
    label="Notes",
    format="notes-v1",
    source="document",
    home=lambda environ: Path("/nowhere"),
    roots=lambda home: (home,),
    claim=lambda head, path: Claim(score=90 if head.startswith(OPEN[:11]) else 0, reason="its first key"),
    read=SessionReader(
        scan=scan, identify=lambda path, facts: Identity(session=facts.session or path.stem), suffixes=(".json",)
    ),
)


def sessions(connection: sqlite3.Connection) -> Iterator[tuple[str, bytes]]:
    for (session,) in connection.execute("SELECT DISTINCT session FROM messages ORDER BY session").fetchall():
        rows = connection.execute("SELECT body FROM messages WHERE session = ? ORDER BY number", (session,))
        yield session, document(session, [json.loads(body) for (body,) in rows])


TABLES = Runtime(
    name="tables",
    label="Tables",
    format="notes-v1",
    source="database",
    home=lambda environ: Path("/nowhere"),
    roots=lambda home: (home,),
    claim=lambda head, path: Claim(score=80 if head.startswith(b"SQLite format 3\0") else 0, reason="a database"),
    read=SessionReader(
        scan=scan,
        identify=lambda path, facts: Identity(session=facts.session),
        suffixes=(".db",),
        sessions=sessions,
    ),
)


def take(repo: Any, path: Path, **options: Any) -> dict[str, ImportResult]:
    return {r.session or r.error: r for r in Importer(repo.store, [NOTES, TABLES], **options).run([path])}


def content(repo: Any, tip: str) -> bytes:
    return join(repo.store.get(link.artifact) for link in reversed(repo.store.walk(tip)))


class Document:
    """The document itself."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "s1.json"

    def write(self, messages: list[dict[str, Any]]) -> bytes:
        self.path.write_bytes(document("s1", messages))
        return self.path.read_bytes()


class Table:
    """The same session, as rows."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "notes.db"
        connection = self.connect()
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE messages (session, number, body)")
        connection.close()

    def connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path)

    def write(self, messages: list[dict[str, Any]], session: str = "s1") -> bytes:
        connection = self.connect()
        with connection:
            connection.execute("DELETE FROM messages WHERE session = ?", (session,))
            connection.executemany(
                "INSERT INTO messages VALUES (?, ?, ?)",
                [(session, number, json.dumps(body)) for number, body in enumerate(messages)],
            )
        connection.close()
        return document(session, messages)


@pytest.fixture(params=[Document, Table])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    make: Callable[[Path], Any] = request.param
    return make(tmp_path)


class TestDocumentsAndDatabases:
    def test_the_bytes_of_the_tip_come_back(self, repo: Any, source: Any) -> None:
        data = source.write([message(1), message(2), message(3, done=False)])

        result = take(repo, source.path)["s1"]

        assert ("new", 3, data) == (result.status, result.commits, content(repo, result.tip))

    def test_what_grew_hangs_from_the_last_closed_message_and_ends_where_a_fresh_import_ends(
        self, repo: Any, source: Any, tmp_path: Path
    ) -> None:
        import harken

        source.write([message(1), message(2)])
        old = take(repo, source.path)["s1"].tip
        source.write([message(1), message(2), message(3)])
        grown = take(repo, source.path)["s1"]

        with harken.open(tmp_path / "other" / "store.db") as other:
            fresh = take(other, source.path)["s1"]

        assert ("grown", fresh.tip) == (grown.status, grown.tip)
        assert [grown.tip] == [note.value for note in repo.store.annotations(old) if note.key == "superseded_by"]

    def test_a_message_that_is_not_final_is_tail(self, repo: Any, source: Any) -> None:
        source.write([message(1), message(2, "thinking", done=False), message(3)])
        take(repo, source.path)
        data = source.write([message(1), message(2, "thought"), message(3)])

        result = take(repo, source.path)["s1"]

        assert ("grown", data) == (result.status, content(repo, result.tip))

    def test_a_closed_message_that_changes_branches_there(self, repo: Any, source: Any) -> None:
        before = source.write([message(1), message(2), message(3)])
        old = take(repo, source.path)["s1"].tip
        after = source.write([message(1), message(2, "edited"), message(3)])

        result = take(repo, source.path)["s1"]

        assert "rewritten" == result.status
        assert (after, before) == (content(repo, repo.show("s1").id), content(repo, repo.show("s1~1").id))
        assert repo.show("s1~1").id == old

    def test_messages_that_vanish_stay_in_the_old_chain(self, repo: Any, source: Any) -> None:
        before = source.write([message(1), message(2), message(3)])
        take(repo, source.path)
        source.write([message(3), message(4)])
        take(repo, source.path)

        assert before == content(repo, repo.show("s1~1").id)

    def test_what_did_not_change_is_not_read(self, repo: Any, source: Any) -> None:
        source.write([message(1), message(2)])
        for path in source.path.parent.glob(source.path.name + "*"):
            age(path)
        take(repo, source.path)

        result = take(repo, source.path, read=lambda path, since: pytest.fail("it is read again"))["s1"]

        assert ("unchanged", 0) == (result.status, result.commits)

    def test_one_that_is_gone_changes_nothing(self, repo: Any, source: Any) -> None:
        data = source.write([message(1), message(2)])
        take(repo, source.path)
        source.path.unlink()

        take(repo, source.path)

        assert data == content(repo, repo.show("s1").id)


class TestDatabases:
    def test_one_database_holds_many_sessions(self, repo: Any, tmp_path: Path) -> None:
        table = Table(tmp_path)
        data = {name: table.write([message(1), message(2, name)], name) for name in ("s1", "s2", "s3")}

        results = take(repo, table.path)

        assert dict.fromkeys(data, "new") == {name: result.status for name, result in results.items()}
        assert data == {name: content(repo, result.tip) for name, result in results.items()}

    def test_only_the_session_that_changed_has_changed(self, repo: Any, tmp_path: Path) -> None:
        table = Table(tmp_path)
        for name in ("s1", "s2", "s3"):
            table.write([message(1), message(2, name)], name)
        take(repo, table.path)
        table.write([message(1), message(2), message(3)], "s2")

        results = take(repo, table.path)

        assert {"s1": "unchanged", "s2": "grown", "s3": "unchanged"} == {n: r.status for n, r in results.items()}

    def test_reading_neither_waits_for_a_writer_nor_keeps_one_waiting(self, repo: Any, tmp_path: Path) -> None:
        table = Table(tmp_path)
        data = table.write([message(1), message(2)])
        writer = table.connect()
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO messages VALUES ('s9', 1, '{}')")
        before = {path.name: path.read_bytes() for path in tmp_path.glob("notes.db*")}

        result = take(repo, table.path)["s1"]

        assert data == content(repo, result.tip)
        assert before.keys() == {path.name for path in tmp_path.glob("notes.db*")}
        assert before["notes.db"] == table.path.read_bytes()
        writer.rollback()
        writer.close()

    def test_a_session_that_is_too_large_fails_alone(
        self, repo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("harken.runtimes.documents.ROWS_LIMIT", 4000)
        table = Table(tmp_path)
        for name in ("s1", "s2", "s4", "s5"):
            table.write([message(1), message(2, name)], name)
        table.write([message(1), message(2, "x" * 5000)], "s3")

        results = [*Importer(repo.store, [TABLES]).run([table.path])]

        assert ["s1", "s2", "s4", "s5"] == sorted(row.session for row in repo.store.sessions())
        assert {f"{table.path}#s3"} == {result.source for result in results if result.status == "failed"}

    def test_a_file_that_is_no_database_after_all_is_a_failure_of_its_own(self, repo: Any, tmp_path: Path) -> None:
        path = tmp_path / "x.db"
        path.write_bytes(b"SQLite format 3\0" + b"nonsense" * 1000)

        (result,) = take(repo, path).values()

        assert "failed" == result.status
        assert "cannot be read as a database" in result.error

    def test_the_same_session_in_two_databases_is_one_session_with_two_sources(self, repo: Any, tmp_path: Path) -> None:
        (tmp_path / "one").mkdir()
        (tmp_path / "two").mkdir()
        one, two = Table(tmp_path / "one"), Table(tmp_path / "two")
        one.write([message(1), message(2)])
        longer = two.write([message(1), message(2), message(3)])

        take(repo, one.path)
        take(repo, two.path)

        assert {f"{one.path}#s1", f"{two.path}#s1"} == set(recall(repo.store.find_session("s1")))
        assert longer == content(repo, repo.show("s1").id)
