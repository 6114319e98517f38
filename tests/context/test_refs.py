"""What a REF names, in which order, and what is said when it names nothing."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import harken
from harken.context.refs import _tip
from harken.errors import Ambiguous, BadRequest, Corrupt, NotFound
from harken.events import Prompt, Response
from harken.repo import Repo
from harken.store import Draft, SessionRow
from support.contexts import chain, keep, memory_repo, turn


@pytest.fixture
def repo() -> Repo:
    return memory_repo()


class TestACommit:
    def test_is_named_by_any_unique_prefix(self, repo: Repo) -> None:
        commit = chain(repo, [1])

        for ref in (commit, commit.short, commit.id, f"ctx-{commit.id}", f"ctx-{commit.id[:4]}", commit.id[:4]):
            assert commit.id == repo.commit(ref).id

    def test_is_named_in_capitals_too(self, repo: Repo) -> None:
        commit = chain(repo, [1])

        assert commit.id == repo.commit("ctx-" + commit.id[:12].upper()).id

    def test_a_prefix_of_several_lists_them(self, repo: Repo) -> None:
        with repo.store.write() as writer:
            for number in range(1500):
                writer.commit(Draft(artifact=writer.put(b"%d" % number), format="morse-v1", time=number))
        digits = [commit.id[:4] for commit in repo.store.commits()]
        shared = max(set(digits), key=digits.count)

        with pytest.raises(Ambiguous, match="several commits begin with") as caught:
            repo.commit(f"ctx-{shared}")

        assert f"ctx-{shared}" in str(caught.value.hint)

    @pytest.mark.parametrize("prefix", ["", "ctx-"])
    @pytest.mark.parametrize("length", [1, 2, 3])
    def test_needs_four_digits(self, repo: Repo, prefix: str, length: int) -> None:
        """#48: a REF of one digit was accepted, and something was attached to the wrong commit."""
        commit = chain(repo, [1])

        with pytest.raises(NotFound) as caught:
            repo.commit(prefix + commit.id[:length])

        assert "has at least 4 characters" in str(caught.value.hint)


class TestANameIsStrongerThanWhatComesAfterIt:
    def test_a_branch_that_looks_like_a_prefix(self, repo: Repo) -> None:
        first, second = chain(repo, [1]), chain(repo, [2])
        repo.fork(first, second.id[:6])

        assert first.id == repo.commit(second.id[:6]).id

    def test_no_branch_is_called_like_a_commit(self, repo: Repo) -> None:
        """#21"""
        first, second = chain(repo, [1]), chain(repo, [2])
        for name in (second.short, second.short.upper(), second.id):
            with pytest.raises(BadRequest):
                repo.fork(first, name)

        assert second.id == repo.commit(second.short).id

    def test_a_branch_may_begin_like_a_commit(self, repo: Repo) -> None:
        commit = chain(repo, [1])
        repo.fork(commit, "ctx-of-the-reviewer")

        assert commit.id == repo.commit("ctx-of-the-reviewer").id

    def test_a_tag_called_like_a_session(self, repo: Repo) -> None:
        first = keep(repo, turn(1), session_id="monday")
        second = keep(repo, turn(2), first, session_id="monday")
        repo.tag(first, "monday")

        assert first.id == repo.commit("monday").id != second.id


