"""`chat --from`: a native session that goes on from any commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harken import Prompt, Response
from harken.events import Metric
from harken.formats import get
from harken.repo import Repo
from harken.views import SessionViewer
from support.contexts import chain, flat, keep, turn

Run = Any


@pytest.fixture
def model(tmp_path: Path) -> str:
    script = tmp_path / "script.json"
    script.write_text('{"agents": {"root": {"otherwise": "I remember."}}}')
    return f"scripted:{script}"


def begin(run: Run, path: Path, ref: str, model: str) -> Any:
    return run("chat", "--from", ref, "--file", str(path), "--model", model, stdin=b"go on\n")


def prompts(repo: Repo, session: str) -> list[str]:
    return [event.content for event in repo.conversation(session) if isinstance(event, Prompt)]


@pytest.mark.parametrize("format", ["events-v1", "claude-code-v1", "codex-v1", "session-log-v2"])
def test_begins_with_the_conversation_of_any_runtime(
    repo: Repo, run: Run, tmp_path: Path, model: str, format: str
) -> None:
    data = get(format).write(flat([1, 2])).data
    source = repo.checkpoint(data, format=format, session_id="old", template="t")

    done = begin(run, tmp_path / "new.jsonl", "old", model)

    assert (0, "I remember.") == (done.code, done.lines[-1]), done.err
    assert ["question 1", "question 2", "go on"] == prompts(repo, "new-")
    assert source.id == repo.history("new-")[-1].forked_from


def test_forks_from_the_middle_and_leaves_the_original_alone(repo: Repo, run: Run, tmp_path: Path, model: str) -> None:
    first = keep(repo, turn(1), session_id="old")
    last = keep(repo, turn(2), first, session_id="old")

    begin(run, tmp_path / "new.jsonl", first.short, model)

    assert ["question 1", "go on"] == prompts(repo, "new-")
    assert (last.id, ["question 1", "question 2"]) == (repo.commit("old").id, prompts(repo, "old"))


def test_usage_stays_where_it_was_used(repo: Repo, run: Run, tmp_path: Path, model: str) -> None:
    used = Metric(input_tokens=100, output_tokens=50, api_id="api-1", message_id="u1")
    keep(repo, [Prompt(content="hello"), Response(content="hi", api_id="api-1"), used], session_id="old")

    begin(run, tmp_path / "new.jsonl", "old", model)

    counted = {row["session"].split("-")[0]: row for row in run("stats", "--json").json if "session" in row}
    assert 50 == counted["old"]["usage"]["output"]
    assert counted["new"]["usage"]["output"] in (None, 0)


def test_goes_on_like_any_session(repo: Repo, run: Run, tmp_path: Path, model: str) -> None:
    chain(repo, [1])
    keep(repo, turn(1), session_id="old")
    path = tmp_path / "new.jsonl"
    begin(run, path, "old", model)

    done = run("chat", "--resume", str(path), "--model", model, stdin=b"and on\n")

    assert 0 == done.code
    assert ["question 1", "go on", "and on"] == prompts(repo, "new-")
    assert 1 == len(SessionViewer(path).list_agents())
    assert [] == SessionViewer(path).problems


def test_needs_a_store_that_has_it_and_a_new_file(repo: Repo, run: Run, tmp_path: Path, model: str) -> None:
    keep(repo, turn(1), session_id="old")
    path = tmp_path / "new.jsonl"

    assert 3 == begin(run, path, "nowhere", model).code
    assert not path.exists(), "what cannot begin leaves no file"
    path.write_text("mine")
    assert 2 == begin(run, path, "old", model).code
    assert 2 == run("chat", "--from", "old", "--resume", str(path)).code
    assert "mine" == path.read_text()
