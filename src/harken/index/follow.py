"""Following the store: the next changes of its feed, as rows.

A batch of changes and the number it ends at are one transaction. Whatever cannot be read of a commit is written down
in `problems`, and the others go on. Commits are read as they stand in the feed, a chain's from its root on, so that a
record without a name can be called after its place: `commits."end"` says where the next delta begins.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Container, Iterable, Sequence

from harken.analytics.transcript_rows import NO_ROWS, RowShape
from harken.context import project_of
from harken.context.chains import SUPERSEDED_BY, is_superseded
from harken.context.readable import contents_of
from harken.context.walk import RESETS, SNAPSHOT, named, places
from harken.errors import BadRequest, Corrupt, Forgotten, HarkenError
from harken.events.verdicts import tells_of_hooks
from harken.formats import Format, find, problem
from harken.store.base import ArtifactInfo, Change, Commit, SessionRow, Store

from . import rows
from .begun import BegunMessages
from .carried import Continuations
from .commit_numbers import Below, CommitNumbers
from .contested import Contested
from .progress import OutdatedIndex
from .recordings import Recordings, is_recorded
from .retold import Retold
from .row_shapes import step_shape
from .writing import RowWriter

CHANGES = 1000
"""How many changes are looked at together."""
BATCH = 16 << 20
"""Bytes of deltas that make a transaction: fewer make the text index slower, more take more memory."""

DAMAGED = 20_000
"""How many changes are passed over in search of one that can be read: more than a damaged row is about."""

_Called = Callable[[str], str]
"""From a record's name to another that it has."""
_NO_TEXT = "the session's id is no UTF-8, and SQLite takes no such text"


