"""A database shaped like OpenCode's, and what the program does with it: say something, go back, take in an export."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

TABLES = """
CREATE TABLE IF NOT EXISTS session (
  id text PRIMARY KEY, project_id text NOT NULL, workspace_id text, parent_id text, slug text NOT NULL,
  directory text NOT NULL, path text, title text NOT NULL, version text NOT NULL, share_url text,
  summary_additions integer, summary_deletions integer, summary_files integer, summary_diffs text, metadata text,
  cost real DEFAULT 0 NOT NULL, tokens_input integer DEFAULT 0 NOT NULL, tokens_output integer DEFAULT 0 NOT NULL,
  tokens_reasoning integer DEFAULT 0 NOT NULL, tokens_cache_read integer DEFAULT 0 NOT NULL,
  tokens_cache_write integer DEFAULT 0 NOT NULL, revert text, permission text, agent text, model text,
  time_created integer NOT NULL, time_updated integer NOT NULL, time_compacting integer, time_archived integer);
CREATE TABLE IF NOT EXISTS message (
  id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL,
  data text NOT NULL);
CREATE TABLE IF NOT EXISTS part (
  id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE IF NOT EXISTS event (
  id text PRIMARY KEY, aggregate_id text NOT NULL, seq integer NOT NULL, type text NOT NULL, data text NOT NULL);
CREATE TABLE IF NOT EXISTS todo (
  session_id text NOT NULL, content text NOT NULL, status text NOT NULL, priority text NOT NULL,
  position integer NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL);
CREATE TABLE IF NOT EXISTS session_share (session_id text PRIMARY KEY, id text, secret text NOT NULL, url text);
CREATE UNIQUE INDEX IF NOT EXISTS event_aggregate_seq_idx ON event (aggregate_id, seq);
CREATE INDEX IF NOT EXISTS message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE INDEX IF NOT EXISTS part_session_idx ON part (session_id);
"""
START = 1_794_738_000_000
"""Milliseconds."""
TOKENS = {"total": 167, "input": 100, "output": 7, "reasoning": 0, "cache": {"write": 20, "read": 40}}


class OpenCodeDatabase:
    """One database, written as the program writes it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.executescript(TABLES)
        self._number = 0

    def close(self) -> None:
        self._connection.close()

    def execute(self, statement: str, *values: Any) -> list[Any]:
        return self._connection.execute(statement, values).fetchall()

    def _next(self, prefix: str) -> str:
        self._number += 1
        return f"{prefix}_{self._number:012x}AAAAAAAAAAAAAA"

    @property
    def now(self) -> int:
        return START + self._number

    def wait(self, milliseconds: int) -> None:
        """Time goes by."""
        self._number += milliseconds

    def log(self, session: str, kind: str, **data: Any) -> None:
        """One more line of the log."""
        [(seq,)] = self.execute("SELECT coalesce(max(seq), -1) + 1 FROM event WHERE aggregate_id = ?", session)
        told = json.dumps({"sessionID": session, **data})
        self.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?)", self._next("evt"), session, seq, kind, told)

    def session(self, name: str = "ses_one", parent: str | None = None, title: str = "A title") -> str:
        """A new session."""
        columns = "id, project_id, parent_id, slug, directory, title, version, time_created, time_updated"
        row = (name, "global", parent, "calm-sea", "/work", title, "1.18.33", self.now, self.now)
        self.execute(f"INSERT INTO session ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", *row)
        self.log(name, "session.created.1", info={"id": name})
        return name

    def message(self, session: str, info: dict[str, Any], *parts: dict[str, Any]) -> str:
        """A message with its parts, and what is logged of them."""
        name = self._next("msg")
        created = self.now
        info = {**info, "time": {"created": created, **info.get("time", {})}}
        self.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", name, session, created, created, json.dumps(info))
        self.log(session, "message.updated.1", info={"id": name, "sessionID": session, **info})
        for part in parts:
            self.part(session, name, part)
        return name

    def part(self, session: str, message: str, data: dict[str, Any]) -> str:
        """One more part of a message."""
        name = self._next("prt")
        row = (name, message, session, self.now, self.now, json.dumps(data))
        self.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", *row)
        told = {"id": name, "sessionID": session, "messageID": message, **data}
        self.log(session, "message.part.updated.1", part=told, time=self.now)
        return name

    def user(self, session: str, text: str, *parts: dict[str, Any]) -> str:
        """Somebody says something."""
        info = {"role": "user", "agent": "build", "model": {"providerID": "loop", "modelID": "test-model"}}
        return self.message(session, info, *parts, {"type": "text", "text": text})

    def assistant(self, session: str, parent: str, *parts: dict[str, Any], **info: Any) -> str:
        """The model answers, in one step."""
        told = {
            "parentID": parent, "role": "assistant", "mode": "build", "agent": "build",
            "path": {"cwd": "/work", "root": "/"}, "cost": 0.000492, "tokens": TOKENS, "modelID": "test-model",
            "providerID": "loop", "time": {"completed": self.now + 50}, "finish": "stop",
        }  # fmt: skip
        finish = {"type": "step-finish", "reason": "stop", "tokens": TOKENS, "cost": 0.000492}
        return self.message(session, told | info, {"type": "step-start"}, *parts, finish)

    def turn(self, session: str, question: str, *parts: dict[str, Any]) -> tuple[str, str]:
        """A question and what is answered."""
        asked = self.user(session, question)
        return asked, self.assistant(session, asked, *parts)

    def revert(self, session: str, message: str) -> None:
        """Somebody goes back to before a message."""
        self.execute("UPDATE session SET revert = ? WHERE id = ?", json.dumps({"messageID": message}), session)

    def clean_up(self, session: str, message: str) -> None:
        """What the program does at the next prompt: what was gone back over is removed."""
        for (name,) in self.execute("SELECT id FROM message WHERE session_id = ? AND id >= ?", session, message):
            self.execute("DELETE FROM part WHERE message_id = ?", name)
            self.execute("DELETE FROM message WHERE id = ?", name)
            self.log(session, "message.removed.1", messageID=name)
        self.execute("UPDATE session SET revert = NULL WHERE id = ?", session)

    def take_in(self, document: bytes) -> None:
        """What `opencode import` does: rows for what an export says; what is there already stays."""
        told = json.loads(document)
        info = told["info"]
        model, metadata, permission = (
            json.dumps(info[key]) if key in info else None for key in ("model", "metadata", "permission")
        )
        columns = "id, project_id, slug, directory, title, version, agent, model, metadata, permission"
        row = (info["id"], "global", info["slug"], "/here", info["title"], info["version"], info.get("agent"))
        row += (model, metadata, permission, info["time"]["created"], info["time"]["updated"])
        places = ", ".join("?" * len(row))
        self.execute(f"INSERT OR IGNORE INTO session ({columns}, time_created, time_updated) VALUES ({places})", *row)
        for message in told["messages"]:
            said = dict(message["info"])
            name, _ = said.pop("id"), said.pop("sessionID")
            created = said["time"]["created"]
            row = (name, info["id"], created, START, json.dumps(said))
            self.execute("INSERT OR IGNORE INTO message VALUES (?, ?, ?, ?, ?)", *row)
            for each in message["parts"]:
                part = dict(each)
                own, _, whose = part.pop("id"), part.pop("sessionID"), part.pop("messageID")
                row = (own, whose, info["id"], START, START, json.dumps(part))
                self.execute("INSERT OR IGNORE INTO part VALUES (?, ?, ?, ?, ?, ?)", *row)


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def tool(call: str, output: str = "done", *, name: str = "bash", **state: Any) -> dict[str, Any]:
    """A call that was answered, unless `state` says otherwise."""
    time = {"start": START + 5, "end": START + 6}
    known = {"status": "completed", "input": {"command": "ls"}, "output": output, "title": "", "metadata": {}}
    return {"type": "tool", "tool": name, "callID": call, "state": known | {"time": time} | state}
