"""Every word of SQL the SQLite store speaks, the versions of its schema, and how a prefix is looked for.

The tables are described for strangers in docs/FORMAT.md. A store is upgraded by the steps of `STEPS` that it has not
seen, all in one transaction; which steps it has seen is written in its table `migrations`.
"""

from __future__ import annotations

APPLICATION_ID = 0x48524B4E  # "HRKN"

SCHEMA = """
CREATE TABLE migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, time INTEGER NOT NULL, sum BLOB NOT NULL);
CREATE TABLE facts (key TEXT PRIMARY KEY, value NOT NULL, sum BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE frames (n INTEGER PRIMARY KEY, hash BLOB NOT NULL, size INTEGER NOT NULL,
  prefix INTEGER REFERENCES frames, sum BLOB NOT NULL, data BLOB NOT NULL);
CREATE TABLE loose (slot INTEGER PRIMARY KEY, hash BLOB NOT NULL, size INTEGER NOT NULL, chain INTEGER NOT NULL,
  first INTEGER NOT NULL, last INTEGER NOT NULL, sum BLOB NOT NULL, data BLOB NOT NULL);
CREATE TABLE artifacts (n INTEGER PRIMARY KEY, id BLOB NOT NULL, frame INTEGER, start INTEGER,
  size INTEGER NOT NULL, policy TEXT, expires INTEGER, sum BLOB NOT NULL);
CREATE INDEX artifacts_by_id ON artifacts (substr(id, 1, 8));
CREATE TABLE parts (artifact INTEGER NOT NULL REFERENCES artifacts, part INTEGER NOT NULL,
  frame INTEGER NOT NULL REFERENCES frames, size INTEGER NOT NULL, sum BLOB NOT NULL,
  PRIMARY KEY (artifact, part)) WITHOUT ROWID;
CREATE TABLE origins (n INTEGER PRIMARY KEY, session_id TEXT NOT NULL, format TEXT NOT NULL, commit_type TEXT NOT NULL,
  checkpoint TEXT NOT NULL, template TEXT NOT NULL, ticket_id TEXT NOT NULL, thread_id TEXT NOT NULL,
  sum BLOB NOT NULL,
  UNIQUE (session_id, format, commit_type, checkpoint, template, ticket_id, thread_id));
CREATE TABLE principals (n INTEGER PRIMARY KEY, principal TEXT NOT NULL, machine TEXT NOT NULL, sum BLOB NOT NULL,
  UNIQUE (principal, machine));
CREATE TABLE commits (n INTEGER PRIMARY KEY, id BLOB NOT NULL, seal BLOB NOT NULL, twin INTEGER NOT NULL,
  digits INTEGER, parent INTEGER REFERENCES commits, artifact INTEGER NOT NULL REFERENCES artifacts,
  time INTEGER NOT NULL, origin INTEGER NOT NULL REFERENCES origins, principal INTEGER NOT NULL REFERENCES principals,
  messages INTEGER, tokens INTEGER, approximate INTEGER NOT NULL, links TEXT, sum BLOB NOT NULL);
CREATE INDEX commits_by_id ON commits (substr(id, 1, 8));
CREATE INDEX commits_by_fork ON commits (parent) WHERE parent IS NOT NULL;
CREATE INDEX commits_by_principal ON commits (principal, time);
CREATE TABLE sightings (n INTEGER PRIMARY KEY, "commit" INTEGER NOT NULL REFERENCES commits,
  principal INTEGER NOT NULL REFERENCES principals, time INTEGER NOT NULL, sum BLOB NOT NULL);
CREATE INDEX sightings_by_commit ON sightings ("commit");
CREATE INDEX sightings_by_principal ON sightings (principal, time);
CREATE TABLE annotations (n INTEGER PRIMARY KEY, "commit" INTEGER NOT NULL REFERENCES commits, key TEXT NOT NULL,
  value TEXT NOT NULL, time INTEGER NOT NULL, who TEXT NOT NULL, sum BLOB NOT NULL);
CREATE INDEX annotations_by_commit ON annotations ("commit");
CREATE TABLE names (n INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,
  target INTEGER NOT NULL REFERENCES commits, sum BLOB NOT NULL);
CREATE INDEX names_by_target ON names (target);
CREATE TABLE moves (n INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, before INTEGER REFERENCES commits,
  after INTEGER REFERENCES commits, time INTEGER NOT NULL, who TEXT NOT NULL, why TEXT NOT NULL, sum BLOB NOT NULL);
CREATE TABLE sessions (n INTEGER PRIMARY KEY, session TEXT NOT NULL UNIQUE, version INTEGER NOT NULL,
  runtime TEXT NOT NULL, tip INTEGER REFERENCES commits, live INTEGER REFERENCES commits, older TEXT NOT NULL,
  parent TEXT NOT NULL, agent TEXT NOT NULL, title TEXT NOT NULL, source TEXT NOT NULL, template TEXT NOT NULL,
  principal TEXT NOT NULL, machine TEXT NOT NULL, ticket_id TEXT NOT NULL, thread_id TEXT NOT NULL,
  started INTEGER, ended INTEGER, messages INTEGER NOT NULL, cost_usd_micros INTEGER, state BLOB NOT NULL,
  lost INTEGER NOT NULL, sum BLOB NOT NULL);
CREATE INDEX sessions_by_source ON sessions (source);
CREATE INDEX sessions_by_parent ON sessions (parent) WHERE parent <> '';
CREATE TABLE changes (n INTEGER PRIMARY KEY, count INTEGER NOT NULL, what BLOB NOT NULL, sum BLOB NOT NULL);
CREATE TABLE quarantine (n INTEGER PRIMARY KEY, time INTEGER NOT NULL, what TEXT NOT NULL, why TEXT NOT NULL,
  row TEXT NOT NULL, data BLOB);
"""

