"""What Tab offers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete

from harken.cli import harken
from harken.repo import Repo
from harken.store import SessionRow
from support.claude_lines import user
from support.commands import LEAVES
from support.contexts import keep, turn
from support.std_documents import multi
from support.viewed import cafe, write_log

Run = Any


def offered(*words: str) -> set[str]:
    """What is offered for the last of these words."""
    complete = ShellComplete(harken, {}, "harken", "_HARKEN_COMPLETE")
    return {item.value for item in complete.get_completions(list(words[:-1]), words[-1])}


@pytest.fixture
def kept(repo: Repo) -> Repo:
    repo.fork(keep(repo, turn(1), session_id="winter-1", template="codex"), "review")
    return repo


@pytest.mark.parametrize("command", ["log", "show", "materialize", "fork", "pin", "compact", "snapshot", "annotate"])
def test_a_ref_is_a_name_a_session_or_a_commit(kept: Repo, command: str) -> None:
    commit = kept.commit("review").short

    # A file in the place of one is completed by the shell, from what was typed.
    assert {"review", "winter-1", commit} == offered(command, "") - {""}
    assert {"winter-1"} == offered(command, "wi") - {"wi"}
    assert {commit} == offered(command, "ctx-") - {"ctx-"}


@pytest.mark.parametrize("command", ["log", "show", "materialize", "view timeline", "stats", "agents"])
def test_where_a_file_may_stand_the_shell_is_asked_for_one(kept: Repo, command: str) -> None:
    complete = ShellComplete(harken, {}, "harken", "_HARKEN_COMPLETE")

    assert ["wi"] == [item.value for item in complete.get_completions(command.split(), "wi") if item.type == "file"]


@pytest.mark.parametrize("command", ["log", "resume", "view timeline", "stats"])
def test_agents_are_offered_behind_their_session_or_its_beginning(kept: Repo, command: str) -> None:
    with kept.store.write() as writer:
        row = SessionRow(session="winter-1/helper", runtime="codex", parent="winter-1", agent="helper")
        writer.save_session(row)

    assert {"winter-1/helper"} == offered(*command.split(), "winter-1/") - {"winter-1/"}
    assert {"wint/helper"} == offered(*command.split(), "wint/he") - {"wint/he"}


@pytest.mark.parametrize(
    "name", ["a$(id)", "a`id`", "a;id", "a&id", "a\nid", "a\x1b[31m", "a\u202eb", "--yes", "a|id", "a'b"]
)
def test_no_word_is_offered_that_a_shell_would_act_upon(kept: Repo, name: str) -> None:
    with kept.store.write() as writer:
        writer.save_session(SessionRow(session=name, runtime="codex"))

    assert {"winter-1"} == offered("stats", "") - {"", "review", kept.commit("review").short}


def test_remarks_beside_words_do_nothing_to_a_terminal(kept: Repo) -> None:
    with kept.store.write() as writer:
        title = "\x1b[31mred\x1b]0;mine\x07\u202e\nnew\tline"
        writer.save_session(SessionRow(session="summer", runtime="codex", title=title))

    complete = ShellComplete(harken, {}, "harken", "_HARKEN_COMPLETE")
    remarks = [item.help for item in complete.get_completions(["log"], "summ") if item.type != "file"]

    assert [r"codex red\x1b]0;mine\x07\x202e new line"] == remarks


def test_branch_offers_branches_and_tag_tags(kept: Repo) -> None:
    kept.tag("review", "v1")

    assert ({"review"}, {"v1"}, {"review", "v1"}) == (offered("branch", ""), offered("tag", ""), offered("undo", ""))


def test_projects_are_offered_by_name_or_by_path(kept: Repo, tmp_path: Path) -> None:
    path = tmp_path / "home" / "s.jsonl"
    path.parent.mkdir()
    path.write_text(json.dumps(user("u", None, "hello") | {"cwd": "/work/team/api"}) + "\n")
    other = user("v", None, "hello") | {"cwd": "/work/else/api", "sessionId": "other"}
    path.with_name("other.jsonl").write_text(json.dumps(other) + "\n")
    list(kept.import_sessions([path.parent]))

    complete = ShellComplete(harken, {}, "harken", "_HARKEN_COMPLETE")
    named = [item.value for item in complete.get_completions(["sessions", "--project"], "")]
    assert ["api"] == named, "two folders of one name are offered once"
    assert {"/work/team/api", "/work/else/api"} == offered("sessions", "--project", "/wo")


def test_formats_names_and_sessions_are_offered_where_they_belong(kept: Repo) -> None:
    assert {"claude-code-v1", "claude-stream-v1"} <= offered("materialize", "review", "--format", "claude")
    assert {"review"} == offered("branch", "")
    assert {"winter-1"} == offered("sessions", "")
    assert {"winter-1", "w"} == offered("view", "dialog", "w"), "a file, by the shell, or a session"
    assert {"codex"} == offered("sessions", "--runtime", "cod") == offered("resume", "review", "--in", "cod")


REFS = {"ref", "a", "b", "start", "parent", "stop"}
SESSIONS = {"session", "sessions", "session_id", "prefix"}
AGENTS = {"agent", "agents"}
RUNTIMES = {"runtime", "runtimes"}


def offered_for(words: str, param: click.Parameter) -> set[str]:
    """What is offered for that parameter, which may be an argument behind others."""
    if isinstance(param, click.Option):
        return offered(*words.split(), param.opts[0], "")
    arguments = [one for one in LEAVES[words].params if isinstance(one, click.Argument)]
    before = ["winter-1"] * arguments.index(param)
    return offered(*words.split(), *before, "")


class TestEveryPlaceForANameIsCompleted:
    @pytest.mark.parametrize(
        ("kinds", "expected"),
        [(REFS, "review"), (SESSIONS, "winter-1"), (AGENTS, "codex"), (RUNTIMES, "codex")],
        ids=["REF", "SESSION", "AGENT", "RUNTIME"],
    )
    def test_wherever_one_may_stand(self, kept: Repo, kinds: set[str], expected: str) -> None:
        places = [
            (words, param)
            for words, one in LEAVES.items()
            for param in one.params
            if param.name in kinds and not getattr(param, "is_flag", False)
        ]

        assert len(places) >= 4
        assert [] == [f"{words} {param.name}" for words, param in places if expected not in offered_for(words, param)]

    def test_agents_of_a_log_are_offered_without_a_store(self, tmp_path: Path) -> None:
        log = write_log(tmp_path / "cafe.jsonl", cafe())

        assert {"Jack", "Jill"} == offered("view", "dialog", str(log), "J")

    def test_agents_of_a_session_document_are_offered_without_a_store(self, tmp_path: Path) -> None:
        (tmp_path / "a.json").write_text(json.dumps(multi()), "utf-8")

        assert {"builder"} == offered("std", "show", str(tmp_path / "a.json"), "--agent", "b")
        assert set() == offered("std", "show", str(tmp_path / "b.json"), "--agent", "b")

    def test_how_far_back_is_a_word_or_a_ref(self, kept: Repo) -> None:
        assert {"compaction", "root", "review"} <= offered("materialize", "review", "--stop", "")


def test_another_store_is_looked_at_where_one_is_named(kept: Repo, tmp_path: Path) -> None:
    assert set() == offered("--store", str(tmp_path / "other.db"), "fork", "")
    assert not (tmp_path / "other.db").exists()


def test_a_store_that_is_none_offers_nothing(where: Path) -> None:
    where.parent.mkdir(parents=True, mode=0o700)
    where.write_bytes(b"this is no database, and never was one" * 100)

    assert set() == offered("fork", "")


def test_a_query_is_offered_filters_and_the_values_that_the_store_has(kept: Repo) -> None:
    kept.index.catch_up()

    assert {"role:", "runtime:"} == offered("search", "r")
    assert {"tool:Read"} == offered("search", "tool:")
    assert {"role:human"} == offered("search", "role:h")
    assert {"session:winter-1"} == offered("search", "session:wi")
