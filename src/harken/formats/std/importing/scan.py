"""What an import has to know of a document, and whose file it is.

A document is kept as one commit: it is rewritten as a whole, so what it grows by cannot be told from what was there.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from harken import ids
from harken.events import Event, Output
from harken.events.base import clean, excerpt
from harken.events.records import by_record
from harken.events.tally import Tally
from harken.formats.base import Delta
from harken.formats.facts import FileFacts
from harken.formats.kit.claims import NO_CLAIM, Claim
from harken.formats.std.document import Kind

from .document_events import DocumentReading
from .pieces import session_name, text_of
from .to_events import ChainReading, read_once

CLAIMED_BY = ("task_title", "tool_calls", "steps", "phases")
"""A file without any of these keys is no session document."""
_USUAL = frozenset({"task_title", "user_prompt", "created_at", "status", "agent", "summary", "collaboration"})
_TOKENS = re.compile(rb'"((?:[^"\\]|\\.)*)"(\s*:)?|[{}\[\]]', re.DOTALL)
_MULTI_NAME = "-multi.json"


def scan(data: bytes, state: bytes = b"", *, runtime: Kind) -> FileFacts:
    """The facts of a document, or of the lines of an agent's chain."""
    found, events = read_once(data)
    tally = Tally.of(events)
    delta = Delta(start=0, end=len(data), closed=False, time=tally.ended, messages=tally.messages)
    records = list(by_record(events))
    facts = FileFacts(
        runtime=runtime,
        records=len(records),
        opaque=sum(any(isinstance(event, Output) and bool(event.why) for event in record) for record in records),
        messages=tally.messages,
        tally=tally,
        deltas=(msgspec.structs.replace(delta, records=len(records)),) if data else (),
    )
    documents = [one for one in found if isinstance(one, DocumentReading)]
    if len(documents) == 1:
        return _with_document(facts, documents[0], events)
    titles = (one.title for one in found if isinstance(one, ChainReading))
    return msgspec.structs.replace(facts, title=excerpt(clean(next(titles, ""))))


def _with_document(facts: FileFacts, reading: DocumentReading, events: list[Event]) -> FileFacts:
    """What a document says of itself and of its agents."""
    data, inside = reading.data, reading.inside
    session, title = session_name(data.get("session_id")), text_of(data.get("task_title"))
    own = [event for event in events if event.agent_id not in inside]
    calls, makers = _made(reading)
    # By it a file is known again that was moved; two documents of other sessions never have the same.
    first = ids.short_digest(f"{session} {data.get('created_at')}".encode(errors="replace"))
    return msgspec.structs.replace(
        facts,
        session=session,
        agents=tuple(inside),
        title=excerpt(title or text_of(data.get("user_prompt"))),
        named=bool(title.strip()),
        inside=facts.messages - Tally.of(own).messages,
        calls=calls,
        makers=makers,
        side_chains=bool(inside),
        fingerprint=(first,) if session else (),
    )


def _made(reading: DocumentReading) -> tuple[dict[str, str], dict[str, str]]:
    """Agent to the call that made it, and to the agent that did, where that is not the main one."""
    inside = reading.inside
    calls: dict[str, str] = {}
    makers: dict[str, str] = {}
    for place, sub in enumerate(reading.subs):
        maker, _, call = reading.makers[place]
        if sub.agent in inside and sub.agent not in calls:
            calls[sub.agent] = call
            if maker in inside and maker != sub.agent:
                makers[sub.agent] = maker
    return {agent: call for agent, call in calls.items() if call}, makers


# -- whose file it is ------------------------------------------------------------------------------------------------


def claim_of(kind: Kind) -> Callable[[bytes, str], Claim]:
    """The claim of one of the two standards."""

    def claim(head: bytes, path: str = "") -> Claim:
        if not any(f'"{key}"'.encode() in head for key in CLAIMED_BY):
            return NO_CLAIM
        keys = top_keys(head)
        if not _is_document(keys, head) or kind != _kind(keys, path):
            return NO_CLAIM
        return Claim(score=90, reason="its keys are those of a session document")

    return claim


def _is_document(keys: frozenset[str], head: bytes) -> bool:
    """Whether an object with these keys is a session document of any generation."""
    if "tool_calls" in keys or "phases" in keys:
        if "session_id" in keys:
            return len(keys & _USUAL) >= 2
        if "task_title" in keys and len(keys & _USUAL) >= 3:  # only its id is missing
            return True
        is_early = b'"phase"' in head and (b'"tool_calls"' in head or b'"context_references"' in head)
        return is_early and "phases" in keys and bool({"title", "task_title"} & keys)
    if "steps" in keys:
        return {"session_id", "created_at"} <= keys and b'"step_name"' in head
    return {"session_id", "task_title"} <= keys and not _is_whole(head)  # its calls come behind what was looked at


def _kind(keys: frozenset[str], path: str) -> Kind:
    """Of which standard a document is, whatever its mode: one that is being recorded is `single` until it has a second
    agent, and must stay the same session. What was not looked at may say, and then its name does."""
    if keys & {"collaboration", "sub_sessions"}:
        return "std-008"
    return "std-008" if path.endswith(_MULTI_NAME) and "tool_calls" not in keys else "std-001"


def _is_whole(head: bytes) -> bool:
    return head.rstrip().endswith(b"}")


def top_keys(head: bytes) -> frozenset[str]:
    """The keys of the object that a file begins with, as far as they are in its beginning; none where that is no
    object."""
    if not head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        return frozenset()
    found = set()
    depth = 0
    for token in _TOKENS.finditer(head):
        sign = token[0]
        if sign in (b"{", b"["):
            depth += 1
        elif sign in (b"}", b"]"):
            depth -= 1
            if not depth:
                break
        elif depth == 1 and token[2]:
            found.add(token[1].decode("utf-8", "replace"))
    return frozenset(found)
