"""Whatever events there are, and however they are linked, the document of them is valid."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harken.events import (
    AgentCreated,
    AgentTerminated,
    Error,
    Event,
    Metric,
    Output,
    PieceOfText,
    Prompt,
    Response,
    System,
    Thinking,
    ToolCall,
    ToolResult,
    TranscriptEdit,
)
from harken.formats.std.checking.rules import validate
from harken.formats.std.document import read, write
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from support.events import events as any_event
from support.std_sessions import listed_warnings

AGENTS = st.sampled_from(["main", "main", "a", "b", "c", "", "the reviewer", "\ud800"])
RECORDS = st.sampled_from(["m0", "m1", "m2", "m3", "m4", ""])
CALLS = st.sampled_from(["c1", "c2", "c3", ""])
WORDS = st.sampled_from(["", "Look around.", "approved", "I am done.", "\ud800\x9b", "<status>failed</status>"])
INPUTS = st.sampled_from(
    [b"{}", b'{"prompt": "Look around.", "subagent_type": "looker"}', b"[1]", b'{"a": 1e999}', b"\xff", b'{"to": "a"}']
)  # fmt: skip
NAMES = st.sampled_from(["Agent", "Task", "Edit", "Bash", "SendMessage", "", "\ud800"])
TIMES = st.none() | st.integers(0, 60_000_000) | st.just(-1)


@st.composite
def told(draw: st.DrawFn) -> Event:
    """An event of a session in which names, records and calls are few, so that they meet."""
    link = draw(st.sampled_from(["", "", "substance", "cause", "causes"]))
    envelope: dict[str, Any] = {"message_id": draw(RECORDS), "agent_id": draw(AGENTS), "time": draw(TIMES)}
    if link:
        record = draw(RECORDS)
        envelope["cause" if link == "causes" else link] = (record, draw(RECORDS)) if link == "causes" else record
    kinds: list[Any] = [
        lambda: AgentCreated(name=draw(NAMES), role=draw(st.sampled_from(["root", "child", "hook", ""])), **envelope),
        lambda: ToolCall(id=draw(CALLS), name=draw(NAMES), input=draw(INPUTS), **envelope),
        lambda: ToolResult(id=draw(CALLS), output=draw(WORDS), is_error=draw(st.booleans()), **envelope),
        lambda: Prompt(
            content=draw(WORDS),
            source=draw(st.sampled_from(["user", "injected"])),
            origin=draw(st.sampled_from(["", "agent", "task_notification", "interruption"])),
            **envelope,
        ),
        lambda: Response(content=draw(WORDS), **envelope),
        lambda: PieceOfText(content=draw(WORDS), **envelope),
        lambda: Metric(input_tokens=draw(st.none() | st.integers(0, 9)), **envelope),
        lambda: draw(st.sampled_from([Thinking, System, Error, Output, TranscriptEdit, AgentTerminated]))(**envelope),
    ]
    return draw(st.sampled_from(kinds))()  # type: ignore[no-any-return]


KINDS: Any = st.sampled_from([None, "std-001", "std-008"])


@given(st.lists(told() | any_event(), max_size=30), KINDS)
def test_the_document_of_any_events_is_valid(events: list[Event], kind: Any) -> None:
    made = document_of(events, SessionFacts(session="s", title="t"), kind)

    findings = validate(made.document)
    assert [] == [one for one in findings if one.level == "error"]
    assert set() == {one.rule for one in findings if one.level == "warning"} - listed_warnings()
    assert made.document.data == read(write(made.document)).data
    for path in made.derived:
        assert "[*]" in path or _at(made.document.data, path) is not None, path


def _at(data: Any, path: str) -> Any:
    for name, place in re.findall(r"(\w+)|\[(\d+)\]", path):
        data = data[name] if name else data[int(place)]
    return data
