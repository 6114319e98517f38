"""Hooks: somebody who watches an agent, asked at four points, and what he may answer.

    prompt      the agent has been told something and is about to think about it
    tool        the agent is about to use a tool
    delivery    what the agent said is about to reach others
    finished    the agent has said something and is about to be done

A hook is a function, or an agent with instructions of its own; both answer with a verdict. Only values and rules are
here; who is asked when is in `watching.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from harken.errors import BadRequest
from harken.events.base import check_name, likeness
from harken.events.verdicts import POINTS, Verdict

from .entries import Entry, is_utterance
from .options import ModelOptions

if TYPE_CHECKING:
    from .agent import Agent


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook is shown."""

    point: str
    agent: Any
    """The agent that is watched."""
    message_id: str
    """The message in question, in the log."""
    text: str = ""
    """The prompt or the utterance; at `tool` the arguments as the model wrote them."""
    tool: str = ""
    call_id: str = ""
    """At `tool`: which of the message's calls it is."""
    arguments: dict[str, Any] = {}
    recipients: tuple[str, ...] = ()
    """Who would hear it: one name for a function, all of them for an agent."""
    recipient_ids: tuple[str, ...] = ()
    """The same by agent id."""
    attempt: int = 0
    """How often this turn has been sent back already."""


HookFunction = Callable[[Moment], Verdict | Awaitable[Verdict | None] | None]


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """A function that watches. It lives in the program, so it has to be passed again when a session is loaded."""

    name: str
    points: tuple[str, ...]
    function: HookFunction
    tree: bool = True
    """Whether it watches the agents below as well."""

    def __post_init__(self) -> None:
        check(self.name, self.points)


class HookAgent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that watches. It is in the log, and comes back by itself when the session is loaded."""

    name: str
    points: tuple[str, ...]
    instructions: str
    language_model: str | None = None
    """None: the model of the agent it watches."""
    tree: bool = True
    options: ModelOptions | None = None
    """How its model is asked; None: in as many seconds, and with the fallbacks, of the agent it watches."""

    def __post_init__(self) -> None:
        check(self.name, self.points)


def hook(*points: str, name: str | None = None, tree: bool = True) -> Callable[[HookFunction], Hook]:
    """Make a function a hook: `@hook("tool")` above `def approve(moment)`."""

    def decorate(function: HookFunction) -> Hook:
        return Hook(name=name or str(getattr(function, "__name__", "")), points=points, function=function, tree=tree)

    return decorate


def absent(_: Moment) -> None:
    """Stands for a function that was not passed again: of such a hook only what it has ruled is left."""


def recalled(name: str, attributes: Mapping[str, Any]) -> Hook | HookAgent:
    """A hook as the log has it."""
    # A log of another program may not say where its hooks stand; reviewing is what all of them do.
    points = tuple(point for point in POINTS if point in attributes.get("points", ())) or ("finished",)
    tree = attributes.get("tree") is not False
    if attributes.get("kind") == "function":
        return Hook(name=name, points=points, function=absent, tree=tree)
    return HookAgent(name=name, points=points, instructions=str(attributes.get("instructions", "")), tree=tree)


def check(name: str, points: Iterable[str]) -> None:
    """Refuse a hook that nobody could name or that is never asked."""
    check_name(name)
    points = tuple(points)
    if not points or not set(points) <= set(POINTS):
        raise BadRequest(f"hook {name!r} has the points {points}", hint=f"points are {', '.join(POINTS)}")


def distinct(hooks: Iterable[Hook | HookAgent]) -> list[Hook | HookAgent]:
    """The hooks as given; a hook is known by its name, so no two may share one."""
    given = list(hooks)
    for one in given:
        if not isinstance(one, Hook | HookAgent):
            raise BadRequest(f"{one!r:.80} is no hook", hint='make it one: @hook("tool") above the function')
    names = [likeness(one.name) for one in given]
    if twice := [one.name for one in given if names.count(likeness(one.name)) > 1]:
        raise BadRequest(f"two hooks are called {twice[0]!r}", hint="a hook is known by its name: give each its own")
    return given


# -- what a hook agent is asked ---

HOW_TO_ANSWER = """

Begin your answer with one word in capitals:
APPROVE to let it pass; DENY and a reason to refuse it or send it back; CHANGE and the new wording, where something is
about to be delivered; SAY and a sentence, to let it pass and have the agent hear that sentence from you."""


def question(moment: Moment, subagents: int) -> str:
    """The moment in words, for a hook that is an agent (and for the record of one that is not)."""
    who = f"Agent '{moment.agent.agent_id}'"
    if moment.point == "tool" and moment.tool == "task":
        new = moment.arguments.get("name", "")
        return f"{who} is attempting to create subagent '{new}'. Current subagent count: {subagents}. Approve?"
    if moment.point == "tool":
        return f"{who} is attempting to call tool '{moment.tool}' with {moment.text or '{}'}. Approve?"
    who = f"Agent '{moment.agent.label}'"
    if moment.point == "prompt":
        return f"{who} has been told:\n\n{moment.text}"
    if moment.point == "delivery":
        return f"{who} is about to tell {', '.join(moment.recipients)}:\n\n{moment.text}"
    return f"{who} has said:\n\n{moment.text}"


def is_review(asked: str) -> bool:
    """Whether a hook was asked about an utterance, at `finished`."""
    return asked.partition("\n\n")[0].endswith(" has said:")


def subagent_count(agent: Agent) -> int:
    """How many agents hang directly below this one."""
    return len(agent.subagents)


Question = tuple[str, str, str]
"""The message in question, the call of it that is meant, if any, and the wording."""


def put(moment: Moment, asked: str) -> Entry:
    """The question as an entry of the hook's transcript."""
    entry: Entry = {"role": "user", "content": asked, "source": "injected", "point": moment.point}
    about = {"call_id": moment.call_id, "recipients": list(moment.recipient_ids)}
    return entry | {key: value for key, value in about.items() if value}


def answered(entries: Iterable[Entry]) -> tuple[dict[Question, Entry], Question | None]:
    """Every question a hook has answered, with its reply, and the one it has not."""
    past: dict[Question, Entry] = {}
    asked: Question | None = None
    for entry in entries:
        cause = entry.get("cause")
        if entry.get("role") == "user" and isinstance(cause, str):
            asked = (cause, str(entry.get("call_id") or ""), str(entry.get("content") or ""))
        elif asked is not None and is_utterance(entry):
            past[asked] = entry
            asked = None
    return past, asked
