"""How many tokens a conversation has: what the model last counted, else an estimate from the text (#22)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harken import formats, runtimes
from harken.api.commits import counted_events
from harken.context import count
from harken.events import Event, Metric, Prompt, Response, ToolResult
from harken.formats.base import Counts
from harken.repo import Repo
from harken.runtimes.importer import Importer
from support.recordings import named, session_files
from support.rollouts import Rollout

from .conftest import Run

Record = dict[str, Any]
Lay = Callable[..., str]
LONG = "x" * 4000
"""What a record may hold besides what the model is told."""


@pytest.fixture
def lay(repo: Repo, tmp_path: Path) -> Lay:
    def write(*records: Record, name: str = "one") -> str:
        path = tmp_path / f"{name}.jsonl"
        known = {"sessionId": name, "isSidechain": False, "timestamp": "2026-01-01T00:00:00Z", "parentUuid": None}
        path.write_text("".join(json.dumps(known | record) + "\n" for record in records))
        list(Importer(repo.store, [runtimes.get("claude-code")]).run([path]))
        return name

    return write


def asked(uuid: str, words: str, **more: Any) -> Record:
    return {"type": "user", "uuid": uuid, "message": {"role": "user", "content": words}, "toolUseResult": LONG} | more


def answered(uuid: str, words: str, usage: Record | None = None, **more: Any) -> Record:
    body = {"id": f"msg-{uuid}", "model": "m", "role": "assistant", "content": [{"type": "text", "text": words}]}
    return {"type": "assistant", "uuid": uuid, "message": body | ({"usage": usage} if usage else {})} | more


USED = {"input_tokens": 10, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 90, "output_tokens": 7}


def test_what_the_model_counted_stands(repo: Repo, lay: Lay) -> None:
    session = lay(asked("u", "hello"), answered("a", "hi", USED, parentUuid="u"))

    made = repo.materialize(session)

    assert (1007, False) == (made.token_count, made.approximate)


def test_what_was_said_since_is_estimated_and_said_to_be(repo: Repo, run: Run, lay: Lay, tmp_path: Path) -> None:
    session = lay(asked("u", "hello"), answered("a", "hi", USED, parentUuid="u"), asked("v", "y" * 398, parentUuid="a"))

    made = repo.materialize(session)

    assert (1107, True) == (made.token_count, made.approximate)
    assert "about 1107 tokens" in run("materialize", session, "-o", str(tmp_path / "out.jsonl")).err


def test_without_a_count_the_text_is_measured_not_the_file(repo: Repo, run: Run, lay: Lay) -> None:
    session = lay(asked("u", "hello" * 8), answered("a", "hi" * 20, parentUuid="u"))

    made = repo.materialize(session)
    (shown,) = run("show", session, "--json").json

    assert made.token_count is not None
    assert 20 <= made.token_count < 50
    assert made.approximate
    assert (10, True) == (shown["token_count"], shown["approximate"])


def test_codex_says_it_with_its_last_request(repo: Repo, tmp_path: Path) -> None:
    rollout = Rollout().turn("hello")
    for total, last in ((100, 100), (300, 200)):
        sums = [{"input_tokens": number, "output_tokens": number // 10} for number in (total, last)]
        rollout.event("token_count", info={"total_token_usage": sums[0], "last_token_usage": sums[1]})
    (tmp_path / "rollout-a.jsonl").write_bytes(rollout.data)
    [done] = Importer(repo.store, [runtimes.get("codex")]).run([tmp_path / "rollout-a.jsonl"])

    made = repo.materialize(done.session)

    assert (220, False) == (made.token_count, made.approximate)


@pytest.mark.parametrize("path", session_files("codex"), ids=named)
def test_the_commits_of_codex_tell_no_more_than_the_whole(repo: Repo, path: Path) -> None:
    """Codex writes running totals: of one delta it is what that delta used, not what the session had used by then."""
    results = list(Importer(repo.store, [runtimes.get("codex")]).run([path]))

    told = [wrote(counted_events(repo, commit.id)) for done in results for commit in repo.history(done.tip)]

    assert sum(told) <= wrote(formats.get("codex-v1").read(path.read_bytes()))


def wrote(events: list[Event]) -> int:
    return sum(event.output_tokens or 0 for event in events if isinstance(event, Metric))


def test_show_tells_what_a_codex_commit_used_itself(repo: Repo, run: Run, tmp_path: Path) -> None:
    rollout = Rollout()
    for total, last in ((300, 300), (700, 400)):
        rollout.user("").model("Yes.")
        rollout.tokens(total, total, last={"input_tokens": last, "output_tokens": last})
    (tmp_path / "rollout-a.jsonl").write_bytes(rollout.data)
    [done] = Importer(repo.store, [runtimes.get("codex")]).run([tmp_path / "rollout-a.jsonl"])

    [shown] = run("show", done.session, "--json").json

    assert 400 == shown["token_count"]


def test_a_run_s_total_is_no_size_of_a_conversation() -> None:
    events: list[Event] = [
        Prompt(content="x" * 40),
        Metric(input_tokens=10, output_tokens=5),
        Response(content="y" * 40),
        Metric(input_tokens=9999, status="success"),
        Metric(input_tokens=9999, scope="embedded"),
    ]

    counts = count(events)

    assert (15, 10) == (counts.last_counted, counts.since)
    assert (25, True) == (counts.conversation.tokens, counts.conversation.approximate)


def test_stretches_add_up_to_what_stands_and_what_came_since() -> None:
    first = count([Prompt(content="x" * 40), Metric(input_tokens=100, output_tokens=5)])
    second = count([ToolResult(output="z" * 80)])

    assert (105, 20) == (Counts.total([first, second]).last_counted, Counts.total([first, second]).since)
    assert Counts.total([second]).last_counted is None


@pytest.mark.parametrize("path", session_files("claude-code"), ids=named)
def test_a_claude_code_delta_is_measured_as_its_events_are(path: Path) -> None:
    format = formats.get("claude-code-v1")
    data = path.read_bytes()

    for delta in format.split(data):
        part = data[delta.start : delta.end]
        assert count(format.read(part)).last_counted == format.measure(part).last_counted


def test_a_record_that_is_understood_and_no_conversation_is_not_called_unread(run: Run, lay: Lay) -> None:
    mode = {"type": "permission-mode", "permissionMode": "plan", "uuid": None}
    session = lay(asked("u", "hello"), answered("a", "hi", parentUuid="u"), mode, {"type": "never-seen", "uuid": None})

    lines = run("show", session).out.splitlines()

    assert [1, 1] == [sum(line.split()[:1] == [word] for line in lines) for word in ("other", "unread")]
