"""Whose turn it is in a discussion, where it is not simply one after the other.

Each rule asks the agents themselves, in words: a moderator says who is next, and in a free discussion whoever has
nothing to say passes. What they say is theirs, and in the log; so a discussion that was stopped asks nobody twice.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harken.errors import BadRequest
from harken.events.base import likeness

from .actions import announce

if TYPE_CHECKING:
    from .actions import Discussion
    from .agent import Agent

NEXT, END, PASS = "NEXT", "END", "PASS"
MODERATOR = (
    f"You lead this discussion. Say who speaks next, in a line of its own: {NEXT}: NAME. "
    f"When it is over, say {NEXT}: {END}."
)
FREE = f"Speak when you have something to say. If you have nothing to say, answer {PASS} alone: nobody will hear it."
_AROUND = " \t*_#>-.,;!'\"`()[]"


async def by_rule(discussion: Discussion, turns: str, rounds: int) -> None:
    """Hold a discussion by a rule of turn-taking."""
    if (turns == "moderator") != (discussion.moderator is not None):
        raise BadRequest(
            "a moderator says who is next, and nobody else needs one",
            hint='name a subagent as `moderator`, with turns="moderator"',
        )
    await (moderated if turns == "moderator" else free)(discussion, rounds)


async def moderated(discussion: Discussion, rounds: int) -> None:
    """The moderator says who is next, heard by all, until it ends the discussion or everybody could have spoken so
    often. Where it names nobody who speaks, it is the turn of who has not spoken for longest."""
    leader = discussion.moderator
    assert leader is not None
    names = ", ".join(speaker.label for speaker in discussion.talking)
    await announce(discussion.call, f"{MODERATOR} Those who speak: {names}.", [leader])
    waiting = list(discussion.talking)
    for _ in range(rounds * len(waiting)):
        said = await discussion.hears_from(leader)
        speaker = waiting[0] if said is None else chosen(said, waiting)
        if speaker is None:
            return
        waiting.remove(speaker)
        waiting.append(speaker)
        await discussion.hears_from(speaker)


def chosen(said: str, waiting: list[Agent]) -> Agent | None:
    """Whom a moderator has named: in the line for it, else as the only one named at all, else the first of those who
    wait; None where it is over."""
    line = choice(said)
    if likeness(line) == likeness(END):
        return None
    for text in (line, said):
        named = [one for one in dict.fromkeys(waiting) if is_named(one.label, text)]
        if len(named) == 1:
            return named[0]
    return waiting[0]


def choice(said: str) -> str:
    """What stands in the last line that says who is next; empty where there is none."""
    found = ""
    for line in said.splitlines():
        head, colon, rest = line.partition(":")
        if colon and likeness(head.strip(_AROUND)) == likeness(NEXT):
            found = rest.strip(_AROUND)
    return found


def is_named(name: str, text: str) -> bool:
    """Whether a name occurs in a text as a word of its own."""
    return re.search(rf"(?<!\w){re.escape(likeness(name))}(?!\w)", likeness(text)) is not None


async def free(discussion: Discussion, rounds: int) -> None:
    """Everybody is asked in turn, and who has nothing to say passes, which nobody hears. When all have passed, one
    after the other, it is over."""
    await announce(discussion.call, FREE, discussion.talking)
    silent = 0
    for speaker in discussion.talking * rounds:
        said = await discussion.turn_of(speaker)
        silent = silent + 1 if said is None or is_pass(said) else 0
        if said is not None and silent == 0:
            await discussion.spread(speaker, said)
        if silent == len(discussion.talking):
            return


def is_pass(said: str) -> bool:
    """Whether somebody has said that it has nothing to say."""
    return likeness(said.strip().strip(_AROUND)) == likeness(PASS)
