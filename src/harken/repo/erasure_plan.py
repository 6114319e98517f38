"""What is to be forgotten, as the store is now: where it lies, what stays, and what the store is told to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harken.context import forgetting
from harken.context.forgetting import Going
from harken.context.refs import Ref
from harken.errors import Conflict, Corrupt, NotFound
from harken.files import SPOOL, UNREAD, find_beside
from harken.secrets import Rule
from harken.store import Commit, ErasureOrder, SessionRow, Store
from harken.store.repair import BEFORE
from harken.store.tombstones import (
    SHORTEST,
    ByteSpan,
    EscapedForms,
    find_words,
    forms,
    in_titles,
    merged,
    windows,
    without,
)

from .candidates import counted, first_holders, readable_commits, search

_FACTS = ("session_id", "template", "ticket_id", "thread_id", "spawned_from", "format", "checkpoint")
OnBytes = Callable[[int], None]
"""Told how many bytes more were looked through."""


class ForgetPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where something goes."""

    session: str
    """Empty where no session uses it."""
    commit: str
    """The short name of the first commit that holds it; empty where it is a side file, or nobody's."""
    artifact: str
    spans: int
    """How many places; 0 where all of it goes."""
    bytes: int


class ForgetReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was forgotten, or would be."""

    dry_run: bool
    erasure: int = 0
    """Its number in the store."""
    sessions: tuple[str, ...] = ()
    """Sessions that go whole."""
    places: tuple[ForgetPlace, ...] = ()
    rows: int = 0
    """Titles, remarks and names that hold something of it."""
    spools: tuple[str, ...] = ()
    """Files of runs that are not stored yet, and hold something of it."""
    kept: int = 0
    """Artifacts that stay, since another session uses them."""
    kept_for: tuple[str, ...] = ()
    """The sessions that do."""
    copies: tuple[str, ...] = ()
    """Sessions that began with a copy of what goes, and keep it."""
    stays: tuple[str, ...] = ()
    """Where it stays, since names are made of it: ids of sessions, and what commits are called by."""
    left: tuple[str, ...] = ()
    """Files beside the store that may still hold it, and which nobody but their owner removes."""

    @property
    def bytes(self) -> int:
        """How many bytes go."""
        return sum(place.bytes for place in self.places)


class ForgetPlan:
    """What is to go, as the store is now."""

    def __init__(self, store: Store, now: int) -> None:
        self._store, self._now = store, now
        self._at = store.last_change()
        self._going = Going()
        self._words: tuple[bytes, ...] = ()
        self._spans: dict[str, tuple[ByteSpan, ...]] = {}
        self._sessions: tuple[SessionRow, ...] = ()
        self._told: dict[str, Any] = {}
        self._spools: dict[str, tuple[ByteSpan, ...]] = {}
        self._rows = 0
        self._stays: tuple[str, ...] = ()

    def look(self, ref: Ref | None, secret: Sequence[str], rules: Sequence[Rule], moved: OnBytes) -> None:
        """Find out what goes."""
        if ref is not None:
            self._take(forgetting.find_forgettable(self._store, ref))
            return
        found = set(secret)
        if rules:
            self._told["rules"] = sorted({rule.name for rule in rules})
        words = dict.fromkeys(form for one in secret for form in forms(one))
        escaped = list(map(EscapedForms, secret))
        spans: dict[str, list[ByteSpan]] = {}
        for artifact, one, value in search(self._store, rules, moved) if rules else ():
            found.add(value.decode("utf-8", "replace"))
            spans.setdefault(artifact, []).append((one.start, one.end))
            if len(value) >= SHORTEST:  # a shorter one goes where a rule finds it, and nowhere else
                words |= dict.fromkeys((value, *in_titles(value)))
        self._told["secrets"] = len(found)
        for artifact, places, forms_there in _places(self._store, tuple(words), escaped, moved) if words else ():
            spans.setdefault(artifact, []).extend(places)
            words |= dict.fromkeys(forms_there)
        self._words = tuple(words)
        self._spans = {artifact: merged(found_at) for artifact, found_at in spans.items()}
        if not words:
            return
        rows = [(row, forgetting.cleaned(row, self._words)) for row in self._store.sessions()]
        self._sessions = tuple(new for old, new in rows if new != old)
        self._spools = {
            path.name: places
            for path in _spools(self._store)
            if (places := _in_spool(path.read_bytes(), self._words, escaped))
        }
        self._rows = len(self._sessions) + _remarks(self._store, self._words)
        self._stays = tuple(_staying(self._store, self._words))

    def _take(self, what: SessionRow | Commit) -> None:
        if isinstance(what, Commit):
            self._going = forgetting.going_with_commit(self._store, what)
            return
        if what.forgotten:
            raise NotFound(
                f"session {what.session} is forgotten already", hint="`harken import --restore` brings it back"
            )
        self._going = forgetting.going_with_session(self._store, what)
        self._sessions = tuple(map(forgetting.emptied, self._going.sessions))
        self._told["sessions"] = [row.session for row in self._sessions]
        for path in _spools(self._store):
            if what.session.encode() in path.read_bytes():
                raise Conflict(
                    f"{path} holds what a run of {what.session} said, and is not stored",
                    hint="let the run end; `harken sessions` says what waits",
                )

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to forget."""
        return not (self._going.artifacts or self._spans or self._sessions or self._rows or self._spools)

    def order(self, *, who: str, why: str) -> ErasureOrder:
        """What the store is to do."""
        if self._spools:
            self._told["spools"] = self._spools
        return ErasureOrder(
            time=self._now,
            who=who,
            why=why,
            what=msgspec.json.encode(self._told).decode(),
            artifacts={**dict.fromkeys(self._going.artifacts, ()), **self._spans},
            words=self._words,
            notes=forgetting.said_of(self._store, self._going.commits),
            sessions=self._sessions,
            at=self._at,
        )

    def report(self, *, dry_run: bool) -> ForgetReport:
        """What a person is told."""
        return ForgetReport(
            dry_run=dry_run,
            sessions=tuple(self._told.get("sessions", ())),
            places=tuple(self._placed()),
            rows=self._rows or len(forgetting.said_of(self._store, self._going.commits)),
            spools=tuple(sorted(self._spools)),
            kept=len(self._going.kept),
            kept_for=self._going.kept_for,
            copies=self._going.copies,
            stays=self._stays,
            left=tuple(str(path) for path in _before_repairs(self._store)),
        )

    def _placed(self) -> Iterator[ForgetPlace]:
        going = {**dict.fromkeys(self._going.artifacts, ()), **self._spans}
        held = first_holders(_commits(self._store)) if going else {}
        infos = self._store.infos(list(going))
        for artifact, spans in going.items():
            by = held.get(artifact)
            yield ForgetPlace(
                session=by.session_id if by else "",
                commit=by.short if by else "",
                artifact=artifact,
                spans=len(spans),
                bytes=sum(end - start for start, end in spans) if spans else infos[artifact].size,
            )


