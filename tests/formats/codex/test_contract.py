"""The Codex formats pass the suite every format passes."""

from __future__ import annotations

from harken.formats import codex, openai_responses
from harken.testing.formats import FormatContract
from support.rollouts import PICTURE, Rollout, message

BUSY = (
    Rollout()
    .turn("first", ("response_item", {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c1"}))
    .output("c1")
    .compacted(message("user", "first"), {"type": "compaction", "encrypted_content": "sealed"})
    .turn("second")
    .event("thread_rolled_back", num_turns=1)
    .item("message", role="user", content=[{"type": "input_image", "image_url": PICTURE}])
    .item("reasoning", summary=[{"type": "summary_text", "text": "hm"}], encrypted_content="gAAAAx")
    .tokens(10, 2)
    .data
)
OLD = b"""{"id":"t1","timestamp":"2025-07-01T00:00:00Z","instructions":"be brief","git":{}}
{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}
{"record_type":"state"}
{"type":"function_call","name":"shell","arguments":"{}","call_id":"c1"}
{"type":"function_call_output","call_id":"c1","output":"ok"}
"""


class TestCodex(FormatContract):
    format = codex.FORMAT
    samples = (BUSY, OLD, Rollout().exchange("a").exchange("b").data)


class TestOpenAIResponses(FormatContract):
    format = openai_responses.FORMAT
    samples = (
        openai_responses.FORMAT.write(codex.FORMAT.read(BUSY)).data,
        b'{"model":"m","input":[{"role":"user","content":"hi"}]}',
    )


def test_a_rollout_is_told_by_its_content() -> None:
    assert [95, 85, 95] == [codex.claim(sample, "").score for sample in TestCodex.samples]


def test_a_rollout_whose_first_line_is_longer_than_the_look_is_recognised() -> None:
    data = Rollout(base_instructions={"text": "x" * 100_000}).data

    assert data.find(b"\n") > 64 << 10
    assert 95 == codex.claim(data[: 64 << 10], "").score


def test_other_lines_of_json_are_not_taken_for_a_rollout() -> None:
    claude = b'{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"hi"}}\n'
    log = b'{"message_id":"m","event_type":"transcript_entry","agent_id":"a","role":"user","content":"hi"}\n'

    assert [0, 0, 0, 0] == [codex.claim(data, "").score for data in (claude, log, b"", b"\x28\xb5\x2f\xfd")]
