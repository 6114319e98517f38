"""Questions to a person: asked in the log, answered there by whoever may write it, in this process or a later one.

A question is a `system` line of the agent that waits for it, subtype `question`; its answer is another, subtype
`answer`, with the question as its cause. A question is answered once. It is no longer asked when its turn was given up
(`question_withdrawn`), when the call that asked has its result, or when its agent has left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import msgspec
import orjson

from harken.errors import BadRequest, Conflict, NotFound
from harken.events import System
from harken.formats.session_log import as_id
from harken.formats.session_log.lines import LogLine
from harken.formats.session_log.reading import object_of, text_of

if TYPE_CHECKING:
    from .session import Session

QUESTION = "question"
ANSWER = "answer"
TAKEN = "answer_taken"
"""Whoever asked has the answer, and goes on with it: from here on a call that asked is like any other."""
WITHDRAWN = "question_withdrawn"
HELD = "calls_held"
"""Calls of a message that were not begun, because one before them waits for an answer or has stopped the turn."""
BEGUN = "call_begun"
"""One of these was begun after all."""
SUBTYPES = frozenset({QUESTION, ANSWER, TAKEN, WITHDRAWN, HELD, BEGUN})
MAX_CHOICES = 100
MAX_WORDS = 100_000
"""How many characters a question or an answer may have."""


class OpenQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is asked, or was."""

    message_id: str
    """What it is answered by: `session.answer(message_id, text)`."""
    agent_id: str
    """The agent that waits for the answer."""
    text: str
    choices: tuple[str, ...] = ()
    """What may be answered; empty where anything may."""
    about: str = ""
    """The message that led to it."""
    call_id: str = ""
    """The call of that message that asks, or that a hook asks about."""
    hook: str = ""
    """The id of the hook that asks, where one does."""
    key: str = ""
    """What tells it from other questions of the same call, where the words do not."""

    @property
    def place(self) -> tuple[str, ...]:
        """Who asks what, and where: asked there once more it is the same question."""
        return (self.agent_id, self.about, self.call_id, self.hook, self.key or self.text)


class GivenAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a person answered."""

    message_id: str
    text: str
    by: str = ""
    """Who answered, where they said so."""


class Questions:
    """Every question of a log and what became of it, one line at a time. The first answer counts."""

    def __init__(self) -> None:
        self.asked: dict[str, OpenQuestion] = {}
        self.answers: dict[str, GivenAnswer] = {}
        """By the id of the question."""
        self.taken: set[str] = set()
        """Questions whose answer reached whoever asked."""
        self.withdrawn: set[str] = set()
        self.held: set[tuple[str, str, str]] = set()
        """Calls that were held back: agent, message, call."""
        self._places: dict[tuple[str, ...], str] = {}

    def take(self, data: LogLine, message_id: str, agent_id: str) -> None:
        """Take in one `system` line of one of our subtypes."""
        subtype, cause = data.get("subtype"), as_id(data.get("cause")) or ""
        if subtype == QUESTION:
            question = _question(data, message_id, agent_id, cause)
            if self.asked.setdefault(message_id, question) is question:
                self._places[question.place] = message_id
        elif subtype in (HELD, BEGUN):
            ids = object_of(data.get("metadata")).get("call_ids")
            calls = {(agent_id, cause, one) for one in ids if isinstance(one, str)} if isinstance(ids, list) else set()
            self.held = self.held | calls if subtype == HELD else self.held - calls
        elif cause not in self.asked:
            return
        elif subtype == ANSWER and cause not in self.withdrawn:
            by = text_of(object_of(data.get("metadata")).get("by"))
            given = GivenAnswer(message_id=message_id, text=text_of(data.get("message")), by=by)
            self.answers.setdefault(cause, given)
        elif subtype == TAKEN and cause in self.answers:
            self.taken.add(cause)
        elif subtype == WITHDRAWN and cause not in self.answers:
            self.withdrawn.add(cause)

    def at(self, place: tuple[str, ...]) -> OpenQuestion | None:
        """The last question that was asked in this place; one that was withdrawn may be asked anew."""
        found = self._places.get(place)
        return None if found is None or found in self.withdrawn else self.asked[found]

    def of_call(self, agent_id: str, message_id: str, call_id: str) -> list[OpenQuestion]:
        """What a call asked, or a hook about it, oldest first."""
        return [
            one
            for one in self.asked.values()
            if (one.agent_id, one.about, one.call_id) == (agent_id, message_id, call_id)
            and one.message_id not in self.withdrawn
        ]

    def waiting(self) -> Iterator[OpenQuestion]:
        """Those without an answer, oldest first."""
        for message_id, question in self.asked.items():
            if message_id not in self.answers and message_id not in self.withdrawn:
                yield question


def _question(data: LogLine, message_id: str, agent_id: str, cause: str) -> OpenQuestion:
    said = object_of(data.get("metadata"))
    choices = said.get("choices")
    return OpenQuestion(
        message_id=message_id,
        agent_id=agent_id,
        text=text_of(data.get("message")),
        choices=tuple(one for one in choices if isinstance(one, str)) if isinstance(choices, list) else (),
        about=cause,
        call_id=text_of(said.get("call_id")),
        hook=text_of(said.get("hook")),
        key=text_of(said.get("key")),
    )


class WithQuestions:
    """Whoever has them; most logs hold none."""

    @cached_property
    def questions(self) -> Questions:
        """What persons were asked, and what became of it."""
        return Questions()


class Answerable:
    """The part of a session through which questions are asked and answered."""

    def open_questions(self) -> list[OpenQuestion]:
        """What a person is asked and has not answered, oldest first."""
        session = cast("Session", self)
        with session.lock:
            open_calls = {(call.agent_id, call.message_id, call.call_id) for call in session.open_calls}
            return [
                one
                for one in session.registry.questions.waiting()
                if not session.has_left(one.agent_id)
                and (not one.call_id or (one.agent_id, one.about, one.call_id) in open_calls)
            ]

    def answer(self, message_id: str, text: str, by: str = "") -> str:
        """Answer a question, for good: a second answer is a `Conflict`. Gives back the id of the answer; whoever asked
        goes on with it at the next `resume()` or `response()`."""
        session = cast("Session", self)
        with session.lock:
            question = self._open_question(message_id)
            message = _fitting(question, text)
            if not isinstance(by, str):
                raise BadRequest(f"who answered is a name, not {type(by).__name__}", hint="pass by as a str")
            return self._notice(ANSWER, question.agent_id, message, message_id, {"by": by})

    def ask_person(self, question: OpenQuestion) -> OpenQuestion:
        """Log a question, unless it is asked there already; the one that stands in the log."""
        session = cast("Session", self)
        check_question(question.text, question.choices)
        with session.lock:
            if (known := session.registry.questions.at(question.place)) is not None:
                return known
            metadata = {
                "choices": list(question.choices),
                "call_id": question.call_id,
                "hook": question.hook,
                "key": question.key,
            }
            asked = self._notice(QUESTION, question.agent_id, question.text, question.about or None, metadata)
            return session.registry.questions.asked[asked]

    def answer_of(self, question: OpenQuestion) -> GivenAnswer | None:
        """The answer to a question, if there is one."""
        return cast("Session", self).registry.questions.answers.get(question.message_id)

    def take_answer(self, question: OpenQuestion) -> None:
        """Log that whoever asked has the answer, unless the log says so."""
        session = cast("Session", self)
        with session.lock:
            if question.message_id not in session.registry.questions.taken:
                self._notice(TAKEN, question.agent_id, "", question.message_id, {})

    def withdraw(self, question: OpenQuestion) -> None:
        """Ask no longer."""
        self._notice(WITHDRAWN, question.agent_id, "", question.message_id, {})

    def note_held(self, agent_id: str, message_id: str, call_ids: Sequence[str]) -> None:
        """Log that calls of a message have not begun."""
        self._notice(HELD, agent_id, "", message_id, {"call_ids": list(call_ids)})

    def note_begun(self, agent_id: str, message_id: str, call_id: str) -> None:
        """Log that a call begins that had been held back."""
        self._notice(BEGUN, agent_id, "", message_id, {"call_ids": [call_id]})

    def _open_question(self, message_id: str) -> OpenQuestion:
        questions = cast("Session", self).registry.questions
        question = questions.asked.get(message_id) if isinstance(message_id, str) else None
        if question is None:
            raise NotFound(f"no question {message_id!r:.80} was asked", hint="`session.open_questions()` has them")
        if (given := questions.answers.get(message_id)) is not None:
            who = f" by {given.by}" if given.by else ""
            raise Conflict(
                f"question {message_id} was answered{who} already: {given.text:.200}", hint="an answer stands"
            )
        if question not in self.open_questions():
            raise Conflict(f"question {message_id} is no longer asked", hint="its turn was given up, or its agent left")
        return question

    def _notice(self, subtype: str, agent_id: str, message: str, cause: str | None, metadata: dict[str, Any]) -> str:
        kept = {key: value for key, value in metadata.items() if value}
        event = System(
            agent_id=agent_id,
            subtype=subtype,
            message=message,
            metadata=orjson.dumps(kept) if kept else b"",
            cause=cause,
        )
        return cast("Session", self).append([event])[0]


def check_question(text: str, choices: Sequence[str]) -> None:
    """Refuse what nobody could answer."""
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_WORDS:
        raise BadRequest(f"a question is text, and {text!r:.80} is none", hint="ask something in words")
    if isinstance(choices, str) or not all(isinstance(one, str) and one.strip() for one in choices):
        raise BadRequest(f"choices are texts, and {choices!r:.80} are none", hint='such as choices=("yes", "no")')
    if len(choices) > MAX_CHOICES or len({_alike(one) for one in choices}) != len(choices):
        raise BadRequest(f"of {len(choices)} choices no person can tell one", hint="give a few different ones")


def _fitting(question: OpenQuestion, text: str) -> str:
    """The answer as it is logged: where there are choices, the one that is meant."""
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_WORDS:
        raise BadRequest(f"an answer is text, and {text!r:.80} is none", hint="answer in words")
    if not question.choices:
        return text
    found = next((one for one in question.choices if _alike(one) == _alike(text)), None)
    if found is None:
        raise BadRequest(f"{text!r:.80} is none of the choices", hint="answer one of: " + ", ".join(question.choices))
    return found


def _alike(text: str) -> str:
    return text.strip().casefold()