def _spools(store: Store) -> list[Path]:
    """The files beside the store that hold what runs said and is not stored."""
    place = Path(store.location)
    return [path for kind in (SPOOL, UNREAD) for path in find_beside(place, kind) if path.is_file()]


def _places(
    store: Store, words: Sequence[bytes], escaped: Sequence[EscapedForms], moved: OnBytes
) -> Iterator[tuple[str, tuple[ByteSpan, ...], set[bytes]]]:
    """The artifacts that hold one of the words, where, and in which other forms."""
    longest = max([*map(len, words), *(one.longest for one in escaped)])
    for artifact, parts in store.contents():
        found, other = list[ByteSpan](), set[bytes]()
        for at, window in windows(counted(parts, moved), longest):
            found += [(at + start, at + end) for start, end in find_words(window, words)]
            for start, end in (span for one in escaped for span in one.find(window)):
                found.append((at + start, at + end))
                other.add(window[start:end])
        if found:
            yield artifact, merged(found), other


def _in_spool(data: bytes, words: Sequence[bytes], escaped: Sequence[EscapedForms]) -> tuple[ByteSpan, ...]:
    return merged([*find_words(data, words), *(span for one in escaped for span in one.find(data))])


def _commits(store: Store) -> list[Commit]:
    """The commits, the oldest first. Where some are damaged nothing may be forgotten, since their bytes may hold it;
    those that a repair could not save are gone."""
    damage: list[Corrupt] = []
    commits = readable_commits(store, damage)
    if damage and not store.fsck().ok:
        raise damage[0]
    return commits


def _remarks(store: Store, words: Sequence[bytes]) -> int:
    """How many names and remarks hold one of the words."""
    texts = [name.name for name in store.names()] + [text for move in store.moves() for text in (move.why, move.who)]
    commits = [commit.id for commit in _commits(store)]
    for at in range(0, len(commits), 400):
        for notes in store.annotations_of(commits[at : at + 400]).values():
            texts += [note.value for note in notes]
    return sum(1 for text in texts if any(find_words(text.encode("utf-8", "surrogatepass"), words)))


def _staying(store: Store, words: Sequence[bytes]) -> Iterator[str]:
    """What holds one of the words and cannot be changed: a commit is called after all that it says of itself, and a
    session by its id. The words themselves are blanked here."""
    held: dict[str, list[str]] = {}
    for commit in _commits(store):
        for name in _FACTS:
            if (said := getattr(commit, name)) and _holds(said, words):
                held.setdefault(name, []).append(commit.short)
    for row in store.sessions():
        if _holds(row.session, words):
            yield f"the id of session {without(row.session, words)}"
    for name, commits in held.items():
        more = f" and of {len(commits) - 1:,} more" if len(commits) > 1 else ""
        yield f"`{name}` of the commit {commits[0]}{more}"


def _holds(said: str | dict[str, Any], words: Sequence[bytes]) -> bool:
    text = said if isinstance(said, str) else " ".join(map(str, said.values()))
    return any(find_words(text.encode("utf-8", "surrogatepass"), words))


def _before_repairs(store: Store) -> list[Path]:
    """The copies that repairs made of the store before they changed it."""
    place = Path(store.location)
    if not place.is_file():
        return []
    begins = place.name + BEFORE
    return sorted(path for path in place.parent.iterdir() if path.name.startswith(begins) and path.is_file())
