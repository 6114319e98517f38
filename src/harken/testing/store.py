"""What every store must do, as a suite that another store can run on itself.

class TestMyStore(StoreContract):
    @pytest.fixture
    def store(self):
        with contextlib.closing(MyStore()) as store:
            yield store
"""
# ruff: noqa: SIM300  (what is expected stands on the left)

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from harken import ids
from harken.clock import format_seconds
from harken.errors import BadRequest, Closed, Conflict, Evicted, NotFound
from harken.store import Commit, Draft, SessionRow, Store, open_store

T0 = 1_771_756_200_000_000
"""2026-02-22T10:30:00Z."""


def grow(store: Store, count: int, *, parent: str = "", start: int = 0, **fields: Any) -> list[Commit]:
    """A chain of small deltas, one transaction each."""
    made: list[Commit] = []
    for n in range(start, start + count):
        with store.write() as writer:
            artifact = writer.put(f"delta {n}\n".encode())
            facts: dict[str, Any] = {"format": "events-v1", "time": T0 + n * 1_000_000, **fields}
            made.append(writer.commit(Draft(artifact=artifact, parent=parent, **facts)))
        parent = made[-1].id
    return made


class StoreContract:
    """Subclass it, and give it a fixture called `store` that yields an empty store."""

    # -- artifacts ---------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("data", [b"", b"x", b"hello world", bytes(range(256)) * 5000, b"ab" * (3 << 20)])
    def test_bytes_come_back_by_their_name(self, store: Store, data: bytes) -> None:
        with store.write() as writer:
            name = writer.put(data)
            assert data == store.get(name)
        assert ids.artifact_id(data) == name
        assert data == store.get(name)
        assert data == b"".join(store.iter_parts(name))
        assert store.has(name)
        assert len(data) == store.info(name).size
        assert {name: store.info(name)} == store.infos([name, "0" * 64, "no name"])

    def test_content_that_arrives_in_parts_has_the_same_name(self, store: Store) -> None:
        parts = [random.Random(n).randbytes(700_000) for n in range(5)]  # noqa: S311
        with store.write() as writer:
            name = writer.put_stream(iter(parts))
            again = writer.put(b"".join(parts))
        assert ids.artifact_id(b"".join(parts)) == name == again
        assert b"".join(parts) == store.get(name)
        assert max(len(part) for part in store.iter_parts(name)) <= 4 << 20

    def test_many_come_back_in_the_order_asked(self, store: Store) -> None:
        with store.write() as writer:
            names = [writer.put(b"%d " % n * 200) for n in range(50)]
        names = [*names[::-1], *names[:5], names[0]]
        assert [store.get(name) for name in names] == list(store.get_many(names))

    def test_writing_twice_is_writing_once(self, store: Store) -> None:
        with store.write() as writer:
            first = writer.put(b"same")
        with store.write() as writer:
            assert first == writer.put(b"same")
        assert [first] == store.artifacts()

    def test_bytes_like_others_come_back_the_same(self, store: Store) -> None:
        first = [b'{"session":"one","n":%d,"text":"%s"}\n' % (n, b"word " * (n % 50)) for n in range(300)]
        second = [line.replace(b"one", b"two") for line in first]
        with store.write() as writer:
            originals = [writer.put(line) for line in first]
        with store.write() as writer:
            copies = [writer.put(line, like=like) for line, like in zip(second, originals, strict=True)]
        with store.write() as writer:
            third = [
                writer.put(line.replace(b"two", b"six"), like=like) for line, like in zip(second, copies, strict=True)
            ]
        assert second == list(store.get_many(copies))
        assert first == list(store.get_many(originals))
        assert b'{"session":"six","n":7,' == store.get(third[7])[:23]

    def test_an_unknown_artifact_is_not_found(self, store: Store) -> None:
        for name in ("00" * 32, "", "zz", "ab"):
            with pytest.raises(NotFound):
                store.get(name)
            with pytest.raises(NotFound):
                store.info(name)
            assert not store.has(name)

    def test_artifacts_are_found_by_prefix(self, store: Store) -> None:
        with store.write() as writer:
            names = [writer.put(b"%d" % n) for n in range(40)]
        assert sorted(names) == store.artifacts()
        assert sorted(n for n in names if n.startswith(names[3][:1])) == store.artifacts(names[3][:1])
        assert [names[3]] == store.artifacts(names[3][:20])
        assert 7 == len(store.artifacts(limit=7))

    def test_an_evicted_artifact_keeps_its_name_and_comes_back_with_its_bytes(self, store: Store) -> None:
        for data in (b"small", b"large " * 400_000):
            with store.write() as writer:
                name = writer.put(data)
                other = writer.put(data + b"neighbour")
            with store.write() as writer:
                writer.evict(name)
            assert store.info(name).evicted
            assert len(data) == store.info(name).size
            assert not store.has(name)
            with pytest.raises(Evicted, match=ids.artifact_ref(name)):
                store.get(name)
            with pytest.raises(Evicted, match=ids.artifact_ref(name)):
                list(store.get_many([other, name]))
            with store.write() as writer:
                assert name == writer.put(data)
            assert data == store.get(name)
            assert data + b"neighbour" == store.get(other)

    def test_a_stronger_policy_stays(self, store: Store) -> None:
        steps: list[tuple[str, int | None, tuple[str, int | None]]] = [
            ("ephemeral", 10, ("ephemeral", 10)),
            ("ephemeral", 20, ("ephemeral", 20)),
            ("ephemeral", 15, ("ephemeral", 20)),
            ("default", None, ("default", None)),
            ("ephemeral", 99, ("default", None)),
            ("pin", None, ("pin", None)),
            ("default", None, ("pin", None)),
        ]
        for policy, expires, expected in steps:
            with store.write() as writer:
                name = writer.put(b"x", policy=policy, expires=expires)
            assert expected == (store.info(name).policy, store.info(name).expires)
        with store.write() as writer, pytest.raises(Conflict):
            writer.evict(name)
        with store.write() as writer:
            writer.set_policy(name, "ephemeral", expires=5)
        assert ("ephemeral", 5) == (store.info(name).policy, store.info(name).expires)

    def test_a_policy_that_makes_no_sense_is_refused(self, store: Store) -> None:
        for policy, expires in (("forever", None), ("ephemeral", None), ("pin", 5)):
            with store.write() as writer, pytest.raises(BadRequest):
                writer.put(b"x", policy=policy, expires=expires)
        assert [] == store.artifacts()

    # -- transactions ------------------------------------------------------------------------------------------

    def test_a_block_that_raises_leaves_nothing(self, store: Store) -> None:
        base = grow(store, 1)[0]
        with pytest.raises(RuntimeError), store.write() as writer:
            artifact = writer.put(b"half")
            commit = writer.commit(Draft(artifact=artifact, parent=base.id, format="x", time=T0))
            writer.annotate(base.id, "summary", "half", time=T0)
            writer.move("main", kind="branch", to=commit.id, expect="", time=T0)
            writer.save_session(SessionRow(session="s", runtime="r", tip=commit.id))
            writer.set_policy(base.artifact, "pin")
            raise RuntimeError
        assert [base] == store.commits()
        assert [base.artifact] == store.artifacts()
        assert [] == [*store.annotations(base.id), *store.names(), *store.moves(), *store.sessions()]
        assert "default" == store.info(base.artifact).policy
        assert 2 == len(store.chain(grow(store, 1, parent=base.id, start=1)[0].id))

    def test_a_block_that_does_nothing_does_nothing(self, store: Store) -> None:
        with store.write():
            pass
        assert [] == store.commits()

    def test_a_transaction_inside_a_transaction_is_refused(self, store: Store) -> None:
        with store.write() as writer:
            artifact = writer.put(b"x")
            with pytest.raises(BadRequest), store.write():
                pass
        assert b"x" == store.get(artifact)

    # -- commits -----------------------------------------------------------------------------------------------

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
        assert [c.id for c in path] == [link.id for link in store.walk(again[-1].id)]
        assert [c.artifact for c in path] == [link.artifact for link in store.walk(again[-1].id)]
        for limit in (1, 4, 6, 15, 99):
            assert path[:limit] == store.chain(again[-1].id, limit=limit)
            assert limit >= len(store.walk(again[-1].id, limit=limit))
        assert [chain[10], fork[0]] == store.children(chain[9].id)
        assert [] == store.children(again[-1].id)

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

    # -- what is said about them -------------------------------------------------------------------------------

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

    def test_annotations_only_grow(self, store: Store) -> None:
        commit = grow(store, 1)[0]
        for n, (key, value) in enumerate([("summary", "one"), ("label", "x"), ("summary", "two \ud800 \0")]):
            with store.write() as writer:
                writer.annotate(commit.id, key, value, time=T0 + n, who="me")
        said = store.annotations(commit.id)
        assert [("summary", "one"), ("label", "x"), ("summary", "two \ud800 \0")] == [(a.key, a.value) for a in said]
        assert {(commit.id, "me")} == {(a.commit, a.who) for a in said}
        with store.write() as writer, pytest.raises(NotFound):
            writer.annotate("ab" * 32, "summary", "x", time=T0)

    def test_a_name_moves_only_from_where_it_is_thought_to_be(self, store: Store) -> None:
        a, b, c = grow(store, 3)
        with store.write() as writer:
            writer.move("main", kind="branch", to=a.id, expect="", time=1, who="me", why="begin")
        for expect in ("", b.id, c.id):
            with pytest.raises(Conflict), store.write() as writer:
                writer.move("main", kind="branch", to=c.id, expect=expect, time=2)
        with store.write() as writer:
            writer.move("main", kind="branch", to=b.id, expect=a.id, time=3, record=False)
            writer.move("main", kind="branch", to=c.id, expect=None, time=4, who="you", why="jump")
            writer.move("v1", kind="tag", to=a.id, expect="", time=5)
        assert [("main", "branch", c.id), ("v1", "tag", a.id)] == [(n.name, n.kind, n.target) for n in store.names()]
        assert ["v1"] == [n.name for n in store.names("tag")]
        found = store.find_name("main")
        assert found is not None
        assert c.id == found.target
        assert store.find_name("other") is None
        assert [(3, "v1", "", a.id), (2, "main", b.id, c.id), (1, "main", "", a.id)] == [
            (m.number, m.name, m.before, m.after) for m in store.moves()
        ]
        assert [("you", "jump", 4)] == [(m.who, m.why, m.time) for m in store.moves("main", limit=1)]

    def test_a_name_can_go_and_come_back(self, store: Store) -> None:
        a, b = grow(store, 2)
        with store.write() as writer:
            writer.move("x", kind="tag", to=a.id, expect="", time=1)
            with pytest.raises(Conflict):
                writer.move("x", kind="branch", to=b.id, expect=None, time=2)
            writer.move("x", kind="tag", to="", expect=a.id, time=2)
            assert store.find_name("x") is None
            with pytest.raises(NotFound):
                writer.move("x", kind="tag", to="", expect=None, time=3)
            with pytest.raises(NotFound):
                writer.move("x", kind="tag", to="ab" * 32, expect=None, time=3)
            writer.move("x", kind="branch", to=b.id, expect="", time=3)
        assert [("", b.id), (a.id, ""), ("", a.id)] == [(m.before, m.after) for m in store.moves("x")]

    @pytest.mark.parametrize("name", ["", "a\nb", " a", "\ud800", "x" * 513])
    def test_a_name_that_cannot_be_typed_is_refused(self, store: Store, name: str) -> None:
        commit = grow(store, 1)[0]
        with store.write() as writer, pytest.raises(BadRequest):
            writer.move(name, kind="tag", to=commit.id, expect="", time=1)

    def test_sessions_are_kept_by_their_id(self, store: Store) -> None:
        commit = grow(store, 1)[0]
        one = SessionRow(session="s-1", runtime="claude-code", source="/a", title="\ud800", state=b"\x00{}", started=5)
        two = SessionRow(session="s-2", runtime="codex", source="/b", parent="s-1", agent="x", messages=4, ended=6)
        with store.write() as writer:
            writer.save_session(one)
            writer.save_session(two)
            one, two = replace(one, version=1), replace(two, version=1)
        assert [one, two] == store.sessions()
        assert [two] == store.sessions(prefix="s-2") == store.sessions(source="/b")
        assert [two] == store.sessions(parent="s-1") == store.sessions(parent="s-1", source="/b")
        assert [one] == store.sessions(parent="")
        assert [] == store.sessions(parent="s-1", prefix="s-1") == store.sessions(parent="s-1", source="/a")
        assert [] == store.sessions(prefix="s-1", source="/b") == store.sessions(prefix="%")
        again = SessionRow(session="s-1", runtime="claude-code", tip=commit.id, source="/c")
        with store.write() as writer:
            assert replace(again, version=2) == writer.save_session(again)
        assert [replace(again, version=2), two] == store.sessions()

    def test_a_session_keeps_all_that_is_known_of_it(self, store: Store) -> None:
        a, b, c, d = grow(store, 4)
        row = SessionRow(
            session="s",
            runtime="r",
            tip=a.id,
            live=b.id,
            older=(c.id, d.id),
            parent="p",
            agent="x",
            title="t",
            source="/s",
            template="tmpl",
            principal="@me:here",
            machine="m",
            ticket_id="tic",
            thread_id="thr",
            started=1,
            ended=2,
            messages=3,
            cost_usd_micros=4,
            state=b"{}",
        )
        with store.write() as writer:
            saved = writer.save_session(row)
        assert replace(row, version=1) == saved == store.find_session("s")

    def test_a_session_is_found_by_its_whole_id_alone(self, store: Store) -> None:
        sessions = ["s", "s/1", "s\ud800", "\U0010ffff", "\U0010ffff1", "sé", "t"]
        with store.write() as writer:
            for session in sessions:
                writer.save_session(SessionRow(session=session, runtime="r"))
        assert sessions == [found.session for name in sessions if (found := store.find_session(name))]
        assert store.find_session("") is None
        assert ["s", "s/1", "s\ud800", "sé"] == [row.session for row in store.sessions(prefix="s")]
        assert ["s\ud800"] == [row.session for row in store.sessions(prefix="s\ud800")]
        assert ["\U0010ffff", "\U0010ffff1"] == [row.session for row in store.sessions(prefix="\U0010ffff")]

    def test_a_session_is_replaced_only_by_one_who_has_seen_it(self, store: Store) -> None:
        """#42: two who read the same row and land one after the other; the second is told."""
        row = SessionRow(session="s", runtime="r")
        with store.write() as writer:
            first = writer.save_session(row, expect=0)
        for expect in (0, 2):
            with pytest.raises(Conflict), store.write() as writer:
                writer.save_session(replace(row, title="late"), expect=expect)
        with store.write() as writer:
            second = writer.save_session(replace(first, title="next"), expect=first.version)
        assert (2, "next") == (second.version, second.title)
        assert second == store.find_session("s")
        with store.write() as writer, pytest.raises(Conflict):
            writer.save_session(SessionRow(session="new", runtime="r"), expect=1)

    def test_what_is_compressed_beside_is_there_at_once_and_the_same(self, store: Store) -> None:
        made = [bytes([65 + n]) * 300_000 + str(n).encode() for n in range(12)]
        with store.write() as writer:
            writer.compress_beside()
            names = [writer.put(data) for data in made]
            assert made == list(store.get_many(names)), "inside the transaction"
            names.append(writer.put(made[0] + b"!", like=names[0]))
            again = [writer.put(data) for data in made]
        assert names[:-1] == again
        assert [*made, made[0] + b"!"] == [store.get(name) for name in names]
        with pytest.raises(ZeroDivisionError), store.write() as writer:
            writer.compress_beside()
            gone = [writer.put(b"gone" + data) for data in made]
            raise ZeroDivisionError
        assert not any(map(store.has, gone))

    def test_a_session_that_is_renamed_keeps_everything_but_its_name(self, store: Store) -> None:
        tip = grow(store, 1)[0]
        with store.write() as writer:
            row = writer.save_session(SessionRow(session="old", runtime="r", tip=tip.id, source="/s", state=b"x"))
            writer.save_session(SessionRow(session="other", runtime="r"))
        last = store.last_change()
        with store.write() as writer:
            renamed = writer.rename_session("old", "new")
        assert replace(row, session="new", version=2) == renamed == store.find_session("new")
        assert store.find_session("old") is None
        assert [("session", "new")] == [(change.kind, change.subject) for change in store.since(last)]
        for session, to, problem in (("old", "x", NotFound), ("new", "other", Conflict)):
            with pytest.raises(problem), store.write() as writer:
                writer.rename_session(session, to)
        assert ["new", "other"] == sorted(row.session for row in store.sessions())

    def test_a_session_that_was_saved_has_the_names_it_is_found_with(self, store: Store) -> None:
        """A commit may be named with its seal; the row says the name the commit is kept by."""
        first = grow(store, 1)[0]
        twin = grow(store, 1, checkpoint="session_end")[0]
        both = first.id + first.seal
        row = SessionRow(session="s", runtime="r", tip=both, live=twin.id, older=(both, twin.id))
        with store.write() as writer:
            saved = writer.save_session(row)
        assert replace(row, version=1, tip=first.id, older=(first.id, twin.id)) == saved
        assert saved == store.find_session("s")

    def test_many_are_answered_as_one_by_one(self, store: Store) -> None:
        made = [*grow(store, 5, principal="a"), *grow(store, 3, start=20, principal="b")]
        grow(store, 2, principal="c", machine="m")
        twin = grow(store, 1, checkpoint="tool_call")[0]
        with store.write() as writer:
            for commit in made[::2]:
                writer.annotate(commit.id, "summary", commit.short, time=T0)
                writer.move(f"at/{commit.short}", kind="tag", to=commit.id, expect="", time=T0)
        names = [*(commit.id for commit in made), twin.id, made[0].id + made[0].seal]
        assert [store.get_commit(name) for name in names] == store.get_commits(names)
        assert {name: store.annotations(name) for name in names} == store.annotations_of(names)
        assert {name: store.sightings(name) for name in names} == store.sightings_of(names)
        at = store.names_at(names)
        assert [f"at/{made[2].short}"] == [name.name for name in at[made[2].id]]
        assert {made[0].id} == {name.target for name in at[names[-1]]}
        assert [] == at[made[1].id] == at[twin.id]
        assert ([], {}) == (store.get_commits([]), store.annotations_of([]))
        for ask in (store.get_commits, store.annotations_of, store.sightings_of, store.names_at):
            with pytest.raises(NotFound):
                ask([made[0].id, "ab" * 32])

    # -- the feed ----------------------------------------------------------------------------------------------

    def test_every_change_has_the_next_number(self, store: Store) -> None:
        assert (0, []) == (store.last_change(), store.since(0))
        with store.write() as writer:
            art = writer.put(b"x")
            commit = writer.commit(Draft(artifact=art, format="x", time=T0, principal="a"))
            writer.set_policy(art, "pin")
            writer.annotate(commit.id, "summary", "s", time=T0)
            writer.move("main", kind="branch", to=commit.id, expect="", time=T0)
            writer.save_session(SessionRow(session="s", runtime="r", tip=commit.id))
        with store.write() as writer:
            writer.commit(Draft(artifact=art, format="x", time=T0, principal="b"))
            writer.set_policy(art, "default")
            writer.evict(art)
        expected = [
            ("artifact", art, ""),
            ("commit", commit.id, ""),
            ("policy", art, "pin"),
            ("annotation", commit.id, "summary"),
            ("name", "main", "branch"),
            ("session", "s", ""),
            ("sighting", commit.id, "b"),
            ("policy", art, "default"),
            ("eviction", art, ""),
        ]
        told = store.since(0)
        assert expected == [(change.kind, change.subject, change.detail) for change in told]
        assert list(range(1, 10)) == [change.number for change in told]
        assert 9 == store.last_change()
        assert told[4:7] == store.since(4, limit=3)
        assert [] == store.since(9) == store.since(99)

    def test_what_changes_nothing_has_no_number(self, store: Store) -> None:
        commit = grow(store, 1, principal="a")[0]
        before = store.last_change()
        grow(store, 1, principal="a")
        with store.write() as writer:
            writer.put(b"delta 0\n")
            writer.move("x", kind="tag", to=commit.id, expect="", time=T0)
            writer.move("x", kind="tag", to=commit.id, expect=None, time=T0)
        assert [("name", "x")] == [(change.kind, change.subject) for change in store.since(before)]

    def test_numbers_of_what_was_taken_back_are_given_again(self, store: Store) -> None:
        grow(store, 1)
        with pytest.raises(RuntimeError), store.write() as writer:
            writer.put(b"half")
            raise RuntimeError
        grow(store, 1, start=1)
        assert ["artifact", "commit"] * 2 == [change.kind for change in store.since(0)]
        assert [1, 2, 3, 4] == [change.number for change in store.since(0)]

    def test_a_large_transaction_is_told_of_whole(self, store: Store) -> None:
        with store.write() as writer:
            names = [writer.put(b"%d" % n) for n in range(700)]
        assert names == [change.subject for change in store.since(0, limit=10**6)]
        assert names[300:310] == [change.subject for change in store.since(300, limit=10)]

    def test_who_waits_is_woken_by_a_change(self, store: Store) -> None:
        assert not store.wait(0, 0.01)
        waiting = threading.Thread(target=grow, args=(store, 1))
        waiting.start()
        assert store.wait(0, 30)
        waiting.join()
        assert store.wait(0, 0)
        assert not store.wait(store.last_change(), 0)

    def test_a_store_has_an_epoch(self, store: Store) -> None:
        assert 32 == len(store.epoch)
        assert store.epoch == store.epoch

    # -- closing -----------------------------------------------------------------------------------------------

    def test_after_closing_every_call_says_so(self, store: Store) -> None:
        commit = grow(store, 1)[0]
        store.close()
        store.close()
        calls: list[Callable[[], object]] = [
            lambda: store.get(commit.artifact),
            lambda: list(store.get_many([commit.artifact])),
            lambda: store.has(commit.artifact),
            lambda: store.get_commit(commit.id),
            lambda: store.commits(),
            lambda: store.walk(commit.id),
            lambda: store.sessions(),
            lambda: store.find_session("s"),
            lambda: store.names(),
            lambda: store.since(0),
            lambda: store.wait(0, 1),
            lambda: grow(store, 1),
        ]
        for call in calls:
            with pytest.raises(Closed):
                call()

    def test_a_store_is_not_closed_from_inside_its_transaction(self, store: Store) -> None:
        with store.write() as writer:
            name = writer.put(b"x")
            with pytest.raises(BadRequest):
                store.close()
        assert b"x" == store.get(name)

    # -- threads -----------------------------------------------------------------------------------------------

    def test_a_reader_never_sees_half_a_transaction(self, store: Store) -> None:
        """#20: transactions that are taken back leave nothing, and nothing stale, for whoever reads meanwhile."""
        base = grow(store, 1)[0]
        done, problems = threading.Event(), list[object]()

        def read() -> None:
            while not done.is_set():
                try:
                    for commit in store.commits():
                        said = {note.key for note in store.annotations(commit.id)}
                        if commit.id != base.id and said != {"a", "b"}:
                            problems.append((commit.short, said))
                        store.walk(commit.id)
                        list(store.get_many([commit.artifact]))
                except Exception as problem:  # noqa: BLE001
                    problems.append(problem)

        readers = [threading.Thread(target=read) for _ in range(4)]
        for reader in readers:
            reader.start()
        for n in range(60):
            with contextlib.suppress(RuntimeError), store.write() as writer:
                artifact = writer.put(b"%d" % n * 100)
                facts: dict[str, Any] = {"session_id": f"s{n}", "principal": f"p{n}"}
                made = writer.commit(Draft(artifact=artifact, format="x", time=T0 + n, parent=base.id, **facts))
                writer.annotate(made.id, "a", "1", time=T0)
                store.get_commit(made.id)
                writer.annotate(made.id, "b", "2", time=T0)
                if n % 2:
                    raise RuntimeError
        done.set()
        for reader in readers:
            reader.join()
        assert [] == problems
        assert 31 == len(store.commits())

    def test_threads_write_at_once_and_every_number_is_there(self, store: Store) -> None:
        def work(name: str) -> None:
            for n in range(20):
                with contextlib.suppress(RuntimeError), store.write() as writer:
                    writer.commit(Draft(artifact=writer.put(f"{name} {n}".encode()), format="x", time=T0))
                    if n % 4 == 0:
                        raise RuntimeError

        threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        told = store.since(0, limit=10**6)
        assert list(range(1, store.last_change() + 1)) == [change.number for change in told]
        assert {commit.id for commit in store.commits()} == {each.subject for each in told if each.kind == "commit"}
        assert 8 * 15 == len(store.commits())

    def test_closing_while_others_read_ends_in_closed(self, store: Store) -> None:
        chain = grow(store, 50)
        problems, began = list[object](), threading.Barrier(5)

        def read() -> None:
            began.wait(30)
            with contextlib.suppress(Closed):
                while True:
                    try:
                        list(store.get_many([link.artifact for link in store.walk(chain[-1].id)]))
                    except Closed:
                        raise
                    except Exception as problem:
                        problems.append(problem)
                        raise Closed("stop") from problem

        readers = [threading.Thread(target=read) for _ in range(4)]
        for reader in readers:
            reader.start()
        began.wait(30)
        store.close()
        for reader in readers:
            reader.join(30)
        assert [] == problems

    # -- maintenance -------------------------------------------------------------------------------------------

    def test_a_store_that_is_well_is_said_to_be(self, store: Store) -> None:
        commit = grow(store, 3)[1]
        with store.write() as writer:
            writer.evict(commit.artifact)
        report = store.fsck(read_data=True)
        assert report.ok
        assert (3, 3) == (report.commits, report.artifacts)
        assert ["evicted"] == [found.severity for found in report.findings]

    def test_gc_removes_what_has_expired_and_nothing_needs(self, store: Store) -> None:
        with store.write() as writer:
            policy: dict[str, Any] = {"policy": "ephemeral", "expires": 10}
            gone, used, asked = (writer.put(word, **policy) for word in (b"gone", b"used", b"asked"))
            later = writer.put(b"later", policy="ephemeral", expires=30)
            plain = writer.put(b"plain")
            writer.commit(Draft(artifact=used, format="x", time=T0))
        before = store.last_change()
        assert 1 == store.gc(now=20, dry_run=True, needed=[asked]).expired
        assert (before, True) == (store.last_change(), store.has(gone))
        report = store.gc(now=20, needed=[asked])
        assert (1, 4, [ids.artifact_ref(gone)]) == (report.expired, report.freed, report.names)
        assert [False, True, True, True, True] == [store.has(name) for name in (gone, used, asked, later, plain)]
        assert [("eviction", gone)] == [(change.kind, change.subject) for change in store.since(before)]
        assert 0 == store.gc(now=20, needed=[asked]).expired

    def test_gc_evicts_only_what_a_backing_store_holds_and_never_a_pin(self, store: Store) -> None:
        with store.write() as writer:
            names = [writer.put(b"%d" % n * 1000) for n in range(10)]
            writer.set_policy(names[0], "pin")
        assert 7 == store.gc(limit=3000, backing=lambda name: name != names[1]).evicted
        assert [True, True, *[False] * 7, True] == [store.has(name) for name in names]

    def test_a_backup_is_a_store_of_its_own(self, store: Store, tmp_path: Path) -> None:
        a, b = grow(store, 2, principal="a")
        grow(store, 1, principal="b", machine="m")
        grow(store, 1, checkpoint="session_end")
        with store.write() as writer:
            gone = writer.put(b"gone")
            writer.put(b"kept", policy="pin")
            writer.annotate(a.id, "summary", "said", time=T0)
            writer.move("main", kind="branch", to=a.id, expect="", time=1, why="begin")
            writer.move("main", kind="branch", to=b.id, expect=None, time=2, record=False)
            writer.save_session(SessionRow(session="s", runtime="r", tip=b.id, older=(a.id,)))
            writer.evict(gone)
        assert 0 < store.backup(tmp_path / "copy.db")
        with contextlib.closing(open_store(tmp_path / "copy.db")) as copy:
            assert store.commits() == copy.commits()
            names = [commit.id for commit in store.commits()]
            assert store.sightings_of(names) == copy.sightings_of(names)
            assert store.annotations_of(names) == copy.annotations_of(names)
            assert [store.info(each) for each in store.artifacts()] == [copy.info(each) for each in copy.artifacts()]
            assert (store.names(), store.sessions()) == (copy.names(), copy.sessions())
            assert [move.why for move in store.moves()] == [move.why for move in copy.moves()]
            assert store.epoch != copy.epoch
            assert copy.fsck(read_data=True).ok
        with pytest.raises(Conflict):
            store.backup(tmp_path / "copy.db")

    # -- derived and packed ------------------------------------------------------------------------------------

    def test_derived_bytes_are_cached(self, store: Store) -> None:
        assert store.cached("k") is None
        store.cache("k", b"derived" * 300_000)
        store.cache("empty", b"")
        assert b"derived" * 300_000 == store.cached("k")
        assert b"" == store.cached("empty")
        store.cache("k", b"newer")
        assert b"newer" == store.cached("k")

    def test_packing_changes_nothing_that_can_be_read(self, store: Store) -> None:
        made = [*grow(store, 20), *grow(store, 20, start=50)]
        before = [store.get(commit.artifact) for commit in made]
        for commit in (made[0].id, "", ""):
            store.pack(commit)
            assert before == [store.get(commit.artifact) for commit in made]
            assert before == list(store.get_many([commit.artifact for commit in made]))
        assert made[19::-1] == store.chain(made[19].id)
