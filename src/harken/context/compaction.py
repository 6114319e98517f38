"""Folding a chain into a summary, and storing the whole of one: commits that stand for everything below them.

Both are one more commit on top of a chain that stays as it is. A branch that was named goes along, and nothing else
does: whoever else stands on the old tip sees no difference. Compacting a compaction again puts the new summary beside
the old one, on the same parent.
"""

from __future__ import annotations

import msgspec

from harken.errors import BadRequest
from harken.events import Event
from harken.events.base import excerpt
from harken.events.cbor import encode_events
from harken.events.edits import summary_prompt
from harken.formats import find as find_format
from harken.formats.base import Counts, count
from harken.store.base import Commit, Draft, Store

from . import refs, summary
from .materialize import DEFAULT_FORMAT, materialize
from .walk import is_linear


def foundation(store: Store, ref: refs.Ref) -> tuple[refs.Found, Commit]:
    """What was named, and the commit that a compaction of it is put on."""
    found = refs.find(store, ref)
    commit = found.commit
    if commit.commit_type == "compaction" and commit.parent:
        commit = store.get_commit(commit.parent)
    return found, commit


def events_at(store: Store, commit: Commit) -> list[Event]:
    """The conversation at a commit, as events; `BadRequest` where nobody can read it."""
    made = materialize(store, commit)
    known = find_format(made.format)
    if known is None or "read" not in known.can:
        raise BadRequest(
            f"{commit.short} is in {made.format}, which nobody here can read", hint="give the summary yourself"
        )
    return known.read(made.bytes)


def compact(store: Store, ref: refs.Ref, text: str | None, *, time: int, who: str = "") -> Commit:
    """Put a summary on top of the chain; without a text, one made of the conversation's own words."""
    found, base = foundation(store, ref)
    if text is None:
        text = summary.extract(events_at(store, base))
    if not text.strip():
        raise BadRequest("an empty summary would hide everything", hint="say what should be known, or give no summary")
    events = [summary_prompt(text)]
    draft = _draft(base, "compaction", DEFAULT_FORMAT, count(events), time=time, who=who)
    return _on_top(store, found, draft, encode_events(events), why="compact", line=excerpt(text), who=who)


def snapshot(store: Store, ref: refs.Ref, *, time: int, who: str = "") -> Commit:
    """Store the conversation at a commit in one piece, so that no walk goes below it."""
    found = refs.find(store, ref)
    base = found.commit
    made = materialize(store, base)
    if made.tier != "1" or not is_linear(made.format):
        raise BadRequest(
            f"{base.short} cannot be snapshot: what stands in {base.format} shows only in the whole of it",
            hint="snapshots are for chains of events or messages; materialize remembers its answers anyway",
        )
    counts = Counts(messages=made.message_count, tokens=made.token_count, approximate=made.approximate)
    draft = _draft(base, "snapshot", made.format, counts, time=time, who=who)
    counted = "" if made.message_count is None else f", {made.message_count} messages"
    line = f"snapshot of {made.commit_count} commits{counted}"
    return _on_top(store, found, draft, made.bytes, why="snapshot", line=line, who=who)


def _draft(base: Commit, commit_type: str, format: str, counts: Counts, *, time: int, who: str) -> Draft:
    return Draft(
        artifact="",
        format=format,
        parent=base.id,
        commit_type=commit_type,
        checkpoint="compaction" if commit_type == "compaction" else "explicit",
        time=time,
        template=base.template,
        principal=who or base.principal,
        machine=base.machine,
        session_id=base.session_id,
        ticket_id=base.ticket_id,
        thread_id=base.thread_id,
        message_count=counts.messages,
        token_count=counts.tokens,
        approximate=counts.approximate,
    )


def _on_top(store: Store, found: refs.Found, draft: Draft, data: bytes, *, why: str, line: str, who: str) -> Commit:
    with store.write() as writer:
        commit = writer.commit(msgspec.structs.replace(draft, artifact=writer.put(data)))
        writer.annotate(commit.id, "summary", line, time=draft.time, who=who)
        if branch := found.branch:
            writer.move(
                branch.name, kind="branch", to=commit.id, expect=branch.target, time=draft.time, who=who, why=why
            )
    return commit
