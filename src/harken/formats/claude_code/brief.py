"""What a line about a delta needs of it (prompts, answers, calls), without reading all of it into events.

A list of commits asks this of every one of them. Whatever is unusual is left to the reader: then there is no answer
here. The line that is made of either is the same, which is tested on every session there is.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from harken.events import Event, Prompt, Response, ToolCall
from harken.formats.kit.anthropic import CALL, RESPONSE, says
from harken.formats.kit.jsonl import SHORT, lines, parse, refusal

from .read import RECORDS
from .records import TOOL_RESULT, by_text

_Field = msgspec.Raw | msgspec.UnsetType


class _BriefBlock(msgspec.Struct, gc=False):
    type: str = ""
    text: str = ""
    name: str = ""
    input: msgspec.Raw = msgspec.Raw()


class _BriefMessage(msgspec.Struct, gc=False):
    content: str | list[_BriefBlock]


class _BriefAttachment(msgspec.Struct, gc=False):
    type: str = ""


class _BriefLine(msgspec.Struct, gc=False):
    """A record: what it says, and the fields that tell, besides its text, who wrote a prompt."""

    type: str = ""
    message: _BriefMessage | None = None
    attachment: _BriefAttachment | None = None
    isApiErrorMessage: bool = False
    isMeta: bool = False
    isSidechain: bool = False
    isCompactSummary: _Field = msgspec.UNSET
    isVisibleInTranscriptOnly: _Field = msgspec.UNSET
    origin: _Field = msgspec.UNSET
    planContent: _Field = msgspec.UNSET
    promptSource: _Field = msgspec.UNSET


_decode = msgspec.json.Decoder(_BriefLine).decode


def read_briefly(data: bytes) -> list[Event] | None:
    """The prompts of people (where there is none, the first that was put in), the answers and the calls; None where
    the reader has to be asked."""
    found: list[Event] = []
    others: list[bytes] = []
    asked = False
    for start, end in lines(data):
        text = data[start:end]
        line = _take(text)
        if line is None or line.type == "summary":
            return None
        if line.type == "assistant":
            found += _answers(line)
        elif line.type in ("user", "attachment"):
            prompts = _typed(line, text)
            found += prompts
            asked = asked or bool(prompts)
            if not prompts:
                others.append(text)
    return found if asked else [*_first(others), *found]


def _take(text: bytes) -> _BriefLine | None:
    """The record, if it is what nearly every one is; what is passed over has to be text, as to the reader."""
    if len(text) > SHORT and refusal(text):
        return None
    try:
        if not text.isascii():
            text.decode()
        return _decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def _answers(line: _BriefLine) -> Iterator[Event]:
    content = line.message.content if line.message is not None else []
    for block in [_BriefBlock("text", content)] if isinstance(content, str) else content:
        kind = says(block.type)
        if kind == RESPONSE and not line.isApiErrorMessage:
            yield Response(content=block.text)
        elif kind == CALL:
            yield ToolCall(id="", name=block.name, input=bytes(block.input))


def _typed(line: _BriefLine, text: bytes) -> list[Prompt]:
    """The prompts of a record that a person wrote."""
    if line.type == "attachment":
        typed = line.attachment is not None and line.attachment.type == "queued_command"
        return [prompt for prompt in _prompts(text) if prompt.source != "injected"] if typed else []
    content = line.message.content if line.message is not None else []
    blocks = [_BriefBlock("text", content)] if isinstance(content, str) else content
    if len(blocks) != 1 or blocks[0].type != "text" or not _tells_by_text(line):
        if any(block.type == TOOL_RESULT for block in blocks):
            return []
        return [prompt for prompt in _prompts(text) if prompt.source != "injected"]
    said = blocks[0].text
    return [Prompt(content=said)] if said.strip() and not line.isMeta and not by_text(said) else []


def _tells_by_text(line: _BriefLine) -> bool:
    """Whether no field but `isMeta` says who wrote it."""
    marks = (line.isCompactSummary, line.isVisibleInTranscriptOnly, line.origin, line.planContent, line.promptSource)
    return not line.isSidechain and marks == _UNSAID


_UNSAID = (msgspec.UNSET,) * 5


def _prompts(text: bytes) -> list[Prompt]:
    """The prompts of a record as the reader finds them, those that say something."""
    record = parse(text)  # by the one judge of lines: a number may be one that a quick decoder refuses
    made = RECORDS[record["type"]](record, text) if record else []
    return [event for event in made if isinstance(event, Prompt) and event.content.strip()]


def _first(records: list[bytes]) -> list[Event]:
    """The first prompt of these records, by whomever; the rest is not looked at."""
    for text in records:
        if prompts := _prompts(text):
            return [prompts[0]]
    return []
