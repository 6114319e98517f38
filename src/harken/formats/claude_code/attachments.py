"""Attachments: what the harness puts before the model besides the conversation, as text for the model.

Newer builds write down what they sent (`rendered`), and then that stands (`render` in `read.py`). For older records the
data is told in our own words where it says something a model would act on; what was only bookkeeping, or what Claude
Code leaves out too, gives nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harken.formats.kit.anthropic import Block, blocks_of
from harken.formats.kit.jsonl import Record, encode

MessageBlocks = list[list[Block]]
"""A list of messages, each a list of blocks."""


def tell(data: Record) -> MessageBlocks:
    """What the model is told of an attachment of one of these kinds, in our own words."""
    return [[remind(told)] if isinstance(told, str) else told for told in RENDERERS[data["type"]](data) if told]


def remind(text: str) -> Block:
    """A text block in the wrapping the harness uses for its own words."""
    return {"type": "text", "text": f"<system-reminder>\n{text}\n</system-reminder>"}


def _text(data: Record, key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""


def _list(data: Record, key: str) -> list[Any]:
    value = data.get(key)
    return value if isinstance(value, list) else []


def _plain(key: str) -> Callable[[Record], list[Any]]:
    return lambda data: [_text(data, key)]


def _labelled(label: str, key: str) -> Callable[[Record], list[Any]]:
    return lambda data: [f"{label}: {_text(data, key)}"]


def _dump(label: str) -> Callable[[Record], list[Any]]:
    """All the data there is, for kinds whose prose is the program's own."""

    def render_one(data: Record) -> list[Any]:
        rest = {key: value for key, value in data.items() if key != "type"}
        return [f"{label}: {encode(rest).decode()}" if rest else label]

    return render_one


def _queued(data: Record) -> list[Any]:
    """A prompt that was typed while the agent was at work, or a notice that came in then."""
    prompt = data.get("prompt")
    parts = blocks_of(prompt)
    text = "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    who = "from the user" if data.get("commandMode") in (None, "prompt") else "not from the user"
    told: list[Block] = [remind(f"Came in while you were working, {who}:\n{text}")]
    return [told + [part for part in parts if part.get("type") == "image"]]


def _hook_context(data: Record) -> list[Any]:
    content = data.get("content")
    lines = [line for line in content if isinstance(line, str)] if isinstance(content, list) else []
    return [f"{_text(data, 'hookName')} hook additional context: " + "\n".join(lines)] if lines else []


def _hook_success(data: Record) -> list[Any]:
    # Only these two events may speak to the model; the others only report that they ran.
    if data.get("hookEvent") not in ("SessionStart", "UserPromptSubmit") or not _text(data, "content"):
        return []
    return [f"{_text(data, 'hookName')} hook success: {_text(data, 'content')}"]


def _hook_block(data: Record) -> list[Any]:
    inner = data.get("blockingError")
    problem = inner if isinstance(inner, dict) else {}
    what = f"{_text(problem, 'command')}: {_text(problem, 'blockingError')}"
    return [f"{_text(data, 'hookName')} hook blocking error from command {what}"]


def _hook_response(data: Record) -> list[Any]:
    response = data.get("response")
    if not isinstance(response, dict):
        return []
    specific = response.get("hookSpecificOutput")
    return [
        _text(response, "systemMessage"),
        _text(specific, "additionalContext") if isinstance(specific, dict) else "",
    ]


def _memory(data: Record) -> list[Any]:
    content = data.get("content")
    text = _text(content, "content") if isinstance(content, dict) else _text(data, "content")
    return [f"Contents of {_text(data, 'path')}:\n\n{text}"]


