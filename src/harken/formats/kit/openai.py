"""OpenAI's items: their names, and one of them as events.

The same table serves Codex's `response_item` lines, the bare lines of its first versions, its replacement histories,
and the `input` and `output` of the Responses API itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harken.events import Event, Image, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.base import join_parts
from harken.text import text_of as text_of  # for whoever takes values from here

from .jsonl import Record, encode

CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "tool_search_call"})
"""Items that wait for an output with the same `call_id`."""
OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
SERVED = frozenset({"web_search_call", "image_generation_call"})
"""Calls the provider answers within its own response."""
OTHER_AGENTS, WHY_OTHERS = "records of other agents", "a context holds what one agent knew"
"""What writers of one agent's conversation leave out of several."""
SEALED = frozenset({"compaction", "compaction_summary", "context_compaction"})
"""A summary only the provider can read."""
ITEMS = CALLS | OUTPUTS | SERVED | SEALED | {"message", "reasoning", "agent_message", "ghost_snapshot"}

_NAMED = {
    "local_shell_call": "local_shell",
    "tool_search_call": "tool_search",
    "web_search_call": "web_search",
    "image_generation_call": "image_generation",
}
MCP = "mcp__"
"""How the name of an MCP server's tool begins: `mcp__SERVER__TOOL`."""
SCREEN = "event_msg"
"""How the `api_id` begins of what a file has only as the screen's copy: Codex itself would not send it again."""
Fields = dict[str, Any]
"""The envelope every event of the record gets."""


def parts_of(content: object, kind: str = "input_text") -> list[Record]:
    """The parts of a message's content; a bare string is one part, of that kind."""
    if isinstance(content, str):
        return [{"type": kind, "text": content}]
    if isinstance(content, list):
        return [part for part in content if isinstance(part, dict)]
    return []


def joined_text(content: object) -> str:
    """The text of a message's content: its parts on lines of their own."""
    return "\n".join(part["text"] for part in parts_of(content) if isinstance(part.get("text"), str))


def image_of(url: str) -> Image:
    """The picture a URL holds or names."""
    head, comma, body = url.partition(",")
    if comma and head[:5].lower() == "data:" and head.lower().endswith(";base64"):
        return Image(media_type=head[5:-7].partition(";")[0], data=body)
    return Image(url=url)


def url_of(image: Image) -> str:
    """The picture as a URL."""
    return f"data:{image.media_type or 'image/png'};base64,{image.data}" if image.data else image.url


class Speaker:
    """What the reader knows besides the item: whose words a user message is, and which model answers."""

    def __init__(self) -> None:
        self.model = ""

    def who(self, item: Record, text: str) -> tuple[str, str]:
        """`source` and `origin` of a user message."""
        return "user", ""


def item_events(item: Record, fields: Fields, speaker: Speaker) -> list[Event]:
    """The events of an item; none for one that nobody knows. Raises what a damaged item makes it raise."""
    handler = _HANDLERS.get(text_of(item.get("type")))
    if handler is None:
        return []
    if api_id := text_of(item.get("id")):
        fields = {**fields, "api_id": api_id}
    return handler(item, fields, speaker)


def is_openai(event: Thinking) -> bool:
    """Whether OpenAI has sealed the reasoning."""
    return event.signature.startswith("gAAAA") or (event.api_id.startswith("rs_") and bool(event.signature))


_ITEM_IDS = (
    "apc_", "ci_", "ctc_", "cu_", "fc_", "fs_", "ig_", "lsh_", "mcp_", "rs_", "sh_", "tsc_", "ws_",
)  # fmt: skip


def reply_id(event: Event) -> str:
    """The id that what a model said in one go has in common; items of the Responses API have their own alone."""
    return "" if event.api_id.startswith(_ITEM_IDS) else event.api_id


def dump(value: object) -> bytes:
    """A value as compact JSON text, nothing as nothing."""
    return b"" if value is None else encode(value)


def text_in(content: object) -> str:
    """The words of a message's content, its parts on lines of their own."""
    texts = (part.get("text", part.get("refusal")) for part in parts_of(content))
    return "\n".join(text for text in texts if isinstance(text, str))


def _said_and_shown(content: object) -> tuple[str, tuple[Image, ...]]:
    """The words of a message's content, and the pictures with their places among them."""
    return join_parts(part for record in parts_of(content) for part in _words_or_picture(record))


def _words_or_picture(part: Record) -> list[str | Image]:
    found: list[str | Image] = []
    if isinstance(text := part.get("text", part.get("refusal")), str):
        found.append(text)
    is_shown = part.get("type") in ("input_image", "image")
    url = (part.get("image_url") or part.get("file_id")) if is_shown else None
    if isinstance(url, (str, dict)):
        found.append(image_of(url["url"] if isinstance(url, dict) else url))
    if (media := _file_or_sound(part)) is not None:
        found.append(media)
    return found


def _file_or_sound(part: Record) -> Image | None:
    """A file or a sound that is a part of a message; one that the provider keeps is known by its id."""
    if part.get("type") == "input_audio":
        return sound_of(part.get("input_audio"))
    if part.get("type") == "input_file":
        given = (text_of(part.get(key)) for key in ("file_data", "file_url", "file_id"))
        found = image_of(next(filter(None, given), ""))
        return found if found.data or found.url else None
    return None


