"""What only a live recording has: a runtime writes its file late, and a crash may come first.

A session that was run under observation has two chains: the one made from its source, which is a function of the source
alone, and the live one, on the branch `live/SESSION`. What the live one has beyond the source's is one more delta above
the source's tip, until the source holds it too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from harken.events import Event, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.events.cbor import decode_events, encode_events
from harken.formats import find as find_format
from harken.formats.base import count
from harken.store.base import Commit, Draft, Store, Writer

from .materialize import DEFAULT_FORMAT
from .names import LIVE_BRANCH
from .walk import DELTA


def keep_live_rest(store: Store, writer: Writer, session: str, tip: Commit) -> str:
    """Commit what only the live recording of a session has above the tip of its source's chain; the answer is the
    commit, or nothing where there is no such thing."""
    name = store.find_name(LIVE_BRANCH + session)
    if name is None or name.target == tip.id:
        return ""
    rest = live_rest(_recorded(store, name.target), _kept(store, tip))
    if not rest:
        return ""
    recorded = store.get_commit(name.target)
    draft = Draft(
        artifact=writer.put(encode_events(rest)),
        format=DEFAULT_FORMAT,
        parent=tip.id,
        checkpoint=recorded.checkpoint,
        time=max([tip.time, *(event.time for event in rest if event.time is not None)]),
        template=recorded.template,
        principal=recorded.principal,
        machine=recorded.machine,
        session_id=recorded.session_id,
        ticket_id=recorded.ticket_id,
        thread_id=recorded.thread_id,
        message_count=count(rest).messages,
    )
    return writer.commit(draft).id


def live_rest(recorded: Sequence[Event], kept: Iterable[Event]) -> list[Event]:
    """The end of a recording, from the first thing said behind everything that was kept of it.

    Words are recognised by what they say and calls by their ids; a stream may have other ids than the file, so as many
    calls as were kept behind the last words in common are taken for those of the recording."""
    seen: set[tuple[str, str]] = set()
    trailing: Counter[str] = Counter()
    spoken = {_key(event) for event in recorded}
    for event in kept:
        key = _key(event)
        if key is None:
            continue
        seen.add(key)
        if key in spoken:
            trailing.clear()
        else:
            trailing[event.kind] += 1
    last = max((place for place, event in enumerate(recorded) if _key(event) in seen), default=-1)
    rest: list[Event] = []
    said = False
    for event in recorded[last + 1 :]:
        if isinstance(event, ToolCall | ToolResult) and trailing[event.kind]:
            trailing[event.kind] -= 1
            continue
        rest.append(event)
        said = said or _key(event) is not None
    return rest if said else []


def _key(event: Event) -> tuple[str, str] | None:
    """By what something said is recognised; None for what is no part of the conversation."""
    if isinstance(event, ToolCall | ToolResult):
        return event.kind, event.id
    if isinstance(event, Prompt | Response | Thinking):
        return event.kind, " ".join(event.content.split())
    return None


def _recorded(store: Store, tip: str) -> list[Event]:
    """The events of a live chain, down to where it goes on from something else."""
    artifacts: list[str] = []
    for link in store.walk(tip):
        if link.format != DEFAULT_FORMAT:
            break
        if link.commit_type == DELTA:
            artifacts.append(link.artifact)
    return [event for data in store.get_many(artifacts[::-1]) for event in decode_events(data)]


def _kept(store: Store, tip: Commit) -> list[Event]:
    known = find_format(tip.format)
    links = [link for link in reversed(store.walk(tip.id)) if link.commit_type == DELTA]
    if known is None or "read" not in known.can:
        return []
    return known.read(known.join(store.get_many([link.artifact for link in links])))
