"""What goes when a session, or a commit, is forgotten, and what others still need; rows without what was forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from harken import ids
from harken.store.base import Commit, SessionRow, Store
from harken.store.tombstones import without

from .chains import SUPERSEDED_BY, SourceMemory, Sources, is_superseded, readable_sessions, recall, remember
from .lineage import below
from .names import LIVE_BRANCH, REMEMBERED
from .refs import Ref, _by_prefix, get_commit, session_named

FORGOTTEN_TITLE = "(forgotten)"
_OWN_NOTES = (SUPERSEDED_BY, REMEMBERED)  # nobody's words


class Going(msgspec.Struct, frozen=True, kw_only=True):
    """What goes, and what stays though it belongs to what goes."""

    sessions: tuple[SessionRow, ...] = ()
    commits: tuple[str, ...] = ()
    """By their full names."""
    artifacts: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """Artifacts that another session uses."""
    kept_for: tuple[str, ...] = ()
    """The sessions that do."""
    copies: tuple[str, ...] = ()
    """Sessions that began with a copy of it."""


def find_forgettable(store: Store, ref: Ref) -> SessionRow | Commit:
    """What a word names: a session, where it is the id or the beginning of the id of one; else a commit."""
    if not isinstance(ref, str) or ref.startswith(ids.COMMIT_PREFIX) or store.find_name(ref) is not None:
        return get_commit(store, ref)
    row = session_named(store, ref, exact=True)
    if row is None and _by_prefix(store, ref, ref) is None:
        row = session_named(store, ref, exact=False)
    return row if row is not None else get_commit(store, ref, whole=True)


def going_with_session(store: Store, row: SessionRow) -> Going:
    """What goes with a session, its agents' included. What another session stands on stays."""
    rows = readable_sessions(store)
    gone = _with_agents(row, rows)
    names = {one.session for one in gone}
    commits = {commit.id: commit for commit in store.commits()}
    own = _own(store, gone, commits)
    others = [one for one in rows if one.session not in names]
    needed = _ancestors([*(tip for one in others for tip in _tips(store, one)), *(commits.keys() - own)], commits)
    going = own - needed
    used: dict[str, set[str]] = {}
    for id, commit in commits.items():
        if id not in going:
            used.setdefault(commit.artifact, set()).add(commit.session_id)
    for one in others:
        for artifact in _side_files(one):
            used.setdefault(artifact, set()).add(one.session)
    held = dict.fromkeys(
        [*(commits[id].artifact for id in sorted(own)), *(artifact for one in gone for artifact in _side_files(one))]
    )
    kept = [artifact for artifact in held if artifact in used]
    # Whoever stands on a commit of it, or has one of its commits as a tip.
    users = {commit.session_id for id, commit in commits.items() if id not in own and commit.parent in own}
    users |= {one.session for one in others if own.intersection(_tips(store, one))}
    users |= {name for artifact in kept for name in used[artifact]} - {commits[id].session_id for id in own}
    copies = {c.session_id for c in commits.values() if c.forked_from in own and c.id not in own}
    return Going(
        sessions=tuple(gone),
        commits=tuple(sorted(going)),
        artifacts=tuple(artifact for artifact in held if artifact not in used),
        kept=tuple(kept),
        kept_for=tuple(sorted(users - {""})),
        copies=tuple(sorted(copies)),
    )


def going_with_commit(store: Store, commit: Commit) -> Going:
    """What goes with a commit: what it adds, and what stood in its place before its source had grown."""
    beside = store.children(commit.parent) if commit.parent else store.commits()
    notes = store.annotations_of([one.id for one in beside]) if beside else {}
    going = {commit.id: commit} | {
        one.id: one
        for one in beside
        if one.parent == commit.parent
        and (one.session_id, one.principal) == (commit.session_id, commit.principal)
        and is_superseded(notes[one.id])
    }
    artifacts = dict.fromkeys(one.artifact for one in going.values())
    used: dict[str, set[str]] = {}
    for other in store.commits():
        if other.artifact in artifacts and other.id not in going and other.session_id != commit.session_id:
            used.setdefault(other.artifact, set()).add(other.session_id)
    return Going(
        commits=tuple(going),
        artifacts=tuple(artifact for artifact in artifacts if artifact not in used),
        kept=tuple(used),
        kept_for=tuple(sorted({name for names in used.values() for name in names if name})),
    )


