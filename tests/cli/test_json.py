"""`--json` prints the answers of the api, with exactly their keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import harken.api
from harken.api import reference
from harken.repo import Repo
from support.commands import LEAVES
from support.contexts import chain, keep, turn
from support.std_documents import multi
from support.viewed import cafe, write_log

Run = Any
OPERATIONS = {one.name: one for one in reference.operations()}


PRINTED: list[tuple[str, list[str]]] = [
    ("agents", ["agents", "s"]),
    ("annotate", ["annotate", "b", "a remark"]),
    ("backup", ["backup", "copy.db"]),
    ("checkpoint", ["checkpoint", "--format", "morse-v1"]),
    ("compact", ["compact", "b"]),
    ("delete_name", ["branch", "--delete", "b"]),
    ("diff", ["diff", "b", "s"]),
    ("doctor", ["doctor"]),
    ("export", ["export", "s", "--to", "md"]),
    ("export_parquet", ["export", "--to", "parquet", "tables"]),
    ("forget", ["forget", "s"]),
    ("fork", ["fork", "b", "--name", "c"]),
    ("fsck", ["fsck"]),
    ("gc", ["gc"]),
    ("index", ["index"]),
    ("log", ["log"]),
    ("log", ["log", "--graph", "b"]),
    ("materialize", ["materialize", "b"]),
    ("moves", ["moves"]),
    ("names", ["branch"]),
    ("pin", ["pin", "b"]),
    ("resolve", ["resolve", "p"]),
    ("search", ["search", "question"]),
    ("secrets", ["secrets"]),
    ("sessions", ["sessions"]),
    ("set_name", ["tag", "t", "b"]),
    ("show", ["show", "b"]),
    ("snapshot", ["snapshot", "b"]),
    ("summarize", ["summarize"]),
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
    ("current_context", ["current-context"]),
    ("import_sessions", ["import", "talk.jsonl"]),
    ("resume", ["resume", "b", "--in", "codex", "--home", "home"]),
    ("stats", ["stats"]),
    ("usage", ["stats", "--by", "model"]),
    ("report", ["stats", "s", "--details"]),
    ("view_interventions", ["view", "interventions", "cafe.jsonl"]),
    ("std_export", ["std", "export", "s"]),
    ("std_repair", ["std", "repair", "document.json"]),
    ("std_show", ["std", "show", "document.json"]),
    ("std_validate", ["std", "validate", "document.json"]),
]
"""The operation, and the words that print its answers."""
ELSEWHERE = {
    "config show": "is the command line's own (test_config.py)",
    "serve": "never ends by itself (test_serve.py)",
    "token create": "is the command line's own (test_serve.py)",
    "token list": "is the command line's own (test_serve.py)",
    "token revoke": "is the command line's own (test_serve.py)",
    "sql": "its keys are the columns of the query (test_sql.py)",
    "watch": "never ends by itself; it prints what `import` prints",
}


def name_of(value: object) -> str:
    return " ".join(value) if isinstance(value, list) else ""


@pytest.fixture(autouse=True)
def things(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something of everything, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    keep(repo, turn(1), session_id="s", principal="p", template="claude-code")
    repo.fork(chain(repo, [2]), "b")
    Path("talk.jsonl").write_bytes(repo.materialize("b", format="claude-code-v1").bytes)
    write_log(Path("cafe.jsonl"), cafe())
    Path("document.json").write_text(json.dumps(multi()), "utf-8")


def test_every_command_that_prints_json_is_tried() -> None:
    able = {words for words, one in LEAVES.items() if any(param.name == "as_json" for param in one.params)}
    tried = {" ".join(args[:2]) if args[0] in ("std", "view") else args[0] for _, args in PRINTED}

    assert able == tried | ELSEWHERE.keys()


@pytest.mark.parametrize(("operation", "args"), PRINTED, ids=name_of)
def test_has_exactly_the_keys_of_an_answer(run: Run, operation: str, args: list[str]) -> None:
    rows = run(*args, "--json", stdin=b"dot dash").json

    answers = {frozenset(struct.__struct_fields__) - {"body"} for struct in OPERATIONS[operation].answers}
    assert rows
    assert {frozenset(row) for row in rows} <= answers


@pytest.mark.parametrize(
    ("operation", "args", "fields"),
    [
        ("agents", ["agents", "s"], {"session": "s"}),
        ("diff", ["diff", "b", "s"], {"a": "b", "b": "s"}),
        ("log", ["log"], {}),
        ("materialize", ["materialize", "b"], {"ref": "b"}),
        ("moves", ["moves"], {}),
        ("names", ["branch"], {"kind": "branch"}),
        ("resolve", ["resolve", "p"], {"principal": "p"}),
        ("sessions", ["sessions"], {}),
        ("show", ["show", "b"], {"ref": "b"}),
        ("stats", ["stats"], {}),
        ("usage", ["stats", "--until", "2030-01-01T00:00:00Z"], {"until": "2030-01-01T00:00:00.000001Z"}),
        ("report", ["stats", "s", "--details"], {"session": "s"}),
        ("trace", ["trace", "cafe.jsonl", "m14"], {"file": "cafe.jsonl", "message": "m14"}),
        ("view_dialog", ["view", "dialog", "cafe.jsonl"], {"file": "cafe.jsonl"}),
        ("view_flow", ["view", "flow", "cafe.jsonl"], {"file": "cafe.jsonl"}),
        ("view_heard", ["view", "heard", "cafe.jsonl", "m14"], {"file": "cafe.jsonl", "message": "m14"}),
        ("view_interventions", ["view", "interventions", "cafe.jsonl"], {"file": "cafe.jsonl"}),
        ("view_sequence", ["view", "sequence", "cafe.jsonl"], {"file": "cafe.jsonl"}),
        ("view_timeline", ["view", "timeline", "s"], {"session": "s"}),
        ("view_tree", ["view", "tree", "cafe.jsonl"], {"file": "cafe.jsonl"}),
    ],
    ids=name_of,
)
def test_prints_what_the_operation_answers(
    repo: Repo, run: Run, operation: str, args: list[str], fields: dict[str, str]
) -> None:
    described = OPERATIONS[operation]
    answer = harken.api.operation(operation)(repo, described.request(**fields))
    told = [json.loads(msgspec.json.encode(one)) for one in (answer if described.many else [answer])]

    rows = run(*args, "--json").json

    assert rows
    assert [{key: value for key, value in one.items() if key != "body"} for one in told] == rows
