"""OpenCode and Kilo: what an import reads again, and what is written for a resume."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import runtimes
from harken.context.session_records import session_records
from harken.events import Error, Metric, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.events.cbor import encode_events
from harken.formats.opencode.export import export_rows
from harken.formats.opencode.identifiers import instant_of
from harken.formats.opencode.stream import OpenCodeStreamReader
from harken.runtimes.files import session_files
from harken.runtimes.importer import Importer
from harken.runtimes.opencode import database as reading
from harken.runtimes.resume import Destination, Resumed, resume
from support.opencode_database import START, OpenCodeDatabase, text, tool

NOON = 1_794_744_000_000_000


@pytest.fixture
def database(tmp_path: Path) -> Iterator[OpenCodeDatabase]:
    made = OpenCodeDatabase(tmp_path / "home" / "opencode.db")
    yield made
    made.close()


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Any]:
    with harken.open(tmp_path / "store.db", clock=lambda: NOON) as opened:
        yield opened


def take(repo: Any, path: Path) -> dict[str, Any]:
    found = Importer(repo.store, [runtimes.get("opencode")], now=lambda: NOON).run([path])
    return {result.session: result for result in found}


def go_on(repo: Any, ref: str, tmp_path: Path, runtime: str = "opencode") -> tuple[Resumed, dict[str, Any]]:
    """Resume, and the document that was written."""
    to = Destination(runtime=runtimes.get(runtime), cwd=tmp_path, environ={"HOME": "/nowhere"}, home=tmp_path / "home")
    done = resume(repo.store, repo.store.get_commit(ref), to, now=lambda: NOON)
    return done, json.loads(Path(done.path).read_bytes())


# -- what is read ------------------------------------------------------------------------------------------------------


def test_only_the_rows_of_sessions_that_changed_are_read(
    repo: Any, database: OpenCodeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ses_a", "ses_b"):
        database.turn(database.session(name), "Hello?", text("Hello."))
    first = take(repo, database.path)
    read: list[str] = []
    rows = reading.session_rows
    monkeypatch.setattr(reading, "session_rows", lambda c, session: read.append(session) or rows(c, session))
    database.turn("ses_b", "More?", text("More."))

    again = take(repo, database.path)

    assert ["ses_b"] == read
    assert ("unchanged", first["ses_a"].tip) == (again["ses_a"].status, again["ses_a"].tip)
    assert "grown" == again["ses_b"].status


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE part SET data = replace(data, 'Hello.', 'Bye.'), time_updated = time_updated + 1",
        "UPDATE session SET title = 'Another'",
        "DELETE FROM part WHERE id = (SELECT max(id) FROM part)",
        "INSERT INTO todo VALUES ('ses_a', 'write', 'open', 'high', 0, 1, 1)",
        "INSERT INTO event VALUES ('evt_x', 'ses_a', 99, 'session.updated.1', '{}')",
    ],
)
def test_any_change_of_a_row_is_seen(repo: Any, database: OpenCodeDatabase, change: str) -> None:
    database.turn(database.session("ses_a"), "Hello?", text("Hello."))
    before = take(repo, database.path)["ses_a"].tip
    database.execute(change)

    assert before != take(repo, database.path)["ses_a"].tip


@pytest.fixture(scope="class")
def pages(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, int]:
    """A database of four sessions, whose tables take several pages each, and how long a page is."""
    made = OpenCodeDatabase(tmp_path_factory.mktemp("pages") / "opencode.db")
    made.execute("PRAGMA page_size = 1024")
    made.execute("PRAGMA journal_mode = DELETE")
    made.execute("VACUUM")
    for number in range(4):
        session = made.session(f"ses_{number}", title=f"Session {number} " + "t" * 500)
        for turn in range(3):
            made.turn(session, f"Question {turn} of {number}?", text("x" * 200))
    [(size,)] = made.execute("PRAGMA page_size")
    made.close()
    return made.path.read_bytes(), size


class TestADatabaseWithADamagedPage:
    NAMES = tuple(f"ses_{number}" for number in range(4))

    def test_loses_what_lies_on_the_page_and_says_what_that_is(self, pages: tuple[bytes, int], tmp_path: Path) -> None:
        data, size = pages
        path = tmp_path / "opencode.db"
        path.write_bytes(data)
        with harken.open("memory:", clock=lambda: NOON) as repo:
            whole = {name: one.tip for name, one in take(repo, path).items()}
        assert set(self.NAMES) == whole.keys()

        kept: list[int] = []
        for at in range(size, len(data), size):
            path.write_bytes(data[:at] + b"\xff" * size + data[at + size :])
            with harken.open("memory:", clock=lambda: NOON) as repo:
                found = list(Importer(repo.store, [runtimes.get("opencode")], now=lambda: NOON).run([path]))
            there = {one.session: one.tip for one in found if one.status != "failed"}
            failed = {one.source.removeprefix(f"{path}#") for one in found if one.status == "failed"}
            assert there == {name: whole[name] for name in there}
            assert failed == set(self.NAMES) - there.keys() or (failed, there) == ({str(path)}, {})
            kept.append(len(there))
        assert len([count for count in kept if count]) > len(kept) / 2
        assert {1, 2, 3} & {*kept}

    def test_says_so_as_long_as_it_is_damaged(self, pages: tuple[bytes, int], repo: Any, tmp_path: Path) -> None:
        data, size = pages
        path = tmp_path / "opencode.db"
        at = data.index(b"Question 1 of 2?") // size * size
        path.write_bytes(data[:at] + b"\xff" * size + data[at + size :])

        def statuses() -> dict[str, str]:
            later = NOON * 2  # the file has rested
            results = Importer(repo.store, [runtimes.get("opencode")], now=lambda: later).run([path])
            return {one.source.removeprefix(f"{path}#"): one.status for one in results}

        first, again = statuses(), statuses()
        path.write_bytes(data)
        whole = statuses()

        assert {"failed", "new"} == {*first.values()}
        assert {"failed", "unchanged"} == {*again.values()}
        assert {name for name in first if first[name] == "failed"} == {n for n in again if again[n] == "failed"}
        assert {"new", "unchanged"} == {*whole.values()}
        assert set(self.NAMES) == first.keys() == whole.keys()


@pytest.mark.parametrize(
    "change",
    [
        *(f"UPDATE event SET seq = {odd} WHERE seq = 0" for odd in ("'x'", "x'ff00'", "NULL", "1e300")),
        *(f"UPDATE {table} SET time_updated = {odd}" for table in ("message", "part") for odd in (2**63 - 1, "'x'")),
        *(f"UPDATE session SET time_updated = {odd}" for odd in ("9e999", "x'ff00'")),
    ],
)
def test_an_odd_value_in_one_session_keeps_no_other_out(repo: Any, database: OpenCodeDatabase, change: str) -> None:
    for name in ("ses_one", "ses_two"):
        database.turn(database.session(name), f"What is in {name}?", text("Nothing."))
    database.execute("CREATE TABLE loose AS SELECT * FROM event")  # its columns may hold nothing at all, too
    database.execute("DROP TABLE event")
    database.execute("ALTER TABLE loose RENAME TO event")
    database.execute(change)

    assert {"ses_one": "new", "ses_two": "new"} == {name: one.status for name, one in take(repo, database.path).items()}


def test_what_a_revert_removed_stays_as_an_older_end(repo: Any, database: OpenCodeDatabase) -> None:
    session = database.session("ses_a")
    database.turn(session, "One?", text("One."))
    asked, _ = database.turn(session, "Two?", text("Two."))
    database.turn(session, "Three?", text("Three."))
    before = take(repo, database.path)[session].tip
    database.clean_up(session, asked)
    database.turn(session, "Four?", text("Four."))

    after = take(repo, database.path)[session]

    assert "rewritten" == after.status
    assert (before,) == repo.store.find_session(session).older


def test_a_database_that_is_gone_changes_nothing(repo: Any, database: OpenCodeDatabase, tmp_path: Path) -> None:
    database.turn(database.session("ses_a"), "Hello?", text("Hello."))
    tip = take(repo, database.path)["ses_a"].tip
    database.close()
    for path in (tmp_path / "home").glob("opencode.db*"):
        path.unlink()

    take(repo, database.path)

    assert tip == repo.store.find_session("ses_a").tip


# -- what is written ---------------------------------------------------------------------------------------------------


def test_its_own_session_goes_on_under_new_ids_and_says_the_same(
    repo: Any, database: OpenCodeDatabase, tmp_path: Path
) -> None:
    session = database.session("ses_a")
    kept, _ = database.turn(session, "One?", text("One."), tool("c1", attachments=[_picture()]))
    info = {"role": "user", "agent": "build", "model": {"providerID": "loop", "modelID": "test-model"}}
    asked = database.message(session, info, {"type": "compaction", "auto": True, "tail_start_id": kept})
    database.assistant(session, asked, text("SUMMARY"), summary=True)
    database.turn(session, "Two?", text("Two."))
    tip = take(repo, database.path)[session].tip

    done, written = go_on(repo, tip, tmp_path)

    original = json.loads(export_rows(_rows(database, session)).data)
    assert "1" == done.tier and not done.losses
    names = [message["info"]["id"] for message in written["messages"]]
    assert sorted(names) == names
    assert not set(names) & {message["info"]["id"] for message in original["messages"]}
    assert {done.session} == {part["sessionID"] for message in written["messages"] for part in message["parts"]}
    [compaction] = [p for m in written["messages"] for p in m["parts"] if p["type"] == "compaction"]
    assert names[0] == compaction["tail_start_id"]
    assert _without_ids(original) == _without_ids(written)


def _picture() -> dict[str, str]:
    return {"id": "prt_x", "type": "file", "mime": "image/png", "url": "data:image/png;base64,aGk="}


def _rows(database: OpenCodeDatabase, session: str) -> bytes:
    connection = sqlite3.connect(database.path)
    try:
        return reading.session_rows(connection, session)
    finally:
        connection.close()


def _without_ids(value: Any) -> Any:
    """The messages of a document, without what a copy has anew."""
    if isinstance(value, dict) and "messages" in value:
        return [_without_ids(message) for message in value["messages"]]
    if isinstance(value, dict):
        own = ("id", "sessionID", "messageID", "parentID", "tail_start_id")
        return {key: _without_ids(inner) for key, inner in value.items() if key not in own}
    return [_without_ids(inner) for inner in value] if isinstance(value, list) else value


EVENTS = [
    Prompt(content="Look.", message_id="m1", time=NOON - 9_000_000),
    Thinking(content="Hm.", message_id="m2", time=NOON - 8_000_000),
    ToolCall(id="c1", name="Bash", input=b'{"command":"ls"}', message_id="m3", time=NOON - 8_000_000),
    ToolCall(id="c2", name="Bash", input=b"{}", message_id="m3", index=1, time=NOON - 8_000_000),
    ToolResult(id="c1", output="a b", message_id="m4", time=NOON - 7_000_000),
    Response(content="Two files.", model="gpt-9", message_id="m5", time=NOON - 6_000_000),
]


@pytest.mark.parametrize("runtime", ["opencode", "kilo"])
def test_what_was_held_elsewhere_is_written_as_the_program_wants_it(repo: Any, tmp_path: Path, runtime: str) -> None:
    (tmp_path / f"{runtime}.jsonc").write_text('{\n  // mine\n  "model": "lab/one", /* x */ "provider": {},\n}')
    commit = repo.checkpoint(encode_events(EVENTS), format="events-v1")

    done, written = go_on(repo, commit.id, tmp_path, runtime)

    user, calls, answer = written["messages"]
    assert {"providerID": "lab", "modelID": "one"} == user["info"]["model"]
    needed = {"mode", "agent", "path", "cost", "tokens", "modelID", "providerID", "parentID", "time"}
    assert all(needed <= message["info"].keys() for message in (calls, answer))
    assert user["info"]["id"] == calls["info"]["parentID"] == answer["info"]["parentID"]
    assert ["completed", "error"] == [part["state"]["status"] for part in calls["parts"]]
    assert {"thinking": 1, "calls without a result": 1} == {loss.what: loss.count for loss in done.losses}
    assert ((runtime, "import", done.path),) == done.prepare
    assert (runtime, "-s", done.session) == done.command
    assert done.session == written["info"]["metadata"]["harken_origin"]["session"]


@pytest.mark.parametrize("ids", [("a", "a"), ("a", "b"), ("", "")])
@pytest.mark.parametrize("between", [False, True])
def test_calls_that_were_made_at_once_are_of_one_message(
    repo: Any, tmp_path: Path, ids: tuple[str, str], between: bool
) -> None:
    one, two = (ToolCall(id=f"c{name}", name="Bash", api_id=api) for name, api in zip("12", ids, strict=True))
    first, second = ToolResult(id="c1", output="one"), ToolResult(id="c2", output="two")
    said = [one, first, two, second] if between else [one, two, first, second]
    events = [Prompt(content="Go."), *said, Response(content="Done.")]
    commit = repo.checkpoint(encode_events(events), format="events-v1")

    _, written = go_on(repo, commit.id, tmp_path)

    at_once = [sum(part["type"] == "tool" for part in message["parts"]) for message in written["messages"]]
    assert ([0, 1, 1, 0] if between and ids != ("a", "a") else [0, 2, 0]) == at_once


def test_without_settings_the_model_is_that_of_the_last_prompt(
    repo: Any, database: OpenCodeDatabase, tmp_path: Path
) -> None:
    database.turn(database.session(), "Hello?", text("Hello."))
    commit = repo.checkpoint(encode_events(EVENTS), format="events-v1")

    _, written = go_on(repo, commit.id, tmp_path)

    assert {"providerID": "loop", "modelID": "test-model"} == written["messages"][0]["info"]["model"]


def test_in_another_store_the_continued_session_is_linked_and_counts_what_is_its_own(
    repo: Any, database: OpenCodeDatabase, tmp_path: Path
) -> None:
    session = database.session("ses_a")
    database.turn(session, "One?", text("One."))
    tip = take(repo, database.path)[session].tip
    done, _ = go_on(repo, tip, tmp_path)
    database.take_in(Path(done.path).read_bytes())
    database.turn(done.session, "Two?", text("Two."))

    with harken.open(tmp_path / "other.db", clock=lambda: NOON) as other:
        results = take(other, database.path)
        records = session_records(other.store, other.store.find_session(done.session))

    assert tip == results[done.session].forked_from
    assert [True, True, False, False] == [record.carried for record in records]


def test_what_was_written_for_the_program_is_no_session_of_its_own(
    repo: Any, database: OpenCodeDatabase, tmp_path: Path
) -> None:
    database.turn(database.session("ses_a"), "One?", text("One."))
    done, _ = go_on(repo, take(repo, database.path)["ses_a"].tip, tmp_path)

    looked_at = set(session_files([tmp_path / "home"], map(runtimes.get, runtimes.names())))

    assert {database.path} == looked_at
    assert Path(done.path).exists()


# -- what is printed ---------------------------------------------------------------------------------------------------


def test_a_stream_is_read_and_its_usage_is_known_again_in_the_rows(database: OpenCodeDatabase) -> None:
    session = database.session("ses_a")
    name = f"msg_{(START * 4096 + 1) & ((1 << 48) - 1):012x}AAAAAAAAAAAAAA"
    used = {"input": 100, "output": 7, "reasoning": 0, "cache": {"read": 40, "write": 20}}
    parts = [
        ("step_start", {"type": "step-start"}),
        ("reasoning", {"type": "reasoning", "text": "Hm."}),
        ("tool_use", tool("c1")),
        ("text", text("Done.")),
        ("step_finish", {"type": "step-finish", "tokens": used, "cost": 0.1}),
    ]
    reader = OpenCodeStreamReader()
    lines = [
        {"type": kind, "timestamp": START + 50, "sessionID": session, "part": {"messageID": name, **part}}
        for kind, part in parts
    ]

    events = [event for line in lines for event in reader.feed(json.dumps(line))]

    assert ["thinking", "tool_call", "tool_result", "response", "metric"] == [event.kind for event in events]
    assert list(range(5)) == [event.index for event in events]
    assert {name} == {event.message_id for event in events}
    [metric] = [event for event in events if isinstance(event, Metric)]
    assert f"opencode@{START}" == metric.api_id
    [failed] = reader.feed(b'{"type":"error","timestamp":1,"error":{"name":"E","data":{"message":"no"}}}')
    assert isinstance(failed, Error) and "E: no" == failed.message


def test_the_instant_in_an_id_is_the_one_nearest_to_the_present() -> None:
    assert 1794749137736 == instant_of("msg_1df628348001XekG0FP7Yc7E5r", 1794749142715)
    assert 0 == instant_of("msg_x", 1794749142715)
