"""The tools every agent has: `task` makes an agent below, `discuss` lets them talk, `terminate` ends one.

`task` and `discuss` take several steps, each of which is in the log before the next. When a crash has stopped one of
the three it is run again with the window of what it had done, and skips the steps that are in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from harken.errors import BadRequest, NotFound
from harken.log import LoggedString

from .entries import call_of, causes_of
from .tools import Answer, Call, as_text, make_tool
from .watching import deliver, wordings

if TYPE_CHECKING:
    from .agent import Agent

MAX_RESULT = 1_000_000
"""How many characters of a tool's result are kept."""
MAX_ROUNDS = 1000
"""How often everybody may speak in one discussion."""


async def task(
    call: Call,
    name: Annotated[str, "What the subagent is called; not yet taken by another of yours"],
    system_prompt: Annotated[str | None, "Who the subagent is and what it should do"] = None,
    prompt: Annotated[str | None, "A first message; with one, you get the subagent's reply"] = None,
) -> Answer:
    """Create a subagent.

    It remembers everything it hears until it is terminated. Talk with it later by discuss.
    """
    agent, window = call.agent, call.window
    made = window.created(name, call.message_id)
    child = agent.subagents.get(name)
    if child is None:
        child = agent.spawn(name, system_prompt, cause=call.message_id)
    elif child.agent_id != made:
        raise BadRequest(
            f"{agent.label} already has a subagent {name!r}", hint="choose another name, or call the one that is there"
        )
    elif system_prompt is not None and not child.transcript:
        child.instruct(system_prompt, cause=call.message_id)
    if prompt is None:
        return Answer(content=f"Created subagent: {name}")
    await announce(call, prompt, [child])
    reply, _ = await _turn(call, child, 0)
    return await heard_by(agent, child, reply)


async def heard_by(agent: Agent, speaker: Agent, said: LoggedString) -> Answer:
    """A result in which an agent hears what another one said, as that one's hooks have it."""
    text = (await wordings(speaker, said, [agent]))[agent.agent_id].text
    if text is None:
        return Answer(content=f"{speaker.label} answered, and a hook withheld it.", cause=(said.message_id or "",))
    return Answer(content=text, substance=said.message_id)


def speaker_of(agent: Agent, value: object) -> Agent | None:
    """The other agent whose words a tool brought back, where the log knows them for its own."""
    known = value.id_in(agent.session.path) if isinstance(value, LoggedString) else None
    maker = agent.session.registry.messages.get(known or "")
    if not maker or maker == agent.agent_id or agent.session.agents[maker].role == "hook":
        return None
    return agent.pool.get(maker)


def as_answer(value: Any, log: object = None) -> Answer:
    """What a tool returned, with its origin where it has one."""
    if isinstance(value, Answer):
        return value
    return Answer(content=as_text(value), substance=value.id_in(log) if isinstance(value, LoggedString) else None)


def bounded(text: str) -> str:
    """A result that a model can be expected to read, and the log to keep."""
    if len(text) <= MAX_RESULT:
        return text
    return f"{text[:MAX_RESULT]}\n[{len(text) - MAX_RESULT} more characters were left out]"


Rounds = Annotated[int, msgspec.Meta(ge=1, le=MAX_ROUNDS, description="How often everybody may speak")]


async def discuss(
    call: Call,
    prompt: Annotated[str | None, "What everybody is told first"] = None,
    speakers: Annotated[list[str] | None, "Who speaks, in this order; remembered for the next time"] = None,
    listeners: Annotated[list[str] | None, "Who only listens; remembered for the next time"] = None,
    turns: Annotated[
        Literal["round robin", "moderator", "free"],
        "Who is next: each in turn; whom the moderator names; or each in turn, unless it has nothing to say",
    ] = "round robin",
    rounds: Rounds = 1,
    moderator: Annotated[str | None, "The subagent that says who is next"] = None,
) -> Answer:
    """Let subagents talk: each speaker in turn says one thing, and all the others hear it.

    The result is everything that was said.
    """
    discussion = Discussion(call, speakers, listeners, moderator)
    if prompt is not None:
        await announce(call, prompt, discussion.present)
    if turns == "round robin" and moderator is None:
        for speaker in discussion.talking * rounds:
            await discussion.hears_from(speaker)
    else:
        from .discussing import by_rule

        await by_rule(discussion, turns, rounds)
    if (order := (call.agent.turns, call.place)) >= call.agent.seated:  # a later one of the same message may be over
        call.agent.seated = order
        remember(call.agent, speakers, listeners)
    silence = "Everything that was said has been withheld by a hook." if discussion.replies else "Nobody said anything."
    content = "\n\n".join(discussion.lines) or silence
    return Answer(content=content, cause=tuple(reply.message_id or "" for reply in discussion.replies))


