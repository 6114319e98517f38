"""What is said about commits: annotations, names and sessions."""
# ruff: noqa: SIM300  (what is expected stands on the left)

from __future__ import annotations

import pytest
from msgspec.structs import replace

from harken.errors import BadRequest, Conflict, NotFound
from harken.store import SessionRow, Store

from .chains import T0, grow


class SessionContract:
    """What a store does with annotations, names and sessions."""

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
