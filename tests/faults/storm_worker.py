"""One process of the storm: commits that land, and the ones around it that are taken back."""

from __future__ import annotations

import contextlib
import sys

from harken.store import Draft, open_store


class TakenBack(Exception):
    """The block is left before its end."""


def write(store, name, count):
    """Land `count` commits in a chain; every third block is taken back first. The answer is what was acknowledged."""
    parent, made = "", []
    for n in range(count):
        if n % 3 == 0:
            with contextlib.suppress(TakenBack), store.write() as writer:
                artifact = writer.put(f"{name} half {n}".encode())
                draft = Draft(artifact=artifact, parent=parent, format="x", time=n * 1_000_000, session_id=f"half {n}")
                store.get_commit(writer.commit(draft).id)
                raise TakenBack
        with store.write() as writer:
            artifact = writer.put(f"{name} {n} ".encode() * 100)
            facts = {"principal": name, "session_id": name, "checkpoint": "turn_boundary"}
            commit = writer.commit(Draft(artifact=artifact, parent=parent, format="x", time=n * 1_000_000, **facts))
        parent = commit.id
        made.append(commit.id)
    return made


if __name__ == "__main__":
    with contextlib.closing(open_store(sys.argv[1])) as mine:
        print(*write(mine, sys.argv[2], int(sys.argv[3])))
