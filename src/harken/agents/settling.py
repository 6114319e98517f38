"""What a crash has left open: calls that are taken up again or answered as interrupted, and words to be reviewed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harken.events.verdicts import Deny

from .actions import CONTINUED
from .entries import INTERRUPTED, Entry, call_name, causes_of, last_spoken, times_sent_back
from .tools import Answer
from .watching import watchers_of

if TYPE_CHECKING:
    from .turn import Turn


async def settle(turn: Turn, message: Entry, calls: list[Entry]) -> None:
    """Answer the calls that nobody has answered: those that may go on do, others were refused or are interrupted."""
    message_id = str(message["message_id"])
    going = [call for call in calls if may_go_on(turn, call)]
    for call in calls:
        if call not in going:
            turn.answer(call, _refused(turn, call, message_id) or Answer(content=INTERRUPTED, is_error=True))
    await turn.run_calls(going, message_id, resumed=True)


def may_go_on(turn: Turn, call: Entry) -> bool:
    """Whether a call that was begun may be run: ours know what they have done, others say that it does no harm."""
    tool = turn.agent.tools.get(call_name(call))
    return tool is not None and (tool in CONTINUED or tool.redo)


def _refused(turn: Turn, call: Entry, message_id: str) -> Answer | None:
    """The refusal of a call where it was given before the crash."""
    from .turn import blocked

    rulings = (one for watcher in watchers_of(turn.agent, "tool") for one in watcher.ruled_on(message_id, call["id"]))
    return next((blocked(one) for one in rulings if isinstance(one.verdict, Deny)), None)


def is_under_review(turn: Turn) -> bool:
    """Whether the process died between the last utterance and the verdict on it."""
    from .turn import MAX_REVIEWS

    spoken, transcript = to_review(turn), turn.agent.transcript
    if spoken is None or not spoken.get("message_id") or times_sent_back(transcript) >= MAX_REVIEWS:
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
