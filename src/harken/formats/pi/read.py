"""A session as events: one handler for each kind of entry and role, and nothing is dropped.

A record that says several things gives several events under one `message_id` (the entry's id, else `@<byte offset>`),
told apart by `index`. No record needs another to be understood. What the program puts into words for the model (a
summary, a command that a person ran) is a prompt in just those words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec.structs import force_setattr

from harken.events import Error, Event, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.base import clean
from harken.formats.kit.jsonl import Record, encode, take_apart

from .context import standing
from .records import (
    ASSISTANT,
    BRANCH_SUMMARY,
    COMPACTION,
    CUSTOM_MESSAGE,
    EDIT,
    EXTENSION,
    MESSAGE,
    RESET,
    RESULT,
    SESSION,
    SHELL,
    SPOKEN,
    SUMMARIES,
    SYSTEM,
    USAGE,
    USER,
    PiLine,
    blocks_of,
    id_of,
    is_mirror,
    is_sent,
    is_spawned,
    iter_lines,
    kind_of,
    message_of,
    said_and_shown,
    text_of,
    time_of,
    unread_in,
    why_unknown,
    words_of,
)
from .usage import metric_of

FRAMES = {
    "compact_summary": (
        "The conversation history before this point was compacted into the following summary:\n\n<summary>\n",
        "\n</summary>",
    ),
    "branch_summary": (
        "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n",
        "</summary>",
    ),
}
"""The words in which the model hears a summary."""
SHELL_ORIGIN = "bash_output"
EXTENSION_ORIGIN = "extension"
_LONG = 80
"""Characters of the name that an extension gives its messages."""


def iter_read(data: bytes) -> Iterator[Event]:
    """Every event of the file, in its order."""
    for line in iter_lines(data):
        if line.record is not None:
            yield from events_of(line.record, line.start, data[line.start : line.end])
        elif not line.blank:
            yield from _broken(data, line)


def _broken(data: bytes, line: PiLine) -> Iterator[Event]:
    """What can be recovered from a line that is no record, and what of it is none."""
    objects, rest = take_apart(data, line.start, line.end)
    for record, start, end in objects:
        yield from events_of(record, start, data[start:end])
    if rest is not None:
        yield Output(message_id=f"@{rest.start}", raw=rest.raw, why=rest.why)


def read_conversation(data: bytes) -> Iterator[Event]:
    """What the model hears, in the order in which it does: the summary of a compaction comes before what was kept of
    the conversation. Left out is what the program does not send: an answer that broke off, an entry that was edited
    away, instructions from before a compaction. What is no conversation stands first."""
    lines = list(iter_lines(data))
    found = standing(lines)
    edits = _edits(lines, found.heard)
    for number in (*([found.header] if found.header is not None else []), *found.settings):
        yield from _events_at(data, lines[number])
    kept = found.path.index(found.boundary) if found.boundary is not None else 0
    before = set(found.path[:kept])
    for number in found.heard:
        record = lines[number].record
        if record is not None and _is_heard(record, is_kept=number in before):
            yield from _events_at(data, lines[number], edits)


def _events_at(data: bytes, line: PiLine, edits: Mapping[str, object] | None = None) -> list[Event]:
    record = line.record or {}
    if edits and (name := id_of(record)) in edits:
        if (edited := _edited(record, edits[name])) is None:
            return []
        record = edited
    return events_of(record, line.start, data[line.start : line.end])


def _is_heard(record: Record, *, is_kept: bool) -> bool:
    """Whether an entry on the way is sent to the model, or is none that could be; `is_kept` are those that outlived a
    compaction, whose own record says what the instructions are and what came before."""
    if record.get("type") == COMPACTION:
        return not is_kept
    message = message_of(record)
    if message is None or record.get("type") != MESSAGE:
        return True
    if message.get("role") == ASSISTANT:
        return is_sent(message)
    return not (is_kept and message.get("role") == SYSTEM)


def _edits(lines: list[PiLine], numbers: list[int]) -> dict[str, object]:
    """What entries were replaced by, the last edit of each."""
    edits: dict[str, object] = {}
    for number in numbers:
        record = lines[number].record or {}
        if record.get("type") == EDIT and isinstance(target := record.get("targetId"), str):
            edits[target] = record.get("replacement")
    return edits


def _edited(record: Record, replacement: object) -> Record | None:
    """An entry as it was edited; None where it was edited away."""
    if replacement is None:
        return None
    if not isinstance(replacement, dict) or "content" not in replacement:
        return record
    content = {"content": replacement["content"]}
    if record.get("type") == CUSTOM_MESSAGE:
        return record | content
    message = message_of(record)
    editable = message is not None and message.get("role") in (USER, ASSISTANT, RESULT, *EXTENSION)
    return record | {"message": {**message, **content}} if message is not None and editable else record


# -- one record --------------------------------------------------------------------------------------------------------


def events_of(record: Record, place: int, line: bytes) -> list[Event]:
    """The events of one record, at least one."""
    raw = line.rstrip(b"\r\n")
    kind = kind_of(record)
    try:
        handler = _ENTRIES.get(kind)
        made = handler(record) if handler is not None else []
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as problem:
        made = [Output(raw=raw, why=f"damaged {kind[:_LONG]}: {type(problem).__name__}")]
    made = made or [Output(raw=raw, why=why_unknown(record))]
    name, time = clean(id_of(record)) or f"@{place}", time_of(record)
    for index, event in enumerate(made):  # nobody has them yet: to make them anew would take three times as long
        force_setattr(event, "message_id", name)
        force_setattr(event, "time", time)
        force_setattr(event, "index", index)
    return made


def _session(record: Record) -> list[Event]:
    return [System(subtype="init", metadata=encode(record))]


def _message(record: Record) -> list[Event]:
    message = message_of(record)
    if message is None:
        return []
    handler = _ROLES.get(text_of(message.get("role")))
    return handler(record, message) if handler is not None else []


def _user(record: Record, message: Record) -> list[Event]:
    text, images = said_and_shown(message.get("content"))
    said = Prompt(content=text, images=images)
    if is_spawned(message.get("content")):
        said = said.replace(source="injected", origin="agent")
    return [said, *_unread(message)]


def _extension(record: Record, message: Record) -> list[Event]:
    text, images = said_and_shown(message.get("content"))
    return [Prompt(content=text, images=images, source="injected", origin=extension_of(message)), *_unread(message)]


def _unread(message: Record) -> list[Event]:
    """What in a message is neither words nor a picture."""
    return [_unknown(block) for block in unread_in(message.get("content"))]


def _unknown(block: Any) -> Output:
    kind = block.get("type") if isinstance(block, dict) else None
    return Output(raw=encode(block), why=f"unknown block {str(kind)[:_LONG]!r}")


def extension_of(message: Record) -> str:
    """The origin of an extension's message: the name that it gives them."""
    return clean(text_of(message.get("customType")))[:_LONG] or EXTENSION_ORIGIN


