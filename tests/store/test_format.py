"""The format is what the document says: a stranger reads it, names never change, a flipped byte is found."""

from __future__ import annotations

import ast
import contextlib
import json
import random
import re
import shutil
import sqlite3
from pathlib import Path

import pytest

from harken import ids
from harken.errors import Corrupt, HarkenError
from harken.store import Draft, MemoryStore, fsck, open_store
from harken.testing.store import T0, grow
from support.stores import busy_store, lines

HERE = Path(__file__).parent
VECTORS = HERE.parent / "golden" / "store" / "vectors.json"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


# -- a stranger reads it -----------------------------------------------------------------------------------------------


def test_a_reader_that_knows_only_the_document_reads_a_store(path):
    import importlib.util

    spec = importlib.util.spec_from_file_location("stranger", HERE / "stranger.py")
    stranger = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stranger)
    with contextlib.closing(open_store(path)) as store:
        tip = busy_store(store)
        grow(store, 5, start=500, parent=tip.id)  # loose, and not yet packed
        reader = stranger.Reader(path)
        artifacts = {name: store.get(name) if store.has(name) else None for name in store.artifacts(limit=10**6)}
        assert artifacts == reader.artifacts()
        commits = {commit.id: commit for commit in store.commits()}
        read = reader.commits()
        assert commits.keys() == read.keys()
        for name, fields in read.items():
            assert fields == {field: getattr(commits[name], field) for field in fields}
        newest = store.commits()[0].id
        assert [commit.id for commit in store.chain(newest)] == reader.chain(newest)
        assert {name.name: name.target for name in store.names()} == reader.names()
        reader.sums()
        told = reader.feed()
        assert list(range(1, store.last_change() + 1)) == [number for number, *_ in told]
        assert [(change.number, change.kind) for change in store.since(0, 10**6)] == [each[:2] for each in told]
        reader.db.close()


def test_the_stranger_imports_nothing_of_ours():
    tree = ast.parse((HERE / "stranger.py").read_text())
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {"__future__", "hashlib", "json", "sqlite3", "datetime", "blake3", "zstandard"} == modules


# -- names never change ------------------------------------------------------------------------------------------------


def made_of(store):
    """Chains whose names and seals are written down for ever."""
    with store.write() as writer:
        empty, small, large = writer.put(b""), writer.put(b"hello world"), writer.put(bytes(range(256)) * 10_000)
        root = writer.commit(Draft(artifact=small, format="events-v1", time=T0))
        child = writer.commit(
            Draft(
                artifact=large,
                parent=root.id,
                format="claude-code-v1",
                time=T0 + 1_999_999,
                template="claude-code",
                session_id="s-1",
                ticket_id="t",
                thread_id="h",
                principal="@a:b",
                machine="m",
                message_count=7,
            )
        )
        compacted = writer.commit(
            Draft(
                artifact=empty,
                parent=child.id,
                format="claude-code-v1",
                time=-1,
                commit_type="compaction",
                checkpoint="compaction",
            )
        )
        twin = writer.commit(Draft(artifact=small, format="events-v1", time=T0, checkpoint="session_end"))
        word = writer.commit(Draft(artifact=writer.put("naïve 🔧".encode()), format="x", time=0, template="naïve 🔧"))
    return {
        "artifacts": [empty, small, large],
        "commits": [{"id": c.id, "seal": c.seal, "short": c.short} for c in (root, child, compacted, twin, word)],
    }


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_names_are_those_that_were_written_down(path, kind):
    store = MemoryStore() if kind == "memory" else open_store(path)
    with contextlib.closing(store):
        assert json.loads(VECTORS.read_text()) == made_of(store)


def test_the_same_content_has_the_same_names_in_two_stores(tmp_path):
    with contextlib.closing(open_store(tmp_path / "a")) as a, contextlib.closing(open_store(tmp_path / "b")) as b:
        grow(a, 3, start=77, principal="somebody", machine="else")
        first, second = grow(a, 5, principal="me", machine="here"), grow(b, 5, principal="you", machine="there")
        assert [(c.id, c.seal) for c in first] == [(c.id, c.seal) for c in second]


# -- a flipped byte is found, or harmless ------------------------------------------------------------------------------


