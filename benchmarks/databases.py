"""Import of 10,000 messages from a database of OpenCode's shape while somebody writes it, and what that costs the
writer: how long its transactions take while nobody imports, and while somebody does.

Every message has parts, and what was logged of it, as the program leaves them: some ten rows to a message.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from importing import measure

TABLES = """
CREATE TABLE session (id text PRIMARY KEY, project_id text, parent_id text, slug text, directory text, title text,
  version text, cost real, revert text, time_created integer, time_updated integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text);
CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer, time_updated integer,
  data text);
CREATE TABLE event (id text PRIMARY KEY, aggregate_id text, seq integer, type text, data text);
CREATE UNIQUE INDEX event_aggregate_seq_idx ON event (aggregate_id, seq);
CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);
CREATE INDEX part_session_idx ON part (session_id);
"""
START = 1_794_738_000_000
TOKENS = {"total": 167, "input": 100, "output": 7, "reasoning": 0, "cache": {"write": 20, "read": 40}}
WORDS = "the import reads what is there and leaves it as it was, however often somebody writes meanwhile "

WRITER = """
import json, sqlite3, sys, time
path, seconds = sys.argv[1], float(sys.argv[2])
database = sqlite3.connect(path, isolation_level=None)
database.execute("PRAGMA synchronous = NORMAL")
database.execute("PRAGMA busy_timeout = 5000")
data, took, number, end = "x" * 800, [], 0, time.perf_counter() + seconds
while time.perf_counter() < end:
    number += 1
    start = time.perf_counter()
    database.execute("BEGIN IMMEDIATE")
    name = f"prt_{time.time_ns():x}"
    database.execute("INSERT INTO part VALUES (?, 'msg_live', 'ses_live', 1, 1, ?)", (name, json.dumps({"type": "text", "text": data})))
    database.execute("COMMIT")
    took.append(time.perf_counter() - start)
    time.sleep(0.005)
took.sort()
print(json.dumps([len(took), took[len(took) // 2], took[len(took) * 99 // 100], took[-1]]))
"""


class Database:
    """Sessions of OpenCode's shape, written in bulk."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True)
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.executescript(TABLES)
        self._number = 0

    def fill(self, sessions: int, messages: int) -> None:
        self._database.execute("BEGIN")
        for number in range(sessions):
            self._session(f"ses_{number:026x}", messages)
        self._database.execute("COMMIT")

    def close(self) -> None:
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._database.close()

    def _next(self, prefix: str) -> str:
        self._number += 1
        return f"{prefix}_{self._number:012x}AAAAAAAAAAAAAA"

    def _session(self, session: str, messages: int) -> None:
        row = (session, "global", None, "calm-sea", "/work", "A title", "1.18.33", 0.1, None, START, START)
        self._database.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        seq, asked = 0, ""
        for place in range(messages):
            created = START + self._number * 10
            name = self._next("msg")
            if place % 5 == 0:
                asked, info, parts = name, _user(created), [{"type": "text", "text": WORDS * 2}]
            else:
                info, parts = _assistant(created, asked), _step(place)
            self._database.execute(
                "INSERT INTO message VALUES (?, ?, ?, ?, ?)", (name, session, created, created, json.dumps(info))
            )
            logged = [("message.updated.1", {"info": {"id": name, "sessionID": session, **info}})]
            for part in parts:
                own = self._next("prt")
                row = (own, name, session, created, created, json.dumps(part))
                self._database.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", row)
                told = {"id": own, "sessionID": session, "messageID": name, **part}
                logged.append(("message.part.updated.1", {"part": told, "time": created}))
            logged += [logged[0], ("session.updated.1", {"info": {"id": session, "title": "A title"}})]
            rows = [
                (self._next("evt"), session, seq + at, kind, json.dumps({"sessionID": session, **data}))
                for at, (kind, data) in enumerate(logged)
            ]
            self._database.executemany("INSERT INTO event VALUES (?, ?, ?, ?, ?)", rows)
            seq += len(rows)


def _user(created: int) -> dict[str, object]:
    model = {"providerID": "lab", "modelID": "scripted"}
    return {"role": "user", "time": {"created": created}, "agent": "build", "model": model, "summary": {"diffs": []}}


def _assistant(created: int, asked: str) -> dict[str, object]:
    time = {"created": created, "completed": created + 900}
    told = {"parentID": asked, "role": "assistant", "mode": "build", "agent": "build", "cost": 0.000492}
    where = {"path": {"cwd": "/work", "root": "/"}, "modelID": "scripted", "providerID": "lab"}
    return told | where | {"tokens": TOKENS, "time": time, "finish": "stop"}


def _step(place: int) -> list[dict[str, object]]:
    time = {"start": START, "end": START + 10}
    state = {"status": "completed", "input": {"command": f"cat {place}"}, "output": WORDS * 15, "title": "cat"}
    call = {"type": "tool", "tool": "bash", "callID": f"call_{place}", "state": state | {"metadata": {}, "time": time}}
    finish = {"type": "step-finish", "reason": "stop", "tokens": TOKENS, "cost": 0.000492}
    return [{"type": "step-start"}, {"type": "text", "text": WORDS * 4, "time": time}, call, finish]


def main(out, *, sessions: int = 20, messages: int = 500) -> None:
    work = Path(tempfile.mkdtemp(prefix="harken-bench-"))
    try:
        path = work / "home" / "opencode.db"
        database = Database(path)
        database.fill(sessions, messages)
        database.close()
        _run(out, work, path, sessions * messages)
    finally:
        shutil.rmtree(work)


def _writer(path: Path, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _run(out, work: Path, path: Path, messages: int) -> None:
    def command(store: str = "0") -> list[str]:
        where = str(work / store / "store.db")
        return [sys.executable, "-m", "harken", "--store", where, "import", str(path), "--no-index"]

    size = path.stat().st_size
    alone = json.loads(_writer(path, 3).communicate()[0])
    writer = _writer(path, 20)
    time.sleep(0.5)
    first = min(measure(command(str(turn))) for turn in range(3))
    indexed = measure(command("indexed")[:-1])
    while_read = json.loads(writer.communicate()[0])
    age = time.time() - 3600
    for file in path.parent.glob("*"):
        os.utime(file, (age, age))
    measure(command())
    unchanged = measure(command())
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE message SET time_updated = time_updated + 1 WHERE rowid = 7")
    connection.close()
    changed = measure(command())
    out(f"{messages} messages of OpenCode's in a database of {size / 1e6:.0f} MB that somebody writes every 5 ms.\n")
    out("| what | wall s | CPU s | peak MB | |")
    out("|---|---|---|---|---|")
    out(f"| harken, first import | {first[0]:.2f} | {first[1]:.2f} | {first[2]:.0f} | limit 2 s; the best of three |")
    out(f"| harken, first import with the index | {indexed[0]:.2f} | {indexed[1]:.2f} | {indexed[2]:.0f} | |")
    out(
        f"| harken, one message changed | {changed[0]:.2f} | {changed[1]:.2f} | {changed[2]:.0f} | one session is read |"
    )
    out(f"| harken, nothing new | {unchanged[0]:.2f} | {unchanged[1]:.2f} | {unchanged[2]:.0f} | nothing is read |")
    out("")
    out("| the writer's transactions | how many | median ms | 99 of 100 within ms | longest ms |")
    out("|---|---|---|---|---|")
    for name, (count, *figures) in (("nobody imports", alone), ("during the import", while_read)):
        out(f"| {name} | {count} | " + " | ".join(f"{figure * 1e3:.1f}" for figure in figures) + " |")


if __name__ == "__main__":
    main(print)