def _assistant(record: Record, message: Record) -> list[Event]:
    if is_mirror(message):
        name = text_of(message.get("model")).replace("-", "_") or "delivery_mirror"
        return [System(subtype=clean(name)[:_LONG], message=clean(words_of(message.get("content"))))]
    model = clean(text_of(message.get("model")))
    content = message.get("content")
    made: list[Event] = [_block(block, model) for block in blocks_of(content)]
    if not isinstance(content, str | list | None):
        made.append(_unknown(content))
    stop = message.get("stopReason")
    if stop == "error":
        made.append(Error(message=clean(text_of(message.get("errorMessage")))))
    elif stop == "aborted":
        made.append(System(subtype="turn_aborted", message=clean(text_of(message.get("errorMessage")))))
    if (metric := metric_of(record, message)) is not None:
        made.append(metric)
    return made or [System(subtype="empty_answer")]


def _block(block: Any, model: str) -> Event:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind in SPOKEN and not isinstance(block.get(kind), str | None):
        return _unknown(block)
    if kind == "text":
        return Response(content=clean(text_of(block.get("text"))), model=model)
    if kind == "thinking":
        words, seal = clean(text_of(block.get("thinking"))), clean(text_of(block.get("thinkingSignature")))
        return Thinking(content=words, signature=seal, redacted=block.get("redacted") is True or None)
    if kind == "toolCall":
        return ToolCall(
            id=clean(text_of(block.get("id"))),
            name=clean(text_of(block.get("name"))),
            input=_arguments(block.get("arguments")),
        )
    return _unknown(block)


