"""`harken resume`: what is written, what is printed, and what is remembered. The real programs judge the rest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import runtimes
from harken.errors import BadRequest
from harken.events import Prompt, Response, System
from harken.events.cbor import encode_events
from harken.formats import get
from harken.repo import Repo
from harken.runtimes.resume import Destination, Resumed
from harken.runtimes.resume import resume as write_resumed
from harken.store.memory import MemoryStore
from support.recordings import session_files

from .conftest import Bench

OLD = "019a0000-0000-7000-8000-000000000001"


def codex_line(kind: str, payload: dict[str, Any]) -> str:
    return json.dumps({"timestamp": "2026-11-15T10:00:00.000Z", "type": kind, "payload": payload}) + "\n"


def codex_session() -> bytes:
    meta = {"id": OLD, "timestamp": "2026-11-15T10:00:00.000Z", "cwd": "/old/place", "originator": "codex_exec"}
    meta |= {"cli_version": "0.166.0", "source": "exec", "model_provider": "elsewhere"}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Run it."}]}
    call = {"type": "function_call", "name": "exec_command", "arguments": '{"cmd":"ls"}', "call_id": "c1"}
    back = {"type": "function_call_output", "call_id": "c1", "output": "a file"}
    done = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    items = "".join(codex_line("response_item", item) for item in (said, call, back, done))
    return (codex_line("session_meta", meta) + items).encode()


def claude_line(uuid: str, parent: str | None, role: str, content: Any, **more: Any) -> str:
    message: dict[str, Any] = {"role": role, "content": content}
    if role == "assistant":
        message |= {"id": f"msg_{uuid}", "type": "message", "model": "m", "stop_reason": None}
        message["usage"] = {"input_tokens": 1, "output_tokens": 1}
    record = {"parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": "/old/place"}
    record |= {"sessionId": "old-session", "version": "2.1.325", "type": role, "message": message, "uuid": uuid}
    return json.dumps(record | {"timestamp": "2026-11-15T10:00:00.000Z"} | more) + "\n"


def claude_session() -> bytes:
    call = [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]
    back = [{"type": "tool_result", "tool_use_id": "t1", "content": "a file"}]
    return "".join(
        (
            claude_line("u1", None, "user", "Run it."),
            claude_line("u2", "u1", "assistant", [{"type": "thinking", "thinking": "hm", "signature": "x"}]),
            claude_line("u3", "u2", "assistant", call),
            claude_line("u4", "u3", "user", back, sourceToolAssistantUUID="u3"),
            claude_line("u5", "u4", "assistant", [{"type": "text", "text": "Done."}]),
        )
    ).encode()


SESSIONS = {"codex": codex_session(), "claude-code": claude_session()}
FORMATS = {"codex": "codex-v1", "claude-code": "claude-code-v1"}


@pytest.fixture
def repo() -> Repo:
    return Repo(MemoryStore())


def resume(repo: Repo, ref: str, *, runtime: str, home: Path, cwd: Path) -> Resumed:
    to = Destination(runtime=runtimes.get(runtime), cwd=cwd, environ={"HOME": "/nowhere"}, home=home)
    return write_resumed(repo.store, repo.commit(ref), to)


def spoken(runtime: str, data: bytes) -> list[tuple[str, str]]:
    """What is said in a session's file: prompts, responses, calls and results."""
    kinds = {"prompt": "content", "response": "content", "tool_call": "name", "tool_result": "output"}
    events = get(FORMATS[runtime]).read(data)
    return [(event.kind, getattr(event, kinds[event.kind])) for event in events if event.kind in kinds]


@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("source", FORMATS)
def test_what_was_said_is_in_the_new_session(repo: Repo, tmp_path: Path, source: str, target: str) -> None:
    commit = repo.checkpoint(SESSIONS[source], format=FORMATS[source])
    done = resume(repo, commit.short, runtime=target, home=tmp_path, cwd=tmp_path)
    assert spoken(target, Path(done.path).read_bytes()) == spoken(source, SESSIONS[source])
    assert (done.tier == "1") is (source == target)


