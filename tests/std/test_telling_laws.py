"""What holds for the messages of any session, however odd its events are."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.events import (
    AgentCreated,
    AgentTerminated,
    Event,
    PieceOfText,
    Prompt,
    Response,
    System,
    ToolCall,
    ToolResult,
    TranscriptEdit,
)
from harken.formats.std.checking.rules import validate
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.exporting.spawning import session_tree
from harken.formats.std.exporting.telling import messages_of
from harken.formats.std.models import AgentMessage

AGENTS = st.sampled_from(["", "main", "ann", "bob-reviewer", "cyd", "hook"])
NAMES = st.sampled_from([f"m{number}" for number in range(12)] + ["", "nowhere"])
WORDS = st.sampled_from(
    [
        "", " ", "Do it.", "Done.", "Approved.", "DENY. No.", "APPROVE", "[Request interrupted by user]",
        '<teammate-message teammate_id="ann">Done.</teammate-message>', "<task-notification><task-id>ann</task-id>",
        "understood", "\ud800", "[ann]: Done.",
    ]
)  # fmt: skip
INPUTS = st.sampled_from(
    [
        b"", b"{}", b"nonsense", b"[1]", b'{"prompt": "Do it."}', b'{"id": "ann", "message": "Do it."}',
        b'{"file_path": "a", "content": "x"}', b'{"command": "pytest"}', b'{"call_id": "c1"}', b'{"id": ["cyd", 1]}',
        b'{"input": "*** Begin Patch\\n*** Delete File: a\\n*** Add File: b\\n+x"}', b'{"edits": [1], "path": "a"}',
    ]
)  # fmt: skip
CALLS = st.sampled_from(["", "c1", "c2", "c3"])
LINKS: Any = st.one_of(
    st.just({}),
    NAMES.map(lambda name: {"substance": name}),
    NAMES.map(lambda name: {"cause": name}),
    st.lists(NAMES, max_size=3).map(lambda names: {"cause": tuple(names)}),
)
FIELDS: dict[type[Event], Any] = {
    AgentCreated: {"role": st.sampled_from(["", "root", "child", "hook"]), "parent": AGENTS, "attributes": INPUTS},
    AgentTerminated: {},
    PieceOfText: {"content": WORDS},
    Prompt: {
        "content": WORDS,
        "source": st.sampled_from(["user", "injected"]),
        "origin": st.sampled_from(["", "agent", "task_notification", "interruption", "sent_back", "teammate"]),
        "point": st.sampled_from(["", "tool", "delivery", "finished"]),
        "label": st.sampled_from(["", "[ann]: "]),
    },
    Response: {"content": WORDS, "api_id": st.sampled_from(["", "x"])},
    System: {"message": WORDS, "subtype": st.sampled_from(["", "instructions"])},
    ToolCall: {
        "id": CALLS, "input": INPUTS,
        "name": st.sampled_from(["Agent", "task", "send_input", "close_agent", "Write", "Bash", "apply_patch", ""]),
    },
    ToolResult: {"id": CALLS, "output": WORDS, "is_error": st.booleans()},
    TranscriptEdit: {"n": st.integers(0, 3)},
}  # fmt: skip


@st.composite
def events(draw: Any) -> list[Event]:
    found = []
    for _ in range(draw(st.integers(0, 25))):
        kind = draw(st.sampled_from(list(FIELDS)))
        fields = {name: draw(values) for name, values in FIELDS[kind].items()}
        time = draw(st.none() | st.integers(0, 10**6))
        found.append(kind(message_id=draw(NAMES), agent_id=draw(AGENTS), time=time, **draw(LINKS), **fields))
    return found


@settings(max_examples=60, deadline=None)
@given(events())
def test_every_session_has_messages_that_hang_together(found: list[Event]) -> None:
    tree = session_tree(found)

    told = messages_of(tree)

    msgspec.convert(told.messages, list[AgentMessage])
    known = {tree.identifier(name)["agent_id"] for name in (tree.main, *tree.agents)}
    seen: set[str] = set()
    for number, message in enumerate(told.messages, 1):
        assert number == message["sequence_number"]
        assert {message["from_agent"]["agent_id"], message["to_agent"]["agent_id"]} <= known
        assert message["from_agent"] != message["to_agent"]
        assert message.get("reply_to") is None or message["reply_to"] in seen
        seen.add(message["message_id"])
    assert len(told.messages) == len(seen)
    assert tree.agents.keys() == told.tasks.keys()
    names = [task.task_id for given in told.tasks.values() for task in given.tasks]
    assert len(names) == len(set(names))
    assert [tree.agents[name].task_id for name in told.tasks] == [
        given.tasks[0].task_id for given in told.tasks.values()
    ]


@settings(max_examples=40, deadline=None)
@given(events())
def test_every_session_is_a_valid_document(found: list[Event]) -> None:
    made = document_of(found, SessionFacts(session="s"), "std-008")

    assert [] == [finding for finding in validate(made.document) if finding.level == "error"]
