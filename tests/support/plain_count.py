"""A second count of Claude Code's and Codex's files, made from what is known of the files and of nothing of Harken.

It reads plain JSON and counts as plainly as possible, so that a wrong rule in Harken cannot hide in its own test.
Run as a program it prints the count of each file that is named:

    python tests/support/plain_count.py FILE...
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Record = dict[str, Any]
Usage = dict[str, "int | None"]
FIELDS = ("input", "output", "cache_read", "cache_write")


class Count:
    """The figures of one file, with the keys that make several files one sum."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, str], Usage] = {}
        self.nested: dict[tuple[str, str], Usage] = {}
        self.places: list[tuple[str, str]] = []
        """(what the record and its copies are called, human | injected | tool_result)."""
        self.calls: list[tuple[str, str]] = []
        self.compactions: list[str] = []
        self.answers: list[str] = []
        """What the records are called in which a model speaks."""
        self.lines: list[Usage] = []
        """Every report of a request, as often as it is repeated."""
        self.answered = False
        """Whether a model said anything."""

    def names(self) -> list[str]:
        return [name for name, _ in self.places + self.calls] + self.compactions + self.answers

    def figures(self) -> Record:
        """As `stats --json` has them."""
        return total([self])


def total(counts: Iterable[Count]) -> Record:
    """Several files together: a request counts once, and so does a named record that another file copied."""
    requests: dict[tuple[str, str], Usage] = {}
    nested: dict[tuple[str, str], Usage] = {}
    prompts: Counter[str] = Counter()
    tools: Counter[str] = Counter()
    compactions = 0
    seen: set[str] = set()
    answered = False
    for count in counts:
        keep_largest(requests, count.requests)
        keep_largest(nested, count.nested)
        prompts.update(place for name, place in count.places if name not in seen)
        tools.update(tool for name, tool in count.calls if name not in seen)
        compactions += sum(name not in seen for name in count.compactions)
        answered = answered or count.answered
        seen.update(name for name in count.names() if name)
    known = {message for message, _ in requests}
    rows = [*requests.values(), *(usage for key, usage in nested.items() if key[0] not in known)]
    return {
        "usage": added(rows) if rows or answered else dict.fromkeys(FIELDS, 0),
        "prompts": {place: prompts[place] for place in ("human", "injected", "tool_result")},
        "tools": dict(tools),
        "compactions": compactions,
    }


def one_session(counts: Iterable[Count]) -> Count:
    """Several versions of one session: a record of one name or, without a name, the same in the same place, once."""
    whole = Count()
    seen: set[str] = set()
    for count in counts:
        keep_largest(whole.requests, count.requests)
        keep_largest(whole.nested, count.nested)
        whole.places += [(name, place) for name, place in count.places if name not in seen]
        whole.calls += [(name, tool) for name, tool in count.calls if name not in seen]
        whole.compactions += [name for name in count.compactions if name not in seen]
        whole.lines += count.lines
        whole.answers += count.answers
        whole.answered = whole.answered or count.answered
        seen.update(name for name in count.names() if name)
    return whole


def keep_largest(into: dict[tuple[str, str], Usage], more: dict[tuple[str, str], Usage]) -> None:
    for key, usage in more.items():
        if key not in into or weight(usage) > weight(into[key]):
            into[key] = usage


def weight(usage: Usage) -> tuple[int, int]:
    """The largest output stands, then the largest input, from the cache or not."""
    return usage["output"] or 0, sum(usage[field] or 0 for field in ("input", "cache_read", "cache_write"))


def added(rows: list[Usage]) -> Usage:
    """The sum of what is known; a figure that no row has is unknown."""
    sums: Usage = {}
    for field in FIELDS:
        told = [value for row in rows if (value := row[field]) is not None]
        sums[field] = sum(told) if told else None
    return sums


def objects(data: bytes) -> Iterator[Record]:
    """Every object of a JSONL file, also two on a line where a newline was lost."""
    decoder = json.JSONDecoder()
    for line in data.decode("utf-8", "replace").split("\n"):
        rest = line.strip()
        while rest:
            try:
                value, end = decoder.raw_decode(rest)
            except ValueError:
                break
            if isinstance(value, dict):
                yield value
            rest = rest[end:].lstrip()


# -- Claude Code -------------------------------------------------------------------------------------------------------