@pytest.mark.parametrize("runtime", FORMATS)
def test_the_new_session_goes_by_its_own_name_and_folder(repo: Repo, tmp_path: Path, runtime: str) -> None:
    commit = repo.checkpoint(SESSIONS[runtime], format=FORMATS[runtime])
    done = resume(repo, commit.short, runtime=runtime, home=tmp_path / "home", cwd=tmp_path)
    # In Claude Code what it comes from stands in a line of its own before the rest.
    first, second, *_ = map(json.loads, Path(done.path).read_bytes().splitlines())
    facts = first["payload"] if runtime == "codex" else second
    assert facts["id" if runtime == "codex" else "sessionId"] == done.session
    assert facts["cwd"] == str(tmp_path)
    assert done.session in done.path


def test_what_was_written_is_remembered_beside_the_source(repo: Repo, tmp_path: Path) -> None:
    commit = repo.checkpoint(SESSIONS["claude-code"], format="claude-code-v1")
    done = resume(repo, commit.short, runtime="codex", home=tmp_path, cwd=tmp_path)
    [said] = [note for note in repo.store.annotations(commit.id) if note.key == "instantiated"]
    kept = json.loads(said.value)
    assert (kept["runtime"], kept["session"]) == ("codex", done.session)
    assert kept["prefix"] == os.stat(done.path).st_size
    assert [loss["what"] for loss in kept["losses"]] == ["thinking"]
    assert repo.commit(f"resumed/{done.session}").id == commit.id


@pytest.mark.parametrize(
    ("settings", "provider"),
    [
        (None, "openai"),
        ("not = [toml", "openai"),
        ('model_provider = 1\nprofile = "p"', "openai"),
        ('model_provider = "lab"', "lab"),
        ('model_provider = "lab"\nprofile = "p"\n[profiles.p]\nmodel_provider = "other"', "other"),
        ('model_provider = "lab"\nprofile = "p"\n[profiles.p]\nmodel = "m"', "lab"),
    ],
)
@pytest.mark.parametrize("source", FORMATS)
def test_a_thread_names_the_provider_that_codex_is_set_to_use(
    repo: Repo, tmp_path: Path, source: str, settings: str | None, provider: str
) -> None:
    """#24: without it Codex says that the provider is no longer configured."""
    if settings is not None:
        (tmp_path / "config.toml").write_text(settings)
    commit = repo.checkpoint(SESSIONS[source], format=FORMATS[source])

    done = resume(repo, commit.short, runtime="codex", home=tmp_path, cwd=tmp_path)

    first = json.loads(Path(done.path).read_bytes().splitlines()[0])
    assert provider == first["payload"]["model_provider"]


@pytest.mark.parametrize(
    ("settings", "length", "expected"),
    [
        ("", 48_000, []),
        ("", 48_001, [("middle of a long result", 1)]),
        ('model = "mine"', 12_000, []),
        ('model = "mine"', 12_001, [("middle of a long result", 1)]),
        ('model = "mine"\ntool_output_token_limit = 1000', 4_801, [("middle of a long result", 1)]),
        ('tool_output_token_limit = "many"', 48_000, []),
    ],
)
def test_results_that_codex_cuts_when_it_loads_them_are_told(
    repo: Repo, tmp_path: Path, settings: str, length: int, expected: list[tuple[str, int]]
) -> None:
    """#26: they were cut without a word. What is in the file is whole."""
    (tmp_path / "config.toml").write_text(settings)
    held = claude_session().replace(b'"a file"', b'"%s"' % (b"x" * length))
    commit = repo.checkpoint(held, format="claude-code-v1")

    done = resume(repo, commit.short, runtime="codex", home=tmp_path, cwd=tmp_path)

    assert expected == [(loss.what, loss.count) for loss in done.losses if "long" in loss.what]
    assert b"x" * length in Path(done.path).read_bytes()


