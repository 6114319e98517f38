"""What a REF names, in this order: `ctx-…` or a unique prefix of one; an exact branch or tag; a session (where it
stands), `SESSION~1` (an older tip), `SESSION@MESSAGE`, `SESSION~1@MESSAGE`, `SESSION/AGENT`; a unique prefix of a
commit's hex digits or of a session's id, and none that is both; else an error that lists what comes close. A prefix has
at least four characters; an exact id may be shorter. A prefix ends before a `/`: SESSION never names SESSION/AGENT.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence

import msgspec

from harken import ids
from harken.errors import Ambiguous, BadRequest, Corrupt, HarkenError, NotFound, PartlyCorrupt
from harken.formats import find as find_format
from harken.store.base import Commit, Name, SessionRow, Store
from harken.text import close_to

from . import walk
from .chains import readable_sessions
from .lineage import agent_name, agents_below, handed_down, names_agents
from .message_places import message_commit, nearest
from .names import is_own

Ref = str | Commit | Name
CREATED = "#created"
"""What follows a session's id in the name that a stream of events has for the making of its agent."""
CANDIDATES = 8
FEWEST_CHARACTERS = 4
"""With fewer a REF that was typed too short would all too easily name something."""
TOO_SHORT = (
    f"the beginning of a name or of a session's id has at least {FEWEST_CHARACTERS} characters; a shorter id is given "
    "whole"
)
WHERE_TO_LOOK = "`harken sessions` lists the sessions, `harken log` the commits, `harken branch` and `harken tag` names"
_OLDER = re.compile(r"(.+)~([0-9]{1,9})", re.DOTALL)


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The commit a REF names, and the branch it was named by, if it was."""

    commit: Commit
    branch: Name | None = None


def find(store: Store, ref: Ref, *, whole: bool = False) -> Found:
    """What the REF names. Of a message in a file of several agents that is the commit in the chain of the agent that
    has it, or with `whole` in that of the file: a context is one agent's, and a session is looked at as a whole."""
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
    commit = _by_session(store, ref, whole=whole) or _by_beginning(store, ref, whole=whole)
    if commit is None:
        _refuse_agents_alone(store, ref)
        raise NotFound(f"there is no commit, branch, tag or session {ref!r}", hint=_hint(store, ref))
    return Found(commit=commit)


def get_commit(store: Store, ref: Ref, *, whole: bool = False) -> Commit:
    """The commit the REF names."""
    return find(store, ref, whole=whole).commit


def get_commits(store: Store, refs: Sequence[Ref]) -> list[Commit]:
    """The commits that REFs name. Those given by their full names are read together."""
    full = {ref: digits for ref in refs if isinstance(ref, str) and (digits := _full_digits(ref))}
    try:
        read = dict(zip(full, store.get_commits(list(full.values())), strict=True)) if full else {}
    except HarkenError:  # one of them is not there or damaged: asked by itself, it says so
        read = {}
    return [read[ref] if isinstance(ref, str) and ref in read else get_commit(store, ref) for ref in refs]


def _full_digits(ref: str) -> str:
    """The digits of a REF that is a full name; nothing where it is less."""
    digits = ref.removeprefix(ids.COMMIT_PREFIX)
    return digits if digits != ref and len(digits) >= ids.COMMIT_FULL and ids.is_hex(digits) else ""


def find_session(store: Store, session: str) -> SessionRow | None:
    """The session of exactly this id."""
    return store.find_session(session)


def get_session(store: Store, text: str) -> SessionRow:
    """The session of this id, or the only one whose id begins like this; a commit, a branch, an older tip or a message
    stands for the session it is of."""
    if (row := session_meant(store, text)) is not None or (row := _session_at(store, text)) is not None:
        return row
    _refuse_agents_alone(store, text)
    close = close_to(text, [row.session for row in readable_sessions(store)], most=CANDIDATES, least=0.5)
    hint = "close to it: " + ", ".join(close) if close else "`harken sessions` lists them"
    hint = TOO_SHORT if _is_short_beginning(store, text) else _agents_named(store, text) or hint
    raise NotFound(f"there is no session {text!r}", hint=hint)


def session_meant(store: Store, text: str) -> SessionRow | None:
    """The session of this id, or whose id begins like this where no branch or tag is called so."""
    is_name = bool(text) and store.find_name(text) is not None
    return session_named(store, text, exact=is_name)


