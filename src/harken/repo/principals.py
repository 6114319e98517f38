"""The sentences of `Repo` about principals: their sessions as they begin and end, and what they keep by keys.

Each is written down as a commit on a branch of the principal's own (docs/FORMAT.md), so that nothing is lost when it is
said anew: what stands at the branch is what holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from harken import clock as clocks
from harken import context, ids
from harken.context.checkpoint import Time
from harken.context.names import PRINCIPALS_BRANCH
from harken.errors import BadRequest, Conflict, HarkenError, NotFound
from harken.events import System
from harken.events.cbor import decode_events, encode_events
from harken.store import Commit, Draft, Name, Store

if TYPE_CHECKING:
    from harken.store.base import Writer

    from .principal_figures import PrincipalMetrics

KEYS_EACH = 1000
"""Keys of one principal."""
LONGEST_KEY = 128
LARGEST = 64 << 20
"""Bytes of what is kept by a key."""
TRIES = 5
_TEMPLATE = "harken"
KEPT, DELETED, STARTED, ENDED = SAID = ("key_kept", "key_deleted", "session_started", "session_ended")


class KeptKey(msgspec.Struct, frozen=True, kw_only=True):
    """What a principal keeps by a key."""

    principal: str
    key: str
    artifact: str
    """The full name of the bytes: `Repo.get` has them."""
    size: int
    media_type: str = ""
    session: str = ""
    """The session in which it was said; empty where nobody named one."""
    time: int
    commit: str = ""
    """The full name of the commit that says so; the chain behind it is what the key said before."""


class TrackedSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session of a principal, as it was said to begin and to end."""

    principal: str
    session: str
    machine: str = ""
    template: str = ""
    ticket_id: str = ""
    thread_id: str = ""
    started: int
    ended: int | None = None
    """None while it goes on."""
    context: str = ""
    """The full name of its last commit; of a session without one, of the principal's last since it began. Empty where
    there is none."""

    @property
    def is_running(self) -> bool:
        """Whether nobody has said that it is over."""
        return self.ended is None


