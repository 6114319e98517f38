"""Interventions: every delivery that a hook changed or blocked, with what was meant and what arrived."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from typing import TypedDict

from harken.events import Prompt, ToolCall, ToolResult
from harken.events.verdicts import BLOCKED, Deny, read_verdict

from .base import HEARD, RECEIVED, SAID, SYSTEM, TEXT, ViewedAgent
from .hearing import hearings, is_changed, said_and_heard
from .index import Index
from .perspective import actions
from .verdicts import ViewedRuling, is_withheld
from .wording import Differ, DiffPiece

_BLOCKED = re.compile(re.escape(BLOCKED) + r"(.*?)': (.*)", re.DOTALL)


class Intervention(TypedDict):
    """One time that something did not arrive as it was meant."""

    kind: str
    """`changed`; `blocked` (a call or a prompt); `withheld` (a text not let through); `sent back` (to be said anew)."""
    hook: str | None
    """The hook's name, as the log gives it or lets one see it."""
    agent_id: str
    """Who heard the changed wording, or whose call or text was refused."""
    message_id: str
    """The delivery, or where the refusal stands."""
    original: str
    """The message that was meant."""
    speaker: str | None
    said: str
    heard: str
    kept_from: list[str] | None
    """Whom a withheld text did not reach, by agent id; None where the log does not say; empty for the other kinds."""
    reason: str | None
    time: str | None


class Comparison(TypedDict):
    """One delivery beside its original."""

    message_id: str
    original: str
    speaker: str | None
    agent_id: str
    label: str
    """What delivery put before the words; not a change."""
    said: str
    heard: str
    changed: bool
    diff: list[DiffPiece]


def interventions(index: Index) -> list[Intervention]:
    """All of them, in file order."""
    found = []
    named = _by_name(index)
    heard: dict[int, dict[str | None, int]] = {}
    for at, kind in enumerate(index.kinds):
        blocked = _refusal_in(index, at, named) if kind == RECEIVED else None
        ruling = index.verdicts.by_answer.get(at)
        if blocked is not None:
            found.append(_blocked(index, at, *blocked))
        elif index.source[at] != at and is_changed(index, at) and is_hearing(index, at):
            found.append(_changed(index, at))
        elif ruling is not None:
            if isinstance(ruling.verdict, Deny) and ruling.point != "tool":  # a call's refusal is its result
                found.append(_refused(index, ruling, ruling.verdict.reason, heard))
        elif kind == RECEIVED:
            found += [_gathered(index, at, cause) for cause in _reworded(index, at)]
    return found


Hooks = dict[str, list[tuple[ViewedAgent, list[int]]]]
"""Agents by name, each with the places at which it said something."""


def _by_name(index: Index) -> Hooks:
    found: Hooks = {}
    for info in index.agents.values():
        said = [at for at in index.transcripts.get(info.agent_id, ()) if index.kinds[at] == SAID]
        found.setdefault(index.name(info.agent_id), []).append((info, said))
    return found


def _refusal_in(index: Index, at: int, named: Hooks) -> tuple[str, str] | None:
    """The hook that refused the call of a result, and why. Words alone prove nothing: a tool may read out a log."""
    for cause in index.parents(at):
        ruling = index.verdicts.by_answer.get(cause)
        if ruling is not None and ruling.point == "tool" and isinstance(ruling.verdict, Deny):
            return index.name(index.holders[cause]), ruling.verdict.reason
    blocked = _BLOCKED.fullmatch(index.texts[at])
    hooks = named.get(blocked[1], ())[:10] if blocked is not None else ()
    if blocked is not None and any(_may_have_refused(index, at, *hook) for hook in hooks):
        return blocked[1], blocked[2]
    return None


def _may_have_refused(index: Index, at: int, hook: ViewedAgent, said: list[int]) -> bool:
    """Whether a hook of another program was against the call: by its last word, or as one whose words are not kept."""
    place = bisect_left(said, at)
    if hook.keeps_verdicts or not place:
        return hook.role == "hook" and not hook.keeps_verdicts
    last = said[place - 1]
    return last > index.answers.get(at, -1) and isinstance(read_verdict(index.texts[last]), Deny)


def _refused(index: Index, ruling: ViewedRuling, reason: str, known: dict[int, dict[str | None, int]]) -> Intervention:
    at, asked, root = ruling.answer, ruling.asked, index.root[ruling.asked]
    speaker = index.authors[root] if root >= 0 else None
    if ruling.point == "prompt":  # its hearer answers with the refusal instead of thinking
        kind, agent = "blocked", index.holders[asked]
        heard = [one for one in index.effects.get(at, ()) if index.kinds[one] == SAID]
    else:
        # A refusal that the speaker gets to hear asks for another try; else the text just goes no further.
        agent = speaker
        pieces = [one for one in index.effects.get(at, ()) if index.kinds[one] == TEXT]
        for one in pieces:
            if one not in known:
                known[one] = {index.holders[copy]: copy for copy in index.copies.get(one, ())}
        heard = [known[one][speaker] for one in pieces if speaker in known[one]]
        sent_back = ruling.point == "finished" or (heard and not ruling.point)
        kind = "sent back" if sent_back else "withheld"
    kept = ruling.recipients if kind == "withheld" else ()
    return Intervention(
        kind=kind,
        hook=index.name(index.holders[at]),
        agent_id=agent or "",
        message_id=index.ids[at],
        original=index.id_of(root),
        speaker=speaker,
        said=index.texts[asked],
        heard=index.texts[heard[0]] if heard else "",
        kept_from=None if kept is None else list(kept),
        reason=reason,
        time=index.time_text(at),
    )


