"""Every id that a command prints for a message is one that `SESSION@ID` finds, in the commit that holds the message.

A record without a name of its own is called after its place in the session's file, `@` and an offset, whoever tells of
it: `show`, `diff`, the views, or the conversation that a compaction left.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import harken
from harken import formats, runtimes
from harken.errors import NotFound
from harken.events import Event
from harken.runtimes.files import walk
from harken.runtimes.importer import Importer
from harken.store import Commit, SessionRow
from support.recordings import CORPUS, FOLDER

SAMPLES = [FOLDER, *([CORPUS] if CORPUS else [])]
MOST = 12
"""How many of the ids of a session are looked up; each costs a walk through its chain."""


def some(ids: Iterator[str]) -> list[str]:
    """A few of the ids, from all over the session."""
    listed = list(dict.fromkeys(filter(None, ids)))
    return listed[:: max(1, len(listed) // MOST)]


def holds(repo: Any, commit: Commit, id: str) -> bool:
    """Counted here by hand: the bytes of the chain before the commit, and where lines begin in its own."""
    data = repo.store.get(commit.artifact)
    named, at, offset = id.rpartition("@")  # what a sub-agent was given lies in its parent's chain, and says so
    if not at:
        return id.encode() in data
    assert named in ("", commit.session_id)
    chain = [link for link in repo.store.chain(commit.id) if link.commit_type == "delta"]
    before = sum(len(repo.store.get(link.artifact)) for link in chain[1:])
    whole = b"".join(repo.store.get(link.artifact) for link in reversed(chain))
    place = int(offset)
    return before <= place < before + len(data) and (place == 0 or whole[place - 1 : place] in (b"\n", b"}"))


@pytest.fixture(scope="module", params=SAMPLES, ids=["recorded", "corpus"][: len(SAMPLES)])
def repo(request: Any, tmp_path_factory: Any) -> Any:
    """A store with everything below a folder, for every test of this file: none of them changes it."""
    with harken.open(tmp_path_factory.mktemp("ids") / "store.db") as opened:
        for _ in Importer(opened.store, [runtimes.get(name) for name in runtimes.names()]).run(walk(request.param)):
            pass
        yield opened


@pytest.fixture
def rows(repo: Any) -> list[SessionRow]:
    found = [row for row in repo.sessions() if row.tip]
    assert len(found) > 20
    return found


def check(repo: Any, row: SessionRow, ids: Iterator[str]) -> int:
    chosen = some(ids)
    for id in chosen:
        found = repo.commit(f"{row.session}@{id}")
        assert holds(repo, found, id), (row.session, id, found.short)
    return sum(id.startswith("@") for id in chosen)


def test_what_show_prints(repo: Any, rows: list[SessionRow]) -> None:
    by_place = 0
    for row in rows:
        commits = repo.store.chain(repo.commit(row.session).id)  # without what a fork was handed down
        chosen = commits[:: max(1, len(commits) // 5)]
        by_place += check(repo, row, (event.message_id for commit in chosen for event in repo.delta(commit)))

    assert by_place > 20


def test_what_a_conversation_after_compaction_prints(repo: Any, rows: list[SessionRow]) -> None:
    for row in rows:
        whole = repo.materialize(row.session, stop="root")
        said: dict[str, str] = {}
        for event in formats.get(whole.format).read(whole.bytes):
            said[event.message_id] = said.get(event.message_id, "") + words(event)
        conversation = repo.conversation(row.session)

        check(repo, row, (event.message_id for event in conversation))
        for event in conversation:
            # A name that is written twice in a file tells nothing apart, so only places are compared. What a runtime
            # put together in one record may come apart in the conversation.
            if event.message_id.startswith("@"):
                assert words(event) in said[event.message_id], (row.session, event.message_id)


def test_what_the_views_print(repo: Any, rows: list[SessionRow]) -> None:
    for row in rows:
        if not row.parent:
            ids = repo.view(row.session).index.ids
            for id in [*some(iter(ids)), *(id for id in ids if "#created" in id)]:
                assert repo.commit(f"{row.session}@{id}")
                assert "#created" not in id or not repo.commit(id).parent, "an agent is made where its chain begins"


def words(event: Event) -> str:
    return str(getattr(event, "content", "") or getattr(event, "output", ""))


def test_a_place_at_which_no_record_begins_is_not_found(repo: Any, rows: list[SessionRow]) -> None:
    row = next(row for row in rows if row.runtime == "codex")

    with pytest.raises(NotFound, match=f"no record of {row.session} begins at @1") as caught:
        repo.commit(f"{row.session}@@1")

    assert "the nearest before it is @0" == caught.value.hint
