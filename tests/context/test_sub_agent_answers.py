"""Who gave a sub-agent its task, and who heard its answer, in every recorded session that has sub-agents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import runtimes
from harken.cli import main
from harken.context import session_events
from harken.events import AgentCreated, Event, Prompt, Response, ToolCall, ToolResult
from harken.events.base import holds
from harken.repo import Repo
from harken.runtimes.files import walk
from harken.runtimes.importer import Importer
from harken.views import SessionViewer
from support.recordings import CORPUS, FOLDER
from support.sessions import ClaudeSession

RECORDED = sorted(
    (folder.parent.name.rpartition("-")[0], folder) for folder in FOLDER.glob("*/*agents") if folder.is_dir()
)
MORE = [("claude-code", CORPUS / "claude_code")] if CORPUS else []
"""Sessions of other people, among them side chains inside their parents' files, as the oldest versions wrote them."""
CASES = [pytest.param(*case, id=f"{case[1].parent.name}-{case[1].name}") for case in (*RECORDED, *MORE)]


def imported(runtime: str, folder: Path, place: Path) -> Repo:
    repo = harken.open(place)
    list(Importer(repo.store, [runtimes.get(runtime)]).run(walk(folder)))
    return repo


def streams(repo: Repo) -> Iterator[list[Event]]:
    for row in repo.store.sessions():
        if not row.parent and row.tip:
            yield session_events(repo.store, row)


def children(events: list[Event]) -> list[AgentCreated]:
    return [event for event in events if isinstance(event, AgentCreated) and event.cause]


def last_words(events: list[Event], agent: str) -> Response:
    return [event for event in events if isinstance(event, Response) and event.agent_id == agent][-1]


def got(events: list[Event], words: str, asker: str) -> list[str]:
    """The asker's own records in which the words stand."""
    texts = {
        event.message_id: event.output if isinstance(event, ToolResult) else event.content
        for event in events
        if event.agent_id == asker
        and (isinstance(event, ToolResult) or (isinstance(event, Prompt) and event.source == "injected"))
    }
    return [message for message, text in texts.items() if holds(text, words.strip())]


def test_there_are_recordings_of_both_runtimes() -> None:
    assert {"claude-code", "codex"} == {runtime for runtime, _ in RECORDED}


@pytest.mark.parametrize(("runtime", "folder"), CASES)
def test_every_task_comes_from_the_agent_that_gave_it(runtime: str, folder: Path, tmp_path: Path) -> None:
    """Codex tells a sub-agent about its surroundings first; that is not what it was asked."""
    with imported(runtime, folder, tmp_path / "store.db") as repo:
        for events in streams(repo):
            askers = {event.message_id: event.agent_id for event in events}
            viewer = SessionViewer.of(events)
            for child in children(events):
                asker = askers[str(child.cause)]
                given = [arrow for arrow in viewer.sequence() if arrow["hearers"] == [child.agent_id]]
                (task,) = [arrow for arrow in given if arrow["speaker"] == asker]
                assert not task["content"].startswith("<")


@pytest.mark.parametrize(("runtime", "folder"), CASES)
def test_every_answer_that_came_back_was_heard_and_all_views_agree(runtime: str, folder: Path, tmp_path: Path) -> None:
    with imported(runtime, folder, tmp_path / "store.db") as repo:
        for events in streams(repo):
            askers = {event.message_id: event.agent_id for event in events}
            viewer = SessionViewer.of(events)
            for child in children(events):
                answer, asker = last_words(events, child.agent_id), askers[str(child.cause)]
                reached = got(events, answer.content, asker)
                if not reached:
                    continue
                message = answer.message_id
                known = viewer.knows(asker, message)
                flow = viewer.content_flow(message)
                (arrow,) = [one for one in viewer.sequence() if one["message_id"] == message]
                after = [one["event"]["message_id"] for one in viewer.trace(message) if one["step"] == "after"]

                assert {asker} == {one["agent_id"] for one in viewer.who_heard(message)}
                assert (True, False, child.agent_id) == (known["knows"], known["changed"], known["path"][0]["agent_id"])
                assert {asker} == {one["agent_id"] for one in (*flow["heard"], *flow["results"])}
                assert {asker} == {*arrow["hearers"], *arrow["returned"]}
                assert set(after) & set(reached)
                assert known["message_id"] in {one["message_id"] for one in viewer.perspective([asker])}


def test_most_recordings_have_an_answer_that_came_back(tmp_path: Path) -> None:
    """So that the law above speaks of something."""
    heard = 0
    for number, (runtime, folder) in enumerate(RECORDED):
        with imported(runtime, folder, tmp_path / f"{number}.db") as repo:
            for events in streams(repo):
                viewer = SessionViewer.of(events)
                heard += sum(
                    bool(viewer.who_heard(last_words(events, child.agent_id).message_id)) for child in children(events)
                )
    assert 10 == heard


