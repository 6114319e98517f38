"""What every `Repo` must do, whether its store lies in this process, in a file or behind a wire.

    class TestMyRepo(RepoContract):
        @pytest.fixture
        def repo(self):
            with my_package.connect() as repo:
                yield repo

The suite calls methods of `Repo` and nothing else, hands over values that can cross a wire (text, numbers, bytes), and
tells errors apart by their class.
"""
# ruff: noqa: SIM300  (what is expected stands on the left)

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harken.clock import parse_instant
from harken.errors import Ambiguous, BadRecord, BadRequest, Closed, Conflict, NotFound
from harken.events import Prompt, Response
from harken.events.cbor import decode_events, encode_events
from harken.repo import Repo
from harken.repo.arguments import REPO
from harken.store.arguments import parameters, public_methods

from .repo_principals import RepoPrincipalsContract
from .repo_sessions import RepoSessionsContract
from .turns import events_of, grow, keep, talk


def wrong_calls() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every method with every one of its parameters wrong in turn, and the others right."""
    right: dict[Any, Any] = {str: "s", bytes: b"x", bool: True, int: 1, float: 1.0, Mapping: {}}
    right[msgspec.Struct] = Prompt(content="x")
    for name, method in public_methods(Repo):
        kinds = parameters(inspect.unwrap(method), REPO)
        given: dict[str, Any] = {
            one: next((right[each] for each in kind.types if each in right), None if type(None) in kind.types else [])
            for one, kind in kinds.items()
        }
        yield from ((name, one, given | {one: [[1]]}) for one in kinds)


class RepoContract(RepoSessionsContract, RepoPrincipalsContract):
    """Subclass it, and give it a fixture called `repo` that yields a `Repo` on an empty store."""

    # -- keeping and asking ------------------------------------------------------------------------------------

    def test_what_was_kept_is_materialized_again(self, repo: Repo) -> None:
        tip = grow(repo, 3)[-1]

        assert [event for number in range(3) for event in talk(number)] == events_of(repo, tip.id)
        assert [event for number in (2,) for event in talk(number)] == repo.delta(tip.id)

    def test_the_same_commit_twice_is_one(self, repo: Repo) -> None:
        assert keep(repo, 1, machine="m") == keep(repo, 1, machine="m")
        assert 1 == len(list(repo.log()))

    def test_bytes_come_back_by_their_name(self, repo: Repo) -> None:
        artifact = repo.put(b"some bytes")
        made = repo.materialize(grow(repo, 2)[-1].id)

        assert b"some bytes" == repo.get(artifact) == repo.get(f"art-{artifact[:12]}")
        assert made.bytes == repo.get(made.artifact)

    def test_what_was_materialized_comes_back_by_its_name_after_a_gc(self, repo: Repo) -> None:
        """#21"""
        tip = grow(repo, 2)[-1]
        asked: list[tuple[str | None, str | None, str]] = [
            (tip.id, "codex-v1", "compaction"),
            (tip.id, None, "root"),
            (None, None, "compaction"),
        ]
        made = [repo.materialize(ref, format=format, stop=stop) for ref, format, stop in asked]

        for _ in range(2):
            repo.gc()
            assert [one.bytes for one in made] == [repo.get(one.artifact) for one in made]
        assert made[0].bytes == repo.get(f"art-{made[0].artifact[:12]}")

    def test_nothing_is_the_empty_conversation(self, repo: Repo) -> None:
        assert [] == decode_events(repo.materialize(None).bytes)

    def test_the_format_is_told_from_the_bytes(self, repo: Repo) -> None:
        assert "events-v1" == repo.checkpoint(encode_events(talk(1))).format
        with pytest.raises(BadRequest):
            repo.checkpoint(b"dot dash")

    def test_a_commit_is_as_old_as_what_it_holds(self, repo: Repo) -> None:
        """But not older than its parent; it is made now only where nothing in it tells."""
        said, later = (parse_instant(f"2026-02-22T10:0{minute}:00.250000Z") or 0 for minute in (1, 2))
        old = [Prompt(content="question", time=said), Response(content="answer", time=said - 1)]
        data = encode_events(old)
        parent = repo.checkpoint([Prompt(content="later", time=later)])

        made = repo.checkpoint(old), repo.checkpoint(data), repo.checkpoint(artifact=repo.put(data), format="events-v1")

        assert [(said, made[0].id)] * 3 == [(one.time, one.id) for one in made]
        assert later == repo.checkpoint(old, parent=parent).time
        assert later == repo.checkpoint(old, created_at=later).time
        assert later < repo.checkpoint([Prompt(content="question")]).time

    def test_a_commit_goes_by_many_names(self, repo: Repo) -> None:
        commit = keep(repo, 1, session_id="winter")
        repo.fork(commit.id, "review")
        repo.tag("review", "v1")

        for ref in (commit.id, commit.short, commit.id[:12], "review", "v1", "winter", "winter@m1a"):
            assert commit == repo.commit(ref)

    def test_history_and_log_are_newest_first(self, repo: Repo) -> None:
        chain = grow(repo, 4)

        newest = [commit.id for commit in reversed(chain)]
        assert newest == [commit.id for commit in repo.history(chain[-1].id)]
        assert newest == [shown.id for shown in repo.log(chain[-1].id)] == [shown.id for shown in repo.log()]
        assert newest[:2] == [shown.id for shown in repo.log(limit=2)]
        assert [chain[1]] == repo.children(chain[0].id)
        assert set(newest) == {commit.id for commit in repo.family(chain[0].id).commits}

    def test_a_principal_is_found_at_a_time(self, repo: Repo) -> None:
        first, second = keep(repo, 0, principal="me"), keep(repo, 5, principal="me")

        assert first == repo.resolve("me", "2026-02-22T10:22:00Z")
        assert second == repo.resolve("me")
        assert None is repo.resolve("me", "2026-02-22T10:00:00Z")
        assert None is repo.resolve("nobody")

    def test_a_diff_names_what_each_side_has(self, repo: Repo) -> None:
        base = keep(repo, 0)
        here, there = keep(repo, 1, base.id), keep(repo, 2, base.id)

        found = repo.diff(here.id, there.id)

        assert (base, tuple(talk(1)), tuple(talk(2))) == (found.ancestor, found.here, found.there)

    # -- names and words ---------------------------------------------------------------------------------------

    def test_a_branch_moves_along_and_a_tag_stays(self, repo: Repo) -> None:
        first = keep(repo, 0)
        repo.fork(first.id, "review")
        repo.tag(first.id, "v1")

        second = keep(repo, 1, "review")

        assert (second, first) == (repo.commit("review"), repo.commit("v1"))
        assert ["review"] == [name.name for name in repo.names("branch")]
        assert {"review", "v1"} == {name.name for name in repo.names()}

    def test_moves_are_listed_and_taken_back(self, repo: Repo) -> None:
        first, second = keep(repo, 0), keep(repo, 1)
        repo.fork(first.id, "review", who="me", why="a try")
        repo.move("review", second.id, kind="branch", expect=first.id)

        assert [(first.id, second.id), ("", first.id)] == [(m.before, m.after) for m in repo.moves("review")]
        assert ("me", "a try") == (repo.moves()[-1].who, repo.moves()[-1].why)
        assert first.id == repo.undo("review").target
        assert first == repo.commit("review")
        with pytest.raises(BadRequest):
            repo.undo("review", number=1)

    def test_a_name_that_was_removed_comes_back(self, repo: Repo) -> None:
        first = keep(repo, 0)
        repo.tag(first.id, "v1")
        repo.move("v1", None, kind="tag")

        assert None is repo.find_name("v1")
        assert first.id == repo.undo("v1").target

    def test_the_newest_summary_is_shown_and_the_older_stay(self, repo: Repo) -> None:
        commit = keep(repo, 0, summary="first")
        repo.annotate(commit.id, "second", who="me")

        shown = repo.show(commit.id)

        assert ("second", False) == (shown.summary, shown.derived)
        assert ["first", "second"] == [note.value for note in shown.annotations]
        assert repo.show(keep(repo, 1).id).derived

    # -- compaction --------------------------------------------------------------------------------------------

    def test_a_compaction_hides_and_never_loses(self, repo: Repo) -> None:
        tip = grow(repo, 2)[-1]
        repo.fork(tip.id, "b")

        made = repo.compact("b", "in short")

        assert ("compaction", made) == (made.commit_type, repo.commit("b"))
        assert ["in short"] == [getattr(event, "content", "") for event in events_of(repo, "b")]
        assert talk(0) + talk(1) == events_of(repo, "b", "root")
        assert repo.compact(tip.id).id

    def test_a_snapshot_says_the_same(self, repo: Repo) -> None:
        tip = grow(repo, 3)[-1]

        made = repo.snapshot(tip.id)

        assert "snapshot" == made.commit_type
        assert events_of(repo, tip.id) == events_of(repo, made.id)

    # -- looking after the store -------------------------------------------------------------------------------

    def test_a_store_is_sound_and_pins_its_bytes(self, repo: Repo) -> None:
        tip = grow(repo, 3)[-1]

        assert 3 == repo.pin(tip.id)
        assert 1 == repo.pin(tip.id, off=True, only=True)
        report = repo.fsck(read_data=True)
        assert (True, 3) == (report.ok, report.commits)

    def test_a_clean_up_leaves_every_commit_as_it_was(self, repo: Repo) -> None:
        tip = grow(repo, 3)[-1]
        before = events_of(repo, tip.id)

        would, done = repo.gc(dry_run=True), repo.gc()

        assert (True, False) == (would.dry_run, done.dry_run)
        assert before == events_of(repo, tip.id)

    def test_commits_are_described_in_the_order_asked(self, repo: Repo) -> None:
        first, second = grow(repo, 2)
        repo.annotate(first.id, "a remark")

        described = repo.describe([second, first])

        assert [(second.id, True), (first.id, False)] == [(one.id, one.derived) for one in described]
        assert {first.id: first.short} == repo.shorts([first.id])

    def test_every_change_is_told_once_and_in_order(self, repo: Repo) -> None:
        before = repo.last_change()
        tip = grow(repo, 2, session_id="s")[-1]
        repo.fork(tip.id, "b")

        changes = repo.since(before)

        assert list(range(before + 1, repo.last_change() + 1)) == [change.number for change in changes]
        assert {("commit", tip.id), ("name", "b"), ("session", "s")} <= {(one.kind, one.subject) for one in changes}
        assert changes[:1] == repo.since(before, 1)
        assert [] == repo.since(repo.last_change())
        assert repo.wait(before, 10.0)
        assert not repo.wait(repo.last_change(), 0.01)
        assert repo.epoch

    # -- errors ------------------------------------------------------------------------------------------------

    def test_what_is_not_there_is_not_found(self, repo: Repo) -> None:
        for call in (repo.commit, repo.show, repo.history, repo.materialize, repo.children, repo.pin, repo.delta):
            with pytest.raises(NotFound) as problem:
                call("nowhere")
            assert problem.value.hint
        with pytest.raises(NotFound):
            repo.get("ab" * 32)
        with pytest.raises(NotFound):
            repo.agents("nowhere")
        with pytest.raises(NotFound):
            repo.undo()

    def test_a_beginning_that_several_have_is_ambiguous(self, repo: Repo) -> None:
        for session in ("winter-1", "winter-2"):
            keep(repo, 0, session_id=session)

        with pytest.raises(Ambiguous):
            repo.agents("winter")

    def test_whoever_comes_second_has_a_conflict(self, repo: Repo) -> None:
        first, second = keep(repo, 0), keep(repo, 1)
        repo.fork(first.id, "b")

        with pytest.raises(Conflict):
            repo.fork(second.id, "b")
        with pytest.raises(Conflict):
            repo.move("b", first.id, kind="branch", expect=second.id)

    def test_nonsense_is_a_bad_request_and_changes_nothing(self, repo: Repo) -> None:
        commit = keep(repo, 0)
        for call in (
            lambda: repo.checkpoint(format="events-v1"),
            lambda: repo.checkpoint(b"x", artifact="y", format="events-v1"),
            lambda: repo.checkpoint(b"x", format="blob-v1", commit_type="guess"),
            lambda: repo.checkpoint(b"x", format="blob-v1", created_at="yesterday"),
            lambda: repo.checkpoint(b"", format="blob-v1"),
            lambda: repo.annotate(commit.id, "  "),
            lambda: repo.fork(commit.id, ""),
            lambda: repo.history(commit.id, limit=-1),
            lambda: repo.log(limit=-1),
            lambda: repo.log(commit.id, limit=-1),
            lambda: repo.family(limit=-1),
            lambda: repo.commit(""),
        ):
            with pytest.raises(BadRequest):
                call()
        with pytest.raises(BadRecord):
            repo.checkpoint(b"no cbor", format="events-v1")
        assert ([], 1) == (repo.names(), len(list(repo.log())))

    def test_an_argument_of_a_wrong_type_is_a_bad_request(self, repo: Repo) -> None:
        """Every method, with each of its parameters wrong in turn."""
        for method, parameter, given in wrong_calls():
            with pytest.raises(BadRequest, match=f"`{parameter}` of `{method}` cannot be of the type") as problem:
                getattr(repo, method)(**given)
            assert problem.value.hint
        assert 0 == repo.last_change()

    def test_text_of_any_kind_is_answered_or_refused(self, repo: Repo) -> None:
        commit = keep(repo, 0)
        for text in ("\0", "a\0b", "\ud800", "\udcff", "x" * 10_000):
            for call in (repo.commit, repo.get, repo.agents, repo.events, repo.view, repo.history):
                with pytest.raises(NotFound):
                    call(text)
            assert ([], None, None) == (repo.sessions(text), repo.resolve(text), repo.find_name(text))
            with pytest.raises(BadRequest):
                repo.fork(commit.id, text + "\n")
            repo.annotate(commit.id, text + ".", who=text)
        assert "\ud800." == repo.show(commit.id).annotations[2].value

    def test_what_can_be_no_path_is_refused(self, repo: Repo) -> None:
        calls: list[Callable[[str], object]] = [
            repo.backup,
            repo.session,
            lambda path: list(repo.import_sessions([path])),
            lambda path: repo.resume("x", "codex", cwd=path, home="."),
            lambda path: repo.resume("x", "codex", cwd=".", home=path),
            lambda path: repo.run("codex", cwd=path, environ={}),
        ]
        for path in ("", "a\0b", "\ud800"):
            for call in calls:
                with pytest.raises(BadRequest, match="no path"):
                    call(path)

    @pytest.mark.parametrize("time", [1_771_756_200, 1_771_756_200_000, 1, True, 1.5, "1771756200", "now"])
    def test_a_number_of_seconds_is_not_taken_for_microseconds(self, repo: Repo, time: Any) -> None:
        """#21"""
        calls: list[Callable[[], object]] = [
            lambda: repo.checkpoint(b"x", format="blob-v1", created_at=time),
            lambda: repo.resolve("me", time),
        ]
        for call in calls:
            with pytest.raises(BadRequest) as problem:
                call()
            assert problem.value.hint
        if type(time) is int:
            with pytest.raises(BadRequest):
                repo.put(b"x", policy="ephemeral", expires=time)
        assert 0 == repo.last_change()

    @pytest.mark.parametrize("name", ["ctx-12345678", "art-0123456789ab", "../../x", "/x", "a//b", "\ud800", "a\0b"])
    def test_a_name_that_would_be_taken_for_something_else_is_refused(self, repo: Repo, name: str) -> None:
        """#21"""
        commit = keep(repo, 0)
        for call in (repo.fork, repo.tag):
            with pytest.raises(BadRequest):
                call(commit.id, name)
        assert [] == repo.names()

    # -- closing -----------------------------------------------------------------------------------------------

    def test_after_closing_every_call_says_so(self, repo: Repo, tmp_path: Path) -> None:
        commit = keep(repo, 0)
        repo.close()
        repo.close()
        for method in sorted({method for method, _, _ in wrong_calls()} | {"last_change"}):
            with pytest.raises(Closed) as problem:
                getattr(repo, method)()
            assert problem.value.hint
        for call in (lambda: repo.session(tmp_path / "log.jsonl"), lambda: repo.epoch, lambda: repo.commit(commit)):
            with pytest.raises(Closed):
                call()
        assert not (tmp_path / "log.jsonl").exists()

    def test_a_watch_ends_when_the_repository_is_closed(self, repo: Repo, tmp_path: Path) -> None:
        for name in "ab":
            made = repo.materialize(grow(repo, 1)[-1].id, format="claude-code-v1")
            (tmp_path / f"{name}.jsonl").write_bytes(made.bytes)
        watching = repo.watch([tmp_path], interval=3600)

        assert "new" == next(watching).status
        repo.close()
        assert all("new" == result.status for result in watching)

    def test_a_live_session_says_so_when_nothing_can_be_kept_any_more(self, repo: Repo, tmp_path: Path) -> None:
        session = repo.session(tmp_path / "log.jsonl", frequency="end")
        session.log_agent_created("root", name="root")
        repo.close()

        with pytest.raises(Closed):
            session.checkpoint()
        with pytest.raises(Closed):
            session.close()
        assert b"root" in (tmp_path / "log.jsonl").read_bytes()

    def test_a_tracker_says_so_when_nothing_can_be_kept_any_more(self, repo: Repo) -> None:
        tracker = repo.track(session_id="s")
        repo.close()

        with pytest.raises(Closed):
            tracker.feed(talk(0))

    # -- the wire ----------------------------------------------------------------------------------------------

    def test_what_is_answered_can_cross_a_wire(self, repo: Repo) -> None:
        tip = grow(repo, 2, session_id="s", principal="me")[-1]
        repo.fork(tip.id, "b", why="a try")
        repo.annotate(tip.id, "a remark")
        answers: list[msgspec.Struct] = [
            repo.commit("b"),
            repo.show("b"),
            repo.materialize("b"),
            *repo.names(),
            *repo.moves(),
            *repo.sessions(),
            *repo.agents("s"),
        ]

        for answer in answers:
            assert answer == msgspec.json.decode(msgspec.json.encode(answer), type=type(answer))