def whole_session(store: Store, row: SessionRow) -> SessionRow:
    """The session, if all of it is there: what a repair left of one is no answer to a question about the session.
    Whoever wants that names its commit."""
    if not row.lost:
        return row
    hint = "`harken import` brings back what its file still has"
    with contextlib.suppress(HarkenError):  # the beginning may be what is lost
        store.walk(row.stand)
        hint += f"; `harken materialize {store.get_commit(row.stand).short}` gives what is left before the lost part"
    raise Corrupt(f"session {row.session} is lost in part: a repair did not find all of its commits", hint=hint)


def _session_at(store: Store, text: str) -> SessionRow | None:
    """The session of the commit that a REF names; None where it names none."""
    name = store.find_name(text) if text else None
    commit = store.get_commit(name.target) if name else _by_prefix(store, text, text.removeprefix(ids.COMMIT_PREFIX))
    commit = commit or _by_session(store, text, exact=False, whole=True)
    return session_of(store, text, commit) if commit is not None else None


def session_of(store: Store, text: str, commit: Commit) -> SessionRow:
    """The session that ends at the commit, else one that has it in a chain."""
    rows = [row for row in readable_sessions(store) if row.tip]
    ends = [row for row in rows if commit.id in (row.tip, row.live, *row.older)]
    # A sub-agent's commits name the session that spawned it; where a record names no session, any may have it.
    near = [row for row in rows if not commit.session_id or commit.session_id in (row.session, row.parent)]
    for row in ends or near or rows:
        if ends or any(link.id == commit.id for tip in (row.stand, *row.older) for link in store.walk(tip)):
            return row
    store.sessions()  # one that cannot be read may have it: then that is the answer
    raise NotFound(f"{text!r} names a commit that is of no session", hint=f"`harken materialize {text}` gives it")


def owner(store: Store, commit: Commit) -> SessionRow | None:
    """The session whose conversation a commit belongs to, also where it stands beside the chain; None where it is of
    none. A sub-agent's commits name the session above it: its chain is told by where it begins."""
    if not commit.session_id:
        return None
    try:
        agents = store.sessions(parent=commit.session_id)
    except PartlyCorrupt as problem:  # a damaged one is not asked for
        agents = [row for row in problem.rest if row.parent == commit.session_id]
    main = store.find_session(commit.session_id)
    root = store.walk(commit.id)[-1].id if agents else ""
    for row in agents if main is None else [main, *agents]:
        with contextlib.suppress(Corrupt):  # another one that is lost in part
            if agents and root in {store.walk(tip)[-1].id for tip in (row.live, row.tip, *row.older) if tip}:
                return row
    return main


# -- the kinds of REF ------------------------------------------------------------------------------------------------


def _by_prefix(store: Store, ref: str, digits: str) -> Commit | None:
    digits = digits.lower()
    if len(digits) < FEWEST_CHARACTERS or digits.strip("0123456789abcdef"):
        return None
    found = store.commits(digits)
    # Of two that begin alike the older keeps the short name that was handed out; the newer shows more digits.
    found = [commit for commit in found if commit.short == ids.COMMIT_PREFIX + digits] or found
    if len(found) > 1:
        raise Ambiguous(f"several commits begin with {ref!r}", hint=_listing([commit.short for commit in found]))
    return found[0] if found else None