class Principals:
    """A store in which principals keep what is theirs."""

    store: Store
    clock: clocks.Clock
    machine: str

    # -- sessions ----------------------------------------------------------------------------------------------

    def start_session(
        self,
        session: str,
        *,
        principal: str,
        machine: str = "",
        template: str = "",
        ticket_id: str = "",
        thread_id: str = "",
        time: Time = None,
    ) -> TrackedSession:
        """Say that a session begins; said twice, it began the first time."""
        started = TrackedSession(
            principal=principal,
            session=_check("session", session),
            machine=machine or self.machine,
            template=template,
            ticket_id=ticket_id,
            thread_id=thread_id,
            started=context.instant(time, self.clock),
        )
        running = _running(principal, session)
        if (there := self._said(running)) is not None:
            return self._tracked(there)

        def keep(writer: Writer) -> None:
            made = self._say(writer, _sessions(principal), STARTED, _without_context(started), started.started)
            writer.move(running, kind="branch", to=made.id, expect="", time=started.started, record=False)

        self._write(keep)
        return self._with_context(started)

    def end_session(self, session: str, *, principal: str, time: Time = None) -> TrackedSession:
        """Say that a session is over; `NotFound` where nobody said that it began, or somebody that it is over."""
        running = _running(principal, _check("session", session))
        instant = context.instant(time, self.clock)
        ended: list[TrackedSession] = []

        def keep(writer: Writer) -> None:
            said = self._said(running)
            if said is None:
                hint = "`start_session` says that it begins"
                raise NotFound(f"no session {session!r:.99} of {principal!r:.99} is running", hint=hint)
            begun = self._tracked(said)
            ended[:] = [msgspec.structs.replace(begun, ended=max(instant, begun.started))]
            self._say(writer, _sessions(principal), ENDED, _without_context(ended[0]), instant)
            writer.move(running, kind="branch", to="", expect=said[0].id, time=instant, record=False)

        self._write(keep)
        return self._with_context(ended[0])

    def latest_session(self, principal: str) -> TrackedSession | None:
        """The session of a principal that was last said to begin or to end, and its last context; None where none
        was."""
        said = self._said(_sessions(principal))
        return None if said is None else self._tracked(said)

    def running_sessions(self, principal: str = "") -> list[TrackedSession]:
        """The sessions that nobody has said to be over, the newest first: of a principal, or of all."""
        start = _running(principal, "") if principal else PRINCIPALS_BRANCH
        names = [
            name.name
            for name in self.store.names("branch")
            if name.name.startswith(start) and name.name.split("/")[2:3] == ["running"]
        ]
        found = [self._tracked(said) for name in names if (said := self._said(name)) is not None]
        return sorted(found, key=lambda one: (-one.started, one.session))

    def _tracked(self, said: tuple[Commit, str, dict[str, Any]]) -> TrackedSession:
        return self._with_context(msgspec.convert(said[2], TrackedSession))

    def _with_context(self, one: TrackedSession) -> TrackedSession:
        row = self.store.find_session(one.session)
        stand = row.stand if row is not None else ""
        if not stand:
            until = self.clock() if one.ended is None else one.ended
            last = self.store.latest(one.principal, until)
            stand = last.id if last is not None and last.time >= one.started else ""
        return msgspec.structs.replace(one, context=stand)

    def principal_metrics(self, principal: str = "", *, prices: str = "") -> PrincipalMetrics:
        """What a principal (without one, everybody) has done: in sessions that are running, and in all; each session
        and each commit once. `prices` is a file whose prices stand over those that come with Harken."""
        from .principal_figures import metrics_of  # most commands do without it

        return metrics_of(self, principal, prices)  # type: ignore[arg-type]

    # -- keys --------------------------------------------------------------------------------------------------

    def put_key(
        self,
        principal: str,
        key: str,
        data: bytes | None = None,
        *,
        artifact: str | None = None,
        media_type: str = "",
        session: str = "",
        time: Time = None,
    ) -> KeptKey:
        """Keep bytes, or an artifact that is there, by a key; what the key said before stays on its chain."""
        check_kept(data, artifact)
        name, instant = _key_branch(principal, key), context.instant(time, self.clock)
        known = None if artifact is None else self.store.info(context.get_artifact(self.store, artifact))
        size = check_size(len(data or b"") if known is None else known.size)
        kept: list[KeptKey] = []

        def keep(writer: Writer) -> None:
            if self.store.find_name(name) is None and len(self._key_names(principal)) >= KEYS_EACH:
                raise Conflict(f"{principal!r:.99} has {KEYS_EACH} keys already", hint="delete one first")
            full = writer.put(data) if data is not None else known.id if known is not None else ""
            one = KeptKey(
                principal=principal,
                key=key,
                artifact=full,
                size=size,
                media_type=_line("media type", media_type),
                session=session,
                time=instant,
            )
            made = self._say(writer, name, KEPT, _without_context(one), instant)
            kept[:] = [msgspec.structs.replace(one, commit=made.id)]

        self._write(keep)
        return kept[0]

    def get_key(self, principal: str, key: str) -> KeptKey:
        """What a principal keeps by a key; `get` has the bytes."""
        if (said := self._said(_key_branch(principal, key))) is None:
            raise NotFound(f"{principal!r:.99} keeps nothing by the key {key!r:.99}", hint="`keys` lists them")
        return _kept(said)

    def keys(self, principal: str, prefix: str = "") -> list[KeptKey]:
        """What a principal keeps, by key: all of it, or what keys keep that begin like this."""
        start = _key_branch(principal, "") + prefix
        said = [self._said(name) for name in self._key_names(principal) if name.startswith(start)]
        return [_kept(one) for one in said if one is not None]

    def delete_key(self, principal: str, key: str, *, time: Time = None) -> None:
        """Let go of a key; what it said stays on its chain, and no key leads there any more."""
        name, instant = _key_branch(principal, key), context.instant(time, self.clock)

        def keep(writer: Writer) -> None:
            if self.store.find_name(name) is None:
                raise NotFound(f"{principal!r:.99} keeps nothing by the key {key!r:.99}", hint="`keys` lists them")
            made = self._say(writer, name, DELETED, {"principal": principal, "key": key, "time": instant}, instant)
            writer.move(name, kind="branch", to="", expect=made.id, time=instant, record=False)

        self._write(keep)

    def _key_names(self, principal: str) -> list[str]:
        start = _key_branch(principal, "")
        return sorted(name.name for name in self.store.names("branch") if name.name.startswith(start))

    # -- writing it down ---------------------------------------------------------------------------------------

    def _said(self, branch: str) -> tuple[Commit, str, dict[str, Any]] | None:
        """The commit at a branch, and what it says; None where there is none, or none of ours."""
        name = self.store.find_name(branch)
        if name is None or name.kind != "branch":
            return None
        commit = self.store.get_commit(name.target)
        event = next(iter(decode_events(self.store.get(commit.artifact))), None)
        if not isinstance(event, System) or event.subtype not in SAID:
            return None
        try:
            told = msgspec.json.decode(event.metadata)
        except msgspec.DecodeError:
            return None
        return (commit, event.subtype, told) if isinstance(told, dict) else None

    def _say(self, writer: Writer, branch: str, what: str, told: dict[str, Any], time: int) -> Commit:
        """Add a commit to a branch; made where it is not there."""
        there: Name | None = self.store.find_name(branch)
        words = f"{told['principal']} {told.get('key') or told.get('session', '')}"
        event = System(subtype=what, message=words, metadata=_encode(told), time=time)
        draft = Draft(
            artifact=writer.put(encode_events([event])),
            format="events-v1",
            parent=there.target if there else "",
            template=_TEMPLATE,
            time=time,
            message_count=0,
            token_count=0,
        )
        made = writer.commit(draft)
        before = there.target if there else ""
        writer.move(branch, kind="branch", to=made.id, expect=before, time=time, record=False)
        return made

    def _write(self, keep: Any) -> None:
        for left in reversed(range(TRIES)):
            try:
                with self.store.write() as writer:
                    keep(writer)
            except Conflict:  # somebody else said something meanwhile
                if not left:
                    raise
            else:
                return


