"""Sessions of programs that cannot be read yet are named, not passed over in silence."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from harken import runtimes
from harken.formats.kit.claims import ENOUGH, HEAD
from harken.runtimes.unread import PROGRAMS, count_at_home, recognise
from support.recordings import corpus_files

from .test_command import run

SAID = [{"role": "user", "content": "hello"}]
COMPOSED: dict[str, tuple[str, Any]] = {
    "opencode-storage": ("storage/message/ses_1/msg_1.json", {"id": "msg_1", "sessionID": "ses_1", "role": "user"}),
    "gemini-checkpoint": ("checkpoint-a.json", {"history": [{"role": "user", "parts": [{"text": "hello"}]}]}),
    "codex-json": ("rollout-2025-04-20-a.json", {"session": {"timestamp": "t", "id": "a"}, "items": SAID}),
    "copilot-cli-json": ("session_a_1.json", {"sessionId": "a", "startTime": "t", "chatMessages": SAID}),
    "kimi-code": ("wire.jsonl", [{"type": "metadata", "protocol_version": "1.5", "created_at": 1}]),
    "kimi-cli": ("context.jsonl", [{"role": "_system_prompt", "content": "…"}]),
    "vibe": ("meta.json", {"session_id": "s", "start_time": "t", "git_commit": None, "environment": {}}),
    "cline": ("1_a.messages.json", {"version": 1, "updated_at": "t", "agent": "lead", "messages": SAID}),
    "continue": ("a.json", {"sessionId": "s", "title": "t", "workspaceDirectory": "/w", "history": []}),
    "droid": ("a.jsonl", [{"type": "session_start", "id": "s", "title": "t", "cwd": "/w"}]),
    "openhands": ("base_state.json", {"id": "s", "agent": {"llm": {}}}),
    "hermes": ("s.json", {"session_id": "s", "model": "m", "platform": "cli", "messages": SAID}),
    "mini-swe-agent": ("a.traj.json", {"info": {"model_stats": {}, "config": {}}, "messages": SAID}),
    "aider": (".aider.chat.history.md", "\n# aider chat started at 2026-11-15 13:56:02\n"),
    "cursor": ("a.jsonl", [{"role": "user", "message": {"content": [{"type": "text", "text": "hello"}]}}]),
    "amp": ("T-1.json", {"v": 1, "id": "T-1", "created": 1, "messages": SAID}),
    "goose": ("a.jsonl", [{"working_dir": "/w", "description": "d", "message_count": 1}]),
    "copilot-vs-code": ("a.jsonl", [{"kind": 0, "v": {"sessionId": "s", "requests": []}}]),
    "windsurf": ("a.jsonl", [{"status": "done", "type": "user_input", "user_input": {"user_response": "hello"}}]),
    "letta": ("a.af", {"agents": [{"name": "a", "memory_blocks": []}]}),
    "adk": ("a.session.json", {"id": "s", "app_name": "a", "user_id": "u", "events": []}),
    "swe-agent": ("a.traj", {"trajectory": [], "history": []}),
    "inspect": ("a.json", {"version": 2, "status": "success", "eval": {}}),
}


def content(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, list):
        return b"".join(json.dumps(line).encode() + b"\n" for line in value)
    return json.dumps(value, indent=2).encode()


def test_there_is_an_example_of_each() -> None:
    assert [program.name for program in PROGRAMS] == list(COMPOSED)


@pytest.mark.parametrize("name", COMPOSED)
def test_a_session_of_each_is_known_by_what_it_begins_with(name: str) -> None:
    file, value = COMPOSED[name]

    found = recognise(content(value), Path(file))

    assert found is not None
    assert name == found.name


def test_a_saved_chat_of_an_older_gemini_cli_is_a_list() -> None:
    found = recognise(b'[{"role": "user", "parts": [{"text": "hello"}]}]', Path("tmp/p/checkpoint-a.json"))

    assert found is not None
    assert "gemini-checkpoint" == found.name


def test_a_database_of_hermes_is_known_too(tmp_path: Path) -> None:
    path = tmp_path / ".hermes" / "state.db"
    path.parent.mkdir()
    sqlite3.connect(path).execute("create table sessions (id text)").connection.close()

    found = recognise(path.read_bytes(), path)

    assert found is not None
    assert "hermes" == found.name


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"\x80", b"{", b"null", b'"{', b"[[[", b'{"type":[]}', b"# Notes\n"]
)
def test_what_is_nobodys_stays_nobodys(data: bytes) -> None:
    assert recognise(data, Path("notes.json")) is None


OF = {
    "kimi-code": "recorded_runtimes/kimi-code/**/wire.jsonl",
    "kimi-cli": "recorded_runtimes/kimi-cli/sessions/**/*.jsonl",
    "vibe": "recorded_runtimes/vibe/**/meta.json",
    "cline": "recorded_runtimes/cline/**/*.messages.json",
    "continue": "recorded_runtimes/continue/*/*-*.json",
    "droid": "recorded_runtimes/droid/*/**/*.jsonl",
    "openhands": "recorded_runtimes/openhands/**/base_state.json",
    "hermes": "recorded_runtimes/hermes/state.db",
    "mini-swe-agent": "recorded_runtimes/mini/traj.json",
    "aider": "recorded_runtimes/aider/**/.aider.chat.history.md",
    "amp": "amp/**/*.json",
    "cursor": "cursor/**/*.jsonl",
    "windsurf": "windsurf/**/*.jsonl",
    "letta": "letta_af/**/*.af",
}


def test_files_that_the_programs_wrote_are_known_and_nobody_else_claims_them() -> None:
    known = [runtimes.get(name) for name in runtimes.names()]
    for name, pattern in OF.items():
        for path in (path for path in corpus_files(pattern) if "signatures" not in path.name):
            head = path.read_bytes()[:HEAD]
            found = recognise(head, path)

            assert name == (found.name if found else ""), path
            assert all(runtime.claim(head, path).score < ENOUGH for runtime in known), path


def test_an_import_of_a_folder_names_them(tmp_path: Path) -> None:
    folder = tmp_path / "there"
    for name in ("kimi-code", "aider"):
        file, value = COMPOSED[name]
        (folder / name).mkdir(parents=True)
        (folder / name / file).write_bytes(content(value))
    (folder / "notes.json").write_text("{}")

    plain = run(tmp_path, "import", str(folder))
    *lines, last = map(json.loads, run(tmp_path, "import", str(folder), "--json").stdout.splitlines())

    assert "found, and not read yet: Kimi Code (1 file), aider (1 file)" in plain.stderr
    assert {
        ("skipped", "kimi-code", "Kimi Code session, not read yet"),
        ("skipped", "aider", "aider session, not read yet"),
    } == {(line["status"], line["runtime"], line["error"]) for line in lines}
    assert ({"Kimi Code": 1, "aider": 1}, 3, 0) == tuple(last["report"][key] for key in ("unread", "skipped", "failed"))


def test_one_that_is_named_fails_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "T-1.json"
    path.write_bytes(content(COMPOSED["amp"][1]))

    done = run(tmp_path, "import", str(path))

    assert 1 == done.returncode
    assert "Amp session, not read yet" in done.stderr


def test_where_the_programs_keep_theirs_they_are_counted_and_not_opened(tmp_path: Path) -> None:
    for number in range(3):
        path = tmp_path / f".kimi-code/sessions/wd_a/session_{number}/agents/main/wire.jsonl"
        path.parent.mkdir(parents=True)
        path.touch(mode=0)
    (tmp_path / ".claude" / "projects").mkdir(parents=True)

    done = run(tmp_path, "import")

    assert {"Kimi Code": 3} == count_at_home({"HOME": str(tmp_path)})
    assert "found, and not read yet: Kimi Code (3 files)" in done.stderr
