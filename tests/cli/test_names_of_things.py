"""One grammar for names: every command that can answer takes every kind of name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harken.repo import Repo
from harken.store import SessionRow
from support.claude_lines import assistant, user
from support.contexts import keep, turn

Run = Any
SESSION = "3f2a91bc-0000-4000-8000-000000000001"
AGENT = f"{SESSION}/helper"


@pytest.fixture
def names(repo: Repo, tmp_path: Path) -> dict[str, str]:
    """A session of two turns with a sub-agent, an older tip, a branch and a tag; and each way to name one of them."""
    facts = {"session_id": SESSION, "template": "claude-code"}
    first = keep(repo, turn(0), **facts)
    older = keep(repo, turn(9), first, template="claude-code")
    tip = keep(repo, turn(1), first, **facts)
    below = keep(repo, turn(5), template="claude-code", principal="p")
    with repo.store.write() as writer:
        row = repo.sessions(SESSION)[0]
        writer.save_session(msgspec.structs.replace(row, tip=tip.id, older=(older.id,)))
        helper = SessionRow(session=AGENT, runtime="claude-code", parent=SESSION, agent="helper")
        writer.save_session(msgspec.structs.replace(helper, tip=below.id))
    repo.fork(tip, "review")
    repo.tag(first, "begun")
    records = [user("u1", None, "hello"), assistant("a1", "u1", "hi", "m1")]
    file = tmp_path / "talk.jsonl"
    file.write_text("".join(json.dumps(record | {"sessionId": "in-a-file"}) + "\n" for record in records))
    return {
        "a session": SESSION,
        "its beginning": SESSION[:8],
        "an agent": AGENT,
        "an agent of a beginning": f"{SESSION[:8]}/helper",
        "a commit": tip.short,
        "a full name": tip.id,
        "a few digits": first.id[:10],
        "a branch": "review",
        "a tag": "begun",
        "an older tip": f"{SESSION[:8]}~1",
        "a message": f"{SESSION[:8]}@m0b",
        "a file": str(file),
    }


LOOKING = [
    *(["log", "{}"], ["log", "--graph", "{}"], ["show", "{}"], ["diff", "{}", "{}"], ["materialize", "{}"]),
    *(["agents", "{}"], ["stats", "{}"], ["view", "timeline", "{}"], ["view", "tree", "{}"], ["view", "dialog", "{}"]),
    ["export", "{}", "--to", "txt", "-o", "-"],
]
CHANGING = [
    *(["fork", "{}", "--name", "n-{n}"], ["tag", "t-{n}", "{}"], ["branch", "b-{n}", "{}"], ["pin", "{}"]),
    *(["annotate", "{}", "a remark"], ["compact", "{}"], ["snapshot", "{}"]),
    ["resume", "{}", "--in", "claude-code", "--home", "home"],
]


def called(run: Run, words: list[str], names: dict[str, str]) -> dict[str, Any]:
    return {kind: run(*[word.format(name, n=n) for word in words]) for n, (kind, name) in enumerate(names.items())}


@pytest.mark.parametrize("words", LOOKING, ids=" ".join)
def test_whoever_looks_may_name_it_in_any_way(run: Run, names: dict[str, str], words: list[str]) -> None:
    done = called(run, words, names)

    assert dict.fromkeys(names, 0) == {kind: one.code for kind, one in done.items()}
    assert [] == [kind for kind, one in done.items() if not one.data]


@pytest.mark.parametrize("words", CHANGING, ids=" ".join)
def test_whoever_changes_something_may_name_all_that_is_in_the_store(
    run: Run, names: dict[str, str], words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = names.pop("a file")

    done = called(run, words, names)
    refused = run(*[word.format(file, n=99) for word in words])

    assert dict.fromkeys(names, 0) == {kind: one.code for kind, one in done.items()}
    assert (3, True) == (refused.code, f"`harken import {file}`" in refused.err)


def test_all_names_of_a_commit_give_that_commit(repo: Repo, run: Run, names: dict[str, str]) -> None:
    found = {kind: run("show", "--json", name).json[0]["id"] for kind, name in names.items() if kind != "a file"}

    tip, first = repo.commit("review").id, repo.commit("begun").id
    assert {tip} == {found[kind] for kind in ("a session", "its beginning", "a commit", "a full name", "a branch")}
    assert {first} == {found[kind] for kind in ("a few digits", "a tag", "a message")}
    assert found["an agent"] == found["an agent of a beginning"] not in (tip, first)


def test_a_message_is_traced_by_one_word_or_two(run: Run, names: dict[str, str]) -> None:
    expected = run("trace", "--json", SESSION, "m0b").json

    assert expected and expected == run("trace", "--json", names["a message"]).json
    assert 2 == run("trace", f"{SESSION}@").code


@pytest.mark.parametrize("words", [["show"], ["stats"], ["agents"], ["view", "dialog"]], ids=" ".join)
def test_a_branch_comes_before_a_session_whose_id_begins_like_it(
    repo: Repo, run: Run, names: dict[str, str], words: list[str]
) -> None:
    keep(repo, turn(8), session_id="review-of-something-else", template="claude-code")

    assert run(*words, SESSION, "--json").json == run(*words, "review", "--json").json


class TestAFileForARef:
    def test_a_name_in_the_store_comes_before_a_file_of_that_name(
        self, repo: Repo, run: Run, names: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        Path("review").write_bytes(Path(names["a file"]).read_bytes())

        assert repo.commit("review").id == run("show", "--json", "review").json[0]["id"]

    def test_it_needs_no_store_and_makes_none(self, run: Run, where: Path, tmp_path: Path) -> None:
        file = tmp_path / "talk.jsonl"
        file.write_text(json.dumps(user("u1", None, "hello") | {"sessionId": "in-a-file"}) + "\n")

        assert "hello" in run("log", str(file)).out
        assert not where.exists()

    def test_beside_one_in_the_store_it_says_what_to_do(self, run: Run, names: dict[str, str]) -> None:
        done = run("diff", names["a file"], "review")

        assert (2, True) == (done.code, "`harken import " in done.err)

    @pytest.mark.parametrize("command", ["log", "show", "materialize"])
    def test_one_that_holds_no_session_is_refused(
        self, names: dict[str, str], run: Run, tmp_path: Path, command: str
    ) -> None:
        (tmp_path / "other.jsonl").write_text("{}\n")

        done = run(command, str(tmp_path / "other.jsonl"))

        assert (2, "") == (done.code, done.out)
        assert "cannot be shown: " in done.err


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize("command", ["log", "stats", "export --to md"])
def test_a_path_that_names_nothing_is_told_for_what_it_is(run: Run, tmp_path: Path, command: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()

    for word, told in (
        (str(folder), "it is a folder; `harken import "),
        (str(folder / "s.jsonl"), "nor is there a file"),
    ):
        done = run(*command.split(), word)

        assert (3, "") == (done.code, done.out)
        assert told in done.err


class TestAViewOfAnEarlierTime:
    """A session as it stood at a commit: what had been said up to there, and nothing after."""

    def said(self, run: Run, name: str) -> list[str]:
        return [one["content"] for one in run("view", "dialog", "--json", name).json]

    def test_a_view_ends_at_the_commit(self, run: Run, names: dict[str, str]) -> None:
        asked = ["question 0", "answer 0"]

        assert asked == self.said(run, "begun") == self.said(run, names["a message"])
        assert [*asked, "question 9", "answer 9"] == self.said(run, names["an older tip"])
        assert {*asked, "question 1", "answer 1"} <= {*self.said(run, "review")}

    def test_where_a_session_stands_it_is_the_session(self, run: Run, names: dict[str, str]) -> None:
        for view in ("timeline", "tree", "dialog"):
            whole = run("view", view, "--json", SESSION).json
            assert whole and whole == run("view", view, "--json", "review").json

    def test_a_branch_that_went_on_by_itself_is_shown_whole(self, repo: Repo, run: Run, names: dict[str, str]) -> None:
        alone = keep(repo, turn(7), repo.commit("begun"))
        repo.fork(alone, "aside")

        assert ["question 0", "answer 0", "question 7", "answer 7"] == self.said(run, "aside")

    def test_agents_that_were_made_later_are_not_there_yet(self, repo: Repo, run: Run, tmp_path: Path) -> None:
        with repo.session(tmp_path / "cafe.jsonl") as session:
            session.log_agent_created("a1")
            session.log_transcript_entry("a1", {"role": "user", "content": "hello"})
            before = session.log_transcript_entry("a1", {"role": "assistant", "content": "well"})
            session.log_transcript_entry("a1", {"role": "user", "content": "and then?"})
            session.log_agent_created("a2", name="Jill")
            session.log_transcript_entry("a2", {"role": "user", "content": "you are Jill"})
            session.log_transcript_entry("a2", {"role": "assistant", "content": "I am"})
            session.log_transcript_entry("a1", {"role": "assistant", "content": "done"})
        (name,) = [row.session for row in repo.sessions() if not row.parent]

        agents = [one["agent_id"] for one in run("view", "tree", "--json", f"{name}@{before}").json]

        assert ["a1"] == agents
        assert 2 == len(run("view", "tree", "--json", name).json)

    def test_a_sub_agents_later_words_are_left_out(self, repo: Repo, run: Run, names: dict[str, str]) -> None:
        first = keep(repo, turn(2, time=1_000_000_000), session_id="timed", template="claude-code")
        keep(repo, turn(3, time=9_000_000_000), first, session_id="timed", template="claude-code")
        early = keep(repo, turn(4, time=500_000_000), template="claude-code")
        both = keep(repo, turn(6, time=8_000_000_000), early, template="claude-code")
        with repo.store.write() as writer:
            row = SessionRow(session="timed/x", runtime="claude-code", parent="timed", agent="x", tip=both.id)
            writer.save_session(row)

        whole, then = (
            {one["content"] for one in run("view", "timeline", "--json", ref).json} for ref in ("timed", first.short)
        )

        assert {"answer 2", "answer 3", "answer 4", "answer 6"} <= whole
        assert {"answer 2", "answer 4"} == {text for text in then if text.startswith("answer")}
