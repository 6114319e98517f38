"""Any session as a request of chat completions: the SDK's types take it, its client and LiteLLM send it.

The recorded sessions are always there; `HARKEN_CORPUS` may name a folder with more.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from harken import formats
from harken.events import Metric, Prompt, Response, ToolCall, ToolResult
from harken.formats import get
from harken.repo import Repo
from support.chat_checks import accepted
from support.recordings import FOLDER, session_files, streams
from support.scripted_model import Say, ScriptedModel

FORMAT = get("openai-chat-v1")
GOLDEN = Path(__file__).parents[1] / "golden" / "openai-chat"
FILES = [path for name in ("claude-code", "codex") for path in (*session_files(name), *streams(name))]
ONCE = sorted(path for path in session_files("claude-code") + session_files("codex") if FOLDER in path.parents)[::7]


def request(path: Path) -> bytes:
    """The conversation in a file as it stands, as a request."""
    data = path.read_bytes()
    found = formats.detect(data[: formats.HEAD], str(path))
    if found is None:
        return FORMAT.empty
    return FORMAT.write(found.read_conversation(found.context(data))).data


def test_every_session_is_a_request_that_the_api_takes() -> None:
    counted = [len(accepted(request(path))) for path in FILES]

    assert len(FILES) > 50
    assert sum(counted) > 500


@pytest.fixture(scope="module")
def model() -> Iterator[tuple[ScriptedModel, str]]:
    scripted = ScriptedModel()
    listener = socket.create_server(("127.0.0.1", 0))
    scripted.serve(listener)
    yield scripted, f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    scripted.close()


def test_the_real_client_sends_what_was_written(model: tuple[ScriptedModel, str]) -> None:
    scripted, url = model
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client:
        for path in ONCE:
            scripted.play([Say("Go on.")])
            messages = accepted(request(path))

            answer = client.chat.completions.create(model="scripted", messages=messages)  # type: ignore[arg-type]

            assert "Go on." == answer.choices[0].message.content
            assert messages == scripted.asked()[-1]["messages"]
            told = FORMAT.read(answer.model_dump_json().encode())
            assert ["Go on."] == [event.content for event in told if isinstance(event, Response)]


SEND = """
import json, litellm, sys
for line in sys.stdin:
    how = {"api_base": sys.argv[1], "api_key": "none", "num_retries": 0}
    answer = litellm.completion(model="openai/scripted", messages=json.loads(line)["messages"], **how)
    print(answer.model_dump_json())
"""


def test_litellm_sends_what_was_written(model: tuple[ScriptedModel, str]) -> None:
    """In a process of its own: LiteLLM leaves an event loop and connections behind."""
    scripted, url = model
    before = len(scripted.asked())
    requests = [request(path) for path in ONCE]
    scripted.play(*([Say("Go on.")] for _ in requests))

    done = subprocess.run(
        [sys.executable, "-c", SEND, url],
        input=b"\n".join(requests),
        capture_output=True,
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},  # it would ask the network for prices
        check=False,
    )

    assert 0 == done.returncode, done.stderr.decode()
    assert ["Go on."] * len(requests) == [
        event.content for line in done.stdout.splitlines() for event in FORMAT.read(line) if isinstance(event, Response)
    ]
    sent = [body["messages"] for body in scripted.asked()[before:]]
    assert [as_litellm_sends(json.loads(one)["messages"]) for one in requests] == sent


def as_litellm_sends(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """It leaves out what is null, and calls developers `system` where it does not know the model."""
    sent = [{key: value for key, value in one.items() if value is not None} for one in messages]
    return [{**one, "role": "system"} if one["role"] == "developer" else one for one in sent]


@pytest.mark.parametrize("name", ["claude-code-2.1.325", "codex-0.166.0"])
def test_a_plain_session_is_written_as_it_always_was(name: str) -> None:
    (path,) = sorted(one for one in FILES if one.is_relative_to(FOLDER / name / "plain"))[:1]

    assert json.loads((GOLDEN / f"{name}-plain.json").read_bytes()) == json.loads(request(path))


def test_the_command_prints_a_request_and_tells_what_it_lacks(repo: Repo, run: Any, tmp_path: Path) -> None:
    asked = [Prompt(content="go"), ToolCall(id="c", name="f", input=b"{}"), Metric(input_tokens=1)]
    repo.checkpoint(asked, session_id="s")

    done = run("materialize", "s", "--format", "openai-chat-v1")
    (told,) = run("materialize", "s", "--format", "openai-chat-v1", "-o", str(tmp_path / "r.json"), "--json").json

    assert ["user", "assistant", "tool"] == [one["role"] for one in accepted(done.data)]
    assert "calls without a result" in done.err
    assert ["calls without a result", "usage figures"] == sorted(loss["what"] for loss in told["losses"])
    assert done.data == (tmp_path / "r.json").read_bytes()


def test_a_chain_of_requests_and_responses_is_one_request(run: Any, tmp_path: Path) -> None:
    deltas = [
        {"model": "m", "messages": [{"role": "user", "content": "go"}]},
        {"object": "chat.completion", "choices": [{"message": {"role": "assistant", "content": "gone"}}]},
    ]
    for number, delta in enumerate(deltas):
        (tmp_path / "d.json").write_text(json.dumps(delta))
        parent = ["--parent", "s"] if number else []
        assert 0 == run("checkpoint", str(tmp_path / "d.json"), "--session", "s", *parent).code

    done = run("materialize", "s", "--format", "openai-chat-v1")
    other = run("materialize", "s", "--format", "anthropic-messages-v1")

    assert ["go", "gone"] == [one["content"] for one in accepted(done.data)]
    assert ["user", "assistant"] == [one["role"] for one in json.loads(other.data)["messages"]]


@pytest.mark.parametrize("name", ["openai-chat-v1", "openai-responses-v1", "anthropic-messages-v1"])
def test_a_result_that_another_format_keeps_follows_its_call(repo: Repo, name: str) -> None:
    asked = get(name).write([Prompt(content="go"), ToolCall(id="c", name="f", input=b"{}"), ToolResult(id="c")])
    request = json.loads(asked.data)
    request["input" if "input" in request else "messages"].pop()  # the call is not answered yet
    first = repo.checkpoint(json.dumps(request).encode(), format=name, session_id="s")

    tip = repo.checkpoint([ToolResult(id="c", output="found it"), Response(content="Done.")], parent=first)

    made = repo.materialize(tip, format=name)
    told = [(event.id, event.output) for event in get(name).read(made.bytes) if isinstance(event, ToolResult)]
    assert [("c", "found it")] == told
    assert () == made.losses