CLAUDE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}
NOT_TYPED = (
    "This session is being continued from a previous conversation",
    "<task-notification>",
    "[SYSTEM NOTIFICATION - NOT USER INPUT]",
    "Base directory for this skill:",
    "<teammate-message",
    "<cross-session-message",
    "<local-command-caveat>",
    "Caveat: The messages below were generated by the user while running local commands",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<command-name>",
    "<command-message>",
    "<command-args>",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<user-memory-input>",
    "Continue from where you left off.",
    "[Request interrupted by user",
    "Implement the following plan:",
    "[Image: source:",
    "[Image source:",
    "<tick>",
    "<goal>",
)
AROUND = (
    "session-start-hook",
    "user-prompt-submit-hook",
    "ide_opened_file",
    "ide_selection",
    "ide_diagnostics",
    "system-reminder",
)
"""Elements that may stand before what a person wrote."""


def count_claude(data: bytes, *, own: bool = False) -> Count:
    """All of a file or, where it is a session's, its own agent alone: sub-agents may stand between."""
    count = Count()
    records = list(objects(data))
    talk = [record.get("isSidechain") for record in records if record.get("type") in ("user", "assistant")]
    for record in records:
        if own and record.get("isSidechain") is True and not all(side is True for side in talk):
            continue
        kind, name = record.get("type"), record.get("uuid") or ""
        if kind == "assistant":
            count.answers.append(name)
            _claude_assistant(count, record, name)
        elif kind == "user":
            body = _object(record.get("message"))
            place = _claude_place(body.get("content"), record)
            if place:
                count.places.append((name, place))
        elif kind == "attachment" and (inner := _object(record.get("attachment"))).get("type") == "queued_command":
            typed = inner.get("commandMode") in (None, "prompt")
            place = _claude_place(inner.get("prompt"), inner)
            if place:
                count.places.append((name, place if typed else "injected"))
        elif kind == "system" and record.get("subtype") == "compact_boundary":
            count.compactions.append(name)
        elif kind == "progress":
            _claude_progress(count, record)
    return count


def _object(value: Any) -> Record:
    return value if isinstance(value, dict) else {}


def _claude_assistant(count: Count, record: Record, name: str) -> None:
    body = _object(record.get("message"))
    made_up = body.get("model") == "<synthetic>"
    content = body.get("content")
    for block in content if isinstance(content, list) else []:
        block_type = str(block.get("type"))
        if block_type in ("tool_use", "server_tool_use", "mcp_tool_use"):
            count.calls.append((name, block["name"]))
            count.answered = True
        elif block_type.endswith("_tool_result"):
            count.places.append((name, "tool_result"))
        elif block_type == "text" and not made_up and not record.get("isApiErrorMessage"):
            count.answered = True
    count.answered = count.answered or (isinstance(content, str) and not made_up)
    if isinstance(body.get("usage"), dict) and not made_up:
        key = (body.get("id") or name, record.get("requestId") or "")
        count.lines.append(_claude_usage(body["usage"]))
        keep_largest(count.requests, {key: count.lines[-1]})


def _claude_usage(usage: Record) -> Usage:
    return {field: usage.get(key) for field, key in CLAUDE.items()}


def _claude_progress(count: Count, record: Record) -> None:
    inner = _object(record.get("data")).get("message")
    body = inner.get("message") if isinstance(inner, dict) else None
    if not isinstance(body, dict) or not isinstance(body.get("usage"), dict) or not body.get("id"):
        return
    if body.get("model") != "<synthetic>":
        key = (body["id"], inner.get("requestId") or "")
        keep_largest(count.nested, {key: _claude_usage(body["usage"])})


def _claude_place(content: Any, record: Record) -> str:
    """Whose a user record is; empty for one that says nothing."""
    if isinstance(content, str):
        texts, pictures = [content], False
    elif isinstance(content, list):
        kinds = [block.get("type") if isinstance(block, dict) else "text" for block in content]
        if "tool_result" in kinds:
            return "tool_result"
        texts = [b if isinstance(b, str) else b["text"] for b, k in zip(content, kinds, strict=True) if k == "text"]
        pictures = "image" in kinds or "document" in kinds or not content
        if not texts and not pictures:
            return ""
    else:
        return ""
    origin = record.get("origin")
    origin_kind = origin.get("kind") if isinstance(origin, dict) else None
    if record.get("isCompactSummary"):
        return "injected"
    if origin_kind in ("human", "task-notification", "channel", "peer", "coordinator", "observer", "auto-continuation"):
        return "human" if origin_kind == "human" else "injected"
    if record.get("promptSource") in ("typed", "sdk", "system"):
        return "injected" if record["promptSource"] == "system" else "human"
    marks = ("isMeta", "isVisibleInTranscriptOnly", "isSidechain")
    if isinstance(record.get("planContent"), str) or any(record.get(mark) for mark in marks):
        return "injected"
    return "human" if pictures or any(map(_typed, texts)) else "injected"


