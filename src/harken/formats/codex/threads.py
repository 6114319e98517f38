"""Threads that come from other threads: which a rollout says that its calls started, and which started its own."""

from __future__ import annotations

import msgspec

from harken.formats.kit.jsonl import Record
from harken.formats.kit.openai import text_in, text_of

SPAWN = "spawn_agent"
"""The tool that starts a thread."""


class _SpawnOutput(msgspec.Struct):
    agent_id: str = ""


def told_by_event(payload: Record) -> dict[str, str]:
    """The threads an event says were started, and the call that did it."""
    if payload.get("type") == "collab_agent_spawn_end":
        return {text_of(payload.get("new_thread_id")): text_of(payload.get("call_id"))}
    item = payload.get("item")
    if not isinstance(item, dict) or item.get("type") != "CollabAgentToolCall" or item.get("tool") != SPAWN:
        return {}
    threads = item.get("receiver_thread_ids")
    return {text_of(thread): text_of(item.get("id")) for thread in threads} if isinstance(threads, list) else {}


def told_by_output(item: Record) -> str:
    """The thread that the output of a call of `SPAWN` names: a file without `history_mode` has no event of it. Empty
    where the call failed, whose output is a sentence."""
    output = item.get("output")
    text = text_in(output.get("content") if isinstance(output, dict) else output)
    try:
        return msgspec.json.decode(text, type=_SpawnOutput).agent_id
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ""


def parent_of(meta: Record) -> str:
    """The thread that started the one with this `session_meta`."""
    if parent := text_of(meta.get("parent_thread_id")):
        return parent
    node: object = meta.get("source")
    for key in ("subagent", "thread_spawn", "parent_thread_id"):
        node = node.get(key) if isinstance(node, dict) else None
    return text_of(node)
