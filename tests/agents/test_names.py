"""One rule for names, whichever way an agent or a hook comes into being (#10); a log that holds others is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harken import Agent, Session, load_session
from harken.agents import HookAgent, hook
from harken.errors import BadRequest
from support.stage import open_stage

Way = Callable[[Agent, str], object]


def by_spawn(root: Agent, name: str) -> None:
    root.spawn(name)


def by_hand(root: Agent, name: str) -> None:
    Agent(root.session, name=name, parent=root).harken("hello")


def by_log(root: Agent, name: str) -> None:
    root.session.log_agent_created(root.session.allocate_agent_id(), root.last_message_id(), name)


def by_log_with_parent(root: Agent, name: str) -> None:
    root.session.log_agent_created(root.session.allocate_agent_id(), None, name, parent=root.agent_id)


def by_hand_and_log(root: Agent, name: str) -> None:
    root.session.log_agent_created(Agent(root.session, parent=root).agent_id, name=name)


def by_function_hook(root: Agent, name: str) -> None:
    root.add_hook(hook("tool", name=name)(lambda moment: None))


def by_hook_agent(root: Agent, name: str) -> None:
    root.add_hook(HookAgent(name=name, points=("tool",), instructions="look"))


WAYS = (by_spawn, by_hand, by_log, by_log_with_parent, by_hand_and_log, by_function_hook, by_hook_agent)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Agent]:
    root, session = open_stage(tmp_path / "log", {"*": {"otherwise": "yes"}})
    with session:
        root.harken("go")
        root.spawn("Jack")
        Agent(session, agent_id="Bob", parent=root).create()
        yield root


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "name",
    [
        "Jack",
        "JACK ",
        " Jack",
        "JACK",
        "agent_001",
        "agent_777",
        "Agent_003",
        "AGENT_001",
        "agent_００１",
        "Bob",
        "bob",
    ],
)
def test_a_name_that_would_be_taken_for_another_is_refused(root: Agent, way: Way, name: str) -> None:
    known = set(root.session.agents)

    with pytest.raises(BadRequest) as refused:
        way(root, name)

    assert refused.value.hint
    assert known == set(root.session.agents)


@pytest.mark.parametrize("way", WAYS)
def test_any_other_name_is_taken(root: Agent, way: Way) -> None:
    way(root, "Jill")

    assert "Jill" in [info.name for info in root.session.children(root.agent_id)]


def test_a_refused_function_hook_is_not_kept(root: Agent) -> None:
    with pytest.raises(BadRequest):
        by_function_hook(root, "Jack")

    assert "Jack" not in root.pool.hooks


def test_of_two_agents_of_one_name_the_second_is_refused_before_either_is_logged(root: Agent) -> None:
    Agent(root.session, name="Tom", parent=root)

    with pytest.raises(BadRequest, match="Tom"):
        Agent(root.session, name="TOM", parent=root)


@pytest.mark.parametrize("agent_id", ["Jack", "jack"])
def test_an_id_that_is_the_name_of_another_agent_is_refused(root: Agent, agent_id: str) -> None:
    with pytest.raises(BadRequest, match="cannot be an id"):
        Agent(root.session, agent_id=agent_id).create()


def test_an_agent_may_be_called_as_its_own_id(tmp_path: Path) -> None:
    with Session(tmp_path / "log") as session:
        session.log_agent_created("root", name="root")

        assert "root" == session.agents["root"].name


def test_a_name_of_a_terminated_agent_is_free_again(root: Agent) -> None:
    root.subagents["Jack"].terminate()

    by_log(root, "Jack")

    assert ["Jack"] == [name for name in root.subagents if name == "Jack"]


def test_a_log_that_holds_such_names_is_read(tmp_path: Path) -> None:
    made = '{"message_id":"msg_00%d","event_type":"agent_created","agent_id":"agent_00%d","name":"%s",%s}\n'
    hook_of = '"parent":"agent_001","role":"hook","attributes":{"kind":"agent","points":["tool"],"instructions":"look"}'
    names = ("Jack", "JACK ", "agent_001", "Jack")
    lines = [made % (1, 1, "root", '"role":"root"')]
    lines += [made % (at, at, name, '"parent":"agent_001"') for at, name in enumerate(names, 2)]
    lines += [made % (6, 6, " watcher", hook_of), made % (7, 7, "agent_002", hook_of)]
    path = tmp_path / "log"
    path.write_text("".join(lines))

    root, session = load_session(path)
    with session:
        assert {"Jack", "JACK ", "agent_001"} == set(root.subagents)
        assert ["watcher", "agent_002"] == [watcher.name for watcher in root.watchers]
