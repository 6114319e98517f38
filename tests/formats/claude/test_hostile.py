"""Whatever a file holds: nothing raises, nothing recurses, and the laws still stand."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harken.events.tally import Tally
from harken.formats import get
from harken.formats.claude_code import context, messages, rewrite, scan, side_chains
from harken.formats.claude_code.attachments import RENDERERS
from harken.formats.claude_code.records import SIDE
from harken.formats.kit.anthropic import BLOCKS
from support.claude_lines import assistant, attachment, call, dump, progress, result, user

FORMAT = get("claude-code-v1")
_names = st.sampled_from(["n1", "n2", "n3", "n4"])
_odd = st.none() | st.booleans() | st.integers(-2, 9) | st.text(max_size=4) | st.just([]) | st.just({}) | st.just([{}])
_odder = st.recursive(
    _odd | _names,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "text", "content", "id"]), inner)
    ),
    max_leaves=6,
)
_block = st.fixed_dictionaries(
    {"type": st.sampled_from(sorted(BLOCKS)) | _odd},
    optional={
        "text": _odder,
        "id": _names | _odd,
        "tool_use_id": _names | _odd,
        "name": _odd,
        "input": _odder,
        "content": _odder,
        "thinking": _odder,
        "source": _odder,
    },
)
_usage = st.dictionaries(
    st.sampled_from(["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"]),
    st.integers(-1, 9) | st.just(2**60) | _odd,
)
_message = st.fixed_dictionaries(
    {},
    optional={
        "id": _names | _odd,
        "content": st.lists(_block | _odd, max_size=4) | _odd,
        "model": _odd,
        "usage": _odder | _usage,
    },
)
_attachment = st.fixed_dictionaries(
    {"type": st.sampled_from(sorted(RENDERERS)) | _odd},
    optional=dict.fromkeys(
        ("prompt", "content", "commandMode", "hookEvent", "text", "skills", "addedLines", "response", "origin"), _odder
    ),
)
_record = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["user", "assistant", "system", "attachment", "progress", "last-prompt", *sorted(SIDE)[:3]]
        )
        | _odd
    },
    optional={
        "uuid": _names | _odd,
        "parentUuid": _names | _odd,
        "timestamp": st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01T00:00:03Z", "never"]) | _odd,
        "message": _message | _odd,
        "attachment": _attachment | _odd,
        "isSidechain": st.booleans() | _odd,
        "isMeta": _odd,
        "isCompactSummary": _odd,
        "isApiErrorMessage": _odd,
        "isUnmetered": st.booleans() | _odd,
        "subtype": st.sampled_from(["compact_boundary", "local_command", "api_error"]) | _odd,
        "compactMetadata": _odder
        | st.fixed_dictionaries(
            {"preservedMessages": st.fixed_dictionaries({"anchorUuid": _names, "uuids": st.lists(_names)})}
        )
        | st.fixed_dictionaries(
            {"preservedSegment": st.fixed_dictionaries({"anchorUuid": _names, "headUuid": _names, "tailUuid": _names})}
        ),
        "leafUuid": _names | _odd,
        "summary": _odd,
        "content": _odd,
        "origin": _odder,
        "rendered": _odder,
        "data": _odder | st.fixed_dictionaries({"message": st.fixed_dictionaries({"message": _message})}),
        "requestId": _names | _odd,
        "costUSD": st.floats(-1, 1) | _odd,
        "inputTokens": _odd,
        "outputTokens": _odd,
        "toolUseResult": _odder,
        "sourceToolAssistantUUID": _names | _odd,
        "agentId": _odd,
        "sessionId": _odd,
    },
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(_record, max_size=8))
def test_any_records_at_all_are_read_and_keep_the_laws(records: list[dict[str, Any]]) -> None:
    data = b"".join(json.dumps(record).encode() + b"\n" for record in records)

    facts, events, once = scan(data), FORMAT.read(data), context(data)

    assert Tally.of(events).figures() == facts.tally.figures()
    assert len(records) == facts.records == sum(event.index == 0 for event in events)
    assert data == b"".join(data[d.start : d.end] for d in facts.deltas if d.commit_type == "delta")
    assert once == context(once)
    assert messages(data) == messages(once)
    told = FORMAT.write(FORMAT.read_conversation(once))
    assert FORMAT.read(rewrite(told.data, session_id="s", cwd="/")) is not None
    kept = [line for lines in side_chains(data).values() for line in lines.splitlines(keepends=True)]
    assert Counter(kept) <= Counter(data.splitlines(keepends=True))


LONG = 6000
CASES = {
    "a chain of progress": [user("u", None, "q"), *[progress(f"p{n}", f"p{n - 1}" if n else "u") for n in range(LONG)]],
    "a chain of prompts": [user(f"u{n}", f"u{n - 1}" if n else None, "q", n % 3000) for n in range(LONG)],
    "a ring": [user(f"u{n}", f"u{(n + 1) % LONG}", "q", n % 3000) for n in range(LONG)],
    "lost parents at one instant": [user(f"u{n}", f"lost{n}", "q", 1) for n in range(LONG)],
    "one message of many calls": [
        user("q", None, "q"),
        *[assistant(f"a{n}", "q", [call(f"c{n}")], "m") for n in range(LONG // 2)],
        *[result(f"r{n}", f"a{n}", f"c{n}") for n in range(LONG // 2)],
    ],
    "prompts with attachments": [
        record
        for n in range(LONG // 2)
        for record in (
            user(f"u{n}", f"t{n - 1}" if n else None, "q"),
            attachment(f"t{n}", f"u{n}", {"type": "silent_turn_reminder", "text": "R"}),
        )
    ],
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("records", CASES.values(), ids=CASES)
def test_long_files_of_odd_shape_take_no_more_than_their_length(records: list[dict[str, Any]]) -> None:
    """Each would take minutes if anything here went over all records for each record."""
    data = dump(*records)

    once = context(data)

    assert once == context(once)
    assert messages(once) == messages(data)
    assert scan(data).records == len(records)


def test_a_line_of_many_megabytes_that_never_ends_is_kept() -> None:
    data = dump(user("u1", None, "q")) + b'{"type":"user","x":"' + b"x" * (4 << 20)

    assert ["prompt", "output"] == [event.kind for event in FORMAT.read(data)]
    assert 1 == scan(data).opaque
    assert dump(user("u1", None, "q")) == context(data)
