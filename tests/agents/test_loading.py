"""A session that is loaded is the session that was left: the tree, the transcripts, the ids."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import ClassVar

import pytest

import harken
from harken import Agent, Session, SessionViewer, load_session
from harken.agents import AgentPool, Call, ScriptedModel
from harken.agents.entries import INTERRUPTED
from harken.errors import Conflict, Locked, ModelFailed, NotFound
from support.stage import call, contents, lines, open_stage, say

TREE = {
    "root": [
        call("task", name="Jack", system_prompt="You are Jack."),
        call("task", name="Jill", prompt="Think."),
        "ready",
        call("terminate", name="Jack"),
        "he is gone",
        call("task", name="Ann"),
        "she is here",
    ],
    "Jill": [call("task", name="Inner", prompt="Well?"), "I have thought."],
    "Inner": ["Well."],
}


def shape(agent: Agent) -> dict[str, object]:
    """An agent and all below it, as values."""
    return {
        "id": agent.agent_id,
        "name": agent.name,
        "model": agent.language_model,
        "transcript": agent.transcript,
        "turns": agent.turns,
        "lists": (agent.speakers, agent.listeners),
        "below": {name: shape(child) for name, child in agent.subagents.items()},
    }


class TestALoad:
    def test_gives_back_the_tree_as_it_was(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", TREE)
        with session:
            say(root, "go")
            expected = shape(root)

        root, session = open_stage(tmp_path / "log", TREE)
        with session:
            assert expected == shape(root)
            assert "agent_004" == root.subagents["Jill"].subagents["Inner"].agent_id

    def test_of_a_file_that_does_not_exist_makes_it_with_a_root(self, tmp_path: Path) -> None:
        root, session = load_session(tmp_path / "new.jsonl", system_prompt="Be brief.")
        with session:
            assert ["agent_001"] == list(session.agents)
            assert "root" == session.agents["agent_001"].role
            assert ["Be brief."] == contents(root, "system")
        assert 0o600 == (tmp_path / "new.jsonl").stat().st_mode & 0o777

    @pytest.mark.parametrize("content", [b"", b"\n\n", b'{"message_id": "msg_0'])
    def test_of_a_file_without_an_agent_makes_a_root(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "log").write_bytes(content)
        root, session = open_stage(tmp_path / "log", {"root": ["yes"]})
        with session:
            assert "yes" == say(root, "there?")

    def test_an_id_is_never_given_twice(self, tmp_path: Path) -> None:
        """Create Jack, terminate him, leave, come back, create Ann."""
        root, session = open_stage(tmp_path / "log", TREE)
        with session:
            say(root, "make them")
            jack = root.subagents["Jack"].agent_id
            say(root, "end him")

        root, session = open_stage(tmp_path / "log", TREE)
        with session:
            say(root, "make Ann")

            assert jack not in [child.agent_id for child in root.subagents.values()]
            assert ["Jill", "Ann"] == list(root.subagents)
            assert session.agents[jack].terminated
            assert "agent_005" == root.subagents["Ann"].agent_id
            ids = [data["message_id"] for data in session.records()]
            assert len(ids) == len(set(ids))

    def test_a_second_writer_is_refused(self, tmp_path: Path) -> None:
        _, session = open_stage(tmp_path / "log", TREE)
        with session, pytest.raises(Locked):
            load_session(tmp_path / "log")

    def test_a_model_that_is_given_stands_for_every_agent(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", TREE)
        with session:
            say(root, "go")

        root, session = load_session(tmp_path / "log", language_model="demo")
        with session:
            assert {"demo"} == {root.language_model, *(child.language_model for child in root.subagents.values())}

    def test_of_the_first_example_of_the_specification(self, tmp_path: Path) -> None:
        """Ids are opaque, and the root is the first agent without a parent."""
        task = [{"id": "c1", "function": {"name": "task", "arguments": "{}"}}]
        made, entry = {"event_type": "agent_created"}, {"event_type": "transcript_entry"}
        root, jack = {"agent_id": "agent_root"}, {"agent_id": "agent_jack"}
        example = [
            {"message_id": "msg_001", "language_model": "m", **made, **root},
            {"message_id": "msg_002", "role": "user", "content": "Create Jack", **entry, **root},
            {"message_id": "msg_003", "role": "assistant", "tool_calls": task, **entry, **root},
            {"message_id": "msg_004", "cause": "msg_003", "name": "Jack", **made, **jack},
            {"message_id": "msg_005", "role": "system", "content": "You work in HR", **entry, **jack},
            {"message_id": "msg_006", "role": "tool", "tool_call_id": "c1", "content": "Created", **entry, **root},
        ]
        (tmp_path / "log").write_text("".join(json.dumps(line) + "\n" for line in example))

        agent, session = load_session(tmp_path / "log")
        with session:
            assert ("agent_root", "root", "m") == (agent.agent_id, agent.role, agent.language_model)
            assert "agent_jack" == agent.subagents["Jack"].agent_id

    def test_a_hostile_tree_does_not_stop_it(self, tmp_path: Path) -> None:
        """Agents below each other, below themselves, below nobody, and names that are no names."""
        made = '{{"message_id":"m{0}","event_type":"agent_created","agent_id":"{1}","parent":"{2}","name":"{3}"}}'
        rows = [
            ("r", "", "root"),
            ("a", "b", "A"),
            ("b", "a", "B"),
            ("c", "c", "C"),
            ("d", "gone", "D"),
            ("e", "r", "[x]"),
        ]
        text = "".join(made.format(n, *row) + "\n" for n, row in enumerate(rows))
        (tmp_path / "log").write_text(text.replace(',"parent":""', ""))

        root, session = load_session(tmp_path / "log")
        with session:
            assert "r" == root.agent_id
            assert ["e"] == list(root.subagents)

    def test_a_tree_without_end_is_cut(self, tmp_path: Path) -> None:
        made = '{{"message_id":"m{0}","event_type":"agent_created","agent_id":"a{0}","parent":"a{1}","name":"x"}}\n'
        (tmp_path / "log").write_text(
            "".join(made.format(n, n - 1) for n in range(3000)).replace(',"parent":"a-1"', "")
        )

        root, session = load_session(tmp_path / "log", language_model="demo")
        with session:
            depth, at = 0, root
            while at.subagents:
                depth, at = depth + 1, at.subagents["x"]
            assert 100 == depth
            assert 0 == root.interrupt()

    def test_of_the_dialect_that_smallchat_shipped(self, tmp_path: Path) -> None:
        """Decimal ids, `agent`, `fragment`, hooks that review; what is added is the newest dialect."""
        call_of_task = [{"id": "c1", "type": "function", "function": {"name": "task", "arguments": "{}"}}]
        example = [
            {
                "event_type": "agent_created",
                "agent": "main",
                "name": "main",
                "parent": "user",
                "cause": "user",
                "role": "primary",
            },
            {"event_type": "fragment", "agent": "user", "content": "Make Jack", "cause": "user"},
            {
                "event_type": "transcript_entry",
                "agent": "main",
                "role": "user",
                "content": "Make Jack",
                "substance": "1",
            },
            {"event_type": "transcript_entry", "agent": "main", "role": "assistant", "tool_calls": call_of_task},
            {
                "event_type": "agent_created",
                "agent": "jack",
                "name": "Jack",
                "parent": "main",
                "cause": "3.c1",
                "role": "child",
            },
            {
                "event_type": "agent_created",
                "agent": "hook",
                "name": "hook_",
                "parent": "main",
                "cause": "3.c1",
                "role": "hook",
            },
            {
                "event_type": "transcript_entry",
                "agent": "main",
                "role": "tool",
                "tool_call": "3",
                "tool_call_id": "c1",
                "content": "ok",
            },
        ]
        text = "\n\n".join(json.dumps({"message_id": str(n)} | line) for n, line in enumerate(example))
        (tmp_path / "log").write_text(text + "\n\n")

        parts = {"main": ["one", "Jack is here."], "hook_": {"otherwise": "APPROVE"}}
        root, session = open_stage(tmp_path / "log", parts)
        with session:
            assert ("main", ["Jack"]) == (root.agent_id, list(root.subagents))
            assert ["hook_"] == [watcher.name for watcher in root.watchers]
            assert "Jack is here." == asyncio.run(root.resume())
            ids = [data["message_id"] for data in session.records()]
            assert len(ids) == len(set(ids))


class TestComingBack:
    def test_an_agent_that_was_let_go_is_brought_back_whole(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", TREE)
        with session:
            say(root, "go")
            before, old = shape(root), root.subagents["Jill"]

            assert AgentPool.of(session).evict(old.agent_id)

            assert root.subagents["Jill"] is old
            assert before == shape(root)
            assert root.subagents["Jill"] is root.subagents["Jill"].subagents["Inner"].parent

    def test_a_terminated_agent_can_be_looked_at(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", TREE)
        with session:
            say(root, "go")
            say(root, "end him")

        root, session = open_stage(tmp_path / "log", TREE)
        with session:
            jack = AgentPool.of(session).get("agent_002")

            assert ("Jack", ["You are Jack."]) == (jack.name, contents(jack, "system"))
            assert "Jack" not in root.subagents


class TestCallsThatWereOpen:
    def test_a_tool_of_ones_own_is_answered_as_interrupted(self, tmp_path: Path) -> None:
        """It may have had its effect, so it is not run again."""

        async def launch(call: Call) -> str:
            raise asyncio.CancelledError

        parts = {"root": [call("launch"), "I do not know whether it flew."]}
        root, session = open_stage(tmp_path / "log", parts, tools=[launch])
        with session, pytest.raises(asyncio.CancelledError):
            say(root, "launch")

        root, session = open_stage(tmp_path / "log", parts, tools=[launch])
        with session:
            assert root.is_pending
            assert "I do not know whether it flew." == asyncio.run(root.resume())
            (result,) = lines(session, role="tool")
            assert (INTERRUPTED, True) == (result["content"], result["is_error"])

    def test_a_session_at_rest_has_nothing_to_resume(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", {"root": ["done"]})
        with session:
            assert asyncio.run(root.resume()) is None
            say(root, "go")

        root, session = open_stage(tmp_path / "log", {"root": ["done"]})
        with session:
            assert not root.is_pending
            size = session.path.stat().st_size
            assert asyncio.run(root.resume()) is None
            assert size == session.path.stat().st_size

    def test_a_new_prompt_may_come_before_the_old_turn_is_finished(self, tmp_path: Path) -> None:
        parts = {
            "root": [call("task", name="Jack", prompt="hello"), "both answered"],
            "Jack": [{"error": "out of order"}],
        }
        root, session = open_stage(tmp_path / "log", parts)
        with session, pytest.raises(ModelFailed, match="out of order"):
            say(root, "make Jack")

        root, session = open_stage(tmp_path / "log", parts | {"Jack": ["hi"]})
        with session:
            assert "both answered" == say(root, "and how are you?")
            assert ["hi"] == contents(root, "tool")

    def test_a_turn_that_is_stopped_stays_stopped(self, tmp_path: Path) -> None:
        parts = {"root": [call("task", name="Jack", prompt="hello"), "new turn"], "Jack": [{"error": "x"}]}
        root, session = open_stage(tmp_path / "log", parts)
        with session:
            with pytest.raises(ModelFailed, match="did not answer for Jack: x"):
                say(root, "make Jack")
            root.stop()

        root, session = open_stage(tmp_path / "log", parts)
        with session:
            assert not root.is_pending
            assert ["Error: stopped by the user."] == contents(root, "tool")
            assert "new turn" == say(root, "something else")


def test_a_session_of_the_store_is_taken_as_it_is(tmp_path: Path) -> None:
    """Agents that speak in it are kept in the store as they speak, each with what it knew and no more."""
    model = ScriptedModel({"agents": TREE}, name="scripted:tree")
    with harken.open(tmp_path / "store") as repo, repo.session(tmp_path / "log", ack="os") as session:
        root, same = load_session(session, language_model=model)
        say(root, "go")

        assert session is same
        tips = {row.agent: row.tip for row in repo.sessions()}
        jill = repo.materialize(tips[root.subagents["Jill"].agent_id]).bytes
        assert b"Well." in jill
        assert b"You are Jack." not in jill


def test_an_agent_is_made_again_by_hand(tmp_path: Path) -> None:
    """`init_prompt` is the transcript so far, as the specification has it; without one the log is read."""
    with Session(tmp_path / "log") as session:
        first = Agent(session, "Be brief.", name="Ann")
        first.harken("hello")
        size = session.path.stat().st_size

        again = Agent(Session(session.path, readonly=True), agent_id=first.agent_id)
        given = Agent(Session(session.path, readonly=True), init_prompt=first.transcript, agent_id=first.agent_id)

        assert first.transcript == again.transcript == given.transcript
        assert size == session.path.stat().st_size
        with pytest.raises(Conflict, match="in memory already"):  # one agent, one object (#3)
            Agent(session, agent_id=first.agent_id)


def test_compaction_leaves_the_turn_that_is_open(tmp_path: Path) -> None:
    """It was refused, so that an agent whose turn could not go on for want of room could not be helped (#9)."""
    root, session = open_stage(tmp_path / "log", {"root": {"otherwise": "x"}})
    with session:
        for text in ("one", "two"):
            say(root, text)
        root.harken("three")

        assert asyncio.run(root.compact("…"))
        assert ["one", "…", "three"] == contents(root, "user")
        assert root.is_pending
        assert "x" == asyncio.run(root.resume())


class TestAnotherModel:
    SCRIPTS: ClassVar[dict[str, list[str]]] = {"old": ["an old word", "another"], "new": ["a new word", "newer"]}

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        for name, words in self.SCRIPTS.items():
            (tmp_path / f"{name}.json").write_text(json.dumps({"agents": {"root": words, "Ann": words}}))
        return tmp_path

    def test_is_logged_and_stays_after_a_load(self, folder: Path) -> None:
        root, session = load_session(folder / "log", language_model="scripted:old.json")
        with session:
            say(root, "hi")
            root.language_model = "scripted:new.json"
            root.language_model = "scripted:new.json"

            assert "newer" == say(root, "again")
            (change,) = lines(session, event_type="system")
            assert ("agent_001", "model", "scripted:new.json") == tuple(
                change[key] for key in ("agent_id", "subtype", "message")
            )

        root, session = load_session(folder / "log")
        with session:
            assert "scripted:new.json" == root.language_model
        assert "scripted:new.json" in str(SessionViewer(folder / "log").agent_tree()), "#7: the model in use"
        dialog = SessionViewer(folder / "log").extract_dialog(["agent_001"])
        assert ["hi", "an old word", "again", "newer"] == [line["content"] for line in dialog]

    def test_is_part_of_the_creation_where_nothing_is_logged_yet(self, folder: Path) -> None:
        with Session(folder / "log") as session:
            agent = Agent(session)
            agent.language_model = "scripted:new.json"
            agent.harken("hi")

            assert [] == lines(session, event_type="system")
            assert "scripted:new.json" == session.agents[agent.agent_id].language_model

    def test_stays_with_its_agent_when_that_is_let_go(self, folder: Path) -> None:
        root, session = load_session(folder / "log", language_model="scripted:old.json")
        with session:
            ann = root.spawn("Ann")
            ann.language_model = "scripted:new.json"
            AgentPool.of(session).evict(ann.agent_id)

            assert root.subagents["Ann"] is ann
            assert "a new word" == say(root.subagents["Ann"], "hi")

    def test_may_be_an_object(self, folder: Path) -> None:
        root, session = load_session(folder / "log", language_model="scripted:old.json")
        with session:
            root.language_model = ScriptedModel({"agents": {"root": ["mine"]}}, name="scripted:mine")

            assert ("scripted:mine", "mine") == (root.language_model, say(root, "hi"))

    def test_of_the_load_stands_for_all(self, folder: Path) -> None:
        root, session = load_session(folder / "log", language_model="scripted:old.json")
        with session:
            root.language_model = "scripted:new.json"

        root, session = load_session(folder / "log", language_model="scripted:old.json")
        with session:
            assert "scripted:old.json" == root.language_model

    def test_is_no_part_of_what_a_store_keeps_as_known(self, folder: Path) -> None:
        with harken.open(folder / "store.db") as repo, repo.session(folder / "log") as session:
            root, _ = load_session(session, language_model="scripted:old.json")
            say(root, "hi")
            root.language_model = "scripted:new.json"
            say(root, "again")
            (row,) = repo.sessions()

            told = repo.materialize(row.tip, format="anthropic-messages-v1").bytes
        assert b"newer" in told
        assert b"scripted:new.json" not in told


class TestThePool:
    def test_an_agent_is_brought_back_once_and_stays_the_same_when_it_was_evicted(self, tmp_path: Path) -> None:
        with Session(tmp_path / "log") as session:
            session.log_agent_created("a", role="root")
            pool = AgentPool.of(session)

            first = pool.get("a")

            assert first is pool.get("a")
            assert pool is AgentPool.of(session)
            assert pool.evict("a")
            assert not pool.evict("a")
            assert first is pool.get("a")

    def test_nobody_can_be_asked_for_who_does_not_exist(self, tmp_path: Path) -> None:
        with Session(tmp_path / "log") as session, pytest.raises(NotFound):
            AgentPool.of(session).get("nobody")


class TestWhereLivingAgentsAreKept:
    def test_whoever_asks_the_same_session_gets_the_same_agents(self, tmp_path: Path) -> None:
        with Session(tmp_path / "log") as session:
            assert {} == session.extensions, "a log without agents in memory has none"
            made = Agent(session, "Be brief.", name="Ann")
            made.create()
            first, _ = load_session(session)
            second, _ = load_session(session)

        assert made is first is second
        assert ["agents"] == list(session.extensions)

    def test_two_sessions_on_one_file_have_agents_of_their_own(self, tmp_path: Path) -> None:
        root, session = load_session(tmp_path / "log", name="Ann")
        with session:
            with pytest.raises(Locked):
                load_session(tmp_path / "log")
            other, reading = load_session(tmp_path / "log", readonly=True)

        assert (root.agent_id, root.name) == (other.agent_id, other.name)
        assert root is not other
        assert session.extensions["agents"] is not reading.extensions["agents"]

    def test_the_log_never_looks_at_them(self) -> None:
        files = Path(harken.__file__).parent.joinpath("log").glob("*.py")

        assert 1 == sum(file.read_text("utf-8").count("extensions") for file in files), "where it is made"
