"""Sessions of pi and OpenClaw in a store: forks, sub-agents, names, and what happens to their files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import harken
from harken import runtimes
from harken.runtimes.importer import Importer
from support import pi_lines
from support.pi_lines import SESSION, PiSession, call

CHILD = "56d1ffc2-631a-4967-bc1f-b39da594b726"
FORK = "01a1df6b-afe7-728e-bfec-5b172e83baaf"


def take_in(repo: Any, folder: Path) -> dict[str, Any]:
    importer = Importer(repo.store, [runtimes.get("pi"), runtimes.get("openclaw")])
    return {outcome.session: outcome for outcome in importer.run(sorted(folder.rglob("*.jsonl")))}


def fork_of(original: PiSession, *, parent: str) -> bytes:
    """As pi forks: the entries are copied behind a header of their own."""
    header = PiSession(FORK, parentSession=parent).lines[0]
    made = PiSession()
    made.lines, made.last, made._second = [header, *original.lines[1:]], original.last, 900
    return made.user("Another way.", "fork0001").answer("Yes.", id="fork0002").data


def test_a_fork_is_linked_to_what_it_copies_and_its_usage_counts_once(tmp_path: Path) -> None:
    for parent in (f"/home/me/.pi/agent/sessions/--x--/{pi_lines.FILE}", "/somewhere/a.jsonl"):
        folder = tmp_path / str(len(parent))
        folder.mkdir()
        original = pi_lines.conversation()
        (folder / pi_lines.FILE).write_bytes(original.data)
        (folder / f"2026-11-16T00-00-00-000Z_{FORK}.jsonl").write_bytes(fork_of(original, parent=parent))
        with harken.open(folder / "store.db") as repo:
            found = take_in(repo, folder)

            assert found[FORK].forked_from in {commit.id for commit in repo.history(SESSION)}
            assert not found[SESSION].forked_from
            *_, alone = repo.stats([SESSION])
            *_, both = repo.stats([SESSION, FORK])
            assert (300, 400) == (alone.figures.usage.input, both.figures.usage.input)


def test_sessions_that_count_their_entries_alike_are_no_copies(tmp_path: Path) -> None:
    for number, text in enumerate(("One.", "Two.")):
        made = PiSession(f"session-{number}").user(text, "00000001").answer(text * 2, id="00000002", responseId="")
        (tmp_path / f"{number}.jsonl").write_bytes(made.data)
    with harken.open(tmp_path / "store.db") as repo:
        found = take_in(repo, tmp_path)

    assert ["", ""] == [outcome.forked_from for outcome in found.values()]


def openclaw_home(folder: Path) -> Path:
    sessions = folder / "agents" / "main" / "sessions"
    sessions.mkdir(parents=True)
    (sessions / f"{SESSION}.jsonl").write_bytes(pi_lines.openclaw().data)
    told = "[Fri 2026-03-06 13:08 PST] [Subagent Context] You are running as a subagent (depth 1/1).\n\n[Task]: Look."
    (sessions / f"{FORK}.jsonl").write_bytes(PiSession(FORK).user(told).answer("Nothing.").data)
    key = f"agent:main:subagent:{CHILD}"
    listed = {
        "agent:main:main": {"sessionId": SESSION, "updatedAt": 1, "displayName": "The chat"},
        key: {"sessionId": FORK, "spawnedBy": "agent:main:main", "label": "mail"},
        "damaged": [],
    }
    (sessions / "sessions.json").write_text(json.dumps(listed))
    return folder


def test_a_sub_agent_of_openclaw_is_below_its_session_at_the_call_that_started_it(tmp_path: Path) -> None:
    home = openclaw_home(tmp_path / "openclaw")
    with harken.open(tmp_path / "store.db") as repo:
        found = take_in(repo, home)

        assert {SESSION, f"{SESSION}/{CHILD}"} == set(found)
        assert {"openclaw"} == {outcome.runtime for outcome in found.values()}
        first = repo.history(f"{SESSION}/{CHILD}")[-1]
        assert (SESSION, "t1") == (first.spawned_from["session"], first.spawned_from["call_id"])
        [child] = repo.stats([f"{SESSION}/{CHILD}"])
        assert (0, 1) == (child.figures.prompts.human, child.figures.prompts.injected)
        rows = {row.session: row for row in repo.sessions()}
        assert "The chat" == rows[SESSION].title


def test_a_list_that_is_gone_or_damaged_leaves_sessions_of_their_own(tmp_path: Path) -> None:
    home = openclaw_home(tmp_path / "openclaw")
    for text in ("{", "[]", '{"a":'):
        (home / "agents" / "main" / "sessions" / "sessions.json").write_text(text)
        with harken.open(tmp_path / f"{len(text)}.db") as repo:
            assert {SESSION, FORK} == set(take_in(repo, home))


def test_a_session_goes_on_in_the_same_commits_as_it_grows_and_stays_when_its_file_is_gone(tmp_path: Path) -> None:
    made = pi_lines.compacted().answer(call("t9")).result("t9", "nine").answer("Done.")
    path = tmp_path / pi_lines.FILE
    with harken.open(tmp_path / "grown.db") as repo:
        for count in range(2, len(made.lines) + 1):
            path.write_bytes(b"".join(made.lines[:count]))
            grown = take_in(repo, tmp_path)[SESSION]
        with harken.open(tmp_path / "fresh.db") as other:
            fresh = take_in(other, tmp_path)[SESSION]
        assert (fresh.tip, fresh.figures, fresh.total_commits) == (grown.tip, grown.figures, grown.total_commits)
        path.unlink()
        take_in(repo, tmp_path)
        assert made.data == repo.materialize(SESSION, stop="root").bytes
