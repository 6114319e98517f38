"""Which standard a session is written in."""

from __future__ import annotations

import json

from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.importing.to_events import events_of
from support.std_documents import BUILDER, multi


def kind_of_export(calls: int) -> str:
    """Of a session in which one agent is called once or twice."""
    document = multi()
    document["collaboration"]["participants"] = [BUILDER]
    document["sub_sessions"][1]["agent"] = dict(BUILDER)
    document["tool_calls"] = document["tool_calls"][: 1 + calls]
    document["sub_sessions"] = document["sub_sessions"][:calls]
    document["messages"] = []
    return document_of(events_of(json.dumps(document).encode()), SessionFacts(title="The clock")).document.kind


def test_several_task_calls_make_a_multi_agent_document_though_they_are_for_one_agent() -> None:
    assert ["std-001", "std-008"] == [kind_of_export(calls) for calls in (1, 2)]
