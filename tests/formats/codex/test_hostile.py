"""Whatever stands in a file, nothing that reads it raises."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harken.events.tally import Tally
from harken.formats import codex, openai_responses
from harken.formats.codex.records import EVENT, ITEM, WRAPPED
from harken.formats.codex_stream import CodexStreamReader
from harken.formats.kit.openai import CALLS, ITEMS, OUTPUTS

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    re.findall(
        r"\w+",
        """type role content text message name call_id arguments input output summary encrypted_content image_url item
        info total_token_usage last_token_usage input_tokens output_tokens num_turns turn_id replacement_history id
        source parent_thread_id history_base end_byte_offset forked_from_id base_instructions action tools execution
        result author thread_name new_thread_id internal_chat_message_metadata_passthrough content_item_kinds model""",
    )
)
NAMES = st.sampled_from(
    [*sorted(ITEMS | CALLS | OUTPUTS), "token_count", "user_message", "item_completed", "thread_rolled_back", "error"]
)
PAYLOADS = st.dictionaries(FIELDS, ANYTHING | st.lists(st.dictionaries(FIELDS, ANYTHING, max_size=3), max_size=2))


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    payload = draw(PAYLOADS)
    if draw(st.booleans()):
        payload["type"] = draw(NAMES)
    if draw(st.integers(0, 4)) == 0:
        return payload
    kind = draw(st.sampled_from([ITEM, EVENT, *sorted(WRAPPED)]) | ANYTHING)
    return {"timestamp": draw(st.just("2026-01-02T00:00:00.000Z") | ANYTHING), "type": kind, "payload": payload}


@settings(max_examples=100, deadline=None)
@given(lines=st.lists(records(), max_size=6))
def test_records_with_anything_in_them(lines: list[dict[str, Any]]) -> None:
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    facts = codex.scan(data)
    events = codex.read(data)
    moved = codex.rewrite(data, session_id="01a1dec9-55eb-7972-87c7-b70fb9cc6700")

    assert Tally.of(events).figures() == facts.tally.figures()
    assert codex.split(data) == list(facts.deltas)
    assert facts.records == len({event.message_id for event in events})
    assert codex.context(data) == codex.context(codex.context(data))
    assert codex.request_items(data) is not None
    assert set(facts.fingerprint) <= set(codex.record_names(data))
    assert codex.read(codex.write(events).data)
    assert openai_responses.FORMAT.read(openai_responses.FORMAT.write(events).data) is not None
    assert codex.scan(moved).session == "01a1dec9-55eb-7972-87c7-b70fb9cc6700"


@settings(max_examples=100, deadline=None)
@given(
    line=st.dictionaries(FIELDS, ANYTHING | PAYLOADS), name=st.sampled_from(["item.completed", "turn.failed", "error"])
)
def test_stream_lines_with_anything_in_them(line: dict[str, Any], name: str) -> None:
    for event in CodexStreamReader().feed(json.dumps({**line, "type": name})):
        assert event.message_id


def test_a_rollback_before_anything_was_said_takes_nothing_back() -> None:
    data = json.dumps({"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 0}}).encode() + b"\n"

    assert codex.context(data) == codex.context(codex.context(data))
