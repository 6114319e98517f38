"""What OpenCode and Kilo themselves have written (`HARKEN_CORPUS`): rows come back as they were, and what stands is
what they sent. The recorded requests hold texts as their length and the beginning of their SHA-1."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import harken
from harken import formats, runtimes
from harken.events import Event, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.events.base import split_parts
from harken.formats.opencode.export import export_rows
from harken.runtimes.files import session_files
from harken.runtimes.importer import Importer
from harken.runtimes.memory import ImportResult
from harken.runtimes.opencode.database import sessions

CORPUS = Path(os.environ.get("HARKEN_CORPUS") or "/nowhere") / "recorded_runtimes"
DATABASES = [path for name in ("opencode", "kilo") if (path := CORPUS / name / f"{name}.db").exists()]
DOCUMENTS = [path for name in ("opencode", "kilo") for path in sorted((CORPUS / name).glob("**/*.json"))]
EXPORTS = [path for path in DOCUMENTS if b'"parts"' in path.read_bytes()]
MAIN = "ses_e209d7d5effeuScj3qQPfa350s"
FOREIGN = "ses_harken0000000000000000001"


def take(repo: Any, *paths: Path) -> list[ImportResult]:
    return list(Importer(repo.store, [runtimes.get(name) for name in runtimes.names()]).run(paths))


def all_rows(path: Path) -> dict[str, bytes]:
    connection = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    try:
        return dict(sessions(connection))
    finally:
        connection.close()


def test_every_row_comes_back_and_nothing_is_opaque(tmp_path: Path) -> None:
    for path in DATABASES:
        folder = tmp_path / path.relative_to(CORPUS).as_posix().replace("/", "-")
        folder.mkdir()
        rows = all_rows(path)
        with harken.open(folder / "store.db") as repo:
            results = take(repo, path)

            assert rows.keys() == {result.session for result in results}
            assert {0} == {result.opaque for result in results}
            for result in results:
                assert rows[result.session] == repo.materialize(result.tip, stop="root").bytes
            assert {("unchanged", 0)} == {(result.status, result.commits) for result in take(repo, path)}
        with harken.open(folder / "other.db") as other:
            assert {result.tip for result in results} == {result.tip for result in take(other, path)}


def test_every_row_of_the_tables_of_a_session_is_among_the_lines() -> None:
    for path in DATABASES:
        lines = b"".join(all_rows(path).values())
        connection = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
        for table in ("session", "message", "part", "event"):
            [(count,)] = connection.execute(f"SELECT count(*) FROM {table}")
            assert count == lines.count(b'{"%s":{"id":' % table.encode())
            if table != "session":
                assert all(data.encode() in lines for (data,) in connection.execute(f"SELECT data FROM {table}"))
        connection.close()


def test_a_database_that_was_imported_as_it_grew_ends_where_a_fresh_import_ends(tmp_path: Path) -> None:
    """Message by message, as the program wrote them; the log of a later one is not there yet."""
    for path in DATABASES:
        folder = tmp_path / path.relative_to(CORPUS).as_posix().replace("/", "-")
        folder.mkdir()
        grown = folder / path.name
        shutil.copyfile(path, grown)
        whole = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
        messages = whole.execute(
            "SELECT id, session_id, time_created FROM message ORDER BY time_created, id"
        ).fetchall()
        events = whole.execute("SELECT * FROM event ORDER BY id").fetchall()
        whole.close()
        with harken.open(folder / "grown.db") as repo:
            for count in range(1, len(messages) + 1):
                known = {name for name, _, _ in messages[:count]}
                shutil.copyfile(path, grown)
                connection = sqlite3.connect(grown)
                with connection:
                    for name, _, _ in messages[count:]:
                        connection.execute("DELETE FROM part WHERE message_id = ?", (name,))
                        connection.execute("DELETE FROM message WHERE id = ?", (name,))
                    for event in events:
                        told = json.loads(event[4])
                        of = told.get("part", {}).get("messageID") or told.get("info", {}).get("id", "")
                        if of.startswith("msg_") and of not in known:
                            connection.execute("DELETE FROM event WHERE id = ?", (event[0],))
                connection.close()
                tips = {result.session: result.tip for result in take(repo, grown)}
        with harken.open(folder / "fresh.db") as repo:
            assert tips == {result.session: result.tip for result in take(repo, grown)}


def test_every_export_comes_back_byte_for_byte(tmp_path: Path) -> None:
    for path in EXPORTS:
        folder = tmp_path / path.relative_to(CORPUS).as_posix().replace("/", "-")
        folder.mkdir()
        with harken.open(folder / "store.db") as repo:
            (result,) = take(repo, path)

            assert ("new", 0, "") == (result.status, result.opaque, result.error)
            assert path.read_bytes() == repo.materialize(result.tip, stop="root").bytes


def test_rows_are_exported_as_the_program_exports_them() -> None:
    for path in [path for path in EXPORTS if path.name == "export.json"]:
        printed = json.loads(path.read_bytes())
        made = json.loads(export_rows(all_rows(path.with_name("opencode.db"))[MAIN]).data)

        later = {message["info"]["id"]: message for message in made["messages"]}
        assert [later[message["info"]["id"]] for message in printed["messages"]] == printed["messages"]
        assert {"slug", "model", "permission", "path"} <= {
            key for key in printed["info"] if printed["info"][key] == made["info"].get(key)
        }
        assert printed["info"].keys() <= made["info"].keys()


# -- what was sent -----------------------------------------------------------------------------------------------------


def signature(text: str) -> tuple[int, str]:
    return len(text), hashlib.sha1(text.encode()).hexdigest()[:12]


def sent(path: Path, place: int = -1) -> list[tuple[Any, ...]]:
    """A recorded request as a flat list."""
    return [item for message in json.loads(path.read_text().splitlines()[place])["messages"] for item in flat(message)]


def flat(message: dict[str, Any]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for block in message["content"]:
        match block["type"]:
            case "text":
                found.append((message["role"], block["text"]["len"], block["text"]["sha"]))
            case "thinking":
                found.append(("thinking", block["thinking"]["len"], block["thinking"]["sha"]))
            case "image":
                found.append(("image", block["source"]["data"]["len"], block["source"]["data"]["sha"]))
            case "tool_use":
                found.append(("call", block["id"], block["name"]))
            case "tool_result":
                content = block["content"]
                found.append(("result", block["tool_use_id"], content["len"], content["sha"]))
    return found


def known(events: list[Event]) -> list[tuple[Any, ...]]:
    """What is read of a conversation, in the same terms."""
    found: list[tuple[Any, ...]] = []
    for event in events:
        match event:
            case Prompt():
                for part in split_parts(event.content, event.images):
                    words = ("user", *signature(part)) if isinstance(part, str) else ("image", *signature(part.data))
                    found.append(words)
            case Response():
                found.append(("assistant", *signature(event.content)))
            case Thinking():
                found.append(("thinking", *signature(event.content)))
            case ToolCall():
                found.append(("call", event.id, event.name))
            case ToolResult():
                found.append(("result", event.id, *signature(event.output)))
    return found


def stands(data: bytes, name: str) -> list[tuple[Any, ...]]:
    format = formats.get(name)
    return known(format.read_conversation(format.context(data)))


def test_what_stands_in_the_database_is_what_the_program_sent() -> None:
    """After the compaction and the revert; the prompt that came next is not in the database."""
    for path in DATABASES[:1]:
        rows = all_rows(path)[MAIN]

        assert sent(path.with_name("requests-after-revert.signatures.jsonl"))[:-1] == stands(rows, "opencode-rows-v1")


def test_an_export_says_what_the_program_sent() -> None:
    for path in [path for path in EXPORTS if path.name == "export.json"]:
        read = stands(path.read_bytes(), "opencode-v1")
        requests = path.with_name("requests-turns.signatures.jsonl")
        lines = [sent(requests, place) for place in range(len(requests.read_text().splitlines()))]
        longest = max(lines, key=len)

        # The recording went into folders that were called otherwise: texts with a path in them have another hash.
        assert [item[:2] for item in longest] == [item[:2] for item in read[: len(longest)]]


def test_a_foreign_session_says_what_the_program_sent_of_it() -> None:
    """It was resumed with one prompt more."""
    for path in EXPORTS:
        golden = {
            "opencode/foreign/dangling.json": "requests-dangling.signatures.jsonl",
            "opencode/foreign/a.json": "requests-import.signatures.jsonl",
            "kilo/foreign/a.json": "reqf.signatures.jsonl",
        }
        if (name := golden.get(path.relative_to(CORPUS).as_posix())) is None:
            continue
        expected = sent(path.parents[1] / "resume-golden" / name)

        read = stands(path.read_bytes(), "opencode-v1")

        if path.parents[1].name == "kilo":  # it tells of its surroundings in every prompt
            expected = [item for item in expected if item[0] != "user" or item in read]
        # Reasoning of another model goes out as words.
        assert [item[1:] for item in expected[: len(read)]] == [item[1:] for item in read]


def test_what_older_versions_kept_in_files_is_read(tmp_path: Path) -> None:
    folder, chosen = CORPUS.parent / "opencode_storage", runtimes.chosen(())
    there = {json.loads(path.read_bytes())["id"] for path in folder.glob("**/session/*/*.json")}
    with harken.open(tmp_path / "store.db") as repo:
        results = list(Importer(repo.store, chosen).run(session_files([folder] if there else [], chosen)))
        said = {row.session: stands(repo.materialize(row.session).bytes, "opencode-rows-v1") for row in repo.sessions()}

    assert there == said.keys()
    assert (len(there), 0) == (len(results), sum(result.opaque for result in results))
    # The files of the parts are in the order of their names; a call is answered, whatever its status is called.
    kinds = {session: [item[0] for item in items] for session, items in said.items()}
    assert kinds.get("s_stage0_small", []) in ([], ["user", "call", "assistant", "result"])
    assert kinds.get("s_stage0_drift", []) in ([], ["call", "assistant", "result"])
