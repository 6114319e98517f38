"""What a request to a model says, as a flat list: who spoke, what was called, what came back.

The programs put texts of their own between those of the conversation (reminders, the environment, instructions);
those are told apart by how they begin, and left out. Everything else counts, once and in order.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Item:
    """One thing a request says: `kind` is user, assistant, call, result, image or thinking."""

    kind: str
    text: str = ""
    id: str = ""
    input: str = ""


# Texts Claude Code 2.1.325 puts in front of or behind the conversation by itself.
CLAUDE_ADDS = ("<system-reminder>", "[SYSTEM NOTIFICATION")
# And what it folds into a result.
FOLDED = re.compile(r"\s*<system-reminder>.*?</system-reminder>", re.DOTALL)
# A report of a background agent is conversation, though it goes out inside such a text.
NOTIFICATION = re.compile(r"<task-notification>.*?</task-notification>", re.DOTALL)
# And Codex 0.166.0.
CODEX_ADDS = ("<environment_context>", "<permissions instructions>", "<skills_instructions>", "<user_instructions>")


def anthropic_items(body: dict[str, Any]) -> list[Item]:
    """A Messages request as a flat list, without what Claude Code adds."""
    items: list[Item] = []
    for message in body["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if message["role"] == "system":
            continue
        for block in blocks:
            items.extend(_anthropic(message["role"], block))
    return items


def _anthropic(role: str, block: dict[str, Any]) -> list[Item]:
    match block["type"]:
        case "text":
            text = block["text"].strip("\n")
            if role == "user" and text.startswith(CLAUDE_ADDS):
                return [Item(role, told) for told in NOTIFICATION.findall(text)]
            return [Item(role, text)]
        case "tool_use":
            return [Item("call", block["name"], block.get("id", ""), _canonical(block["input"]))]
        case "tool_result":
            content = block.get("content", "")
            if isinstance(content, str):
                return [Item("result", content, block.get("tool_use_id", ""))]
            text = "\n".join(part["text"] for part in content if part["type"] == "text")
            pictures = [Item("image", part["source"].get("data", "")) for part in content if part["type"] == "image"]
            return [Item("result", text, block.get("tool_use_id", "")), *pictures]
        case "image":
            return [Item("image", block["source"].get("data", ""))]
        case "thinking":
            return [Item("thinking", block["thinking"], block.get("signature", ""))]
    return [Item(block["type"], json.dumps(block))]


def responses_items(body: dict[str, Any]) -> list[Item]:
    """A Responses request as a flat list, without what Codex adds."""
    items: list[Item] = []
    for item in body["input"]:
        items.extend(_responses(item))
    return items


def _responses(item: dict[str, Any]) -> list[Item]:
    match item["type"]:
        case "message":
            if item["role"] == "developer":
                return []
            return [part for block in item["content"] for part in _part(item["role"], block)]
        case "function_call":
            return [Item("call", item["name"], item["call_id"], _canonical(item["arguments"]))]
        case "custom_tool_call":
            return [Item("call", item["name"], item["call_id"], item["input"])]
        case "function_call_output" | "custom_tool_call_output":
            output = item["output"]
            if isinstance(output, str):
                return [Item("result", output, item["call_id"])]
            text = "\n".join(part["text"] for part in output if part["type"] == "input_text")
            pictures = [part for block in output if block["type"] == "input_image" for part in _part("user", block)]
            return [Item("result", text, item["call_id"]), *pictures]
        case "reasoning":
            text = "\n".join(part["text"] for part in item["summary"])
            return [Item("thinking", text, item.get("encrypted_content") or "")]
    return [Item(item["type"], json.dumps(item))]


def _part(role: str, block: dict[str, Any]) -> list[Item]:
    if block["type"] == "input_image":
        return [Item("image", block["image_url"].rpartition("base64,")[2])]
    text = block["text"].strip("\n")
    return [] if role == "user" and text.startswith(CODEX_ADDS) else [Item(role, text)]


def _canonical(value: Any) -> str:
    """Arguments in one spelling: the two APIs carry them as an object and as JSON text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return value
    return json.dumps(value, sort_keys=True)
