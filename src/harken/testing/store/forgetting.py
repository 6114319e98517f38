"""Forgetting: what is gone is gone, what stays is what it was, and nobody is told otherwise."""
# ruff: noqa: SIM300  (what is expected stands on the left)

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from msgspec.structs import replace

from harken.errors import Conflict, Evicted, Forgotten, NotFound
from harken.store import Draft, ErasureOrder, SessionRow, Store, open_store
from harken.store.tombstones import BEGUN, DONE, LIFTED, find_words, forms, merged

from .chains import T0, grow

SECRET = "kX7-only-we-know-this-q9Zt"  # noqa: S105  (nobody's)
LINE = b'{"text":"the key is %b, keep it"}\n' % SECRET.encode()
BLANK = LINE.replace(SECRET.encode(), b"*" * len(SECRET))


def order(store: Store, secret: str = SECRET, **more: object) -> ErasureOrder:
    """What to forget so that a secret is nowhere."""
    words = forms(secret)
    found = {}
    for artifact, parts in store.contents():
        if spans := merged(find_words(b"".join(parts), words)):
            found[artifact] = spans
    made = ErasureOrder(time=T0, who="me", why="leaked", artifacts=found, words=words, at=store.last_change())
    return replace(made, **more)


def forget(store: Store, secret: str = SECRET, **more: object) -> int:
    """All three steps."""
    number = store.erase(order(store, secret, **more)).number
    store.scrub()
    store.finish_erasure(number)
    return number


