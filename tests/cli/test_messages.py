"""How many messages there are: prompts and responses, and the same number whoever is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import formats, runtimes
from harken.context import count, session_events
from harken.events import Event, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.tally import Tally
from harken.repo import Repo
from harken.runtimes.importer import Importer
from harken.views import SessionViewer
from support.logs import as_bytes, example
from support.plain_count import count_file
from support.recordings import named, session_files

FILES = [path for name in ("claude-code", "codex") for path in session_files(name)]


SAID: st.SearchStrategy[Event] = st.one_of(
    st.builds(Prompt, source=st.sampled_from(["user", "injected"]), index=st.integers(0, 2)),
    st.builds(Response, model=st.sampled_from(["m", "<synthetic>"]), index=st.integers(0, 2)),
    st.builds(ToolResult, id=st.just("c"), index=st.integers(0, 2)),
    st.builds(System, subtype=st.sampled_from(["init", "compact_boundary"]), index=st.integers(0, 2)),
)


def take_in(repo: Repo, path: Path) -> str:
    importer = Importer(repo.store, [runtimes.get(name) for name in runtimes.names()])
    return next(result.session for result in importer.run([path]) if result.session)


def doors(repo: Repo, session: str) -> dict[str, int | None]:
    """What each says of a session's own file: the session's agent and those inside the file together."""
    row = repo.store.find_session(session)
    assert row is not None
    whole = repo.materialize(row.tip, stop="root")
    format = formats.get(whole.format)
    inside = [r for r in repo.store.sessions(prefix=session) if r.parent == session and r.source.startswith(row.source)]
    tree = SessionViewer.of(session_events(repo.store, row)).agent_tree()
    elsewhere = {r.agent for r in repo.store.sessions() if r.parent == session} - {r.agent for r in inside}
    [told] = repo.stats([session])
    figures = [told.figures, *(one.figures for one in told.agents if one.session in {r.session for r in inside})]
    return {
        "sessions": sum(r.messages or 0 for r in (row, *inside)),
        "log": sum(commit.message_count or 0 for commit in repo.history(row.tip) if commit.commit_type == "delta"),
        "materialize": whole.message_count,
        "checkpoint": format.measure(whole.bytes).messages,
        "events": count(format.read(whole.bytes)).messages,
        "view tree": sum(agent["messages"] for agent in tree if agent["agent_id"] not in elsewhere),
        "stats": sum(one.prompts.human + one.prompts.injected + one.responses for one in figures),
    }


@pytest.mark.parametrize("path", FILES, ids=named)
def test_every_door_says_the_same_of_a_real_session(repo: Repo, path: Path) -> None:
    said = doors(repo, take_in(repo, path))

    assert dict.fromkeys(said, said["sessions"]) == said
    plain = count_file(path).figures()["prompts"]
    assert said["sessions"] is not None
    assert plain["human"] + plain["injected"] <= said["sessions"]


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_every_door_says_the_same_of_a_session_log(repo: Repo, tmp_path: Path, number: int) -> None:
    (tmp_path / "log.jsonl").write_bytes(as_bytes(example(number)))

    said = doors(repo, take_in(repo, tmp_path / "log.jsonl"))

    assert dict.fromkeys(said, said["sessions"]) == said
    assert said["sessions"]


def test_thoughts_calls_and_results_are_no_messages() -> None:
    events: list[Event] = [
        Prompt(content="look", message_id="1"),
        Thinking(content="hm", message_id="2"),
        ToolCall(id="c", name="ls", message_id="2", index=1),
        ToolResult(id="c", output="a.txt", message_id="3"),
        Response(content="a file", message_id="4"),
        System(subtype="instructions", message="be kind", message_id="5"),
    ]

    assert 2 == count(events).messages == Tally.of(events).messages


def test_what_a_compaction_puts_in_place_was_said_before() -> None:
    boundary = System(subtype="compact_boundary", message_id="1")
    again = Prompt(content="look", message_id="1", index=1)

    assert 0 == count([boundary, again]).messages


@settings(deadline=None)
@given(st.lists(SAID, max_size=8), st.lists(SAID, max_size=8))
def test_messages_of_two_stretches_are_the_sum(first: list[Event], second: list[Event]) -> None:
    """So a chain has as many as its deltas, wherever it was cut between two records."""
    second = [second[0].replace(index=0), *second[1:]] if second else []

    assert Tally.of(first).messages + Tally.of(second).messages == Tally.of([*first, *second]).messages
