"""Whose file it is: what each runtime always writes is claimed, what others write is not (#34)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import formats, runtimes
from harken.formats.kit.claims import ENOUGH, HEAD, NO_CLAIM, Claim, best
from harken.formats.kit.jsonl import parse_beginning, read_head
from harken.runtimes.sources import may_claim
from support.claude_lines import assistant, dump, user
from support.recordings import CORPUS, FOLDER, corpus_files
from support.rollouts import Rollout

CLAUDE, STREAM, CODEX, CHAT = "claude-code-v1", "claude-stream-v1", "codex-v1", "openai-chat-v1"
UUID = "00000000-aaaa-4aaa-8aaa-000000000001"
TIME = "2026-01-01T00:00:00.000Z"
SAID = {"role": "user", "content": "hi"}
TREE: dict[str, Any] = {"parentUuid": None, "isSidechain": False, "sessionId": "s", "uuid": UUID, "timestamp": TIME}
QWEN: dict[str, Any] = {
    "uuid": UUID,
    "parentUuid": None,
    "sessionId": "s",
    "timestamp": TIME,
    "cwd": "/",
    "version": "1",
}
PARTS = {"role": "user", "parts": [{"text": "hi"}]}
REPLY = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {}}


def wrapped(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": TIME, "type": kind, "payload": payload}


OWN: dict[str, tuple[str, list[Any]]] = {
    "a prompt of today": (CLAUDE, [TREE | {"type": "user", "message": SAID}]),
    "a sub-agent's first record": (
        CLAUDE,
        [TREE | {"type": "user", "isSidechain": True, "agentId": "a", "message": SAID}],
    ),
    "a progress record first": (CLAUDE, [TREE | {"type": "progress", "data": {}}]),
    "the least that Claude Code resumes": (
        CLAUDE,
        [{"type": "user", "uuid": "u", "parentUuid": None, "timestamp": TIME, "message": SAID}],
    ),
    "a title alone": (CLAUDE, [{"type": "summary", "summary": "words", "leafUuid": UUID}]),
    "a snapshot of files alone": (CLAUDE, [{"type": "file-history-snapshot", "messageId": UUID, "snapshot": {}}]),
    "a queued prompt alone": (CLAUDE, [{"type": "queue-operation", "operation": "enqueue", "sessionId": "s"}]),
    "types of the future before a prompt": (
        CLAUDE,
        [{"type": "new-thing", "sessionId": "s"}, {"a": 1}, TREE | {"type": "user", "message": SAID}],
    ),
    "dirt before a prompt": (CLAUDE, ["{broken", "", TREE | {"type": "assistant", "message": REPLY}]),
    "the stream's init": (
        STREAM,
        [{"type": "system", "subtype": "init", "session_id": "s", "claude_code_version": "2"}],
    ),
    "an init of 1.0": (
        STREAM,
        [
            {
                "type": "system",
                "subtype": "init",
                "session_id": "s",
                "apiKeySource": "none",
                "mcp_servers": [],
                "permissionMode": "x",
            }
        ],
    ),
    "a stream that begins in the middle": (
        STREAM,
        [{"type": "assistant", "message": REPLY, "parent_tool_use_id": None, "session_id": "s"}],
    ),
    "the end of a stream": (
        STREAM,
        [{"type": "result", "subtype": "success", "num_turns": 1, "total_cost_usd": 0.1, "session_id": "s"}],
    ),
    "the specification's stream": (STREAM, [{"type": "assistant", "subtype": "text", "text": "hi"}]),
    "the array of claude-code-action": (
        STREAM,
        [[{"type": "assistant", "message": REPLY, "parent_tool_use_id": None, "session_id": "s"}]],
    ),
    "a rollout": (CODEX, [wrapped("session_meta", id=UUID, cwd="/", originator="codex_exec")]),
    "a rollout without its first line": (CODEX, [wrapped("response_item", type="message", role="user", content=[])]),
    "a screen's line first": (CODEX, [wrapped("event_msg", type="task_started")]),
    "a rollout of the first versions": (CODEX, [{"id": UUID, "timestamp": TIME, "instructions": None, "git": {}}]),
    "Qwen Code": ("qwen-code-v1", [QWEN | {"type": "user", "message": PARTS, "provenance": "real_user"}]),
    "Qwen Code, its telemetry first": (
        "qwen-code-v1",
        [QWEN | {"type": "system", "subtype": "ui_telemetry", "systemPayload": {}}],
    ),
    "a sub-agent of Qwen Code": (
        "qwen-code-v1",
        [QWEN | {"type": "user", "isSidechain": True, "agentId": "a", "message": PARTS}],
    ),
    "an Anthropic request": ("anthropic-messages-v1", [{"model": "m", "max_tokens": 1, "messages": [SAID]}]),
    "blocks of Anthropic's": (
        "anthropic-messages-v1",
        [{"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "x"}]}]}],
    ),
    "a Responses request": ("openai-responses-v1", [{"model": "m", "input": [{"type": "message", "role": "user"}]}]),
    "a Responses response": ("openai-responses-v1", [{"id": "r", "object": "response", "output": []}]),
    "a chat request": ("openai-chat-v1", [{"model": "m", "messages": [{"role": "system", "content": "x"}, SAID]}]),
    "a chat request with a limit": ("openai-chat-v1", [{"max_tokens": 1, "seed": 1, "messages": [SAID]}]),
    "a list of chat messages": ("openai-chat-v1", [[SAID, {"role": "assistant", "content": "ho"}]]),
    "a chat response": ("openai-chat-v1", [{"id": "c", "object": "chat.completion", "choices": []}]),
    "pi and OpenClaw": (
        "pi-v1",
        [
            {"type": "session", "version": 3, "id": UUID, "timestamp": TIME, "cwd": "/"},
            {"type": "message", "id": "1", "parentId": None, "timestamp": TIME, "message": SAID},
        ],
    ),
    "the first version of pi": (
        "pi-v1",
        [
            {"type": "session", "id": UUID, "timestamp": TIME, "cwd": "/", "provider": "x", "modelId": "y"},
            {"type": "message", "timestamp": TIME, "message": SAID},
        ],
    ),
    "a session log": ("session-log-v2", [{"message_id": "msg_001", "event_type": "agent_created", "agent_id": "a"}]),
}
FOREIGN: dict[str, list[Any]] = {
    "Qwen Code's stream": [
        {
            "type": "system",
            "subtype": "init",
            "uuid": UUID,
            "session_id": "s",
            "tools": [],
            "mcp_servers": [],
            "qwen_code_version": "0",
        },
        {"type": "assistant", "uuid": UUID, "session_id": "s", "parent_tool_use_id": None, "message": REPLY},
    ],
    "OpenClaw's telemetry": [
        {"type": "agent.start", "agentId": "a", "messages": [{"role": "user", "content": [{"type": "text"}]}]}
    ],
    "Factory Droid": [
        {"type": "session_start", "id": UUID, "title": "t", "version": 2, "cwd": "/"},
        {
            "type": "message",
            "id": "m1",
            "timestamp": TIME,
            "message": {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        },
    ],
    "Droid's stream": [
        {
            "type": "system",
            "subtype": "init",
            "session_id": "s",
            "model": "m",
            "cwd": "/",
            "tools": ["Read"],
            "id": "1",
        },
        {"type": "message", "session_id": "s", "role": "user", "text": "hi", "id": "2"},
        {"type": "completion", "session_id": "s", "finalText": "x", "usage": {}},
    ],
    "Droid's stream with other names": [
        {"type": "system", "subtype": "init", "sessionId": "s", "model": "m", "tools": []},
        {"type": "tool_call", "sessionId": "s", "messageId": "m", "toolName": "x"},
    ],
    "Cursor's stream": [
        {
            "type": "system",
            "subtype": "init",
            "apiKeySource": "login",
            "cwd": "/",
            "session_id": "s",
            "permissionMode": "x",
        },
        {"type": "user", "message": {"role": "user", "content": [{"type": "text"}]}, "session_id": "s"},
        {"type": "result", "subtype": "success", "duration_ms": 1, "is_error": False, "result": "x", "session_id": "s"},
    ],
    "Cursor": [{"role": "user", "message": {"content": [{"type": "text", "text": "hi"}]}}],
    "Amp": [
        {
            "v": 1,
            "id": "T-1",
            "created": 1,
            "messages": [{"role": "user", "content": [{"type": "text"}], "messageId": 0}],
        }
    ],
    "Amp's stream": [
        {"type": "system", "subtype": "init", "session_id": "T-1", "cwd": "/", "tools": [], "mcp_servers": []},
        {"type": "assistant", "message": REPLY, "parent_tool_use_id": None, "session_id": "T-1"},
    ],
    "Goose": [{"0f": {"input": {"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "output": {}}}],
    "Kimi Code": [
        {"type": "metadata", "protocol_version": "1.5", "created_at": 1},
        {"type": "turn.prompt", "input": [{"type": "text", "text": "hi"}], "origin": {"kind": "user"}, "time": 1},
    ],
    "kimi-cli": [{"timestamp": 1.5, "message": {"type": "TurnBegin", "payload": {}}}],
    "kimi-cli's context": [{"role": "_system_prompt", "content": "x"}, {"role": "user", "content": "hi"}],
    "OpenHands": [{"id": UUID, "timestamp": TIME, "source": "user", "kind": "MessageEvent", "llm_message": SAID}],
    "Letta": [
        {"agents": [{"messages": [{"role": "user", "content": [{"type": "text"}]}]}], "tools": [], "metadata": {}}
    ],
    "Cline": [
        {"version": 1, "agent": "lead", "sessionId": "s", "messages": [{"id": "1", "role": "user", "content": []}]}
    ],
    "Continue": [{"sessionId": "s", "title": "t", "history": [{"message": SAID, "contextItems": []}]}],
    "a trajectory": [{"info": {}, "messages": [SAID], "trajectory_format": "x"}],
    "messages with fields of somebody else's": [[SAID | {"timestamp": TIME}, {"role": "assistant", "content": "ho"}]],
    "a trace": [{"input": [{"type": "message", "role": "user"}], "traceId": "t", "observations": []}],
    "items of an Agents SDK": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}],
    "Claude Code's prompt history": [{"display": "hi", "timestamp": 1, "project": "/", "sessionId": "s"}],
    "Codex's prompt history": [{"session_id": UUID, "ts": 1, "text": "hi"}],
    "a log of a service": [{"timestamp": TIME, "type": "request", "payload": {"id": "1"}}],
    "a row of an export": [{"id": UUID, "timestamp": TIME, "type": "user", "message": "hi"}],
    "nothing": [],
    "an empty object": [{}],
}


def text(records: list[Any]) -> bytes:
    return b"".join((r if isinstance(r, str) else json.dumps(r)).encode() + b"\n" for r in records)


class TestWhoseFile:
    @pytest.mark.parametrize(("name", "records"), OWN.values(), ids=OWN)
    def test_what_a_runtime_always_writes_is_its_own(self, name: str, records: list[Any]) -> None:
        first, claim = formats.claims(text(records))[0]

        assert name == first
        assert claim.score >= ENOUGH
        assert claim.reason
        found = formats.detect(text(records))
        assert found is not None
        assert name == found.name

    @pytest.mark.parametrize("records", FOREIGN.values(), ids=FOREIGN)
    def test_what_others_write_is_nobodys(self, records: list[Any]) -> None:
        assert [] == [one for one in formats.claims(text(records)) if one[1].score >= ENOUGH]
        assert formats.detect(text(records)) is None

    @pytest.mark.parametrize("records", FOREIGN.values(), ids=FOREIGN)
    def test_no_path_makes_it_ours(self, records: list[Any]) -> None:
        for path in (
            "/home/me/.codex/sessions/2026/01/01/notes.jsonl",
            "/home/me/projects/x/notes.jsonl",
            "notes.json",
        ):
            assert formats.detect(text(records), path) is None


def screenshot(size: int = 3 * HEAD) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * size}}


class TestLongFirstLines:
    """A first prompt with a screenshot is longer than what is looked at (#34)."""

    @pytest.mark.parametrize(
        "record",
        [
            {"parentUuid": None, "isSidechain": False, "type": "user"}
            | {"message": {"role": "user", "content": [{"type": "text", "text": "look"}, screenshot()]}}
            | {"uuid": UUID, "timestamp": TIME, "sessionId": "s"},
            {
                "parentUuid": None,
                "isSidechain": False,
                "type": "user",
                "message": {"role": "user", "content": "x" * 3 * HEAD},
            },
            {
                "parentUuid": "u",
                "isSidechain": False,
                "message": REPLY | {"content": [screenshot()]},
                "type": "assistant",
            },
            {"parentUuid": None, "isSidechain": False, "attachment": {"type": "file", "content": "x" * 3 * HEAD}}
            | {"type": "attachment", "uuid": UUID},
        ],
        ids=["a picture", "a long text", "an answer, whose type comes last", "an attachment, whose type does too"],
    )
    def test_of_claude_code(self, record: dict[str, Any]) -> None:
        data = text([record])

        assert data.find(b"\n") > HEAD
        assert [CLAUDE] == [name for name, _ in formats.claims(data[:HEAD])]

    def test_of_codex(self) -> None:
        data = Rollout(base_instructions={"text": "x" * 3 * HEAD}).data

        assert [CODEX] == [name for name, _ in formats.claims(data[:HEAD])]

    def test_of_qwen_code(self) -> None:
        picture = {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "A" * 3 * HEAD}}]}

        data = text([QWEN | {"type": "user", "isSidechain": True, "message": picture}])

        assert ["qwen-code-v1"] == [name for name, _ in formats.claims(data[:HEAD])]

    def test_a_file_of_ours_is_recognised_wherever_it_is_cut(self) -> None:
        data = dump(user("u1", None, "q"), assistant("a1", "u1", "x", "m1"))
        first = data.index(b"\n") + 1

        assert all(formats.detect(data[:end]) == formats.get(CLAUDE) for end in range(first, len(data)))


