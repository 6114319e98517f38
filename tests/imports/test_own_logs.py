"""Harken's own logs can be imported (#34): one that was kept while it was written and one that is imported have the
same commits."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import runtimes
from harken.agents import load_session
from harken.events import Prompt
from harken.formats.session_log import context, scan, side_chains
from harken.log import Session
from harken.repo import Repo
from harken.runtimes import get
from harken.runtimes.importer import Importer
from harken.runtimes.plugins import Plugins
from support.contexts import memory_repo

CAFE = Path(__file__).parents[2] / "examples" / "cafe.toml"
VECTOR = Path(__file__).parents[1] / "repo" / "vectors" / "jill.jsonl"


def chains(repo: Repo) -> dict[str, list[tuple[str, str]]]:
    """Every chain, commit by commit: name and seal."""
    return {row.session: [(c.id, c.seal) for c in repo.history(row.tip)] for row in repo.sessions()}


def bring_in(repo: Repo, *paths: Path) -> list[str]:
    """Import log files; what became of each."""
    importer = Importer(repo.store, [get("harken")], now=repo.clock)
    return [outcome.status for outcome in importer.run(paths, named=True)]


def play(session: Session, *texts: str) -> None:
    async def talk() -> None:
        root, _ = load_session(session, language_model=f"scripted:{CAFE}")
        for text in texts:
            root.harken(text)
            await root.response()

    asyncio.run(talk())


@pytest.fixture
def cafe(tmp_path: Path) -> tuple[Repo, Path]:
    repo, path = memory_repo(), tmp_path / "cafe.jsonl"
    with repo.session(path) as session:
        play(session, "Create Jack and Jill and let them meet in a café.", "And then?", "Go on")
    return repo, path


def test_live_and_imported_sessions_have_the_same_commits(cafe: tuple[Repo, Path]) -> None:
    live, path = cafe
    imported = memory_repo()

    assert ["new"] == bring_in(imported, path)

    assert chains(live) == chains(imported)
    assert 4 == len(chains(live))


def test_the_agents_of_a_log_have_their_chains_whatever_the_file_is_called(tmp_path: Path) -> None:
    """The mark between a file and the agent inside it may be in the file's own name."""
    path = tmp_path / "take #2.jsonl"
    shutil.copy(VECTOR, path)
    repo = memory_repo()
    bring_in(repo, path)

    kept = {agent.agent: agent.session for agent in repo.agents(path)}

    assert {row.session for row in repo.sessions()} == set(kept.values())


def test_importing_what_was_kept_live_adds_nothing(cafe: tuple[Repo, Path]) -> None:
    live, path = cafe
    before, count = chains(live), len(live.store.commits())

    assert ["unchanged"] == bring_in(live, path)
    assert ["unchanged"] == bring_in(live, path)

    assert before == chains(live)
    assert count == len(live.store.commits())


def test_a_log_that_was_kept_live_has_the_figures_and_links_of_one_that_was_imported(cafe: tuple[Repo, Path]) -> None:
    live, path = cafe
    imported = memory_repo()
    importer = Importer(imported.store, [get("harken")])
    (fresh,) = importer.run([path])
    (known,) = Importer(live.store, [get("harken")]).run([path])

    assert (fresh.figures, fresh.total_records, fresh.agents) == (known.figures, known.total_records, known.agents)
    assert (0, 0, 0) == (known.records, known.commits, known.bytes)
    assert [origins(imported)] == [origins(live)]


def origins(repo: Repo) -> dict[str, Any]:
    """Where every session comes from, by its row and by its first commit."""
    return {row.session: (row.parent, repo.history(row.tip)[-1].spawned_from) for row in repo.sessions()}


def test_a_session_keeps_the_name_that_its_writer_chose(tmp_path: Path) -> None:
    repo, path, link = memory_repo(), tmp_path / "cafe.jsonl", tmp_path / "link.jsonl"
    with repo.session(path, session_id="chosen") as session:
        play(session, "Hello")
    link.symlink_to(path)

    assert ["unchanged"] == bring_in(repo, path)
    assert ["unchanged"] == bring_in(repo, link)
    with repo.session(path, session_id="chosen") as session:
        play(session, "And then?")
    assert ["unchanged"] == bring_in(repo, path)

    assert ["chosen"] == [row.session for row in repo.sessions() if not row.parent]


