"""The real LiteLLM against a server on loopback that speaks OpenAI's chat API; skipped where it is not installed."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from harken import load_session
from harken.agents import Answer, Image, ModelOptions, Retries, Streamed
from harken.agents.models import LiteLLMModel
from harken.errors import ModelFailed
from support.mcp_tools import picture
from support.stage import contents, lines, say

pytestmark = pytest.mark.filterwarnings("ignore")  # LiteLLM's own


def words(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def uses(tool: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }


class Provider(BaseHTTPRequestHandler):
    """Answers from a list: a message, or a number that is the status of a failure."""

    answers: ClassVar[list[dict[str, Any] | int]] = []
    requests: ClassVar[list[dict[str, Any]]] = []
    refusal = "no"
    wait = ""

    def do_POST(self) -> None:
        self.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        answer = self.answers.pop(0)
        if isinstance(answer, int):
            return self.reply(answer, {"error": {"message": self.refusal, "type": "x", "code": str(answer)}})
        usage = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
        if self.requests[-1].get("stream"):
            return self.chunks(answer, usage)
        choice = {"index": 0, "message": answer, "finish_reason": "stop"}
        body = {
            "id": "r1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [choice],
            "usage": usage,
        }
        return self.reply(200, body)

    def chunks(self, answer: dict[str, Any], usage: dict[str, int]) -> None:
        """The same, a word at a time, as a provider streams it."""
        said = [{"content": word} for word in re.findall(r"\S+\s*", answer["content"] or "")]
        called = [{"tool_calls": [{"index": 0, **call}]} for call in answer.get("tool_calls", ())]
        head = {"id": "r1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        sent = [{**head, "choices": [{"index": 0, "delta": delta}]} for delta in (*said, *called)]
        sent.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        sent.append({**head, "choices": [], "usage": usage})
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for one in (*map(json.dumps, sent), "[DONE]"):
            self.wfile.write(f"data: {one}\n\n".encode())

    def reply(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if status != 200 and self.wait:
            self.send_header("Retry-After", self.wait)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[LiteLLMModel]:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it would ask the network for prices
    server = HTTPServer(("127.0.0.1", 0), Provider)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    Provider.answers.clear()
    Provider.requests.clear()
    yield LiteLLMModel("openai/m", api_base=f"http://127.0.0.1:{server.server_port}/v1", api_key="none", max_retries=0)
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_discussion_goes_through_a_provider(model: LiteLLMModel, tmp_path: Path) -> None:
    Provider.answers += [uses("task", name="Ann", prompt="Hello?"), words("I am Ann."), words("She is Ann.")]

    root, session = load_session(tmp_path / "log", language_model=model)
    with session:
        assert "She is Ann." == say(root, "Make Ann.")
        assert ["I am Ann."] == contents(root, "tool")
        assert (11, 3) == tuple(
            lines(session, event_type="metric")[0][key] for key in ("input_tokens", "output_tokens")
        )
    first, _, last = Provider.requests
    assert ["task", "discuss", "terminate"] == [tool["function"]["name"] for tool in first["tools"]]
    assert ["user", "assistant", "tool"] == [message["role"] for message in last["messages"]]


def test_a_provider_is_heard_while_it_answers(model: LiteLLMModel, tmp_path: Path) -> None:
    Provider.answers += [503, uses("task", name="Ann"), words("She is Ann.")]
    told: list[Streamed] = []

    root, session = load_session(
        tmp_path / "log", language_model=model, retries=Retries(first=0), stream=lambda _, piece: told.append(piece)
    )
    with session:
        assert "She is Ann." == say(root, "Make Ann.")
        assert [11, 11] == [line["input_tokens"] for line in lines(session, event_type="metric")]
        assert ["Created subagent: Ann"] == contents(root, "tool")
    assert ["failed", "call", "reply", "text", "reply"] == [piece.kind for piece in told]
    assert "She is Ann." == "".join(piece.text for piece in told if piece.kind == "text")


def test_options_reach_the_provider(model: LiteLLMModel, tmp_path: Path) -> None:
    Provider.answers += [words('{"a": 1}')]
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    options = ModelOptions(temperature=0.5, seed=7, max_tokens=9, stop="END", response_format=schema, timeout=30)

    root, session = load_session(tmp_path / "log", language_model=model, options=options)
    with session:
        assert '{"a": 1}' == say(root, "Count.")
    (asked,) = Provider.requests
    assert (0.5, 7, 9, ["END"]) == tuple(asked[key] for key in ("temperature", "seed", "max_tokens", "stop"))
    assert schema == asked["response_format"]["json_schema"]["schema"]


@pytest.mark.parametrize(("name", "seen"), [("openai/gpt-4o", True), ("openai/m", False)])
def test_a_provider_is_shown_pictures_where_its_model_sees(
    model: LiteLLMModel, tmp_path: Path, name: str, seen: bool
) -> None:
    def draw() -> Answer:
        """Draw."""
        data = base64.b64encode(picture()).decode()
        return Answer(content="A dot.", images=(Image(media_type="image/png", data=data),))

    model._name = name
    Provider.answers += [uses("draw"), words("A dot, indeed.")]
    root, session = load_session(tmp_path / "log", language_model=model, tools=[draw])
    with session:
        root.harken("Draw.")
        assert "A dot, indeed." == asyncio.run(root.response())

    assert seen == ("data:image/png" in json.dumps(Provider.requests[1]["messages"]))
    assert seen != ("pictures not shown" in json.dumps(Provider.requests[1]["messages"]))


def test_a_provider_in_trouble_is_asked_again(model: LiteLLMModel, tmp_path: Path) -> None:
    Provider.answers += [500, 429, words("At last.")]

    root, session = load_session(tmp_path / "log", language_model=model, retries=Retries(first=0))
    with session:
        assert "At last." == say(root, "Hello")
    assert 3 == len(Provider.requests)


def test_a_provider_that_says_when_to_ask_again_is_asked_then(
    model: LiteLLMModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Provider, "wait", "0.05")
    Provider.answers += [429, words("At last.")]
    told: list[Streamed] = []

    root, session = load_session(
        tmp_path / "log", language_model=model, retries=Retries(first=0), stream=lambda _, piece: told.append(piece)
    )
    with session:
        assert "At last." == say(root, "Hello")
    assert [0.05] == [piece.pause for piece in told if piece.kind == "failed"]


def test_a_provider_that_refuses_is_not(model: LiteLLMModel, tmp_path: Path) -> None:
    Provider.answers += [401, words("never")]

    root, session = load_session(tmp_path / "log", language_model=model, retries=Retries(first=0))
    with session, pytest.raises(ModelFailed, match="AuthenticationError"):
        say(root, "Hello")
    assert 1 == len(Provider.requests)


@pytest.mark.parametrize("before", ["Bearer ", "Incorrect API key provided: ", "x-api-key='"])
@pytest.mark.parametrize("key", ["house-0815", "sk-" + "proj-" + "a1B2c3D4" * 5])
def test_a_key_that_a_provider_repeats_is_kept_nowhere(
    model: LiteLLMModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, key: str
) -> None:
    monkeypatch.setattr(Provider, "refusal", f"{before}{key}, see request 0815.")
    Provider.answers.append(401)

    root, session = load_session(tmp_path / "log", language_model=model, retries=Retries(first=0))
    with session, pytest.raises(ModelFailed, match=rf"{before}\[masked.*\], see request 0815") as failed:
        say(root, "Hello")
    assert key not in str(failed.value) + "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())


class Listener:
    """A door on loopback that somebody may knock at; nobody is let in."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.socket.setblocking(False)
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"

    def has_been_knocked_at(self) -> bool:
        try:
            self.socket.accept()[0].close()
        except BlockingIOError:
            return False
        return True


