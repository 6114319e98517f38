"""`harken stats`: figures of sessions in the store and in files, alone and together."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harken import runtimes
from harken.repo import Repo
from harken.runtimes.files import walk
from harken.runtimes.importer import Importer

from .conftest import Run

CORPUS = os.environ.get("HARKEN_CORPUS", "")
FIELDS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}
Record = dict[str, Any]
Lay = Callable[..., Path]


def said(uuid: str, message: str, output: int, block: Record, **more: Any) -> Record:
    usage = {"input_tokens": 10, "output_tokens": output, "cache_read_input_tokens": 100}
    body = {"id": message, "model": "m", "role": "assistant", "content": [block], "usage": usage}
    return {"type": "assistant", "uuid": uuid, "requestId": f"req-{message}", "message": body} | more


def asked(uuid: str, content: Any, **more: Any) -> Record:
    return {"type": "user", "uuid": uuid, "message": {"role": "user", "content": content}} | more


def text(words: str) -> Record:
    return {"type": "text", "text": words}


def talk(**more: Any) -> list[Record]:
    """A person asks, the model answers over two lines and calls a tool, the harness adds something."""
    result = [{"type": "tool_result", "tool_use_id": "t1", "content": "a.txt"}]
    return [
        asked("u1", "what is here?", **more),
        said("a1", "msg_1", 1, text("let me look"), **more),
        said("a2", "msg_1", 40, {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}, **more),
        asked("u2", result, **more),
        asked("u3", "<task-notification>done</task-notification>", **more),
        said("a3", "msg_2", 7, text("a file"), **more),
    ]


@pytest.fixture
def lay(tmp_path: Path, repo: Repo) -> Lay:
    """Write a session's file and import everything that was written."""

    def write(name: str, session: str, records: list[Record]) -> Path:
        path = tmp_path / "projects" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        stamped = [
            {"sessionId": session, "parentUuid": None, "timestamp": f"2026-01-01T00:00:{at:02}Z"} | record
            for at, record in enumerate(records)
        ]
        path.write_text("".join(json.dumps(record) + "\n" for record in stamped))
        list(Importer(repo.store, [runtimes.get("claude-code")]).run(walk(path)))
        return path

    return write


def test_a_session_is_one_line_with_the_keys_others_rely_on(lay: Lay, run: Run) -> None:
    lay("one.jsonl", "one", talk())

    (line,) = run("stats", "one", "--json").json

    assert {"input": 20, "output": 47, "cache_read": 200, "cache_write": 0} == line["usage"]
    assert {"human": 1, "injected": 1, "tool_result": 1} == line["prompts"]
    assert {"Bash": 1} == line["tools"]
    assert (0, 0) == (line["compactions"], line["cost_usd_micros"])


def test_a_file_has_the_figures_of_its_session(lay: Lay, run: Run) -> None:
    path = lay("one.jsonl", "one", talk())

    (stored,), (read,) = run("stats", "one", "--json").json, run("stats", str(path), "--json").json

    assert stored["usage"] == read["usage"]
    assert stored["prompts"] == read["prompts"]


def test_what_a_fork_copied_counts_once_in_the_total(lay: Lay, run: Run) -> None:
    lay("one.jsonl", "one", talk())
    lay("two.jsonl", "two", [*talk(), asked("u9", "and then?"), said("a9", "msg_9", 5, text("nothing"))])

    one, two, last = run("stats", "one", "two", "--json").json

    assert (47, 52) == (one["usage"]["output"], two["usage"]["output"])
    assert 52 == last["total"]["usage"]["output"]
    assert {"human": 2, "injected": 1, "tool_result": 1} == last["total"]["prompts"]
    assert {"Bash": 1} == last["total"]["tools"]


def test_sub_agents_stand_beneath_their_session(lay: Lay, run: Run) -> None:
    lay("one.jsonl", "one", talk())
    side = {"isSidechain": True, "agentId": "x1"}
    lay(
        "one/subagents/agent-x1.jsonl", "one", [asked("s1", "count", **side), said("s2", "msg_s", 3, text("3"), **side)]
    )

    (line,) = run("stats", "one", "--json").json
    (alone,) = run("stats", "one", "--no-agents", "--json").json

    assert 47 == line["usage"]["output"] == alone["usage"]["output"]
    assert [3] == [agent["usage"]["output"] for agent in line["agents"]]
    assert 50 == line["with_agents"]["usage"]["output"]
    assert 1 == line["with_agents"]["prompts"]["human"], "nobody types to a sub-agent"
    assert "agents" not in alone


def test_without_a_session_all_are_counted(lay: Lay, run: Run) -> None:
    lay("one.jsonl", "one", talk())
    lay("two.jsonl", "two", [asked("u7", "hello"), said("a7", "msg_7", 2, text("hi"))])

    *lines, last = run("stats", "--json").json

    assert {"one", "two"} == {line["session"] for line in lines}
    assert (2, 49) == (last["total"]["sessions"], last["total"]["usage"]["output"])