def test_a_session_whose_agent_has_no_name_is_called_after_its_first_request(tmp_path: Path) -> None:
    live, imported, path = memory_repo(), memory_repo(), tmp_path / "s.jsonl"
    with live.session(path) as session:
        play(session, "What is\nthe time?", "And now?")
    bring_in(imported, path)

    for repo in (live, imported):
        assert "What is the time?" == next(row.title for row in repo.sessions() if not row.parent)


@pytest.mark.parametrize("origin", ["attachment:environment", "system_reminder", ""])
def test_a_session_is_not_called_after_what_was_put_before_its_first_request(origin: str, tmp_path: Path) -> None:
    live, imported, path = memory_repo(), memory_repo(), tmp_path / "s.jsonl"
    came_along = Prompt(content="<system-reminder>", source="injected", origin=origin)
    with live.session(path) as session:
        session.log_agent_created("agent_001")
        session.append([one.replace(agent_id="agent_001") for one in (came_along, Prompt(content="Look at it."))])
    bring_in(imported, path)

    for repo in (live, imported):
        assert ["Look at it."] == [row.title for row in repo.sessions()]


def test_what_was_logged_while_nobody_kept_it_is_grown(cafe: tuple[Repo, Path]) -> None:
    live, path = cafe
    with Session(path) as session:
        play(session, "One more")

    assert ["grown"] == bring_in(live, path)
    assert path.read_bytes() == live.materialize(next(iter(chains(live))), stop="root").bytes


def test_a_session_that_was_imported_goes_on_live(cafe: tuple[Repo, Path], tmp_path: Path) -> None:
    _, path = cafe
    repo, late = memory_repo(), memory_repo()
    bring_in(repo, path)

    with repo.session(path) as session:
        play(session, "One more")
    bring_in(late, path)

    assert chains(late) == chains(repo)


def test_a_log_imported_as_it_grows_ends_at_the_same_commits(tmp_path: Path) -> None:
    lines = VECTOR.read_bytes().splitlines(keepends=True)
    path, growing, whole = tmp_path / "jill.jsonl", memory_repo(), memory_repo()

    for end in range(1, len(lines) + 1):
        path.write_bytes(b"".join(lines[:end]))
        bring_in(growing, path)
    bring_in(whole, path)

    assert chains(whole) == chains(growing)


def test_the_chain_of_a_log_is_its_own_bytes(tmp_path: Path) -> None:
    path, repo = tmp_path / "jill.jsonl", memory_repo()
    shutil.copy(VECTOR, path)
    bring_in(repo, path)
    root = next(row for row in repo.sessions() if not row.parent)

    assert path.read_bytes() == repo.materialize(root.session, stop="root").bytes
    for row in repo.sessions():
        if row.parent:
            assert side_chains(path.read_bytes())[row.agent] == repo.materialize(row.session, stop="root").bytes


FIRST = b'{"message_id":"m0","event_type":"agent_created","agent_id":"a","role":"root"}\n'
lines = st.lists(
    st.sampled_from(
        [
            b'{"message_id":"m1","event_type":"agent_created","agent_id":"a"}\n',
            b'{"message_id":"m2","event_type":"transcript_entry","agent_id":"a","role":"user","content":"hi"}\n',
            b'{"message_id":"m3","event_type":"transcript_entry","agent_id":"a","role":"assistant","content":"ho"}\n',
            b'{"message_id":"m4","event_type":"transcript_entry","agent_id":"a","role":"assistant","tool_calls":'
            b'[{"id":"c","function":{"name":"task","arguments":"{}"}}]}\n',
            b'{"message_id":"m5","event_type":"agent_created","agent_id":"b","cause":"m4"}\n',
            b'{"message_id":"m6","event_type":"transcript_entry","agent_id":"b","role":"user","content":"go"}\n',
            b'{"message_id":"m7","event_type":"transcript_entry","agent_id":"b","role":"assistant","content":"on"}\n',
            b'{"message_id":"m8","event_type":"transcript_entry","agent_id":"a","role":"tool","tool_call_id":"c"}\n',
            b'{"message_id":"m9","event_type":"transcript_edit","agent_id":"a","action":"compact","n":2,"content":"s"}\n',
            b'{"message_id":"m10","event_type":"transcript_edit","agent_id":"b","action":"truncate","n":1}\n',
            b'{"message_id":"m11","event_type":"agent_terminated","agent_id":"a"}\n',
            b'{"message_id":"m12","event_type":"metric","agent_id":"a","output_tokens":3}\n',
            b"not json\n",
            b"\n",
            b'{"message_id":"m13","event_type":"transcript_entry","agent_id":"a","role":"user","content":"torn"}',
        ]
    ),
    max_size=14,
)