def _file(data: Record) -> list[Any]:
    """Told as a call and its result, since that is how the model knows files."""
    content = data.get("content")
    name = _text(data, "filename")
    if not isinstance(content, dict):
        return []
    inner = content.get("file")
    read = inner if isinstance(inner, dict) else {}
    asked = remind(f"The file {name} was read for you")
    if content.get("type") == "image":
        source = {"type": "base64", "media_type": _text(read, "type") or "image/png", "data": _text(read, "base64")}
        return [[asked], [{"type": "image", "source": source}]]
    first = read.get("startLine")
    start = first if isinstance(first, int) else 1
    numbered = "\n".join(f"{start + n}\t{line}" for n, line in enumerate(_text(read, "content").split("\n")))
    return [[asked], [remind(f"What it holds:\n{numbered}")]]


def _directory(data: Record) -> list[Any]:
    where = _text(data, "path")
    return [[remind(f"The folder {where} was listed for you")], [remind(f"What it holds:\n{_text(data, 'content')}")]]


def _edited(data: Record) -> list[Any]:
    return [f"The file {_text(data, 'filename')} has changed since you read it:\n{_text(data, 'snippet')}"]


def _skills(data: Record) -> list[Any]:
    skills = [skill for skill in _list(data, "skills") if isinstance(skill, dict)]
    return ["Skills used before:\n" + "\n\n".join(f"{_text(s, 'name')}\n{_text(s, 'content')}" for s in skills)]


def _listing(label: str, *keys: str) -> Callable[[Record], list[Any]]:
    """A list that may be empty, and then says nothing."""

    def render_one(data: Record) -> list[Any]:
        found = [item for key in keys for item in _list(data, key) if isinstance(item, str)]
        return [f"{label}:\n" + "\n".join(found)] if found else []

    return render_one


def _plan_file(data: Record) -> list[Any]:
    return [f"There is a plan in {_text(data, 'planFilePath')}:\n\n{_text(data, 'planContent')}"]


def _selection(data: Record) -> list[Any]:
    return [f"Selected in the editor, in {_text(data, 'filename')}:\n{_text(data, 'content')}"]


RENDERERS: dict[str, Callable[[Record], list[Any]]] = {
    "queued_command": _queued,
    "hook_additional_context": _hook_context,
    "hook_success": _hook_success,
    "hook_blocking_error": _hook_block,
    "hook_stopped_continuation": lambda d: [f"{_text(d, 'hookName')} hook stopped continuation: {_text(d, 'message')}"],
    "async_hook_response": _hook_response,
    "silent_turn_reminder": _plain("text"),
    "total_tokens_reminder": _plain("text"),
    "read_truncation_notice": _plain("banner"),
    "critical_system_reminder": _plain("content"),
    "nested_memory": _memory,
    "file": _file,
    "directory": _directory,
    "edited_text_file": _edited,
    "compact_file_reference": _labelled("Read before the compaction, not repeated here", "filename"),
    "invoked_skills": _skills,
    "skill_listing": _labelled("Skills there are", "content"),
    "deferred_tools_delta": _listing("Tools that can be loaded", "addedLines"),
    "mcp_instructions_delta": _listing("Instructions from MCP servers", "addedBlocks"),
    "agent_listing_delta": _listing("Agents there are", "addedLines"),
    "date_change": _labelled("The date is now", "newDate"),
    "selected_lines_in_ide": _selection,
    "opened_file_in_ide": _labelled("Opened in the editor", "filename"),
    "plan_file_reference": _plan_file,
    "output_style": _labelled("Output style", "style"),
    "task_reminder": _dump("Open tasks"),
    "task_status": _dump("A background task reports"),
    "budget_usd": _dump("Budget"),
    "diagnostics": _dump("Diagnostics"),
    "plan_mode": _dump("Plan mode is on"),
    "plan_mode_exit": _dump("Plan mode is off"),
    "auto_mode": _dump("Auto mode is on"),
    "auto_mode_exit": _dump("Auto mode is off"),
    "ultra_effort_enter": _dump("Highest effort is on"),
    "ultra_effort_exit": _dump("Highest effort is off"),
}
"""Attachment types that speak to the model. The others (todo_reminder, command_permissions, already_read_file,
hook_non_blocking_error, hook_system_message, …) do not."""