@pytest.mark.parametrize("path", [("codex", "claude-code"), ("claude-code", "codex")])
def test_the_tool_of_an_mcp_server_keeps_its_server(repo: Repo, tmp_path: Path, path: tuple[str, str]) -> None:
    """#26: Codex groups such tools under `mcp__SERVER`, everybody else puts that before their names."""
    source, target = path
    codex = codex_session().replace(b'"name": "exec_command"', b'"name": "look_up", "namespace": "mcp__docs"')
    held = {"codex": codex, "claude-code": claude_session().replace(b'"Bash"', b'"mcp__docs__look_up"')}
    commit = repo.checkpoint(held[source], format=FORMATS[source])

    done = resume(repo, commit.short, runtime=target, home=tmp_path, cwd=tmp_path)

    lines = [json.loads(line) for line in Path(done.path).read_bytes().splitlines()]
    assert ("tool_call", "mcp__docs__look_up") in spoken(target, Path(done.path).read_bytes())
    if target == "codex":
        [call] = [line["payload"] for line in lines if line["payload"].get("type") == "function_call"]
        assert ("look_up", "mcp__docs") == (call["name"], call["namespace"])


@pytest.mark.parametrize(
    ("through", "back", "text"),
    [
        ("claude-code", "codex", "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nBe kind.\n</INSTRUCTIONS>"),
        ("codex", "claude-code", "<system-reminder>\nCodebase and user instructions are shown below. Be kind."),
    ],
)
def test_what_a_runtime_reads_in_the_project_does_not_come_back_to_it(
    repo: Repo, tmp_path: Path, through: str, back: str, text: str
) -> None:
    """#26: it goes along into another runtime; on the way back the first would have it twice."""
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    held = {
        "codex": codex_line("session_meta", {"id": OLD, "originator": "x", "cli_version": "0.166.0"})
        + codex_line("response_item", item)
        + codex_session().decode().partition("\n")[2],
        "claude-code": claude_line("u0", None, "user", text, isMeta=True)
        + claude_session().decode().replace('"parentUuid": null', '"parentUuid": "u0"'),
    }
    there = repo.checkpoint(held[back].encode(), format=FORMATS[back])
    done = resume(repo, there.short, runtime=through, home=tmp_path / "a", cwd=tmp_path)
    assert ("prompt", text) in spoken(through, Path(done.path).read_bytes())
    commit = repo.checkpoint(Path(done.path).read_bytes(), format=FORMATS[through])

    done = resume(repo, commit.short, runtime=back, home=tmp_path / "b", cwd=tmp_path)

    assert ("prompt", text) not in spoken(back, Path(done.path).read_bytes())
    assert "instructions of the project" in [loss.what for loss in done.losses]


def test_claude_code_is_not_told_of_a_model_it_does_not_have(repo: Repo, tmp_path: Path) -> None:
    """#36: it tried to go on with that model, and complained. It lists what a person is to go on with."""
    said = codex_session() + codex_line("turn_context", {"model": "gpt-5"}).encode()
    said += codex_line("response_item", json.loads(said.splitlines()[-2])["payload"]).encode()
    commit = repo.checkpoint(said, format="codex-v1")

    done = resume(repo, commit.short, runtime="claude-code", home=tmp_path, cwd=tmp_path)

    lines = [json.loads(line) for line in Path(done.path).read_bytes().splitlines()]
    assert {True, False} == {line["type"] == "assistant" for line in lines}
    assert not [line for line in lines if "model" in line.get("message", {})]


def test_claude_code_lists_what_a_program_held(repo: Repo, tmp_path: Path) -> None:
    """Sessions of `claude -p` are in no list of Claude Code's; one that a person is to go on with is."""
    held = claude_line("u1", None, "user", "Run it.", entrypoint="sdk-cli").encode()
    commit = repo.checkpoint(held, format="claude-code-v1")

    done = resume(repo, commit.short, runtime="claude-code", home=tmp_path, cwd=tmp_path)

    _, said = Path(done.path).read_bytes().splitlines()
    assert "cli" == json.loads(said)["entrypoint"]


def test_each_resume_is_a_session_of_its_own(repo: Repo, tmp_path: Path) -> None:
    commit = repo.checkpoint(SESSIONS["codex"], format="codex-v1")
    made = {resume(repo, commit.short, runtime="codex", home=tmp_path, cwd=tmp_path).session for _ in range(3)}
    assert len(made) == 3


