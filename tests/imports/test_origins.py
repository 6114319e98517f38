"""A session that Harken began says in its own file what it goes on from, so that every store knows it: on a new
machine, after the old store is gone, in a colleague's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import runtimes
from harken.api.sessions import SessionsRequest, sessions
from harken.formats.facts import ORIGIN, read_origin
from harken.repo import Repo
from harken.repo.counting import SessionFigures, TotalFigures
from support import claude_lines as claude
from support.rollouts import THREAD, Rollout

RUNTIMES = ("claude-code", "codex")
ASKED = ("How many?", "And now?")
NAMES = {"claude-code": "S", "codex": THREAD}


def held(runtime: str) -> bytes:
    """A session of two prompts and two answers."""
    if runtime == "codex":
        return Rollout().user(ASKED[0]).model("Seven.").tokens(9, 7).user(ASKED[1]).model("Eight.").tokens(20, 15).data
    return claude.dump(
        claude.user("u1", None, ASKED[0], 0),
        claude.assistant("u2", "u1", "Seven.", "m1", 1),
        claude.user("u3", "u2", ASKED[1], 2),
        claude.assistant("u4", "u3", "Eight.", "m2", 3),
    )


def go_on(runtime: str, path: Path) -> None:
    """One more prompt and its answer, as the program would put them behind what is there."""
    if runtime == "codex":
        added = Rollout(bare=True).user("Later?").model("Nine.").data
    else:
        session, last = path.stem, json.loads(path.read_bytes().splitlines()[-1])["uuid"]
        asked = claude.user(f"{session}-1", last, "Later?", 60) | {"sessionId": session}
        answer = claude.assistant(f"{session}-2", f"{session}-1", "Nine.", f"m{session}", 61) | {"sessionId": session}
        added = claude.dump(asked, answer)
    path.write_bytes(path.read_bytes() + added)


def bring_in(repo: Repo, *paths: Path) -> None:
    outcomes = [outcome for outcome in repo.import_sessions([str(path) for path in paths]) if outcome.error]
    assert [] == outcomes


def resumed(tmp_path: Path, source: str, target: str) -> tuple[Path, Path, str]:
    """A session, and its continuation in another file, as a store that is gone wrote it, with the source commit."""
    file = tmp_path / "old" / f"{NAMES[source]}.jsonl"
    file.parent.mkdir()
    file.write_bytes(held(source))
    with harken.open(tmp_path / "gone.db") as repo:
        bring_in(repo, file)
        done = repo.resume(NAMES[source], target, cwd=str(tmp_path), home=str(tmp_path / "home"))
    go_on(target, Path(done.path))
    return file, Path(done.path), done.source


def prompts(repo: Repo) -> dict[str, tuple[int, int]]:
    """By session, how many people's prompts it has and how many of these it carried over; the total under `all`."""
    found: dict[str, tuple[int, int]] = {}
    for told in repo.stats():
        if isinstance(told, TotalFigures):
            found["all"] = (told.figures.prompts.human, 0)
        elif isinstance(told, SessionFigures):
            found[told.session] = (told.figures.prompts.human, told.carried.prompts.human if told.carried else 0)
    return found


def root_of(repo: Repo, session: str) -> Any:
    return repo.history(session)[-1]


def name_of(path: Path) -> str:
    return path.stem[-36:]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["source first", "source last"])
@pytest.mark.parametrize("target", RUNTIMES)
@pytest.mark.parametrize("source", RUNTIMES)
def test_in_another_store_a_resumed_session_counts_once_and_names_its_source(
    tmp_path: Path, source: str, target: str, order: tuple[int, int]
) -> None:
    *files, commit = resumed(tmp_path, source, target)
    with harken.open(tmp_path / "new.db") as repo:
        for place in order:
            bring_in(repo, files[place])

        name = name_of(files[1])
        assert {NAMES[source]: (2, 0), name: (3, 2), "all": (3, 0)} == prompts(repo)
        assert commit == root_of(repo, name).forked_from
        assert "" == root_of(repo, NAMES[source]).forked_from


