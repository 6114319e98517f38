"""The sentences of `Repo`, on the store in memory and on SQLite."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.context.materialize import RECIPES, Recipe, bytes_key, find_recipe, note_recipe
from harken.errors import BadRecord, BadRequest, Conflict, Locked, NotFound
from harken.events import Metric, Prompt, Response
from harken.events.cbor import encode_events
from harken.repo import Repo, default_location, upkeep
from support.contexts import SECOND, START, Ticking, chain, flat, heard, keep, memory_repo, turn


@pytest.fixture(params=["memory", "sqlite"])
def repo(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Repo]:
    where = "memory:" if request.param == "memory" else tmp_path / "store.db"
    with harken.open(where, clock=Ticking()) as opened:
        yield opened


class TestOpening:
    def test_without_a_place_is_the_users_own_store(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

        with harken.open() as repo:
            keep(repo, turn(1))

        assert tmp_path / "harken" / "store.db" == default_location()
        assert default_location().exists()

    @pytest.mark.parametrize("value", ["", "relative/path"])
    def test_a_data_folder_that_is_no_absolute_path_does_not_count(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str
    ) -> None:
        monkeypatch.setenv("XDG_DATA_HOME", value)
        monkeypatch.setenv("HOME", str(tmp_path))

        assert tmp_path / ".local" / "share" / "harken" / "store.db" == default_location()


class TestTheNameOfAnAnswer:
    @pytest.mark.parametrize("how", [{}, {"format": "bureau-agent-v1"}, {"stop": "root"}])
    def test_gives_its_bytes_again(self, repo: Repo, how: dict[str, str]) -> None:
        made = repo.materialize(chain(repo, range(3)), **how)

        assert made.bytes == repo.get(made.artifact)
        assert made.bytes == repo.get(f"art-{made.artifact[:12]}")

    def test_gives_the_empty_conversation_too(self, repo: Repo) -> None:
        assert b"\x80" == repo.get(repo.materialize(None).artifact)

    def test_gives_its_bytes_as_they_were_when_the_chain_has_gone_on(self, repo: Repo) -> None:
        repo.fork(chain(repo, range(2)), "b")
        made = repo.materialize("b")
        keep(repo, turn(3), "b")

        assert made.bytes == repo.get(made.artifact)

    def test_is_remembered_for_a_bounded_number_of_answers(self, repo: Repo) -> None:
        kept = {f"{'ab' * 31}{n:02x}": Recipe(tip=f"{n:064x}") for n in range(RECIPES + 5)}
        for name, recipe in kept.items():
            note_recipe(repo.store, name, recipe)

        found = [name for name in kept if find_recipe(repo.store, name)]
        assert list(kept)[5:] == found

    def test_large_answers_are_remembered_too(self, repo: Repo) -> None:
        tip = keep(repo, [Prompt(content="word " * (2 << 20))])

        made = repo.materialize(tip, format="bureau-agent-v1")

        assert len(made.bytes) > 8 << 20
        assert made.bytes == repo.store.cached(bytes_key(made.artifact))

    def test_stays_good_where_a_gc_fails(self, repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
        made = repo.materialize(chain(repo, range(3)), format="bureau-agent-v1")
        real = upkeep.gc

        def busy(*args: Any, **what: Any) -> None:
            real(*args, **what)
            raise Locked("another program writes")

        monkeypatch.setattr(upkeep, "gc", busy)
        with pytest.raises(Locked):
            repo.gc()

        assert made.bytes == repo.get(made.artifact)

    def test_that_nobody_was_given_is_not_found(self, repo: Repo) -> None:
        with pytest.raises(NotFound):
            repo.get("ab" * 32)


class TestCheckpoint:
    @pytest.mark.parametrize("counts", [{}, {"message_count": 1, "token_count": 1}])
    def test_an_artifact_has_to_be_what_its_format_can_join(self, repo: Repo, counts: dict[str, int]) -> None:
        with pytest.raises(BadRecord):
            repo.checkpoint(artifact=repo.put(b"no cbor"), format="events-v1", **counts)
        with pytest.raises(BadRequest, match="nothing to keep"):
            repo.checkpoint(artifact=repo.put(b""), format="morse-v1", **counts)

    @pytest.mark.parametrize("format", ["blob-v1", "claude-code-v1"])
    def test_an_artifact_is_not_read_where_that_tells_nothing(self, repo: Repo, format: str) -> None:
        artifact = repo.put(b"abcdefgh")
        given = {} if format == "blob-v1" else {"message_count": 0, "token_count": 2}
        with repo.store.write() as writer:
            writer.evict(artifact)  # reading it would fail

        commit = repo.checkpoint(artifact=artifact, format=format, **given)  # type: ignore[arg-type]

        assert (2, given.get("message_count")) == (commit.token_count, commit.message_count), "unknown is not zero"

    def test_a_large_blob_is_described_without_reading_it(self, tmp_path: Path) -> None:
        with harken.open(tmp_path / "blob.db") as repo:
            with repo.store.write() as writer:
                artifact = writer.put_stream(bytes([n]) * (1 << 20) for n in range(48))
            tracemalloc.start()
            try:
                shown = repo.show(repo.checkpoint(artifact=artifact, format="blob-v1"))
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

        assert "delta in blob-v1, 50331648 bytes" == shown.summary
        assert peak < 8 << 20

    @pytest.mark.parametrize("count", [-1, 2**63, 2**70, 1.5, True, False])
    def test_a_count_is_one_that_can_be_kept(self, repo: Repo, count: int) -> None:
        for name in ("message_count", "token_count"):
            with pytest.raises(BadRequest, match=r"is no number of|cannot be of the type"):
                keep(repo, turn(1), **{name: count})

    @pytest.mark.parametrize("time", [True, False, 1.5, b"2026-11-15T10:30:00Z"])
    def test_a_time_is_one_that_can_be_kept(self, repo: Repo, time: int) -> None:
        with pytest.raises(BadRequest, match="`created_at` of `checkpoint` cannot be of the type"):
            keep(repo, turn(1), created_at=time)

    @pytest.mark.parametrize(
        "origin",
        [{"session": "\ud800"}, {"session": b"s"}, {"x": object()}, {"x": float("nan")}, {1: "x"}, {"x": {1, 2}}, "s"],
    )
    def test_what_json_cannot_say_is_no_origin(self, repo: Repo, origin: dict[str, object]) -> None:
        with pytest.raises(BadRequest, match="spawned_from"):
            keep(repo, turn(1), spawned_from=origin)

    def test_a_commit_that_was_there_neither_rewinds_its_session_nor_counts_again(self, repo: Repo) -> None:
        facts = {"session_id": "S", "summary": "the first"}
        first = keep(repo, turn(0), None, created_at=START, principal="A", **facts)
        second = keep(repo, turn(1), first, created_at=START + SECOND, session_id="S")
        third = keep(repo, turn(2), second, created_at=START + 2 * SECOND, session_id="S")

        again = keep(repo, turn(0), None, created_at=START, principal="B", **facts)

        (row,) = repo.sessions()
        assert (first.id, third.id, third.id, 6) == (again.id, repo.commit("S").id, row.tip, row.messages)
        assert ["the first"] == [note.value for note in repo.show(first).annotations]
        assert ["A", "B"] == [seen.principal for seen in repo.store.sightings(first.id)]

    def test_a_commit_that_was_there_takes_another_summary(self, repo: Repo) -> None:
        first = keep(repo, turn(0), None, created_at=START, summary="one")
        keep(repo, turn(0), None, created_at=START, summary="two")

        assert ["one", "two"] == [note.value for note in repo.show(first).annotations]

    def test_keeps_every_fact(self, repo: Repo) -> None:
        commit = repo.checkpoint(
            encode_events(turn(1)),
            format="events-v1",
            checkpoint="turn_boundary",
            created_at="2026-11-15T11:30:00.250+01:00",
            template="t",
            principal="p",
            machine="m",
            session_id="s",
            ticket_id="tkt-1",
            thread_id="th-1",
            summary="said at once",
            message_count=7,
            token_count=99,
            spawned_from={"session": "other", "call_id": "c", "inherits": False},
        )

        shown = repo.show(commit)
        assert ("2026-11-15T10:30:00Z", 7, 99, False) == (
            shown.created_at,
            shown.message_count,
            shown.token_count,
            shown.approximate,
        )
        assert ("t", "p", "m", "s", "tkt-1", "th-1", "said at once") == (
            shown.template,
            shown.principal,
            shown.machine,
            shown.session_id,
            shown.ticket_id,
            shown.thread_id,
            shown.summary,
        )
        assert {"session": "other", "call_id": "c", "inherits": False} == shown.spawned_from

    def test_counts_where_nobody_did(self, repo: Repo) -> None:
        said = [Prompt(content="x" * 40, message_id="a"), Response(content="y" * 40, message_id="b")]

        commit = keep(repo, said)

        assert (2, 20, True) == (commit.message_count, commit.token_count, commit.approximate)

    def test_believes_usage(self, repo: Repo) -> None:
        commit = keep(repo, [Response(content="y" * 4000, message_id="b"), Metric(output_tokens=9, message_id="b")])

        assert (9, False) == (commit.token_count, commit.approximate)

    def test_takes_an_artifact_in_place_of_data(self, repo: Repo) -> None:
        artifact = repo.put(encode_events(turn(1)))

        commit = repo.checkpoint(artifact=f"art-{artifact[:12]}", format="events-v1")

        assert (artifact, 2) == (commit.artifact, commit.message_count)
        assert turn(1) == heard(repo, commit)

    @pytest.mark.parametrize(
        "how", [{}, {"data": b""}, {"data": b"x", "artifact": "art-0"}, {"data": b"x", "commit_type": "wish"}]
    )
    def test_refuses_what_makes_no_sense(self, repo: Repo, how: dict[str, object]) -> None:
        with pytest.raises(BadRequest):
            repo.checkpoint(format="morse-v1", **how)  # type: ignore[arg-type]

    def test_refuses_bytes_that_could_never_be_joined(self, repo: Repo) -> None:
        with pytest.raises(BadRecord):
            repo.checkpoint(b"not cbor", format="events-v1")

    @pytest.mark.parametrize(
        "format", ["events-v1", "anthropic-messages-v1", "openai-responses-v1", "openai-chat-v1", "bureau-agent-v1"]
    )
    def test_refuses_what_was_cut_off(self, repo: Repo, format: str) -> None:
        """#17: taken, it made the chain read as empty, and nothing was said of a loss."""
        first = keep(repo, turn(1))
        whole = repo.materialize(first, format=format).bytes

        for data in (whole[:-1], whole[: len(whole) // 2]):
            with pytest.raises(BadRecord, match=f"these bytes are no {format}"):
                repo.checkpoint(data, format=format, parent=first)
            with repo.store.write() as writer:
                artifact = writer.put(data)
            with pytest.raises(BadRecord, match=f"these bytes are no {format}"):
                repo.checkpoint(artifact=artifact, format=format, parent=first)

    def test_refuses_a_parent_that_is_not_there(self, repo: Repo) -> None:
        with pytest.raises(NotFound):
            keep(repo, turn(1), "ctx-00000000")

    def test_moves_the_branch_it_is_made_on(self, repo: Repo) -> None:
        repo.fork(chain(repo, [1]), "b")

        tip = keep(repo, turn(2), "b")

        assert tip.id == repo.commit("b").id
        assert ["fork"] == [move.why.split()[0] for move in repo.store.moves("b")], "tips advance by themselves"

    def test_does_not_move_a_tag(self, repo: Repo) -> None:
        root = chain(repo, [1])
        repo.tag(root, "v1")

        keep(repo, turn(2), "v1")

        assert root.id == repo.commit("v1").id

    def test_the_same_commit_twice_is_one(self, repo: Repo) -> None:
        first, second = (keep(repo, turn(1), created_at=START) for _ in range(2))

        assert first.id == second.id
        assert 1 == len(repo.store.commits())


class TestArtifacts:
    def test_are_found_by_any_of_their_names(self, repo: Repo) -> None:
        name = repo.put(b"hello world")

        assert {b"hello world"} == {repo.get(ref) for ref in (name, f"art-{name[:12]}", name[:6])}

    @pytest.mark.parametrize("prefix", ["", "art-"])
    def test_are_not_found_by_fewer_than_four_digits(self, repo: Repo, prefix: str) -> None:
        name = repo.put(b"hello world")

        with pytest.raises(NotFound) as caught:
            repo.get(prefix + name[:3])
        assert "at least 4 characters" in str(caught.value.hint)
        assert b"hello world" == repo.get(prefix + name[:4])

    @pytest.mark.parametrize("ref", ["art-000000000000", "nonsense", "", "0" * 64])
    def test_that_are_not_there_are_not_found(self, repo: Repo, ref: str) -> None:
        with pytest.raises(NotFound):
            repo.get(ref)


class TestResolve:
    def test_is_the_newest_commit_at_or_before_the_instant(self, repo: Repo) -> None:
        first = keep(repo, turn(1), principal="p", created_at="2026-01-01T10:00:00Z")
        second = keep(repo, turn(2), first, principal="p", created_at="2026-01-01T11:00:00Z")

        found = {
            time: commit.id if (commit := repo.resolve("p", time)) else None
            for time in (
                "2026-01-01T09:59:59Z",
                "2026-01-01T10:00:00Z",
                "2026-01-01T10:59:59.999Z",
                "2026-01-01T12:00:00+01:00",
                "2026-01-01T12:00:00+02:00",
            )
        }

        assert [None, first.id, first.id, second.id, first.id] == list(found.values()), "instants, not strings"

    def test_takes_a_datetime(self, repo: Repo) -> None:
        commit = keep(repo, turn(1), principal="p", created_at=datetime(2026, 1, 1, 10, tzinfo=UTC))
        east = timezone(timedelta(hours=2))

        found = repo.resolve("p", datetime(2026, 1, 1, 12, tzinfo=east))

        assert found is not None
        assert commit.id == found.id

    def test_knows_nothing_of_a_stranger(self, repo: Repo) -> None:
        keep(repo, turn(1), principal="p")

        assert repo.resolve("q") is None

    def test_a_time_that_is_none_is_refused(self, repo: Repo) -> None:
        with pytest.raises(BadRequest, match="is no time"):
            repo.resolve("p", "yesterday")


class TestWords:
    def test_a_commit_nobody_described_has_a_line_all_the_same(self, repo: Repo) -> None:
        shown = repo.show(chain(repo, [1]))

        assert ("question 1 → Read: x → answer 1", True) == (shown.summary, shown.derived)

    def test_the_newest_summary_is_shown_and_the_older_ones_stay(self, repo: Repo) -> None:
        commit = chain(repo, [1])
        repo.annotate(commit, "first thought")
        repo.annotate(commit, "a label", key="label")
        repo.annotate(commit, "better thought", who="me")

        shown = repo.show(commit)

        assert ("better thought", False) == (shown.summary, shown.derived)
        assert ["first thought", "a label", "better thought"] == [note.value for note in shown.annotations]

    def test_an_unknown_format_has_a_line_too(self, repo: Repo) -> None:
        assert "delta in morse-v1, 4 bytes" == repo.show(repo.checkpoint(b"dash", format="morse-v1")).summary

    def test_an_evicted_commit_still_shows(self, repo: Repo) -> None:
        commit = chain(repo, [1])
        with repo.store.write() as writer:
            writer.evict(commit.artifact)

        assert "its bytes are not here any more" in repo.show(commit).summary
        assert [commit.id] == [c.id for c in repo.history(commit)]
        with pytest.raises(NotFound, match="evicted"):
            repo.materialize(commit)

    def test_nothing_cannot_be_said(self, repo: Repo) -> None:
        with pytest.raises(BadRequest):
            repo.annotate(chain(repo, [1]), "  ")


class TestNames:
    def test_a_fork_must_be_new(self, repo: Repo) -> None:
        commit = chain(repo, [1])
        repo.fork(commit, "b")

        with pytest.raises(Conflict):
            repo.fork(commit, "b")

    def test_a_move_is_undone_and_the_undoing_too(self, repo: Repo) -> None:
        first, second = chain(repo, [1]), chain(repo, [2])
        repo.fork(first, "b")
        repo.move("b", second, kind="branch", who="me", why="better")

        repo.undo("b")
        assert first.id == repo.commit("b").id
        repo.undo("b")
        assert second.id == repo.commit("b").id
        assert ["undo of move 3", "undo of move 2", "better"] == [move.why for move in repo.store.moves("b")[:3]]

    def test_undoing_the_first_move_takes_the_name_away(self, repo: Repo) -> None:
        repo.fork(chain(repo, [1]), "b")

        repo.undo()

        assert repo.store.find_name("b") is None

    def test_a_move_that_was_overtaken_is_not_undone(self, repo: Repo) -> None:
        repo.fork(chain(repo, [1]), "b")
        keep(repo, turn(2), "b")

        with pytest.raises(Conflict):
            repo.undo("b")

    def test_there_may_be_nothing_to_undo(self, repo: Repo) -> None:
        with pytest.raises(NotFound):
            repo.undo()


class TestCompact:
    def test_moves_the_branch_and_nothing_else(self, repo: Repo) -> None:
        tip = chain(repo, range(3))
        repo.fork(tip, "a")
        repo.fork(tip, "b")

        repo.compact("a", "in short")

        assert 1 == len(heard(repo, "a"))
        assert flat(range(3)) == heard(repo, "b") == heard(repo, tip)

    def test_again_puts_the_better_summary_beside_the_old_one(self, repo: Repo) -> None:
        repo.fork(chain(repo, range(3)), "b")
        first = repo.compact("b", "in short")
        second = repo.compact("b", "in better words")

        assert first.parent == second.parent
        assert ["in short", "in better words"] == [
            event.content for ref in (first, "b") for event in heard(repo, ref) if isinstance(event, Prompt)
        ]

    def test_without_a_summary_makes_one_of_its_own_words(self, repo: Repo) -> None:
        folded = repo.compact(chain(repo, range(3)))

        assert "First request: question 0" in str(heard(repo, folded)[0])
        assert repo.show(folded).summary.startswith("Summary of the conversation so far (6 messages)")

    def test_refuses_to_hide_everything_behind_nothing(self, repo: Repo) -> None:
        with pytest.raises(BadRequest):
            repo.compact(chain(repo, [1]), "  ")

    def test_of_a_format_nobody_reads_needs_a_summary(self, repo: Repo) -> None:
        commit = repo.checkpoint(b"dash", format="morse-v1")

        with pytest.raises(BadRequest, match="nobody here can read"):
            repo.compact(commit)
        assert "SOS" in str(heard(repo, repo.compact(commit, "SOS"))[0])


class TestDiff:
    def test_says_what_each_side_knows_alone(self, repo: Repo) -> None:
        base = chain(repo, [1])
        here, there = chain(repo, [2], base), chain(repo, [3, 4], base)

        found = repo.diff(here, there)

        assert found.ancestor is not None
        assert (base.id, turn(2), flat([3, 4])) == (found.ancestor.id, list(found.here), list(found.there))

    def test_of_a_commit_and_itself_is_nothing(self, repo: Repo) -> None:
        tip = chain(repo, [1, 2])

        assert ((), ()) == (repo.diff(tip, tip).here, repo.diff(tip, tip).there)

    def test_a_copy_with_commits_of_its_own_knows_the_same(self, repo: Repo) -> None:
        original = chain(repo, [1, 2])
        copy = keep(repo, turn(3), keep(repo, flat([1, 2]), template="copy"))

        found = repo.diff(original, copy)

        assert (None, (), turn(3)) == (found.ancestor, found.here, list(found.there))

    def test_looks_through_compactions(self, repo: Repo) -> None:
        base = chain(repo, [1])
        there = chain(repo, [3], repo.compact(chain(repo, [2], base), "in short"))

        assert flat([2, 3]) == list(repo.diff(base, there).there)

    def test_counts_what_nobody_can_read(self, repo: Repo) -> None:
        base = chain(repo, [1])

        assert 1 == repo.diff(base, repo.checkpoint(b"dash", format="morse-v1", parent=base)).unread
        assert 1 == repo.diff(base, repo.checkpoint(b'{"torn', format="claude-code-v1", parent=base)).unread


def test_history_goes_to_the_root_and_past_compactions(repo: Repo) -> None:
    tip = chain(repo, [3], repo.compact(chain(repo, [1, 2]), "in short"))

    assert ["delta", "compaction", "delta", "delta"] == [commit.commit_type for commit in repo.history(tip)]
    assert [tip.id] == [commit.id for commit in repo.history(tip, limit=1)]
    with pytest.raises(BadRequest):
        repo.history(tip, limit=-1)


@pytest.mark.parametrize(
    ("call", "options"),
    [
        ("track", {"session_id": "s", "sesion": "x"}),
        ("track", {}),
        ("import_sessions", {"dryrun": True}),
        ("session", {"path": "log.jsonl", "principle": "x"}),
    ],
)
def test_a_keyword_that_a_call_does_not_know_is_a_bad_request(call: str, options: dict[str, Any]) -> None:
    repo = memory_repo()

    with pytest.raises(BadRequest) as refused:
        getattr(repo, call)(**options)

    assert call in str(refused.value)
    assert (refused.value.hint or "").startswith("it takes: ")
