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


def in_order_of_calls(items: list[Item]) -> list[Item]:
    """The results of calls that were made at once in the order of the calls: some programs keep the order in which the
    tools ended, some do not, and it says nothing."""
    order = {item.id: at for at, item in enumerate(items) if item.kind == "call"}
    placed: list[Item] = []
    waiting: list[Item] = []
    for item in [*items, Item("end")]:
        if item.kind == "result":
            waiting.append(item)
            continue
        placed += [*sorted(waiting, key=lambda result: order.get(result.id, len(items))), item]
        waiting = []
    return placed[:-1]


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


GEMINI_ADDS = ("<session_context>",)


def contents_items(body: dict[str, Any]) -> list[Item]:
    """A Gemini request as a flat list, without what Gemini CLI adds."""
    return [item for content in body["contents"] for part in content["parts"] for item in _content(content, part)]


def _content(content: dict[str, Any], part: dict[str, Any]) -> list[Item]:
    if call := part.get("functionCall"):
        return [Item("call", call["name"], call.get("id", ""), _canonical(call["args"]))]
    if answer := part.get("functionResponse"):
        said = answer["response"]
        inside = [item for one in answer.get("parts", ()) for item in _content(content, one)]
        return [Item("result", said.get("output", said.get("error")), answer.get("id", "")), *inside]
    if media := part.get("inlineData"):
        return [Item("image", media["data"])]
    text = part["text"].strip("\n")
    if part.get("thought"):
        return [Item("thinking", text)]
    if content["role"] == "model":
        return [Item("assistant", text)]
    # What stands alone as a zero-width space keeps the program from passing over what follows.
    return [] if text.startswith(GEMINI_ADDS) or text == "\u200b" else [Item("user", text)]


def _part(role: str, block: dict[str, Any]) -> list[Item]:
    if block["type"] == "input_image":
        return [Item("image", block["image_url"].rpartition("base64,")[2])]
    text = block["text"].strip("\n")
    return [] if role == "user" and text.startswith(CODEX_ADDS) else [Item(role, text)]


# Texts Qwen Code 0.24.4 puts before prompts, and behind a result that has a picture.
QWEN_ADDS = ("<system-reminder>", "(attached media from previous tool call)")


def chat_items(body: dict[str, Any]) -> list[Item]:
    """A request for a chat completion as a flat list, without what Qwen Code adds."""
    items: list[Item] = []
    for message in body["messages"]:
        if message["role"] == "system":
            continue
        if message.get("reasoning_content"):
            items.append(Item("thinking", message["reasoning_content"]))
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        items.extend(_chat_parts(message, [part for part in parts if part.get("text") != ""]))
        for call in message.get("tool_calls", ()):
            asked = call["function"]
            items.append(Item("call", asked["name"], call["id"], _canonical(asked["arguments"])))
    return items


def _chat_parts(message: dict[str, Any], parts: list[dict[str, Any]]) -> list[Item]:
    pictures = [
        Item("image", part["image_url"]["url"].rpartition("base64,")[2]) for part in parts if "image_url" in part
    ]
    texts = [part["text"] for part in parts if "text" in part]
    if message["role"] == "tool":
        return [Item("result", "\n".join(texts), message["tool_call_id"]), *pictures]
    told = [Item(message["role"], text.strip("\n")) for text in texts if not text.startswith(QWEN_ADDS)]
    return [*told, *pictures]


def _canonical(value: Any) -> str:
    """Arguments in one spelling: the two APIs carry them as an object and as JSON text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return value
    return json.dumps(value, sort_keys=True)