FORGETTING = """
CREATE TABLE erasures (n INTEGER PRIMARY KEY, time INTEGER NOT NULL, who TEXT NOT NULL, why TEXT NOT NULL,
  what TEXT NOT NULL, state INTEGER NOT NULL, sum BLOB NOT NULL);
CREATE TABLE tombstones (artifact INTEGER PRIMARY KEY REFERENCES artifacts, hash BLOB NOT NULL, spans TEXT NOT NULL,
  erasure INTEGER NOT NULL REFERENCES erasures, sum BLOB NOT NULL);
CREATE TABLE watchwords (n INTEGER PRIMARY KEY, erasure INTEGER NOT NULL REFERENCES erasures, size INTEGER NOT NULL,
  begin BLOB NOT NULL, salt BLOB NOT NULL, hash BLOB NOT NULL, sum BLOB NOT NULL);
"""
"""The tables of what is forgotten, which came later."""

LOST = b"lost"
"""The sum of a row of `commits` or `origins` in the place of one that a repair could not find; no other has it."""

FORGOTTEN = 2
"""In the column `lost` of a session that was forgotten on purpose."""

PUT_BACK = "to put a backup in its place, remove the files -wal and -shm beside it first"
"""SQLite would write what an old log holds into the new file."""

STEPS = tuple(
    (version, name, tuple(filter(None, map(str.strip, statements.split(";\n")))))
    for version, name, statements in ((3, "the first schema", SCHEMA), (4, "what is forgotten", FORGETTING))
)
"""Version, what the step does, and its statements. The list only grows; a step, once released, never changes. Versions
1 and 2 were never released: a store of one of them is refused."""

MARKS = (f"PRAGMA application_id = {APPLICATION_ID}", "PRAGMA user_version = {version}")
"""What says in a file's header whose it is, and of which version."""

# These two count only before anything is written, and journal_mode writes.
NEW_FILE = ("PRAGMA page_size = 4096", "PRAGMA auto_vacuum = INCREMENTAL")
EACH_CONNECTION = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA wal_autocheckpoint = 256",
    "PRAGMA busy_timeout = 200",  # `waiting.py` asks again
    "PRAGMA cache_size = -8000",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
)

TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table'"
QUARANTINE = "INSERT INTO quarantine (time, what, why, row, data) VALUES (?, ?, ?, ?, ?)"
VERSIONS = "SELECT version, name, time, sum FROM migrations ORDER BY version"
ADD_VERSION = "INSERT INTO migrations (version, name, time, sum) VALUES (?, ?, ?, ?)"