class ForgettingContract:
    """What a store does so that something is as if it had never been there."""

    def test_only_the_secret_is_blanked_and_everything_else_is_byte_for_byte(self, store: Store) -> None:
        with store.write() as writer:
            held, other = writer.put(LINE), writer.put(b"other")
            commit = writer.commit(Draft(artifact=held, format="x", time=T0))
        before = store.has_forgotten
        number = forget(store)
        assert (False, True) == (before, store.has_forgotten)
        assert BLANK == store.get(held)
        assert [BLANK, b"other"] == list(store.get_many([held, other]))
        assert BLANK == b"".join(store.iter_parts(held))
        assert (len(LINE), False) == (store.info(held).size, store.info(held).evicted)
        assert commit == store.get_commit(commit.id)
        assert [(number, "me", "leaked", DONE)] == [(e.number, e.who, e.why, e.state) for e in store.erasures()]
        assert [other] == [name for name, parts in store.contents() if b"".join(parts) == b"other"]

    def test_the_tombstone_says_which_bytes_who_and_why(self, store: Store) -> None:
        with store.write() as writer:
            held, other = writer.put(LINE), writer.put(b"other")
        forget(store)
        found = store.tombstones([held, other])
        assert [held] == list(found)
        start = LINE.index(SECRET.encode())
        assert ((start, start + len(SECRET)),) == found[held].spans
        assert ("me", "leaked", T0, len(SECRET)) == (
            found[held].who,
            found[held].why,
            found[held].time,
            found[held].count,
        )

    def test_fsck_is_clean_and_tells_of_it(self, store: Store) -> None:
        whole, blank = grow(store, 1)[0].artifact, ""
        with store.write() as writer:
            blank = writer.put(LINE)
        asked = order(store)
        forget(store, artifacts={**asked.artifacts, whole: ()})
        report = store.fsck(read_data=True)
        assert report.ok
        assert {"forgotten"} == {found.severity for found in report.findings}
        assert 2 == len(report.findings)
        assert blank in store.tombstones([blank])

    def test_an_artifact_may_be_forgotten_whole(self, store: Store) -> None:
        commit = grow(store, 1)[0]
        data = store.get(commit.artifact)
        forget(store, artifacts={commit.artifact: ()}, words=())
        for read in (store.get, lambda name: list(store.get_many([name])), lambda name: list(store.iter_parts(name))):
            with pytest.raises(Forgotten, match="by me: leaked"):
                read(commit.artifact)
        assert issubclass(Forgotten, Evicted)
        assert (False, True) == (store.has(commit.artifact), store.info(commit.artifact).evicted)
        with store.write() as writer:
            assert commit.artifact == writer.put(data)
            assert [commit.artifact] == writer.put_many([data])
        assert not store.has(commit.artifact)
        assert store.fsck(read_data=True).ok

    def test_bytes_that_hold_it_are_let_in_without_it(self, store: Store) -> None:
        with store.write() as writer:
            old = writer.put(LINE)
        forget(store)
        large = b"x" * (1 << 20) + LINE
        with store.write() as writer:
            again, more = writer.put(LINE), writer.put(b"copy " + LINE)
            both = writer.put_many([b"1 " + LINE, b"2 " + LINE, large])
            stream = writer.put_stream([large[: (1 << 20) + 25], large[(1 << 20) + 25 :], b"end"])
        assert old == again
        assert BLANK == store.get(again)
        assert b"copy " + BLANK == store.get(more)
        assert [b"1 " + BLANK, b"2 " + BLANK, b"x" * (1 << 20) + BLANK] == list(store.get_many(both))
        assert b"x" * (1 << 20) + BLANK + b"end" == store.get(stream)
        assert {old, more, stream, *both} == store.tombstones([old, more, stream, *both]).keys()
        assert store.fsck(read_data=True).ok
        assert "a ************************** b" == store.keep_out(f"a {SECRET} b")
        commit = grow(store, 1)[0]
        with store.write() as writer:
            writer.annotate(commit.id, "summary", f"has {SECRET}", time=T0)
            row = writer.save_session(SessionRow(session="s", runtime="r", title=f"use {SECRET}"))
        assert "has **************************" == store.annotations(commit.id)[0].value
        assert ("use **************************", row) == (row.title, store.find_session("s"))

    def test_what_was_lifted_is_let_in_again(self, store: Store) -> None:
        whole = grow(store, 1)[0].artifact
        data = store.get(whole)
        large = b"x" * (1 << 20) + LINE
        with store.write() as writer:
            held, parts = writer.put(LINE), writer.put(large)
        asked = order(store)
        number = forget(store, artifacts={**asked.artifacts, whole: ()})
        store.lift_erasure(number)
        assert [LIFTED] == [erasure.state for erasure in store.erasures()]
        assert BLANK == store.get(held)
        with store.write() as writer:
            assert [held, whole, parts] == [writer.put(LINE), writer.put(data), writer.put(large)]
        assert [LINE, data, large] == [store.get(held), store.get(whole), store.get(parts)]
        assert {} == store.tombstones([held, whole, parts])
        assert store.fsck(read_data=True).ok

    def test_what_people_said_is_covered_and_the_feed_too(self, store: Store) -> None:
        commit = grow(store, 1)[0]
        row = SessionRow(session="s", runtime="r", tip=commit.id, title=f"use {SECRET}")
        with store.write() as writer:
            row = writer.save_session(row)
            writer.annotate(commit.id, "summary", f"it has {SECRET}", time=T0)
            writer.annotate(commit.id, "plain", "words", time=T0)
            writer.annotate(commit.id, "cut", f"it has {SECRET[:15]}…", time=T0)
            writer.move(f"use/{SECRET}", kind="branch", to=commit.id, expect="", time=T0, why=SECRET)
        forget(store, sessions=(replace(row, title="use it", forgotten=True),), notes=((commit.id, "plain"),))
        star = "*" * len(SECRET)
        assert [f"it has {star}", "", "it has ***************…"] == [n.value for n in store.annotations(commit.id)]
        assert [f"use/{star}"] == [name.name for name in store.names()]
        assert [(f"use/{star}", star)] == [(move.name, move.why) for move in store.moves()]
        assert SECRET not in str(store.since(0))
        found = store.find_session("s")
        assert found is not None
        assert ("use it", True, False) == (found.title, found.forgotten, found.lost)
        assert store.fsck(read_data=True).ok

    def test_it_is_one_transaction_that_others_have_not_overtaken(self, store: Store) -> None:
        with store.write() as writer:
            held = writer.put(LINE)
        asked = order(store)
        with store.write() as writer:
            writer.put(b"later")
        with pytest.raises(Conflict):
            store.erase(asked)
        assert (LINE, []) == (store.get(held), store.erasures())
        with pytest.raises(NotFound):
            store.erase(replace(asked, artifacts={"ab" * 32: ()}, at=store.last_change()))
        assert (LINE, []) == (store.get(held), store.erasures())
        with pytest.raises(NotFound):
            store.finish_erasure(7)

    def test_from_its_first_step_on_nobody_is_shown_it(self, store: Store) -> None:
        epoch = store.epoch
        with store.write() as writer:
            held = writer.put(LINE)
        store.cache("key", LINE)
        assert BEGUN == store.erase(order(store)).state
        assert (BLANK, None) == (store.get(held), store.cached("key"))
        assert epoch != store.epoch
        assert [("erasure", held)] == [(c.kind, c.subject) for c in store.since(store.last_change() - 1)]

    def test_a_second_secret_in_the_same_place_and_one_in_what_is_gone(self, store: Store) -> None:
        second = "another-secret-of-ours"
        line = LINE + second.encode()
        with store.write() as writer:
            held, gone = writer.put(line), writer.put(b"gone " + line)
        forget(store, artifacts={**order(store).artifacts, gone: ()})
        forget(store, second)
        assert BLANK + b"*" * len(second) == store.get(held)
        assert 2 == len(store.tombstones([held])[held].spans)
        with pytest.raises(Forgotten):
            store.get(gone)
        assert store.fsck(read_data=True).ok

    def test_a_backup_made_afterwards_has_nothing_of_it(self, store: Store, tmp_path: Path) -> None:
        with store.write() as writer:
            held, whole = writer.put(LINE), writer.put(b"whole")
        forget(store, artifacts={**order(store).artifacts, whole: ()})
        store.backup(tmp_path / "copy.db")
        with contextlib.closing(open_store(tmp_path / "copy.db")) as copy:
            assert BLANK == copy.get(held)
            assert store.tombstones([held, whole]) == copy.tombstones([held, whole])
            with copy.write() as writer:
                later = writer.put(b"later " + LINE)
            assert b"later " + BLANK == copy.get(later)
            assert copy.fsck(read_data=True).ok
        assert SECRET[:16].encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