def _typed(text: str) -> bool:
    text = text.lstrip()
    for element in AROUND:
        if text.startswith(f"<{element}>"):
            _, closed, rest = text.partition(f"</{element}>")
            return bool(closed and rest.strip()) and _typed(rest)
    return not text.startswith(NOT_TYPED)


# -- Codex -------------------------------------------------------------------------------------------------------------

CODEX = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_input_tokens")
CALLS = (
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "tool_search_call",
    "web_search_call",
    "image_generation_call",
)
PUT_IN = (
    ("<environment_context>", "</environment_context>"),
    ("# agents.md instructions", "</instructions>"),
    ("<user_instructions>", "</user_instructions>"),
    ("<turn_aborted>", "</turn_aborted>"),
    ("<user_shell_command>", "</user_shell_command>"),
    ("<skill>", "</skill>"),
    ("<subagent_notification>", "</subagent_notification>"),
    ("<hook_prompt", "</hook_prompt>"),
    ("<recommended_plugins>", "</recommended_plugins>"),
    ("<goal_context>", "</goal_context>"),
    ("<user_action>", "</user_action>"),
    ("another language model started to solve this problem and produced a summary", ""),
)


def count_codex(data: bytes) -> Count:
    count = Count()
    records = [_unwrapped(record) for record in objects(data)]
    places = list(_codex_names(records))
    typed = {text for kind, payload in records if (text := _codex_typed(kind, payload)) is not None}
    metas = [payload for kind, payload in records if kind == "session_meta"]
    source = metas[0].get("source") if metas else None
    spawned = bool(metas) and (
        bool(metas[0].get("parent_thread_id")) or (isinstance(source, dict) and "subagent" in source)
    )
    roles = {payload.get("role") for kind, payload in records if kind == "response_item"}
    for (kind, payload), place in zip(records, places, strict=True):
        name = payload.get("type")
        if kind == "compacted":
            count.compactions.append(place)
        elif kind == "inter_agent_communication":
            count.places.append((place, "injected"))
        elif kind == "response_item":
            _codex_item(count, place, payload, typed, spawned)
        elif kind == "event_msg" and name == "user_message" and "user" not in roles:
            count.places.append((place, "injected" if spawned else "human"))
        elif kind == "event_msg" and name == "agent_message" and "assistant" not in roles:
            count.answered = True
    _codex_usage(count, records, metas)
    return count


def _codex_names(records: list[tuple[str, Record]]) -> Iterator[str]:
    """What a copy of the file under another thread shares: the oldest thread, what a record says, and the how-many-th
    of its kind it is."""
    family = _codex_family([payload for kind, payload in records if kind == "session_meta"])
    seen: Counter[str] = Counter()
    for _, payload in records:
        said = json.dumps(payload)
        yield f"{family} {said} {seen[said]}"
        seen[said] += 1


def _codex_family(metas: list[Record]) -> str:
    if metas and metas[0].get("history_base"):
        began = metas[0].get("timestamp") or ""
        return f"{metas[0].get('id')}@{metas[0]['history_base'].get('end_byte_offset')}@{began}"
    parents = {meta.get("id"): meta.get("forked_from_id") for meta in reversed(metas)}
    family = metas[0].get("id") if metas else ""
    while parents.get(family):
        family = parents[family]
    return str(family)


def _unwrapped(record: Record) -> tuple[str, Record]:
    """Today's shape of a record: the first versions wrote the items bare."""
    if isinstance(record.get("payload"), dict):
        return str(record.get("type")), record["payload"]
    if "type" not in record and "role" in record:
        words = record.get("content", record.get("message"))
        return "response_item", {"type": "message", "role": record["role"], "content": words}
    if "type" not in record and "id" in record:
        return "session_meta", record
    return ("state", record) if record.get("record_type") == "state" else ("response_item", record)