@pytest.mark.parametrize("target", RUNTIMES)
def test_the_list_of_sessions_says_so_in_both_directions(tmp_path: Path, target: str) -> None:
    file, written, commit = resumed(tmp_path, "claude-code", target)
    with harken.open(tmp_path / "new.db") as repo:
        bring_in(repo, file, written)
        listed = {one.session: one for one in sessions(repo, SessionsRequest())}

    assert ("S", commit) == (listed[name_of(written)].continues, listed[name_of(written)].continues_at)
    assert [name_of(written)] == listed["S"].continued_by
    assert (None, [], False) == (
        listed["S"].continues,
        listed[name_of(written)].continued_by,
        listed[name_of(written)].unused,
    )


@pytest.mark.parametrize("target", RUNTIMES)
def test_what_was_carried_over_is_known_where_its_source_is_not(tmp_path: Path, target: str) -> None:
    _, written, _ = resumed(tmp_path, "codex" if target == "claude-code" else "claude-code", target)
    with harken.open(tmp_path / "new.db") as repo:
        bring_in(repo, written)

        assert {name_of(written): (3, 2)} == prompts(repo)
        assert "" == root_of(repo, name_of(written)).forked_from


def test_where_the_source_has_grown_its_last_commit_of_that_time_is_named(tmp_path: Path) -> None:
    """A fresh import of it has no commit of the name that the file gives."""
    file, written, commit = resumed(tmp_path, "claude-code", "codex")
    mode = {"type": "mode", "mode": "plan", "sessionId": "S"}
    file.write_bytes(file.read_bytes() + claude.dump(mode, claude.user("u5", "u4", "And then?", 900)))
    with harken.open(tmp_path / "new.db") as repo:
        bring_in(repo, file, written)

        chain = [each.id for each in repo.history("S")]
        assert commit not in chain
        assert chain[1] == root_of(repo, name_of(written)).forked_from


def test_a_session_that_is_resumed_again_names_the_one_before_it_and_no_other(tmp_path: Path) -> None:
    file, written, _ = resumed(tmp_path, "codex", "claude-code")
    with harken.open(tmp_path / "gone.db") as repo:
        bring_in(repo, written)
        again = repo.resume(name_of(written), "claude-code", cwd=str(tmp_path), home=str(tmp_path / "home"))
    go_on("claude-code", Path(again.path))
    with harken.open(tmp_path / "new.db") as repo:
        bring_in(repo, Path(again.path), file, written)

        assert again.source == root_of(repo, again.session).forked_from
        assert {THREAD: (2, 0), name_of(written): (3, 2), again.session: (4, 3), "all": (4, 0)} == prompts(repo)
    assert 1 == Path(again.path).read_bytes().count(ORIGIN.encode())


@pytest.mark.parametrize("target", RUNTIMES)
def test_a_file_whose_beginning_was_changed_is_not_believed(tmp_path: Path, target: str) -> None:
    """The count of its bytes then means nothing: what may be its own counts."""
    _, written, _ = resumed(tmp_path, "codex" if target == "claude-code" else "claude-code", target)
    written.write_bytes(written.read_bytes().replace(b"Seven.", b"Seventeen."))
    with harken.open(tmp_path / "new.db") as repo:
        bring_in(repo, written)

        assert {name_of(written): (3, 0)} == prompts(repo)


def test_a_copy_under_another_id_does_not_take_the_words_for_its_own(tmp_path: Path) -> None:
    """A program that forks a session may copy every record of it, this one too."""
    _, written, _ = resumed(tmp_path, "codex", "claude-code")
    first, rest = written.read_bytes().split(b"\n", 1)
    scan = runtimes.get("claude-code").read.scan

    assert scan(first + b"\n" + rest, b"").origin is not None
    renamed = first.replace(b'"sessionId":"', b'"sessionId":"x')
    assert None is scan(renamed + b"\n" + rest, b"").origin