class Discussion:
    """A discussion under way: who is there, and what was said."""

    def __init__(
        self, call: Call, speakers: list[str] | None, listeners: list[str] | None, moderator: str | None
    ) -> None:
        self.call = call
        begun = call.window.began(call.message_id)
        self.talking, silent, self.moderator = seat(call.agent, speakers, listeners, moderator, begun=begun)
        leading = [] if self.moderator is None else [self.moderator]
        self.present = list(dict.fromkeys([*leading, *self.talking, *silent]))
        self.replies: list[LoggedString] = []
        self.lines: list[str] = []
        self._place = 0
        """How much of what a crash has left is used up."""
        self._left: set[str] = set()

    async def hears_from(self, speaker: Agent) -> LoggedString | None:
        """Let somebody speak, and all the others hear it; None where it was terminated."""
        if (reply := await self.turn_of(speaker)) is not None:
            await self.spread(speaker, reply)
        return reply

    async def turn_of(self, speaker: Agent) -> LoggedString | None:
        """What somebody says, which nobody has heard yet; None where it was terminated, which does not end it all."""
        taken = await _turn_unless_ended(self.call, speaker, self._place)
        if taken is None:
            if speaker.agent_id not in self._left:
                self.lines.append(f"{speaker.label} was terminated and did not speak.")
            self._left.add(speaker.agent_id)
            return None
        reply, self._place = taken
        return reply

    async def spread(self, speaker: Agent, reply: LoggedString) -> None:
        """Let all the others hear what somebody said."""
        prefix = "" if len(self.present) == 1 else f"[{speaker.label}]: "
        others = [other for other in self.present if other is not speaker]
        heard = await _spread(self.call, speaker, reply, others, prefix)
        self.replies.append(reply)
        if heard is not None:
            self.lines.append(prefix + heard)


async def terminate(
    call: Call,
    name: Annotated[str, "The subagent that is no longer needed"],
) -> str:
    """End a subagent and everything below it. What it said stays known; it cannot be talked with again."""
    agent = call.agent
    if _has_ended(call, name):
        return f"Terminated subagent: {name}"
    if name not in agent.subagents:
        raise NotFound(
            f"{agent.label} has no subagent {name!r}", hint="its subagents: " + (", ".join(agent.subagents) or "none")
        )
    leave(agent.subagents[name], call.message_id, call_id=call.asker.call_id or None)
    return f"Terminated subagent: {name}"


def _has_ended(call: Call, name: str) -> bool:
    """Whether this call had ended the agent before a crash."""
    for event in call.window.events:
        if event.get("event_type") == "agent_terminated" and call.message_id in causes_of(event):
            info = call.session.agents[str(event.get("agent_id"))]
            if (info.parent, info.name) == (call.agent.agent_id, name) and call_of(event) in ("", call.asker.call_id):
                return True
    return False


def leave(agent: Agent, cause: str | None, *, call_id: str | None = None) -> None:
    """Take an agent and everything below it out of the tree, the deepest first; it is logged whole or not at all."""
    if agent.is_terminated:
        return
    leaving = [agent]
    for one in leaving:
        leaving.extend(one.subagents.values())
    leaving.reverse()
    above = {one.agent_id: (one.parent, one.name) for one in leaving}
    with agent.session.batch():
        for one in leaving:
            one.create()
            hooks = [watcher.hook_id for watcher in one.watchers if not watcher.is_terminated]
            for agent_id in (*hooks, one.agent_id):
                one.session.log_agent_terminated(agent_id, cause=cause, call_id=call_id)
    for one in leaving:
        one.watchers.clear()
        parent, name = above[one.agent_id]
        for names in (parent.speakers, parent.listeners) if parent is not None else ():
            if names is not None:
                names[:] = [other for other in names if other != name]


