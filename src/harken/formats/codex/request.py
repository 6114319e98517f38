"""The items that go to the model when Codex resumes a rollout: the conversation, repaired as the program repairs it.

What Codex puts around them is its own and not in the file: its instructions as a first developer message (the file's
`base_instructions` where it has them), and before the new prompt what changed around it (`ADDED_BEFORE_PROMPT`).
"""

from __future__ import annotations

from typing import Any

from harken.formats.kit.jsonl import Record
from harken.formats.kit.openai import CALLS, ITEMS, OUTPUTS, text_of
from harken.formats.kit.openai_writing import ABORTED, picture_part

from .context import HistoryItem, conversation
from .records import SESSION_META, iter_lines, kind_of
from .truncate import truncate_output

_PRIVATE = frozenset({"metadata", "internal_chat_message_metadata_passthrough"})
"""What an item carries for the program alone."""
_PREFIXES = {
    "message": "msg_",
    "reasoning": "rs_",
    "function_call": "fc_",
    "function_call_output": "fco_",
    "custom_tool_call": "ctc_",
    "custom_tool_call_output": "ctco_",
    "tool_search_call": "tsc_",
    "tool_search_output": "tso_",
    "local_shell_call": "lsh_",
    "web_search_call": "ws_",
    "image_generation_call": "ig_",
    "compaction": "cmp_",
    "compaction_summary": "cmp_",
    "context_compaction": "cmp_",
}
"""An item's id is sent when it looks like one the provider gave."""
_NEEDED: dict[str, tuple[tuple[str, type | tuple[type, ...]], ...]] = {
    "message": (("role", str), ("content", list)),
    "reasoning": (("summary", list),),
    "function_call": (("name", str), ("arguments", str), ("call_id", str)),
    "custom_tool_call": (("name", str), ("input", str), ("call_id", str)),
    "function_call_output": (("call_id", str), ("output", (str, list))),
    "custom_tool_call_output": (("call_id", str), ("output", (str, list))),
    "agent_message": (("content", list),),
}
"""Without these Codex cannot read the line, and passes over it."""
_PAIRS = {
    "function_call": "function_call_output",
    "local_shell_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "tool_search_call": "tool_search_output",
}
_CUT = frozenset({"function_call_output", "custom_tool_call_output"})
ADDED_BEFORE_PROMPT = ("developer", "user")
"""The roles of the messages Codex adds between the conversation and the new prompt: the instructions of another model
than the last turn's, AGENTS.md, skills, permissions, `<environment_context>`."""


def request_items(data: bytes, *, output_budget: int | None = None) -> list[Record]:
    """The items of the conversation as they are sent; `output_budget` is the model's limit for one tool output."""
    entries = conversation(list(iter_lines(data))).entries
    items = [_prepared(entry, output_budget) for entry in entries if _is_sent(entry.item)]
    return _without_orphans(_with_outputs(items))


def base_instructions(data: bytes) -> str:
    """The instructions the file says the model had; empty where it says none."""
    for line in iter_lines(data):
        if line.record and (found := kind_of(line.record))[0] == SESSION_META:
            base = found[1].get("base_instructions")
            return text_of(base.get("text")) if isinstance(base, dict) else text_of(base)
    return ""


def _is_sent(item: Record) -> bool:
    name = text_of(item.get("type"))
    if name not in ITEMS or name == "ghost_snapshot" or (name == "message" and item.get("role") == "system"):
        return False
    return all(isinstance(item.get(field), kind) for field, kind in _NEEDED.get(name, ()))


def _prepared(entry: HistoryItem, budget: int | None) -> Record:
    item = {key: value for key, value in entry.item.items() if key not in _PRIVATE}
    if item["type"] == "compaction_summary":
        item["type"] = "compaction"
    if not text_of(item.get("id")).startswith(_PREFIXES.get(entry.item["type"], "\0")):
        item.pop("id", None)
    if item["type"] == "reasoning":
        item = {"content": None, "encrypted_content": None, **item}
    for field in ("content", "output"):
        if isinstance(item.get(field), list):
            item[field] = [_shown(part) for part in item[field]]
    # What a replacement holds was cut when it was made.
    if budget is not None and not entry.replaced and item["type"] in _CUT:
        item["output"] = truncate_output(item.get("output"), budget)
    return item


def _shown(part: Any) -> Any:
    """A part of a message; a picture that Codex would not send is replaced by the reason."""
    if not isinstance(part, dict) or part.get("type") != "input_image":
        return part
    return (
        {**part, **shown} if (shown := picture_part(text_of(part.get("image_url"))))["type"] == part["type"] else shown
    )


def _with_outputs(items: list[Record]) -> list[Record]:
    """Every call is answered; one that is not gets its answer right behind it."""
    answered = {(item["type"], text_of(item.get("call_id"))) for item in items if item["type"] in OUTPUTS}
    repaired: list[Record] = []
    for item in items:
        repaired.append(item)
        if (
            item["type"] in CALLS
            and (call := text_of(item.get("call_id")))
            and (_PAIRS[item["type"]], call) not in answered
        ):
            repaired.append(_aborted(_PAIRS[item["type"]], call))
    return repaired


def _aborted(kind: str, call: Any) -> Record:
    if kind == "tool_search_output":
        return {"type": kind, "call_id": call, "status": "completed", "execution": "client", "tools": []}
    return {"type": kind, "call_id": call, "output": ABORTED}


def _without_orphans(items: list[Record]) -> list[Record]:
    """An output without its call is left out, unless the provider itself gave it."""
    asked = {(_PAIRS[item["type"]], text_of(item.get("call_id"))) for item in items if item["type"] in CALLS}
    return [item for item in items if item["type"] not in OUTPUTS or _belongs(item, asked)]


def _belongs(item: Record, asked: set[tuple[str, Any]]) -> bool:
    if item["type"] == "tool_search_output" and (item.get("execution") == "server" or item.get("call_id") is None):
        return True
    return (item["type"], text_of(item.get("call_id"))) in asked
