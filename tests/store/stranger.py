"""A reader of stores written from docs/FORMAT.md alone: SQLite, zstd, BLAKE3, and nothing of Harken's."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from datetime import UTC, datetime, timedelta

import blake3
import zstandard


def keyed(name, data):
    return blake3.blake3(data, key=name.encode().ljust(32, b"\0")).digest()


def listed(*items):
    out = b""
    for item in items:
        if item is None:
            out += b"-;"
            continue
        data = item if isinstance(item, bytes) else str(item).encode("utf-8", "surrogatepass")
        out += b"%d:" % len(data) + data + b";"
    return out


def words(value):
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value


class Reader:
    """Everything a store says, each statement checked against its hash."""

    def __init__(self, path):
        self.db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.seen = {}
        assert self.value("PRAGMA application_id") == 0x48524B4E
        assert self.value("PRAGMA user_version") == self.value("SELECT max(version) FROM migrations") == 1

    def value(self, query, *values):
        return self.db.execute(query, values).fetchone()[0]

    def sum_is(self, total, *items):
        assert keyed("harken.store.row", listed(*items))[:8] == total

    # -- artifacts -------------------------------------------------------------------------------------------------

    def frame(self, number):
        if number not in self.seen:
            self.seen[number] = self.open_frame(number)
        return self.seen[number]

    def open_frame(self, number):
        if number > 0:
            row = self.db.execute("SELECT hash, size, prefix, data FROM frames WHERE n = ?", (number,)).fetchone()
        else:
            row = self.db.execute("SELECT hash, size, NULL, data FROM loose WHERE slot = ?", (-number,)).fetchone()
        hash, size, prefix, data = row
        assert keyed("harken.store.frame", data) == hash
        assert zstandard.frame_content_size(data) == size <= 4 << 20
        if prefix is None:
            return zstandard.ZstdDecompressor().decompress(data)
        raw = zstandard.ZstdCompressionDict(self.frame(prefix), dict_type=zstandard.DICT_TYPE_RAWCONTENT)
        return zstandard.ZstdDecompressor(dict_data=raw).decompress(data)

    def artifact(self, number):
        """The bytes of an artifact, or None if it was evicted."""
        id, frame, start, size = self.db.execute(
            "SELECT id, frame, start, size FROM artifacts WHERE n = ?", (number,)
        ).fetchone()
        if frame is not None:
            content = self.frame(frame)[start : start + size]
        else:
            parts = self.db.execute("SELECT frame FROM parts WHERE artifact = ? ORDER BY part", (number,)).fetchall()
            if not parts:
                return id.hex(), None
            content = b"".join(self.frame(part) for (part,) in parts)
        assert len(content) == size
        assert keyed("bureau.artifact.file", keyed("bureau.artifact.chunk", content)) == id
        return id.hex(), content

    def artifacts(self):
        return dict(self.artifact(number) for (number,) in self.db.execute("SELECT n FROM artifacts").fetchall())

    # -- commits ---------------------------------------------------------------------------------------------------

    def parent(self, n, parent):
        return n - 1 if n & 0xFFFFFFFF else parent

    def name(self, n):
        if n is None:
            return ""
        id, seal, twin = self.db.execute("SELECT id, seal, twin FROM commits WHERE n = ?", (n,)).fetchone()
        return (id + seal if twin else id).hex()

    def commits(self):
        found = {}
        query = "SELECT c.*, a.id FROM commits c JOIN artifacts a ON a.n = c.artifact"
        for row in self.db.execute(query).fetchall():
            (
                n,
                id,
                seal,
                twin,
                _,
                parent,
                _,
                time,
                origin,
                principal,
                messages,
                tokens,
                approximate,
                links,
                total,
                art,
            ) = row
            session, format, kind, checkpoint, template, ticket, thread = map(
                words,
                self.db.execute(
                    "SELECT session_id, format, commit_type, checkpoint, template, ticket_id, thread_id FROM origins "
                    "WHERE n = ?",
                    (origin,),
                ).fetchone(),
            )
            who, where = map(
                words, self.db.execute("SELECT principal, machine FROM principals WHERE n = ?", (principal,)).fetchone()
            )
            created = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=time // 1_000_000)).strftime(
                "%Y-%m-%dT%H:%M:%SZ"
            )
            above = self.parent(n, parent)
            above_name = self.name(above)
            named = "\0".join(
                ("ctx-" + above_name[:8] if above_name else "", "art-" + art.hex()[:12], created, template)
            )
            assert hashlib.sha256(named.encode()).digest() == id
            above_seal = self.value("SELECT seal FROM commits WHERE n = ?", above).hex() if above is not None else ""
            sealed = ("1", art.hex(), above_seal, created, template, format, kind, checkpoint, session, ticket, thread)
            assert keyed("harken.commit.seal", listed(*sealed)) == seal
            self.sum_is(total, id, seal, twin, time, who, where, messages, tokens, approximate, links)
            found[self.name(n)] = {
                "parent": above_name,
                "artifact": art.hex(),
                "format": format,
                "commit_type": kind,
                "checkpoint": checkpoint,
                "created_at": created,
                "time": time,
                "template": template,
                "principal": who,
                "machine": where,
                "session_id": session,
                "message_count": messages,
                "token_count": tokens,
                "spawned_from": json.loads(links or "{}").get("spawned_from"),
                "forked_from": json.loads(links or "{}").get("forked_from", ""),
            }
        return found

    def chain(self, name):
        n = self.value("SELECT n FROM commits WHERE id = ? AND twin = 0", bytes.fromhex(name))
        walked = []
        while n is not None:
            first = n >> 32 << 32
            rows = self.db.execute("SELECT n, parent FROM commits WHERE n BETWEEN ? AND ? ORDER BY n DESC", (first, n))
            for row, parent in rows.fetchall():
                walked.append(self.name(row))
                n = parent
        return walked

    def both(self, n):
        return (
            None
            if n is None
            else b"".join(self.db.execute("SELECT id, seal FROM commits WHERE n = ?", (n,)).fetchone())
        )

    def said(self):
        """Sums of everything else; the answer is the names and where they point."""
        for commit, key, value, time, who, total in self.db.execute(
            'SELECT "commit", key, value, time, who, sum FROM annotations'
        ).fetchall():
            self.sum_is(total, self.both(commit), words(key), words(value), time, words(who))
        for commit, principal, time, total in self.db.execute(
            'SELECT "commit", principal, time, sum FROM sightings'
        ).fetchall():
            who = self.db.execute("SELECT principal, machine FROM principals WHERE n = ?", (principal,)).fetchone()
            self.sum_is(total, self.both(commit)[:32], *map(words, who), time)
        for n, name, kind, before, after, time, who, why, total in self.db.execute("SELECT * FROM moves").fetchall():
            self.sum_is(total, n, name, kind, self.both(before), self.both(after), time, words(who), words(why))
        for _, session, runtime, tip, *rest, total in self.db.execute("SELECT * FROM sessions").fetchall():
            self.sum_is(total, words(session), words(runtime), self.both(tip), *map(words, rest[:4]), *rest[4:])
        for artifact, policy, expires, total in self.db.execute("SELECT * FROM policies").fetchall():
            self.sum_is(total, artifact, policy, expires)
        for version, name, time, total in self.db.execute("SELECT * FROM migrations").fetchall():
            self.sum_is(total, version, name, time)
        names = {}
        for name, kind, target, total in self.db.execute("SELECT * FROM names").fetchall():
            self.sum_is(total, name, kind, self.both(target))
            names[name] = self.name(target)
        return names
