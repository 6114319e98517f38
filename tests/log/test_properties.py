"""What holds for every session: it comes back as it was, wherever the file is cut."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from harken.errors import BadRequest
from harken.events import Event
from harken.events.base import is_name
from harken.log import Session, scan
from support.events import events as any_event
from support.logs import TALKS, as_bytes, as_smallchat, as_v1

AGENTS = st.sampled_from(["agent_001", "agent_002", "agent_jack", "7"])
WORDS = st.text(max_size=12)


@contextmanager
def a_path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder, "session.jsonl")


@st.composite
def sessions(draw: st.DrawFn) -> list[Event]:
    """Events with ids of their own, as another runtime would bring them."""
    events = draw(st.lists(any_event(), max_size=8))
    return [event.replace(message_id=f"m{at}", index=0, time=event.time or 1) for at, event in enumerate(events)]


@given(sessions())
@settings(max_examples=60, deadline=None)
def test_any_sequence_of_events_comes_back_from_a_session(events: list[Event]) -> None:
    with a_path() as path:
        with Session(path, ack="os") as session:
            session.append(events)
            assert events == list(session.events())

        assert events == list(Session.load(path, readonly=True).events())


@given(sessions())
@settings(max_examples=60, deadline=None)
def test_a_loaded_registry_is_the_one_that_lived(events: list[Event]) -> None:
    with a_path() as path:
        with Session(path, ack="os") as session:
            for event in events:
                session.append([event])

        loaded = Session.load(path, readonly=True)
        assert session.agents == loaded.agents
        assert list(session.agents) == list(loaded.agents)
        assert session.root == loaded.root
        assert session.registry.messages == loaded.registry.messages
        assert session.open_calls == loaded.open_calls


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [record.data for record in scan(path) if record.data is not None]


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_cut_at_any_byte_loses_at_most_the_last_record(data: st.DataObject) -> None:
    translate = data.draw(st.sampled_from([list, as_v1, as_smallchat]))
    whole = as_bytes(translate(data.draw(st.sampled_from(list(TALKS.values())))))
    cut = data.draw(st.integers(0, len(whole)))
    with a_path() as path:
        path.write_bytes(whole)
        complete = lines_of(path)
        ends = [record.offset + record.length for record in scan(path)]
        path.write_bytes(whole[:cut])

        with Session.load(path) as session:
            kept = lines_of(path)
            fresh = session.log_piece_of_text("agent_root", "after", "msg_001")

        survivors = sum(end <= cut for end in ends)
        assert complete[:survivors] == kept[:survivors]
        assert {"recovery"} >= {line["event_type"] for line in kept[survivors:]}
        assert whole[:cut] == path.read_bytes()[:cut]
        assert fresh not in {line.get("message_id") for line in complete[:survivors]}
        again = Session.load(path, readonly=True)
        assert session.agents == again.agents
        assert {"no newline at the end"}.isdisjoint(problem.what for problem in again.report)


class Life(RuleBasedStateMachine):
    """A session that is written, closed, torn and opened again, against a plain list of what was acknowledged."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, "session.jsonl")
        self.session = Session(self.path, ack="os")
        self.acknowledged: list[str] = []
        self.agent_ids: list[str] = []

    def log(self, agent_id: str, write: Callable[[], str]) -> None:
        """Whoever was terminated neither hears nor speaks (#6)."""
        if self.session.has_left(agent_id):
            with pytest.raises(BadRequest):
                write()
        else:
            self.acknowledged.append(write())

    @rule(name=WORDS)
    def create(self, name: str) -> None:
        agent_id = self.session.allocate_agent_id()
        assert agent_id not in self.agent_ids
        self.agent_ids.append(agent_id)
        named = name if is_name(name) and name == name.strip() else None
        self.acknowledged.append(self.session.log_agent_created(agent_id, name=named))

    @rule(agent_id=AGENTS, content=WORDS, role=st.sampled_from(["user", "assistant", "system"]))
    def say(self, agent_id: str, content: str, role: str) -> None:
        self.log(agent_id, lambda: self.session.log_transcript_entry(agent_id, {"role": role, "content": content}))

    @rule(agent_id=AGENTS, call_id=st.sampled_from(["c1", "c2"]), name=WORDS)
    def call(self, agent_id: str, call_id: str, name: str) -> None:
        calls = [{"id": call_id, "function": {"name": "task", "arguments": f'{{"name":"{len(name)}"}}'}}]
        message = {"role": "assistant", "tool_calls": calls}
        self.log(agent_id, lambda: self.session.log_transcript_entry(agent_id, message))

    @rule(agent_id=AGENTS, call_id=st.sampled_from(["c1", "c2"]))
    def answer(self, agent_id: str, call_id: str) -> None:
        message = {"role": "tool", "tool_call_id": call_id, "content": "ok"}
        self.log(agent_id, lambda: self.session.log_transcript_entry(agent_id, message))

    @rule(agent_id=AGENTS, n=st.integers(0, 4))
    def truncate(self, agent_id: str, n: int) -> None:
        self.log(agent_id, lambda: self.session.log_transcript_edit(agent_id, "truncate", n))

    @rule(agent_id=AGENTS)
    def terminate(self, agent_id: str) -> None:
        if agent_id in self.session.agents:
            self.acknowledged.append(self.session.log_agent_terminated(agent_id))

    @rule(contents=st.lists(WORDS, max_size=3))
    def together(self, contents: list[str]) -> None:
        with self.session.batch():
            for content in contents:
                self.log("agent_001", partial(self.session.log_piece_of_text, "agent_001", content, "msg_001"))

    @rule(torn=st.sampled_from([b"", b"{", b'{"message_id":"msg_9', b'{"message_id":"msg_900","event', b"\xff"]))
    def crash(self, torn: bytes) -> None:
        if not self.acknowledged:
            torn = torn.replace(b"\xff", b"")  # alone, such a byte is no log (#1)
        agents, transcripts = self.session.agents, self.session.transcripts()
        self.session.close()
        with self.path.open("ab") as file:
            file.write(torn)
        self.session = Session(self.path, ack="os")
        assert agents == self.session.agents
        assert transcripts == self.session.transcripts()

    @invariant()
    def nothing_acknowledged_is_lost_and_no_id_is_given_twice(self) -> None:
        ids = [line["message_id"] for line in lines_of(self.path) if line["event_type"] != "recovery"]
        assert self.acknowledged == ids
        assert len(set(ids)) == len(ids)

    def teardown(self) -> None:
        self.session.close()
        self.folder.cleanup()


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