def sound_of(inner: object) -> Image | None:
    """A sound as a message has it."""
    if not isinstance(inner, dict) or not text_of(inner.get("data")):
        return None
    return Image(media_type=f"audio/{text_of(inner.get('format')) or 'wav'}", data=inner["data"])


def _message(item: Record, fields: Fields, speaker: Speaker) -> list[Event]:
    text, images = _said_and_shown(item.get("content"))
    role = item.get("role")
    if role == "assistant":
        return [Response(content=text, model=speaker.model, **fields)]
    if role in ("developer", "system"):
        return [System(subtype="instructions", message=text, metadata=dump({"role": role}), **fields)]
    source, origin = speaker.who(item, text)
    return [Prompt(content=text, source=source, origin=origin, images=images, **fields)]


def _reasoning(item: Record, fields: Fields, speaker: Speaker) -> list[Event]:
    words = text_in(item.get("summary")) or text_in(item.get("content"))
    return [Thinking(content=words, signature=text_of(item.get("encrypted_content")), **fields)]


def name_of(item: Record) -> str:
    """The name of the tool a call asks for."""
    kind = text_of(item.get("type"))
    if kind in _NAMED:
        return _NAMED[kind]
    function = item.get("function")
    name = text_of(item.get("name")) or (text_of(function.get("name")) if isinstance(function, dict) else "")
    # The tools of an MCP server are a group of their own; everywhere else the server stands in the name.
    group = text_of(item.get("namespace"))
    return f"{group.rstrip('_')}__{name}" if group.startswith(MCP) else name


def _function_call(item: Record, fields: Fields, speaker: Speaker) -> list[Event]:
    arguments = item.get("arguments")
    return [_call(item, arguments.encode(errors="replace") if isinstance(arguments, str) else dump(arguments), fields)]


def _custom_call(item: Record, fields: Fields, speaker: Speaker) -> list[Event]:
    return [_call(item, text_of(item.get("input")).encode(errors="replace"), fields)]


def _shell_call(item: Record, fields: Fields, speaker: Speaker) -> list[Event]:
    return [_call(item, dump(item.get("action")), fields)]


def _tool_search(item: Record, fields: Fields, speaker: Speaker) -> list[Event]:
    return [_call(item, dump(item.get("arguments")), fields, item.get("execution") == "server")]


def _web_search(item: Record, fields: Fields, speaker: Speaker) -> list[Event]:
    return [_call(item, dump(item.get("action")), fields, True)]


def _image_generation(item: Record, fields: Fields, speaker: Speaker) -> list[Event]:
    prompt = dump({"prompt": item.get("revised_prompt")})
    call = _call(item, prompt, fields, True)
    images = (Image(media_type="image/png", data=result),) if (result := text_of(item.get("result"))) else ()
    answer = {**fields, "index": fields.get("index", 0) + 1}
    return [call, ToolResult(id=call.id, name="image_generation", images=images, **answer)]


def _call(item: Record, arguments: bytes, fields: Fields, server: bool = False) -> ToolCall:
    call_id = text_of(item.get("call_id")) or text_of(item.get("id")) or fields["message_id"]
    return ToolCall(id=call_id, name=name_of(item), input=arguments, server_tool=server, **fields)


def _output(item: Record, fields: Fields, speaker: Speaker) -> list[Event]:
    output = item.get("output")
    failed = False
    if isinstance(output, dict):
        # A shape of the first versions: {"content": …, "success": …}.
        failed = output.get("success") is False
        output = output.get("content")
    text, images = _said_and_shown(output)
    return [
        ToolResult(
            id=text_of(item.get("call_id")),
            output=text,
            is_error=failed,
            name=text_of(item.get("name")),
            images=images,
            **fields,
        )
    ]


def _search_output(item: Record, fields: Fields, speaker: Speaker) -> list[Event]:
    found = dump(item.get("tools")).decode()
    return [ToolResult(id=text_of(item.get("call_id")), output=found, name="tool_search", **fields)]


def _agent_message(item: Record, fields: Fields, speaker: Speaker) -> list[Event]:
    return [Prompt(content=text_in(item.get("content")), source="injected", origin="agent", **fields)]


def _sealed(item: Record, fields: Fields, speaker: Speaker) -> list[Event]:
    return [System(subtype="compact_summary", metadata=dump(item), **fields)]


_HANDLERS: dict[str, Callable[[Record, Fields, Speaker], list[Event]]] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _function_call,
    "custom_tool_call": _custom_call,
    "local_shell_call": _shell_call,
    "tool_search_call": _tool_search,
    "web_search_call": _web_search,
    "image_generation_call": _image_generation,
    "function_call_output": _output,
    "custom_tool_call_output": _output,
    "tool_search_output": _search_output,
    "agent_message": _agent_message,
    "compaction": _sealed,
    "compaction_summary": _sealed,
    "context_compaction": _sealed,
}
