"""Every format that is ours passes the suite that formats of others pass."""

from __future__ import annotations

from harken.events import Event, Metric, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.cbor import CBOR, dumps, encode_events
from harken.formats import bureau_agent, events_v1, get, session_log
from harken.testing.formats import FormatContract
from support import gemini_lines, pi_lines
from support.qwen_lines import agent_session, busy_session

CONVERSATION: list[Event] = [
    System(subtype="instructions", message="be brief", message_id="m0", time=1_794_738_000_000_000),
    Prompt(content="what is in x?", source="initial", message_id="m1", time=1_794_738_001_000_000),
    Thinking(content="look", signature="sig", message_id="m2"),
    ToolCall(id="c1", name="Read", input=b'{"path":"x"}', message_id="m2", index=1),
    ToolResult(id="c1", output="nothing", is_error=True, message_id="m3", cause="m2"),
    Response(content="nothing is in x", message_id="m4", model="demo"),
    Metric(input_tokens=10, output_tokens=5, message_id="m4", index=1),
    Output(raw=b'{"odd":1}', why="nobody knows it"),
]


class TestEvents(FormatContract):
    format = events_v1.FORMAT
    samples = (encode_events(CONVERSATION), encode_events([]), encode_events(CONVERSATION * 10))
    lossless = True


class TestSessionLog(FormatContract):
    format = session_log.FORMAT
    samples = (session_log.FORMAT.write(CONVERSATION).data,)


class TestBureauAgent(FormatContract):
    format = bureau_agent.FORMAT
    samples = (
        bureau_agent.FORMAT.write(CONVERSATION).data,
        dumps([{"Role": "user", "Content": None}, {"Role": "tool", "Content": [{"Type": "text"}]}]),
    )


class TestClaudeCode(FormatContract):
    format = get("claude-code-v1")
    samples = (get("claude-code-v1").write(CONVERSATION).data,)


class TestClaudeStream(FormatContract):
    format = get("claude-stream-v1")
    samples = (
        b'{"type":"system","subtype":"init","session_id":"s","tools":[]}\n'
        b'{"type":"assistant","message":{"id":"a","role":"assistant","content":[{"type":"text","text":"hi"}],'
        b'"usage":{"output_tokens":3}},"session_id":"s","uuid":"u1"}\n'
        b'{"type":"result","subtype":"success","session_id":"s","usage":{"output_tokens":3}}\n',
    )


class TestAnthropicMessages(FormatContract):
    format = get("anthropic-messages-v1")
    samples = (get("anthropic-messages-v1").write(CONVERSATION).data,)

    def test_messages_of_several_deltas_are_one_conversation(self) -> None:
        joined = self.format.join([self.samples[0], b'{"messages":[{"role":"user","content":"more"}]}'])

        *before, last = self.format.read(joined)

        assert self.format.read(self.samples[0]) == before
        assert isinstance(last, Prompt)
        assert "more" == last.content


class TestCodex(FormatContract):
    format = get("codex-v1")
    samples = (get("codex-v1").write(CONVERSATION).data,)


class TestPi(FormatContract):
    format = get("pi-v1")
    samples = (
        get("pi-v1").write(CONVERSATION).data,
        *(made().data for made in (pi_lines.conversation, pi_lines.compacted, pi_lines.branched, pi_lines.legacy)),
    )


class TestQwenCode(FormatContract):
    format = get("qwen-code-v1")
    samples = (get("qwen-code-v1").write(CONVERSATION).data, busy_session().data, agent_session().data)


class TestOpenAIResponses(FormatContract):
    format = get("openai-responses-v1")
    samples = (get("openai-responses-v1").write(CONVERSATION).data,)


class TestOpenAIChat(FormatContract):
    format = get("openai-chat-v1")
    samples = (
        get("openai-chat-v1").write(CONVERSATION).data,
        b'[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.org/a.png"}}]}]',
        b'{"object":"chat.completion","choices":[{"message":{"role":"assistant","content":"hi"}}],"usage":{}}',
    )


def test_an_item_that_is_not_an_event_goes_back_as_the_bytes_it_was() -> None:
    data = dumps([{"type": "telepathy", "timestamp": 0}])

    read = events_v1.FORMAT.read(data)

    assert [CBOR] == [event.media_type for event in read if isinstance(event, Output)]
    assert data == events_v1.FORMAT.write(read).data


class TestGeminiCli(FormatContract):
    format = get("gemini-cli-v1")
    samples = (get("gemini-cli-v1").write(CONVERSATION).data, *gemini_lines.samples())


class TestGeminiJson(FormatContract):
    format = get("gemini-json-v1")
    samples = tuple(gemini_lines.documents())


class TestOpenCodeRows(FormatContract):
    format = get("opencode-rows-v1")
    samples = (get("opencode-rows-v1").write(CONVERSATION).data,)


class TestOpenCodeExport(FormatContract):
    format = get("opencode-v1")
    samples = (get("opencode-v1").write(CONVERSATION).data,)
