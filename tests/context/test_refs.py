"""What a REF names, in which order, and what is said when it names nothing."""

from __future__ import annotations

import msgspec
import pytest

from harken.context.refs import _tip
from harken.errors import Ambiguous, BadRequest, Corrupt, NotFound
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

        assert "at least 4 digits of a commit's name are needed" == caught.value.hint


class TestANameIsStrongerThanWhatComesAfterIt:
    def test_a_branch_that_looks_like_a_prefix(self, repo: Repo) -> None:
        first, second = chain(repo, [1]), chain(repo, [2])
        repo.fork(first, second.id[:6])

        assert first.id == repo.commit(second.id[:6]).id

    def test_a_commit_that_looks_like_a_branch(self, repo: Repo) -> None:
        first, second = chain(repo, [1]), chain(repo, [2])
        repo.fork(first, second.short)

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

    def test_at_a_message_is_the_commit_that_holds_it(self, repo: Repo) -> None:
        first = keep(repo, turn(1), session_id="s")
        second = keep(repo, turn(2), first, session_id="s")

        assert first.id == repo.commit("s@m1d").id
        assert second.id == repo.commit("s@m2a").id

    def test_at_a_place_is_the_commit_with_that_byte(self, repo: Repo) -> None:
        first = repo.checkpoint(b"0123456789", format="morse-v1", session_id="s")
        second = repo.checkpoint(b"abcdef", format="morse-v1", parent=first, session_id="s")

        assert [first.id, second.id] == [repo.commit("s@@9").id, repo.commit("s@@10").id]

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

    def test_whose_tip_is_not_there_is_damaged_and_not_unknown(self, repo: Repo) -> None:
        """#16"""
        keep(repo, turn(1), session_id="s")
        (row,) = repo.store.sessions()

        with pytest.raises(Corrupt, match="ends at a commit that is not in the store"):
            _tip(repo.store, row, "0" * 64)


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

    def test_lists_something_where_nothing_comes_close(self, repo: Repo) -> None:
        commit = chain(repo, [1])

        with pytest.raises(NotFound) as caught:
            repo.commit("zzz")

        assert f"there are: {commit.short}, …" == caught.value.hint

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
