"""Artifacts: bytes by the hash of the bytes, how long they stay, and what is derived from them."""
# ruff: noqa: SIM300  (what is expected stands on the left)

from __future__ import annotations

import random

import pytest

from harken import ids
from harken.errors import BadRequest, Conflict, Evicted, NotFound
from harken.store import PackedFrame, Store

from .chains import grow


class ArtifactContract:
    """What a store does with bytes."""

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

    def test_many_artifacts_at_once_are_those_that_one_by_one_would_be(self, store: Store) -> None:
        contents = [b"again", b"", b"again", *(bytes([n]) * 50_000 for n in range(60)), b"large" * 500_000, b"again"]
        with store.write() as writer:
            writer.put(b"again", policy="ephemeral", expires=1)
            names = writer.put_many([*contents, iter([b"in ", b"parts"])])
            assert b"again" == store.get(names[0])
        assert [ids.artifact_id(data) for data in (*contents, b"in parts")] == names
        assert [*contents, b"in parts"] == list(store.get_many(names))
        assert "default" == store.info(names[0]).policy  # the stronger of the two
        changed = store.last_change()
        with store.write() as writer:
            writer.evict(names[5])
            assert names[:9] == writer.put_many(contents[:9])
        assert contents[5] == store.get(names[5])
        assert ["eviction", "artifact"] == [change.kind for change in store.since(changed)]
        assert store.fsck(read_data=True).ok

    def test_artifacts_that_were_compressed_together_are_those_that_one_by_one_would_be(self, store: Store) -> None:
        contents = [f"delta {n}".encode() * 5_000 for n in range(9)]
        packed = PackedFrame.of(contents[:6])
        with store.write() as writer:
            names = writer.put_many([packed, contents[6]])
            assert contents[3] == store.get(names[3])
        assert [ids.artifact_id(data) for data in contents[:7]] == names
        with store.write() as writer:
            again = writer.put_many([PackedFrame.of(contents[5:]), PackedFrame.of([b"x", b"x"])], like=names[:1])
        assert [ids.artifact_id(data) for data in (*contents[5:], b"x", b"x")] == again
        assert [*contents, b"x"] == list(store.get_many([*names[:5], *again[:5]]))
        assert 10 == store.last_change()
        assert store.fsck(read_data=True).ok

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

    def test_what_is_compressed_beside_keeps_its_place_when_another_leans_on_a_loose_frame(self, store: Store) -> None:
        beside, small = random.Random(1).randbytes(200_000), random.Random(2).randbytes(20_000)  # noqa: S311
        with store.write() as writer:
            old = writer.put(small)
        with store.write() as writer:
            writer.compress_beside()
            names = [writer.put(beside), writer.put(small + b"!", like=old)]
        assert [small, beside, small + b"!"] == [store.get(name) for name in (old, *names)]

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
