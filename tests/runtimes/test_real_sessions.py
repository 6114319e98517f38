"""Recorded sessions, and some of others: resumed by the program itself, and through Harken. Both say the same.

Where the other program goes on, its request must hold the same texts, calls and results in the same order; what each
program does to its own records on the way (long outputs cut short, tools renamed, calls that nobody answered) is
accounted for by the rules in `alike`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from support.conversations import heard
from support.harken_cli import harken
from support.lab import Lab
from support.recordings import CORPUS, corpus_files, recorded
from support.scripted_model import Say
from support.wire import FOLDED, Item

pytestmark = pytest.mark.runtimes
LIMIT = 2_000_000
PROBE = "What were we doing?"


def chosen(runtime: str, golden: str, step: int) -> list[Any]:
    """Some that were recorded; of the corpus every n-th that the real program was seen to resume, and knew much of."""
    ours = [each for each in recorded(runtime) if each.scenario in ("plain", "compacted", "interrupted")]
    found = [json.loads(path.read_text()) for path in corpus_files(f"{golden}/*.json")]
    known = [
        (Path(CORPUS or "", each["source"]), each["session_id"]) for each in found if len(each.get("signature", ())) > 6
    ]
    small = [pair for pair in known if pair[0].stat().st_size < LIMIT]
    return [pytest.param(each.path, each.session, id=each.name) for each in ours] + [
        pytest.param(*pair, id=pair[0].stem[:40]) for pair in small[::step]
    ]


def put_in_place(lab: Lab, runtime: str, source: Path, session: str) -> None:
    """A copy where the program finds it."""
    data = source.read_bytes()
    if runtime == "claude-code":
        target = lab.home / ".claude" / "projects" / "-elsewhere" / f"{session}.jsonl"
    else:
        data = re.sub(rb'"model_provider":\s*"[^"]*"', b'"model_provider":"lab"', data)
        target = lab.codex_home / "sessions" / "2026" / "11" / "15" / f"rollout-2026-11-15T10-00-00-{session}.jsonl"
    target.parent.mkdir(parents=True)
    target.write_bytes(data)


def go_on(lab: Lab, runtime: str, session: str) -> list[Item]:
    """Say one thing more, with room for any conversation, and read the request."""
    lab.fresh_model().play([Say("Gladly.")])
    if runtime == "claude-code":
        wide = {"DISABLE_AUTO_COMPACT": "1"}
        done = lab.claude(PROBE, "--resume", session, "--model", "claude-opus-4-6[1m]", env=wide)
    else:
        window = ("-c", "model_context_window=100000000", "-c", "model_auto_compact_token_limit=90000000")
        done = lab.codex(*window, "resume", session, PROBE)
    assert done.code == 0, done.err + done.out[-1000:]
    return heard(lab, runtime)


def through_harken(lab: Lab, source: Path, target: str) -> tuple[list[Item], dict[str, Any]]:
    """The same by way of the store."""
    [line] = [line for line in harken(lab, "import", str(source)) if "tip" in line and not line.get("parent")]
    home = lab.home / ".claude" if target == "claude-code" else lab.codex_home
    [written] = harken(lab, "resume", line["tip"], "--in", target, "--home", str(home))
    return go_on(lab, target, written["session"]), written


OWN = ("# AGENTS.md instructions", "No response requested.")
"""Texts that a program adds when it resumes."""
STOPPED = "<status>stopped</status>"
"""What Claude Code says, when it resumes, of commands that were still running."""
UNANSWERED = ("interrupted: the session ended", "aborted", "No result of this call was recorded.")
PROVIDERS = ("web_search_call", "tool_search_call", "tool_search_output", "compaction", "thinking", "image")


def alike(items: list[Item]) -> list[Item]:
    """What two programs must agree on: who said what, which calls were made, how each answer begins."""
    answered = {item.id for item in items if item.kind == "result" and not any(s in item.text for s in UNANSWERED)}
    same: list[Item] = []
    for item in items:
        if item.kind in PROVIDERS or item.text.startswith(OWN) or STOPPED in item.text:
            continue
        if item.kind in ("call", "result"):
            if item.id in answered and "tool_search" not in item.text:
                text = FOLDED.sub("", item.text)
                begins = text[:40].strip() if item.kind == "result" else text.replace("Task", "Agent")
                same.append(Item(item.kind, begins, item.id))
            continue
        # Claude Code repeats a text when the records of its message are apart.
        if item.kind != "assistant" or item not in same[-1:]:
            same.append(item)
    return same


@pytest.mark.parametrize(("source", "session"), chosen("claude-code", "golden_claude_resume", 4))
def test_a_real_session_of_claude_code(lab: Lab, source: Path, session: str) -> None:
    put_in_place(lab, "claude-code", source, session)
    native = go_on(lab, "claude-code", session)
    ours, written = through_harken(lab, source, "claude-code")
    assert ours == native
    assert (written["tier"], written["losses"]) == ("1", [])
    carried, written = through_harken(lab, source, "codex")
    assert alike(carried) == alike(native)
    thoughts = sum(item.kind == "thinking" for item in native)
    assert sum(loss["count"] for loss in written["losses"] if loss["what"] == "thinking") >= thoughts


@pytest.mark.parametrize(("source", "session"), chosen("codex", "golden_codex_resume", 3))
def test_a_real_session_of_codex(lab: Lab, source: Path, session: str) -> None:
    put_in_place(lab, "codex", source, session)
    native = go_on(lab, "codex", session)
    ours, written = through_harken(lab, source, "codex")
    assert ours == native
    assert (written["tier"], written["losses"]) == ("1", [])
    carried, _ = through_harken(lab, source, "claude-code")
    assert alike(carried) == alike(native)
