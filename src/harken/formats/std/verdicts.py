"""What reviews came to: each one, and the session."""

from __future__ import annotations

from collections import Counter

from .document import Json
from .models import VERDICTS
from .parts import agent_at, inner, text, values
from .spellings import known_word


def handed_verdict(sub: Json) -> str:
    """The verdict in what a sub-session handed in: of a generic output in its `data`; empty where there is none."""
    output = inner(sub, "output")
    found = (text(output, "verdict"), text(inner(output, "data"), "verdict"))
    return next((verdict for verdict in found if verdict in VERDICTS), "")


class ReviewVerdicts:
    """The verdicts of a document by the sub-sessions that they are of."""

    def __init__(self, data: Json) -> None:
        self._asked = {
            text(one, "message_id"): text(inner(one, "payload"), "review_id")
            for one in values(data.get("messages"))
            if one.get("message_type") == "review_request"
        }
        self._told: dict[tuple[str, str], str] = {}
        """Agent and name of a review, or no name for any of the agent's, to the last verdict."""
        for one in values(data.get("messages")):
            if verdict := _told_verdict(one):
                agent = _agent(one, "from_agent")
                for name in ("", *self._names(one)):
                    self._told[agent, name] = verdict
        self._subs = Counter(_agent(sub, "agent") for sub in values(data.get("sub_sessions")))

    def of(self, sub: Json) -> str:
        """What a sub-session came to: as it was handed in, else as the message says that its agent sent about it; one
        that names no review is about the only sub-session of its agent."""
        if verdict := handed_verdict(sub):
            return verdict
        agent = _agent(sub, "agent")
        names = [text(inner(sub, "output"), "review_id"), text(inner(sub, "task"), "task_id")]
        told = [self._told[agent, name] for name in names if name and (agent, name) in self._told]
        alone = self._told.get((agent, ""), "") if self._subs[agent] == 1 else ""
        return told[0] if told else alone

    def _names(self, message: Json) -> list[str]:
        """What a result calls the review that it is of."""
        payload = inner(message, "payload")
        asked = self._asked.get(text(message, "reply_to"), "")
        names = (text(payload, "review_id"), asked, text(message, "correlation_id"), text(payload, "task_id"))
        return [name for name in names if name]


def final_verdict(data: Json) -> str:
    """What the last review that has a verdict came to; empty where none has. Messages tell, and what was handed in of a
    review that none tells of: its reviewer handed in more verdicts than messages have."""
    told = [(_agent(one, "from_agent"), _told_verdict(one)) for one in values(data.get("messages"))]
    told = [one for one in told if one[1]]
    handed_in = [(_agent(sub, "agent"), handed_verdict(sub)) for sub in values(data.get("sub_sessions"))]
    handed_in = [one for one in handed_in if one[1]]
    agents, owners = Counter(agent for agent, _ in told), Counter(agent for agent, _ in handed_in)
    if handed_in and (not told or 0 < agents[handed_in[-1][0]] < owners[handed_in[-1][0]]):
        return handed_in[-1][1]
    return told[-1][1] if told else ""


def _told_verdict(message: Json) -> str:
    """The verdict that a message tells, also in another word; empty where it tells none."""
    is_result = message.get("message_type") == "review_result"
    return known_word(inner(message, "payload").get("verdict"), VERDICTS) or "" if is_result else ""


def _agent(part: Json, key: str) -> str:
    agent = agent_at(part, key)
    return text(agent, "agent_id") or text(agent, "agent_type")
