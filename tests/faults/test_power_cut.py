"""#50: whenever the power fails, what was acknowledged by something new is there afterwards."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import pytest

from harken.errors import HarkenError
from harken.log.disk import scan
from harken.store import fsck, open_store
from support.claude_lines import assistant, dump, user
from support.power import Cut, states, write_out

WORKER = Path(__file__).with_name("power_worker.py")
KINDS = ("store", "import", "backup", "log")


def kept(root: Path, kind: str) -> set[str]:
    """What can be read after the cut, by the names under which it was acknowledged."""
    if kind == "log":
        log = root / "session.jsonl"
        return {record.data["message_id"] for record in scan(log) if record.data} if log.exists() else set()
    path = root / {"backup": "copy.db"}.get(kind, "new/deep/store.db")
    try:
        with contextlib.closing(open_store(path, create=False)) as store:
            found = {commit.id for commit in store.commits()}
            for link in [link for name in found for link in store.walk(name)]:
                store.get(link.artifact)
            assert fsck(store, read_data=True).ok
            return found
    except HarkenError:
        return set()


def check(cut: Cut, root: Path, kind: str) -> None:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    write_out(cut.files, root)
    lost = set(cut.said) - kept(root, kind)
    assert set() == lost, f"after call {cut.after}, if {cut.assumed} survives: {sorted(cut.files)}"


def cuts(tmp_path: Path, kind: str) -> list[Cut]:
    (tmp_path / "root").mkdir()
    session = tmp_path / "11111111-2222-3333-4444-555555555555.jsonl"
    session.write_bytes(dump(user("u1", None, "hello"), assistant("a1", "u1", "good day", "m1", 1)))
    found = list(states(WORKER, tmp_path / "root", kind, session))
    assert found[-1].said, "the worker acknowledged something"
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_power_cut_right_after_an_acknowledgement_loses_nothing(tmp_path: Path, kind: str) -> None:
    """The worst moment of each acknowledgement: nothing survives but what is certain to."""
    done: set[int] = set()
    for cut in cuts(tmp_path, kind):
        if cut.assumed == "certain" and len(cut.said) not in done:
            done.add(len(cut.said))
            check(cut, tmp_path / "after", kind)
    assert len(done) > 1


@pytest.mark.faults
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", KINDS)
def test_a_power_cut_at_any_moment_loses_nothing(tmp_path: Path, kind: str) -> None:
    for cut in cuts(tmp_path, kind):
        check(cut, tmp_path / "after", kind)