class TestTheBestClaim:
    def test_the_highest_score_decides(self) -> None:
        high, low = Claim(score=90, reason="a"), Claim(score=60, reason="b")

        assert ("x", high) == best([("y", low), ("x", high), ("z", NO_CLAIM)])

    def test_equals_and_low_scores_claim_nothing(self) -> None:
        assert best([("x", Claim(score=90, reason="a")), ("y", Claim(score=90, reason="b"))]) is None
        assert best([("x", Claim(score=ENOUGH - 1, reason="a"))]) is None
        assert best([]) is None


class TestBeginnings:
    @settings(max_examples=100, deadline=None)
    @given(
        st.recursive(
            st.none() | st.booleans() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
            max_leaves=8,
        ),
        st.data(),
    )
    def test_a_cut_value_is_the_value_with_less_in_it(self, value: Any, data: st.DataObject) -> None:
        whole = json.dumps({"a": value}).encode()
        part = parse_beginning(whole[: data.draw(st.integers(1, len(whole)))])

        assert within(part, {"a": value})
        assert {"a": value} == parse_beginning(whole)

    def test_lines_are_objects_and_the_last_one_may_be_cut(self) -> None:
        assert [{"a": 1}, {"b": {"c": [1]}}] == list(read_head(b'{"a":1}\n[1]\n{"b":{"c":[1,"x'))