@pytest.fixture
def outside() -> Iterator[Listener]:
    """Where all roads to the network lead."""
    listener = Listener()
    yield listener
    listener.socket.close()


def environment(outside: Listener, **more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.upper().startswith(("LITELLM", "HTTP", "ALL_"))}
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), outside.url)
    return kept | proxies | {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"} | more


def test_a_chat_asks_the_provider_and_nobody_else(model: LiteLLMModel, tmp_path: Path, outside: Listener) -> None:
    """No list of prices is fetched, and none of LiteLLM's remarks gets into the conversation."""
    Provider.answers += [words("Here I am.")]
    done = subprocess.run(
        [sys.executable, "-m", "harken", "chat", "--model", "openai/m", "--file", "x.jsonl"],
        env=environment(outside, OPENAI_API_BASE=model._options["api_base"], OPENAI_API_KEY="none"),
        input="there?\n",
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert (0, "Here I am.\n") == (done.returncode, done.stdout)
    assert ["the session is kept; resume it with: harken chat --resume x.jsonl"] == done.stderr.splitlines()[-1:]
    assert "LiteLLM" not in done.stderr
    assert not outside.has_been_knocked_at()


def test_its_remarks_stay_out_of_a_program_that_did_not_set_it_up(tmp_path: Path) -> None:
    code = "import logging; from harken.agents.models import lite; lite._litellm();" + (
        "print([logging.getLogger(name).getEffectiveLevel() for name in lite._LOGGERS])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=dict(os.environ, LITELLM_LOCAL_MODEL_COST_MAP="True"),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    assert f"[{logging.ERROR}, {logging.ERROR}, {logging.ERROR}]" == done.stdout.strip()
