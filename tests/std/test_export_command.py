"""`harken std export`: any session as a document, told to people and to programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harken.errors import BadRequest
from harken.repo import Repo
from harken.text import plain
from support.recordings import FOLDER
from support.secret_session import KEY, write_session
from support.std_documents import multi
from support.viewed import cafe, write_log

Run = Any
PARALLEL = FOLDER / "claude-code-2.1.325" / "parallel-agents"
SESSION = "a549dc23"
NAME = "2026-01-05-001-delegate-it-three-times-multi"
SECRET = "AKIA" + "QWERTYUIOPASDFGH"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    return tmp_path


@pytest.fixture
def imported(repo: Repo) -> None:
    list(repo.import_sessions([PARALLEL]))


@pytest.mark.usefixtures("imported")
class TestExport:
    def test_prints_the_document_and_says_what_was_filled_in_and_lost(self, run: Run) -> None:
        done = run("std", "export", SESSION)

        data = json.loads(done.out)
        assert (0, NAME, 3) == (done.code, data["session_id"], len(data["sub_sessions"]))
        assert "filled in, since the session does not tell: status, " in done.err
        assert "lost: records that are no conversation ×44" in done.err

    def test_names_the_file_in_a_folder_with_the_next_free_number(self, run: Run) -> None:
        assert [0, 0] == [run("std", "export", SESSION, "-o", "out").code for _ in range(2)]

        names = sorted(path.name for path in Path("out").iterdir())
        assert [f"{NAME}.json", f"{NAME.replace('-001-', '-002-')}.json"] == names
        assert [name.removesuffix(".json") for name in names] == [
            json.loads(Path("out", name).read_bytes())["session_id"] for name in names
        ]

    def test_does_not_write_over_a_name_in_a_folder_that_was_taken_meanwhile(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Path("out").mkdir(exist_ok=True)
        Path("out", f"{NAME}.json").write_text("theirs")
        monkeypatch.setattr("harken.cli.std_export.names_in", lambda folder: ())  # looked before the other one wrote

        assert 4 == run("std", "export", SESSION, "-o", "out", "--force").code
        assert "theirs" == Path("out", f"{NAME}.json").read_text()

    def test_the_name_of_a_file_is_the_sessions_id(self, run: Run) -> None:
        done = run("std", "export", SESSION, "-o", "mine-multi.json")

        assert (0, "") == (done.code, done.out)
        assert "wrote mine-multi.json: std-008, 3 sub-agents, success" in done.err
        data = json.loads(Path("mine-multi.json").read_bytes())
        assert "mine-multi" == data["session_id"] == data["sub_sessions"][0]["parent_session_id"]

    def test_a_file_that_is_there_is_replaced_only_when_asked_to(self, run: Run) -> None:
        Path("mine.json").write_text("mine")

        assert 4 == run("std", "export", SESSION, "-o", "mine.json").code
        assert "mine" == Path("mine.json").read_text()
        assert 0 == run("std", "export", SESSION, "-o", "mine.json", "--force").code
        assert "mine" == json.loads(Path("mine.json").read_bytes())["session_id"]

    def test_a_folder_that_is_not_there_is_not_made(self, run: Run) -> None:
        assert 3 == run("std", "export", SESSION, "-o", "nowhere/").code
        done = run("std", "export", SESSION, "-o", "nowhere")
        assert (0, True) == (done.code, "nowhere is a file: there was no folder of that name\n" in done.err)
        assert 2 == run("std", "export", SESSION, "-o", "").code

    def test_the_standard_may_be_chosen(self, run: Run) -> None:
        done = run("std", "export", SESSION, "--as", "std-001")

        data = json.loads(done.out)
        assert NAME.removesuffix("-multi") == data["session_id"]
        assert ["Task", "Task", "Task"] == [call["tool_name"] for call in data["tool_calls"]]
        assert "lost: calls of sub-agents ×3: STD-001 has no place for it" in done.err

    def test_a_program_gets_the_report(self, run: Run) -> None:
        (report,) = run("std", "export", SESSION, "-o", "out", "--json").json

        assert (NAME, "std-008", 3, 0) == (report["session_id"], report["kind"], report["agents"], report["unread"])
        assert Path("out", f"{NAME}.json").stat().st_size == report["size"]
        assert [("records that are no conversation", 44)] == [(one["what"], one["count"]) for one in report["losses"]]
        assert "collaboration.orchestrator.agent_type" in report["derived"]

    def test_what_it_writes_is_valid(self, run: Run) -> None:
        run("std", "export", SESSION, "-o", "out")

        done = run("std", "validate", "out", "--strict")
        assert (0, True) == (done.code, ": valid, std-008" in done.out)


def test_a_file_of_a_session_will_do_without_a_store(run: Run, where: Path) -> None:
    write_log(Path("cafe.jsonl"), cafe())

    done = run("std", "export", "cafe.jsonl", "--as", "std-008")

    assert (0, False) == (done.code, where.exists())
    assert "cafe.jsonl" not in json.loads(done.out)["task_title"]


@pytest.mark.parametrize("kind", ["std-001", "std-008"])
def test_a_file_has_the_title_and_the_runtime_that_an_import_would_give_it(run: Run, kind: str) -> None:
    lines: list[dict[str, Any]] = [
        {"type": "user", "uuid": "u1", "sessionId": "s1", "message": {"role": "user", "content": "It is late."}},
        {"type": "custom-title", "customTitle": "Mend the clock", "sessionId": "s1"},
    ]
    Path("s1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    data = json.loads(run("std", "export", "s1.jsonl", "--as", kind).out)

    assert ("Mend the clock", "claude-code") == (data["task_title"], data["x_harken"]["runtime"])
    assert "task_title" not in data["x_harken"]["derived"]


@pytest.mark.parametrize("command", ["std export", "export", "materialize", "std repair"])
def test_a_folder_that_is_not_there_is_not_written_as_a_file(run: Run, repo: Repo, folder: Path, command: str) -> None:
    path = write_session(folder)
    list(repo.import_sessions([folder]))
    Path("document.json").write_text(json.dumps(multi()))

    done = run(*command.split(), "document.json" if "repair" in command else path.stem, "-o", "none/")

    assert (3, "", False) == (done.code, done.out, Path("none").exists())
    assert "error: there is no folder none/\nhint: make it first, or name a file\n" == done.err


def test_secrets_are_masked_unless_they_are_to_be_kept(run: Run, repo: Repo, folder: Path) -> None:
    path = write_session(folder)
    list(repo.import_sessions([folder]))

    masked, kept = run("std", "export", path.stem), run("std", "export", path.stem, "--reveal")

    assert (0, 0) == (masked.code, kept.code)
    assert KEY not in "".join(_texts(json.loads(masked.out)))
    assert "masked: anthropic" in masked.err
    assert f"use {KEY} please" == json.loads(kept.out)["user_prompt"]


def test_a_secret_that_the_title_cuts_off_is_masked_there_and_in_the_name(run: Run, repo: Repo) -> None:
    token = f"eyJ{'a1' * 20}.eyJ{'b2' * 150}.{'c3' * 20}"
    message = {"role": "user", "content": f"use  {token} now"}
    line = {"type": "user", "uuid": "u1", "sessionId": "s1", "message": message}
    Path("s1.jsonl").write_text(json.dumps(line) + "\n")
    list(repo.import_sessions([Path("s1.jsonl")]))

    masked, kept = run("std", "export", "s1"), run("std", "export", "s1", "--reveal")

    assert ("use [masked: jwt] now", False) == (json.loads(masked.out)["task_title"], "eyj" in masked.out.lower())
    assert json.loads(kept.out)["task_title"].startswith("use eyJa1a1")


@pytest.mark.parametrize("to", ["md", "txt"])
@pytest.mark.parametrize("source", ["s1", "./s1.jsonl"])
def test_a_secret_that_the_title_cuts_off_is_masked_in_every_export(run: Run, repo: Repo, to: str, source: str) -> None:
    token = f"eyJ{'a1' * 20}.eyJ{'b2' * 150}.{'c3' * 20}"
    line = {"type": "user", "uuid": "u1", "sessionId": "s1", "message": {"role": "user", "content": f"use {token} now"}}
    Path("s1.jsonl").write_text(json.dumps(line) + "\n")
    list(repo.import_sessions([Path("s1.jsonl")]))

    masked, kept = run("export", source, "--to", to), run("export", source, "--to", to, "--reveal")

    assert (0, False, True) == (masked.code, "eyJ" in masked.out, "use eyJa1a1" in kept.out)
    assert 2 <= masked.out.replace("\\", "").count("use [masked: jwt] now"), "the title and the prompt"


def test_a_sub_agent_that_cannot_be_read_is_told_and_stops_no_other(run: Run, repo: Repo, folder: Path) -> None:
    path = write_session(folder)
    list(repo.import_sessions([folder]))
    with repo.store.write() as writer:
        writer.evict(repo.commit(f"{path.stem}/def").artifact)

    done = run("std", "export", path.stem, "--as", "std-008")

    assert 9 == done.code
    assert "lost: sub-agent def ×1" in done.err
    whole, told_by_its_call = json.loads(done.out)["sub_sessions"]
    assert "abc" == whole["agent"]["agent_id"] and whole["x_harken_conversation"]
    assert [] == told_by_its_call["tool_calls"] == told_by_its_call["x_harken_conversation"]


def _texts(value: Any) -> Iterator[str]:
    """Every text in a document, as a reader sees it."""
    if isinstance(value, str):
        yield plain(value)
    elif isinstance(value, list | dict):
        for part in value if isinstance(value, list) else [*value, *value.values()]:
            yield from _texts(part)


def test_what_a_terminal_would_obey_is_escaped(run: Run, repo: Repo) -> None:
    words = "\x9b2J\x7f\x1b[2J"
    line = {"type": "user", "uuid": "u1", "sessionId": "s1", "message": {"role": "user", "content": words}}
    Path("s1.jsonl").write_text(json.dumps(line) + "\n")
    list(repo.import_sessions([Path("s1.jsonl")]))

    done = run("std", "export", "s1")

    assert words == json.loads(done.out)["user_prompt"]
    assert not {"\x9b", "\x7f", "\x1b"} & set(done.out)


def test_a_session_that_is_not_there_is_not_found(run: Run) -> None:
    done = run("std", "export", "nothing")

    assert (3, "") == (done.code, done.out)


def test_a_file_that_is_no_session_is_refused(run: Run) -> None:
    Path("x.jsonl").write_text("hello\n")

    assert 2 == run("std", "export", "x.jsonl").code


def test_a_kind_that_there_is_none_of_is_refused(repo: Repo) -> None:
    with pytest.raises(BadRequest, match="no kind"):
        repo.document("x", kind="std-009")


# -- a file ------------------------------------------------------------------------------------------------------------

CODEX = FOLDER / "codex-0.166.0"
THREADS = [path for name in ("agents", "parallel-agents", "forked") for path in sorted((CODEX / name).rglob("*.jsonl"))]


@pytest.mark.parametrize("path", THREADS, ids=lambda path: f"{path.parents[4].name}-{path.stem[-4:]}")
def test_a_file_of_codex_has_the_agents_and_the_beginning_that_it_has_in_a_store(repo: Repo, path: Path) -> None:
    list(repo.import_sessions([path.parents[4]]))
    session = path.stem[-36:]

    assert repo.document(session, name="a").document.data == repo.document(path, name="a").document.data


def test_files_of_codex_beside_one_that_are_none_of_its_threads_change_nothing(repo: Repo, tmp_path: Path) -> None:
    path = tmp_path / THREADS[0].name
    path.write_bytes(THREADS[0].read_bytes())
    alone = repo.document(path).document.data
    (tmp_path / "rollout-a.jsonl").write_text("no JSON\n")
    (tmp_path / "rollout-b.jsonl").write_text('{"type": "session_meta", "payload": {"id": "x", "history_base": [1]}}\n')
    (tmp_path / "rollout-c.jsonl").mkdir()

    assert alone == repo.document(path).document.data


def test_a_fork_whose_source_is_nowhere_says_that_its_beginning_is_missing(repo: Repo, tmp_path: Path) -> None:
    fork = next(path for path in THREADS if b'"history_base":{' in path.read_bytes())
    path = tmp_path / fork.name
    path.write_bytes(fork.read_bytes())
    list(repo.import_sessions([path]))

    source = json.loads(fork.read_bytes().splitlines()[0])["payload"]["history_base"]["thread_id"]
    expected = ("inherited context", 1, f"{source} is not in this store")
    for ref in (path, fork.stem[-36:]):
        assert expected in {(loss.what, loss.count, loss.why) for loss in repo.document(ref).losses}
    list(repo.import_sessions([fork.parents[4]]))
    assert "inherited context" not in {loss.what for loss in repo.document(fork.stem[-36:]).losses}