def within(part: Any, whole: Any) -> bool:
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and within(value, whole[key]) for key, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(map(within, part, whole))
    return bool(part == whole)


FILES = [path for path in (*sorted(FOLDER.glob("*/**/*")), *corpus_files("**/*")) if path.is_file()]


def expected(path: Path) -> str | None:
    """Whose file it is, by the folder it was put in."""
    if FOLDER in path.parents:
        return expected_of_recording(path)
    top, lines = path.relative_to(CORPUS or "").parts[0], path.suffix == ".jsonl"
    if lines and "qwen" in path.relative_to(CORPUS or "").parts and ".signatures." not in path.name:
        return "qwen-code-v1"
    if top in ("claude_code", "claude_code_growth") or (top == "claude_web_session" and lines):
        return CLAUDE if lines else None
    if top == "claude_code_samples_by_type":
        return (CLAUDE if "claude-code" in path.parts else CODEX) if lines else None
    if lines and top != "openclaw" and {"pi", "openclaw"} & set(path.relative_to(CORPUS or "").parts[:-1]):
        return None if "signatures" in path.name else "pi-v1"
    if name := of_the_newer_ones(path):
        return name
    if top == "swe_agent_traj" and path.read_bytes()[:1] == b"[":
        return CHAT  # nothing but chat messages
    others = {"claude_stream_json": STREAM, "codex_rollout": CODEX, "otel_genai": "otel-genai-v1", "atif": "atif-v1"}
    return others.get(top)