@settings(max_examples=150, deadline=None)
@given(lines, st.integers(0, 14))
def test_a_scan_that_goes_on_finds_what_a_fresh_one_finds(texts: list[bytes], at: int) -> None:
    data, part = b"".join(texts), b"".join(texts[:at])
    whole, before = scan(data), scan(part)

    later = scan(data[before.offset :], before.state)

    closed = tuple(delta for delta in before.deltas if delta.closed)
    assert whole.deltas == (*closed, *later.deltas)
    assert (whole.records, whole.opaque, whole.messages) == (later.records, later.opaque, later.messages)
    assert (whole.agents, whole.calls, whole.fingerprint) == (later.agents, later.calls, later.fingerprint)
    assert data == b"".join(data[d.start : d.end] for d in whole.deltas if d.commit_type == "delta")


@settings(max_examples=100, deadline=None)
@given(lines)
def test_a_context_holds_what_the_session_says_its_agent_knows(
    tmp_path_factory: pytest.TempPathFactory, texts: list[bytes]
) -> None:
    """The format's context and the log's own transcripts follow one rule, for every agent."""
    data = FIRST + b"".join(texts)
    path = tmp_path_factory.mktemp("log") / "s.jsonl"
    path.write_bytes(data)
    with Session(path, readonly=True) as session:
        expected = {agent: [_said(entry) for entry in session.entries(agent)] for agent in session.agents}

    streams = {"a": data, **side_chains(data)}

    assert {agent: told for agent, told in expected.items() if told} == {
        agent: told
        for agent, stream in streams.items()
        if (told := [_said(orjson.loads(line)) for line in context(stream).splitlines()])
    }
    assert context(context(data)) == context(data)


def _said(entry: dict[str, Any]) -> tuple[Any, ...]:
    return entry["message_id"], entry["role"], entry.get("content")


@settings(max_examples=60, deadline=None)
@given(lines, st.lists(st.integers(0, 14), max_size=3))
def test_any_log_kept_in_steps_has_the_commits_of_its_import(
    tmp_path_factory: pytest.TempPathFactory, texts: list[bytes], stops: list[int]
) -> None:
    """Whatever is in the file, wherever its writer was killed: opening it again and importing it agree."""
    path = tmp_path_factory.mktemp("log") / "s.jsonl"
    kept, imported = memory_repo(), memory_repo()
    for at in sorted(stops):
        path.write_bytes(FIRST + b"".join(texts[:at]))
        Session.close(kept.session(path, readonly=True))
    path.write_bytes(FIRST + b"".join(texts))
    with kept.session(path, readonly=True) as session:
        session.checkpoint()
    bring_in(imported, path)

    assert chains(imported) == chains(kept)


@pytest.mark.parametrize("given", [str, Path, lambda path: str(path).encode(), lambda path: [path]])
def test_one_path_by_itself_is_one_path_and_one_runtime_one_runtime(tmp_path: Path, given: Any) -> None:
    place = tmp_path / "jill.jsonl"
    shutil.copy(VECTOR, place)
    (tmp_path / "other.jsonl").write_bytes(b"{}\n")
    watching = memory_repo().watch(given(place), runtimes="harken")

    assert ["new"] == [one.status for one in memory_repo().import_sessions(given(place), runtimes="harken")]
    assert "new" == next(watching).status


def _raises(*_: object) -> Any:
    raise RuntimeError("a bad day")


@pytest.mark.parametrize("change", [{"claim": _raises}, {"claim": lambda *_: None}, {"home": _raises}])
def test_a_runtime_that_fails_is_told_by_name_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    bad = msgspec.structs.replace(get("codex"), name="bad", keys=(), **change)
    plugins = Plugins(runtimes={"bad": bad}, problems=())
    monkeypatch.setattr(runtimes.base, "_plugins", lambda: plugins)
    monkeypatch.setattr(runtimes.base, "_FAILED", {})
    place = tmp_path / ".codex" / "sessions" / "jill.jsonl"
    place.parent.mkdir(parents=True)
    shutil.copy(VECTOR, place)
    shutil.copy(VECTOR, place.with_name("jill2.jsonl"))

    statuses = {one.status for one in memory_repo().import_sessions(environ={"HOME": str(tmp_path)})}

    assert "new" in statuses
    assert "failed" not in statuses
    assert ["bad"] == [problem.name for problem in runtimes.problems()]