@pytest.mark.parametrize("target", FORMATS)
def test_a_live_chain_and_what_lies_below_it_go_on_together(repo: Repo, tmp_path: Path, target: str) -> None:
    """A wrapped run that continued an imported session: records below, events above."""
    below = repo.checkpoint(SESSIONS["claude-code"], format="claude-code-v1")
    events = [Prompt(content="And?"), Response(content="More."), System(subtype="shutdown")]
    above = repo.checkpoint(encode_events(events), format="events-v1", parent=below)
    done = resume(repo, above.short, runtime=target, home=tmp_path, cwd=tmp_path)
    said = [*spoken("claude-code", SESSIONS["claude-code"]), ("prompt", "And?"), ("response", "More.")]
    assert spoken(target, Path(done.path).read_bytes()) == said
    assert done.tier == "2s"


def test_what_nobody_can_read_is_not_passed_on(repo: Repo, tmp_path: Path) -> None:
    commit = repo.checkpoint(b"??", format="unknown-v9")
    with pytest.raises(BadRequest, match="cannot continue"):
        resume(repo, commit.short, runtime="codex", home=tmp_path, cwd=tmp_path)
    assert list(tmp_path.rglob("*.jsonl")) == []


@pytest.mark.parametrize("target", FORMATS)
def test_a_harken_agent_goes_on_knowing_who_it_is(repo: Repo, tmp_path: Path, target: str) -> None:
    """Its system prompt was left out as if it were its runtime's."""
    who = System(subtype="instructions", message="You are Jill, 31.", agent_id="a", message_id="msg_1")
    asked = Prompt(content="Who are you?", agent_id="a", message_id="msg_2")
    answered = Response(content="Jill.", agent_id="a", message_id="msg_3")
    commit = repo.checkpoint(get("session-log-v2").write([who, asked, answered]).data, format="session-log-v2")
    done = resume(repo, commit.short, runtime=target, home=tmp_path, cwd=tmp_path)
    said = [("prompt", "You are Jill, 31."), ("prompt", "Who are you?"), ("response", "Jill.")]
    assert said == spoken(target, Path(done.path).read_bytes())
    assert () == tuple(done.losses)


@pytest.mark.parametrize("target", FORMATS)
def test_a_harken_agent_that_was_only_told_who_it_is_has_no_conversation(
    repo: Repo, tmp_path: Path, target: str
) -> None:
    who = System(subtype="instructions", message="You are Jill, 31.", agent_id="a", message_id="msg_1")
    commit = repo.checkpoint(get("session-log-v2").write([who]).data, format="session-log-v2")
    with pytest.raises(BadRequest, match="holds no conversation to go on from"):
        resume(repo, commit.short, runtime=target, home=tmp_path, cwd=tmp_path)


NOTHING_SAID = {
    "claude-code": b'{"type":"file-history-snapshot","messageId":"m","snapshot":{},"isSnapshotUpdate":false}\n',
    "codex": codex_session().splitlines(keepends=True)[0],
}