class TestASession:
    def test_is_its_newest_commit(self, repo: Repo) -> None:
        tip = keep(repo, turn(2), keep(repo, turn(1), session_id="s/1"), session_id="s/1")

        assert tip.id == repo.commit("s/1").id

    def test_is_found_by_a_unique_beginning(self, repo: Repo) -> None:
        tip = keep(repo, turn(1), session_id="winter-evening")

        assert tip.id == repo.commit("winter").id

    @pytest.mark.parametrize("ref", ["w", "wi", "win", "win@m1a", "win~0", "win#created"])
    def test_needs_four_characters_of_its_id(self, repo: Repo, ref: str) -> None:
        """#48: one character was accepted, and a remark was attached to the wrong session."""
        keep(repo, turn(1), session_id="winter-evening")

        with pytest.raises(NotFound):
            repo.commit(ref)

    @pytest.mark.parametrize("find", [Repo.commit, Repo.agents])
    def test_of_which_too_little_is_given_says_how_much_is_needed(self, repo: Repo, find: Callable[..., Any]) -> None:
        """#48"""
        keep(repo, turn(1), session_id="winter-evening")

        with pytest.raises(NotFound) as caught:
            find(repo, "win")

        assert "has at least 4 characters" in str(caught.value.hint)

    def test_of_a_short_id_is_named_by_all_of_it(self, repo: Repo) -> None:
        """#48"""
        short = keep(repo, turn(1), session_id="w")
        keep(repo, turn(2), session_id="winter-evening")

        assert [short.id] * 2 == [repo.commit("w").id, repo.commit("w@m1a").id]

    def test_at_a_message_is_found_by_a_unique_beginning_too(self, repo: Repo) -> None:
        first = keep(repo, turn(1), session_id="winter-evening")
        keep(repo, turn(2), first, session_id="winter-evening")

        assert first.id == repo.commit("winter@m1a").id

    def test_two_that_begin_alike_are_listed(self, repo: Repo) -> None:
        keep(repo, turn(1), session_id="winter-1")
        keep(repo, turn(2), session_id="winter-2")

        with pytest.raises(Ambiguous) as caught:
            repo.commit("winter")

        assert "it could be: winter-1, winter-2" == caught.value.hint

    @pytest.mark.parametrize("digits", [4, 8])
    def test_that_begins_like_a_commit_of_another_is_not_mistaken_for_it(self, repo: Repo, digits: int) -> None:
        """`log`, `resume` and `forget` took the commit, `stats` and `export` the session."""
        other = keep(repo, turn(1), session_id="winter")
        session = f"{other.id[:8]}-0000-4000-8000-000000000000"
        tip = keep(repo, turn(2), session_id=session)
        ref = other.id[:digits]

        with pytest.raises(Ambiguous, match="a session and a commit begin with") as caught:
            repo.commit(ref)

        assert f"it could be: {session}, {other.short}" == caught.value.hint
        assert other.id == repo.commit(f"ctx-{ref}").id
        assert tip.id == repo.commit(session[:9]).id
        assert session == repo.agents(ref)[0].session

    def test_at_a_message_is_the_commit_that_holds_it(self, repo: Repo) -> None:
        first = keep(repo, turn(1), session_id="s")
        second = keep(repo, turn(2), first, session_id="s")

        assert first.id == repo.commit("s@m1d").id
        assert second.id == repo.commit("s@m2a").id

    def test_at_a_place_is_the_commit_that_begins_there_where_nobody_can_read_it(self, repo: Repo) -> None:
        first = repo.checkpoint(b"0123456789", format="morse-v1", session_id="s")
        second = repo.checkpoint(b"abcdef", format="morse-v1", parent=first, session_id="s")

        assert [first.id, second.id] == [repo.commit("s@@0").id, repo.commit("s@@10").id]

    @pytest.mark.parametrize("place", [9, 11, 16, 10**17])
    def test_at_a_place_where_nothing_begins_is_not_found(self, repo: Repo, place: int) -> None:
        first = repo.checkpoint(b"0123456789", format="morse-v1", session_id="s")
        repo.checkpoint(b"abcdef", format="morse-v1", parent=first, session_id="s")

        with pytest.raises(NotFound, match=f"no record of s begins at @{place}"):
            repo.commit(f"s@@{place}")

    def test_at_an_event_without_a_name_is_the_commit_that_holds_it(self, repo: Repo) -> None:
        """Events that were stored without ids are counted."""
        first = repo.checkpoint([Prompt(content="a"), Response(content="b")], session_id="s")
        second = repo.checkpoint([Prompt(content="c"), Response(content="d")], parent=first, session_id="s")

        shown = [(event.message_id, event.content) for commit in (first, second) for event in repo.delta(commit)]
        viewed = [event.message_id for event in repo.events("s") if event.kind != "agent_created"]

        assert [("@0", "a"), ("@1", "b"), ("@2", "c"), ("@3", "d")] == shown
        assert ["@0", "@1", "@2", "@3"] == viewed
        assert [first.id, first.id, second.id, second.id] == [repo.commit(f"s@{id}").id for id, _ in shown]

    def test_at_a_message_of_a_request_counts_messages(self, repo: Repo) -> None:
        """Requests are joined message by message, and so are their places."""
        body = b'{"messages":[{"role":"user","content":"%s"},{"role":"assistant","content":"ok"}]}'
        first = repo.checkpoint(body % b"a", format="anthropic-messages-v1", session_id="s")
        second = repo.checkpoint(body % b"b", format="anthropic-messages-v1", parent=first, session_id="s")

        assert ["@0", "@1", "@2", "@3"] == [event.message_id for event in repo.conversation("s")]
        assert ["@2", "@3"] == [event.message_id for event in repo.delta(second)]
        assert [first.id, second.id] == [repo.commit("s@@1").id, repo.commit("s@@2").id]

    def test_at_a_line_without_a_name_is_the_commit_that_holds_it(self, repo: Repo) -> None:
        """A log may lack ids; the views call such a line after its place, and so does the REF."""
        line = b'{"event_type":"transcript_entry","agent_id":"a","role":"user","content":"x"}\n'
        first = repo.checkpoint(line, format="session-log-v2", session_id="s")
        second = repo.checkpoint(line, format="session-log-v2", parent=first, session_id="s")

        ids = repo.view("s").index.ids

        assert ["@0", f"@{len(line)}"] == ids
        assert [first.id, second.id] == [repo.commit(f"s@{id}").id for id in ids]

    def test_at_a_name_that_is_spelled_with_escapes(self, repo: Repo) -> None:
        line = b'{"event_type":"transcript_entry","message_id":"m\\u0031","agent_id":"a","role":"user","content":"x"}\n'
        commit = repo.checkpoint(line, format="session-log-v2", session_id="s")

        assert commit.id == repo.commit("s@m1").id

    def test_at_a_place_of_an_older_tip_is_one_in_that_chain(self, repo: Repo) -> None:
        older = repo.checkpoint(b"0123456789", format="morse-v1", session_id="other")
        keep(repo, turn(1), session_id="s")
        with repo.store.write() as writer:
            writer.save_session(msgspec.structs.replace(repo.store.find_session("s"), older=(older.id,)))

        assert older.id == repo.commit("s~1@@0").id

    def test_may_have_an_at_sign_in_its_own_name(self, repo: Repo) -> None:
        tip = keep(repo, turn(1), session_id="me@home-17")

        assert tip.id == repo.commit("me@home-17").id == repo.commit("me@home-17@m1a").id

    def test_without_such_a_message_says_so(self, repo: Repo) -> None:
        keep(repo, turn(1), session_id="s")

        with pytest.raises(NotFound, match="session s holds no message 'm77'"):
            repo.commit("s@m77")

    def test_is_found_with_its_agent_by_a_unique_beginning(self, repo: Repo) -> None:
        keep(repo, turn(1), session_id="winter-evening")
        agent = keep(repo, turn(2), session_id="winter-evening/jill")
        with repo.store.write() as writer:
            parent, name = "winter-evening", "winter-evening/jill"
            writer.save_session(SessionRow(session=name, runtime="r", parent=parent, agent="jill", tip=agent.id))

        assert agent.id == repo.commit("winter-evening/jill").id == repo.commit("winter-ev/jill").id

    @pytest.mark.parametrize("ref", ["winter-evening", "winter", "winter-evening@m1a", "winter-evening~0"])
    @pytest.mark.parametrize("find", [Repo.commit, Repo.agents, Repo.events, Repo.materialize])
    def test_of_which_only_a_sub_agent_is_there_is_not_that_sub_agent(
        self, repo: Repo, find: Callable[..., Any], ref: str
    ) -> None:
        """The file of a sub-agent was imported alone, or a repair lost the session's row."""
        agent = keep(repo, turn(1), session_id="winter-evening/jill")
        with repo.store.write() as writer:
            name, parent = "winter-evening/jill", "winter-evening"
            row = SessionRow(session=name, runtime="r", parent=parent, agent="jill", tip=agent.id, version=1)
            writer.save_session(row)

        with pytest.raises(NotFound) as caught:
            find(repo, ref)

        assert "winter-evening/jill" in str(caught.value.hint)
        assert agent.id == repo.commit("winter-evening/j").id

    def test_of_which_only_sub_agents_are_there_names_them(self, repo: Repo) -> None:
        for name in ("winter-evening/jack", "winter-evening/jill"):
            keep(repo, turn(1), session_id=name)

        with pytest.raises(NotFound, match="of session 'winter-evening' only sub-agents are in the store") as caught:
            repo.commit("winter-evening")

        assert "they are: winter-evening/jack, winter-evening/jill" == caught.value.hint

    def test_whose_tip_is_not_there_is_damaged_and_not_unknown(self, repo: Repo) -> None:
        """#16"""
        keep(repo, turn(1), session_id="s")
        (row,) = repo.store.sessions()

        with pytest.raises(Corrupt, match="ends at a commit that is not in the store"):
            _tip(repo.store, row, "0" * 64)


