"""What passes from one session to another: the words, and no link, since an id means something in its own log only."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from harken import Agent, LoggedString, Session, SessionViewer
from harken.agents import hook
from harken.agents.hooks import Moment
from harken.errors import BadRequest, NotFound
from harken.events.verdicts import Rewrite
from support.stage import call, contents, open_stage, say

Stage = tuple[Agent, Session]


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Stage]:
    root, session = open_stage(tmp_path / "here.jsonl", {"root": ["the code is 7"]})
    with session:
        yield root, session


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Stage]:
    root, session = open_stage(tmp_path / "there.jsonl", {"root": ["bee", "bee again"]})
    with session:
        say(root, "q0")
        yield root, session


def dialog(path: Path) -> list[str]:
    viewer = SessionViewer(path)
    return [turn["content"] for turn in viewer.extract_dialog(list(viewer.list_agents()))]


def test_a_reply_that_is_told_in_another_session_is_content_of_its_own(here: Stage, there: Stage) -> None:
    there[0].harken(say(here[0], "tell"))

    assert "substance" not in there[0].transcript[-1]
    assert ["q0", "bee", "the code is 7"] == dialog(there[1].path)


def test_what_is_said_across_two_sessions_is_content_of_its_own(here: Stage, there: Stage) -> None:
    here[0].inform(there[0], "hello over there")

    assert "substance" not in there[0].transcript[-1]
    assert ["q0", "bee", "hello over there"] == dialog(there[1].path)


def test_a_hook_of_another_session_is_not_named(here: Stage, there: Stage) -> None:
    @hook("delivery")
    def louder(moment: Moment) -> Rewrite:
        return Rewrite(moment.text.upper())

    here[0].add_hook(louder)
    here[0].inform(there[0], "hello")

    assert ("HELLO", None) == (there[0].transcript[-1]["content"], there[0].transcript[-1].get("hook"))


def test_words_from_another_session_are_written_down_before_they_are_passed_on(here: Stage, there: Stage) -> None:
    said = say(here[0], "tell")
    child = there[0].spawn("Child")

    there[0].inform(child, said)

    piece = there[1].line(child.transcript[-1]["substance"])
    assert ("piece_of_text", "the code is 7") == (piece["event_type"], piece["content"])


def test_an_agent_that_begins_with_words_of_another_session_has_no_link(here: Stage, there: Stage) -> None:
    made = Agent(there[1], init_prompt=say(here[0], "tell"), name="Jill", parent=there[0])
    made.create()

    assert ("the code is 7", False) == (made.transcript[0]["content"], "substance" in made.transcript[0])


def test_a_tool_that_gives_words_of_another_session_has_no_link(tmp_path: Path, here: Stage) -> None:
    said = say(here[0], "tell")

    def fetch() -> str:
        """Fetch it."""
        return said

    root, session = open_stage(tmp_path / "third.jsonl", {"root": [call("fetch"), "done"]}, tools=[fetch])
    with session:
        say(root, "go")

        assert ["the code is 7"] == contents(root, "tool")
        assert not any("substance" in entry for entry in root.transcript)


def test_within_one_session_the_link_is_there(here: Stage) -> None:
    said = say(here[0], "tell")
    child = here[0].spawn("Child")

    child.harken(said)

    assert said.message_id == child.transcript[-1]["substance"]


def test_a_logged_string_keeps_its_log_when_it_is_copied() -> None:
    text = pickle.loads(pickle.dumps(LoggedString("Hello", "msg_001", "/a/log")))

    assert ("Hello", "msg_001", None) == (text, text.id_in("/a/log"), text.id_in("/another/log"))


def test_no_agent_is_made_below_one_of_another_session(here: Stage, there: Stage) -> None:
    with pytest.raises(BadRequest, match="another session") as refused:
        Agent(there[1], name="Jill", parent=here[0])

    assert refused.value.hint


def test_no_agent_is_made_below_one_that_is_not_there(here: Stage) -> None:
    with pytest.raises(NotFound, match="agent_777"):
        Agent(here[1], name="Jill", parent="agent_777")