@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("source", FORMATS)
def test_a_session_in_which_nobody_has_spoken_is_refused(repo: Repo, tmp_path: Path, source: str, target: str) -> None:
    """#26: an empty file was written, which the program refuses, and it was called a success."""
    commit = repo.checkpoint(NOTHING_SAID[source], format=FORMATS[source])
    with pytest.raises(BadRequest, match="holds no conversation to go on from"):
        resume(repo, commit.short, runtime=target, home=tmp_path, cwd=tmp_path)
    assert [] == [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [] == repo.store.annotations(commit.id)
    assert [] == repo.names()


@pytest.mark.parametrize("target", FORMATS)
def test_from_whatever_commit_a_file_is_written_somebody_speaks_in_it(repo: Repo, tmp_path: Path, target: str) -> None:
    """From every commit of every recorded session: refused with a sentence, or a session with a conversation."""
    files = [(runtime, path) for runtime in FORMATS for path in session_files(runtime)]
    written = refused = 0
    for runtime, path in files:
        format = get(FORMATS[runtime])
        data, parent = path.read_bytes(), None
        for delta in list(format.split(data))[:4]:
            content = data[delta.start : delta.end]
            parent = repo.checkpoint(content, format=format.name, parent=parent, commit_type=delta.commit_type)
            try:
                done = resume(repo, parent.id, runtime=target, home=tmp_path, cwd=tmp_path)
            except BadRequest as problem:
                assert "holds no conversation to go on from" in str(problem)
                refused += 1
                continue
            events = get(FORMATS[target]).read(Path(done.path).read_bytes())
            assert any(isinstance(event, (Prompt, Response)) for event in events), path
            written += 1
    assert written > 50
    assert refused > 0


# -- on the command line ---------------------------------------------------------------------------------------------


def call(bench: Bench, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "harken", "resume", *words]
    return subprocess.run(
        argv, env=bench.environment, cwd=cwd or bench.folder, capture_output=True, text=True, timeout=60
    )


def kept_session(bench: Bench, runtime: str) -> str:
    with harken.open(bench.store) as store:
        return store.checkpoint(SESSIONS[runtime], format=FORMATS[runtime]).short


def test_the_printed_object_says_how_to_go_on(bench: Bench) -> None:
    ref = kept_session(bench, "claude-code")
    done = call(bench, ref, "--in", "codex", "--home", str(bench.folder / "codex"), "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["command"] == ["codex", "resume", said["session"]]
    assert said["losses"][0]["what"] == "thinking"
    assert said["losses"][0]["count"] == 1
    assert (said["runtime"], said["tier"]) == ("codex", "2s")
    assert Path(said["path"]).parent.parent.parent.parent == bench.folder / "codex" / "sessions"
    assert said["environment"] == {"CODEX_HOME": str(bench.folder / "codex")}


def test_the_printed_command_can_be_typed(bench: Bench) -> None:
    ref = kept_session(bench, "codex")
    other = bench.folder / "a folder"
    other.mkdir()
    done = call(bench, ref, "--in", "codex", "--cwd", str(other))
    assert done.stdout.startswith(f"cd '{other}' && codex resume ")
    assert done.stderr == ""


def test_exec_becomes_the_runtime_in_the_folder_that_was_named(bench: Bench) -> None:
    """The folder the transcript came from is never entered."""
    (bench.folder / "steps.json").write_text(json.dumps([{"exit": 5}]))
    ref = kept_session(bench, "codex")
    done = call(bench, ref, "--in", "codex", "--exec")
    assert done.returncode == 5
    assert bench.notes["argv"][0] == "resume"
    assert bench.notes["cwd"] == str(bench.folder)


def test_the_hint_where_the_program_is_missing_names_the_folder(bench: Bench) -> None:
    """#51"""
    ref = kept_session(bench, "codex")
    other = bench.folder / "a folder"
    other.mkdir()
    environ = bench.environment | {"PATH": "/nowhere"}
    argv = [sys.executable, "-m", "harken", "resume", ref, "--in", "codex", "--exec", "--cwd", str(other)]
    done = subprocess.run(argv, env=environ, cwd=bench.folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3
    assert f"hint: when it is: cd '{other}' && codex resume " in done.stderr


@pytest.mark.parametrize("words", [("resume", "REF", "--in", "codex"), ("run", "codex", "--", "exec", "x")])
def test_a_working_folder_that_was_removed_is_said_to_be(bench: Bench, words: tuple[str, ...]) -> None:
    """#51"""
    ref = kept_session(bench, "codex")
    command = [sys.executable, "-m", "harken", *(ref if word == "REF" else word for word in words)]
    gone = bench.folder / "gone"
    gone.mkdir()
    script = 'cd gone && rmdir ../gone && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *command], env=bench.environment, cwd=bench.folder, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "error: the working folder is not there any more\nhint: change to a folder that is\n"


@pytest.mark.parametrize(
    ("words", "status"), [(["nothing", "--in", "codex"], 3), (["x", "--in", "vim"], 2), (["x"], 2)]
)
def test_what_cannot_be_resumed_is_refused(bench: Bench, words: list[str], status: int) -> None:
    assert call(bench, *words).returncode == status