def check_kept(data: bytes | None, artifact: str | None) -> None:
    """Refuse what a key cannot keep."""
    if (data is None) == (artifact is None):
        raise BadRequest("a key keeps either data or an artifact", hint="give exactly one of the two")
    check_size(len(data or b""))


def check_size(size: int) -> int:
    """Refuse more than a key keeps."""
    if size > LARGEST:
        hint = "keep it as an artifact, and its name here"
        raise BadRequest(f"a key keeps at most {LARGEST >> 20} MiB", hint=hint)
    return size


def _encode(told: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(told, order="sorted")
    except UnicodeEncodeError:
        raise BadRequest("a lone surrogate is no text that can be written down", hint="leave it out") from None


def _kept(said: tuple[Commit, str, dict[str, Any]]) -> KeptKey:
    try:
        return msgspec.convert(said[2] | {"commit": said[0].id}, KeptKey)
    except msgspec.ValidationError as problem:
        raise HarkenError(f"{said[0].short} says nothing of a key: {problem}", hint="`harken undo` may help") from None


def _without_context(one: msgspec.Struct) -> dict[str, Any]:
    """What is written down: the rest is known from elsewhere."""
    return {name: value for name, value in msgspec.structs.asdict(one).items() if name not in ("context", "commit")}


def _line(what: str, text: str) -> str:
    if len(text) > LONGEST_KEY or not text.isprintable():
        raise BadRequest(f"{text!r:.99} is no {what}", hint=f"at most {LONGEST_KEY} characters, on one line")
    return text


def _check(what: str, text: str) -> str:
    if not text or not ids.is_text(text):
        raise BadRequest(f"{text!r:.99} is no {what}", hint="give its id as text")
    return text


def _folder(principal: str) -> str:
    if not principal or not ids.is_text(principal):
        raise BadRequest("whose is it? No principal was named", hint="name one, or use a token that has one")
    told = f"{PRINCIPALS_BRANCH}{quote(principal, safe='')}"
    if len(told) > ids.NAME_LIMIT // 2:
        raise BadRequest(f"the principal {principal!r:.60} has too long a name", hint="it is written into a branch")
    return told


def _sessions(principal: str) -> str:
    return f"{_folder(principal)}/sessions"


def _running(principal: str, session: str) -> str:
    return f"{_folder(principal)}/running/{quote(session, safe='')}"


def _key_branch(principal: str, key: str) -> str:
    name = f"{_folder(principal)}/keys/{key}"
    if key and (len(key.encode("utf-8", "replace")) > LONGEST_KEY or ids.name_problem(name)):
        hint = f"at most {LONGEST_KEY} bytes of text, with words between its slashes"
        raise BadRequest(f"{key!r:.99} cannot be a key", hint=hint)
    return name
