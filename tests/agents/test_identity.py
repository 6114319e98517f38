"""One agent, one object, and what it is follows from the log: however it was made, let go of or brought back."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from harken import Agent, Session, SessionViewer, load_session
from harken.agents import AgentPool, ScriptedModel
from harken.errors import BadRequest
from harken.events import AgentCreated
from harken.log import disk
from support.stage import call, contents, lines, open_stage, say


def scripted(name: str, word: str) -> ScriptedModel:
    return ScriptedModel({"agents": {"*": {"otherwise": word}}}, name=f"scripted:{name}")


class TestMadeByHand:
    """#2: the constructor allocates, and whoever knows why logs the creation."""

    def test_the_living_agent_is_what_the_log_says(self, tmp_path: Path) -> None:
        with Session(tmp_path / "log") as session:
            root = Agent(session)
            asked = root.harken("Make Jack.")
            root.pool.models["scripted:jack"] = scripted("jack", "I am Jack.")
            jack = Agent(session, "You are Jack.")
            session.log_agent_created(jack.agent_id, cause=asked, name="Jack", language_model="scripted:jack")

            assert ("Jack", "child", "scripted:jack") == (jack.name, jack.role, jack.language_model)
            assert root is jack.parent
            assert {"Jack": jack} == dict(root.subagents)
            assert "I am Jack." == say(jack, "Who are you?")

    def test_its_own_model_comes_before_that_of_the_load(self, tmp_path: Path) -> None:
        root, session = load_session(tmp_path / "log", language_model=scripted("all", "all"))
        with session:
            root.pool.models["scripted:jack"] = scripted("jack", "I am Jack.")
            jack, other = Agent(session), Agent(session)
            asked = root.harken("Make them.")
            session.log_agent_created(jack.agent_id, cause=asked, name="Jack", language_model="scripted:jack")
            session.log_agent_created(other.agent_id, cause=asked, name="Other")

            assert ("I am Jack.", "all") == (say(jack, "Who are you?"), say(other, "And you?"))
            load_session(session, language_model=scripted("new", "new"))
            assert {"new"} == {say(agent, "again") for agent in (root, jack, other)}

    def test_its_parent_is_the_one_it_was_made_below(self, tmp_path: Path) -> None:
        """Whether or not a cause is given, and whoever the cause belongs to."""
        root, session = load_session(tmp_path / "log", language_model=scripted("all", "all"))
        with session:
            other = root.spawn("Other")
            jack, jill, joan = (Agent(session, parent=root) for _ in range(3))
            session.log_agent_created(jack.agent_id, name="Jack")
            session.log_agent_created(jill.agent_id, cause=other.harken("Make Jill."), name="Jill")
            session.log_agent_created(joan.agent_id, cause=root.harken("Make Joan."), name="Joan")

            assert ["Other", "Jack", "Jill", "Joan"] == list(root.subagents)
            assert [root] * 3 == [jack.parent, jill.parent, joan.parent]
        root, session = load_session(tmp_path / "log")
        with session:
            assert ["Other", "Jack", "Jill", "Joan"] == list(root.subagents)

    def test_inside_a_batch_too(self, tmp_path: Path) -> None:
        with Session(tmp_path / "log") as session:
            root = Agent(session)
            with session.batch():
                jack = Agent(session)
                session.log_agent_created(jack.agent_id, cause=root.harken("Make Jack."), name="Jack")

                assert {"Jack": jack} == dict(root.subagents)

    def test_a_parent_that_is_given_is_in_the_log(self, tmp_path: Path) -> None:
        with Session(tmp_path / "log") as session:
            root = Agent(session)
            root.harken("hello")
            ann = Agent(session, name="Ann", parent=root)
            ann.harken("hi")
            bob = Agent(session, name="Bob", parent=ann)
            bob.harken("hi")

            assert ["Ann"] == list(root.subagents)
            assert bob.path == ("root", "Ann", "Bob")

        root, session = load_session(tmp_path / "log")
        with session:
            assert ["Bob"] == list(root.subagents["Ann"].subagents)
        assert "Ann" in str(SessionViewer(tmp_path / "log").agent_tree())


