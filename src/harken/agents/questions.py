"""Asking a person: a tool, a hook or an agent asks, the turn stops (`Waiting`), and goes on when somebody has answered.

The question and the answer are in the log, so it does not matter who answers, in which process, and how often the one
that asks was killed meanwhile. A call that waits is run again from its beginning when its turn is resumed; the same
question finds its answer there. Once it has taken its last answer it is a call like any other: what it does then is not
done twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from harken.errors import Waiting
from harken.log import OpenQuestion, Session

from .tools import Call, Tool, make_tool

if TYPE_CHECKING:
    from .agent import Agent

_HOW = "`session.answer(question, text)` answers it, `resume()` goes on; in `harken chat`: /answer"
_ELSEWHERE = "resume the session in the program that has the tool"
CHOICES = ("yes", "no")
"""What may be answered to a hook."""


def ask(agent: Agent, text: str, choices: Sequence[str], *, about: str, call_id: str = "", key: str = "") -> str:
    """The answer to a question; `Waiting` where nobody has answered it yet."""
    asked = agent.session.ask_person(
        OpenQuestion(
            message_id="",
            agent_id=agent.agent_id,
            text=text,
            choices=choices if isinstance(choices, str) else tuple(choices),  # type: ignore[arg-type]  # refused there
            about=about,
            call_id=call_id,
            key=key,
        )
    )
    given = agent.session.answer_of(asked)
    if given is None:
        raise waiting(agent.session, [asked])
    agent.session.take_answer(asked)
    return given.text


def waiting(session: Session, questions: Sequence[OpenQuestion]) -> Waiting:
    """What stops a turn that waits for these answers."""
    labels = [session.agents[one.agent_id].name or one.agent_id for one in questions]
    told = "; ".join(
        f"{label} waits for an answer: {one.text:.500}" for label, one in zip(labels, questions, strict=True)
    )
    return Waiting(told, hint=_HOW, questions=tuple(one.message_id for one in questions))


def joined(several: Sequence[Waiting]) -> Waiting:
    """One for all of the calls of a message that wait."""
    if len(several) == 1:
        return several[0]
    ids = dict.fromkeys(one for problem in several for one in problem.questions)
    return Waiting("; ".join(map(str, several)), hint=_HOW if ids else _ELSEWHERE, questions=tuple(ids))


def has_waited(agent: Agent, message_id: str, call_id: str) -> bool:
    """Whether an open call has done nothing since it asked: the answer to its last question has not been taken, or it
    was held back behind a call that waits."""
    questions = agent.session.registry.questions
    if is_held(agent, message_id, call_id):
        return True
    own = questions.of_call(agent.agent_id, message_id, call_id)
    return bool(own) and own[-1].message_id not in questions.taken


def is_held(agent: Agent, message_id: str, call_id: str) -> bool:
    """Whether a call was held back, and has not begun since."""
    return (agent.agent_id, message_id, call_id) in agent.session.registry.questions.held


def refuse_waiting(agent: Agent, message_id: str, call_id: str, tool: str) -> None:
    """Do not begin a call again whose question is open, nor one that waits for its answer where its tool is not."""
    questions = agent.session.registry.questions
    own = questions.of_call(agent.agent_id, message_id, call_id)
    if own and own[-1].message_id not in questions.answers:
        raise waiting(agent.session, own[-1:])
    if tool_of(agent, message_id, call_id, tool) is None and has_waited(agent, message_id, call_id):
        what = "has its answer, and the tool" if own else "has a call that has not begun, and the tool"
        whose = "that waits for it" if own else "that it calls"
        raise Waiting(f"{agent.label} {what} {tool!r} {whose} is not here", hint=_ELSEWHERE)


def tool_of(agent: Agent, message_id: str, call_id: str, name: str) -> Tool | None:
    """The tool of a call. A call of `ask_person` that waits has it everywhere, also where it is not offered."""
    found = agent.tools.get(name)
    if found is None and name == ask_person.name and has_waited(agent, message_id, call_id):
        return ask_person
    return found


def hold(agent: Agent, message_id: str, call_ids: Sequence[str]) -> None:
    """Log which calls of a message were not begun: they wait for another, or one has stopped the turn."""
    known = agent.session.registry.questions.held
    if new := [one for one in call_ids if (agent.agent_id, message_id, one) not in known]:
        agent.session.note_held(agent.agent_id, message_id, new)


def begin(agent: Agent, message_id: str, call_id: str) -> None:
    """Log that a call begins that was held back, or that a hook had asked about; then it is one like any other."""
    questions = agent.session.registry.questions
    for question in questions.of_call(agent.agent_id, message_id, call_id):
        if question.hook and question.message_id in questions.answers:
            agent.session.take_answer(question)  # where a write that was torn has left it out
    if is_held(agent, message_id, call_id):
        agent.session.note_begun(agent.agent_id, message_id, call_id)


def withdraw(agent: Agent) -> None:
    """Ask no longer what an agent and those below it wait for: the turn is given up."""
    for question in agent.session.open_questions():
        at: str | None = question.agent_id
        while at is not None and at != agent.agent_id:
            at = agent.session.agents[at].parent
        if at is not None:
            agent.session.withdraw(question)


async def _ask_person(
    call: Call,
    question: Annotated[str, "What you want to know, in full: the person may read it days later"],
    choices: Annotated[list[str] | None, "What may be answered; leave it out where anything may"] = None,
) -> str:
    """Ask a person, and wait for the answer."""
    return await call.ask(question, choices or ())


ask_person = make_tool(_ask_person, name="ask_person", redo=True)
"""A tool by which an agent asks a person: `load_session(path, tools=[ask_person])`."""