def session(tmp_path: Path, result: str, *, answer: str = "it is in line 7", nested: bool = False) -> Path:
    """A Claude Code session whose sub-agent answers; nested, that agent has asked another one."""
    parent, child = ClaudeSession("aaa"), ClaudeSession("aaa", agent="b1", salt="b1")
    parent.prompt("find the bug")
    child.prompt("look for it")
    files = tmp_path / "files"
    (files / "aaa" / "subagents").mkdir(parents=True)
    if nested:
        inner = ClaudeSession("aaa", agent="c1", salt="c1")
        inner.prompt("read it")
        inner.answer("seven lines")
        child.call("Task", "seven lines\nagentId: c1", agent="c1")
        (files / "aaa" / "subagents" / "agent-c1.jsonl").write_bytes(inner.data)
    child.answer(answer)
    parent.call("Task", result, agent="b1")
    parent.answer("line 7")
    (files / "aaa.jsonl").write_bytes(parent.data)
    (files / "aaa" / "subagents" / "agent-b1.jsonl").write_bytes(child.data)
    return files


def view(files: Path, tmp_path: Path) -> tuple[list[Event], SessionViewer]:
    with imported("claude-code", files, tmp_path / "store.db") as repo:
        (events,) = streams(repo)
        return events, SessionViewer.of(events)


def heard(events: list[Event], viewer: SessionViewer, agent: str) -> list[tuple[Any, ...]]:
    found = viewer.who_heard(last_words(events, agent).message_id)
    return [(one["agent_id"], one["content"], one["hops"], one["changed"]) for one in found]


def test_a_result_that_is_the_answer_repeats_it(tmp_path: Path) -> None:
    events, viewer = view(session(tmp_path, "it is in line 7"), tmp_path)

    assert [("claude-code", "it is in line 7", 1, False)] == heard(events, viewer, "b1")


def test_a_result_with_the_answer_and_more_holds_it(tmp_path: Path) -> None:
    events, viewer = view(session(tmp_path, "it is in line 7\nagentId: b1"), tmp_path)

    assert [("claude-code", "it is in line 7\nagentId: b1", 1, False)] == heard(events, viewer, "b1")


def test_a_result_with_the_answer_as_json_holds_it(tmp_path: Path) -> None:
    said = 'it is in "für" line 7,\nand nowhere else'
    result = '{"completed":"it is in \\"f\\u00fcr\\" line 7,\\nand nowhere else"}'
    events, viewer = view(session(tmp_path, result, answer=said), tmp_path)

    assert [("claude-code", result, 1, False)] == heard(events, viewer, "b1")


def test_a_result_without_the_answer_is_not_taken_for_it(tmp_path: Path) -> None:
    events, viewer = view(session(tmp_path, "the agent was stopped"), tmp_path)

    assert [] == heard(events, viewer, "b1")
    assert not viewer.knows("claude-code", last_words(events, "b1").message_id)["knows"]


def test_an_agents_agent_is_heard_by_it_alone(tmp_path: Path) -> None:
    events, viewer = view(session(tmp_path, "it is in line 7", nested=True), tmp_path)

    assert [("b1", "seven lines\nagentId: c1", 1, False)] == heard(events, viewer, "c1")
    assert [("claude-code", "it is in line 7", 1, False)] == heard(events, viewer, "b1")


@pytest.mark.parametrize(
    ("result", "wanted"),
    [("it is in line 7", "-> claude-code"), ("stopped", "no record says that anybody heard it")],
)
def test_the_command_says_who_heard_it_or_that_no_record_does(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, result: str, wanted: str
) -> None:
    events, _ = view(session(tmp_path, result), tmp_path)
    with pytest.raises(SystemExit):
        main(["--store", str(tmp_path / "store.db"), "view", "heard", "aaa", last_words(events, "b1").message_id])
    assert wanted in capsys.readouterr().out


@pytest.mark.parametrize(("runtime", "folder"), RECORDED)
def test_a_dialog_has_nothing_that_a_runtime_put_there(runtime: str, folder: Path, tmp_path: Path) -> None:
    with imported(runtime, folder, tmp_path / "store.db") as repo:
        for events in streams(repo):
            viewer = SessionViewer.of(events)
            said = [line["content"] for line in viewer.extract_dialog(viewer.list_agents())]
            assert said
            assert [] == [words for words in said if words.startswith("<")]