def _arguments(value: object) -> bytes:
    if isinstance(value, str):
        return value.encode(errors="replace")
    return b"{}" if value is None else encode(value)


def _result(record: Record, message: Record) -> list[Event]:
    text, images = said_and_shown(message.get("content"))
    made: list[Event] = [
        ToolResult(
            id=clean(text_of(message.get("toolCallId"))),
            name=clean(text_of(message.get("toolName"))),
            output=text,
            images=images,
            is_error=message.get("isError") is True,
        ),
        *_unread(message),
    ]
    if (metric := metric_of(record, message, nested=True)) is not None:
        made.append(metric)
    return made


def _shell(record: Record, message: Record) -> list[Event]:
    text = clean(shell_text(message))
    if message.get("excludeFromContext") is True:
        return [System(subtype="bash_execution", message=text)]
    return [Prompt(content=text, source="injected", origin=SHELL_ORIGIN)]


def shell_text(message: Record) -> str:
    """What the model hears of a command that a person ran."""
    output, code = text_of(message.get("output")), message.get("exitCode")
    text = f"Ran `{text_of(message.get('command'))}`\n" + (f"```\n{output}\n```" if output else "(no output)")
    if message.get("cancelled"):
        text += "\n\n(command cancelled)"
    elif isinstance(code, int) and code != 0:
        text += f"\n\nCommand exited with code {code}"
    if message.get("truncated") and (path := text_of(message.get("fullOutputPath"))):
        text += f"\n\n[Output truncated. Full output: {path}]"
    return text


def _system(record: Record, message: Record) -> list[Event]:
    return [System(subtype="instructions", message=clean(instructions_of(message)))]


def instructions_of(message: Record) -> str:
    """The text of a system message: its words, then its sections."""
    sections = message.get("sections")
    named = sections.values() if isinstance(sections, dict) else ()
    texts = [words_of(message.get("content")), *(text for text in named if isinstance(text, str))]
    return "\n\n".join(filter(None, texts))


def _summary_message(record: Record, message: Record) -> list[Event]:
    return [_summary(SUMMARIES[message["role"]], message)]


def _summary(origin: str, said: Record) -> Prompt:
    before, behind = FRAMES[origin]
    text = before + clean(text_of(said.get("summary"))) + behind
    return Prompt(content=text, source="injected", origin=origin)


def _compaction(record: Record) -> list[Event]:
    about = {key: value for key, value in record.items() if key in ("firstKeptEntryId", "tokensBefore", "fromHook")}
    made: list[Event] = []
    if (metric := metric_of(record, record)) is not None:
        made.append(metric)  # before the boundary: behind it nothing counts
    made.append(System(subtype="compact_boundary", metadata=encode(about)))
    if isinstance(system := record.get("systemMessage"), dict):
        made.append(System(subtype="instructions", message=clean(instructions_of(system))))
    return [*made, _summary("compact_summary", record)]


def _branch_summary(record: Record) -> list[Event]:
    made: list[Event] = [_summary("branch_summary", record)] if text_of(record.get("summary")) else []
    if (metric := metric_of(record, record)) is not None:
        made.append(metric)
    return made


def _usage(record: Record) -> list[Event]:
    metric = metric_of(record, record)
    return [metric] if metric is not None else []


def _reset(record: Record) -> list[Event]:
    return [System(subtype="context_reset", message=clean(text_of(record.get("reason"))))]


_ENTRIES: dict[str, Callable[[Record], list[Event]]] = {
    SESSION: _session,
    MESSAGE: _message,
    COMPACTION: _compaction,
    BRANCH_SUMMARY: _branch_summary,
    CUSTOM_MESSAGE: lambda record: _extension(record, record),
    USAGE: _usage,
    RESET: _reset,
}
_ROLES: dict[str, Callable[[Record, Record], list[Event]]] = {
    USER: _user,
    ASSISTANT: _assistant,
    RESULT: _result,
    SHELL: _shell,
    SYSTEM: _system,
    **dict.fromkeys(EXTENSION, _extension),
    **dict.fromkeys(SUMMARIES, _summary_message),
}