def seat(
    agent: Agent,
    speakers: list[str] | None,
    listeners: list[str] | None,
    moderator: str | None = None,
    *,
    begun: bool = False,
) -> tuple[list[Agent], list[Agent], Agent | None]:
    """Who talks, who listens and who leads: as asked for, else as last time, else everybody but the leader talks.

    In a discussion that had begun, those who were terminated since keep their seats: what they said is part of it.
    """
    known = dict(agent.subagents)
    if begun:
        infos = (info for info in agent.session.agents.values() if info.parent == agent.agent_id and info.terminated)
        known = {info.name: agent.pool.get(info.agent_id) for info in infos if info.role != "hook"} | known
    talking = speakers if speakers is not None else agent.speakers or list(agent.subagents)
    silent = listeners if listeners is not None else agent.listeners or []
    leading = [] if moderator is None else [moderator]
    if unknown := [name for name in (*leading, *talking, *silent) if name not in known]:
        raise NotFound(f"{agent.label} has no subagent {unknown[0]!r}", hint="create it with task")
    talking = [name for name in talking if name != moderator]
    if not talking:
        raise BadRequest("there is nobody to speak", hint="create subagents with task")
    silent = [name for name in dict.fromkeys(silent) if name not in (*talking, *leading)]
    return [known[name] for name in talking], [known[name] for name in silent], known[moderator] if moderator else None


def remember(agent: Agent, speakers: list[str] | None, listeners: list[str] | None) -> None:
    """Keep the lists for the next time, once a discussion has come to its end: then the log has a result to go by."""
    agent.speakers = agent.speakers if speakers is None else [name for name in speakers if name in agent.subagents]
    agent.listeners = agent.listeners if listeners is None else [name for name in listeners if name in agent.subagents]


async def announce(call: Call, prompt: str, audience: list[Agent]) -> None:
    """One piece of text, heard by everybody who has not heard it, and again by who has answered somebody else since."""
    text, window = written(call, prompt), call.window
    known = text.message_id or ""
    await deliver(
        call.agent, text, audience, unless=lambda other: window.is_asked(other.agent_id, known, call.message_id)
    )


def written(call: Call, text: str) -> LoggedString:
    """A text of the call, as it is in the log; put there unless a call that was stopped has done so."""
    piece = call.window.piece(call.agent.agent_id, text, call.message_id)
    return LoggedString(text, piece, call.session.path) if piece is not None else call.write(text)


async def _turn(call: Call, speaker: Agent, after: int) -> tuple[LoggedString, int]:
    """What the speaker says, and the place in the window behind it; taken from the window where it is there."""
    found = call.window.utterance(speaker, after, call.message_id)
    if found is None:
        return await speaker.turn.take(asked_by=call.asker), after
    place, event = found
    if not speaker.is_terminated and (said := await speaker.turn.conclude(str(event["message_id"]))) is not None:
        return said, place + 1
    said = LoggedString(str(event.get("content") or ""), str(event["message_id"]), speaker.session.path)
    return said, place + 1


async def _turn_unless_ended(call: Call, speaker: Agent, after: int) -> tuple[LoggedString, int] | None:
    """As `_turn`; None where the speaker was terminated before it had spoken, which does not end the discussion."""
    try:
        return await _turn(call, speaker, after)
    except BadRequest:
        if not speaker.is_terminated or call.agent.is_terminated:
            raise
        return None


async def _spread(call: Call, speaker: Agent, reply: LoggedString, others: list[Agent], prefix: str) -> str | None:
    """Let the others hear a reply; gives back how the one who asked for the discussion hears it."""
    window, known = call.window, reply.message_id or ""
    heard = await deliver(
        speaker,
        reply,
        [*others, call.agent],
        prefix=prefix,
        unless=lambda other: other is call.agent or window.has_heard(other.agent_id, known),
    )
    return heard[call.agent.agent_id].text


TASK, DISCUSS, TERMINATE = TOOLS = tuple(make_tool(function) for function in (task, discuss, terminate))
CONTINUED = (TASK, DISCUSS, TERMINATE)
"""Calls that are taken up again after a crash; any other is answered as interrupted."""
