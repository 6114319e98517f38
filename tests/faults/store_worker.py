"""A worker for the fault sweep: checkpoints, forks, compacts and collects, and says what was acknowledged.

    store_worker.py PATH SCENARIO

Each line of output names something that the store has promised to keep: `commit ID`, `branch NAME ID`, `gone NAME`.
"""

import sys

from harken.errors import HarkenError
from harken.store import Draft, blob_writer, gc, open_store, packing

T0 = 1_771_756_200_000_000


def say(*words):
    print(*words, flush=True)


def commit(store, text, parent, **fields):
    with store.write() as writer:
        artifact = writer.put(text)
        made = writer.commit(Draft(artifact=artifact, parent=parent, format="x", time=T0 + len(parent), **fields))
    say("commit", made.id)
    return made.id


def checkpoint(store):
    """A chain, packed on the way because a full frame is small here."""
    tip = ""
    for n in range(6):
        tip = commit(store, b"turn %d " % n * 300, tip)
    return tip


def fork(store):
    tip = checkpoint(store)
    with store.write() as writer:
        writer.move("try", kind="branch", to=tip, expect="", time=T0, why="fork")
    say("branch", "try", tip)
    other = commit(store, b"the other way", tip)
    with store.write() as writer:
        writer.move("try", kind="branch", to=other, expect=tip, time=T0, record=False)
    say("branch", "try", other)


def compact(store):
    """The delta before it and the summary are one transaction: both or none."""
    tip = checkpoint(store)
    with store.write() as writer:
        delta = writer.commit(
            Draft(artifact=writer.put(b"last words"), parent=tip, format="x", time=T0, checkpoint="compaction")
        )
        summary = writer.commit(
            Draft(
                artifact=writer.put(b"in short"),
                parent=delta.id,
                format="x",
                time=T0,
                commit_type="compaction",
                checkpoint="compaction",
            )
        )
        writer.annotate(summary.id, "summary", "in short", time=T0)
    say("commit", delta.id)
    say("commit", summary.id)


def collect(store):
    checkpoint(store)
    with store.write() as writer:
        gone = writer.put(b"gone " * 30_000, policy="ephemeral", expires=1)
        kept = writer.put(b"kept " * 30_000, policy="ephemeral", expires=1 << 50)
    say("artifact", kept)
    gc(store, now=10)
    say("gone", gone)
    commit(store, b"after", "")


def main(path, scenario):
    packing.FRAME_SIZE = 6_000
    packing.FEW = 3
    blob_writer.LOOSE_LIMIT = 5_000
    try:
        store = open_store(path)
        globals()[scenario](store)
        store.close()
    except HarkenError as error:
        say("error", type(error).__name__, error)
        sys.exit(7)
    except OSError as error:
        say("error", type(error).__name__, error)
        sys.exit(8)
    say("done")


main(*sys.argv[1:])
