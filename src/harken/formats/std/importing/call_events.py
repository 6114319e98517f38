"""The calls of a document as events: what a tool was asked, and what it answered."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any

from harken.events import ToolCall, ToolResult
from harken.events.base import clean
from harken.formats.std.document import Json
from harken.formats.std.parts import (
    asked_of,
    call_began,
    call_ended,
    call_outcome,
    error_words,
    flat_output,
    inner,
    is_uncounted,
    own_outcome,
    with_error,
)
from harken.formats.std.spellings import known_status

from .in_order import Story, ToldRecord
from .pieces import compact, id_of, kind_word, text_of, unread

RESULT = ":result"
"""Behind the name of a call: the name of its result."""
LinkResult = Callable[[ToolResult], ToldRecord]
"""What becomes of a result: it may be the answer of an agent that its call made."""


def call_id_of(call: object, place: int) -> str:
    """The id of a call; of one that has none, its place in the list."""
    return (id_of(call.get("call_id")) if isinstance(call, dict) else "") or f"call-{place + 1}"


def asked(call: Json, call_id: str, name: str, agent: str) -> ToolCall:
    """What a tool was asked. Arguments that are no object stand beside it as the text they were."""
    return ToolCall(
        message_id=name,
        agent_id=agent,
        time=call_began(call),
        id=own_id(call, call_id),
        name=text_of(call.get("x_harken_name")) or text_of(call.get("tool_name")),
        input=_arguments(call),
    )


def own_id(call: Json, call_id: str) -> str:
    """The id that the runtime gave the call; another stands in a document where that was taken, or was none."""
    own = call.get("x_harken_id")
    return clean(own) if isinstance(own, str) else call_id


def _arguments(call: Json) -> bytes:
    given = call.get("input")
    if isinstance(text := call.get("x_harken_input"), str):
        return text.encode("utf-8", "backslashreplace")
    if isinstance(given, dict) and "params" in given:
        return compact(asked_of(given))
    return b"{}" if given is None else compact(given)


def answered(call: Json, call_id: str, name: str, agent: str) -> ToolResult | None:
    """What it answered: nothing where the document has no output, or one that says no more than that it is to come."""
    output = call.get("output")
    if output is None and (output := _flat_output(call)) is None:
        return None
    if _is_awaited(output):
        return None
    return ToolResult(
        message_id=name + RESULT,
        agent_id=agent,
        time=call_ended(call),
        cause=name,
        id=own_id(call, call_id),
        output=with_error(_answer(output), clean(error_words(output) or error_words(call))),
        is_error=own_outcome(call) == "failed",
    )


def _flat_output(call: Json) -> Json | None:
    """The output of a call that says itself what came of it; None where it does not say that it is over."""
    found = flat_output(call)
    is_over = found.keys() & {"result", "error"} or call_outcome(found)
    return found if is_over and known_status(found.get("status")) != "in_progress" else None


def _is_awaited(output: Any) -> bool:
    """Whether an output says that the call goes on, and nothing else."""
    said = output if isinstance(output, dict) else {}
    is_silent = all(value in (None, "", [], {}) for key, value in said.items() if key != "status")
    return is_silent and known_status(said.get("status")) == "in_progress"


def _answer(output: Any) -> str:
    """The words of an output, without those of an error."""
    if not isinstance(output, dict):
        return text_of(output) if isinstance(output, str) else compact(output).decode()
    result = output.get("result")
    said = _other_words(output) if _holds_nothing(result) else _display(result)
    if said is None:
        said = compact(result).decode() if result or not error_words(output) else ""
    return said


def _holds_nothing(result: Any) -> bool:
    """Whether an output has no result, or the standard's object with nothing in it."""
    return result is None or (isinstance(result, dict) and all(value is None for value in result.values()))


_WORDS = frozenset(
    {
        "display", "stdout", "stderr", "output", "content", "text", "message", "response", "answer", "summary", "value",
        "data", "body", "lines", "matches", "files", "items",
    }
)  # fmt: skip
"""What programs call the words of a result that is not called one. Counts, ids and costs beside the status are none."""


def _other_words(output: Json) -> str:
    """What an output without a result says: the only text, else all of it."""
    found = {key: value for key, value in output.items() if key in _WORDS and value not in (None, "", [], {})}
    only = next(iter(found.values()), "")
    return text_of(only) if isinstance(only, str) and len(found) < 2 else compact(found).decode()


def _display(result: Any) -> str | None:
    """What a person is shown of a result; None where the result is told otherwise."""
    if isinstance(result, str):
        return text_of(result)
    display = inner({"result": result}, "result").get("display")
    return text_of(display) if isinstance(display, str) else None


def call_story(calls: Sequence[Any], names: Sequence[str], agent: str, link: LinkResult) -> Story:
    """The calls of a list and their results in the order of time: a result that came after a later call began stands
    behind that. `names` are those of the calls' records."""
    told: Story = []
    late: list[tuple[int, int, ToldRecord]] = []

    def close(until: int | None) -> None:
        while late and (until is None or late[0][0] <= until):
            told.append(heapq.heappop(late)[2])

    for place, (call, name) in enumerate(zip(calls, names, strict=True)):
        if not isinstance(call, dict):
            told.append(ToldRecord(events=(unread(call, f"a call is {kind_word(call)}, not an object", name, agent),)))
            continue
        if isinstance(call, dict) and is_uncounted(call):
            continue
        call_id = call_id_of(call, place)
        question = asked(call, call_id, name, agent)
        close(question.time)
        told.append(ToldRecord(events=(question,)))
        if (result := answered(call, call_id, name, agent)) is None:
            continue
        if result.time is None or question.time is None:
            told.append(link(result))
        else:
            heapq.heappush(late, (max(result.time, question.time), place, link(result)))
    close(None)
    return told
