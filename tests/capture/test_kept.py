"""What is captured is a session like any other: kept while it grows, resumed, searched, shown and counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken import Repo
from harken.capture import TranscriptEntry
from harken.capture.exchange import Capture, CapturedRequest
from harken.events import Metric, Response, Thinking, ToolCall
from support.small_api import assistant, read, user


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with harken.open(tmp_path / "store") as opened:
        yield opened


def converse(capture: Capture) -> None:
    """Two requests of a loop, with a tool and usage."""
    system = {"role": "system", "content": "You keep a garden."}
    first = capture.request(CapturedRequest(messages=[system, user("What grows there?")], read=read, model="m-1"))
    assert first is not None
    call = ToolCall(id="c1", name="look", input=b'{"at": 1}', api_id="r1")
    usage = Metric(input_tokens=30, output_tokens=4, model="m-1", api_id="r1", request_id="q1")
    first.reply([Thinking(content="I cannot know."), Response(content="I look.", api_id="r1"), call], usage=usage)
    history = [system, user("What grows there?"), assistant("I look.", "c1")]
    result = {"role": "tool", "id": "c1", "content": "nettles and marjoram"}
    second = capture.request(CapturedRequest(messages=[*history, result], read=read, model="m-1"))
    assert second is not None
    usage = Metric(input_tokens=50, output_tokens=6, model="m-1", api_id="r2", request_id="q2")
    second.reply([Response(content="Nettles.", api_id="r2")], usage=usage)


def test_each_turn_is_kept_while_the_program_runs(repo: Repo, tmp_path: Path) -> None:
    with repo.session(tmp_path / "garden.jsonl") as session:
        converse(Capture(session, "test"))
        name = session.session_id
        assert b"marjoram" in repo.materialize(name).bytes
        assert 7 == len(session[TranscriptEntry].all())


def test_it_goes_on_in_any_format_with_its_calls_answered(repo: Repo, tmp_path: Path) -> None:
    with repo.session(tmp_path / "garden.jsonl") as session:
        converse(Capture(session, "test"))
        name = session.session_id
    for format in ("anthropic-messages-v1", "openai-responses-v1", "openai-chat-v1", "claude-code-v1", "codex-v1"):
        written = repo.materialize(name, format=format).bytes
        assert 1 == written.count(b"marjoram"), format
        assert written.index(b"I look.") < written.index(b"marjoram") < written.index(b"Nettles."), format


@pytest.mark.parametrize("runtime", ["claude-code", "codex"])
def test_it_is_resumed_in_a_runtime(repo: Repo, tmp_path: Path, runtime: str) -> None:
    with repo.session(tmp_path / "garden.jsonl") as session:
        converse(Capture(session, "test"))
        name = session.session_id
    (tmp_path / "home").mkdir()
    ready = repo.resume(name, runtime, cwd=tmp_path, home=tmp_path / "home")
    assert b"marjoram" in Path(ready.path).read_bytes()


def test_numbers_count_each_request_once(repo: Repo, tmp_path: Path) -> None:
    log = tmp_path / "garden.jsonl"
    with repo.session(log) as session:
        converse(Capture(session, "test"))
    list(repo.import_sessions([log]))  # the same log, seen again
    (spent,) = repo.session_costs().values()
    assert (80, 10) == (spent.tokens.input, spent.tokens.output)
