"""gc lets go of exactly what has expired and nothing needs, whatever the store holds."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from harken.store import Draft, fsck, gc, open_store
from harken.testing.store import T0

NOW = 100
POLICIES = st.sampled_from(
    [("default", None), ("pin", None), ("ephemeral", 50), ("ephemeral", 100), ("ephemeral", 150)]
)
THINGS = st.lists(
    st.tuples(st.sampled_from([10, 3_000, 90_000, 1_200_000]), POLICIES, st.booleans(), st.booleans()), max_size=8
)


@settings(max_examples=40, deadline=None)
@given(things=THINGS, packed=st.booleans())
def test_gc_keeps_what_is_needed_and_only_that(things, packed):
    """A thing is its size, its policy, whether a commit names it, and whether it was evicted before."""
    folder = Path(tempfile.mkdtemp())
    try:
        with contextlib.closing(open_store(folder / "s.db")) as store:
            content, expected = {}, {}
            for n, (size, (policy, expires), committed, evicted) in enumerate(things):
                data = b"%d " % n * (size // 2)
                with store.write() as writer:
                    name = writer.put(data, policy=policy, expires=expires)
                    if committed:
                        writer.commit(Draft(artifact=name, format="x", time=T0 + n))
                if evicted and policy != "pin":
                    with store.write() as writer:
                        writer.evict(name)
                content[name] = None if evicted and policy != "pin" else data
                expected[name] = committed or not (policy == "ephemeral" and expires <= NOW)
            if packed:
                store.pack()
            commits = store.commits()
            rehearsal = gc(store, now=NOW, dry_run=True)
            report = gc(store, now=NOW)
            assert sorted(name for name, kept in expected.items() if kept) == store.artifacts()
            assert rehearsal.names == report.names
            assert commits == store.commits()
            for name, data in content.items():
                if expected[name]:
                    assert data == (store.get(name) if store.has(name) else None)
            assert fsck(store, read_data=True).ok
    finally:
        shutil.rmtree(folder)
