"""What only a live recording has: a runtime writes its file late, and a crash may come first.

A session that was run under observation has two chains: the one made from its source, which is a function of the source
alone, and the live one, on the branch `live/SESSION`. What the live one has beyond the source's is one more delta above
the source's tip, until the source holds it too or has gone on without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple, TypeAlias

import msgspec

from harken.errors import Evicted
from harken.events import Event, Metric, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.events.cbor import decode_events, encode_events
from harken.events.runs import TOTAL
from harken.events.tally import Tally
from harken.formats import find as find_format
from harken.formats.base import count
from harken.store.base import Commit, Draft, SessionRow, Store, Writer

from .materialize import DEFAULT_FORMAT
from .names import LIVE_BRANCH
from .walk import DELTA

EventKey: TypeAlias = "tuple[str, str] | None"


class LiveRest(NamedTuple):
    """What only the recording of a session has, beside what its source holds."""

    events: list[Event]
    gone_on: bool
    """Whether the source has gone on without it, so that it stands behind nothing that the source ends with."""


def with_live_rest(store: Store, writer: Writer, row: SessionRow, changed: SessionRow) -> SessionRow:
    """A row that an import changed, with what only a live recording has above the source's tip. What the source has
    gone on without becomes an older tip, and stays one until the source holds it after all: it was late."""
    tip = store.get_commit(changed.tip)
    recorded = [older for older in row.older if store.get_commit(older).format == DEFAULT_FORMAT]
    try:
        kept = kept_events(store, tip)
    except Evicted:
        # What the source holds cannot be compared any more; what was recorded stays beside it.
        tips = filter(None, (row.live, *recorded, *changed.older))
        return msgspec.structs.replace(changed, live="", older=tuple(dict.fromkeys(tips)))
    live, gone_on = _keep_live_rest(store, writer, row.session, tip, kept)
    left = [older for older in recorded if not _is_held(store, older, kept)]
    if gone_on and row.live:
        left.insert(0, row.live)
    changed = msgspec.structs.replace(changed, live=live, older=tuple(dict.fromkeys((*left, *changed.older))))
    if not live:
        return changed
    # The session is what it stands at, so its numbers are of that.
    rest = store.get_commit(live)
    ended = rest.time if changed.ended is None else max(changed.ended, rest.time)
    return msgspec.structs.replace(changed, messages=changed.messages + (rest.message_count or 0), ended=ended)


def _keep_live_rest(store: Store, writer: Writer, session: str, tip: Commit, kept: Sequence[Event]) -> tuple[str, bool]:
    """Commit what only the live recording of a session has above the tip of its source's chain. The answer is the
    commit, or nothing where there is no such thing, and whether the source has gone on without it."""
    name = store.find_name(LIVE_BRANCH + session)
    if name is None or name.target == tip.id:
        return "", False
    recording, start = recorded_events(store, name.target)
    events = list(recording)
    rest = live_rest(events, kept, _kept_before(store, start, kept))
    if rest.gone_on or not rest.events:
        return "", rest.gone_on
    recorded = store.get_commit(name.target)
    draft = Draft(
        artifact=writer.put(encode_events(rest.events)),
        format=DEFAULT_FORMAT,
        parent=tip.id,
        checkpoint=recorded.checkpoint,
        time=max([tip.time, *(event.time for event in rest.events if event.time is not None)]),
        template=recorded.template,
        principal=recorded.principal,
        machine=recorded.machine,
        session_id=recorded.session_id,
        ticket_id=recorded.ticket_id,
        thread_id=recorded.thread_id,
        message_count=count(rest.events).messages,
    )
    return writer.commit(draft).id, False


def _kept_before(store: Store, start: str, kept: Sequence[Event]) -> int:
    """How much of what is kept was so when a run began that hangs from the commit `start` of the source's chain: it has
    heard that, and is compared with what came later."""
    if not start:
        return 0
    return _common(list(map(_key, kept)), list(map(_key, kept_events(store, store.get_commit(start)))))


def _is_held(store: Store, older: str, kept: Sequence[Event]) -> bool:
    """Whether the source has come to hold everything of an older tip that was recorded: each word, as many calls, and
    the requests, since the same may be said twice."""
    recording, start = recorded_events(store, older)
    events = list(recording)
    before = _kept_before(store, start, kept)
    # Of the last request before it the recording may report once more.
    if not _said(events) <= _said(kept[before:]) or not _requests(events) <= _requests(kept):
        return False
    return not live_rest(events, kept, before).events


def _said(events: Sequence[Event]) -> Counter[tuple[str, str]]:
    """How often each thing was said or asked for. A stream may have other ids for calls than the file."""
    said: Counter[tuple[str, str]] = Counter()
    for event in events:
        if (key := _key(event)) is not None:
            said[key[0], "" if isinstance(event, ToolCall | ToolResult) else key[1]] += 1
    return said


def _requests(events: Sequence[Event]) -> set[str]:
    """The requests by their API ids: each is reported several times while its answer comes in."""
    reports = (event for event in events if isinstance(event, Metric) and not (event.scope or event.of_process))
    return {event.api_id for event in reports} - {""}


def live_rest(recorded: Sequence[Event], kept: Sequence[Event], before: int = 0) -> LiveRest:
    """The end of a recording, from the first thing said behind everything that was kept of it. As many events as
    `before` says were kept when the recording began, and are no part of it.

    Words are recognised by what they say and calls by their ids, both in their order; a stream may have other ids than
    the file, so as many calls as were kept behind the last words in common are taken for those of the recording."""
    later = kept[before:]
    heard, held = _last_in_common(list(map(_key, recorded)), list(map(_key, later)))
    behind = later[held + 1 :]
    trailing = Counter(event.kind for event in behind)
    rest: list[Event] = []
    for event in recorded[heard + 1 :]:
        if isinstance(event, ToolCall | ToolResult) and trailing[event.kind]:
            trailing[event.kind] -= 1
        else:
            rest.append(event)
    said = [event for event in rest if _key(event) is not None]
    if not said:
        # A program that was killed may have told its totals and not written them down. A total is of the whole thread,
        # so it is compared with all that was kept.
        totals = [*filter(_is_total, recorded)][-1:]
        told = Tally.of(kept).tokens
        return LiveRest(totals if totals and Tally.of([*kept, *totals]).tokens != told else [], False)
    return LiveRest(rest, bool(said) and any(_is_later(event, said, heard >= 0) for event in behind))


def _is_total(event: Event) -> bool:
    return isinstance(event, Metric) and event.scope == TOTAL


def _is_later(event: Event, rest: Sequence[Event], aligned: bool) -> bool:
    """Whether somebody said this after the rest of a recording began. What a runtime injects may be in its file alone,
    and a recording that has nothing in common with the file may have begun behind all of it."""
    if not (isinstance(event, Response) or (isinstance(event, Prompt) and event.source != "injected")):
        return False
    began = next((other.time for other in rest if other.time is not None), None)
    return aligned if event.time is None or began is None else event.time > began


def _last_in_common(recorded: list[EventKey], kept: list[EventKey]) -> tuple[int, int]:
    """The places of the last thing that both sequences have, aligned in their order; -1 where there is none."""
    both = {key for key in recorded if key is not None} & set(kept)
    ours = [place for place, key in enumerate(recorded) if key in both]
    theirs = [place for place, key in enumerate(kept) if key in both]
    left, right = [recorded[place] for place in ours], [kept[place] for place in theirs]
    same = _common(left, right)
    # The last block is an empty one at the ends.
    blocks = SequenceMatcher(None, left[same:], right[same:], autojunk=False).get_matching_blocks()[:-1]
    if blocks:
        last = blocks[-1]
        return ours[same + last.a + last.size - 1], theirs[same + last.b + last.size - 1]
    return (ours[same - 1], theirs[same - 1]) if same else (-1, -1)


def _common(left: Sequence[EventKey], right: Sequence[EventKey]) -> int:
    """How many items two sequences begin with alike."""
    return next((n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


def _key(event: Event) -> EventKey:
    """By what something said is recognised; None for what is no part of the conversation."""
    if isinstance(event, ToolCall | ToolResult):
        return event.kind, event.id
    if isinstance(event, Prompt | Response | Thinking):
        return event.kind, " ".join(event.content.split())
    return None


def recorded_events(store: Store, tip: str) -> tuple[Iterator[Event], str]:
    """The events of a live chain, read as they are asked for, down to where it goes on from something else, and that
    commit."""
    artifacts: list[str] = []
    start = ""
    for link in store.walk(tip):
        if link.format != DEFAULT_FORMAT:
            start = link.id
            break
        if link.commit_type == DELTA:
            artifacts.append(link.artifact)
    return (event for data in store.get_many(artifacts[::-1]) for event in decode_events(data)), start


def kept_events(store: Store, tip: Commit) -> list[Event]:
    """The events of a chain that was made from a source."""
    known = find_format(tip.format)
    links = [link for link in reversed(store.walk(tip.id)) if link.commit_type == DELTA]
    if known is None or "read" not in known.can:
        return []
    return known.read(known.join(store.get_many([link.artifact for link in links])))