def test_a_session_named_twice_counts_once(lay: Lay, run: Run) -> None:
    lay("one.jsonl", "one", talk())

    assert 1 == len(run("stats", "one", "one", "--json").json)


@pytest.mark.parametrize("columns", ["40", "200"])
def test_a_person_sees_the_figures_at_any_width(
    lay: Lay, run: Run, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    lay("one.jsonl", "one", talk())
    lay("two.jsonl", "two", [asked("u7", "hello"), said("a7", "msg_7", 2, text("hi"))])
    monkeypatch.setenv("COLUMNS", columns)

    done = run("stats")

    assert "total of 2" in done.out
    assert "49" in done.out.split("total of 2")[1]
    assert "\x1b" not in done.out
    assert max(map(len, done.lines)) <= int(columns)


def test_an_unknown_session_is_not_found(run: Run) -> None:
    assert 3 == run("stats", "nobody").code


def test_a_file_in_no_format_is_refused(run: Run, tmp_path: Path) -> None:
    strange = tmp_path / "notes.txt"
    strange.write_text("just words")

    done = run("stats", str(strange))

    assert 2 == done.code
    assert "no format" in done.err


def test_an_empty_store_says_so(run: Run, repo: Repo) -> None:
    done = run("stats", "--json")

    assert (0, []) == (done.code, done.json)
    assert "harken import" in done.err


# -- real sessions -----------------------------------------------------------------------------------------------------


Counts = dict[tuple[str, str], dict[str, int]]


def counted(path: Path) -> tuple[Counts, Counts, int]:
    """Usage by (message, request), written down here once more and by other means; beside it what progress records
    embed, and the input as a sum over lines."""
    own: Counts = {}
    nested: Counts = {}
    naive = 0
    for line in path.read_bytes().splitlines():
        for record in objects(line.decode("utf-8", "replace")):
            kind, outer, table = record.get("type"), record, own
            if kind == "progress":
                outer, table = (record.get("data") or {}).get("message"), nested
            body = outer.get("message") if isinstance(outer, dict) else None
            if kind not in ("assistant", "progress") or not isinstance(body, dict) or not body.get("usage"):
                continue
            if body.get("model") == "<synthetic>" or (table is nested and not body.get("id")):
                continue
            naive += (body["usage"].get("input_tokens") or 0) if table is own else 0
            merge(table, {(body.get("id") or record["uuid"], outer.get("requestId") or ""): body["usage"]})
    return own, nested, naive


def merge(table: Counts, more: Counts) -> None:
    for key, usage in more.items():
        if key not in table or usage["output_tokens"] > table[key]["output_tokens"]:
            table[key] = usage


def summed(own: Counts, nested: Counts) -> dict[str, int]:
    known = {message for message, _ in own}
    rows = [*own.values(), *(usage for key, usage in nested.items() if key[0] not in known)]
    return {name: sum(usage.get(field) or 0 for usage in rows) for name, field in FIELDS.items()}


def objects(line: str) -> list[Record]:
    """The objects on a line, of which there may be two."""
    found, at, decoder = [], 0, json.JSONDecoder()
    while at < len(line):
        try:
            value, at = decoder.raw_decode(line, at)
        except ValueError:
            break
        found.append(value)
        at += len(line[at:]) - len(line[at:].lstrip())
    return [value for value in found if isinstance(value, dict)]


needs_corpus = pytest.mark.skipif(not CORPUS, reason="HARKEN_CORPUS names no folder of real sessions")


@needs_corpus
def test_real_sessions_cost_what_another_count_says(repo: Repo, run: Run) -> None:
    """Each by itself, and all of them together, where copies and embedded figures count once."""
    outcomes = list(Importer(repo.store, [runtimes.get("claude-code")]).run(walk(Path(CORPUS, "claude_code"))))
    sources = [Path(outcome.source) for outcome in outcomes if outcome.status == "new"]
    all_own: Counts = {}
    all_nested: Counts = {}
    wrong, naive = [], 0
    for source in sources:
        own, nested, plain = counted(source)
        (line,) = run("stats", str(source), "--json").json
        if summed(own, nested) != line["usage"]:
            wrong.append(source.name)
        merge(all_own, own)
        merge(all_nested, nested)
        naive += plain

    total = run("stats", "--json").json[-1]["total"]["usage"]

    assert len(sources) > 10
    assert [] == wrong
    assert summed(all_own, all_nested) == total
    assert naive > 2 * total["input"], "a sum over lines is far too high"


@needs_corpus
@pytest.mark.parametrize(("runtime", "folder"), [("claude-code", "claude_code"), ("codex", "codex_rollout")])
def test_the_scan_of_an_import_and_the_fold_over_events_agree(repo: Repo, run: Run, runtime: str, folder: str) -> None:
    outcomes = list(Importer(repo.store, [runtimes.get(runtime)]).run(walk(Path(CORPUS, folder))))

    apart = [
        (outcome.source, outcome.usage, figures)
        for outcome in outcomes
        if outcome.status == "new"
        and outcome.usage != (figures := run("stats", outcome.source, "--json").json[0]["usage"])
    ]

    assert [] == apart
