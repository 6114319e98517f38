"""What a new agent begins with is its transcript, before the first word is logged and after."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from harken import Agent, LoggedString, Session, SessionViewer
from harken.agents import ScriptedModel
from harken.errors import BadRequest
from support.stage import contents, lines, open_stage, say

EXAMPLES = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]


def made_again(session: Session, agent: Agent) -> Agent:
    """The agent as another process would make it from the log."""
    return Agent(Session(session.path, readonly=True), agent_id=agent.agent_id)


class TestBeforeAnythingIsLogged:
    def test_the_transcript_is_what_was_given(self, tmp_path: Path) -> None:
        with Session(tmp_path / "log") as session:
            agent = Agent(session, "You are Ann.", "first")

            assert [
                {"role": "system", "content": "You are Ann."},
                {"role": "user", "content": "first"},
            ] == agent.transcript
            assert [] == list(session.records())

    def test_messages_may_be_given_instead_of_a_text(self, tmp_path: Path) -> None:
        with Session(tmp_path / "log") as session:
            agent = Agent(session, init_prompt=EXAMPLES)

            assert EXAMPLES == agent.transcript
            assert (1, False) == (agent.turns, agent.is_pending)

    def test_the_ids_come_with_the_first_entry_of_the_log(self, tmp_path: Path) -> None:
        with Session(tmp_path / "log") as session:
            agent = Agent(session, "You are Ann.", EXAMPLES)
            agent.harken("3+3?")

            assert ["You are Ann.", "2+2?", "4", "3+3?"] == [entry["content"] for entry in agent.transcript]
            assert ["msg_002", "msg_003", "msg_004", "msg_005"] == [entry["message_id"] for entry in agent.transcript]
            assert agent.transcript == made_again(session, agent).transcript

    def test_a_first_message_is_answered_without_another(self, tmp_path: Path) -> None:
        model = ScriptedModel({"agents": {"root": ["yes", "more"]}}, name="scripted:mine")
        with Session(tmp_path / "log") as session:
            agent = Agent(session, init_prompt="first", language_model=model)

            assert "yes" == asyncio.run(agent.response())
            assert "more" == say(agent, "second")

    def test_it_may_be_folded(self, tmp_path: Path) -> None:
        with Session(tmp_path / "log") as session:
            agent = Agent(session, "You are Ann.", EXAMPLES * 3)

            assert asyncio.run(agent.compact("sums"))
            assert ["2+2?", "sums", "2+2?"] == contents(agent, "user")
            assert agent.transcript == made_again(session, agent).transcript

    @pytest.mark.parametrize("message", ["words", {"content": "no role"}, {"role": "nobody", "content": ""}])
    def test_what_is_no_message_is_refused_at_once(self, tmp_path: Path, message: Any) -> None:
        with Session(tmp_path / "log") as session, pytest.raises(BadRequest, match="no message to begin with"):
            Agent(session, init_prompt=[message])


class TestTheTranscriptOfAnother:
    def test_is_the_same_content_again(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", {"root": ["I am Ann."]}, system_prompt="You are Ann.")
        with session:
            say(root, "Who are you?")
            twin = Agent(session, init_prompt=root.transcript)
            twin.harken("And you?")

            assert ["You are Ann.", "Who are you?", "I am Ann.", "And you?"] == [
                entry["content"] for entry in twin.transcript
            ]
            assert [entry["message_id"] for entry in root.transcript] == [
                entry["substance"] for entry in twin.transcript[:-1]
            ]
            assert twin.transcript == made_again(session, twin).transcript
            dialog = SessionViewer(session.path).extract_dialog([root.agent_id, twin.agent_id])
            assert ["Who are you?", "I am Ann.", "And you?"] == [line["content"] for line in dialog]

    def test_leads_to_the_first_who_said_it(self, tmp_path: Path) -> None:
        with Session(tmp_path / "log") as session:
            jack, jill = Agent(session, name="Jack"), Agent(session, name="Jill")
            jack.inform(jill, "The key is under the mat.")
            twin = Agent(session, init_prompt=jill.transcript)
            twin.create()

            (piece,) = lines(session, event_type="piece_of_text")
            assert [piece["message_id"]] == [entry["substance"] for entry in twin.transcript]

    def test_of_another_log_has_no_links_to_this_one(self, tmp_path: Path) -> None:
        with Session(tmp_path / "other") as other, Session(tmp_path / "log") as session:
            stranger = Agent(other, "sys")
            said = stranger.harken("from elsewhere")
            stranger.harken("because of that", cause=[said])
            root = Agent(session)
            for word in ("a", "b", "c", "d"):  # so that every id of the other log is one here too
                root.harken(word)
            agent = Agent(session, init_prompt=stranger.transcript)
            agent.create()

            assert ["sys", "from elsewhere", "because of that"] == [entry["content"] for entry in agent.transcript]
            assert [] == [entry for entry in agent.transcript if "substance" in entry or "cause" in entry]

    def test_a_logged_string_keeps_its_origin(self, tmp_path: Path) -> None:
        with Session(tmp_path / "log") as session:
            said = Agent(session).harken("Hello")
            agent = Agent(session, init_prompt=LoggedString("[Jack]: Hello", said))
            agent.create()

            assert said == agent.transcript[0]["substance"]
