"""Questions to a person, in the log: asked, listed and answered once, whoever reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from harken import Session
from harken.errors import BadRequest, Conflict, Locked, NotFound
from harken.log import OpenQuestion


def asking(session: Session, text: str = "May I?", **fields: Any) -> OpenQuestion:
    """A question of the root."""
    return session.ask_person(OpenQuestion(message_id="", agent_id=session.root or "", text=text, **fields))


@pytest.fixture
def session(tmp_path: Path) -> Session:
    made = Session(tmp_path / "log.jsonl")
    made.log_agent_created(made.allocate_agent_id(), name="Ann", role="root")
    return made


def call_of(session: Session, call_id: str = "c1") -> str:
    """A message of the root with an open call."""
    call = {"id": call_id, "type": "function", "function": {"name": "book", "arguments": "{}"}}
    return session.log_transcript_entry(session.root or "", {"role": "assistant", "tool_calls": [call]})


class TestAQuestion:
    def test_stands_open_until_it_is_answered(self, session: Session) -> None:
        first, second = asking(session, "May I?"), asking(session, "Which one?", choices=("red", "blue"))
        assert [first, second] == session.open_questions()

        session.answer(first.message_id, "Yes, you may.", by="Eve")

        assert [second] == session.open_questions()
        given = session.answer_of(first)
        assert given is not None and ("Yes, you may.", "Eve") == (given.text, given.by)

    def test_is_known_to_another_process_and_answered_there(self, session: Session) -> None:
        question = asking(session, choices=("yes", "no"), key="k")
        with pytest.raises(Locked):
            Session(session.path)
        session.close()

        with Session(session.path) as other:
            assert [question] == other.open_questions()
            other.answer(question.message_id, " YES ")

        with Session(session.path, readonly=True) as reader:
            assert [] == reader.open_questions()
            given = reader.answer_of(question)
            assert given is not None and "yes" == given.text

    def test_is_answered_once(self, session: Session) -> None:
        question = asking(session)
        session.answer(question.message_id, "Yes", by="Eve")
        before = session.path.read_bytes()

        with pytest.raises(Conflict, match="answered by Eve already: Yes"):
            session.answer(question.message_id, "No")

        assert before == session.path.read_bytes()

    def test_asked_again_in_its_place_is_the_same(self, session: Session) -> None:
        message = call_of(session)
        question = asking(session, about=message, call_id="c1")

        assert question == asking(session, about=message, call_id="c1")
        assert question != asking(session, about=message, call_id="c1", key="second")
        assert 2 == len(session.open_questions())

    def test_is_no_longer_asked_once_its_call_has_a_result(self, session: Session) -> None:
        question = asking(session, about=call_of(session), call_id="c1")
        session.log_transcript_entry(session.root or "", {"role": "tool", "tool_call_id": "c1", "content": "stopped"})

        assert [] == session.open_questions()
        with pytest.raises(Conflict, match="no longer asked"):
            session.answer(question.message_id, "Yes")

    def test_is_no_longer_asked_once_it_is_withdrawn_and_may_be_asked_anew(self, session: Session) -> None:
        question = asking(session)
        session.withdraw(question)

        assert [] == session.open_questions()
        with pytest.raises(Conflict):
            session.answer(question.message_id, "Yes")
        assert [asking(session)] == session.open_questions() != [question]

    def test_is_no_longer_asked_once_its_agent_has_left(self, session: Session) -> None:
        asking(session)
        session.log_agent_terminated(session.root or "")

        assert [] == session.open_questions()

    @pytest.mark.parametrize("text", ["", "  ", None, 3, b"yes", "x" * 100_001])
    def test_is_answered_in_words(self, session: Session, text: Any) -> None:
        question = asking(session)

        with pytest.raises(BadRequest):
            session.answer(question.message_id, text)

        assert [question] == session.open_questions()

    def test_with_choices_takes_one_of_them(self, session: Session) -> None:
        question = asking(session, choices=("red", "blue"))

        with pytest.raises(BadRequest, match="none of the choices"):
            session.answer(question.message_id, "green")

    @pytest.mark.parametrize("choices", ["yes", ("a", "A"), ("",), (1,), tuple(map(str, range(101)))])
    def test_has_choices_that_can_be_told_apart(self, session: Session, choices: Any) -> None:
        with pytest.raises(BadRequest):
            asking(session, choices=choices)

    @pytest.mark.parametrize("message_id", ["msg_999", "", None, 1, "agent_001"])
    def test_that_nobody_asked_cannot_be_answered(self, session: Session, message_id: Any) -> None:
        with pytest.raises(NotFound):
            session.answer(message_id, "Yes")


class TestLinesOfAnotherProgram:
    def test_are_taken_for_what_they_can_be(self, session: Session) -> None:
        root = session.root
        session.close()
        odd: list[dict[str, Any]] = [
            {"subtype": "question", "message": 7, "metadata": [1], "cause": {"a": 1}},
            {"subtype": "question", "message": "Well?", "metadata": {"choices": {"a": 1}, "call_id": 3}},
            {"subtype": "answer", "message": "to nothing", "cause": "msg_404"},
            {"subtype": "answer", "message": "to nothing"},
            {"subtype": ["question"], "message": "no"},
            {"subtype": "answer_taken", "cause": "q1"},
        ]
        with session.path.open("ab") as file:
            for number, line in enumerate(odd):
                head = {"message_id": f"q{number}", "event_type": "system", "agent_id": root}
                file.write(orjson.dumps(head | line) + b"\n")

        with Session(session.path) as again:
            assert ["", "Well?"] == [one.text for one in again.open_questions()]
            assert [(), ()] == [one.choices for one in again.open_questions()]
            again.answer("q1", "Yes")

    def test_of_two_answers_the_first_counts(self, session: Session) -> None:
        question = asking(session)
        session.answer(question.message_id, "first")
        session.close()
        with session.path.open("ab") as file:
            line = {"message_id": "x", "event_type": "system", "agent_id": session.root, "subtype": "answer"}
            file.write(orjson.dumps(line | {"message": "second", "cause": question.message_id}) + b"\n")

        with Session(session.path) as again:
            given = again.answer_of(question)
            assert given is not None and "first" == given.text
