"""Letting agents hear something: through the hooks of the one who says it, and with a link to what was said."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from harken.log import LoggedString

from .hooks import Approve, Change, Deny, Moment
from .watching import Ruling, remark, watchers_of

if TYPE_CHECKING:
    from .agent import Agent


class Heard:
    """What one recipient gets: the words, and the hook that changed them, if one did. No words: withheld."""

    def __init__(self, text: str) -> None:
        self.text: str | None = text
        self.hook: str | None = None

    def apply(self, ruling: Ruling) -> None:
        """Let a verdict have its effect."""
        match ruling.verdict:
            case Deny():
                self.text = None
            case Change(text=text):
                self.text = text
            case Approve():
                return
        self.hook = ruling.watcher.hook_id


async def wordings(speaker: Agent, text: LoggedString, recipients: list[Agent]) -> dict[str, Heard]:
    """How each recipient is to hear a text, by agent id.

    A hook that is an agent is asked once, about all of them; a function is asked for each.
    """
    heard = {recipient.agent_id: Heard(str(text)) for recipient in recipients}
    for watcher in list(watchers_of(speaker, "delivery")):
        for wording, group in _groups(heard, recipients, whole=watcher.agent is not None):
            ruling = await watcher.ask(_moment(speaker, text, wording, group))
            for recipient in group:
                heard[recipient.agent_id].apply(ruling)
            remark(speaker, ruling)
    return heard


def _groups(heard: dict[str, Heard], recipients: list[Agent], *, whole: bool) -> list[tuple[str, list[Agent]]]:
    """Those who still would hear something: all with the same wording together, or each alone."""
    if not whole:
        alone = ((heard[one.agent_id].text, [one]) for one in recipients)
        return [(wording, group) for wording, group in alone if wording is not None]
    groups: dict[str, list[Agent]] = {}
    for one in recipients:
        if (wording := heard[one.agent_id].text) is not None:
            groups.setdefault(wording, []).append(one)
    return list(groups.items())


async def deliver(
    speaker: Agent,
    text: LoggedString,
    to: Iterable[Agent],
    *,
    prefix: str = "",
    unless: Callable[[Agent], bool] = lambda _: False,
) -> dict[str, Heard]:
    """Let others hear a text that is in the log; `unless` leaves out those who already have."""
    recipients = list(to)
    heard = await wordings(speaker, text, recipients)
    for recipient in recipients:
        one = heard[recipient.agent_id]
        if one.text is not None and not unless(recipient):
            recipient.harken(LoggedString(prefix + one.text, text.message_id), hook=one.hook)
    return heard


def inform(speaker: Agent, recipient: Agent, text: LoggedString) -> None:
    """Deliver to one agent without waiting; only hooks that need not be waited for can be asked."""
    heard = Heard(str(text))
    for watcher in list(watchers_of(speaker, "delivery")):
        if heard.text is not None:
            ruling = watcher.ask_now(_moment(speaker, text, heard.text, [recipient]))
            heard.apply(ruling)
            remark(speaker, ruling)
    if heard.text is not None:
        recipient.harken(LoggedString(heard.text, text.message_id), hook=heard.hook)


def _moment(speaker: Agent, text: LoggedString, wording: str, recipients: list[Agent]) -> Moment:
    return Moment(
        point="delivery",
        agent=speaker,
        message_id=text.message_id or "",
        text=wording,
        recipients=tuple(recipient.label for recipient in recipients),
    )
