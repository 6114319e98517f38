"""What goes along with a conversation that is resumed, and how it is told where it came from."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.runtimes.resume import Resumed

SESSION = "5a1e0000-0000-4000-8000-000000000001"
NAME = "The Great Plan"


def line(uuid: str, parent: str | None, role: str, content: Any) -> str:
    message: dict[str, Any] = {"role": role, "content": content}
    if role == "assistant":
        message |= {"id": f"msg_{uuid}", "type": "message", "model": "m", "stop_reason": None, "usage": {}}
    record = {"parentUuid": parent, "isSidechain": False, "cwd": "/w", "sessionId": SESSION, "version": "2.1.325"}
    record |= {"type": role, "message": message, "uuid": uuid, "timestamp": "2026-11-15T10:00:00.000Z"}
    return json.dumps(record) + "\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A session that has a name, and a long output beside it that a result names."""
    path = tmp_path / ".claude" / "projects" / "-w" / f"{SESSION}.jsonl"
    beside = path.with_suffix("") / "tool-results" / "b1.txt"
    beside.parent.mkdir(parents=True)
    beside.write_text("all of it")
    call = [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "seq 9"}}]
    back = [{"type": "tool_result", "tool_use_id": "t1", "content": f"Full output saved to: {beside}\nPreview:"}]
    path.write_text(
        line("u1", None, "user", "Count.")
        + line("u2", "u1", "assistant", call)
        + line("u3", "u2", "user", back)
        + line("u4", "u3", "assistant", [{"type": "text", "text": "Counted."}])
        + json.dumps({"type": "custom-title", "customTitle": NAME, "sessionId": SESSION})
        + "\n"
    )
    return path


@pytest.fixture
def store(file: Path, tmp_path: Path) -> Path:
    """A store that the session was imported into."""
    with harken.open(tmp_path / "store.db") as repo:
        list(repo.import_sessions([str(file)]))
    return tmp_path / "store.db"


def resume(store: Path, runtime: str) -> Resumed:
    with harken.open(store) as repo:
        return repo.resume(SESSION, runtime, cwd=str(store.parent), home=str(store.parent / runtime))


def printed(store: Path, *words: str) -> str:
    argv = [sys.executable, "-m", "harken", "--store", str(store), *words]
    piped = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60, env=piped).stdout


def test_a_result_names_the_file_where_it_lies_now(store: Path, file: Path) -> None:
    """#36: side files were restored where nobody looks, since the request named the old folder."""
    written = Path(resume(store, "claude-code").path)

    there = written.with_suffix("") / "tool-results" / "b1.txt"
    assert "all of it" == there.read_text()
    assert f"Full output saved to: {there}\\nPreview:" in written.read_text()
    assert str(file.with_suffix("")) not in written.read_text()


def test_a_session_keeps_its_name(store: Path) -> None:
    """#36: in Claude Code a record of the session, in Codex a line of its list."""
    claude, codex = resume(store, "claude-code"), resume(store, "codex")

    last = json.loads(Path(claude.path).read_text().splitlines()[-1])
    assert {"type": "custom-title", "customTitle": NAME, "sessionId": claude.session} == last
    [named] = (store.parent / "codex" / "session_index.jsonl").read_text().splitlines()
    assert (codex.session, NAME) == (json.loads(named)["id"], json.loads(named)["thread_name"])
    with harken.open(store) as repo:
        list(repo.import_sessions([claude.path]))
        assert [NAME] == [row.title for row in repo.sessions(claude.session)]


@pytest.mark.parametrize("said", [f"I call it {NAME}.", NAME])
@pytest.mark.parametrize("runtime", ["codex", "pi", "qwen-code"])
def test_a_session_keeps_a_name_whose_words_are_said_in_it(store: Path, file: Path, said: str, runtime: str) -> None:
    """A name was left out where its words stand anywhere: in a summary, in an answer."""
    file.write_text(file.read_text().replace("Counted.", said))
    with harken.open(store) as repo:
        list(repo.import_sessions([str(file)]))
        ready = resume(store, runtime)
        listed = [str(path) for path in (store.parent / runtime).rglob("session_index.jsonl")]
        assert listed or runtime != "codex"
        list(repo.import_sessions([ready.path]))
        [row] = repo.sessions(ready.session)

    assert NAME == (row.title if not listed else json.loads(Path(listed[0]).read_text())["thread_name"])


def test_a_session_without_a_name_gets_none(store: Path, file: Path) -> None:
    file.write_text(file.read_text().replace(NAME, "Count."))
    with harken.open(store) as repo:
        list(repo.import_sessions([str(file)]))
    resume(store, "codex")

    assert not (store.parent / "codex" / "session_index.jsonl").exists()


def test_lineage_is_shown_in_both_directions(store: Path) -> None:
    """#36: nothing said where a resumed session came from, and its source was marked with names of branches."""
    done = resume(store, "codex")
    with harken.open(store) as repo:
        list(repo.import_sessions([done.path]))
        short = repo.commit(done.source).short

    [row] = [json.loads(each) for each in printed(store, "sessions", done.session, "--json").splitlines()]
    assert (SESSION, done.source) == (row["continues"], row["continues_at"])
    assert f"(continues {SESSION[:8]})" in printed(store, "sessions", done.session)
    assert f"[continues {short}]" in printed(store, "log", done.session)
    assert f"[continued in {done.session[:13]}]" in printed(store, "log", SESSION)
    assert "resumed/" not in printed(store, "log", SESSION)
    [tip] = [json.loads(each) for each in printed(store, "log", SESSION, "-n", "1", "--json").splitlines()]
    assert ([], [done.session]) == (tip["names"], tip["continued_by"])
    resume(store, "codex")
    assert "[continued in 2 sessions]" in printed(store, "log", SESSION)