def of_the_newer_ones(path: Path) -> str | None:
    """Whose file it is of those programs whose folders hold other files, too: by the words that only their own have."""
    if ".signatures." in path.name or path.name.startswith("rules"):
        return None
    head, folders = path.read_bytes()[:4096], set(path.relative_to(CORPUS or "").parts[:-1])
    if path.suffix == ".jsonl" and folders & {"copilot", "copilot_cli", "copilot_vscode"}:
        ours = b'"session.start"' in head or b'"parentId"' in head
        return "copilot-cli-v1" if ours else None
    if folders & {"gemini", "gemini_cli"} and b'"sessionId"' in head:
        return "gemini-cli-v1" if path.suffix == ".jsonl" else "gemini-json-v1"
    if folders & {"opencode", "kilo"} and path.suffix == ".json" and b'"info"' in head:
        return "opencode-v1"
    return None


def expected_of_recording(path: Path) -> str | None:
    top = path.relative_to(FOLDER).parts[0]
    if path.suffix != ".jsonl":
        return None
    if top == "streams":
        return STREAM if path.name.startswith("claude-code") else None  # what Codex prints is no format of ours
    return CLAUDE if top.startswith("claude-code") else CODEX


def test_every_real_file_is_its_own_runtimes() -> None:
    """Those of the programs that are read are claimed, of every version; of the others in the corpus none is."""
    wrong = []
    for path in FILES:
        with path.open("rb") as file:
            found = formats.detect(file.read(HEAD), str(path))
        if (found and found.name) != expected(path):
            wrong.append((str(path), found and found.name))

    assert [] == wrong
    assert len(FILES) > (400 if CORPUS else 60)