class Batch:
    """The changes of one transaction."""

    def __init__(self, connection: sqlite3.Connection, store: Store) -> None:
        self._store = store
        self._db = connection
        self._numbers = CommitNumbers(connection)
        self._rows = RowWriter(connection, self._numbers.upto)
        self._beginnings = BegunMessages(store, connection, self._rows)
        self._recordings = Recordings(store, connection, self._rows)
        self._last: tuple[str, bytes] = ("", b"")
        self._called: dict[tuple[str, str, str], str] = {}
        self._readers: dict[str, Format] = {}
        self._continuations = Continuations(store, connection, lambda commit: self._numbers.below(commit) is not None)
        self._retold = Retold(connection, self._rows, self._continuations.told_in)
        self._contested = Contested(store, connection)
        self._changed: dict[str, None] = {}
        """The sessions whose rows were taken in."""
        self._said_in: set[str] = set()
        """The sessions that commits were taken in of."""
        self.formats: set[str] = set()
        """The formats that were asked for."""

    def take(self, at: int, begun: int, limit: int = BATCH) -> int:
        """Take in the changes after a number, as many as make a transaction; the answer is the number of the last.

        `begun` is the last change there was when the index was begun. Sessions that were renamed
        behind it may have their old names here."""
        total, went_on = 0, True
        while total < limit and went_on:
            at, changes = self._changes_after(at)
            if not changes:
                break
            commits = _by_name(self._store, [change.subject for change in changes if change.kind == "commit"])
            sizes = _sizes(self._store, commits)
            taken = _cut(changes, sizes, limit - total)
            went_on = len(taken) == len(changes)
            total += sum(sizes.get(change.subject, 0) for change in taken if change.kind == "commit")
            self._take_changes(taken, commits, new=taken[-1].number <= begun)
            at = taken[-1].number
        self._settle()
        self._rows.write()
        return at

    def _changes_after(self, at: int) -> tuple[int, Sequence[Change]]:
        """The next changes, and the number they follow. What the feed can no longer tell is written down, and what
        comes behind it goes on."""
        some = CHANGES
        while True:
            try:
                return at, self._store.since(at, some)
            except Corrupt as problem:
                if some > 1:
                    some //= 2  # those before the damage first
                    continue
                behind = _next_readable(self._store, at, problem)
                self._note("", "", "", f"changes {at + 1} to {behind} of the store: {problem}", damaged=True)
                at, some = behind, CHANGES

    def _take_changes(self, changes: Sequence[Change], commits: dict[str, Commit], *, new: bool) -> None:
        about: dict[str, dict[str, None]] = {}
        for change in changes:
            if change.problem and change.kind in ("commit", "session"):
                self._note("", "", "", change.problem, damaged=True)
            if change.subject and (change.kind != "annotation" or change.detail == rows.SUMMARY):
                about.setdefault(change.kind, {})[change.subject] = None
        made = about.get("commit", {})
        turned = [one.subject for one in changes if one.kind == "annotation" and one.detail == SUPERSEDED_BY]
        self._take_back(about.get("artifact", {}), besides=made)
        self._take_commits([commits[name] for name in made if name in commits])
        self._take_documents(turned)
        for name in made.keys() - commits.keys():
            self._note(name, "", "", "the commit cannot be read", damaged=True)
        self._take_sessions(about.get("session", {}), new=new)
        self._take_summaries(list(about.get("annotation", {})))

    def _take_back(self, artifacts: Container[str], besides: Container[str]) -> None:
        """Read again what could not be read, where its bytes have come back."""
        known = self._db.execute("SELECT \"commit\", artifact FROM problems WHERE artifact != ''").fetchall()
        back = [name for name, artifact in known if artifact in artifacts and name not in besides]
        if back:
            self._db.executemany('DELETE FROM problems WHERE "commit" = ?', [(name,) for name in back])
            self._take_commits(list(_by_name(self._store, back).values()))

    # -- commits -----------------------------------------------------------------------------------------------

    def _take_commits(self, commits: Sequence[Commit]) -> None:
        self._numbers.look_up([commit.id for commit in commits])
        for commit, data in contents_of(self._store, commits):
            if not rows.is_storable(commit.session_id):
                self._note(commit.id, commit.artifact, commit.session_id, _NO_TEXT)
                continue
            try:
                if isinstance(data, HarkenError):
                    raise data
                self._take_commit(commit, data)
            except Exception as problem:
                if isinstance(problem, sqlite3.Error | OutdatedIndex):
                    raise
                self._pass_over(commit, problem)
        self._numbers.write()

    def _take_commit(self, commit: Commit, data: bytes) -> None:
        format = self._format(commit)
        below = self._below(commit)
        begin = below.end
        if commit.parent and commit.commit_type in RESETS:
            if commit.commit_type == SNAPSHOT or self._delta_of(commit.parent).endswith(data):
                self._add_commit(commit, below, NO_ROWS)  # the chain below says all of it
                return
            begin = None
        together = format.named_reader
        events, shared = together(data) if together is not None else (format.read_delta(data), None)
        if format.names_stored:
            events = list(named(format, events, begin))
        end = below.end if begin is None else begin + places(format, data)
        session = self._session_number(commit)
        names = rows.RecordNames(commit.session_id or commit.id, commit.id, begin)
        messages = list(rows.message_rows(events, self._shared(names, format, data, session, shared)))
        if not commit.parent and format.agent_of is not None:
            agent = format.agent_of(data)
            below = below._replace(agent=agent if agent != commit.session_id else "")
        resets = bool(commit.parent) and commit.commit_type in RESETS
        shape = step_shape(events, begin, resets=resets, messages=messages)
        told = below._replace(end=end, hooked=below.hooked or tells_of_hooks(events))
        number = self._add_commit(commit, told, shape)
        if _is_document(format):
            self._rows.reopen(rows.results(events), session)
        carried_from = format.carried_names(data) if format.carried_names is not None else None
        if below.agent:
            messages = [row._replace(agent=row.agent or below.agent) for row in messages]
        own = self._without_begun(messages, commit, (session, number), carried_from)
        own = self._without_carried(own, commit, (session, number), begin)
        self._said_in.add(_top(commit.session_id))
        if session is None or not self._recordings.are_beside(
            self._session_of(commit), recorded=told.since is not None
        ):
            self._rows.add(own, session, number, commit.session_id or commit.id)
        else:
            self._numbers.write()
            self._recordings.add(own, commit, (session, number), told.since)
        self._numbers.end(commit.id, self._rows.last)
        self._rows.add_results(rows.results(events, below.agent), session)
        self._rows.add_agents(rows.agent_names(events), session)
        self._last = (commit.id, data)

    def _settle(self) -> None:
        """See to it that of several texts of a message the one stands that its session says as it stands."""
        self._rows.flush()
        self._retell()
        self._beginnings.settle(self._said_in)
        for number, name in self._contested.sessions(self._changed).items():
            standing = self._contested.standing(name)
            if standing is None or not (keys := self._contested.misplaced(number, standing)):
                continue
            commits = list(_by_name(self._store, [*standing.older, *standing.commits]).values())
            self._reopen(commits)
            self._rows.retells = True
            self._take_commits(commits)
            self._rows.flush()
            self._rows.retells = False
            self._contested.note(number, keys, standing)

    def _retell(self) -> None:
        """Read the sessions once more of which it is known only now what they go on from, and those that go on from
        these."""
        waiting = self._retold.waiting(self._changed, self._continuations.wanted)
        seen: set[int] = set()
        while waiting.keys() - seen:
            number = next(number for number in waiting if number not in seen)
            seen.add(number)
            self._changed[waiting[number]] = None
            self._continuations.forget()
            with self._retold.set_aside(number):
                self._take_commits(self._standing(_by_name(self._store, self._retold.commits(number))))
            waiting |= self._retold.behind(number)

    def _standing(self, commits: dict[str, Commit]) -> list[Commit]:
        """These without the documents that gave way to newer ones."""
        documents = [name for name, commit in commits.items() if _is_document(find(commit.format))]
        notes = self._store.annotations_of(documents) if documents else {}
        return [commit for name, commit in commits.items() if name not in notes or not is_superseded(notes[name])]

    def _reopen(self, commits: Sequence[Commit]) -> None:
        """Forget what calls came to that these commits tell the results of."""
        for commit, data in contents_of(self._store, commits):
            format = find(commit.format)
            if format is not None and "read" in format.can and not isinstance(data, HarkenError):
                known = self._numbers.below(commit.id)
                told = rows.results(format.read_delta(data), known.agent if known is not None else "")
                self._rows.reopen(told, self._session_number(commit))

    def _take_documents(self, names: Sequence[str]) -> None:
        """Drop what only documents say that gave way to newer ones; those that were put back are read again."""
        found = {name: one for name, one in _by_name(self._store, names).items() if _is_document(find(one.format))}
        notes = self._store.annotations_of(list(found)) if found else {}
        gone = {name for name in found if is_superseded(notes[name])}
        for commit, data in contents_of(self._store, [found[name] for name in gone]):
            if not isinstance(data, HarkenError):
                names_of = rows.RecordNames(commit.session_id or commit.id, commit.id, 0)
                self._rows.drop(rows.message_rows(self._format(commit).read_delta(data), names_of), commit.id)
        self._take_commits([found[name] for name in found if name not in gone])

    def _without_begun(
        self,
        messages: Sequence[rows.MessageRow],
        commit: Commit,
        numbers: tuple[int | None, int],
        carried_from: _Called | None,
    ) -> Iterable[rows.MessageRow]:
        """The messages but for those that an agent began with, as their records say. What it has from its own session
        stands there."""
        session, number = numbers
        sources = [carried_from(row.record or "") if carried_from is not None else "" for row in messages]
        if session is None or not any(sources):
            return messages
        self._rows.flush()
        told = [
            (row, source) for row, source in zip(messages, sources, strict=True) if source != _top(commit.session_id)
        ]
        return list(self._beginnings.without_begun(told, session, number))

    def _without_carried(
        self, messages: Iterable[rows.MessageRow], commit: Commit, numbers: tuple[int | None, int], begin: int | None
    ) -> Iterable[rows.MessageRow]:
        """The messages but for those that Harken wrote when it continued another session in this one's runtime."""
        session, number = numbers
        if session is not None and self._continuations.begins_behind(commit.session_id, begin):
            self._rows.goes_its_own_way(session)
        if session is None or not self._continuations.begins_inside(commit.session_id, begin):
            return messages
        self._rows.flush()  # what comes again may have been held until now
        carried = self._continuations.texts(commit.session_id, session, self._rows.removed)
        return self._rows.without_copies(messages, session, number, carried)

    def _shared(
        self, names: rows.RecordNames, format: Format, data: bytes, session: int | None, shared: _Called | None
    ) -> rows.RecordNames:
        """What the records of a delta are called in sessions that have copies of them, too; `shared` is what
        `shared_names` would give, where that is known."""
        if format.delta_names is not None:
            told, alike = format.delta_names(data)
            if told and (source := self._continuations.copied_from(names.scope)):
                # A file that Harken wrote names the session before alone, which may be a copy itself.
                told = self._rows.family(self._rows.session(source), "") or told
            family = self._rows.family(session, told) if session is not None else ""
            return names._replace(alike=(lambda name: f"{family} {alike(name)}") if family else None)
        if format.shared_names is not None:
            named_in = self._continuations.named_in(names.scope)
            names = names._replace(named_in=named_in, shared=_called(format, shared or format.shared_names(data)))
            unnamed = format.unnamed_names
            return names if unnamed is None else names._replace(unnamed=_called(format, unnamed(data)))
        if format.captured_names is not None:
            return names._replace(shared=format.captured_names(data))
        return names

    def _format(self, commit: Commit) -> Format:
        known = self._readers.get(commit.format)
        if known is not None:
            return known
        self.formats.add(commit.format)
        found = find(commit.format)
        if found is None or "read" not in found.can:
            why = problem(commit.format)
            raise BadRequest(
                f"{commit.format} cannot be read here" + (f": {why}" if why else ""), hint="install what reads it"
            )
        self._readers[commit.format] = found
        return found

    def _below(self, commit: Commit) -> Below:
        """What is known of the chain below a commit."""
        below = Below(0, bool((commit.spawned_from or {}).get("inherits")))  # what it was handed is told elsewhere
        if commit.parent:
            below = self._numbers.below(commit.parent) or Below(None, True, upto=self._rows.last)
        since = below.upto if below.since is None else below.since
        return below._replace(since=since if is_recorded(commit) else None)

    def _delta_of(self, commit: str) -> bytes:
        if commit != self._last[0]:
            try:
                return self._store.get(self._store.get_commit(commit).artifact)
            except HarkenError:
                return b""
        return self._last[1]

    def _add_commit(self, commit: Commit, below: Below, shape: RowShape | None) -> int:
        """The number of the commit."""
        return self._numbers.add(commit.id, self._session_number(commit), shape, below._replace(upto=self._rows.last))

    def _session_number(self, commit: Commit) -> int | None:
        return self._rows.session(name) if (name := self._session_of(commit)) else None

    def _session_of(self, commit: Commit) -> str:
        """The session of a commit. One that another runtime's session made way for is called after its runtime now,
        and its commits still have the name that it had."""
        asked = commit.session_id, commit.format, commit.template
        if asked not in self._called:
            self._called[asked] = commit.session_id
            row = self._find_session(commit.session_id) if commit.session_id else None
            top, slash, agent = commit.session_id.partition("/")
            # An import's template is the name of its runtime; several runtimes may share a format.
            format = find(commit.format)
            for runtime in (commit.template, format.runtime if format is not None else ""):
                if row is None or runtime == row.runtime:
                    break
                if runtime and self._find_session(moved := f"{top}-{runtime}{slash}{agent}") is not None:
                    self._called[asked] = moved
                    break
        return self._called[asked]

    def _find_session(self, name: str) -> SessionRow | None:
        """The row of a session; one that is damaged is told where its change is taken in."""
        try:
            return self._store.find_session(name)
        except Corrupt:
            return None

    def _pass_over(self, commit: Commit, problem: Exception) -> None:
        """Write down why a commit is missing; what comes after it is still called after its place."""
        told = str(problem) if isinstance(problem, HarkenError) else f"{type(problem).__name__}: {problem}"
        damaged = -1 if isinstance(problem, Forgotten) else isinstance(problem, Corrupt)
        self._note(commit.id, commit.artifact, commit.session_id, told, damaged=damaged)
        below, info = self._below(commit), _infos(self._store, [commit.artifact]).get(commit.artifact)
        counted = not (commit.parent and commit.commit_type in RESETS)
        format = find(commit.format)
        known = info is not None and below.end is not None and (format is None or format.places is len)
        size = info.size if info is not None else 0
        end = (below.end or 0) + (size if counted else 0) if known else None
        self._add_commit(commit, below._replace(end=end, hooked=True), None)

    def _note(self, commit: str, artifact: str, session: str, why: str, *, damaged: int = False) -> None:
        """Write down what cannot be read; `damaged` as the table has it."""
        told = (commit, artifact, session, why)
        values = [text.encode("utf-8", "backslashreplace").decode() for text in told]
        self._db.execute('DELETE FROM problems WHERE "commit" = ? AND "commit" != \'\'', values[:1])
        self._db.execute("INSERT OR REPLACE INTO problems VALUES (?, ?, ?, ?, ?)", (*values, damaged))

    # -- sessions and summaries --------------------------------------------------------------------------------

    def _take_sessions(self, names: Iterable[str], *, new: bool) -> None:
        found: list[SessionRow] = []
        for name in names:
            if not rows.is_storable(name):
                self._note("", "", name, _NO_TEXT)
                continue
            try:
                row = self._store.find_session(name)
            except HarkenError as problem:
                self._note("", "", name, str(problem), damaged=isinstance(problem, Corrupt))
            else:
                found += [] if row is None else [row]
        if not new and any(row.version > 1 and not self._rows.knows(row.session) for row in found):
            self._look_for_renamed()
        for row in found:
            self._take_session(row)
            self._changed[row.session] = None

    def _look_for_renamed(self) -> None:
        """A session that is saved for the second time and was never seen may be one that was called otherwise."""
        try:
            there = {row.session for row in self._store.sessions()}
        except Corrupt:
            return  # one whose row is damaged has no name to be looked for
        kept = self._db.execute("SELECT session FROM sessions WHERE runtime IS NOT NULL")
        if gone := [name for (name,) in kept if name not in there]:
            raise OutdatedIndex(f"the session {gone[0]} is called otherwise now")

    def _take_session(self, row: SessionRow) -> None:
        number = self._rows.session(row.session)
        facts = (row.runtime, project_of(row), row.title, row.parent, row.agent, row.started, row.ended)
        self._db.execute(
            "UPDATE sessions SET runtime = ?, project = ?, title = ?, parent = ?, agent = ?, started = ?, ended = ?"
            " WHERE n = ?",
            (*facts, number),
        )
        self._db.execute("INSERT OR IGNORE INTO stale VALUES (?)", (number,))
        if row.title:
            said = rows.said_row(f"session {row.session}", rows.TITLE, row.title, row.started)
            self._rows.add([said], number, None, row.session)

    def _take_summaries(self, commits: Sequence[str]) -> None:
        named = [name for name in dict.fromkeys(commits) if name]
        if not named:
            return
        for name, commit in _by_name(self._store, named).items():
            notes = [note for note in self._store.annotations(name) if note.key == rows.SUMMARY and note.value]
            if notes and rows.is_storable(commit.session_id):
                session = self._rows.session(called) if (called := self._session_of(commit)) else None
                number = self._db.execute(
                    'SELECT n FROM commits WHERE "commit" = ?', (bytes.fromhex(commit.id),)
                ).fetchone()
                said = rows.said_row(f"commit {commit.id}", rows.SUMMARY, notes[-1].value, commit.time)
                self._rows.add([said], session, number[0] if number else None, commit.id)


