"""What a REF names, in this order: `ctx-…` or a unique prefix of one; an exact branch or tag; a session (where it
stands), `SESSION~1` (an older tip), `SESSION@MESSAGE`, `SESSION/AGENT`; a unique prefix of a commit's hex digits; a
unique prefix of a session's id; else an error that lists what comes close.
"""

from __future__ import annotations

import difflib
import re

import msgspec

from harken import ids
from harken.errors import Ambiguous, BadRequest, Corrupt, NotFound
from harken.formats import find as find_format
from harken.store.base import Commit, Link, Name, SessionRow, Store

from . import walk
from .names import is_own

Ref = str | Commit | Name
CANDIDATES = 8
FEWEST_DIGITS = 4
"""With fewer digits a REF that was typed too short would all too easily name something."""
_OLDER = re.compile(r"(.+)~([0-9]{1,9})", re.DOTALL)


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The commit a REF names, and the branch it was named by, if it was."""

    commit: Commit
    branch: Name | None = None


def find(store: Store, ref: Ref) -> Found:
    """What the REF names."""
    if isinstance(ref, Commit):
        return Found(commit=ref)
    if isinstance(ref, Name):
        return Found(commit=store.get_commit(ref.target), branch=ref if ref.kind == "branch" else None)
    if not ref:
        raise BadRequest("an empty REF names nothing", hint="a commit, a branch, a tag or a session id")
    if ref.startswith(ids.COMMIT_PREFIX) and (commit := _by_prefix(store, ref, ref.removeprefix(ids.COMMIT_PREFIX))):
        return Found(commit=commit)
    if name := store.find_name(ref):
        return Found(commit=store.get_commit(name.target), branch=name if name.kind == "branch" else None)
    commit = _by_session(store, ref) or _by_prefix(store, ref, ref) or _by_session(store, ref, exact=False)
    if commit is None:
        raise NotFound(f"there is no commit, branch, tag or session {ref!r}", hint=_hint(store, ref))
    return Found(commit=commit)


def get_commit(store: Store, ref: Ref) -> Commit:
    """The commit the REF names."""
    return find(store, ref).commit


def find_session(store: Store, session: str) -> SessionRow | None:
    """The session of exactly this id."""
    return store.find_session(session)


def get_session(store: Store, text: str) -> SessionRow:
    """The session of this id, or the only one whose id begins like this."""
    if (row := _session(store, text, exact=False)) is not None:
        return row
    close = difflib.get_close_matches(text, [row.session for row in store.sessions()], n=CANDIDATES, cutoff=0.5)
    raise NotFound(
        f"there is no session {text!r}",
        hint="close to it: " + ", ".join(close) if close else "`harken sessions` lists them",
    )


# -- the kinds of REF ------------------------------------------------------------------------------------------------


def _by_prefix(store: Store, ref: str, digits: str) -> Commit | None:
    digits = digits.lower()
    if len(digits) < FEWEST_DIGITS or digits.strip("0123456789abcdef"):
        return None
    found = store.commits(digits)
    # Of two that begin alike the older keeps the short name that was handed out; the newer shows more digits.
    found = [commit for commit in found if commit.short == ids.COMMIT_PREFIX + digits] or found
    if len(found) > 1:
        raise Ambiguous(f"several commits begin with {ref!r}", hint=_listing([commit.short for commit in found]))
    return found[0] if found else None


def _session(store: Store, text: str, *, exact: bool) -> SessionRow | None:
    """The session of this id or, unless it has to be exact, the only one whose id begins like this."""
    if exact or not text:
        return find_session(store, text) if text else None
    rows = store.sessions(prefix=text)
    for row in rows:
        if row.session == text:
            return row
    # A sub-agent's id begins with its parent's; whoever types the beginning means the parent.
    tops = [row for row in rows if not row.parent] or rows
    if len(tops) > 1:
        raise Ambiguous(f"several sessions begin with {text!r}", hint=_listing([row.session for row in tops]))
    if tops or "/" not in text:
        return tops[0] if tops else None
    # The beginning of a session's id, and the whole name of one of its agents.
    start, _, agent = text.rpartition("/")
    above = _session(store, start, exact=False)
    return find_session(store, f"{above.session}/{agent}") if above is not None else None


def _by_session(store: Store, ref: str, *, exact: bool = True) -> Commit | None:
    if (row := _session(store, ref, exact=exact)) is not None and row.tip:
        return _tip(store, row, row.stand)
    if (older := _OLDER.fullmatch(ref)) and (row := _session(store, older[1], exact=exact)) is not None:
        return _by_number(store, row, int(older[2]))
    # A session's id may hold an @ itself, so every place is tried.
    at = ref.find("@", 1)
    while at > 0:
        if (row := _session(store, ref[:at], exact=exact)) is not None:
            return _by_message(store, row, ref[at + 1 :])
        at = ref.find("@", at + 1)
    return None


def _tip(store: Store, row: SessionRow, commit: str) -> Commit:
    try:
        return store.get_commit(commit)
    except NotFound:
        raise Corrupt(
            f"session {row.session} ends at a commit that is not in the store", hint="`harken fsck` says what is lost"
        ) from None


def _by_number(store: Store, row: SessionRow, number: int) -> Commit:
    """An older tip; 0 is where the session stands."""
    tips = [row.stand, *row.older]
    if number >= len(tips) or not tips[number]:
        has = f"{row.session}~{len(tips) - 1} is its oldest" if len(tips) > 1 else "it has one tip only"
        raise NotFound(f"session {row.session} has no older tip {number}", hint=has)
    return _tip(store, row, tips[number])


def agents_below(store: Store, row: SessionRow) -> list[SessionRow]:
    """The sub-agents of a session and theirs, which may have ids of their own; one that names itself or a descendant
    as its parent comes once."""
    found = {row.session: row}
    waiting = [row]
    while waiting:
        below = [other for other in store.sessions(parent=waiting.pop(0).session) if other.session not in found]
        found.update((other.session, other) for other in below)
        waiting += below
    return list(found.values())[1:]


def _by_message(store: Store, row: SessionRow, message: str) -> Commit:
    """The commit that holds the message, in one of the session's own chains or in one of its agents'."""
    if not message:
        raise BadRequest(f"{row.session}@ wants the id of a message", hint=f"like {row.session}@MESSAGE")
    for tip in [row.stand, *(other.stand for other in agents_below(store, row)), *row.older]:
        if tip and (found := message_commit(store, tip, message)):
            return store.get_commit(found.id)
    raise NotFound(
        f"session {row.session} holds no message {message!r}",
        hint=f"`harken view dialog {row.session}` shows its messages",
    )


def message_commit(store: Store, tip: str, message: str) -> Link | None:
    """The commit of the chain whose delta holds the message."""
    deltas = walk.all_deltas(store.walk(tip))[::-1]
    contents = store.get_many([link.artifact for link in deltas])
    # A record without an id is called after its place: `@` and the offset in the file.
    offset = int(message[1:]) if message[:1] == "@" and message[1:].isdecimal() and len(message) < 20 else None
    needle, passed = message.encode("utf-8", "replace"), 0
    for link, data in zip(deltas, contents, strict=True):
        if offset is not None:
            passed += len(data) + len(walk.gap(find_format(link.format), data))
            if offset < passed:
                return link
        elif needle in data and _holds(link.format, data, message):
            return link
    return None


def _holds(format: str, data: bytes, message: str) -> bool:
    known = find_format(format)
    if known is None or "read" not in known.can:
        return True
    return any(event.message_id == message or event.api_id == message for event in known.read(data))


# -- what to say when it names nothing -------------------------------------------------------------------------------


def _listing(names: list[str]) -> str:
    more = ", …" if len(names) > CANDIDATES else ""
    return "it could be: " + ", ".join(names[:CANDIDATES]) + more


def _hint(store: Store, ref: str) -> str:
    known = [name.name for name in store.names() if not is_own(name)] + [row.session for row in store.sessions()]
    commits = [commit.short for commit in store.commits(limit=200)]
    digits = ref.removeprefix(ids.COMMIT_PREFIX)
    if len(digits) < FEWEST_DIGITS and ids.is_hex(digits.lower()):
        return f"at least {FEWEST_DIGITS} digits of a commit's name are needed"
    close = difflib.get_close_matches(ref, known, n=CANDIDATES, cutoff=0.5)
    close += difflib.get_close_matches(ids.COMMIT_PREFIX + digits[:8], commits, n=3, cutoff=0.6)
    if close:
        return "close to it: " + ", ".join(close)
    newest = [*known[:3], *commits[:3]]
    return "there are: " + ", ".join(newest) + ", …" if newest else "the store is empty; `harken import` fills it"
