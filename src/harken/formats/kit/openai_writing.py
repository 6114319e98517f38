"""Events as Responses items: how a conversation of any origin is told to an OpenAI model.

Names and ids of tools go through as they are. An event that was read from such an item becomes that item again; of a
foreign conversation, what the API has no place for is counted as a loss.

Codex decodes every picture before it sends it; one that is damaged (a redacted transcript has many) it replaces by a
sentence, a large one it scales.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from harken.events import Event, Image, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.base import clean, of_one_agent, split_parts
from harken.formats.base import Loss

from .anthropic import PDF
from .jsonl import Record, parse
from .openai import MCP, OTHER_AGENTS, SCREEN, SEALED, WHY_OTHERS, dump, is_openai, text_of, url_of

ABORTED = "aborted"
"""The output of a call that was never answered."""


class SaidItem(NamedTuple):
    """An item and when it was said."""

    time: int | None
    item: Record
    shown: str = ""
    """What of it a person sees who looks at the conversation."""
    origin: str = ""
    """Of a message that a program put in the user's place: what kind of thing it is."""


_WHY = {
    "thinking": "only the provider that made it can read it",
    "picture": "only a picture that is whole and in the message itself is sent, not an address",
    "document": "a conversation of Codex holds none, and the API takes only one that is there or has a public address",
    "tool result without its call": "an output that answers nothing is dropped",
    "repeated tool result": "a call has one output",
    "error mark": "a failed call is told by its text alone",
    "result of a tool call": f"none was there; `{ABORTED}` stands in its place, as Codex itself writes it",
    "provider's own tool call": "its answer is not in the conversation",
    "message that only the screen has": "Codex itself would not send it again",
    "unreadable record": "nobody could read it",
    OTHER_AGENTS: WHY_OTHERS,
}


def to_items(events: Sequence[Event], *, documents: bool = False) -> tuple[list[SaidItem], tuple[Loss, ...]]:
    """The items of the conversation, each with its time, and what could not be said. With `documents` PDF files go
    along: the API takes them, and Codex does not."""
    own, others = of_one_agent(events)
    composer = _Composer(own, documents)
    for event in own:
        composer.take(event)
    composer.lose(OTHER_AGENTS, others)
    losses = (Loss(what=what, count=count, why=_WHY[what]) for what, count in composer.lost.items())
    return composer.items, tuple(losses)


def _is_native(event: Event) -> bool:
    """Whether the event is the first of a Codex file."""
    if not isinstance(event, System) or event.subtype != "init":
        return False
    said = parse(event.metadata)
    return said is not None and "originator" in said and "cli_version" in said


def _is_shown(event: Event) -> bool:
    """Whether a person sees the message: the model's words, and what was said in the user's place by whoever is the
    user, for a sub-agent the agent that started it. What a program put there is for the model alone."""
    if isinstance(event, Prompt):
        return event.source != "injected" or event.origin == "agent"
    return isinstance(event, Response)


