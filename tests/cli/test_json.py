"""`--json` prints the answers of the api, with exactly their keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harken.api import reference
from harken.repo import Repo
from support.contexts import chain, keep, turn

Run = Any
OPERATIONS = {one.name: one for one in reference.operations()}


@pytest.mark.parametrize(
    ("operation", "args"),
    [
        ("agents", ["agents", "s"]),
        ("annotate", ["annotate", "b", "a remark"]),
        ("backup", ["backup", "copy.db"]),
        ("checkpoint", ["checkpoint", "--format", "morse-v1"]),
        ("compact", ["compact", "b"]),
        ("delete_name", ["branch", "--delete", "b"]),
        ("diff", ["diff", "b", "s"]),
        ("doctor", ["doctor"]),
        ("fork", ["fork", "b", "--name", "c"]),
        ("fsck", ["fsck"]),
        ("gc", ["gc"]),
        ("log", ["log"]),
        ("log", ["log", "--graph", "b"]),
        ("materialize", ["materialize", "b"]),
        ("moves", ["moves"]),
        ("names", ["branch"]),
        ("pin", ["pin", "b"]),
        ("resolve", ["resolve", "p"]),
        ("sessions", ["sessions"]),
        ("set_name", ["tag", "t", "b"]),
        ("show", ["show", "b"]),
        ("snapshot", ["snapshot", "b"]),
        ("trace", ["trace", "s", "m1a"]),
        ("undo", ["undo", "b"]),
        ("view_dialog", ["view", "dialog", "s"]),
        ("view_flow", ["view", "flow", "s"]),
        ("view_heard", ["view", "heard", "s", "m1a"]),
        ("view_knows", ["view", "knows", "s", "claude-code", "m1a"]),
        ("view_perspective", ["view", "perspective", "s", "claude-code"]),
        ("view_sequence", ["view", "sequence", "s"]),
        ("view_timeline", ["view", "timeline", "s"]),
        ("view_tree", ["view", "tree", "s"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_has_exactly_the_keys_of_an_answer(
    repo: Repo, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str, args: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    keep(repo, turn(1), session_id="s", principal="p", template="claude-code")
    repo.fork(chain(repo, [2]), "b")

    rows = run(*args, "--json", stdin=b"dot dash").json

    answers = {frozenset(struct.__struct_fields__) - {"body"} for struct in OPERATIONS[operation].answers}
    assert rows
    assert {frozenset(row) for row in rows} <= answers
