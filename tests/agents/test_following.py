"""A living agent is what the log says, whoever logged it: entries, edits, tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from harken import Agent, load_session
from harken.agents import Request, ScriptedModel, hook
from harken.agents.models import Reply
from harken.errors import BadRequest
from harken.log import Session
from support.stage import call, contents, open_stage, say


class Listening:
    """A model that says what it was shown."""

    name = "listening"

    async def complete(self, request: Request) -> Reply:
        """What it was shown."""
        return Reply(content=f"{request.turn}: " + ", ".join(str(one["content"]) for one in request.messages))


@pytest.fixture
def root(tmp_path: Path) -> Agent:
    return load_session(tmp_path / "log", language_model=Listening(), ack="os")[0]


def one() -> str:
    """One."""
    return "1"


def two() -> str:
    """Two."""
    return "2"


def entries(session: Session, agent_id: str) -> list[str]:
    return [entry["content"] for entry in session.entries(agent_id)]


def test_an_agent_hears_what_is_logged_into_its_transcript(root: Agent) -> None:
    root.harken("a")
    root.session.log_transcript_entry(root.agent_id, {"role": "user", "content": "b"})

    assert "0: a, b" == say(root, "c")[:7]
    assert entries(root.session, root.agent_id) == [entry["content"] for entry in root.transcript]


def test_what_it_is_logged_to_have_said_counts_as_said(root: Agent) -> None:
    root.harken("a")
    root.session.log_transcript_entry(root.agent_id, {"role": "assistant", "content": "b"})

    assert "1: a, b, c" == say(root, "c")


def test_an_edit_that_is_logged_is_an_edit_of_its_transcript(root: Agent) -> None:
    root.harken("a")
    root.harken("b")
    root.session.log_transcript_edit(root.agent_id, "truncate", 1)

    assert ["a"] == [entry["content"] for entry in root.transcript]
    assert "0: a, c" == say(root, "c")


def test_an_entry_of_an_open_batch_is_heard(root: Agent) -> None:
    with root.session.batch():
        root.harken("a")
        root.session.log_transcript_entry(root.agent_id, {"role": "user", "content": "b"})

        assert ["a", "b"] == [entry["content"] for entry in root.transcript]


def test_tools_of_an_agent_that_is_logged_by_hand_are_its_tools_after_a_load(tmp_path: Path) -> None:
    path = tmp_path / "log"
    root, session = open_stage(path, {"*": ["hi"]}, tools=[one, two])
    with session:
        root.harken("go")
        made = Agent(session, tools=[two])
        session.log_agent_created(made.agent_id, root.last_message_id(), "G", "m")
        live = set(made.tools)

    root, session = open_stage(path, {"*": ["hi"]}, tools=[one, two])
    with session:
        assert live == set(root.subagents["G"].tools)
        assert "one" not in live


def test_a_tool_that_is_called_as_one_of_ours_is_refused(tmp_path: Path) -> None:
    def task(name: str) -> str:
        """Mine."""
        return name

    with pytest.raises(BadRequest, match="task") as refused:
        open_stage(tmp_path / "log", {}, tools=[task])

    assert refused.value.hint


def test_a_replay_tells_agents_of_one_name_apart_where_their_ids_differ(tmp_path: Path) -> None:
    script = {
        "root": [
            call("task", name="J", prompt="who?"),
            call("terminate", name="J"),
            call("task", name="J", prompt="who?"),
            "end",
        ],
        "agent_002": ["first"],
        "agent_003": ["second"],
    }
    root, session = load_session(tmp_path / "log", language_model=ScriptedModel({"agents": script}), ack="os")
    with session:
        say(root, "go")
        recorded = contents(root, "tool")

    watching = hook("tool", name="watching")(lambda moment: None)
    root, session = load_session(
        tmp_path / "again", language_model=f"replay:{tmp_path / 'log'}", hooks=[watching], ack="os"
    )
    with session:
        say(root, "go")

        assert ["first", "second"] == recorded[::2]
        assert recorded == contents(root, "tool")