def said_of(store: Store, commits: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Commit and key of what people, or models, said of these commits."""
    found = store.annotations_of(commits) if commits else {}
    pairs = {
        (id, note.key) for id, notes in found.items() for note in notes if note.key not in _OWN_NOTES and note.value
    }
    return tuple(sorted(pairs))


def _with_agents(row: SessionRow, rows: Sequence[SessionRow]) -> list[SessionRow]:
    """The session and those of its agents, and theirs."""
    children: dict[str, list[SessionRow]] = {}
    for one in rows:
        children.setdefault(one.parent, []).append(one)
    return [row, *below(row, lambda session: children.get(session, []))]


def _tips(store: Store, row: SessionRow) -> list[str]:
    """Where the chains of a session end, or ended."""
    tips = [row.tip, row.live, *row.older]
    for known in recall(row).values():
        tips += [known.chain.tip, *known.old_tips]
    if (live := store.find_name(LIVE_BRANCH + row.session)) is not None:
        tips.append(live.target)
    return [tip for tip in dict.fromkeys(tips) if tip]


def _own(store: Store, gone: Iterable[SessionRow], commits: Mapping[str, Commit]) -> set[str]:
    """The commits of these sessions: down from where they end to where another session's begin, and those that gave way
    to others as the source grew."""
    own: set[str] = set()
    for row in gone:
        for tip in _tips(store, row):
            at = commits.get(tip)
            session = at.session_id if at is not None else ""
            while at is not None and at.id not in own and at.session_id == session:
                own.add(at.id)
                at = commits.get(at.parent)
    makers = {(commits[id].session_id, commits[id].principal) for id in own} - {("", "")}
    return own | {id for id, commit in commits.items() if (commit.session_id, commit.principal) in makers}


def _ancestors(tips: Iterable[str], commits: Mapping[str, Commit]) -> set[str]:
    """These commits and everything below them."""
    found: set[str] = set()
    for tip in tips:
        at = commits.get(tip)
        while at is not None and at.id not in found:
            found.add(at.id)
            at = commits.get(at.parent)
    return found


def _side_files(row: SessionRow) -> list[str]:
    return [side.artifact for known in recall(row).values() for side in known.side_files.values()]


# -- rows -------------------------------------------------------------------------------------------------------------


def emptied(row: SessionRow) -> SessionRow:
    """The row of a session that is forgotten: where it stood and where it came from, and how far its source was read,
    so that nobody takes it for a new one."""
    kept = {
        path: SourceMemory(
            stamp=known.stamp,
            read_at=known.read_at,
            offset=known.offset,
            size=known.size,
            digest=known.digest,
            session=known.session,
            unnamed=known.unnamed,
            chain=known.chain,
            old_tips=known.old_tips,
            first=known.first,
        )
        for path, known in recall(row).items()
    }
    return msgspec.structs.replace(
        row, title=FORGOTTEN_TITLE, forgotten=True, lost=False, state=remember(kept) if kept else b""
    )


def cleaned(row: SessionRow, words: Sequence[bytes]) -> SessionRow:
    """The row without these words, whatever in it holds them."""
    texts = ("title", "source", "template", "principal", "machine", "ticket_id", "thread_id")
    changes: dict[str, Any] = {name: without(getattr(row, name), words) for name in texts}
    sources = recall(row)
    before = msgspec.to_builtins(sources)
    if (after := _mapped(before, words)) != before:
        changes["state"] = remember(msgspec.convert(after, Sources))
    elif row.state and not sources:
        changes["state"] = _clean_json(row.state.decode("utf-8", "replace"), words, row.state)
    return msgspec.structs.replace(row, **changes)


def _clean_json(text: str, words: Sequence[bytes], otherwise: bytes) -> bytes:
    """JSON without these words in any of its texts; as it was where none is in it, or where it is none."""
    try:
        before = msgspec.json.decode(text)
    except msgspec.MsgspecError:
        return otherwise
    after = _mapped(before, words)
    return otherwise if after == before else msgspec.json.encode(after)


def _mapped(value: Any, words: Sequence[bytes]) -> Any:
    """A value of JSON without these words, in keys as well; a scanner's state is JSON within it."""
    if isinstance(value, str):
        return without(value, words)
    if isinstance(value, list | tuple):
        return [_mapped(one, words) for one in value]
    if isinstance(value, dict):
        found = {without(key, words): _mapped(one, words) for key, one in value.items()}
        if isinstance(scan := value.get("scan"), str):
            found["scan"] = _clean_json(scan, words, scan.encode()).decode()
        return found
    return value
