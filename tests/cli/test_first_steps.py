"""What somebody meets who types a command a little wrong: the error says how it is right."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.errors import NotFound
from harken.repo import Repo
from support.claude_lines import dump, user
from support.contexts import chain
from support.viewed import cafe, write_log

Run = Any


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["sessions", "--store", "b.db"], "harken --store PATH sessions"),
        (["view", "tree", "x", "--store=b.db"], "harken --store PATH view tree"),
        (["run", "codex", "--store", "b.db"], "harken --store PATH run"),
        (["run", "claude-code", "-p", "hi"], "harken run RUNTIME -- ARGS"),
        (["view", "demo", "dialog"], "harken view dialog demo"),
        (["sessions", "--runtime", "nonsense"], "there are: claude-code, codex, gemini-cli"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_an_error_names_the_command_that_was_meant(repo: Repo, run: Run, args: list[str], told: str) -> None:
    done = run(*args)

    assert (2, "") == (done.code, done.out)
    assert told in done.err


def test_where_to_resume_only_those_are_offered_that_can(repo: Repo, run: Run) -> None:
    done = run("resume", "x", "--in", "gemini")

    able = [one for one in harken.runtimes.names() if "resume" in harken.runtimes.get(one).can]
    assert (2, True) == (done.code, f"hint: those that can resume: {', '.join(able)}" in done.err)


def test_help_is_a_word_too(run: Run) -> None:
    assert run("--help").data == run("help").data.rstrip() + b"\n"
    assert run("view", "tree", "--help").data == run("help", "view", "tree").data


def test_a_branch_that_is_there_is_named_short_and_how_it_is_moved(repo: Repo, run: Run) -> None:
    repo.fork(chain(repo, [1]), "retry")
    tip = chain(repo, [1, 2])

    done = run("fork", tip.short, "--name", "retry")

    assert 4 == done.code
    assert f"points at {repo.commit('retry').short} now" in done.err
    assert "`harken branch --move retry REF`" in done.err


def test_an_agent_that_is_not_there_brings_those_that_are(repo: Repo, run: Run, tmp_path: Path) -> None:
    log = write_log(tmp_path / "demo.jsonl", cafe())
    assert 0 == run("import", str(log)).code
    top = next(row.session for row in repo.sessions() if not row.parent)
    agents = [row.session for row in repo.sessions() if row.parent]

    done = run("log", f"{top}/Nobody")

    assert (3, True) == (done.code, bool(agents))
    assert "its agents are: " in done.err
    assert all(agent in done.err for agent in agents[:3])


def test_a_file_that_is_no_store_is_said_to_be_none(run: Run, tmp_path: Path) -> None:
    for text in ("# Harken\n", "# Harken\n" * 100):
        (tmp_path / "README.md").write_text(text)

        done = run("--store", str(tmp_path / "README.md"), "log")

        assert (2, text) == (done.code, (tmp_path / "README.md").read_text())
        assert "is not a store of Harken's" in done.err


def test_a_principal_is_found_by_the_beginning_of_its_session(repo: Repo, run: Run) -> None:
    session = "3f2a91bc-0000-4000-8000-000000000000"
    transcript = dump(user("u1", None, "hello", sessionId=session))
    path = Path(repo.store.location).with_name(f"{session}.jsonl")
    path.write_bytes(transcript)
    assert 0 == run("import", str(path)).code

    whole, short = run("resolve", f"claude-code:{session}"), run("resolve", "claude-code:3f2a91bc")

    assert (0, 0, whole.out) == (whole.code, short.code, short.out)
    assert 3 == run("resolve", "codex:3f2a91bc").code


class TestWhatIsNoLog:
    @pytest.fixture
    def transcript(self, tmp_path: Path) -> Path:
        path = tmp_path / "transcript.jsonl"
        path.write_bytes(dump(user("u1", None, "hello")))
        return path

    def test_a_transcript_of_another_runtime_is_shown_like_a_log(self, run: Run, transcript: Path) -> None:
        assert "hello" in run("view", "dialog", str(transcript)).out

    def test_a_file_that_is_nobodys_is_an_error_that_names_import(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "other.jsonl").write_text('{"some": "thing"}\n')

        done = run("view", "tree", str(tmp_path / "other.jsonl"))

        assert (3, True) == (done.code, "harken import" in done.err)

    def test_the_viewer_raises_the_same(self, transcript: Path) -> None:
        with pytest.raises(NotFound, match="no event of a session log"):
            harken.SessionViewer(transcript)

    @pytest.mark.parametrize(
        ("command", "told"), [(["view", "tree"], "nothing has happened"), (["agents"], "no agents")]
    )
    def test_an_empty_file_is_an_empty_session_and_says_so(
        self, run: Run, tmp_path: Path, command: list[str], told: str
    ) -> None:
        (tmp_path / "empty.jsonl").touch()

        done = run(*command, str(tmp_path / "empty.jsonl"))

        assert (0, "") == (done.code, done.out)
        assert told in done.err


class TestImportOfAnothersSession:
    @pytest.fixture
    def transcript(self, tmp_path: Path) -> Path:
        path = tmp_path / "3f2a91bc-0000-4000-8000-000000000000.jsonl"
        path.write_bytes(dump(user("u1", None, "hello", sessionId=path.stem)))
        return path

    @pytest.mark.parametrize("stored", [False, True])
    def test_it_is_said_whose_it_is(self, run: Run, transcript: Path, stored: bool) -> None:
        if stored:
            os.utime(transcript, (1_700_000_000, 1_700_000_000))
            assert 0 == run("import", str(transcript)).code

        done = run("import", "--runtime", "codex", str(transcript))

        assert (1, "") == (done.code, done.out)
        assert "a session of Claude Code, which was not asked for" in done.err
        assert "hint: ask for claude-code, or for no runtime by name" in done.err


def test_one_message_is_one_message_and_a_session_that_goes_on_is_told_in_words(
    repo: Repo, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_bytes(dump(user("u1", None, "hello", sessionId="a")))
    assert 0 == run("import", str(tmp_path / "a.jsonl")).code
    (row,) = repo.sessions()
    assert 0 == run("resume", row.session, "--in", "claude-code", "--home", str(tmp_path / "home")).code

    shown = run("show", row.session).out

    assert "1 message," in shown
    assert "continued in claude-code as session " in shown
    assert "{" not in shown


def test_two_contexts_that_know_the_same_are_said_to(repo: Repo, run: Run) -> None:
    tip = chain(repo, [1])

    assert "nothing differs" in run("diff", tip.short, tip.short).err
    assert "nothing differs" not in run("diff", tip.short, chain(repo, [2]).short).err
