"""Gemini contents: what a user, a model and its functions say to each other, as events.

Contents are read as the wire spells them (`functionCall`) and as Google's SDK does (`function_call`). What a part says
besides the conversation (the signature of a thought on a call, marks for media) is an `Output` behind its event, whose
one key is `FIELDS`; a writer puts it back where the part is written again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from harken.events import Event, Image, Metric, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.base import clean, figure, join_parts

from .gemini_joining import camel, is_camel, joined
from .jsonl import Record, encode

FIELDS = "part_fields"
"""The key of an `Output` that holds what else a part says."""
CODE = "code_execution"
"""The name of the provider's own tool that runs what the model wrote."""
MODEL = "model"


def inner(record: Record, key: str) -> Record:
    """The object under a key; empty where there is none."""
    found = record.get(key)
    return camel(found) if isinstance(found, dict) else {}


def text(record: Record, key: str) -> str:
    """The text under a key; empty where there is none."""
    value = record.get(key)
    return clean(value) if isinstance(value, str) else ""


# -- contents as a conversation has them -------------------------------------------------------------------------------


def contents_of(given: Any) -> list[Record]:
    """Contents as a list of objects with a role and parts: neighbours that the model said are one, as they were when
    they came (a chat keeps each chunk of a stream), and so are neighbouring words in it."""
    found: list[Record] = []
    several: list[Any] = []
    """The parts of the content that was found last, where it is made of several."""
    for one in given if isinstance(given, list) else [given]:
        content = _content(one)
        if found and content["role"] == MODEL == found[-1]["role"]:
            several = several or list(found[-1]["parts"])
            several += content["parts"]
            found[-1] = {**found[-1], **content, "parts": several}
        else:
            found.append(content)
            several = []
    return [_whole(one) if one["role"] == MODEL else one for one in found]


def _whole(content: Record) -> Record:
    parts = content["parts"]
    if len(parts) == 1 and isinstance(parts[0], dict) and parts[0].get("text"):
        return content
    return {**content, "parts": joined(parts)}


def _content(given: Any) -> Record:
    """A content, or what the SDK takes for one: a text, a part."""
    if _is_content(given):
        return given  # type: ignore[no-any-return]
    record = camel(given) if isinstance(given, dict) else {"parts": given}
    if "parts" not in record and "role" not in record:
        record = {"parts": [record]}
    parts = record.get("parts")
    parts = parts if isinstance(parts, list) else [] if parts is None else [parts]
    role = record.get("role")
    role = clean(role) if isinstance(role, str) and role else "user"
    return {**record, "role": role, "parts": [_part(part) for part in parts]}


def _is_content(given: Any) -> bool:
    """Whether it is a content as the wire has it, as nearly all are."""
    if not isinstance(given, dict) or len(given) != 2:
        return False
    role, parts = given.get("role"), given.get("parts")
    if not isinstance(role, str) or not role.isascii() or not role or not isinstance(parts, list):
        return False
    for part in parts:  # a loop, which takes half the time: histories are long, and sent again and again
        if not isinstance(part, dict) or not ((len(part) == 1 and part.get("text")) or is_camel(part)):
            return False
    return True


def _part(given: Any) -> Any:
    if isinstance(given, str):
        return {"text": given}
    return camel(given) if isinstance(given, dict) else given


class CallIds:
    """Names calls and their answers in the order of a conversation: a provider may leave ids out, and then an answer is
    that of the oldest call of its function that has none. The same conversation has the same names each time."""

    def __init__(self) -> None:
        self._count = 0
        self._waiting: dict[tuple[str, str], list[str]] = {}

    def named(self, content: Record) -> Record:
        """The content with the ids that it lacks."""
        parts = content["parts"]
        for part in parts:
            if isinstance(part, dict) and not _CALLS.isdisjoint(part):
                return {**content, "parts": [self._part(part) for part in parts]}
        return content

    def _part(self, part: Any) -> Any:
        for kind, (answers, name_key) in _JOINED.items():
            if isinstance(part, dict) and isinstance(one := part.get(kind), dict):
                one = camel(one)
                key = (answers or kind, text(one, name_key) if name_key else "")
                call_id = self._answer(key, text(one, "id")) if answers else self._call(key, text(one, "id"))
                return {**part, kind: {**one, "id": call_id} if call_id else one}
        return part

    def _call(self, key: tuple[str, str], given: str) -> str:
        self._count += 1
        call_id = given or f"call_{self._count}"
        self._waiting.setdefault(key, []).append(call_id)
        return call_id

    def _answer(self, key: tuple[str, str], given: str) -> str:
        waiting = self._waiting.get(key, [])
        call_id = given or (waiting[0] if waiting else "")
        if call_id in waiting:
            waiting.remove(call_id)
        return call_id


