"""What a REF names in a store, written from docs/FORMAT.md alone."""

from __future__ import annotations

import json
import re

HEX = re.compile(r"[0-9a-f]{4,128}")


class Ambiguous(Exception):
    """A REF that names several things."""


class Refs:
    """REFs of a store that a `stranger.Reader` has open."""

    def __init__(self, reader):
        self.reader = reader
        query = "SELECT n, digits FROM commits ORDER BY n"
        rows = [(reader.name(n), n, digits) for n, digits in reader.db.execute(query).fetchall()]
        self.numbers = {name: n for name, n, _ in rows}
        self.shown = {name[: digits or 8]: name for name, _, digits in rows}
        columns = "session, parent, tip, live, older"
        self.sessions = {row[0]: row for row in reader.db.execute(f"SELECT {columns} FROM sessions").fetchall()}

    def resolve(self, ref):
        """The full name of the commit, or None."""
        digits = ref.removeprefix("ctx-").lower()
        found = self.by_digits(digits) if ref.startswith("ctx-") else None
        found = found or self.reader.names().get(ref) or self.by_session(ref, self.sessions.get)
        return (
            found or self.by_digits(digits if not ref.startswith("ctx-") else "") or self.by_session(ref, self.begins)
        )

    def by_digits(self, digits):
        if not HEX.fullmatch(digits):
            return None
        found = (
            [self.shown[digits]] if digits in self.shown else [name for name in self.numbers if name.startswith(digits)]
        )
        if len(found) > 1:
            raise Ambiguous(digits)
        return found[0] if found else None

    def begins(self, text):
        """The row of the only session that begins so."""
        found = [row for session, row in self.sessions.items() if session.startswith(text)]
        exact = [row for row in found if row[0] == text]
        found = exact or [row for row in found if not row[1]] or found
        if len(found) > 1:
            raise Ambiguous(text)
        if found or "/" not in text:
            return found[0] if found else None
        start, _, agent = text.rpartition("/")
        above = self.begins(start)
        return self.sessions.get(f"{above[0]}/{agent}") if above else None

    def tips(self, row):
        """Where the session stands, and its older tips."""
        _, _, tip, live, older = row
        return [self.reader.name(n) for n in (live or tip, *map(int, older.split()))]

    def by_session(self, ref, find):
        row = find(ref)
        if row and row[2]:
            return self.tips(row)[0]
        if chain := self.older(ref, find) or self.created(ref, find):
            return chain
        for at in (place for place, letter in enumerate(ref) if letter == "@" and place):
            if row := find(ref[:at]):
                return self.holding(row, ref[at + 1 :])
            if chain := self.older(ref[:at], find):
                return self.in_chain(chain, ref[at + 1 :])
        return None

    def older(self, ref, find):
        said = re.fullmatch(r"(.+)~([0-9]{1,9})", ref, re.DOTALL)
        row = find(said[1]) if said else None
        tips = self.tips(row) if row else []
        return tips[int(said[2])] if said and int(said[2]) < len(tips) else None

    def created(self, ref, find):
        """The first commit of the session in `SESSION#created`."""
        row = find(ref.removesuffix("#created")) if ref.endswith("#created") else None
        return self.reader.chain(self.tips(row)[0])[-1] if row and row[2] else None

    def holding(self, row, message):
        if re.fullmatch(r"@[0-9]+", message):
            return self.in_chain(self.tips(row)[0], message)
        below, waiting = [], [row[0]]
        while waiting:
            above = waiting.pop(0)
            children = [other for other in self.sessions.values() if other[1] == above and other not in below]
            below += children
            waiting += [other[0] for other in children]
        stands = [self.tips(other)[0] for other in (row, *below) if other[2]]
        found = (self.in_chain(tip, message) for tip in (*stands, *self.tips(row)[1:]))
        return next(filter(None, found), None) or self.created(message, self.sessions.get)

    def in_chain(self, tip, message):
        """The commit of a chain of lines whose delta holds the message."""
        at = 0
        for name, data in self.deltas(tip):
            for line in data.splitlines(keepends=True):
                if message in names(line) or (message == f"@{at}" and is_unnamed(line)):
                    return name
                at += len(line)
        return None

    def deltas(self, tip):
        """The deltas of a chain from its root, as the stop `root` has them."""
        walked = self.reader.chain(tip)[::-1]
        for place, name in enumerate(walked):
            query = "SELECT c.artifact, o.commit_type FROM commits c JOIN origins o ON o.n = c.origin WHERE c.n = ?"
            artifact, kind = self.reader.db.execute(query, (self.numbers[name],)).fetchone()
            if kind == "delta" or not place:
                yield name, self.reader.artifact(artifact)[1]


def names(line):
    """The ids of a line: Claude Code's `uuid`, a log's `message_id`, the API's id of the message or item."""
    try:
        record = json.loads(line)
    except ValueError:
        return ()
    if not isinstance(record, dict):
        return ()
    inner = record.get("message") if isinstance(record.get("message"), dict) else {}
    payload = record.get("payload") if isinstance(record.get("payload"), dict) else {}
    told = (record.get("uuid"), record.get("message_id"), inner.get("id"), payload.get("id"))
    return [name for name in told if isinstance(name, str) and name]


def is_unnamed(line):
    """Whether a record without a name begins with this line."""
    record = json.loads(line)
    return not (record.get("uuid") or record.get("message_id"))
