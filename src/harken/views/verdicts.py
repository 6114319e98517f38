"""What the hooks of a session ruled: about which content, for whom, and how. One fold over their transcripts.

A hook's transcript holds questions (what is asked about is the question's cause) and answers. Harken's own logs say at
which point a hook was asked and who would have heard the text; for others the point follows from what was asked about.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from harken.events import Prompt
from harken.events.base import holds
from harken.events.verdicts import Approve, Deny, Rewrite, Verdict, read_verdict, settle_verdict

from .base import ACTION, HEARD, OTHER, SAID, TEXT

if TYPE_CHECKING:
    from .index import Index

_POINTS = {HEARD: "prompt", ACTION: "tool"}


class ViewedRuling(msgspec.Struct, frozen=True, kw_only=True):
    """One verdict of a hook."""

    answer: int
    """Where it stands."""
    asked: int
    """What the hook was asked about."""
    point: str
    """`prompt`, `tool`, `delivery`, `finished`; empty where the log does not say and it cannot be seen."""
    recipients: tuple[str, ...] | None
    """Who would have heard the text; None where the log does not say."""
    verdict: Verdict


class Verdicts(msgspec.Struct):
    """The rulings of a session."""

    by_answer: dict[int, ViewedRuling] = {}
    by_content: dict[int, list[ViewedRuling]] = {}
    """Root of a content: those about its delivery."""

    def add(self, index: Index, ruling: ViewedRuling) -> None:
        self.by_answer[ruling.answer] = ruling
        if index.kinds[ruling.asked] in (SAID, TEXT) and ruling.point != "finished":
            self.by_content.setdefault(index.root[ruling.asked], []).append(ruling)


def verdicts(index: Index) -> Verdicts:
    """Everything that hooks ruled."""
    found = Verdicts()
    for info in index.agents.values():
        for ruling in _rulings(index, info.agent_id) if info.role == "hook" else ():
            found.add(index, ruling)
    return found


def _rulings(index: Index, hook_id: str) -> Iterator[ViewedRuling]:
    """The word of a hook that comes next after a question is its answer."""
    question = asked = None
    for at in index.transcripts.get(hook_id, ()):
        if index.kinds[at] == HEARD:
            question, asked = at, next((one for one in index.parents(at) if index.kinds[one] in _ASKED), None)
        elif index.kinds[at] in (SAID, OTHER):  # an answer without words is one
            if question is not None and asked is not None:
                yield _ruling(index, question, asked, at)
            question = asked = None


_ASKED = (SAID, TEXT, HEARD, ACTION)


def _ruling(index: Index, question: int, asked: int, answer: int) -> ViewedRuling:
    first = index.records[question][0]
    point, recipients = (first.point, first.recipients) if isinstance(first, Prompt) else ("", ())
    point = point or _POINTS.get(index.kinds[asked], "")
    verdict = read_verdict(index.texts[answer])
    return ViewedRuling(
        answer=answer,
        asked=asked,
        point=point,
        recipients=recipients or None,
        verdict=settle_verdict(verdict, point) if point else verdict or Approve(),
    )


def is_withheld(index: Index, at: int, root: int) -> bool:
    """Whether a result tells of a content that its holder was kept from, and does not have the words of it."""
    rulings = index.verdicts.by_content.get(root)
    if not rulings:
        return False
    own = [one for one in rulings if one.answer < at and _concerns(one, index.holders[at])]
    refused = any(isinstance(one.verdict, Deny) for one in own)
    # Where a log does not say for whom, a change for somebody may have been the one that came here.
    changed = any(isinstance(one.verdict, Rewrite) for one in own if one.recipients is None)
    return refused and not changed and not (index.texts[root] and holds(index.texts[at], index.texts[root].strip()))


def _concerns(ruling: ViewedRuling, agent_id: str | None) -> bool:
    return ruling.recipients is None or agent_id in ruling.recipients


def hook_hearings(index: Index) -> dict[int, list[int]]:
    """Root of a content: where hooks were shown it or asked about it, in order."""
    found: dict[int, list[int]] = {}
    for info in index.agents.values():
        for at in index.transcripts.get(info.agent_id, ()) if info.role == "hook" else ():
            repeats = index.source[at] != at
            origins = {index.root[at]} if repeats else {index.root[one] for one in index.parents(at)}
            for origin in origins:
                found.setdefault(origin, []).append(at)
    return {origin: sorted(places) for origin, places in found.items()}
