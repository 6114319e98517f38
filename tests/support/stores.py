"""Stores with something of everything in them."""

from __future__ import annotations

import contextlib
import os
import random

from harken.store import Draft, SessionRow
from harken.testing.store import T0, grow

TEXT = "the agent read a file and wrote a test that fails because the path is wrong so it tries another value"
WORDS = TEXT.split(" ")


def lines(count, *, seed=1, session="one"):
    """JSON lines of ordinary words."""
    source = random.Random(seed)
    return [
        b'{"session":"%s","n":%d,"text":"%s"}\n' % (session.encode(), n, " ".join(source.choices(WORDS, k=40)).encode())
        for n in range(count)
    ]


def busy_store(store):
    """Chains, forks, twins, sightings, copies, large and evicted artifacts, names that moved, sessions."""
    first = grow(store, 20, principal="a", session_id="s-1")
    fork = grow(store, 5, parent=first[9].id, start=100, principal="b", machine="m", message_count=2)
    grow(store, 1, checkpoint="session_end")
    grow(store, 1, principal="c", session_id="s-1")
    original = lines(3000)
    with store.write() as writer:
        names = [writer.put(line) for line in original]
        copies = [line.replace(b"one", b"two") for line in original]
        for line, like in zip(copies, names, strict=True):
            writer.put(line, like=like)
        large = writer.put_stream([b"large" * 500_000])
        gone = writer.put(b"gone" * 1000)
        writer.put(b"for a day", policy="ephemeral", expires=T0)
        writer.set_policy(large, "pin")
        tip = writer.commit(
            Draft(
                artifact=large,
                parent=fork[-1].id,
                format="x",
                time=T0 + 10**9,
                spawned_from={"session": "s-1", "call_id": "c"},
                forked_from=first[3].id,
            )
        )
        writer.annotate(tip.id, "summary", "the tip \ud800", time=T0, who="me")
        writer.move("main", kind="branch", to=first[0].id, expect="", time=T0, who="me", why="begin")
        writer.move("main", kind="branch", to=tip.id, expect=None, time=T0 + 1)
        writer.move("v1", kind="tag", to=first[3].id, expect="", time=T0 + 2)
        writer.save_session(
            SessionRow(session="s-1", runtime="r", tip=first[-1].id, title="T", source="/x", state=b"{}")
        )
    with store.write() as writer:
        writer.evict(gone)
    return tip


def open_below(path):
    """The open files of this process whose names begin with `path`: those of other tests come and go."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of this listing is closed already
            found.append(os.readlink(f"/proc/self/fd/{name}"))
    return [name for name in found if name.startswith(str(path))]