_JOINED = {
    "functionCall": ("", "name"),
    "functionResponse": ("functionCall", "name"),
    "executableCode": ("", ""),
    "codeExecutionResult": ("executableCode", ""),
    "toolCall": ("", "toolType"),
    "toolResponse": ("toolCall", "toolType"),
}
"""Calls and answers: what an answer answers, and by which field they know each other besides the id."""
_CALLS = frozenset(_JOINED)


# -- one content as events ---------------------------------------------------------------------------------------------


def content_events(content: Any, model: str = "") -> Iterator[Event]:
    """What a content says, in order; what nobody can read is an `Output` with the reason."""
    found = _content(content)
    if found["role"] == MODEL:
        for part in found["parts"]:
            yield from part_events(part, model)
    elif found["role"] == "system":
        yield System(subtype="instructions", message=instructions_of(found))
    else:
        yield from _heard(found["parts"])


def instructions_of(given: Any) -> str:
    """The words of a system instruction."""
    parts = _content(given)["parts"] if given is not None else []
    return "\n".join(text(part, "text") for part in parts if isinstance(part, dict) and "text" in part)


def _heard(parts: list[Any]) -> Iterator[Event]:
    """What stands in the user's place: words and media between two answers of tools are one prompt."""
    waiting: list[str | Image] = []
    besides: list[Output] = []
    for part in parts:
        said = _shown(part)
        if said is not None:
            waiting.append(said)
            besides += _besides(part, _media_kind(part) or "text")
            continue
        yield from _prompt(waiting, besides)
        waiting, besides = [], []
        yield from part_events(part, "")
    yield from _prompt(waiting, besides)


def _prompt(said: list[str | Image], besides: list[Output]) -> Iterator[Event]:
    if said:
        content, images = join_parts(said)
        yield Prompt(content=content, images=images)
    yield from besides


def _shown(part: Any) -> str | Image | None:
    if not isinstance(part, dict):
        return None
    if kind := _media_kind(part):
        return media_of(part[kind])
    return clean(part["text"]) if isinstance(part.get("text"), str) else None


def _media_kind(part: Record) -> str:
    return next((kind for kind in ("inlineData", "fileData") if isinstance(part.get(kind), dict)), "")


def media_of(given: Record) -> Image:
    """Media that stand in a part, or that the provider keeps. The SDK writes base64 for addresses."""
    blob = camel(given)
    data = text(blob, "data").replace("-", "+").replace("_", "/")
    data += "=" * (-len(data) % 4)
    return Image(media_type=text(blob, "mimeType"), data=data, url=text(blob, "fileUri"))


def part_events(part: Any, model: str) -> Iterator[Event]:
    """What one part says, and behind it what it says besides."""
    if not isinstance(part, dict):
        yield Output(raw=encode(part), why="not a part of a content")
        return
    is_words = _CALLS.isdisjoint(part)
    kind = "" if is_words else next((kind for kind in _HANDLERS if isinstance(part.get(kind), dict)), "")
    if not kind and isinstance(part.get("text"), str):
        kind = "text"
        yield from _words(part, model)
    elif not kind:
        known = ", ".join(clean(str(key))[:40] for key in list(part)[:3])
        why = "media that the model made" if _media_kind(part) else f"unknown part of a content: {known}"
        yield Output(raw=encode(part), why=why)
        return
    else:
        yield _HANDLERS[kind](camel(part[kind]))
    yield from _besides(part, kind)


def _words(part: Record, model: str) -> Iterator[Event]:
    words = text(part, "text")
    if part.get("thought") is True:
        yield Thinking(
            content=words
        )  # Google's seal stands behind it: no writer of a signature may take it for its own
    elif words or "thoughtSignature" not in part:
        yield Response(content=words, model=model)


def _call(call: Record) -> Event:
    return ToolCall(id=text(call, "id"), name=text(call, "name"), input=encode(call.get("args", {})))


def _served(call: Record) -> Event:
    name = text(call, "toolType").lower()
    return ToolCall(id=text(call, "id"), name=name, input=encode(call.get("args", {})), server_tool=True)


