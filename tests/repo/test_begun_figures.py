"""What an agent begins with counts where it was said, and nowhere else; it is known and shown."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import Repo, load_session
from harken.agents import Agent, ScriptedModel
from harken.index import StoreIndex
from harken.repo.counting import SessionFigures, TotalFigures
from support.indexes import digest

RECORDED = Path(__file__).parents[1] / "recorded"
MODEL = ScriptedModel({"agents": {"*": {"otherwise": "I remember the heron."}}})


@pytest.fixture(params=["claude-code", "codex"])
def source(request: pytest.FixtureRequest) -> Path:
    (path,) = [file for folder in RECORDED.glob(f"{request.param}-*/everyday") for file in folder.rglob("*.jsonl")]
    return path


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with harken.open(tmp_path / "store.db") as repo:
        yield repo


def take_in(repo: Repo, *paths: Path) -> None:
    for path in paths:
        assert "failed" not in [one.status for one in repo.import_sessions([path])]
        repo.index.catch_up()


def recorded(repo: Repo, source: Path) -> str:
    take_in(repo, source)
    return repo.sessions()[0].session


def totals(repo: Repo) -> dict[str, Any]:
    """What all in the store comes to, as each way to ask tells it."""
    repo.index.catch_up()
    counted = list(repo.stats())
    total = counted[-1].figures if len(counted) > 1 else counted[0].figures
    told = repo.sql(
        "SELECT (SELECT count(*) FROM messages WHERE role NOT IN ('title', 'summary')) AS messages,"
        " (SELECT count(*) FROM messages WHERE role = 'human') AS prompts, (SELECT count(*) FROM calls) AS calls"
    )
    spent = repo.usage()[0].total()
    return {
        "prompts": total.prompts.human,
        "injected": total.prompts.injected,
        "responses": total.responses,
        "calls": sum(total.tools.values()),
        "usage": total.usage,
        "requests": total.requests,
        "sql": dict(zip(told.columns, told.rows[0], strict=True)),
        "spent": spent,
    }


def begin(repo: Repo, source: str, path: Path, **settings: Any) -> Any:
    session = repo.session(path, ack="os", **settings)
    root, _ = load_session(session, language_model=MODEL, name="root")
    return root, session


def ask(agent: Agent, text: str) -> None:
    agent.harken(text)
    asyncio.run(agent.response())


def without_ids(figures: dict[str, Any]) -> dict[str, Any]:
    """The totals but for what says which sessions there are."""
    return {key: value for key, value in figures.items() if key != "spent"}


def plus(figures: dict[str, Any], prompts: int, responses: int) -> dict[str, Any]:
    said = figures["sql"]
    sql = said | {"messages": said["messages"] + prompts + responses, "prompts": said["prompts"] + prompts}
    more = {"prompts": figures["prompts"] + prompts, "responses": figures["responses"] + responses, "sql": sql}
    return without_ids(figures) | more


def test_it_counts_where_it_was_said(repo: Repo, source: Path, tmp_path: Path) -> None:
    """Before it begins, behind that, after one more turn, after a load, kept live and imported in either order."""
    name = recorded(repo, source)
    root, session = begin(repo, name, tmp_path / "log")
    with session:
        ask(root, "Hello.")
        session.checkpoint()
        before = totals(repo)

        ann = repo.agent(name, session=session, name="Ann")
        session.checkpoint()
        assert before == totals(repo)

        ask(ann, "What did you do?")
        session.checkpoint()
        assert plus(before, 1, 1) == without_ids(totals(repo))

    root, session = load_session(repo.session(tmp_path / "log"), language_model=MODEL)
    with session:
        assert plus(before, 1, 1) == without_ids(totals(repo))
        ask(root.subagents["Ann"], "And then?")
    assert plus(before, 2, 2) == without_ids(live := totals(repo))

    steps = digest(repo.index)
    with StoreIndex(repo.store, None) as anew:
        anew.catch_up()
        assert steps == digest(anew)
    for place, files in enumerate([(source, tmp_path / "log"), (tmp_path / "log", source)]):
        with harken.open(tmp_path / f"{place}.db") as fresh:
            take_in(fresh, *files)
            assert live == totals(fresh)
            assert steps["calls"] == digest(fresh.index)["calls"]
            hits = [{hit.session, *hit.copies} for hit in fresh.search("heron").hits]
            assert hits == [{hit.session, *hit.copies} for hit in repo.search("heron").hits]


def test_it_is_known_and_shown(repo: Repo, source: Path, tmp_path: Path) -> None:
    name = recorded(repo, source)
    root, session = begin(repo, name, tmp_path / "log")
    with session:
        ann = repo.agent(name, session=session, name="Ann")
        known = len(ann.transcript)
        ask(ann, "What did you do?")
    (own,) = [each for each in repo.stats([session.session_id]) if isinstance(each, SessionFigures)]
    (told,) = own.agents
    whole = next(each for each in repo.stats([name]) if isinstance(each, SessionFigures)).figures
    assert told.carried is not None and own.carried is None
    assert whole.tools == told.carried.tools == told.figures.tools
    assert told.carried.responses + 1 == told.figures.responses
    assert known + 2 == len(root.subagents["Ann"].transcript)
    said = [event.kind for event in repo.conversation(told.session) if event.kind in ("prompt", "response")]
    assert told.figures.responses == said.count("response")

    *_, together = repo.stats([tmp_path / "log", name])
    assert isinstance(together, TotalFigures)
    assert sum(whole.tools.values()) == sum(together.figures.tools.values())


def test_the_first_agent_of_a_session(repo: Repo, source: Path, tmp_path: Path) -> None:
    name = recorded(repo, source)
    before = totals(repo)
    with repo.session(tmp_path / "log") as session:
        repo.agent(name, session=session, name="Ann", language_model=MODEL)
        session.checkpoint()
        assert before == totals(repo) | {"spent": before["spent"]}
    own, _, total = repo.stats([session.session_id, name])
    assert isinstance(own, SessionFigures) and own.carried is not None
    assert own.figures.tools == own.carried.tools and own.figures.prompts == own.carried.prompts
    *_, of_file = repo.stats([tmp_path / "log", name])
    assert total.figures.tools == of_file.figures.tools


def test_a_session_finds_what_its_agents_began_with(repo: Repo, source: Path, tmp_path: Path) -> None:
    name = recorded(repo, source)
    words = next(
        event.content for event in repo.conversation(name) if event.kind == "prompt" and event.source == "user"
    )
    query = " ".join(word for word in words.split() if word.isalpha())[:40].rpartition(" ")[0]
    for agents in (1, 2):  # the second one begins with the same
        _, session = begin(repo, name, tmp_path / "log")
        with session:
            repo.agent(name, session=session, name=f"Ann{agents}")
        repo.index.catch_up()
        (hit,) = repo.search(f"{query} role:human").hits
        assert (name, (session.session_id,)) == (hit.session, hit.copies)
        assert 1 == len(repo.search(f"{query} role:human session:{session.session_id}").hits)


def test_an_agent_that_begins_with_another_of_its_session(repo: Repo, source: Path, tmp_path: Path) -> None:
    name = recorded(repo, source)
    _, session = begin(repo, name, tmp_path / "log", frequency="end")
    with session:
        ann = repo.agent(name, session=session, name="Ann")
        ask(ann, "What did you do?")
        session.checkpoint()
        before = totals(repo)
        twin = repo.agent(f"{session.session_id}/{ann.agent_id}", session=session, name="Twin")
        assert len(ann.transcript) == len(twin.transcript)
        session.checkpoint()
        assert before == totals(repo)
    with harken.open(tmp_path / "fresh.db") as fresh:
        take_in(fresh, source, tmp_path / "log")
        assert before == totals(fresh)


def test_without_the_source_its_words_are_found(repo: Repo, source: Path, tmp_path: Path) -> None:
    name = recorded(repo, source)
    _, session = begin(repo, name, tmp_path / "log")
    with session:
        ask(repo.agent(name, session=session, name="Ann"), "What did you do?")
    with harken.open(tmp_path / "fresh.db") as fresh:
        take_in(fresh, tmp_path / "log")
        (own,) = [each for each in fresh.stats() if isinstance(each, SessionFigures)]
        (ann,) = own.agents
        assert ann.carried is not None and sum(ann.carried.tools.values()) == sum(ann.figures.tools.values()) > 0
        (held,) = fresh.sql("SELECT count(*) FROM calls").rows
        take_in(fresh, source)
        assert held == fresh.sql("SELECT count(*) FROM calls").rows[0] == (sum(ann.carried.tools.values()),)
        assert [] == fresh.index.query("SELECT * FROM awaited")


def test_a_log_without_the_mark_is_read_as_before(repo: Repo, source: Path, tmp_path: Path) -> None:
    name = recorded(repo, source)
    _, session = begin(repo, name, tmp_path / "log")
    with session:
        repo.agent(name, session=session, name="Ann")
    marked = (tmp_path / "log").read_bytes()
    older = tmp_path / "older"
    older.write_bytes(marked.replace(f',"carried_from":"{name}"'.encode(), b""))
    assert older.read_bytes() != marked
    with harken.open(tmp_path / "fresh.db") as fresh:
        take_in(fresh, older)
        (own,) = [each for each in fresh.stats() if isinstance(each, SessionFigures)]
        assert None is own.agents[0].carried
        take_in(fresh, source)
        totals_of_both = totals(fresh)
        assert totals_of_both["calls"] == totals_of_both["sql"]["calls"] == 2 * totals(repo)["calls"] > 0
