"""Commits: how they are named, what is refused, and how chains are walked."""
# ruff: noqa: SIM300  (what is expected stands on the left)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from harken import ids
from harken.clock import format_seconds
from harken.errors import BadRequest, NotFound
from harken.store import Draft, SessionRow, Store

from .chains import T0, grow

NEXT = "ab" * 32
"""An artifact that nobody has put."""


class CommitContract:
    """What a store does with commits."""

    def test_a_commit_is_named_by_the_recipe(self, store: Store) -> None:
        fields: dict[str, Any] = {
            "commit_type": "snapshot",
            "checkpoint": "turn_boundary",
            "template": "bureau/template:code-reviewer",
            "principal": "@me:here",
            "machine": "m1",
            "session_id": "s-1",
            "ticket_id": "t-1",
            "thread_id": "th-1",
            "message_count": 3,
            "token_count": 99,
            "approximate": True,
            "spawned_from": {"session": "p", "call_id": "c", "inherits": True},
            "forked_from": "ab" * 32,
        }
        first, second = grow(store, 2, **fields)
        art = ids.artifact_ref(second.artifact)
        expected = ids.commit_id("ctx-" + first.id[:8], art, "2026-02-22T10:30:01Z", "bureau/template:code-reviewer")
        assert expected == second.id
        assert "ctx-" + expected[:8] == second.short
        assert "2026-02-22T10:30:01Z" == second.created_at
        assert second == store.get_commit(second.id) == store.get_commit(second.id + second.seal)
        assert fields == {name: getattr(store.get_commit(first.id), name) for name in fields}

    def test_the_same_commit_twice_is_one_commit(self, store: Store) -> None:
        first = grow(store, 1, principal="a")[0]
        assert first == grow(store, 1, principal="a")[0]
        assert first == grow(store, 1, principal="b", machine="m", time=T0 + 7)[0]
        assert [first] == store.commits()
        assert [("a", "", T0), ("b", "m", T0 + 7)] == [
            (seen.principal, seen.machine, seen.time) for seen in store.sightings(first.id)
        ]

    def test_many_commits_at_once_are_those_that_one_by_one_would_make(self, store: Store) -> None:
        one_by_one = grow(store, 300, template="t")
        deltas = [f"delta {n}\n".encode() for n in range(300, 600)]
        drafts = [Draft(artifact=NEXT, format="events-v1", time=T0 + n * 1_000_000, template="t") for n in range(600)]
        with store.write() as writer:
            names = writer.put_many(iter(deltas))
            assert [ids.artifact_id(delta) for delta in deltas] == names
            filled = [replace(d, artifact=a) for d, a in zip(drafts[300:], names, strict=True)]
            filled[0] = replace(filled[0], parent=one_by_one[-1].id)
            made = writer.commit_many(filled)
        assert one_by_one + store.get_commits(made) == list(reversed(store.chain(made[-1])))
        assert deltas == list(store.get_many(names))
        expected = [f"delta {n}\n".encode() for n in range(600)]
        with store.write() as writer:
            both = [replace(d, artifact=ids.artifact_id(e)) for d, e in zip(drafts, expected, strict=True)]
            assert [*(commit.id for commit in one_by_one), *made] == writer.commit_many(both)  # and none of them twice
        assert 600 == len(store.commits())
        assert store.fsck(read_data=True).ok

    def test_many_commits_behind_one_that_others_go_on_from_are_a_chain_of_their_own(self, store: Store) -> None:
        trunk = grow(store, 3)
        with store.write() as writer:
            artifact = writer.put(b"another way")
            drafts = [Draft(artifact=artifact, format="events-v1", time=T0 + n, parent=trunk[0].id) for n in range(2)]
            made = writer.commit_many([drafts[0], replace(drafts[1], time=T0 + 5_000_000)])
        assert [made[1], made[0], trunk[0].id] == [commit.id for commit in store.chain(made[1])]
        assert {trunk[1].id, made[0]} == {commit.id for commit in store.children(trunk[0].id)}

    def test_many_commits_are_refused_whole_where_one_of_them_cannot_be(self, store: Store) -> None:
        with store.write() as writer:
            good = Draft(artifact=writer.put(b"x"), format="events-v1", time=T0)
        for wrong, problem in ((replace(good, commit_type="no"), BadRequest), (replace(good, artifact=NEXT), NotFound)):
            with pytest.raises(problem), store.write() as writer:
                writer.commit_many([good, wrong])
        assert [] == store.commits()

    def test_the_same_name_with_another_seal_is_a_second_commit(self, store: Store) -> None:
        first = grow(store, 1)[0]
        second = grow(store, 1, checkpoint="session_end")[0]
        third = grow(store, 1, checkpoint="tool_call")[0]
        assert first.id + second.seal == second.id
        assert "ctx-" + first.id[:8] == store.get_commit(first.id).short
        assert "ctx-" + second.id[:72] == second.short
        assert [first] == store.commits(first.id[:8]) == store.commits(first.id)
        assert [second] == store.commits(second.id[:72])
        assert {first.id, second.id, third.id} == {commit.id for commit in store.commits()}
        assert [third] == store.commits(third.id)
        child = grow(store, 1, parent=second.id, start=1)[0]
        assert [child, second] == store.chain(child.id)
        assert [] == store.children(first.id)
        assert [child] == store.children(second.id)
        other = grow(store, 1, parent=first.id, start=1)[0]
        assert child.id[:64] == other.id[:64]
        assert child.seal != other.seal

    def test_a_commit_needs_its_parent_and_its_artifact(self, store: Store) -> None:
        base = grow(store, 1)[0]
        for draft in (
            Draft(artifact=base.artifact, parent="ab" * 32, format="x", time=T0),
            Draft(artifact="ab" * 32, format="x", time=T0),
        ):
            with pytest.raises(NotFound), store.write() as writer:
                writer.commit(draft)
        assert [base] == store.commits()

    def test_a_draft_that_makes_no_sense_is_refused(self, store: Store) -> None:
        base = grow(store, 1)[0]
        bad: list[dict[str, Any]] = [
            {"commit_type": "merge"},
            {"checkpoint": "never"},
            {"format": ""},
            {"time": 1 << 62},
            {"message_count": -1},
            {"template": "\ud800"},
        ]
        for fields in bad:
            facts: dict[str, Any] = {"format": "x", "time": T0, **fields}
            with pytest.raises(BadRequest), store.write() as writer:
                writer.commit(Draft(artifact=base.artifact, **facts))

    @pytest.mark.parametrize("number", [1 << 63, -(1 << 63) - 1, 1 << 70, -(1 << 70), True, False, 1.0, "1"])
    def test_what_is_no_number_of_64_bits_is_refused_wherever_it_stands(self, store: Store, number: int) -> None:
        base = grow(store, 1)[0]
        row = SessionRow(session="s", runtime="r")
        draft = Draft(artifact=base.artifact, format="x", time=T0)
        calls: list[Callable[[Any], object]] = [
            *(
                lambda writer, changed={name: value}: writer.commit(replace(draft, **changed))
                for name, value in (
                    ("time", number),
                    ("message_count", number),
                    ("token_count", number),
                )
            ),
            *(
                lambda writer, name=name: writer.save_session(replace(row, **{name: number}))
                for name in ("started", "ended", "messages", "cost_usd_micros")
            ),
            lambda writer: writer.annotate(base.id, "summary", "s", time=number),
            lambda writer: writer.move("main", kind="branch", to=base.id, expect="", time=number),
            lambda writer: writer.put(b"x", policy="ephemeral", expires=number),
            lambda writer: writer.put_stream([b"x"], policy="ephemeral", expires=number),
            lambda writer: writer.set_policy(base.artifact, "ephemeral", expires=number),
        ]
        for call in calls:
            with pytest.raises(BadRequest), store.write() as writer:
                call(writer)
        assert 2 == store.last_change()
        assert store.fsck(read_data=True).ok

    def test_a_chain_is_walked_to_its_root(self, store: Store) -> None:
        chain = grow(store, 30)
        fork = grow(store, 5, parent=chain[9].id, start=100)
        again = grow(store, 3, parent=fork[1].id, start=200)
        path = [*again[::-1], *fork[1::-1], *chain[9::-1]]
        assert path == store.chain(again[-1].id)
        assert [c.id for c in path] == [step.id for step in store.walk(again[-1].id)]
        assert [c.artifact for c in path] == [step.artifact for step in store.walk(again[-1].id)]
        for limit in (1, 4, 6, 15, 99):
            assert path[:limit] == store.chain(again[-1].id, limit=limit)
            assert limit >= len(store.walk(again[-1].id, limit=limit))
        assert [chain[10], fork[0]] == store.children(chain[9].id)
        assert [] == store.children(again[-1].id)

    def test_a_walk_has_a_beginning_that_is_found_without_it(self, store: Store) -> None:
        chain = grow(store, 30)
        fork = grow(store, 5, parent=chain[9].id, start=100)
        again = grow(store, 3, parent=fork[1].id, start=200)
        for tip in (again[-1], fork[-1], chain[-1], chain[0], again[0]):
            walked = store.walk(tip.id)[::-1]
            for count in (0, 1, 9, 10, 11, 12, 13, 99):
                assert walked[:count] == store.beginning(tip.id, count)

    def test_a_walk_stops_after_a_type(self, store: Store) -> None:
        below = grow(store, 3)
        stop = grow(store, 1, parent=below[-1].id, start=10, commit_type="compaction")[0]
        above = grow(store, 2, parent=stop.id, start=20)
        assert [above[1], above[0], stop] == store.chain(above[1].id, stop=["compaction", "snapshot"])
        assert [above[1].id, above[0].id, stop.id] == [c.id for c in store.walk(above[1].id, stop=["compaction"])]
        assert [stop] == store.chain(stop.id, stop=["compaction"])
        assert 6 == len(store.chain(above[1].id, stop=["snapshot"]))

    def test_commits_are_found_by_prefix_newest_first(self, store: Store) -> None:
        made = grow(store, 40)
        assert made[::-1] == store.commits()
        assert made[:-4:-1] == store.commits(limit=3)
        digit = made[5].id[:1]
        assert [c for c in made[::-1] if c.id.startswith(digit)] == store.commits(digit)
        assert [made[5]] == store.commits(made[5].id[:30])
        assert [] == store.commits("not hex")

    def test_the_older_of_two_commits_that_collide_keeps_its_short_name(self, store: Store) -> None:
        """#19. Two commits whose names share eight digits, found by trying some hundred thousand seconds."""
        with store.write() as writer:
            artifact = writer.put(b"collide")
        seen: dict[str, int] = {}
        art, time = ids.artifact_ref(artifact), T0
        while (short := ids.commit_id("", art, format_seconds(time), "")[:8]) not in seen:
            seen[short] = time
            time += 1_000_000
        with store.write() as writer:
            first = writer.commit(Draft(artifact=artifact, format="x", time=seen[short]))
            assert 12 == len(first.short)
            second = writer.commit(Draft(artifact=artifact, format="x", time=time))
        assert first.id[:8] == second.id[:8]
        assert first == store.get_commit(first.id)
        assert 12 == len(first.short) < len(second.short)
        assert [second] == store.commits(second.short.removeprefix("ctx-"))
        assert 2 == len(store.commits(first.id[:8]))

    def test_the_latest_commit_of_a_principal_compares_instants(self, store: Store) -> None:
        made = grow(store, 5, principal="a")
        assert store.latest("a", T0 - 1) is None
        assert made[0] == store.latest("a", T0)
        assert made[2] == store.latest("a", T0 + 2_999_999)
        assert made[4] == store.latest("a", T0 + 10**12)
        assert store.latest("b", T0 + 10**12) is None
        grow(store, 1, principal="b", time=T0 + 999_999)
        assert store.latest("b", T0 + 999_998) is None
        assert made[0] == store.latest("b", T0 + 999_999)

    def test_where_a_chain_comes_from_may_be_known_later(self, store: Store) -> None:
        first, second = grow(store, 2, spawned_from={"session": "p", "call_id": "", "inherits": False})
        origin = {"session": "p", "call_id": "c", "inherits": False}
        before = store.last_change()
        with store.write() as writer:
            writer.link(first.id, spawned_from=origin, forked_from=second.id)
            writer.link(first.id, spawned_from=origin, forked_from=second.id)
        assert replace(first, spawned_from=origin, forked_from=second.id) == store.get_commit(first.id)
        assert [second.id, first.id] == [commit.id for commit in store.chain(second.id)]
        assert [("link", first.id)] == [(change.kind, change.subject) for change in store.since(before)]
        with pytest.raises(RuntimeError), store.write() as writer:
            writer.link(first.id, spawned_from=None, forked_from="")
            raise RuntimeError
        assert origin == store.get_commit(first.id).spawned_from
        with store.write() as writer:
            writer.link(first.id, spawned_from=None, forked_from="")
        assert replace(first, spawned_from=None) == store.get_commit(first.id)
        with pytest.raises(NotFound), store.write() as writer:
            writer.link("ab" * 32, spawned_from=None, forked_from="")
        assert store.fsck(read_data=True).ok

    def test_the_links_of_a_commit_of_the_same_transaction_can_be_set(self, store: Store) -> None:
        with store.write() as writer:
            commit = writer.commit(Draft(artifact=writer.put(b"x"), format="x", time=T0))
            writer.link(commit.id, spawned_from=None, forked_from="ab" * 32)
        assert "ab" * 32 == store.get_commit(commit.id).forked_from
        assert store.fsck(read_data=True).ok