def _codex_typed(kind: str, payload: Record) -> str | None:
    if kind != "event_msg":
        return None
    if payload.get("type") == "user_message":
        return str(payload.get("message"))
    item = payload.get("item")
    if payload.get("type") == "item_completed" and isinstance(item, dict) and item.get("type") == "UserMessage":
        return "\n".join(part["text"] for part in item["content"] if "text" in part)
    return None


def _codex_item(count: Count, place: str, item: Record, typed: set[str], spawned: bool) -> None:
    kind, role = str(item.get("type")), item.get("role")
    if kind in CALLS:
        own = item.get("name") or (item.get("function") or {}).get("name") or ""
        if str(item.get("namespace")).startswith("mcp__"):  # the server of a tool is part of its name
            own = str(item["namespace"]).rstrip("_") + "__" + own
        count.calls.append(
            (place, own if kind in ("function_call", "custom_tool_call") else kind.removesuffix("_call"))
        )
        count.answered = True
        if kind == "image_generation_call":
            count.places.append((place, "tool_result"))
    elif kind.endswith("_output"):
        count.places.append((place, "tool_result"))
    elif kind == "agent_message":
        count.places.append((place, "injected"))
    elif kind == "message" and role == "assistant":
        count.answered = True
    elif kind == "message" and role == "user":
        parts = item["content"] if isinstance(item["content"], list) else [{"text": item["content"]}]
        texts = [part["text"] for part in parts if "text" in part]
        put_in = bool(parts) and len(texts) == len(parts) and all(map(_put_in, texts))
        person = (not put_in or "\n".join(texts) in typed) and not spawned
        count.places.append((place, "human" if person else "injected"))


def _put_in(text: str) -> bool:
    plain = text.strip().lower()
    # A conversation that began in Claude Code carries over what was not typed there either.
    return any(plain.startswith(start) and plain.endswith(end) for start, end in PUT_IN) or not _typed(text)


def _codex_usage(count: Count, records: list[tuple[str, Record]], metas: list[Record]) -> None:
    """Running totals: the steps between them, under the thread that everything descends from and the total itself. What
    a `token_usage_record` tells is a request by itself, and its total no step any more."""
    recorded = []
    family = _codex_family(metas)
    before: list[int | None] = [0, 0, 0, 0]
    falls = 0
    for kind, payload in records:
        if kind == "token_usage_record":
            now, used = ([payload[of].get(field) for field in CODEX] for of in ("thread_token_usage", "usage"))
            if now != before:
                count.requests[f"codex:{payload['thread_id']}", payload["response_id"]] = _codex_step(used)
            recorded.append(now)
            before = now
        info = payload.get("info") if kind == "event_msg" and payload.get("type") == "token_count" else None
        total = info.get("total_token_usage") if isinstance(info, dict) else None
        if not isinstance(total, dict):
            continue
        now = [total.get(field) for field in CODEX]
        if metas and (metas[0].get("history_base") or metas[0].get("forked_from_id")) and not count.requests:
            # A fork in a file of its own, or of a thread that was compacted: its totals go on from earlier ones.
            last = info.get("last_token_usage") or {}
            before = [(a or 0) - (last.get(field) or 0) for a, field in zip(now, CODEX, strict=True)]
        if now == before or now in recorded:
            continue
        if any((a or 0) < (b or 0) for a, b in zip(now, before, strict=True)):
            falls += 1
            before = [0, 0, 0, 0]
        usage = _codex_step([None if a is None else a - (b or 0) for a, b in zip(now, before, strict=True)])
        before = now
        if any(now):
            numbers = [*now, falls] if falls else now
            count.requests[f"codex:{family}", "-".join(str(number or 0) for number in numbers)] = usage


def _codex_step(used: list[int | None]) -> Usage:
    given, output, read, written = used
    fresh = None if given is None else given - (read or 0) - (written or 0)
    return {"input": fresh, "output": output, "cache_read": read, "cache_write": written}


def count_file(path: Path, *, own: bool = False) -> Count:
    """The count of a file of either program; Codex's records have a payload, or no uuid, and a file for each agent."""
    data = path.read_bytes()
    first = [record for record, _ in zip(objects(data), range(20), strict=False)]
    claude = any("sessionId" in record or "leafUuid" in record or "parentUuid" in record for record in first)
    return count_claude(data, own=own) if claude else count_codex(data)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(json.dumps({"file": argument} | count_file(Path(argument)).figures()))