def _code(code: Record) -> Event:
    asked = {key: code[key] for key in ("language", "code") if key in code}
    return ToolCall(id=text(code, "id"), name=CODE, input=encode(asked), server_tool=True)


def _code_result(result: Record) -> Event:
    failed = text(result, "outcome") not in ("", "OUTCOME_OK", "OUTCOME_UNSPECIFIED")
    return ToolResult(id=text(result, "id"), name=CODE, output=text(result, "output"), is_error=failed)


def _result(result: Record) -> Event:
    answer = result.get("response", {})
    parts = result.get("parts")
    found = [_part(one) for one in parts] if isinstance(parts, list) else []
    return ToolResult(
        id=text(result, "id"),
        name=text(result, "name") or text(result, "toolType").lower(),
        output=clean(answer) if isinstance(answer, str) else encode(answer).decode(),
        is_error=isinstance(answer, dict) and answer.keys() == {"error"},
        images=tuple(said for one in found if isinstance(said := _shown(one), Image)),
    )


_HANDLERS: dict[str, Callable[[Record], Event]] = {
    "functionCall": _call,
    "functionResponse": _result,
    "executableCode": _code,
    "codeExecutionResult": _code_result,
    "toolCall": _served,
    "toolResponse": _result,
}
_SAID: dict[str, frozenset[str]] = {
    "text": frozenset(),
    "functionCall": frozenset({"id", "name", "args"}),
    "functionResponse": frozenset({"id", "name", "response", "parts"}),
    "executableCode": frozenset({"id", "language", "code"}),
    "codeExecutionResult": frozenset({"id", "output"}),
    "toolCall": frozenset({"id", "toolType", "args"}),
    "toolResponse": frozenset({"id", "toolType", "response"}),
    "inlineData": frozenset({"mimeType", "data"}),
    "fileData": frozenset({"mimeType", "fileUri"}),
}
"""What of each kind of part its event says."""


def _besides(part: Record, kind: str) -> list[Output]:
    if len(part) == 1 and kind == "text":
        return []
    more = {key: value for key, value in part.items() if key not in (kind, "thought")}
    if unsaid := {key: value for key, value in inner(part, kind).items() if key not in _SAID[kind]}:
        more[kind] = unsaid
    return [Output(raw=encode({FIELDS: more}))] if more else []


# -- what it used ------------------------------------------------------------------------------------------------------


def usage_of(given: Any, **about: Any) -> Metric | None:
    """What a request used, from `usageMetadata` or from the `usage` of an interaction; None where nobody told.

    What came from the cache is part of the prompt. What was thought is no part of what was said, unless the total tells
    that it is; what tools of the provider put before the model is no part of the prompt."""
    if not isinstance(given, dict):
        return None
    usage = camel(given)
    counts = list(map(figure, map(usage.get, _COUNTS)))
    if None in counts:
        others = map(figure, map(usage.get, _OTHER_NAMES))
        counts = [other if count is None else count for count, other in zip(counts, others, strict=True)]
    return metric_of(counts, served=_served_as(usage), **about)


def metric_of(counts: Sequence[int | None], **about: Any) -> Metric | None:
    """The same of the counts themselves, in the order of `_COUNTS`."""
    prompt, cached, made, thought, tools, total = counts
    if prompt is None and made is None:
        return None
    inclusive = thought is not None and total is not None and (prompt or 0) + (made or 0) + (tools or 0) == total
    return Metric(
        input_tokens=None if prompt is None else max(0, prompt - (cached or 0)) + (tools or 0),
        cache_read_tokens=cached,
        output_tokens=_sum(made, None if inclusive else thought),
        reasoning_tokens=thought,
        **about,
    )


_COUNTS = (
    "promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount", "thoughtsTokenCount",
    "toolUsePromptTokenCount", "totalTokenCount",
)  # fmt: skip
_OTHER_NAMES = (
    "totalInputTokens", "totalCachedTokens", "totalOutputTokens", "totalThoughtTokens", "totalToolUseTokens",
    "totalTokens",
)  # fmt: skip
"""The same in an interaction."""


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one + (other or 0)


def _served_as(usage: Record) -> str:
    """How it was served, where that is not the usual way."""
    if "trafficType" not in usage:
        return ""
    said = text(usage, "trafficType").lower().removeprefix("on_demand").removeprefix("_")
    return "" if said == "traffic_type_unspecified" else said