# Every row has a sum, which is its last column here (`data` comes after it); `db.checked` compares the two.

FACT = "SELECT key, value, sum FROM facts WHERE key = ?"
SET_FACT = "INSERT OR REPLACE INTO facts (key, value, sum) VALUES (?, ?, ?)"

# -- artifacts and frames --------------------------------------------------------------------------------------------

ARTIFACTS = "SELECT n, id, frame, start, size, policy, expires, sum FROM artifacts"
ARTIFACT = f"{ARTIFACTS} WHERE substr(id, 1, 8) = ? AND id = ?"
# A number once given is not given again, though the row may have gone: gc writes the highest into `facts`.
_NEXT_ARTIFACT = (
    "max(coalesce((SELECT max(n) FROM artifacts), 0), "
    "coalesce((SELECT value FROM facts WHERE key = 'artifacts'), 0)) + 1"
)
ARTIFACT_ALIKE = "SELECT 1 FROM artifacts WHERE substr(id, 1, 8) = ? LIMIT 1"
ARTIFACTS_BETWEEN = f"{ARTIFACTS} WHERE substr(id, 1, 8) >= ? AND substr(id, 1, 8) <= ?"
ARTIFACTS_AT = f"{ARTIFACTS} WHERE n IN (SELECT value FROM json_each(?))"
ADD_ARTIFACT = "INSERT INTO artifacts (n, id, frame, start, size, policy, expires, sum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
SET_ARTIFACT = "UPDATE artifacts SET frame = ?, start = ?, policy = ?, expires = ?, sum = ? WHERE n = ?"
DROP_ARTIFACT = "DELETE FROM artifacts WHERE n = ?"
PARTS = "SELECT artifact, part, frame, size, sum FROM parts WHERE artifact = ? ORDER BY part"
ADD_PART = "INSERT INTO parts (artifact, part, frame, size, sum) VALUES (?, ?, ?, ?, ?)"
DROP_PARTS = "DELETE FROM parts WHERE artifact = ?"
FRAME = "SELECT n, hash, size, prefix, sum, data FROM frames WHERE n = ?"
LOOSE_FRAME = "SELECT slot, hash, size, chain, first, last, sum, data FROM loose WHERE slot = ?"
FRAMES_AT = "SELECT n, hash, size, prefix, sum, data FROM frames WHERE n IN (SELECT value FROM json_each(?))"
LOOSE_FRAMES_AT = (
    "SELECT slot, hash, size, chain, first, last, sum, data FROM loose WHERE slot IN (SELECT value FROM json_each(?))"
)
LOOSE_HASH = "SELECT hash FROM loose WHERE slot = ?"
FRAME_PREFIX = "SELECT n, hash, size, prefix, sum FROM frames WHERE n = ?"
ADD_FRAME = "INSERT INTO frames (n, hash, size, prefix, sum, data) VALUES (?, ?, ?, ?, ?, ?)"
DROP_FRAME = "DELETE FROM frames WHERE n = ?"
# A slot is overwritten in place: that changes one page, where a row that comes and goes changes four.
FILL_SLOT = (
    "INSERT OR REPLACE INTO loose (slot, hash, size, chain, first, last, sum, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_IN_USE = "EXISTS (SELECT 1 FROM artifacts a WHERE a.n BETWEEN l.first AND l.last AND a.frame = -l.slot)"
_LOOSE = "SELECT slot, hash, size, chain, first, last, sum FROM loose l"
LOOSE_OF = f"{_LOOSE} WHERE chain = ? AND {_IN_USE} ORDER BY first"
LOOSE_ALL = f"{_LOOSE} WHERE {_IN_USE} ORDER BY chain, first"
LOOSE_EVERY = f"{_LOOSE} ORDER BY slot"
LOOSE_ROW = f"{_LOOSE} WHERE slot = ?"
SLOT_IN_USE = f"SELECT 1 FROM loose l WHERE slot = ? AND {_IN_USE}"
FREE_SLOTS = f"{_LOOSE} WHERE NOT {_IN_USE} ORDER BY slot DESC"
DROP_SLOT = "DELETE FROM loose WHERE slot = ?"
SLOT_DATA = "SELECT data FROM loose WHERE slot = ?"
LOOSE_SUMS = (
    "SELECT chain, sum(size), count(*), sum(CASE WHEN size < ? THEN size ELSE 0 END) FROM loose l "
    f"WHERE {_IN_USE} GROUP BY chain"
)
SLICES_BETWEEN = f"{ARTIFACTS} WHERE n BETWEEN ? AND ? AND frame = ? ORDER BY n"
NEXT = {
    "frame": "SELECT coalesce(max(n), 0) + 1 FROM frames",
    "slot": "SELECT coalesce(max(slot), 0) + 1 FROM loose",
    "artifact": f"SELECT {_NEXT_ARTIFACT}",
    "chain": "SELECT (coalesce(max(n), 0) >> 32) + 1 FROM commits",
    **{
        table: f"SELECT coalesce(max(n), 0) + 1 FROM {table}"
        for table in (
            *("names", "moves", "origins", "principals", "sightings", "annotations", "sessions", "changes"),
            *("erasures", "watchwords"),
        )
    },
}
"""The next number of a kind."""

# -- commits ---------------------------------------------------------------------------------------------------------

ORIGIN_COLUMNS = ("session_id", "format", "commit_type", "checkpoint", "template", "ticket_id", "thread_id")
_ORIGINS = f"SELECT n, {', '.join(ORIGIN_COLUMNS)}, sum FROM origins"
ORIGIN = f"{_ORIGINS} WHERE {' AND '.join(f'{name} = ?' for name in ORIGIN_COLUMNS)}"
ORIGINS_AT = f"{_ORIGINS} WHERE n IN (SELECT value FROM json_each(?))"
ADD_ORIGIN = f"INSERT INTO origins (n, {', '.join(ORIGIN_COLUMNS)}, sum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_PRINCIPALS = "SELECT n, principal, machine, sum FROM principals"
PRINCIPAL = f"{_PRINCIPALS} WHERE principal = ? AND machine = ?"
PRINCIPALS_AT = f"{_PRINCIPALS} WHERE n IN (SELECT value FROM json_each(?))"
PRINCIPALS_CALLED = f"{_PRINCIPALS} WHERE principal = ?"
ADD_PRINCIPAL = "INSERT INTO principals (n, principal, machine, sum) VALUES (?, ?, ?, ?)"

# A commit's row number says where it lies: chain * 2**32 + place. Its parent is the row before it, unless it says who
# that is, as the first of a chain does. Its sum is over the artifact's name, not over our number for it.
COMMIT_COLUMNS = (
    "c.n, c.id, c.seal, c.twin, c.digits, c.parent, a.id, c.time, c.origin, c.principal, c.messages, c.tokens, "
    "c.approximate, c.links, c.sum"
)
COMMITS = f"SELECT {COMMIT_COLUMNS} FROM commits c LEFT JOIN artifacts a ON a.n = c.artifact"
COMMITS_AT = f"{COMMITS} WHERE c.n IN (SELECT value FROM json_each(?))"
COMMITS_BETWEEN = f"{COMMITS} WHERE substr(c.id, 1, 8) >= ? AND substr(c.id, 1, 8) <= ? ORDER BY c.time DESC, c.n DESC"
COMMITS_NEWEST = f"{COMMITS} WHERE c.sum IS NOT x'{LOST.hex()}' ORDER BY c.time DESC, c.n DESC LIMIT ?"
# Whether there are commits between two names, whether the row of a number is taken, and whether a repair kept places
# for commits that it did not find (their names are empty): what a new one has to know.
COMMIT_ALIKE = (
    "SELECT EXISTS (SELECT 1 FROM commits WHERE substr(id, 1, 8) >= ? AND substr(id, 1, 8) <= ?), "
    "EXISTS (SELECT 1 FROM commits WHERE n = ?), EXISTS (SELECT 1 FROM commits WHERE substr(id, 1, 8) IS NULL)"
)
COMMITS_CALLED = f"{COMMITS} WHERE substr(c.id, 1, 8) IN "
ADD_COMMIT = (
    "INSERT INTO commits (n, id, seal, twin, digits, parent, artifact, time, origin, principal, messages, tokens, "
    "approximate, links, sum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
# Whether there is a commit whose name lies between the ends of one of the ranges in the braces.
ANY_NEAR = (
    "WITH near (first, last) AS (VALUES {ranges}) SELECT 1 FROM near CROSS JOIN commits c "
    "WHERE substr(c.id, 1, 8) >= near.first AND substr(c.id, 1, 8) <= near.last LIMIT 1"
)
LOST_COMMITS = f"SELECT n FROM commits WHERE substr(id, 1, 8) IS NULL AND sum = x'{LOST.hex()}' ORDER BY n"
SET_LINKS = "UPDATE commits SET links = ?, sum = ? WHERE n = ?"
TAKEN = "SELECT 1 FROM commits WHERE n BETWEEN ? AND ? LIMIT 1"
CHAIN = (
    f"SELECT {COMMIT_COLUMNS}, a.frame, a.start, a.size FROM commits c LEFT JOIN artifacts a ON a.n = c.artifact "
    "WHERE c.n BETWEEN ? AND ? ORDER BY c.n DESC LIMIT ?"
)
BEGINNING = (
    f"SELECT {COMMIT_COLUMNS}, a.frame, a.start, a.size FROM commits c LEFT JOIN artifacts a ON a.n = c.artifact "
    "WHERE c.n BETWEEN ? AND ? ORDER BY c.n LIMIT ?"
)
# The newest commit of a part of a chain that does not go on from the row before it.
LAST_FORK = "SELECT max(n) FROM commits WHERE n BETWEEN ? AND ? AND parent IS NOT NULL"
CHILDREN = f"{COMMITS} WHERE (c.n = ? AND c.parent IS NULL) OR c.parent = ? ORDER BY c.n"
# The whole row, since its sum says whether the index told the truth.
LATEST_COMMIT = f"{COMMITS} WHERE c.principal = ? AND c.time <= ? ORDER BY c.time DESC, c.n DESC LIMIT 1"
LATEST_SIGHTING = (
    'SELECT n, "commit", principal, time, sum FROM sightings WHERE principal = ? AND time <= ? '
    'ORDER BY time DESC, "commit" DESC LIMIT 1'
)
SIGHTINGS = (
    'SELECT n, "commit", principal, time, sum FROM sightings WHERE "commit" IN (SELECT value FROM json_each(?)) '
    "ORDER BY n"
)
ADD_SIGHTING = 'INSERT INTO sightings (n, "commit", principal, time, sum) VALUES (?, ?, ?, ?, ?)'

# -- what is said about them -----------------------------------------------------------------------------------------

ANNOTATIONS = (
    'SELECT n, "commit", key, value, time, who, sum FROM annotations '
    'WHERE "commit" IN (SELECT value FROM json_each(?)) ORDER BY n'
)
ADD_ANNOTATION = 'INSERT INTO annotations (n, "commit", key, value, time, who, sum) VALUES (?, ?, ?, ?, ?, ?, ?)'
NAMES = "SELECT n, name, kind, target, sum FROM names"
NAME = f"{NAMES} WHERE name = ?"
NAMES_AT = f"{NAMES} WHERE target IN (SELECT value FROM json_each(?)) ORDER BY name"
ADD_NAME = "INSERT INTO names (n, name, kind, target, sum) VALUES (?, ?, ?, ?, ?)"
SET_NAME = "UPDATE names SET target = ?, sum = ? WHERE n = ?"
DROP_NAME = "DELETE FROM names WHERE n = ?"
MOVES = (
    "SELECT n, name, kind, before, after, time, who, why, sum FROM moves "
    "WHERE ?1 IS NULL OR name = ?1 ORDER BY n DESC LIMIT ?2"
)
ADD_MOVE = "INSERT INTO moves (n, name, kind, before, after, time, who, why, sum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
SESSION_COLUMNS = (
    "n, session, version, runtime, tip, live, older, parent, agent, title, source, template, principal, machine, "
    "ticket_id, thread_id, started, ended, messages, cost_usd_micros, state, lost, sum"
)
SESSION_WORDS = ("parent", "agent", "title", "source", "template", "principal", "machine", "ticket_id", "thread_id")
"""The texts of a session's row, in the order of its columns."""
SESSIONS = f"SELECT {SESSION_COLUMNS} FROM sessions"
SESSION = f"{SESSIONS} WHERE session = ?"
SESSIONS_BETWEEN = f"{SESSIONS} WHERE session >= ? AND session < ?"
SESSIONS_FROM = f"{SESSIONS} WHERE source = ?"
# Few sessions have a parent; said so, SQLite uses the index that holds only those.
SESSIONS_BELOW = f"{SESSIONS} WHERE parent = ? AND parent <> ''"
SESSIONS_NUMBERED = f"{SESSIONS} WHERE n IN (SELECT value FROM json_each(?))"
SAVE_SESSION = (
    f"INSERT OR REPLACE INTO sessions ({SESSION_COLUMNS}) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)

_KEPT_COLUMNS = ("n", "session", "parent", "source")
SET_SESSION = (
    f"UPDATE sessions SET {', '.join(f'{c} = ?' for c in SESSION_COLUMNS.split(', ') if c not in _KEPT_COLUMNS)} "
    "WHERE n = ?"
)

# -- the feed --------------------------------------------------------------------------------------------------------

LAST_CHANGE = "SELECT n, count, what, sum FROM changes ORDER BY n DESC LIMIT 1"
ADD_CHANGES = "INSERT INTO changes (n, count, what, sum) VALUES (?, ?, ?, ?)"
CHANGES_AFTER = "SELECT n, count, what, sum FROM changes WHERE n > ? ORDER BY n LIMIT ?"


# -- what is forgotten -----------------------------------------------------------------------------------------------

ERASURES = "SELECT n, time, who, why, what, state, sum FROM erasures"
ADD_ERASURE = "INSERT OR REPLACE INTO erasures (n, time, who, why, what, state, sum) VALUES (?, ?, ?, ?, ?, ?, ?)"
TOMBSTONES = "SELECT artifact, hash, spans, erasure, sum FROM tombstones"
TOMBSTONE = f"{TOMBSTONES} WHERE artifact = ?"
TOMBSTONES_AT = f"{TOMBSTONES} WHERE artifact IN (SELECT value FROM json_each(?))"
ADD_TOMBSTONE = "INSERT OR REPLACE INTO tombstones (artifact, hash, spans, erasure, sum) VALUES (?, ?, ?, ?, ?)"
DROP_TOMBSTONE = "DELETE FROM tombstones WHERE artifact = ?"
WATCHWORDS = "SELECT n, erasure, size, begin, salt, hash, sum FROM watchwords"
# An erasure stands among them with no size: where there is none, nobody need look any further.
WATCHED = f"{WATCHWORDS} UNION ALL SELECT n, n, -1, x'', x'', x'', sum FROM erasures"
ADD_WATCHWORD = "INSERT INTO watchwords (n, erasure, size, begin, salt, hash, sum) VALUES (?, ?, ?, ?, ?, ?, ?)"
DROP_WATCHWORDS = "DELETE FROM watchwords WHERE erasure = ?"

# -- prefixes --------------------------------------------------------------------------------------------------------


def ranges(prefix: str) -> list[tuple[str | bytes, str | bytes]]:
    """The least text that begins like this and the least that comes after all of them, as text and as bytes.

    Text that is not UTF-8 is kept as bytes, and SQLite sorts those apart."""
    try:
        found: list[tuple[str | bytes, str | bytes]] = [(prefix, _after(prefix))]
    except UnicodeEncodeError:
        found = []
    data = prefix.encode("utf-8", "surrogatepass")
    stripped = data.rstrip(b"\xff")
    return [*found, (data, stripped[:-1] + bytes([stripped[-1] + 1]))]


def _after(prefix: str) -> str | bytes:
    prefix.encode()
    cut = prefix.rstrip("\U0010ffff")
    if not cut:
        return b""  # bytes, even none, come after all text
    following = ord(cut[-1]) + 1
    return cut[:-1] + chr(0xE000 if following == 0xD800 else following)