def _top(session: str) -> str:
    """The session of an agent's chain."""
    return session.partition("/")[0]


def _called(format: Format, find: _Called) -> _Called:
    return lambda name: format.shared_as(find(name))


def _is_document(format: Format | None) -> bool:
    return format is not None and format.tells_agents and format.names_stored  # a whole session, which is written anew


def _next_readable(store: Store, at: int, problem: Corrupt) -> int:
    """The next number that the feed can be followed from: the last of those that a damaged row was about."""
    for number in range(at + 1, at + DAMAGED + 1):
        try:
            store.since(number, 1)
        except Corrupt:
            continue
        return number
    raise problem


def _by_name(store: Store, names: Sequence[str]) -> dict[str, Commit]:
    """The commits of these names that can be read."""
    wanted = [name for name in dict.fromkeys(names) if name]
    try:
        return dict(zip(wanted, store.get_commits(wanted), strict=True))
    except HarkenError:
        found: dict[str, Commit] = {}
        for name in wanted:  # one is damaged: the others are asked for alone
            try:
                found[name] = store.get_commit(name)
            except HarkenError:
                continue
        return found


def _sizes(store: Store, commits: dict[str, Commit]) -> dict[str, int]:
    infos = _infos(store, [commit.artifact for commit in commits.values()])
    return {name: infos[commit.artifact].size for name, commit in commits.items() if commit.artifact in infos}


def _infos(store: Store, artifacts: Sequence[str]) -> dict[str, ArtifactInfo]:
    """What is known of artifacts, but for those whose rows are damaged."""
    try:
        return store.infos(artifacts)
    except Corrupt:
        half = len(artifacts) // 2
        return _infos(store, artifacts[:half]) | _infos(store, artifacts[half:]) if half else {}


def _cut(changes: Sequence[Change], sizes: dict[str, int], limit: int) -> Sequence[Change]:
    """The first changes, up to so many bytes of deltas; at least one."""
    total = 0
    for place, change in enumerate(changes):
        total += sizes.get(change.subject, 0) if change.kind == "commit" else 0
        if total > limit and place:
            return changes[:place]
    return changes
