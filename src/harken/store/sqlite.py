"""The store people use: one SQLite file. This is its reading half; `sqlite_writer.py` changes it.

Commits lie in *chains*: a commit whose parent is the last of a chain goes on with it, any other begins a new one. The
row number is chain * 2**32 + place, so a walk is one range scan for each chain it passes.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from harken import clock, ids
from harken.errors import Corrupt, Evicted, HarkenError, NotFound

from . import naming, sql
from .base import Annotation, ArtifactInfo, Commit, Link, Move, Name, SessionRow, Sighting
from .cache import Cache
from .db import Database, Steps, text, untext
from .frames import Frame, open_frame
from .packing import Packer
from .rows import FSCK, Row, first_of_chain, full_name, links_of, move_of, name_of, session_of, span
from .sqlite_writer import SqliteWriter

_FRAMES_KEPT = 4
_WORTH_KEEPING = 64 << 10
_PLACES_KEPT = 200_000
_RECENT = 10_000
_STEP = 512  # rows of a walk fetched at a time, so that a walk that stops early has not read everything


class _Transaction:
    """The block of `store.write()`."""

    __slots__ = ("_store", "_writer")

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    def __enter__(self) -> SqliteWriter:
        self._writer = SqliteWriter(self._store)
        return self._writer

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        try:
            if kind is None:
                self._writer.finish()
        finally:
            self._writer.end()
            self._store.forget_places()
        if kind is None:
            self._store.packer.after(self._writer)


class SqliteStore:
    """Bytes, commits and names in one file."""

    def __init__(self, path: str | os.PathLike[str], *, steps: Steps = sql.STEPS, patience: float = 60.0) -> None:
        self.path = Path(path).absolute()
        self.location = str(self.path)
        self.db = Database(self.path, steps=steps, patience=patience)
        self.derived = Cache(f"{self.path}-cache")
        self.packer = Packer(self)
        self._closed = False
        self._recent: dict[str, tuple[int, str]] = {}
        self.interned: dict[tuple[str, ...], int] = {}
        self._origins: dict[int, Row] = {}
        self._principals: dict[int, tuple[str, str]] = {}
        self._places: dict[str, tuple[int | None, int | None, int]] = {}
        self._frames: OrderedDict[int, tuple[bytes, bytes]] = OrderedDict()

    def write(self) -> _Transaction:
        """One transaction: whole when the block ends, or nothing of it if it raises."""
        return _Transaction(self)

    # -- artifacts ---------------------------------------------------------------------------------------------

    def get(self, artifact: str) -> bytes:
        """The bytes of that full name, checked against it."""
        data = b"".join(self._pieces(artifact))
        if ids.artifact_id(data) != artifact:
            raise _not_its_bytes(artifact)
        return data

    def get_many(self, artifacts: Sequence[str]) -> Iterator[bytes]:
        """The bytes of many, in the order asked; each frame is read and checked once."""
        number, content = 0, b""
        for artifact in artifacts:
            frame, start, size = self._places.get(artifact) or self._locate(artifact)[1:]
            if frame is None or start is None:
                yield b"".join(self._pieces(artifact))
                continue
            if frame != number:
                try:
                    number, content = frame, self.frame(frame)
                except NotFound:  # what was in it has been written anew since we looked
                    number, content = 0, b""
            data = content[start : start + size]
            # A slot may have been filled anew since we looked; a frame never changes.
            if number and len(data) == size and (frame > 0 or ids.artifact_id(data) == artifact):
                yield data
            else:
                self._places.clear()
                yield b"".join(self._pieces(artifact))

    def iter_parts(self, artifact: str) -> Iterator[bytes]:
        """The bytes of one artifact in parts of bounded size; `Corrupt` at the end if they were not its bytes."""
        hasher = ids.ArtifactHasher()
        for piece in self._pieces(artifact):
            hasher.update(piece)
            yield piece
        if hasher.hexdigest() != artifact:
            raise _not_its_bytes(artifact)

    def has(self, artifact: str) -> bool:
        """Whether its bytes are here."""
        with contextlib.suppress(NotFound):
            if self._pending(artifact) is not None:
                return True
            number, frame, _, _ = self._locate(artifact)
            return frame is not None or self.db.one(sql.PARTS, (number,)) is not None
        return False

    def info(self, artifact: str) -> ArtifactInfo:
        """What is known of it without reading it."""
        self._see_own_writes()
        number, frame, _, size = self._locate(artifact)
        evicted = frame is None and not self.has(artifact)
        policy, expires = self.db.one(sql.POLICY, (number,)) or ("default", None)
        return ArtifactInfo(id=artifact, size=size, policy=policy, expires=expires, evicted=evicted)

    def artifacts(self, prefix: str = "", limit: int = 100) -> list[str]:
        """Full names that begin with these hex digits."""
        self._see_own_writes()
        found = sorted(id.hex() for (id,) in self.db.all(sql.ARTIFACTS_FROM, span(prefix)))
        return [name for name in found if name.startswith(prefix)][:limit]

    def find_artifact(self, artifact: str) -> Row | None:
        """The row number, frame, start and size of an artifact."""
        try:
            id = bytes.fromhex(artifact)
        except ValueError:
            return None
        return self.db.one(sql.ARTIFACT, (id[:8], id))

    def _locate(self, artifact: str) -> Row:
        found = self.find_artifact(artifact)
        if found is None:
            raise NotFound(f"no artifact {ids.artifact_ref(artifact)}")
        return found

    def _pieces(self, artifact: str) -> Iterator[bytes]:
        """The bytes as they lie: one slice, or the parts of something large. Looks again if they were moved."""
        if (pending := self._pending(artifact)) is not None:
            yield pending
            return
        place: Row = self._locate(artifact)
        while place[1] is not None:
            before = place
            _, frame, start, size = place
            try:
                data = self.frame(frame)[start : start + size]
                # A slot may have been filled anew since we looked where the artifact is; a frame never changes.
                if len(data) == size and (frame > 0 or ids.artifact_id(data) == artifact):
                    yield data
                    return
                problem: HarkenError = _not_its_bytes(artifact)
            except NotFound as error:
                problem = error
            if (place := self._locate(artifact)) == before:
                raise problem
        yield from self._parts(artifact, place[0])

    def _parts(self, artifact: str, number: int) -> Iterator[bytes]:
        parts = self.db.all(sql.PARTS, (number,))
        if not parts:
            name = ids.artifact_ref(artifact)
            raise Evicted(f"the bytes of {name} have been let go", hint="put them again, or fetch them from a backup")
        for frame, size in parts:
            content = self.frame(frame)
            if len(content) != size:
                raise _not_its_bytes(artifact)
            yield content

    def _pending(self, artifact: str) -> bytes | None:
        """Bytes this thread has put in a transaction that is still open."""
        writer = getattr(self.db.local, "writer", None)
        return writer.pending(artifact) if writer is not None else None

    def _see_own_writes(self) -> None:
        """Let this thread's open transaction write down what it has only noted, before we look."""
        writer = getattr(self.db.local, "writer", None)
        if writer is not None:
            writer.note_rows()

    def frame(self, number: int, *, alone: bool = False) -> bytes:
        """The content of a frame (a negative number is a slot of `loose`), its hash checked.

        The last few large ones are kept: a frame never changes, and of a slot it is asked whether it has."""
        kept = self._frames.get(number)
        if kept is not None and (number > 0 or self.db.one(sql.LOOSE_HASH, (-number,)) == (kept[0],)):
            return kept[1]
        row = self.db.one(sql.FRAME, (number,)) if number > 0 else self.db.one(sql.LOOSE_FRAME, (-number,))
        if row is None:
            raise NotFound(f"no frame {number}", hint=FSCK)
        hash, size, prefix, data = row
        if alone and prefix is not None:
            raise Corrupt(f"frame {number} leans on another, though others lean on it", hint=FSCK)
        before = self.frame(prefix, alone=True) if prefix is not None else None
        content = open_frame(Frame(hash, size, data), name=f"frame {number}", prefix=before)
        if size >= _WORTH_KEEPING:
            self._frames[number] = (hash, content)
            if len(self._frames) > _FRAMES_KEPT:
                with contextlib.suppress(KeyError):  # another thread was faster
                    self._frames.popitem(last=False)
        return content

    # -- commits -----------------------------------------------------------------------------------------------

    def get_commit(self, commit: str) -> Commit:
        """The commit of that full name."""
        self._see_own_writes()
        row = self.db.one(sql.COMMIT_BY_N, (self.number(commit),))
        if row is None:
            raise NotFound(f"no commit {ids.commit_ref(commit)}")
        return self._commit(row)

    def number(self, commit: str) -> int:
        """The row number of a commit."""
        return self.number_and_seal(commit)[0]

    def number_and_seal(self, commit: str) -> tuple[int, str]:
        """The row number of a commit, and its seal."""
        if len(commit) >= naming.FULL and ids.is_hex(commit):
            for number, id, seal, twin, _ in self.db.all(sql.ALIKE, span(commit)):
                if commit == full_name(id, seal, twin) or commit == id.hex() + seal.hex():
                    return int(number), seal.hex()
        raise NotFound(f"no commit {ids.commit_ref(commit)}", hint="`harken log --all` lists every commit")

    def commits(self, prefix: str = "", *, limit: int | None = None) -> list[Commit]:
        """Commits whose name begins with these hex digits, newest first."""
        self._see_own_writes()
        if not prefix:
            rows = self.db.all(sql.COMMITS_NEWEST, (-1 if limit is None else limit,))
            return [self._commit(row) for row in rows]
        if not ids.is_hex(prefix):
            return []
        found = []
        for row in self.db.all(sql.COMMITS_BETWEEN, span(prefix)):
            id, seal, twin = row[1:4]
            long = len(prefix) > naming.FULL
            if (id.hex() + seal.hex() if long else id.hex()).startswith(prefix) and (long or not twin):
                found.append(self._commit(row))
        return found[:limit]

    def chain(self, commit: str, *, limit: int | None = None, stop: Iterable[str] = ()) -> list[Commit]:
        """From the commit back towards its root, a range scan for each chain it passes."""
        ends, walked = frozenset(stop), []
        below: Row | None = None  # a row is the parent of the one before it, so one step ahead is needed
        for rows in self._scan(sql.CHAIN, commit, None if limit is None else limit + 1, parent=5):
            for row in rows:
                if below is not None:
                    walked.append(self._commit(below, full_name(*row[1:4])))
                    if walked[-1].commit_type in ends or len(walked) == limit:
                        return walked
                below = row
        return [*walked, self._commit(below, "")] if below is not None and limit != 0 else walked

    def walk(self, commit: str, *, limit: int | None = None, stop: Iterable[str] = ()) -> list[Link]:
        """`chain` without the facts that only people need; where the bytes lie is noted for `get_many`."""
        ends, kinds = frozenset(stop), self._origins
        walked: list[Link] = []
        if len(self._places) > _PLACES_KEPT:
            self._places.clear()
        for rows in self._scan(sql.WALK, commit, limit, parent=0):
            for origin in {row[3] for row in rows} - kinds.keys():
                self._origin(origin)
            links = [
                Link(id.hex() + seal.hex(), art.hex(), kinds[k][2], kinds[k][1], messages, tokens, about == 1)
                for _, id, seal, k, messages, tokens, about, art, _, _, _ in rows
            ]
            self._places.update(zip([link.artifact for link in links], [row[8:] for row in rows], strict=True))
            if ends:
                for n, link in enumerate(links):
                    if link.commit_type in ends:
                        return walked + links[: n + 1]
            walked += links
        return walked

    def _scan(self, statement: str, commit: str, limit: int | None, *, parent: int) -> Iterator[list[Row]]:
        """The rows of a walk in blocks, newest first: one cursor for each chain that the walk passes."""
        self._see_own_writes()
        number: int | None = self.number(commit)
        left = limit if limit is not None else sys.maxsize
        while number is not None and left > 0:
            cursor = self.db.cursor(statement, (first_of_chain(number), number))
            expected = number - first_of_chain(number) + 1
            while rows := self.db.fetch(cursor, min(_STEP, left)):
                yield rows
                left -= len(rows)
                expected -= len(rows)
                if left <= 0:
                    return
                above: int | None = rows[-1][parent]
            if expected:
                raise Corrupt(f"chain {number >> 32} has a hole", hint=FSCK)
            number = above

    def children(self, commit: str) -> list[Commit]:
        """The commits that name it as their parent."""
        self._see_own_writes()
        number = self.number(commit)
        return [self._commit(row) for row in self.db.all(sql.CHILDREN, (number + 1, number))]

    def latest(self, principal: str, time: int) -> Commit | None:
        """The principal's newest commit at or before the instant; sightings count."""
        self._see_own_writes()
        best: Row | None = None
        for (number,) in self.db.all(sql.PRINCIPAL_ROWS, (text(principal),)):
            for statement in (sql.LATEST_COMMIT, sql.LATEST_SIGHTING):
                found = self.db.one(statement, (number, time))
                best = max(filter(None, (best, found)), default=None)
        row = self.db.one(sql.COMMIT_BY_N, (best[1],)) if best else None
        return self._commit(row) if row else None

    def sightings(self, commit: str) -> list[Sighting]:
        """Who made this commit, the first to do so first."""
        first = self.get_commit(commit)
        seen = [Sighting(commit=first.id, principal=first.principal, machine=first.machine, time=first.time)]
        for number, time in self.db.all(sql.SIGHTINGS, (self.number(commit),)):
            principal, machine = self._principal(number)
            seen.append(Sighting(commit=first.id, principal=principal, machine=machine, time=time))
        return seen

    def _commit(self, row: Row, parent: str | None = None) -> Commit:
        """A row as a commit; one that is not what was written says so."""
        try:
            return self._read_commit(row, parent)
        except (TypeError, AttributeError, ValueError, OverflowError) as error:
            raise Corrupt(f"commit row {row[0]} cannot be read: {error}", hint=FSCK) from error

    def _read_commit(self, row: Row, parent: str | None) -> Commit:
        n, id, seal, twin, digits, fork, time, origin, principal, messages, tokens, approximate, links, artifact = row
        if parent is None:
            above = fork if n == first_of_chain(n) else n - 1
            parent = full_name(*(self.db.one(sql.COMMIT_NAME, (above,)) or (None, b"", 0))) if above else ""
        kind = self._origins.get(origin) or self._origin(origin)
        who, where = self._principals.get(principal) or self._principal(principal)
        name = full_name(id, seal, twin)
        spawned, forked = links_of(links) if links else (None, "")
        return Commit(
            artifact=artifact.hex(),
            format=kind[1],
            parent=parent,
            commit_type=kind[2],
            checkpoint=kind[3],
            time=time,
            template=kind[4],
            principal=who,
            machine=where,
            session_id=kind[0],
            ticket_id=kind[5],
            thread_id=kind[6],
            message_count=messages,
            token_count=tokens,
            approximate=approximate == 1,
            spawned_from=spawned,
            forked_from=forked,
            id=name,
            seal=seal.hex(),
            short=ids.commit_ref(name, digits or ids.COMMIT_SHORT),
            created_at=clock.format_seconds(time),
        )

    def _origin(self, number: int) -> Row:
        if number not in self._origins:
            self._origins.update((n, tuple(map(untext, row))) for n, *row in self.db.all(sql.ORIGINS))
        if number not in self._origins:
            raise Corrupt(f"origin {number} is missing", hint=FSCK)
        return self._origins[number]

    def _principal(self, number: int) -> tuple[str, str]:
        if number not in self._principals:
            self._principals.update((n, (untext(p), untext(m))) for n, p, m in self.db.all(sql.PRINCIPALS))
        if number not in self._principals:
            raise Corrupt(f"principal {number} is missing", hint=FSCK)
        return self._principals[number]

    # -- what the writer keeps between transactions ------------------------------------------------------------

    def remember(self, commits: dict[str, tuple[int, str]], interned: dict[tuple[str, ...], int]) -> None:
        """Where these commits lie, which are likely parents of the next, and the numbers of repeated text."""
        if len(self._recent) > _RECENT:
            self._recent.clear()
            self.interned.clear()
        self._recent.update(commits)
        self.interned.update(interned)

    def recall(self, commit: str) -> tuple[int, str] | None:
        """Where a commit lies, if it was remembered."""
        return self._recent.get(commit)

    def forget_places(self) -> None:
        """After a transaction: slices may have moved."""
        self._places.clear()

    def forget(self) -> None:
        """After a transaction was taken back: its numbers may be given out again."""
        self._recent.clear()
        self.interned.clear()
        self._origins.clear()
        self._principals.clear()
        self._frames.clear()

    # -- what is said about them -------------------------------------------------------------------------------

    def annotations(self, commit: str) -> list[Annotation]:
        """Everything said about a commit, oldest first."""
        name = self.get_commit(commit).id
        return [
            Annotation(commit=name, key=untext(key), value=untext(value), time=time, who=untext(who))
            for key, value, time, who in self.db.all(sql.ANNOTATIONS, (self.number(commit),))
        ]

    def names(self, kind: str | None = None) -> list[Name]:
        """Branches and tags."""
        rows = self.db.all(f"{sql.NAMES} ORDER BY m.name")
        return [name_of(row) for row in rows if kind in (None, row[1])]

    def find_name(self, name: str) -> Name | None:
        """What a branch or tag points at."""
        row = self.db.one(sql.NAME, (text(name),))
        return name_of(row) if row else None

    def moves(self, name: str | None = None, *, limit: int | None = None) -> list[Move]:
        """Deliberate moves, newest first."""
        rows = self.db.all(sql.MOVES, (None if name is None else text(name), -1 if limit is None else limit))
        return [move_of(row) for row in rows]

    def sessions(self, *, prefix: str = "", source: str | None = None) -> list[SessionRow]:
        """The sessions it knows, by the start of their id or by the file they came from."""
        rows = self.db.all(sql.SESSIONS, (text(prefix), None if source is None else text(source)))
        return [session_of(row) for row in rows]

    # -- the cache of derived bytes ----------------------------------------------------------------------------

    def cached(self, key: str) -> bytes | None:
        """Derived bytes kept under this key, if they still are."""
        return self.derived.get(key)

    def cache(self, key: str, data: bytes) -> None:
        """Keep derived bytes for a while."""
        self.derived.put(key, data)

    # -- housekeeping ------------------------------------------------------------------------------------------

    def pack(self, commit: str = "") -> int:
        """Gather small frames into large ones: those of the commit's chain, or all."""
        if not commit:
            return self.packer.pack(None)
        return self.packer.pack(self.number(commit) >> 32)

    def close(self) -> None:
        """Gather what this store left loose, and let go of the file; closing twice is closing once."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(HarkenError):  # nothing is lost if it cannot be gathered now
            self.packer.at_close()
        self.derived.close()
        self.db.close()


def _not_its_bytes(artifact: str) -> Corrupt:
    return Corrupt(
        f"{ids.artifact_ref(artifact)} is not what its name says", hint="`harken fsck --read-data` says what is lost"
    )
