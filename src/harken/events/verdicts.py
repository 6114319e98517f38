"""What a hook may answer, and how an answer in words is read: by the runtime that asks, and by whoever looks later."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from harken.errors import BadRequest

from .base import Event
from .session import AgentCreated
from .tools import ToolResult

POINTS = ("prompt", "tool", "delivery", "finished")
"""Where a hook is asked."""
GUARDED = frozenset({"tool", "delivery"})
"""Where a hook that fails, or gives no clear verdict, counts as a refusal."""


def _check_words(words: object) -> None:
    """What a verdict says is heard by an agent, and stands in the log."""
    if not isinstance(words, str):
        raise BadRequest(f"what a verdict says must be text, not {type(words).__name__}", hint="pass a str")


class Approve(msgspec.Struct, frozen=True):
    """Go on; `say` is something the watched agent should hear first."""

    say: str = ""

    def __post_init__(self) -> None:
        _check_words(self.say)


class Deny(msgspec.Struct, frozen=True):
    """Not like this, and why: a tool does not run, a text is not heard, an utterance is sent back."""

    reason: str

    def __post_init__(self) -> None:
        _check_words(self.reason)


class Rewrite(msgspec.Struct, frozen=True):
    """Let others hear this instead (at `delivery` only)."""

    text: str

    def __post_init__(self) -> None:
        _check_words(self.text)


class Ask(msgspec.Struct, frozen=True):
    """Let a person decide: what is asked, in words that can be answered by yes or no."""

    text: str

    def __post_init__(self) -> None:
        _check_words(self.text)


Verdict = Approve | Deny | Rewrite | Ask

# The word, perhaps in bold, one mark, one space; what follows is left as it is.
_ANSWER = re.compile(r"[\W_]*([A-Za-z]+)\**[ \t]*[.:;,!—–-]?\**\s?(.*)", re.DOTALL)
_APPROVING = frozenset({"APPROVE", "APPROVED", "ACCEPT", "ACCEPTED", "ALLOW", "ALLOWED"})
_DENYING = frozenset({"DENY", "DENIED", "REJECT", "REJECTED", "BLOCK", "BLOCKED"})


def read_verdict(answer: str, *, exact: bool = False) -> Verdict | None:
    """The verdict in an answer such as `DENY. Too many already.`, or None where there is none.

    `exact` reads what `write_verdict` has written; an agent's white space means nothing.
    """
    found = _ANSWER.match(answer)
    if found is None:
        return None
    word, rest = found[1].upper(), found[2] if exact else found[2].strip()
    if word in _APPROVING:
        return Approve()
    if word in _DENYING:
        return Deny(rest if rest or exact else "no reason given")
    if word == "CHANGE":
        return Rewrite(rest)
    if word == "SAY" and rest:
        return Approve(say=rest)
    if found[1] == "ASK" and rest:  # in capitals: many a sentence begins with the word
        return Ask(rest)
    return None


def write_verdict(verdict: Verdict) -> str:
    """A function's verdict in the words an agent would have used."""
    match verdict:
        case Deny(reason=reason):
            return f"DENY. {reason}"
        case Rewrite(text=text):
            return f"CHANGE: {text}"
        case Approve(say=say) if say:
            return f"SAY: {say}"
        case Ask(text=text):
            return f"ASK: {text}"
    return "APPROVE"


BLOCKED = "Error: Action blocked by hook '"
"""How the result of a call begins that a hook refused."""


def tells_of_hooks(events: Iterable[Event]) -> bool:
    """Whether a hook may have changed or blocked something here, or later: one is made, the words of another record are
    repeated, or a result says that its call was blocked. Where no record of a session tells of it, none did."""
    return any(
        event.substance is not None
        or (type(event) is AgentCreated and event.role == "hook")
        or (type(event) is ToolResult and event.output.startswith(BLOCKED))
        for event in events
    )


def settle_verdict(verdict: object, point: str) -> Verdict:
    """What a verdict comes to at this point, where it may be missing or make no sense."""
    match verdict:
        case Approve() | Deny() | Ask():
            return verdict
        case Rewrite() if point == "delivery":
            return verdict
    reason = "the hook gave no verdict" if verdict is None else f"{type(verdict).__name__} is no verdict here"
    return Deny(reason) if point in GUARDED else Approve()