def _reworded(index: Index, at: int) -> list[int]:
    """The utterances that a result gathers in other words, after a hook had been asked about them."""
    causes = index.parents(at)[:1000] if at in index.links and index.source[at] == at else ()
    return [
        cause
        for cause in causes
        if index.kinds[cause] in (SAID, TEXT)
        and bisect_left(index.hook_hearings.get(index.root[cause], ()), at)
        and index.texts[cause] not in index.texts[at]
        and not is_withheld(index, at, index.root[cause])
    ]


def _gathered(index: Index, at: int, cause: int) -> Intervention:
    seen = index.hook_hearings[index.root[cause]]
    return Intervention(
        kind="changed",
        hook=index.name(index.holders[seen[bisect_left(seen, at) - 1]]),
        agent_id=index.holders[at] or "",
        message_id=index.ids[at],
        original=index.ids[cause],
        speaker=index.authors[cause],
        said=index.texts[cause],
        heard=index.texts[at],
        kept_from=[],
        reason=None,
        time=index.time_text(at),
    )


def is_hearing(index: Index, at: int) -> bool:
    """Whether a repeated content was heard here, rather than said again or put before a hook with a question."""
    holder = index.holders[at]
    if holder is None or index.kinds[at] not in (HEARD, RECEIVED, SYSTEM):
        return False
    known, root = index.agents.get(holder), index.root[at]
    return known is None or known.role != "hook" or root < 0 or index.texts[root] not in index.texts[at]


def _blocked(index: Index, at: int, hook: str, reason: str) -> Intervention:
    call = index.answers.get(at)
    agent = index.holders[at] or ""
    return Intervention(
        kind="blocked",
        hook=hook,
        agent_id=agent,
        message_id=index.ids[at],
        original=index.ids[call] if call is not None else "",
        speaker=agent,
        said=_call_text(index, at, call) if call is not None else "",
        heard=index.texts[at],
        kept_from=[],
        reason=reason,
        time=index.time_text(at),
    )


def _call_text(index: Index, at: int, call: int) -> str:
    answer = index.records[at][0]
    # Nobody makes a thousand calls at once; a session that says so shall not cost a search of them for each result.
    calls = [event for event in index.records[call][:1000] if isinstance(event, ToolCall)]
    mine = [one for one in calls if isinstance(answer, ToolResult) and one.id == answer.id]
    return "\n".join(actions(tuple(mine[:1] or calls[:1])))


def _changed(index: Index, at: int) -> Intervention:
    root = index.root[at]
    said, _, heard = said_and_heard(index, at)
    return Intervention(
        kind="changed",
        hook=_hook(index, at),
        agent_id=index.holders[at] or "",
        message_id=index.ids[at],
        original=index.ids[root],
        speaker=index.authors[root],
        said=said,
        heard=heard,
        kept_from=[],
        reason=None,
        time=index.time_text(at),
    )


def _hook(index: Index, at: int) -> str | None:
    """The hook that the delivery names; else the last hook agent that was shown the original before."""
    heard = index.records[at][0]
    if isinstance(heard, Prompt) and heard.hook:
        return index.name(heard.hook)
    seen = index.hook_hearings.get(index.root[at], ())
    place = bisect_left(seen, at)
    return index.name(index.holders[seen[place - 1]]) if place else None


def compare(index: Index, positions: Iterable[int]) -> list[Comparison]:
    """Each delivery with its original, word by word."""
    differ = Differ()
    found = []
    for at in positions:
        root = index.root[at]
        said, label, heard = said_and_heard(index, at)
        found.append(
            Comparison(
                message_id=index.ids[at],
                original=index.id_of(root),
                speaker=index.authors[root] if root >= 0 else None,
                agent_id=index.holders[at] or "",
                label=label,
                said=said,
                heard=heard,
                changed=is_changed(index, at),
                diff=differ.compare(said, heard),
            )
        )
    return found


def said_vs_heard(index: Index, root: int | None) -> list[Comparison]:
    """Every delivery of one content; without one, every delivery that changed its content."""
    if root is not None:
        return compare(index, (at for at, _ in hearings(index, root) if at != root))
    changed = (at for at in range(len(index.records)) if index.source[at] != at)
    return compare(index, (at for at in changed if is_hearing(index, at) and is_changed(index, at)))