ANY_KEY = sorted({key for name in runtimes.names() for key in runtimes.get(name).keys} | {"type", "id", "timestamp"})
VALUES = st.none() | st.booleans() | st.just("s") | st.dictionaries(st.sampled_from(ANY_KEY), st.just("s"), max_size=3)
RECORDS = st.dictionaries(st.sampled_from(ANY_KEY), VALUES, max_size=6)


@given(st.lists(RECORDS | st.sampled_from([record for _, own in OWN.values() for record in own]), max_size=4))
@settings(deadline=None)
def test_a_runtime_that_need_not_be_asked_would_have_claimed_nothing(records: list[Any]) -> None:
    head = b"\n".join(json.dumps(record).encode() for record in records)
    for runtime in map(runtimes.get, runtimes.names()):
        if not may_claim(runtime, head):
            assert runtime.claim(head, Path("/home/ada/.claude/projects/p/rollout-s.jsonl")).score < ENOUGH


def test_a_key_that_is_written_with_escapes_is_a_key() -> None:
    record = {"parentUuid": None, "isSidechain": False, "type": "user", "message": SAID}
    head = json.dumps(record).replace("Uuid", "\\u0055uid").encode()
    claude = runtimes.get("claude-code")

    assert claude.claim(head, Path("s.jsonl")).score >= ENOUGH
    assert may_claim(claude, head)
