"""A second look at who was given which task, made from what is known of Claude Code's and Codex's files and of nothing
of Harken: plain JSON, read as plainly as possible."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

Record = dict[str, Any]


class PlainTask(NamedTuple):
    """What a file says of a sub-agent."""

    call: str
    """The id of the call that made it; empty where no file names it."""
    words: str
    """What it was given to do."""
    end: str
    """`completed` or `failed`; empty where its maker heard no more of it."""
    calls: tuple[str, ...]
    """The ids of its own calls."""


Family = dict[str, dict[str, PlainTask]]
"""Session to its sub-agents by id."""


def plain_tasks(folder: Path) -> Family:
    """The sub-agents of all sessions below a folder."""
    files = {path: list(_records(path)) for path in sorted(folder.rglob("*.jsonl"))}
    heads = [records[0] for records in files.values() if records]
    if any(head.get("type") == "session_meta" for head in heads):
        return _codex(list(files.values()))
    for path, records in files.items():
        _name(path, records)
    return _claude([record for records in files.values() for record in records])


def _name(path: Path, records: list[Record]) -> None:
    """A file of an agent is called after it and lies in a folder of its session; its lines do not always say so."""
    if path.stem.startswith("agent-"):
        for record in records:
            record.setdefault("agentId", path.stem.removeprefix("agent-"))
            if path.parent.name == "subagents":
                record["sessionId"] = path.parent.parent.name


def _records(path: Path) -> Iterator[Record]:
    for line in path.read_text("utf-8", "replace").splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found


# -- Claude Code -------------------------------------------------------------------------------------------------------


def _claude(records: list[Record]) -> Family:
    made: dict[str, dict[str, list[Record]]] = {}
    mains: dict[str, list[Record]] = {}
    above = {record["uuid"]: record.get("parentUuid") for record in records if record.get("uuid")}
    for record in records:
        session = str(record.get("sessionId", ""))
        if record.get("type") not in ("user", "assistant"):
            continue
        if record.get("isSidechain") is True:
            agent = record.get("agentId") or _root(record["uuid"], above)
            made.setdefault(session, {}).setdefault(agent, []).append(record)
        else:
            mains.setdefault(session, []).append(record)
    return {
        session: {agent: _claude_task(agent, own, mains.get(session, [])) for agent, own in agents.items()}
        for session, agents in made.items()
    }


def _root(uuid: str, above: dict[str, str | None]) -> str:
    while (parent := above.get(uuid)) is not None:
        uuid = parent
    return uuid


def _claude_task(agent: str, own: list[Record], main: list[Record]) -> PlainTask:
    words = next(text for record in own if record["type"] == "user" for text in _texts(record))
    asked = {
        block["id"]: block["input"].get("prompt")
        for record in main
        for block in _blocks(record, "tool_use")
        if block["name"] in ("Task", "Agent") and "id" in block
    }
    call, end = "", ""
    for record in main:
        told = record.get("toolUseResult")
        for block in _blocks(record, "tool_result"):
            named = told.get("agentId") if isinstance(told, dict) else None
            name = block["tool_use_id"]
            if named == agent or (named is None and name in asked and asked[name] == words):
                call = name
                is_launched = isinstance(told, dict) and told.get("status") == "async_launched"
                end = "" if is_launched else "failed" if block.get("is_error") else "completed"
        for text in _texts(record):
            if f"<task-id>{agent}</task-id>" in text and (status := re.search("<status>(.*?)</status>", text)):
                end = status[1]
    calls = [block["id"] for record in own for block in _blocks(record, "tool_use") if block.get("id")]
    return PlainTask(call, words, end, tuple(dict.fromkeys(calls)))


def _blocks(record: Record, kind: str) -> list[Record]:
    content = record["message"].get("content")
    return [one for one in content if one.get("type") == kind] if isinstance(content, list) else []


def _texts(record: Record) -> list[str]:
    content = record["message"].get("content")
    return [content] if isinstance(content, str) else [block["text"] for block in _blocks(record, "text")]


# -- Codex -------------------------------------------------------------------------------------------------------------


def _codex(files: list[list[Record]]) -> Family:
    found: Family = {}
    by_id = {}
    for records in files:
        if records and records[0].get("type") == "session_meta":
            by_id[records[0]["payload"]["id"]] = [r["payload"] for r in records if r.get("type") == "response_item"]
    for records in files:
        head = records[0]["payload"] if records and records[0].get("type") == "session_meta" else {}
        parent = _parent(head)
        if parent in by_id:
            found.setdefault(parent, {})[head["id"]] = _codex_task(head["id"], by_id[head["id"]], by_id[parent])
    return found


def _parent(head: Record) -> str:
    source = head.get("source")
    spawned = source.get("subagent") if isinstance(source, dict) else None
    thread = spawned.get("thread_spawn") if isinstance(spawned, dict) else None
    return str((thread or {}).get("parent_thread_id") or head.get("parent_thread_id") or "")


def _codex_task(agent: str, own: list[Record], parent: list[Record]) -> PlainTask:
    asked = {
        item["call_id"]: json.loads(item["arguments"]).get("message", "")
        for item in parent
        if item.get("type") == "function_call" and item["name"] == "spawn_agent"
    }
    call, end = "", ""
    for item in parent:
        text = json.dumps(item, ensure_ascii=False).replace('\\"', '"')
        if item.get("type") == "function_call_output" and item["call_id"] in asked and agent in text:
            call = item["call_id"]
        elif agent in text and (status := re.search('"(completed|errored)"', text)):
            end = end or {"completed": "completed", "errored": "failed"}[status[1]]
    calls = [item["call_id"] for item in own if item.get("type") == "function_call"]
    return PlainTask(call, asked.get(call, ""), end, tuple(calls))
