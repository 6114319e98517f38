"""What every `Repo` must do for principals: know when their sessions begin and end, keep what is theirs, count it."""
# ruff: noqa: SIM300  (what is expected stands on the left)

from __future__ import annotations

import pytest

from harken.errors import BadRequest, NotFound
from harken.repo import Repo

from .turns import keep

MORNING, NOON = "2026-02-22T08:00:00Z", "2026-02-22T12:00:00Z"


class RepoPrincipalsContract:
    """The part of `RepoContract` that is about principals."""

    def test_a_session_is_running_until_it_is_over(self, repo: Repo) -> None:
        begun = repo.start_session(
            "s1", principal="team/builder", machine="desk", template="coder", ticket_id="17", time=MORNING
        )
        assert ("team/builder", "s1", "desk", "coder", "17", None, "") == (
            begun.principal,
            begun.session,
            begun.machine,
            begun.template,
            begun.ticket_id,
            begun.ended,
            begun.context,
        )
        assert [begun] == repo.running_sessions("team/builder") == repo.running_sessions()
        assert begun == repo.start_session("s1", principal="team/builder", time=NOON)

        ended = repo.end_session("s1", principal="team/builder", time=NOON)

        assert (begun.started, False) == (ended.started, ended.is_running)
        assert (ended, []) == (repo.latest_session("team/builder"), repo.running_sessions())
        with pytest.raises(NotFound):
            repo.end_session("s1", principal="team/builder")
        assert None is repo.latest_session("nobody")

    def test_the_latest_session_is_told_with_its_last_context(self, repo: Repo) -> None:
        repo.start_session("s1", principal="me", time=MORNING)
        alone = keep(repo, 0, principal="me")
        latest = repo.latest_session("me")
        assert latest is not None
        assert alone.id == latest.context

        tip = keep(repo, 1, principal="me", session_id="s1")
        repo.start_session("s2", principal="me", time=NOON)
        repo.end_session("s1", principal="me", time=NOON)

        latest = repo.latest_session("me")
        assert latest is not None
        assert ("s1", tip.id) == (latest.session, latest.context)
        assert ["s2"] == [one.session for one in repo.running_sessions("me")]
        assert tip == repo.resolve("me"), "what is said of a session is no context of its principal's"

    def test_bytes_are_kept_by_a_key_and_what_was_there_before_stays(self, repo: Repo) -> None:
        first = repo.put_key("me", "notes/plan.md", b"one", media_type="text/markdown", session="s1", time=MORNING)
        second = repo.put_key("me", "notes/plan.md", artifact=repo.put(b"two"))
        repo.put_key("me", "todo", b"")
        repo.put_key("you", "todo", b"yours")

        assert ("notes/plan.md", 3, "text/markdown", "s1") == (first.key, first.size, first.media_type, first.session)
        assert second == repo.get_key("me", "notes/plan.md")
        assert (b"two", b"one") == (repo.get(second.artifact), repo.get(first.artifact))
        assert [second.commit, first.commit] == [commit.id for commit in repo.history(second.commit)]
        assert ["notes/plan.md", "todo"] == [one.key for one in repo.keys("me")]
        assert ["notes/plan.md"] == [one.key for one in repo.keys("me", "no")]

    def test_a_key_that_was_deleted_leads_nowhere(self, repo: Repo) -> None:
        for whose in ("me", "you"):
            repo.put_key(whose, "todo", b"x")
        kept = repo.put_key("me", "plan", b"y")

        repo.delete_key("me", "todo")

        assert (["plan"], ["todo"]) == ([one.key for one in repo.keys("me")], [one.key for one in repo.keys("you")])
        for call in (repo.get_key, repo.delete_key):
            with pytest.raises(NotFound):
                call("me", "todo")
        repo.gc()
        assert b"y" == repo.get(kept.artifact)

    @pytest.mark.parametrize("key", ["", "/", "a//b", "..", "x" * 200, "a\nb", "\ud800"])
    def test_what_can_be_no_key_is_refused(self, repo: Repo, key: str) -> None:
        for principal, name, data in (("me", key, b"x"), ("", "a", b"x"), ("me", "a", None)):
            with pytest.raises(BadRequest):
                repo.put_key(principal, name, data)
        assert 0 == repo.last_change()

    def test_a_principal_is_counted_live_and_in_all(self, repo: Repo) -> None:
        repo.start_session("now", principal="me", time=MORNING)
        for number, session in enumerate(("now", "before")):
            first = keep(repo, number, principal="me", session_id=session)
            keep(repo, number + 5, first.id, principal="me", session_id=session)
        keep(repo, 2, principal="me")
        keep(repo, 3, principal="you", session_id="theirs")

        mine, everybody = repo.principal_metrics("me"), repo.principal_metrics()

        assert ("me", ("now",)) == (mine.principal, mine.running)
        assert (1, 2, 4) == (mine.live.sessions, mine.live.commits, mine.live.messages)
        assert (2, 5, 10) == (mine.total.sessions, mine.total.commits, mine.total.messages)
        assert (3, 6) == (everybody.total.sessions, everybody.total.commits)
        assert mine.total.tokens > mine.live.tokens > 0
        keep(repo, 4, principal="me")
        repo.end_session("now", principal="me")
        after = repo.principal_metrics("me")
        assert (0, 6, 12) == (after.live.commits, after.total.commits, after.total.messages)
