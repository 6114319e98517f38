"""Every recorded session, through the store: its context is what its program sent, and so it is after a resume.

The judge is what goes to the model. Of the source that is what the real program was seen to send; of a session that
Harken writes it is what the runtime would send for it (`make test-runtimes` shows that it does).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import groupby
from pathlib import Path

import pytest

from harken.formats import codex
from harken.formats.claude_code import context, messages
from harken.formats.codex.truncate import FALLBACK_BUDGET
from support.command import command, printed
from support.recordings import RecordedSession, Signature, recorded, sign_items, sign_messages
from support.wire import CODEX_ADDS, FOLDED, Item, anthropic_items, responses_items

each_session = pytest.mark.parametrize("case", recorded(agents=True), ids=lambda case: case.name)
BESIDE = re.compile(rb"/[^\s\"]*(?=/tool-results/)")
"""Where long outputs lie: beside the session that names them, and there are two sessions (#36)."""
FORKS = [each for each in recorded("codex") if each.scenario == "forked"]


@pytest.fixture
def store(case: RecordedSession, tmp_path: Path) -> tuple[str, str]:
    """A store that holds the recording."""
    where = ("--store", str(tmp_path / "store.db"))
    command(*where, "import", str(case.home), "--json")
    return where


def session_of(case: RecordedSession, store: tuple[str, str]) -> str:
    found = command(*store, "import", str(case.home), "--json")
    (line,) = [line for line in found if line.get("source") == str(case.path)]
    return str(line["session"])


@pytest.mark.parametrize("case", FORKS, ids=lambda case: case.name)
def test_a_fork_in_a_file_of_its_own_is_whole(case: RecordedSession, store: tuple[str, str]) -> None:
    """Codex writes only what comes after; the store puts the beginning before it."""
    data = printed(*store, "materialize", session_of(case, store))

    ours = sign_items(codex.request_items(data, output_budget=FALLBACK_BUDGET))

    assert len(ours) > 6
    assert case.sent[1 : 1 + len(ours)] == ours


@each_session
def test_in_its_own_runtime_it_says_the_same(case: RecordedSession, store: tuple[str, str], tmp_path: Path) -> None:
    session = session_of(case, store)
    known = printed(*store, "materialize", session)

    written = resumed(store, session, case.runtime, tmp_path)

    assert signed(case.runtime, BESIDE.sub(b"", known)) == signed(case.runtime, BESIDE.sub(b"", written))


@each_session
def test_in_the_other_runtime_it_says_the_same(case: RecordedSession, store: tuple[str, str], tmp_path: Path) -> None:
    """Every text, call, result and picture, once and in order; reasoning is sealed for the model that did it."""
    other = "codex" if case.runtime == "claude-code" else "claude-code"
    session = session_of(case, store)
    known = printed(*store, "materialize", session)

    written = resumed(store, session, other, tmp_path)

    assert list(said(case.runtime, known)) == list(said(other, written))


def resumed(store: tuple[str, str], session: str, runtime: str, folder: Path) -> bytes:
    """What `harken resume` writes for the runtime."""
    home = folder / "home"
    home.mkdir()
    (done,) = command(*store, "resume", session, "--in", runtime, "--home", str(home), "--json")
    return Path(done["path"]).read_bytes()


def signed(runtime: str, data: bytes) -> Signature:
    if runtime == "claude-code":
        return sign_messages(messages(context(data)))
    return sign_items(codex.request_items(data))


# -- what two runtimes must agree on -----------------------------------------------------------------------------------

RENAMED = {"Task": "Agent"}
"""A tool that Claude Code calls by another name today, also when it resumes an old session."""
ADDED = (*CODEX_ADDS, "# AGENTS.md instructions", "No response requested.", "<system-reminder>")
"""What a runtime puts between the words of a conversation by itself."""
UNANSWERED = ("The session ended before this call was answered", "aborted", "No result of this call was recorded.")
"""What each says of a call that was cut off."""


def said(runtime: str, data: bytes) -> Iterator[Item]:
    """What a session says to the model: its words, with neighbouring texts of one speaker as one; calls, results."""
    if runtime == "claude-code":
        items = anthropic_items({"messages": messages(context(data))})
    else:
        items = responses_items({"input": codex.request_items(data)})
    spoken = [item for item in items if item.kind != "thinking" and not item.text.startswith(ADDED)]
    for kind, run in groupby(spoken, key=lambda item: "user" if item.kind == "image" else item.kind):
        together = list(run)
        if kind in ("user", "assistant"):
            yield Item(kind, "\n".join(item.text for item in together if item.kind == kind))
            yield from (item for item in together if item.kind == "image")
        else:
            yield from (replace(item, text=plain(item.text)) for item in together)


@cache
def plain(text: str) -> str:
    """A result without what is a program's own."""
    text = FOLDED.sub("", text).strip()
    return "unanswered" if text.startswith(UNANSWERED) else RENAMED.get(text, text)
