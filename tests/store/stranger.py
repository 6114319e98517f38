"""A reader of stores written from docs/FORMAT.md alone: SQLite, zstd, BLAKE3, and nothing of Harken's."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from datetime import UTC, datetime, timedelta

import blake3
import zstandard

SECONDS = "%Y-%m-%dT%H:%M:%SZ"


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


def packed(item):
    """MessagePack, each value in its shortest form: nothing, whole numbers, bytes, text, arrays."""
    if item is None:
        return b"\xc0"
    if isinstance(item, int):
        return number(item)
    if isinstance(item, list | tuple):
        items = b"".join(map(packed, item))
        return bytes([0x90 | len(item)]) + items if len(item) < 16 else b"\xdc" + len(item).to_bytes(2, "big") + items
    data = item if isinstance(item, bytes) else item.encode()
    if isinstance(item, str) and len(data) < 32:
        return bytes([0xA0 | len(data)]) + data
    head = b"\xc4\xc5\xc6" if isinstance(item, bytes) else b"\xd9\xda\xdb"
    size = 0 if len(data) < 1 << 8 else 1 if len(data) < 1 << 16 else 2
    return head[size : size + 1] + len(data).to_bytes(1 << size, "big") + data


def number(value):
    if 0 <= value < 128 or -32 <= value < 0:
        return value.to_bytes(1, "big", signed=value < 0)
    for size in range(4):
        if 0 <= value < 1 << (8 << size):
            return bytes([0xCC + size]) + value.to_bytes(1 << size, "big")
        if -(1 << (8 << size) - 1) <= value < 0:
            return bytes([0xD0 + size]) + value.to_bytes(1 << size, "big", signed=True)
    raise ValueError(value)


def unpacked(data):
    """One MessagePack value."""

    def take(at):
        head = data[at]
        if head < 0x80 or head >= 0xE0:
            return (head if head < 0x80 else head - 256), at + 1
        if head & 0xF0 == 0x90 or head in (0xDC, 0xDD):
            size = {0xDC: 2, 0xDD: 4}.get(head, 0)
            count = int.from_bytes(data[at + 1 : at + 1 + size], "big") if size else head & 0x0F
            items, at = [], at + 1 + size
            for _ in range(count):
                item, at = take(at)
                items.append(item)
            return items, at
        if 0xCC <= head <= 0xD3:
            size = 1 << (head - 0xCC) % 4
            return int.from_bytes(data[at + 1 : at + 1 + size], "big", signed=head >= 0xD0), at + 1 + size
        if head & 0xE0 == 0xA0:
            return data[at + 1 : at + 1 + (head & 0x1F)].decode(), at + 1 + (head & 0x1F)
        size = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}[head]
        end = at + 1 + size + int.from_bytes(data[at + 1 : at + 1 + size], "big")
        found = data[at + 1 + size : end]
        return (found if head <= 0xC6 else found.decode()), end

    return take(0)[0]


class Reader:
    """Everything a store says, each statement checked against its hash."""

    def __init__(self, path):
        self.db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.seen = {}
        assert self.value("PRAGMA application_id") == 0x48524B4E
        assert self.value("PRAGMA user_version") == self.value("SELECT max(version) FROM migrations") == 4

    def value(self, query, *values):
        return self.db.execute(query, values).fetchone()[0]

    def sum_is(self, table, *row):
        """The last column is the sum of those before it."""
        assert keyed("harken.store.row", packed([table, *row[:-1]]))[:8] == row[-1], (table, row)

    def sums(self):
        """The sum of every row of every table but commits; `data` is not part of it, its hash is."""
        tables = [name for (name,) in self.db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for table in set(tables) - {"commits", "quarantine"}:
            columns = [name for _, name, *_ in self.db.execute(f"PRAGMA table_info({table})") if name != "data"]
            listed = ", ".join('"' + name + '"' for name in columns)
            for row in self.db.execute(f"SELECT {listed} FROM {table}").fetchall():
                self.sum_is(table, *row)

    def feed(self):
        """Number, kind and row of every change."""
        kinds = ["artifact", "policy", "commit", "sighting", "name", "session", "annotation", "eviction", "link"]
        told = []
        for n, count, what in self.db.execute("SELECT n, count, what FROM changes ORDER BY n"):
            changes = unpacked(what)
            assert count == len(changes)
            told += [(n - count + 1 + i, kinds[kind], *rest) for i, (kind, *rest) in enumerate(changes)]
        return told

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
        return n - 1 if parent is None and n & 0xFFFFFFFF else parent

    def name(self, n):
        if n is None:
            return ""
        id, seal, twin = self.db.execute("SELECT id, seal, twin FROM commits WHERE n = ?", (n,)).fetchone()
        return (id + seal if twin else id).hex()

    def row(self, query, *values):
        """A row as a mapping."""
        cursor = self.db.execute(query, values)
        return dict(zip((column[0] for column in cursor.description), map(words, cursor.fetchone()), strict=True))

    def commits(self):
        numbers = self.db.execute("SELECT n FROM commits").fetchall()
        return {self.name(n): self.commit(n) for (n,) in numbers}

    def commit(self, n):
        """What a commit says, checked against its name, its seal and its sum."""
        row = self.db.execute("SELECT * FROM commits WHERE n = ?", (n,)).fetchone()
        _, id, seal, _, _, parent, artifact, time, origin, principal, messages, tokens, _, links, _ = row
        art = self.value("SELECT id FROM artifacts WHERE n = ?", artifact)
        self.sum_is("commits", *row[:6], art, *row[7:])
        created = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=time // 1_000_000)).strftime(SECONDS)
        said = self.row(
            "SELECT session_id, format, commit_type, checkpoint, template, ticket_id, thread_id FROM origins "
            "WHERE n = ?",
            origin,
        )
        who = self.row("SELECT principal, machine FROM principals WHERE n = ?", principal)
        above = self.parent(n, parent)
        self.check_names(id, seal, above, art, created, said)
        return {
            "parent": self.name(above),
            "artifact": art.hex(),
            "format": said["format"],
            "commit_type": said["commit_type"],
            "checkpoint": said["checkpoint"],
            "created_at": created,
            "time": time,
            "template": said["template"],
            **who,
            "session_id": said["session_id"],
            "message_count": messages,
            "token_count": tokens,
            "spawned_from": json.loads(links or "{}").get("spawned_from"),
            "forked_from": json.loads(links or "{}").get("forked_from", ""),
        }

    def check_names(self, id, seal, above, art, created, said):
        """The name of a commit is made from little of it, its seal from everything that never changes."""
        above_name = self.name(above)
        named = (f"ctx-{above_name[:8]}" if above_name else "", f"art-{art.hex()[:12]}", created, said["template"])
        assert hashlib.sha256("\0".join(named).encode()).digest() == id
        above_seal = self.value("SELECT seal FROM commits WHERE n = ?", above).hex() if above is not None else ""
        told = [said[name] for name in ("template", "format", "commit_type", "checkpoint")]
        told += [said[name] for name in ("session_id", "ticket_id", "thread_id")]
        assert keyed("harken.commit.seal", listed("1", art.hex(), above_seal, created, *told)) == seal

    def chain(self, name):
        n = self.value("SELECT n FROM commits WHERE id = ? AND twin = 0", bytes.fromhex(name))
        walked = []
        while n is not None:
            first = n >> 32 << 32
            rows = self.db.execute("SELECT n, parent FROM commits WHERE n BETWEEN ? AND ? ORDER BY n DESC", (first, n))
            for row, parent in rows.fetchall():
                walked.append(self.name(row))
                n = parent
                if parent is not None:
                    break
        return walked

    def names(self):
        """Where branches and tags point."""
        found = self.db.execute("SELECT name, target FROM names").fetchall()
        return {name: self.name(target) for name, target in found}
