"""Items of the Responses API that belong to tools which Codex does not have: calls that the host answers, and calls
that the provider ran and whose answers stand within them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harken.events import Event, ToolCall, ToolResult

from .jsonl import Record
from .openai import MCP, Fields, dump, image_of, text_of

_ASKED = {
    "computer_call": ("computer", ("action", "actions")),
    "shell_call": ("shell", ("action",)),
    "apply_patch_call": ("apply_patch", ("operation",)),
}
"""The tool that a call is of, and the fields of which one has what is asked."""


def tool_item_events(item: Record, fields: Fields) -> list[Event]:
    """The events of such an item; none for any other."""
    kind = text_of(item.get("type"))
    if api_id := text_of(item.get("id")):
        fields = {**fields, "api_id": api_id}
    if kind in _ASKED:
        name, keys = _ASKED[kind]
        given = next((item[key] for key in keys if item.get(key) is not None), None)
        return [ToolCall(id=_id(item), name=name, input=dump(given), **fields)]
    if (handler := _HANDLERS.get(kind)) is not None:
        return handler(item, fields)
    return []


def _id(item: Record) -> str:
    return text_of(item.get("call_id")) or text_of(item.get("id"))


def _screenshot(item: Record, fields: Fields) -> list[Event]:
    shown = item.get("output")
    url = text_of(shown.get("image_url")) if isinstance(shown, dict) else ""
    images = (image_of(url),) if url else ()
    said = "" if url else dump(shown).decode()
    return [ToolResult(id=_id(item), name="computer", output=said, images=images, **fields)]


def _local_shell_output(item: Record, fields: Fields) -> list[Event]:
    return [ToolResult(id=_id(item), name="local_shell", output=text_of(item.get("output")), **fields)]


def _shell_output(item: Record, fields: Fields) -> list[Event]:
    return [ToolResult(id=_id(item), name="shell", output=dump(item.get("output")).decode(), **fields)]


def _patch_output(item: Record, fields: Fields) -> list[Event]:
    failed = item.get("status") == "failed"
    said = text_of(item.get("output"))
    return [ToolResult(id=_id(item), name="apply_patch", output=said, is_error=failed, **fields)]


def _file_search(item: Record, fields: Fields) -> list[Event]:
    return _served(item, fields, "file_search", dump({"queries": item.get("queries")}), item.get("results"))


def _code(item: Record, fields: Fields) -> list[Event]:
    return _served(item, fields, "code_interpreter", dump({"code": item.get("code")}), item.get("outputs"))


def _mcp(item: Record, fields: Fields) -> list[Event]:
    name = f"{MCP}{text_of(item.get('server_label'))}__{text_of(item.get('name'))}"
    given = text_of(item.get("arguments")).encode(errors="replace")
    error = item.get("error")
    return _served(item, fields, name, given, item.get("output") if error is None else error, failed=error is not None)


def _served(item: Record, fields: Fields, name: str, given: bytes, answer: Any, *, failed: bool = False) -> list[Event]:
    """A call that the provider ran, and its answer where the item has it."""
    call: Event = ToolCall(id=_id(item), name=name, input=given, server_tool=True, **fields)
    if answer is None:
        return [call]
    words = answer if isinstance(answer, str) else dump(answer).decode()
    place = {**fields, "index": fields.get("index", 0) + 1}
    return [call, ToolResult(id=_id(item), name=name, output=words, is_error=failed, **place)]


_HANDLERS: dict[str, Callable[[Record, Fields], list[Event]]] = {
    "computer_call_output": _screenshot,
    "local_shell_call_output": _local_shell_output,
    "shell_call_output": _shell_output,
    "apply_patch_call_output": _patch_output,
    "file_search_call": _file_search,
    "code_interpreter_call": _code,
    "mcp_call": _mcp,
}
TOOL_ITEMS = frozenset({*_ASKED, *_HANDLERS})
"""The kinds of these items."""