class _Composer:
    def __init__(self, events: Sequence[Event], documents: bool) -> None:
        self._documents = documents
        self.items: list[SaidItem] = []
        self.lost: dict[str, int] = {}
        self._native = any(map(_is_native, events))
        self._results = {event.id: event for event in reversed(events) if isinstance(event, ToolResult)}
        self._calls: dict[str, str] = {}
        """The calls so far, and what kind of item answers each."""
        self._unanswered: Counter[str] = Counter()
        """How often each is still to be answered; a file that repeats a call repeats its result."""

    def take(self, event: Event) -> None:
        if self._native and event.api_id.startswith(SCREEN):
            self.lose("message that only the screen has")
            return
        match event:
            case Prompt():
                self._message(event, "user", event.content, event.images)
            case Response():
                self._message(event, "assistant", event.content)
            case Thinking():
                self._thinking(event)
            case System():
                self._system(event)
            case ToolCall():
                self._call(event)
            case ToolResult():
                self._result(event)
            case Output() if event.why:
                self.lose("unreadable record")

    def lose(self, what: str, count: int = 1) -> None:
        """Something could not be said."""
        if count:
            self.lost[what] = self.lost.get(what, 0) + count

    def _add(self, event: Event, item: Record, shown: str = "") -> None:
        origin = event.origin or "notice" if isinstance(event, Prompt) and not _is_shown(event) else ""
        self.items.append(SaidItem(event.time, item, shown, origin))

    def _message(self, event: Event, role: str, text: str, images: tuple[Image, ...] = ()) -> None:
        kind = "output_text" if role == "assistant" else "input_text"
        if parts := self._parts(kind, text, images):
            item = {"type": "message", "role": role, "content": parts}
            self._add(event, item, shown=clean(text) if _is_shown(event) else "")

    def _parts(self, kind: str, text: str, images: tuple[Image, ...]) -> list[Record]:
        parts: list[Record] = []
        for part in split_parts(text, images):
            if isinstance(part, str):
                parts.append({"type": kind, "text": clean(part)})
            elif part.media_type == PDF:
                parts.append(self._document(part))
            else:
                parts.append(picture_part(url_of(part)))
                self.lose("picture", parts[-1]["type"] != "input_image")
        return parts

    def _document(self, given: Image) -> Record:
        if self._documents and given.data:
            return {"type": "input_file", "filename": "document.pdf", "file_data": url_of(given)}
        if self._documents and given.is_public:
            return {"type": "input_file", "file_url": given.url}
        self.lose("document")
        return {"type": "input_text", "text": "document omitted because it could not be processed"}

    def _thinking(self, event: Thinking) -> None:
        if not (self._native or event.api_id.startswith("rs_") or is_openai(event)):
            self.lose("thinking")
            return
        summary = [{"type": "summary_text", "text": event.content}] if event.content else []
        sealed = event.signature or None
        self._add(event, {"type": "reasoning", "summary": summary, "content": None, "encrypted_content": sealed})

    def _system(self, event: System) -> None:
        if event.subtype == "instructions":
            self._message(event, "developer", event.message)
        elif event.subtype == "compact_summary":
            item = parse(event.metadata)
            if item is not None and text_of(item.get("type")) in SEALED:
                self._add(event, item)

    def _call(self, event: ToolCall) -> None:
        if event.server_tool and event.id not in self._results:
            self._served(event)
            return
        item = _search(event) or _shell(event) or _custom(event) or _function(event)
        self._calls[event.id] = _ANSWERS[item["type"]]
        self._unanswered[event.id] += 1
        self._add(event, item)
        if event.id not in self._results:
            self.lose("result of a tool call")
            answer: Record = {"tools": []} if item["type"] == "tool_search_call" else {"output": ABORTED}
            self._add(event, {"type": self._calls[event.id], "call_id": event.id, **answer})

    def _served(self, event: ToolCall) -> None:
        """A call the provider ran within its response; only searching can be told."""
        action = parse(event.input)
        if event.name == "web_search":
            said = {"action": {"type": "search", **action}} if action else {}
            self._add(event, {"type": "web_search_call", "status": "completed", **said})
        elif event.name == "tool_search" and action is not None:
            self._add(event, {"type": "tool_search_call", **_SEARCHED, "execution": "server", "arguments": action})
        else:
            self.lose("provider's own tool call")

    def _result(self, event: ToolResult) -> None:
        kind = self._calls.get(event.id)
        if kind is None or not self._unanswered[event.id]:
            self.lose("repeated tool result" if kind else "tool result without its call")
            return
        self._unanswered[event.id] -= 1
        self.lose("error mark", event.is_error)
        if kind == "tool_search_output":
            self._add(event, {"type": kind, "call_id": event.id, **_SEARCHED, "tools": _found(event)})
            return
        output: Any = clean(event.output)
        if event.images:
            output = self._parts("input_text", event.output, event.images)
        self._add(event, {"type": kind, "call_id": event.id, "output": output})


_SEARCHED = {"status": "completed", "execution": "client"}
_ANSWERS = {
    "function_call": "function_call_output",
    "local_shell_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "tool_search_call": "tool_search_output",
}


def _found(event: ToolResult) -> list[Any]:
    said = parse(b'{"tools":%s}' % event.output.encode(errors="replace"))
    tools = said.get("tools") if said else None
    return tools if isinstance(tools, list) else [{"text": event.output}]


def _search(event: ToolCall) -> Record | None:
    arguments = parse(event.input) if event.name == "tool_search" else None
    if arguments is None:
        return None
    return {"type": "tool_search_call", "call_id": event.id, **_SEARCHED, "arguments": arguments}


def _shell(event: ToolCall) -> Record | None:
    action = parse(event.input) if event.name == "local_shell" else None
    if action is None or action.get("type") != "exec":
        return None
    return {"type": "local_shell_call", "call_id": event.id, "status": "completed", "action": action}


def _custom(event: ToolCall) -> Record | None:
    """Free text instead of arguments is how the tools are called that take a patch or a program."""
    if not event.api_id.startswith("ctc_") and (
        event.api_id.startswith("fc_") or not event.input or parse(event.input) is not None
    ):
        return None
    text = event.input.decode(errors="replace")
    return {"type": "custom_tool_call", "status": "completed", "call_id": event.id, "name": event.name, "input": text}


def _function(event: ToolCall) -> Record:
    arguments = event.input.decode(errors="replace") or dump({}).decode()
    named: Record = {"name": event.name}
    if event.name.startswith(MCP) and len(parts := event.name.split("__", 2)) == 3 and all(parts):
        named = {"name": parts[2], "namespace": MCP + parts[1]}
    return {"type": "function_call", **named, "arguments": arguments, "call_id": event.id}


def why_not_sent(url: str) -> str:
    """Why Codex would leave the picture out; empty where it would not."""
    if url[:8].lower().startswith(("http://", "https://")):
        return "remote image URLs are not supported"
    if url[:5].lower() != "data:":
        return "" if ":" in url else "it could not be processed"  # the id of a file that a provider keeps
    from .pictures import is_picture  # most conversations have none

    head, _, body = url.partition(",")
    return "" if head.lower().endswith(";base64") and is_picture(body) else "it could not be processed"


def picture_part(url: str) -> dict[str, str]:
    """The picture as a part of a message, or what Codex would put in its place."""
    if why := why_not_sent(url):
        return {"type": "input_text", "text": f"image content omitted because {why}"}
    return {"type": "input_image", "image_url": url}