class TestWhatADamagedStoreNames:
    """#16: damage is told as damage; it never makes a REF name something else, or nothing."""

    @pytest.mark.parametrize("kind", ["branch", "tag"])
    def test_a_name_whose_commit_is_lost_falls_through_to_no_other(self, tmp_path: Path, kind: str) -> None:
        with harken.open(tmp_path / "s.db") as repo:
            first, second = chain(repo, [1]), chain(repo, [2])
            (repo.fork if kind == "branch" else repo.tag)(first, second.id[:6])
        lose(tmp_path / "s.db", first.id)

        with harken.open(tmp_path / "s.db") as repo, pytest.raises(Corrupt) as caught:
            repo.materialize(second.id[:6])

        assert 9 == caught.value.exit_code

    @pytest.mark.parametrize("ref", ["s", "s@m1a", "s~0", "winter-evening"])
    def test_a_session_whose_tip_is_lost_is_damaged_and_not_unknown(self, tmp_path: Path, ref: str) -> None:
        session = ref if ref.startswith("winter") else "s"
        with harken.open(tmp_path / "s.db") as repo:
            tip = keep(repo, turn(1), session_id=session)
        lose(tmp_path / "s.db", tip.id)

        with harken.open(tmp_path / "s.db") as repo, pytest.raises(Corrupt) as caught:
            repo.commit(ref)

        assert 9 == caught.value.exit_code