def _by_beginning(store: Store, ref: str, *, whole: bool) -> Commit | None:
    """What begins so: a commit's digits, or the id of a session in any form of REF. Ids of sessions are digits too, and
    whoever typed a few of one is not answered with what was said in another."""
    if len(ref) >= FEWEST_CHARACTERS and ids.is_hex(ref.lower()) and (rows := readable_sessions(store, ref)):
        sessions = [row.session for row in rows if not row.parent] or [row.session for row in rows]
        if commits := [commit.short for commit in store.commits(ref.lower())]:
            told = f"a session and a commit begin with {ref!r}"
            raise Ambiguous(told, hint=_listing([*sessions[: CANDIDATES // 2], *commits]))
    return _by_prefix(store, ref, ref) or _by_session(store, ref, exact=False, whole=whole)


def session_named(store: Store, text: str, *, exact: bool) -> SessionRow | None:
    """The session of this id or, unless it has to be exact, the only one whose id begins like this."""
    if exact or len(text) < FEWEST_CHARACTERS:
        return find_session(store, text) if text else None
    rows = [row for row in store.sessions(prefix=text) if "/" not in row.session[len(text) :]]
    if whole := [row for row in rows if row.session == text]:
        return whole[0]
    # A sub-agent may have an id that begins like its parent's; whoever types the beginning means the parent.
    tops = [row for row in rows if not row.parent] or rows
    if len(tops) > 1:
        raise Ambiguous(f"several sessions begin with {text!r}", hint=_listing([row.session for row in tops]))
    if tops or "/" not in text:
        return tops[0] if tops else None
    # The beginning of a session's id, and the whole name of one of its agents.
    start, _, agent = text.rpartition("/")
    if (above := session_named(store, start, exact=False)) is None:
        return None
    return find_session(store, f"{above.session}/{agent}") or (above if agent == _main_agent(store, above) else None)


def _main_agent(store: Store, row: SessionRow) -> str:
    """What the agent of a session's own chain is called: as a log says whose first record it is, or as every list calls
    it. A sub-agent's chain has its name already."""
    if row.parent or not row.tip:
        return ""
    first = store.get_commit(store.walk(row.stand)[-1].id)
    known = find_format(first.format)
    told = known.read_delta(store.get(first.artifact)) if known is not None and names_agents(first.format) else []
    return next((event.agent_id for event in told if event.agent_id), agent_name(row))


def _by_session(store: Store, ref: str, *, exact: bool = True, whole: bool = False) -> Commit | None:
    if (row := session_named(store, ref, exact=exact)) is not None and row.tip:
        return _tip(store, whole_session(store, row), row.stand)
    if found := _older(store, ref, exact=exact):
        return _by_number(store, *found)
    if (made := _created(store, ref, exact=exact)) is not None:
        return made
    # A session's id may hold an @ itself, so every place is tried.
    at = ref.find("@", 1)
    while at > 0:
        if (row := session_named(store, ref[:at], exact=exact)) is not None:
            held = _by_message(store, row, ref[at + 1 :])
            return held if whole else _of_agent(store, row, held, ref[at + 1 :])
        if found := _older(store, ref[:at], exact=exact):
            return _in_chain(store, ref[:at], _by_number(store, *found).id, ref[at + 1 :])
        at = ref.find("@", at + 1)
    return None


def _created(store: Store, ref: str, *, exact: bool = True) -> Commit | None:
    """The first commit of the session in `SESSION#created`, as the views call the making of its agent."""
    row = session_named(store, ref.removesuffix(CREATED), exact=exact) if ref.endswith(CREATED) else None
    return store.get_commit(store.walk(whole_session(store, row).stand)[-1].id) if row is not None and row.tip else None


def _older(store: Store, ref: str, *, exact: bool) -> tuple[SessionRow, int] | None:
    """The session and the number in `SESSION~1`."""
    said = _OLDER.fullmatch(ref)
    row = session_named(store, said[1], exact=exact) if said else None
    return (row, int(said[2])) if said and row is not None else None


def _tip(store: Store, row: SessionRow, commit: str) -> Commit:
    try:
        return store.get_commit(commit)
    except NotFound:
        raise Corrupt(
            f"session {row.session} ends at a commit that is not in the store", hint="`harken fsck` says what is lost"
        ) from None


def _by_number(store: Store, row: SessionRow, number: int) -> Commit:
    """An older tip; 0 is where the session stands."""
    tips = [whole_session(store, row).stand, *row.older]
    if number >= len(tips) or not tips[number]:
        has = f"{row.session}~{len(tips) - 1} is its oldest" if len(tips) > 1 else "it has one tip only"
        raise NotFound(f"session {row.session} has no older tip {number}", hint=has)
    return _tip(store, row, tips[number])


def _by_message(store: Store, row: SessionRow, message: str) -> Commit:
    """The commit that holds the message, in one of the session's own chains or in one of its agents'."""
    if not message:
        raise BadRequest(f"{row.session}@ wants the id of a message", hint=f"like {row.session}@MESSAGE")
    whole_session(store, row)
    if walk.place_in(message) is not None:
        # Every chain has places of its own: this is one in the chain that was named.
        return _in_chain(store, row.session, row.stand, message)
    for tip in [row.stand, *(whole_session(store, other).stand for other in agents_below(store, row)), *row.older]:
        if tip and (found := message_commit(store, tip, message)):
            return store.get_commit(found.id)
    if (made := _created(store, message)) is not None:
        return made
    before = handed_down(store, row.stand).found
    session, at, place = message.rpartition("@")
    if place.isdecimal() and (given := before.get(session)) is not None:
        return _in_chain(store, session, given.id, at + place)
    for given in before.values():
        if found := message_commit(store, given.id, message):
            return store.get_commit(found.id)
    # A stream of several chains calls a record after its place in the chain of a session.
    if session and place.isdecimal() and (other := find_session(store, session)) is not None and other.tip:
        return _in_chain(store, session, whole_session(store, other).stand, at + place)
    raise NotFound(
        f"session {row.session} holds no message {message!r}",
        hint=f"`harken view dialog {row.session}` shows its messages",
    )


def _of_agent(store: Store, row: SessionRow, commit: Commit, message: str) -> Commit:
    """The commit that holds the message in the chain of the agent whose it is, where a file has several agents: at the
    commit of the file stands what the main agent knew."""
    known = find_format(commit.format)
    if known is None or "read" not in known.can or not names_agents(commit.format):
        return commit
    told = known.read_delta(store.get(commit.artifact))
    whose = {event.agent_id for event in told if message in (event.message_id, event.api_id)}
    for other in agents_below(store, row):
        if other.agent in whose and (found := message_commit(store, whole_session(store, other).stand, message)):
            return store.get_commit(found.id)
    return commit


def _in_chain(store: Store, name: str, tip: str, message: str) -> Commit:
    """The commit of that chain, and no other, which holds the message."""
    if found := message_commit(store, tip, message):
        return store.get_commit(found.id)
    place = walk.place_in(message)
    near = None if place is None else nearest(store, tip, place)
    raise NotFound(
        f"{name} holds no message {message!r}" if place is None else f"no record of {name} begins at {message}",
        hint=f"the nearest before it is {near}" if near else f"`harken show {name}` shows the ids of its records",
    )


# -- what to say when it names nothing -------------------------------------------------------------------------------


def _listing(names: list[str], before: str = "it could be: ") -> str:
    return before + ", ".join(names[:CANDIDATES]) + (", …" if len(names) > CANDIDATES else "")


def _refuse_agents_alone(store: Store, text: str) -> None:
    """Say it where all that is here of a session are sub-agents: none of them is the session."""
    begin = text if len(text) >= FEWEST_CHARACTERS else f"{text}/"
    agents = [row.session for row in readable_sessions(store, begin) if "/" in row.session[len(text) :]]
    if text and agents:
        raise NotFound(f"of session {text!r} only sub-agents are in the store", hint=_listing(agents, "they are: "))


def _agents_named(store: Store, ref: str) -> str:
    """The agents of the session in `SESSION/AGENT`, where there is such a session and no such agent."""
    session, slash, _ = ref.rpartition("/")
    row = session_named(store, session, exact=False) if slash else None
    if row is None:
        return ""
    below = agents_below(store, row)
    if not below:
        return f"session {row.session} has no sub-agents"
    return _listing([one.session for one in below], "its agents are: ")


def whole_principal(store: Store, principal: str) -> str:
    """`RUNTIME:SESSION` with the whole id of the session, where a unique beginning of one is given."""
    runtime, colon, session = principal.partition(":")
    row = session_named(store, session, exact=False) if colon else None
    return f"{runtime}:{row.session}" if row is not None and row.runtime == runtime else principal


def _is_short_beginning(store: Store, text: str) -> bool:
    """Whether sessions begin like this, and too little of an id was given to choose one of them."""
    return 0 < len(text) < FEWEST_CHARACTERS and any(row.session.startswith(text) for row in readable_sessions(store))


def _hint(store: Store, ref: str) -> str:
    known = [name.name for name in store.names() if not is_own(name)]
    known += [row.session for row in readable_sessions(store)]
    commits = list[str]()
    with contextlib.suppress(Corrupt):  # as long as one stands on what a repair did not find
        commits = [commit.short for commit in store.commits(limit=200)]
    digits = ref.removeprefix(ids.COMMIT_PREFIX)
    if (len(digits) < FEWEST_CHARACTERS and ids.is_hex(digits.lower())) or _is_short_beginning(store, ref):
        return TOO_SHORT
    if agents := _agents_named(store, ref):
        return agents
    close = close_to(ref, known, most=CANDIDATES, least=0.5)
    close += close_to(ids.COMMIT_PREFIX + digits[:8], commits, most=3)
    if close:
        return "close to it: " + ", ".join(close)
    return WHERE_TO_LOOK if known or commits else "the store is empty; `harken import` fills it"