class TestEvicting:
    """#3"""

    def test_the_old_handle_hears_what_the_log_says_it_heard(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", {"root": {"otherwise": "ok"}, "Ann": {"otherwise": "yes"}})
        with session:
            ann = root.spawn("Ann", "You are Ann.")
            say(ann, "one")

            assert AgentPool.of(session).evict(ann.agent_id)
            root.inform(root.subagents["Ann"], "two")
            ann.harken("three")

            assert ["one", "two", "three"] == contents(ann, "user")
            assert "yes" == say(root.subagents["Ann"], "four")
            assert ann is root.subagents["Ann"] is AgentPool.of(session).get(ann.agent_id)
            assert ["one", "two", "three", "four"] == [
                data["content"] for data in lines(session, agent_id=ann.agent_id, role="user")
            ]

    def test_the_same_model_goes_on(self, tmp_path: Path) -> None:
        root, session = load_session(tmp_path / "log", language_model=scripted("all", "all"))
        with session:
            mine = root.spawn("Mine", language_model=scripted("mine", "mine"))
            below = mine.spawn("Below")
            for agent in (root, mine, below):
                before = say(agent, "speak")
                AgentPool.of(session).evict(agent.agent_id)

                assert before == say(AgentPool.of(session).get(agent.agent_id), "again")
            assert ("all", "mine", "mine") == tuple(contents(agent, "assistant")[0] for agent in (root, mine, below))

    def test_in_the_middle_of_a_turn_changes_nothing(self, tmp_path: Path) -> None:
        def let_go() -> str:
            """Evict everybody."""
            return str([AgentPool.of(session).evict(agent_id) for agent_id in session.agents])

        root, session = open_stage(tmp_path / "log", {"root": [call("let_go"), "done"]}, tools=[let_go])
        with session:
            assert "done" == say(root, "go")
            assert ["go"] == contents(root, "user")
            assert session.entries(root.agent_id)[-1]["message_id"] == root.transcript[-1]["message_id"]
            assert 2 == root.turns

    def test_what_is_in_no_log_yet_is_kept(self, tmp_path: Path) -> None:
        with Session(tmp_path / "log") as session:
            agent = Agent(session, "Be brief.")

            assert not AgentPool.of(session).evict(agent.agent_id)
            assert ["Be brief."] == contents(agent, "system")


class TestReadingOneAgent:
    """#11"""

    @pytest.fixture
    def log(self, tmp_path: Path) -> Path:
        with Session(tmp_path / "log", ack="os") as session, session.batch():
            root = session.allocate_agent_id()
            session.log_agent_created(root, role="root")
            asked = session.log_transcript_entry(root, {"role": "user", "content": "go"})
            for name in ("Ann", "Bob"):
                child = session.allocate_agent_id()
                session.log_agent_created(child, cause=asked, name=name)
                session.log_transcript_entry(child, {"role": "user", "content": "hi"})
            for number in range(20_000):
                session.log_transcript_entry(root, {"role": "user", "content": f"{number} " + "x" * 50})
            session.log_transcript_entry("agent_002", {"role": "user", "content": "late"})
        return tmp_path / "log"

    def test_does_not_read_the_whole_file(self, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        root, session = load_session(log, ack="os")
        with session:
            ann = root.subagents["Ann"]
            session.log_transcript_entry(ann.agent_id, {"role": "user", "content": "later"})
            AgentPool.of(session).evict(ann.agent_id)
            read = 0

            def counted(fd: int, size: int, start: int) -> bytes:
                nonlocal read
                data = os.pread(fd, size, start)
                read += len(data)
                return data

            monkeypatch.setattr(disk, "_read", counted)

            assert ["hi", "late", "later"] == contents(ann, "user")
            assert read < 300_000 < log.stat().st_size / 8

    @pytest.mark.parametrize(
        "line",
        [
            '{"message_id":"z","event_type":"transcript_entry","agent_id":"\\u0061gent_002",'
            '"role":"user","content":"spelled out"}\n',
            '{"message_id":"z","event_type":"transcript_entry","agent":"agent_002",'
            '"role":"user","content":"spelled out"}\n',
        ],
    )
    def test_whatever_the_line_looks_like(self, log: Path, line: str) -> None:
        with log.open("a") as file:
            file.write(line)

        with Session(log) as session:
            assert ["hi", "late", "spelled out"] == [data["content"] for data in session.entries("agent_002")]

    def test_while_somebody_else_writes(self, log: Path) -> None:
        with log.open("a") as file:
            file.write('{"message_id":"z","event_type":"transcript_entry","agent_id":"agent_002","role":"user"')
        reader = Session(log, readonly=True)
        assert ["hi", "late"] == [data["content"] for data in reader.entries("agent_002")]

        with log.open("a") as file:
            file.write(',"content":"now"}\n')

        assert ["hi", "late", "now"] == [data["content"] for data in reader.entries("agent_002")]


class TestItsTools:
    """#6: an agent made with few tools has as few after a load."""

    @staticmethod
    def look(word: str) -> str:
        """Look up a word."""
        return word

    @staticmethod
    def shout(word: str) -> str:
        """Shout a word."""
        return word.upper()

    def test_are_the_same_after_a_load(self, tmp_path: Path) -> None:
        given = {"tools": [self.look, self.shout]}
        root, session = open_stage(tmp_path / "log", {}, **given)
        with session:
            few, none = root.spawn("Few", tools=[self.look]), root.spawn("None", tools=[])
            same, below = root.spawn("Same"), few.spawn("Below")
            before = {agent.agent_id: list(agent.tools) for agent in (root, few, none, same, below)}

        root, session = open_stage(tmp_path / "log", {}, **given)
        with session:
            assert before == {agent_id: list(AgentPool.of(session).get(agent_id).tools) for agent_id in before}
            assert ["look"] == [name for name in root.subagents["Few"].tools if name in ("look", "shout")]

    def test_two_of_one_name_are_refused(self, tmp_path: Path) -> None:
        """#10"""
        with pytest.raises(BadRequest, match="two tools are called 'look'"):
            load_session(tmp_path / "log", tools=[self.look, self.look])


class TestTerminated:
    """#6"""

    @pytest.fixture
    def gone(self, tmp_path: Path) -> Any:
        root, session = open_stage(tmp_path / "log", {"*": {"otherwise": "ok"}})
        with session:
            ann = root.spawn("Ann", "You are Ann.")
            say(ann, "hello")
            ann.terminate()
            yield ann

    @pytest.mark.parametrize(
        "act",
        [
            lambda ann: ann.harken("hi"),
            lambda ann: asyncio.run(ann.response()),
            lambda ann: ann.parent.inform(ann, "hi"),
            lambda ann: ann.inform(ann.parent, "hi"),
            lambda ann: asyncio.run(ann.parent.deliver("hi", [ann.parent, ann])),
            lambda ann: ann.spawn("Child"),
            lambda ann: ann.instruct("Be loud."),
            lambda ann: asyncio.run(ann.compact("short")),
        ],
    )
    def test_it_neither_hears_nor_speaks(self, gone: Agent, act: Any) -> None:
        size = gone.session.path.stat().st_size

        with pytest.raises(BadRequest, match="Ann was terminated"):
            act(gone)
        assert size == gone.session.path.stat().st_size

    def test_it_is_looked_at_and_has_nothing_left_to_do(self, gone: Agent) -> None:
        assert ["hello"] == contents(gone, "user")
        assert asyncio.run(gone.resume()) is None
        gone.terminate()
        assert 1 == len(lines(gone.session, event_type="agent_terminated"))


class TestNames:
    """#10"""

    @pytest.mark.parametrize(
        "name", [" Jack", "Jack ", "JACK ", "jack", "JACK", "Jack\u00a0", "agent_003", "agent_001"]
    )
    def test_that_would_be_taken_for_another_are_refused(self, tmp_path: Path, name: str) -> None:
        root, session = open_stage(tmp_path / "log", {})
        with session:
            root.spawn("Jack")

            with pytest.raises(BadRequest):
                root.spawn(name)
            with pytest.raises(BadRequest):
                Agent(session, name=name, parent=root)
            assert ["Jack"] == list(root.subagents)

    def test_of_the_same_letters_in_other_code_points_are_one(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", {})
        with session:
            root.spawn("Zo\u00eb")
            with pytest.raises(BadRequest, match="already has a subagent"):
                root.spawn("Zoe\u0308")

    def test_of_a_log_stay_what_they_are(self, tmp_path: Path) -> None:
        with Session(tmp_path / "log") as session:
            session.log_agent_created("a", role="root")
            session.append([AgentCreated(agent_id="b", name=" Jack", parent="a")])  # as another program may have

        root, session = load_session(tmp_path / "log")
        with session:
            assert [" Jack"] == list(root.subagents)


@pytest.mark.parametrize("nothing", [None, 5, b"hello"])
def test_what_is_no_text_is_not_heard(tmp_path: Path, nothing: Any) -> None:
    """#10"""
    root, session = open_stage(tmp_path / "log", {})
    with session:
        ann = root.spawn("Ann")
        size = session.path.stat().st_size
        for act in (root.harken, root.write, root.instruct, lambda text: root.inform(ann, text)):
            with pytest.raises(BadRequest, match="must be text"):
                act(nothing)

        assert size == session.path.stat().st_size