def lose(path: Path, commit: str) -> None:
    """Take a commit's row out of the store behind its back."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert 1 == db.execute("DELETE FROM commits WHERE id = ?", (bytes.fromhex(commit),)).rowcount
        db.commit()


class TestAnOlderTip:
    def test_is_counted_back_from_where_the_session_stands(self, repo: Repo) -> None:
        commits = [keep(repo, turn(number), session_id=f"other-{number}") for number in range(3)]
        tip = keep(repo, turn(9), session_id="winter-evening")
        with repo.store.write() as writer:
            row = msgspec.structs.replace(repo.store.find_session("winter-evening"), older=tuple(c.id for c in commits))
            writer.save_session(row)

        named = [repo.commit(f"winter~{number}").id for number in range(4)]

        assert [tip.id, *(commit.id for commit in commits)] == named

    def test_that_does_not_exist_is_not_found(self, repo: Repo) -> None:
        keep(repo, turn(1), session_id="s")

        with pytest.raises(NotFound, match="session s has no older tip 1"):
            repo.commit("s~1")


class TestNothing:
    def test_lists_what_comes_close(self, repo: Repo) -> None:
        repo.fork(chain(repo, [1]), "review")

        with pytest.raises(NotFound, match="there is no commit, branch, tag or session 'reviw'") as caught:
            repo.commit("reviw")

        assert "close to it: review" == caught.value.hint

    def test_says_where_to_look_where_nothing_comes_close(self, repo: Repo) -> None:
        chain(repo, [1])

        with pytest.raises(NotFound) as caught:
            repo.commit("zzz")

        assert {"sessions", "log", "branch", "tag"} == set(re.findall("`harken ([a-z]+)`", str(caught.value.hint)))

    def test_of_an_agent_in_a_session_without_any_says_so(self, repo: Repo) -> None:
        keep(repo, turn(1), session_id="session-1")

        with pytest.raises(NotFound) as caught:
            repo.commit("session-1/nobody")

        assert "session session-1 has no sub-agents" == caught.value.hint

    def test_in_an_empty_store_says_how_to_fill_it(self, repo: Repo) -> None:
        with pytest.raises(NotFound) as caught:
            repo.commit("zzz")

        assert "harken import" in str(caught.value.hint)

    @pytest.mark.parametrize("ref", ["", "s@"])
    def test_a_ref_that_says_nothing_is_refused(self, repo: Repo, ref: str) -> None:
        keep(repo, turn(1), session_id="s")

        with pytest.raises(BadRequest):
            repo.commit(ref)

    @pytest.mark.parametrize("ref", ["@", "@@", "ctx-", "%", "'; drop table commits; --", "\ud800", "a" * 5000])
    def test_odd_texts_are_not_found(self, repo: Repo, ref: str) -> None:
        keep(repo, turn(1), session_id="s")

        with pytest.raises((NotFound, BadRequest)):
            repo.commit(ref)
