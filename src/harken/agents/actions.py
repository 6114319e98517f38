"""The tools every agent has: `task` makes an agent below, `discuss` lets them talk, `terminate` ends one.

`task` and `discuss` take several steps, each of which is in the log before the next. When a crash has stopped them
they are run again with the window of what they had done, and skip the steps that are in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from harken.errors import BadRequest, NotFound
from harken.log import LoggedString

from .tools import Answer, Call, as_text, make_tool
from .watching import deliver, wordings

if TYPE_CHECKING:
    from .agent import Agent

MAX_RESULT = 1_000_000
"""How many characters of a tool's result are kept."""


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
    await _announce(call, prompt, [child])
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


async def discuss(
    call: Call,
    prompt: Annotated[str | None, "What everybody is told first"] = None,
    speakers: Annotated[list[str] | None, "Who speaks, in this order; remembered for the next time"] = None,
    listeners: Annotated[list[str] | None, "Who only listens; remembered for the next time"] = None,
) -> Answer:
    """Let subagents talk: each speaker in turn says one thing, and all the others hear it.

    The result is everything that was said.
    """
    talking, silent = seat(call.agent, speakers, listeners, begun=call.window.began(call.message_id))
    present = list(dict.fromkeys([*talking, *silent]))
    if prompt is not None:
        await _announce(call, prompt, present)
    replies: list[LoggedString] = []
    lines: list[str] = []
    place = 0
    alone = len(present) == 1
    for speaker in talking:
        taken = await _turn_unless_ended(call, speaker, place)
        if taken is None:
            lines.append(f"{speaker.label} was terminated and did not speak.")
            continue
        reply, place = taken
        prefix = "" if alone else f"[{speaker.label}]: "
        others = [other for other in present if other is not speaker]
        heard = await _spread(call, speaker, reply, others, prefix)
        replies.append(reply)
        if heard is not None:
            lines.append(prefix + heard)
    if (order := (call.agent.turns, call.place)) >= call.agent.seated:  # a later one of the same message may be over
        call.agent.seated = order
        remember(call.agent, speakers, listeners)
    content = "\n\n".join(lines) or "Everything that was said has been withheld by a hook."
    return Answer(content=content, cause=tuple(reply.message_id or "" for reply in replies))


async def terminate(
    call: Call,
    name: Annotated[str, "The subagent that is no longer needed"],
) -> str:
    """End a subagent and everything below it. What it said stays known; it cannot be talked with again."""
    agent = call.agent
    if name not in agent.subagents:
        raise NotFound(
            f"{agent.label} has no subagent {name!r}", hint="its subagents: " + (", ".join(agent.subagents) or "none")
        )
    agent.subagents[name].terminate(cause=call.message_id)
    return f"Terminated subagent: {name}"


def leave(agent: Agent, cause: str | None) -> None:
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
            for watcher in (watcher for watcher in one.watchers if not watcher.is_terminated):
                one.session.log_agent_terminated(watcher.hook_id, cause=cause)
            one.session.log_agent_terminated(one.agent_id, cause=cause)
    for one in leaving:
        one.watchers.clear()
        parent, name = above[one.agent_id]
        for names in (parent.speakers, parent.listeners) if parent is not None else ():
            if names is not None:
                names[:] = [other for other in names if other != name]


def seat(
    agent: Agent, speakers: list[str] | None, listeners: list[str] | None, *, begun: bool = False
) -> tuple[list[Agent], list[Agent]]:
    """Who talks and who listens: as asked for, else as last time, else everybody talks.

    In a discussion that had begun, those who were terminated since keep their seats: what they said is part of it.
    """
    known = dict(agent.subagents)
    if begun:
        infos = (info for info in agent.session.agents.values() if info.parent == agent.agent_id and info.terminated)
        known = {info.name: agent.pool.get(info.agent_id) for info in infos if info.role != "hook"} | known
    talking = speakers if speakers is not None else agent.speakers or list(agent.subagents)
    silent = listeners if listeners is not None else agent.listeners or []
    if unknown := [name for name in (*talking, *silent) if name not in known]:
        raise NotFound(f"{agent.label} has no subagent {unknown[0]!r}", hint="create it with task")
    if not talking:
        raise BadRequest("there is nobody to speak", hint="create subagents with task")
    silent = [name for name in dict.fromkeys(silent) if name not in talking]
    return [known[name] for name in talking], [known[name] for name in silent]


def remember(agent: Agent, speakers: list[str] | None, listeners: list[str] | None) -> None:
    """Keep the lists for the next time, once a discussion has come to its end: then the log has a result to go by."""
    agent.speakers = agent.speakers if speakers is None else [name for name in speakers if name in agent.subagents]
    agent.listeners = agent.listeners if listeners is None else [name for name in listeners if name in agent.subagents]


async def _announce(call: Call, prompt: str, audience: list[Agent]) -> None:
    """One piece of text, heard by everybody who has not heard it, and again by who has answered somebody else since."""
    agent, window = call.agent, call.window
    piece = window.piece(agent.agent_id, prompt, call.message_id)
    text = LoggedString(prompt, piece, agent.session.path) if piece is not None else call.write(prompt)
    known = text.message_id or ""
    await deliver(agent, text, audience, unless=lambda other: window.is_asked(other.agent_id, known, call.message_id))


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


TASK, DISCUSS, _ = TOOLS = tuple(make_tool(function) for function in (task, discuss, terminate))
CONTINUED = (TASK, DISCUSS)
"""Calls that are taken up again after a crash; any other is answered as interrupted."""