@pytest.mark.parametrize(("runtime", "folder"), RECORDED)
def test_a_timeline_says_of_every_record_what_it_is(runtime: str, folder: Path, tmp_path: Path) -> None:
    with imported(runtime, folder, tmp_path / "store.db") as repo:
        for events in streams(repo):
            others = [one for one in SessionViewer.of(events).timeline() if one["kind"] == "output"]
            assert others
            assert [] == [one["message_id"] for one in others if not one["content"]]


def test_an_agent_that_got_an_answer_twice_is_named_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Codex brings it in a result and in a notice."""
    store = tmp_path / "store.db"
    with imported("codex", FOLDER / "codex-0.166.0" / "agents", store) as repo:
        (main_session,) = [row.session for row in repo.store.sessions() if not row.parent]
    with pytest.raises(SystemExit):
        main(["--store", str(store), "view", "sequence", main_session])
    out = capsys.readouterr().out
    assert "-> codex" in out
    assert "codex, codex" not in out


def called_again(where: Path, told: str, back: str) -> tuple[list[Event], SessionViewer]:
    """An agent that was asked once, and then told something more by a call that names it."""
    parent, child = ClaudeSession("aaa"), ClaudeSession("aaa", agent="b1", salt="b1")
    parent.prompt("where is it?")
    parent.call("Agent", "it is in line 7", agent="b1", prompt="look it up")
    child.count = parent.count
    child.prompt("look it up")
    child.answer("it is in line 7")
    parent.count = child.count
    given = {"to": "b1", "message": "and in the other file?"}
    content = [{"type": "tool_use", "id": "toolu_again", "name": "SendMessage", "input": given}]
    parent.add("assistant", message={"id": "msg_again", "role": "assistant", "model": "scripted", "content": content})
    child.count = parent.count
    child.prompt(told)
    child.answer("nowhere in it")
    parent.count = child.count
    result = [{"type": "tool_result", "tool_use_id": "toolu_again", "content": back}]
    parent.add("user", message={"role": "user", "content": result})
    side = where / "home" / "aaa" / "subagents"
    side.mkdir(parents=True)
    (where / "home" / "aaa.jsonl").write_bytes(parent.data)
    (side / "agent-b1.jsonl").write_bytes(child.data)
    return view(where / "home", where)


def test_an_agent_that_is_called_again_is_told_by_whoever_calls_it(tmp_path: Path) -> None:
    events, viewer = called_again(tmp_path, "and in the other file?", "nowhere in it")

    told = [(one["speaker"], one["content"]) for one in viewer.sequence() if one["hearers"] == ["b1"]]
    assert [("claude-code", "look it up"), ("claude-code", "and in the other file?")] == told
    assert [("claude-code", "nowhere in it", 1, False)] == heard(events, viewer, "b1")


def test_what_stands_in_no_call_to_an_agent_is_told_by_nobody_of_the_session(tmp_path: Path) -> None:
    _, viewer = called_again(tmp_path, "you were interrupted", "it did not answer")

    told = [one["content"] for one in viewer.sequence() if one["hearers"] == ["b1"] and one["speaker"] == "claude-code"]
    assert ["look it up"] == told


def knows(viewer: SessionViewer, agent: str, what: str, at: str | None = None) -> tuple[bool | None, str | None]:
    found = viewer.knows(agent, what, at=at)
    return found["knows"], found["how"]


def test_who_told_an_agent_something_knows_it(tmp_path: Path) -> None:
    events, viewer = called_again(tmp_path, "and in the other file?", "nowhere in it")
    calls = [event.message_id for event in events if isinstance(event, ToolCall)]
    tasks = [event for event in events if isinstance(event, Prompt) and event.agent_id == "b1"]

    for task, call in zip(tasks, calls, strict=True):
        for what in (task.message_id, task.content.upper()):
            assert (True, "said") == knows(viewer, "claude-code", what)
            assert (True, "heard") == knows(viewer, "b1", what)
            assert (False, None) == knows(viewer, "claude-code", what, events[0].message_id)
            found = viewer.knows("claude-code", what)
            told = [(step["message_id"], step["agent_id"], step["content"]) for step in found["path"]]
            assert (call, [(call, "claude-code", task.content)]) == (found["message_id"], told)


def test_what_an_agent_tells_its_own_agent_it_alone_has_said(tmp_path: Path) -> None:
    files = session(tmp_path, "it is in line 7", nested=True)
    (files / "aaa" / "subagents" / "agent-c1.meta.json").write_text('{"toolUseId": "toolu_b1_2"}')
    _, viewer = view(files, tmp_path)

    assert (True, "said") == knows(viewer, "b1", "read it")
    assert (True, "heard") == knows(viewer, "c1", "read it")
    assert (False, None) == knows(viewer, "claude-code", "read it")
    assert (True, "said") == knows(viewer, "claude-code", "look for it")
