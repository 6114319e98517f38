"""Commits, names and sessions in SQLite, the writing half: what `store.write()` yields."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

from harken import clock, ids

from . import sql, values
from .arguments import STORE, checks_arguments
from .base import Content, Writer
from .blob_writer import add_frame
from .blobs import FRAME_SIZE, Frame
from .commits import full_name
from .db import Row, checked
from .evicting import SqliteEvictor
from .packed import PackedFrame
from .values import Commit, Draft, SessionRow, text

if TYPE_CHECKING:
    from .lost import LostPlaces
    from .sqlite import SqliteStore

_session_words = attrgetter(*sql.SESSION_WORDS)
_TOGETHER = 128  # artifacts or commits that are looked for and written at once


@checks_arguments(STORE, Writer)
class SqliteWriter(SqliteEvictor):
    """Everything that changes the store."""

    def __init__(self, store: SqliteStore) -> None:
        super().__init__(store)
        self._placed: dict[str, int] = {}  # the numbers of artifacts that were put together with others
        self._lost: LostPlaces | None = None

    # -- many at once, as an import has them -------------------------------------------------------------------

    def put_many(self, contents: Iterable[Content], *, like: Sequence[str] = ()) -> list[str]:
        """`put` for many."""
        names, some, held = list[str](), list[bytes](), 0
        for data in contents:
            at = len(names) + len(some)
            if isinstance(data, bytes) and len(data) <= FRAME_SIZE and at >= len(like):
                some.append(data)
                held += len(data)
                if len(some) < _TOGETHER and held < FRAME_SIZE:
                    continue
                names += self._put_some(some)
            else:
                names += self._put_some(some)
                names += self._put_odd(data, like[at:])
            some, held = [], 0
        return names + self._put_some(some)

    def _put_odd(self, data: Content, like: Sequence[str]) -> list[str]:
        """`put` for what is packed, comes in parts, is large or nearly repeats another."""
        if isinstance(data, bytes):
            return [self.put(data, like=like[0] if like else "")]
        if not isinstance(data, PackedFrame):
            return [self.put_stream(data)]
        if like or not self._put_packed(data):
            return self.put_many(data.contents(), like=like)
        return list(data.names)

    def _put_packed(self, packed: PackedFrame) -> bool:
        """Keep a frame as it is; False, and nothing done, where the store has a part of it."""
        self.begin()
        names = {*packed.names}
        known = not names.isdisjoint(self._numbers) or self._store.artifact_rows(packed.names)
        if known or self._store.kept_rows.watchwords != () or len(names) < len(packed.names):
            return False
        frame, start, rows = self._draw("frame"), 0, list[Row]()
        add_frame(self._db, frame, Frame(packed.hash, packed.size, packed.data))
        for name, size in zip(packed.names, packed.sizes, strict=True):
            number = self._placed[name] = self._draw("artifact")
            rows.append((number, bytes.fromhex(name), frame, start, size, None, None))
            self._changes.add("artifact", number)
            start += size
        sums = ids.row_sums("artifacts", rows)
        self._db.many(sql.ADD_ARTIFACT, [(*row, total) for row, total in zip(rows, sums, strict=True)])
        return True

    def _put_some(self, contents: list[bytes]) -> list[str]:
        """`put` for what fits into a frame; all of it is looked for at once, since most of it is new."""
        if not contents:
            return []
        self.begin()
        names = ids.artifact_ids(contents)
        fresh = {name for name in names if name not in self._numbers}
        fresh -= {row[1].hex() for row in self._store.artifact_rows(list(fresh))} if fresh else set()
        for name, data in zip(names, contents, strict=True):
            if name in fresh:
                fresh.remove(name)
                self._place(name, data, "", None)
                self._placed[name] = self._numbers[name]
                self._changes.add("artifact", self._numbers[name])
            else:
                self.put(data)
        return names

    def commit_many(self, drafts: Sequence[Draft]) -> list[str]:
        """`commit` for the next commits of a chain, each behind the one before."""
        made: list[str] = []
        for at in range(0, len(drafts), _TOGETHER):
            some = list(drafts[at : at + _TOGETHER])
            if made:
                some[0] = msgspec.structs.replace(some[0], parent=made[-1])
            made += self._commit_new(some) or self._commit_each(some)
        return made

    def _commit_each(self, drafts: list[Draft]) -> list[str]:
        made = [self.commit(drafts[0]).id]
        for draft in drafts[1:]:
            made.append(self.commit(msgspec.structs.replace(draft, parent=made[-1])).id)
        return made

    def _commit_new(self, drafts: list[Draft]) -> list[str]:
        """The names of the commits where all of them are new and told apart by as many digits as people see; none,
        and nothing done, where one is not, or may have a place that was kept for it."""
        parent = drafts[0].parent
        if len(parent) > values.FULL:
            return []
        self.begin()
        numbers = [self._placed.get(draft.artifact) or self._artifact_number(draft.artifact) for draft in drafts]
        above = self._parent(parent)
        behind, seal = (above[0] + 1, above[1]) if above else (None, "")
        names, seals, near = list[str](), list[str](), list[bytes]()
        for draft in drafts:
            draft = values.check_draft(msgspec.structs.replace(draft, parent=parent))
            created_at = clock.format_seconds(draft.time)
            parent, seal = values.commit_name(draft, created_at), values.seal_of(draft, created_at, seal)
            names.append(parent)
            seals.append(seal)
            near += _near(parent)
        question = sql.ANY_NEAR.format(ranges=", ".join(["(?, ?)"] * len(names)))
        if len({*near}) < len(near) or self._db.one(question, near) or self._db.one(sql.LOST_COMMITS):
            return []
        fork = None
        if behind is None or self._db.one(sql.TAKEN, (behind, behind + len(names) - 1)) is not None:
            behind, fork = self._draw("chain") << 32, above[0] if above else None
        rows = [
            self._row(draft, name, seal, None, number, fork if number == behind else None)
            for number, (draft, name, seal) in enumerate(zip(drafts, names, seals, strict=True), behind)
        ]
        sums = ids.row_sums("commits", rows)
        self._db.many(
            sql.ADD_COMMIT,
            [(*row[:6], number, *row[7:], total) for row, number, total in zip(rows, numbers, sums, strict=True)],
        )
        for draft, row in zip(drafts, rows, strict=True):
            self._note(draft, row[0])
        for name, seal, row in list(zip(names, seals, rows, strict=True))[-2:]:  # what goes on from them comes soon
            self._known[name] = (row[0], seal)
        return names

    # -- commits -----------------------------------------------------------------------------------------------

    def commit(self, draft: Draft) -> Commit:
        """Record a commit; the same commit twice is one commit."""
        values.check_draft(draft)
        self.begin()
        if len(draft.parent) > values.FULL:  # a first commit may be named with its seal too
            draft = msgspec.structs.replace(draft, parent=self._store.get_commit(draft.parent).id)
        parent = self._parent(draft.parent)
        artifact = self._artifact_number(draft.artifact)
        created_at = clock.format_seconds(draft.time)
        name = values.commit_name(draft, created_at)
        seal = values.seal_of(draft, created_at, parent[1] if parent else "")
        behind = parent[0] + 1 if parent else None
        alike, taken, lost = self._db.inside(sql.COMMIT_ALIKE, (*_near(name), behind)).fetchone()
        full, digits = name, ids.COMMIT_SHORT
        if alike:
            self.note_rows()  # a sum is over the name of the artifact, whose row may not be there yet
            others = [checked("commits", row) for row in self._db.all(sql.COMMITS_BETWEEN, _near(name))]
            same_name = [row for row in others if row[1].hex() == name]
            for row in same_name:
                if row[2].hex() == seal:
                    return self._seen(row[0], full_name(*row[1:4]), draft)
            full = name + seal if same_name else name
            digits = ids.digits_needed(full, [full_name(*row[1:4]) for row in others])
        place = (self._lost_place(seal) if lost else None) or (None if taken else behind) or self._draw("chain") << 32
        fork = None if place == behind or parent is None else parent[0]
        shown = digits if digits != ids.COMMIT_SHORT else None
        row = self._row(draft, full, seal, shown, place, fork)
        self._db.inside(sql.ADD_COMMIT, (*row[:6], artifact, *row[7:], ids.row_sum("commits", row)))
        self._note(draft, place)
        self._known[full] = (place, seal)
        short = ids.commit_ref(full, digits)
        return values.to_commit(draft, id=full, seal=seal, short=short, created_at=created_at)

    def _lost_place(self, seal: str) -> int | None:
        """The number that a repair kept for this commit, if it did."""
        from .lost import LostPlaces  # few ever need it

        self._lost = self._lost or LostPlaces(self._store)
        return self._lost.take(seal)

    def _parent(self, name: str) -> tuple[int, str] | None:
        if not name:
            return None
        return self._known.get(name) or self._store.number_and_seal(name)

    def _artifact_number(self, artifact: str) -> int:
        return self._numbers.get(artifact) or int(self._artifact(artifact)[0])

    def _row(self, draft: Draft, full: str, seal: str, digits: int | None, number: int, fork: int | None) -> Row:
        """The row of a commit, as its sum is made from it."""
        return (
            number,
            bytes.fromhex(full[: values.FULL]),
            bytes.fromhex(seal),
            int(len(full) > values.FULL),
            digits,
            fork,
            bytes.fromhex(draft.artifact),
            draft.time,
            self._origin(draft),
            self._principal(draft),
            draft.message_count,
            draft.token_count,
            int(draft.approximate),
            _links_text(draft.spawned_from, draft.forked_from) or None,
        )

    def _note(self, draft: Draft, number: int) -> None:
        """What follows from a commit that was written."""
        self._changes.add("commit", number)
        if draft.artifact in self._buffer:
            self._chain = number >> 32
        if draft.checkpoint == "session_end":
            self.ended.add(number >> 32)

    def _seen(self, number: int, name: str, draft: Draft) -> Commit:
        """The commit was there; note who made it again, once for each principal."""
        if all(sighting.principal != draft.principal for sighting in self._store.sightings(name)):
            row = (self._draw("sightings"), number, self._principal(draft), draft.time)
            self._db.do(sql.ADD_SIGHTING, (*row, ids.row_sum("sightings", row)))
            self._changes.add("sighting", number, text(draft.principal))
        return self._store.get_commit(name)

    def _origin(self, draft: Draft) -> int:
        fields = (draft.session_id, draft.format, draft.commit_type, draft.checkpoint, draft.template)
        return self._intern("origins", sql.ORIGIN, sql.ADD_ORIGIN, (*fields, draft.ticket_id, draft.thread_id))

    def _principal(self, draft: Draft) -> int:
        return self._intern("principals", sql.PRINCIPAL, sql.ADD_PRINCIPAL, (draft.principal, draft.machine))

    def _intern(self, table: str, find: str, add: str, values: tuple[str, ...]) -> int:
        """The number of a row of repeated text, added if it is new."""
        number = self._store.kept_rows.interned.get(values) or self._interned.get(values)
        if number is None:
            kept = _texts(values)
            known = self._db.one(find, kept)
            number = int(checked(table, known)[0]) if known else self._draw(table)
            if known is None:
                self._db.do(add, (number, *kept, ids.row_sum(table, (number, *kept))))
            self._interned[values] = number
        return number

    # -- what is said about them -------------------------------------------------------------------------------

    def link(self, commit: str, *, spawned_from: dict[str, Any] | None, forked_from: str) -> None:
        """Put these links in the place of the commit's."""
        values.check_origin(spawned_from)
        self.begin()
        self.note_rows()  # the sum is over the name of the artifact, whose row may not be there yet
        number = self._number(commit)
        (row,) = self._store.rows_at("commits", sql.COMMITS_AT, [number])
        links = _links_text(spawned_from, forked_from) or None
        if links != row[13]:
            self._db.do(sql.SET_LINKS, (links, ids.row_sum("commits", (*row[:13], links)), number))
            self._changes.add("link", number)

    def annotate(self, commit: str, key: str, value: str, *, time: int, who: str = "") -> None:
        """Say something about a commit."""
        values.check_numbers(time=time)
        self.begin()
        number, value = self._number(commit), self._store.keep_out(value)
        row = (self._draw("annotations"), number, text(key), text(value), time, text(who))
        self._db.do(sql.ADD_ANNOTATION, (*row, ids.row_sum("annotations", row)))
        self._changes.add("annotation", number, text(key))

    def _number(self, commit: str) -> int:
        known = self._known.get(commit)
        return known[0] if known else self._store.number(commit)

    def move(
        self,
        name: str,
        *,
        kind: str,
        to: str,
        expect: str | None,
        time: int,
        who: str = "",
        why: str = "",
        record: bool = True,
    ) -> None:
        """Point a name at a commit, by compare-and-set."""
        values.check_numbers(time=time)
        values.check_name(name)
        self.begin()
        current = self._store.find_name(name)
        values.check_move(name, kind, current, to, expect)
        target = self._number(to) if to else None
        before = self._number(current.target) if current else None
        if target == before:
            return
        known = self._db.one(sql.NAME, (name,))
        number = known[0] if known else self._draw("names")
        total = ids.row_sum("names", (number, name, kind, target))
        if target is None:
            self._db.do(sql.DROP_NAME, (number,))
        elif known:
            self._db.do(sql.SET_NAME, (target, total, number))
        else:
            self._db.do(sql.ADD_NAME, (number, name, kind, target, total))
        self._changes.add("name", name, kind)
        if record:
            moved = (self._draw("moves"), name, kind, before, target, time, text(who), text(why))
            self._db.do(sql.ADD_MOVE, (*moved, ids.row_sum("moves", moved)))

    def save_session(self, row: SessionRow, *, expect: int | None = None) -> SessionRow:
        """Insert the session or put this row in its place, by compare-and-set on its version."""
        values.check_session(row)
        self.begin()
        if max(map(len, (row.tip, row.live, *row.older))) > values.FULL:
            row = self._full_names(row)
        if self._store.kept_rows.watchwords != ():
            row = msgspec.structs.replace(row, title=self._store.keep_out(row.title))
        session = text(row.session)
        known, _ = self.session_rows.get(session, ((), None))
        if not known and (raw := self._db.one(sql.SESSION, (session,))):
            known = checked("sessions", raw)
        number, _, version, *_ = known or (self._draw("sessions"), "", 0)
        values.check_version(row.session, version, expect)
        ends = [self._number(commit) if commit else None for commit in (row.tip, row.live)]
        older = " ".join([str(self._number(commit)) for commit in row.older])
        kept = (
            *(number, session, version + 1, text(row.runtime), *ends, older),
            *_texts(_session_words(row)),
            *(row.started, row.ended, row.messages, row.cost_usd_micros, row.state),
            sql.FORGOTTEN if row.forgotten else int(row.lost),
        )
        total = ids.row_sum("sessions", kept)
        if known and (known[7], known[10]) == (kept[7], kept[10]):
            # No indexed column changes (the session, its parent, its source), so no index is written.
            self._db.inside(sql.SET_SESSION, (*kept[2:7], *kept[8:10], *kept[11:], total, number))
        else:
            self._db.do(sql.SAVE_SESSION, (*kept, total))
        self._changes.add("session", number)
        saved = msgspec.structs.replace(row, version=version + 1, older=tuple(row.older))
        self.session_rows[session] = ((*kept, total), saved)
        return saved

    def rename_session(self, session: str, to: str) -> SessionRow:
        """Call a session something else; its row keeps its number."""
        self.begin()
        known, taken = (self._db.one(sql.SESSION, (text(name),)) for name in (session, to))
        values.check_rename(session, to, known=known is not None, taken=taken is not None)
        number, _, version, *rest = checked("sessions", known or ())
        kept = (number, text(to), version + 1, *rest)
        self._db.do(sql.SAVE_SESSION, (*kept, ids.row_sum("sessions", kept)))
        for key in (text(session), text(to)):
            self.session_rows.pop(key, None)
        self._changes.add("session", number)
        found = self._store.find_session(to)
        assert found is not None
        return found

    def _full_names(self, row: SessionRow) -> SessionRow:
        """The row with the names its commits are kept by: a first commit may be named with its seal too."""
        tip, live = (self._store.get_commit(name).id if name else "" for name in (row.tip, row.live))
        older = tuple(commit.id for commit in self._store.get_commits(row.older))
        return msgspec.structs.replace(row, tip=tip, live=live, older=older)


def _texts(values: tuple[str, ...]) -> tuple[str | bytes, ...]:
    """`text` of several."""
    return values if "".join(values).isascii() else tuple(map(text, values))


def _links_text(spawned_from: dict[str, Any] | None, forked_from: str) -> str:
    """`spawned_from` and `forked_from` in the one spelling that is kept and summed; empty where there is neither."""
    links: dict[str, object] = {"forked_from": forked_from} if forked_from else {}
    if spawned_from is not None:
        links["spawned_from"] = spawned_from
    return msgspec.json.encode(links, order="deterministic").decode() if links else ""


def _near(name: str) -> tuple[bytes, bytes]:
    """Every name that shares the eight digits people see."""
    start = bytes.fromhex(name[: ids.COMMIT_SHORT])
    return start + b"\0\0\0\0", start + b"\xff\xff\xff\xff"