TOLD = {"session": "S", "source": "T", "commit": "ab" * 32, "time": "2026-01-01T00:00:00.000000Z", "size": 3}
TOLD |= {"digest": "ab" * 8, "tier": "1"}


@pytest.mark.parametrize(
    "odd",
    [
        {"commit": "zz" * 32},
        {"commit": "ab" * 9},
        {"commit": None},
        {"time": "yesterday"},
        {"size": -1},
        {"size": 1 << 80},
        {"tier": 1},
        {"digest": []},
        {"source": {}},
        {"source": "x" * 9999},
    ],
    ids=str,
)
def test_an_origin_that_harken_would_not_write_is_none(odd: dict[str, Any]) -> None:
    assert read_origin(TOLD, 9) is not None
    assert None is read_origin(TOLD | odd, 9)


@pytest.mark.parametrize(
    "odd", [{"source": "\ud800"}, {"source": "x" * 9999}, {"source": "S"}, {"size": 1 << 40}], ids=ascii
)
def test_whatever_a_file_says_of_its_origin_it_is_taken_in(tmp_path: Path, odd: dict[str, Any]) -> None:
    file = tmp_path / "S.jsonl"
    record = {"type": "harken-origin", "sessionId": "S", ORIGIN: TOLD | odd}
    file.write_bytes(claude.dump(record) + held("claude-code"))
    with harken.open(tmp_path / "new.db") as repo:
        bring_in(repo, file)

        assert {"S": (2, 0)} == prompts(repo)


def test_two_files_that_each_go_on_from_the_other_are_taken_in(tmp_path: Path) -> None:
    """No program writes them, but a transcript may be made by anybody."""
    names = ("0f0f0f0f-0000-4000-8000-000000000001", "0f0f0f0f-0000-4000-8000-000000000002")
    for own, other in (names, names[::-1]):
        record = {"type": "harken-origin", "sessionId": own, ORIGIN: TOLD | {"session": own, "source": other}}
        said = claude.user(own, None, "Who was first?", 0) | {"sessionId": own}
        (tmp_path / f"{own}.jsonl").write_bytes(claude.dump(record, said))
    with harken.open(tmp_path / "new.db") as repo:
        bring_in(repo, *(tmp_path / f"{name}.jsonl" for name in names))

        assert {names[0]: (1, 0), names[1]: (1, 0), "all": (2, 0)} == prompts(repo)
        assert [2, 2] == [len(repo.history(name)) for name in names]
        assert 4 == len(list(repo.log()))


def test_a_log_that_begins_with_a_conversation_says_so_to_every_store(tmp_path: Path) -> None:
    """`repo.session(path, start=REF)` and `chat --from`: whoever imports the log or opens it again knows the rest."""
    file, log = tmp_path / "S.jsonl", tmp_path / "log.jsonl"
    file.write_bytes(held("claude-code"))
    with harken.open(tmp_path / "gone.db") as repo:
        bring_in(repo, file)
        tip = repo.commit("S").id
        with repo.session(log, start=tip) as session:
            name = session.session_id
            session.log_transcript_entry("agent_001", {"role": "user", "content": "Later?"})
    with harken.open(tmp_path / "new.db") as repo:
        bring_in(repo, log)
        assert {name: (3, 2)} == prompts(repo)
        bring_in(repo, file)
        assert {"S": (2, 0), name: (3, 2), "all": (3, 0)} == prompts(repo)
        assert tip == root_of(repo, name).forked_from
    with harken.open(tmp_path / "third.db") as repo:
        bring_in(repo, file)
        with repo.session(log) as session:
            session.log_transcript_entry("agent_001", {"role": "user", "content": "Last?"})
        assert {"S": (2, 0), name: (4, 2), "all": (4, 0)} == prompts(repo)
        assert tip == root_of(repo, name).forked_from
