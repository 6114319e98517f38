"""What a crash has left open: calls to be taken up again or answered as interrupted, and words to be reviewed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harken.errors import ModelFailed
from harken.events import Error, System
from harken.events.verdicts import Deny
from harken.log import LoggedString

from .actions import CONTINUED
from .deciding import blocked
from .entries import INTERRUPTED, SENT_BACK, Entry, call_name, causes_of, last_spoken, times_sent_back
from .questions import has_waited, is_held, tool_of
from .schemas import misfit_text
from .tools import Answer
from .watching import watchers_of

if TYPE_CHECKING:
    from .agent import Agent
    from .turn import Turn

WRONG_FORM = "Your answer does not have the form that was asked for:"
ANEW = "Answer again, with JSON of that form alone."
STANDS = "answer_stands"
"""The subtype of the notice that an answer which failed for its form is one after all, under other options."""


async def settle(turn: Turn, message: Entry, calls: list[Entry]) -> None:
    """Answer the calls that nobody has answered: those that may go on do, others were refused or are interrupted."""
    message_id = str(message["message_id"])
    going: list[Entry] = []
    for call in calls:
        refusal = _refused(turn, call, message_id)
        is_offered = tool_of(turn.agent, message_id, call["id"], call_name(call)) is not None
        if may_go_on(turn, call, message_id) and (is_offered or refusal is None):
            going.append(call)
        else:
            turn.answer(call, refusal or Answer(content=INTERRUPTED, is_error=True))
    await turn.run_calls(going, message_id, resumed=True)


def may_go_on(turn: Turn, call: Entry, message_id: str) -> bool:
    """Whether a call may be run: ours know what they have done, others say that it does no harm, or have done nothing
    since they asked a person. One that has not begun may be, unless it would go unjudged, since a function that was to
    be asked is not there."""
    tool = turn.agent.tools.get(call_name(call))
    if is_held(turn.agent, message_id, call["id"]):
        return not _goes_unjudged(turn, message_id, call["id"])
    if has_waited(turn.agent, message_id, call["id"]):
        return True
    return tool is not None and (tool in CONTINUED or tool.redo)


def _goes_unjudged(turn: Turn, message_id: str, call_id: str) -> bool:
    """Whether a hook that watches is a function that is not there, and has neither ruled on a call nor asked a person
    about it."""
    asked = turn.agent.session.registry.questions.of_call(turn.agent.agent_id, message_id, call_id)
    deciding = {question.hook for question in asked}
    return any(
        watcher.is_absent and watcher.hook_id not in deciding and not any(watcher.ruled_on(message_id, call_id))
        for watcher in watchers_of(turn.agent, "tool")
    )


def _refused(turn: Turn, call: Entry, message_id: str) -> Answer | None:
    """The refusal of a call where it was given before the crash."""
    rulings = (one for watcher in watchers_of(turn.agent, "tool") for one in watcher.ruled_on(message_id, call["id"]))
    return next((blocked(one) for one in rulings if isinstance(one.verdict, Deny)), None)


def is_under_review(turn: Turn) -> bool:
    """Whether the process died between the last utterance and the verdict on it."""
    from .turn import MAX_REVIEWS

    spoken, transcript = to_review(turn), turn.agent.transcript
    if spoken is None or not spoken.get("message_id"):
        return False
    if wrong_form(turn.agent, str(spoken.get("content") or "")) is not None or has_failed(turn.agent, spoken):
        return True
    if times_sent_back(transcript) >= MAX_REVIEWS:
        return False
    message_id = str(spoken["message_id"])
    behind = transcript[transcript.index(spoken) + 1 :]
    return not all(watcher.is_done_with(message_id, behind) for watcher in watchers_of(turn.agent, "finished"))


def to_review(turn: Turn) -> Entry | None:
    """The last utterance, unless it was accepted or is a refusal, which a hook's verdict brought about."""
    spoken, session = last_spoken(turn.agent.transcript), turn.agent.session
    if spoken is None or spoken.get("message_id", "") == turn.accepted:
        return None
    makers = (session.registry.messages.get(cause) for cause in causes_of(spoken))
    return None if any(maker and session.agents[maker].role == "hook" for maker in makers) else spoken


def wrong_form(agent: Agent, text: str) -> str | None:
    """What is wrong with the form of an answer; None: nothing, or it may have any."""
    schema = None if agent.pool.is_plain else agent.options.schema
    return None if schema is None else misfit_text(text, schema)


def has_failed(agent: Agent, spoken: Entry) -> bool:
    """Whether the turn failed for the form of this answer, and nobody has let it stand since."""
    failed = False
    for line in agent.session.records_of([agent.agent_id]) if not agent.pool.is_plain else ():
        if line.get("cause") == spoken["message_id"] and line.get("event_type") in ("error", "system"):
            failed = line["event_type"] == "error" or (failed and line.get("subtype") != STANDS)
    return failed


def let_stand(turn: Turn, spoken: Entry) -> None:
    """Log that an answer stands, where the log says that the turn failed for its form."""
    agent = turn.agent
    if has_failed(agent, spoken):
        agent.session.append([System(agent_id=agent.agent_id, subtype=STANDS, cause=str(spoken["message_id"]))])


def refuse_form(turn: Turn) -> None:
    """Before a model is asked: an answer that did not fit its form goes back first, or it would be shown its own words
    as the last that were said; where no more may be tried, it is not asked."""
    if (spoken := to_review(turn)) is not None:
        words = str(spoken.get("content") or "")
        sent_back_for_its_form(turn.agent, LoggedString(words, str(spoken["message_id"]), turn.agent.session.path))


def sent_back_for_its_form(agent: Agent, said: LoggedString) -> bool:
    """Send an answer back that does not fit its form; `ModelFailed` after as many as may be tried."""
    why = wrong_form(agent, said)
    if why is None:
        return False
    given = times_sent_back(agent.transcript, by_hook=False) + 1
    if given < agent.options.tries:
        agent.harken(f"{WRONG_FORM} {why}. {ANEW}", origin=SENT_BACK, cause=said.message_id)
        return True
    message = f"{agent.label} gave {given} answers that do not fit their form: {why}"
    agent.session.append([Error(agent_id=agent.agent_id, message=message, cause=said.message_id)])
    raise ModelFailed(
        message, hint="set more tries or another form in agent.options, and another model if need be; then resume"
    )
