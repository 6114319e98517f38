"""A hook that lets a person decide: the question, and the verdict that follows from the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec

from harken.events.tally import SYNTHETIC
from harken.events.verdicts import BLOCKED, Approve, Ask, Deny, Verdict, write_verdict
from harken.log import OpenQuestion, Session
from harken.log.questions import check_question

from .entries import Entry
from .hooks import Hook, HookAgent, Moment, Question, put
from .questions import CHOICES, waiting
from .tools import Answer

if TYPE_CHECKING:
    from .watching import Watcher


class Ruling(msgspec.Struct, frozen=True):
    """A verdict, whose it is, and where it stands in the log (empty where a function approved without a word)."""

    verdict: Verdict
    watcher: Watcher
    message_id: str = ""
    recovered: bool = False
    """Whether it was given before a crash, so that some of what follows from it may have happened."""


def blocked(ruling: Ruling) -> Answer:
    """The result of a call that a hook has refused."""
    why = ruling.verdict.reason if isinstance(ruling.verdict, Deny) else ""
    text = f"{BLOCKED}{ruling.watcher.name}': {why}"
    return Answer(content=text, cause=(ruling.message_id,) if ruling.message_id else None, is_error=True)


class Deciding:
    """The part of a watcher that writes down a verdict, and asks a person for it."""

    hook: Hook | HookAgent
    hook_id: str
    session: Session
    _past: dict[Question, Entry]
    _open: Question | None

    def _remember(self, moment: Moment, asked: str, answer: str, message_id: str) -> None:
        raise NotImplementedError

    def _record(self, moment: Moment, asked: str, answer: str, cause: str | None = None) -> str:
        with self.session.batch():
            self._put(moment, asked)
            verdict = {"role": "assistant", "content": answer, "model": SYNTHETIC}  # no model was asked
            message_id = self.session.log_transcript_entry(self.hook_id, verdict, cause=cause)
        self._remember(moment, asked, answer, message_id)
        return message_id

    def _put(self, moment: Moment, asked: str) -> None:
        """Have the question in the hook's transcript, unless it stands there and waits for the verdict."""
        if self._open != (moment.message_id, moment.call_id, asked):
            self.session.log_transcript_entry(self.hook_id, put(moment, asked), cause=moment.message_id)
            self._open = (moment.message_id, moment.call_id, asked)

    def _place(self, moment: Moment) -> OpenQuestion:
        """The question to a person about this moment, without its words: the hook need not be asked for them again."""
        return OpenQuestion(
            message_id="",
            agent_id=moment.agent.agent_id,
            text="",
            choices=CHOICES,
            about=moment.message_id,
            call_id=moment.call_id,
            hook=self.hook_id,
            key=":".join((moment.point, *moment.recipient_ids)),
        )

    def _question_at(self, moment: Moment) -> OpenQuestion | None:
        return self.session.registry.questions.at(self._place(moment).place)

    def _leaves_open(self, message_id: str) -> bool:
        """Whether a person was asked about an utterance, and what follows from the answer is not in the log."""
        questions = self.session.registry.questions
        return any(
            one.hook == self.hook_id
            and one.about == message_id
            and one.key == "finished"
            and one.message_id not in questions.taken | questions.withdrawn
            for one in questions.asked.values()
        )

    def _let_decide(self, moment: Moment, asked: str, ask: Ask) -> Ruling:
        """Have a person rule. What they are asked and the hook's part in it are in the log together."""
        check_question(ask.text, CHOICES)
        with self.session.batch():
            if isinstance(self.hook, Hook):
                self._put(moment, asked)
            question = self.session.ask_person(msgspec.structs.replace(self._place(moment), text=ask.text))
        return self._decided(moment, asked, question)

    def _decided(self, moment: Moment, asked: str, question: OpenQuestion) -> Ruling:
        """The verdict that follows from a person's answer; `Waiting` where there is none yet."""
        given = self.session.answer_of(question)
        if given is None:
            raise waiting(self.session, [question])
        verdict = Approve() if given.text == CHOICES[0] else Deny(f"{given.by or 'a person'} said no")
        told = asked if isinstance(self.hook, Hook) else f"{given.by or 'A person'} was asked and says: {given.text}"
        if (known := self._past.get((moment.message_id, moment.call_id, told))) is not None:
            return Ruling(verdict, cast("Watcher", self), str(known["message_id"]), recovered=True)
        with self.session.batch():
            ruled = self._record(moment, told, write_verdict(verdict), cause=given.message_id)
            self.session.take_answer(question)
        return Ruling(verdict, cast("Watcher", self), ruled)