def small_store(path):
    """One of each in as few pages as there are tables."""
    with contextlib.closing(open_store(path)) as store:
        chain = grow(store, 4, principal="a", machine="m", session_id="s")
        grow(store, 1, principal="b", session_id="s")
        with store.write() as writer:
            text = b"".join(lines(600))
            like = writer.put(text)
            pinned = writer.put(text.replace(b"one", b"two"), like=like, policy="pin")
            tip = writer.commit(
                Draft(artifact=pinned, parent=chain[1].id, format="x", time=T0, forked_from=chain[0].id)
            )
            writer.annotate(tip.id, "summary", "said", time=T0, who="me")
            writer.move("main", kind="branch", to=tip.id, expect="", time=T0, who="me", why="because")
        return everything(store)


def everything(store):
    """All that a caller can learn from a store."""
    commits = store.commits()
    return (
        commits,
        [store.sightings(c.id) for c in commits],
        [store.annotations(c.id) for c in commits],
        [store.chain(c.id) for c in commits],
        [store.children(c.id) for c in commits],
        store.names(),
        store.moves(),
        store.sessions(),
        [(name, store.info(name), store.get(name)) for name in store.artifacts()],
        [store.latest(who, T0 * 2) for who in "ab"],
    )


def look_after_flip(path, copy, offsets, mask, expected):
    """Flip bits of some bytes in a copy; fsck finds it, or whoever reads gets the same answers as before."""
    shutil.copy(path, copy)
    with copy.open("r+b") as file:
        for offset in offsets:
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ mask]))
    for suffix in ("-wal", "-shm", "-lock"):
        Path(f"{copy}{suffix}").unlink(missing_ok=True)
    try:
        with contextlib.closing(open_store(copy)) as store:
            if not fsck(store, read_data=True).ok:
                return "found"
            assert expected == everything(store), f"byte {offsets[0]} with {mask:#x}"
            return "harmless"
    except HarkenError:
        return "found"


def test_a_version_that_nobody_wrote_is_found(path):
    small_store(path)
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.execute(
            "UPDATE migrations SET version = version - 1 WHERE version = (SELECT min(version) FROM migrations)"
        )
        file.commit()

    with pytest.raises(Corrupt, match="does not know its version"):
        open_store(path)


EMPTY = re.compile(rb"\0{16,}")


def groups(data):
    """Every byte's place by itself; a stretch of zeros, which no page has put to use, as one."""
    at = 0
    for run in EMPTY.finditer(data):
        yield from ([offset] for offset in range(at, run.start()))
        yield range(run.start(), run.end())
        at = run.end()
    yield from ([offset] for offset in range(at, len(data)))


def test_some_flipped_bytes_are_found_or_harmless(tmp_path, path):
    expected = small_store(path)
    source, size = random.Random(5), path.stat().st_size
    offsets = [*range(16, 100, 9), *source.sample(range(100, size), 110)]
    seen = [look_after_flip(path, tmp_path / "copy.db", [n], 1 << source.randrange(8), expected) for n in offsets]
    assert {"found", "harmless"} == set(seen)


@pytest.mark.faults
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(8))
def test_every_flipped_byte_is_found_or_harmless(tmp_path, path, part):
    expected = small_store(path)
    for offsets in list(groups(path.read_bytes()))[part::8]:
        look_after_flip(path, tmp_path / "copy.db", offsets, 1 << offsets[0] % 7, expected)


def test_the_vectors_of_the_original_hold():
    """Of content up to 256 KiB, names are Bureau's own."""
    assert "15950987560f3d32e0edba3a69f1c5d22ddb5fd75c0e4a48423d6525c78e38d1" == ids.chunk_hash(b"hello world").hex()
    assert "c72ca8c64b432c58579280a7aaa22ed6dddcb8d183b0c491e5305a067d3ad305" == ids.artifact_id(b"hello world")
    assert "art-a6aed5ec95b8" == ids.artifact_ref(ids.artifact_id(b"test"))
    assert "ctx-a21c53db" == ids.commit_ref(
        ids.commit_id(
            "ctx-a1b2c3d4",
            "a1b2c3d4e5f6" * 5 + "a1b2",
            "2026-02-22T10:30:00Z",
            "bureau/template:code-reviewer",
        )
    )
    assert "ctx-9d216d08" == ids.commit_ref(
        ids.commit_id("ctx-parent", "artifact-ref-hash", "2026-02-22T10:30:00Z", "bureau/template:reviewer")
    )
    assert "ctx-7dad3757" == ids.commit_ref(ids.commit_id("", "art-a3f9b2c1e7d4", "2026-02-22T09:00:00Z", ""))
    prompt = (
        "81a364747970656670726f6d70746670726f6d7074a266736f7572636567696e697469616c"
        "67636f6e74656e746268696974696d657374616d701a699adaa8"
    )
    assert "art-0100aa23ef97" == ids.artifact_ref(ids.artifact_id(bytes.fromhex(prompt)))
