"""Every word of SQL the SQLite store speaks, and the versions of its schema.

The tables are described for strangers in docs/FORMAT.md. A store is upgraded by the steps of `STEPS` that it has not
seen, all in one transaction; which steps it has seen is written in its table `migrations`.
"""

from __future__ import annotations

APPLICATION_ID = 0x48524B4E  # "HRKN"

FIRST = """
CREATE TABLE migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, time INTEGER NOT NULL, sum BLOB NOT NULL);
CREATE TABLE frames (n INTEGER PRIMARY KEY, hash BLOB NOT NULL, size INTEGER NOT NULL,
  prefix INTEGER REFERENCES frames, data BLOB NOT NULL);
CREATE TABLE loose (slot INTEGER PRIMARY KEY, hash BLOB NOT NULL, size INTEGER NOT NULL, chain INTEGER NOT NULL,
  first INTEGER NOT NULL, last INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE artifacts (n INTEGER PRIMARY KEY, id BLOB NOT NULL, frame INTEGER, start INTEGER,
  size INTEGER NOT NULL);
CREATE INDEX artifacts_by_id ON artifacts (substr(id, 1, 8));
CREATE TABLE parts (artifact INTEGER NOT NULL REFERENCES artifacts, part INTEGER NOT NULL,
  frame INTEGER NOT NULL REFERENCES frames, size INTEGER NOT NULL, PRIMARY KEY (artifact, part)) WITHOUT ROWID;
CREATE TABLE policies (artifact INTEGER PRIMARY KEY REFERENCES artifacts, policy TEXT NOT NULL, expires INTEGER,
  sum BLOB NOT NULL);
CREATE TABLE origins (n INTEGER PRIMARY KEY, session_id TEXT NOT NULL, format TEXT NOT NULL, commit_type TEXT NOT NULL,
  checkpoint TEXT NOT NULL, template TEXT NOT NULL, ticket_id TEXT NOT NULL, thread_id TEXT NOT NULL,
  UNIQUE (session_id, format, commit_type, checkpoint, template, ticket_id, thread_id));
CREATE TABLE principals (n INTEGER PRIMARY KEY, principal TEXT NOT NULL, machine TEXT NOT NULL,
  UNIQUE (principal, machine));
CREATE TABLE commits (n INTEGER PRIMARY KEY, id BLOB NOT NULL, seal BLOB NOT NULL, twin INTEGER NOT NULL,
  digits INTEGER, parent INTEGER REFERENCES commits, artifact INTEGER NOT NULL REFERENCES artifacts,
  time INTEGER NOT NULL, origin INTEGER NOT NULL REFERENCES origins, principal INTEGER NOT NULL REFERENCES principals,
  messages INTEGER NOT NULL, tokens INTEGER NOT NULL, approximate INTEGER NOT NULL, links TEXT, sum BLOB NOT NULL);
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
CREATE TABLE names (name TEXT PRIMARY KEY, kind TEXT NOT NULL, target INTEGER NOT NULL REFERENCES commits,
  sum BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE moves (n INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, before INTEGER REFERENCES commits,
  after INTEGER REFERENCES commits, time INTEGER NOT NULL, who TEXT NOT NULL, why TEXT NOT NULL, sum BLOB NOT NULL);
CREATE TABLE sessions (n INTEGER PRIMARY KEY, session TEXT NOT NULL UNIQUE, runtime TEXT NOT NULL,
  tip INTEGER REFERENCES commits, parent TEXT NOT NULL, agent TEXT NOT NULL, title TEXT NOT NULL, source TEXT NOT NULL,
  started INTEGER, ended INTEGER, messages INTEGER NOT NULL, state BLOB NOT NULL, sum BLOB NOT NULL);
CREATE INDEX sessions_by_source ON sessions (source);
CREATE TABLE quarantine (n INTEGER PRIMARY KEY, time INTEGER NOT NULL, what TEXT NOT NULL, why TEXT NOT NULL,
  row TEXT NOT NULL, data BLOB);
"""

STEPS: tuple[tuple[int, str, str], ...] = ((1, "the first schema", FIRST),)
"""Version, what the step does, and its SQL. The list only grows; a step, once released, never changes."""

# These two count only before anything is written, and journal_mode writes.
NEW_FILE = ("PRAGMA page_size = 4096", "PRAGMA auto_vacuum = INCREMENTAL")
EACH_CONNECTION = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA wal_autocheckpoint = 256",
    "PRAGMA busy_timeout = 60000",
    "PRAGMA cache_size = -8000",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
)

TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table'"
VERSIONS = "SELECT version, name FROM migrations ORDER BY version"
ADD_VERSION = "INSERT INTO migrations (version, name, time, sum) VALUES (?, ?, ?, ?)"

# -- artifacts and frames --------------------------------------------------------------------------------------------

ARTIFACT = "SELECT n, frame, start, size FROM artifacts WHERE substr(id, 1, 8) = ? AND id = ?"
# The artifact if it is there, and last the next number.
ARTIFACT_AND_NEXT = f"{ARTIFACT} UNION ALL SELECT coalesce(max(n), 0) + 1, NULL, NULL, NULL FROM artifacts"
ARTIFACTS_FROM = "SELECT id FROM artifacts WHERE substr(id, 1, 8) >= ? AND substr(id, 1, 8) <= ?"
ADD_ARTIFACT = "INSERT INTO artifacts (n, id, frame, start, size) VALUES (?, ?, ?, ?, ?)"
PLACE_ARTIFACT = "UPDATE artifacts SET frame = ?, start = ? WHERE n = ?"
DROP_ARTIFACT = "DELETE FROM artifacts WHERE n = ?"
PARTS = "SELECT frame, size FROM parts WHERE artifact = ? ORDER BY part"
ADD_PART = "INSERT INTO parts (artifact, part, frame, size) VALUES (?, ?, ?, ?)"
DROP_PARTS = "DELETE FROM parts WHERE artifact = ?"
POLICY = "SELECT policy, expires FROM policies WHERE artifact = ?"
SET_POLICY = "INSERT OR REPLACE INTO policies (artifact, policy, expires, sum) VALUES (?, ?, ?, ?)"
DROP_POLICY = "DELETE FROM policies WHERE artifact = ?"
FRAME = "SELECT hash, size, prefix, data FROM frames WHERE n = ?"
LOOSE_FRAME = "SELECT hash, size, NULL, data FROM loose WHERE slot = ?"
LOOSE_HASH = "SELECT hash FROM loose WHERE slot = ?"
FRAME_PREFIX = "SELECT prefix FROM frames WHERE n = ?"
ADD_FRAME = "INSERT INTO frames (n, hash, size, prefix, data) VALUES (?, ?, ?, ?, ?)"
DROP_FRAME = "DELETE FROM frames WHERE n = ?"
# A slot is overwritten in place: that changes one page, where a row that comes and goes changes four.
FILL_SLOT = "INSERT OR REPLACE INTO loose (slot, hash, size, chain, first, last, data) VALUES (?, ?, ?, ?, ?, ?, ?)"
_IN_USE = "EXISTS (SELECT 1 FROM artifacts a WHERE a.n BETWEEN l.first AND l.last AND a.frame = -l.slot)"
_LOOSE = "SELECT slot, hash, size, chain, first, last FROM loose l"
LOOSE_OF = f"{_LOOSE} WHERE chain = ? AND {_IN_USE} ORDER BY first"
LOOSE_ALL = f"{_LOOSE} WHERE {_IN_USE} ORDER BY chain, first"
LOOSE_ROW = f"{_LOOSE} WHERE slot = ?"
SLOT_IN_USE = f"SELECT 1 FROM loose l WHERE slot = ? AND {_IN_USE}"
FREE_SLOTS = f"SELECT slot FROM loose l WHERE NOT {_IN_USE} ORDER BY slot DESC"
DROP_FREE_SLOTS = f"DELETE FROM loose AS l WHERE NOT {_IN_USE}"
SETTLE = "INSERT INTO frames (n, hash, size, data) SELECT ?, hash, size, data FROM loose WHERE slot = ?"
LOOSE_SUMS = (
    "SELECT chain, sum(size), count(*), sum(CASE WHEN size < ? THEN size ELSE 0 END) FROM loose l "
    f"WHERE {_IN_USE} GROUP BY chain"
)
SLICES_BETWEEN = "SELECT n, start, size FROM artifacts WHERE n BETWEEN ? AND ? AND frame = ? ORDER BY n"
NEXT = {
    "frame": "SELECT coalesce(max(n), 0) + 1 FROM frames",
    "slot": "SELECT coalesce(max(slot), 0) + 1 FROM loose",
    "artifact": "SELECT coalesce(max(n), 0) + 1 FROM artifacts",
    "chain": "SELECT (coalesce(max(n), 0) >> 32) + 1 FROM commits",
    "move": "SELECT coalesce(max(n), 0) + 1 FROM moves",
}
"""The next number of a kind."""

# -- commits ---------------------------------------------------------------------------------------------------------

ORIGIN_COLUMNS = ("session_id", "format", "commit_type", "checkpoint", "template", "ticket_id", "thread_id")
ORIGIN = f"SELECT n FROM origins WHERE {' AND '.join(f'{name} = ?' for name in ORIGIN_COLUMNS)}"
ADD_ORIGIN = f"INSERT INTO origins ({', '.join(ORIGIN_COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?, ?)"
ORIGINS = f"SELECT n, {', '.join(ORIGIN_COLUMNS)} FROM origins"
PRINCIPAL = "SELECT n FROM principals WHERE principal = ? AND machine = ?"
ADD_PRINCIPAL = "INSERT INTO principals (principal, machine) VALUES (?, ?)"
PRINCIPALS = "SELECT n, principal, machine FROM principals"

# A commit's row number says where it lies: chain * 2**32 + place. Its parent is the row before it; only the first of
# a chain says who its parent is.
COMMIT_COLUMNS = (
    "c.n, c.id, c.seal, c.twin, c.digits, c.parent, c.time, c.origin, c.principal, c.messages, c.tokens, "
    "c.approximate, c.links, a.id"
)
COMMITS = f"SELECT {COMMIT_COLUMNS} FROM commits c JOIN artifacts a ON a.n = c.artifact"
COMMIT_BY_N = f"{COMMITS} WHERE c.n = ?"
COMMITS_BETWEEN = f"{COMMITS} WHERE substr(c.id, 1, 8) >= ? AND substr(c.id, 1, 8) <= ? ORDER BY c.time DESC, c.n DESC"
COMMITS_NEWEST = f"{COMMITS} ORDER BY c.time DESC, c.n DESC LIMIT ?"
ALIKE = "SELECT n, id, seal, twin, digits FROM commits WHERE substr(id, 1, 8) >= ? AND substr(id, 1, 8) <= ? ORDER BY n"
# The same, and last a row of NULLs if there is a commit at a certain place.
ALIKE_OR_AT = (
    "SELECT n, id, seal, twin, digits FROM commits WHERE substr(id, 1, 8) >= ? AND substr(id, 1, 8) <= ? "
    "UNION ALL SELECT n, NULL, NULL, NULL, NULL FROM commits WHERE n = ?"
)
COMMIT_NAME = "SELECT id, seal, twin FROM commits WHERE n = ?"
ADD_COMMIT = (
    "INSERT INTO commits (n, id, seal, twin, digits, parent, artifact, time, origin, principal, messages, tokens, "
    "approximate, links, sum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
SET_DIGITS = "UPDATE commits SET digits = ? WHERE n = ?"
CHAIN = f"{COMMITS} WHERE c.n BETWEEN ? AND ? ORDER BY c.n DESC"
# The seal is part of the name of a twin only.
WALK = (
    "SELECT c.parent, c.id, CASE c.twin WHEN 0 THEN x'' ELSE c.seal END, c.origin, c.messages, c.tokens, "
    "c.approximate, a.id, a.frame, a.start, a.size "
    "FROM commits c JOIN artifacts a ON a.n = c.artifact WHERE c.n BETWEEN ? AND ? ORDER BY c.n DESC"
)
CHILDREN = f"{COMMITS} WHERE c.n = ? OR c.parent = ? ORDER BY c.n"
LATEST_COMMIT = "SELECT time, n FROM commits WHERE principal = ? AND time <= ? ORDER BY time DESC, n DESC LIMIT 1"
LATEST_SIGHTING = (
    'SELECT time, "commit" FROM sightings WHERE principal = ? AND time <= ? ORDER BY time DESC, "commit" DESC LIMIT 1'
)
PRINCIPAL_ROWS = "SELECT n FROM principals WHERE principal = ?"
SIGHTINGS = 'SELECT principal, time FROM sightings WHERE "commit" = ? ORDER BY n'
ADD_SIGHTING = 'INSERT INTO sightings ("commit", principal, time, sum) VALUES (?, ?, ?, ?)'

# -- what is said about them -----------------------------------------------------------------------------------------

ANNOTATIONS = 'SELECT key, value, time, who FROM annotations WHERE "commit" = ? ORDER BY n'
ADD_ANNOTATION = 'INSERT INTO annotations ("commit", key, value, time, who, sum) VALUES (?, ?, ?, ?, ?, ?)'
NAMES = "SELECT m.name, m.kind, c.id, c.seal, c.twin FROM names m JOIN commits c ON c.n = m.target"
NAME = f"{NAMES} WHERE m.name = ?"
SET_NAME = "INSERT OR REPLACE INTO names (name, kind, target, sum) VALUES (?, ?, ?, ?)"
DROP_NAME = "DELETE FROM names WHERE name = ?"
MOVES = (
    "SELECT m.n, m.name, m.kind, b.id, b.seal, b.twin, a.id, a.seal, a.twin, m.time, m.who, m.why FROM moves m "
    "LEFT JOIN commits b ON b.n = m.before LEFT JOIN commits a ON a.n = m.after "
    "WHERE ?1 IS NULL OR m.name = ?1 ORDER BY m.n DESC LIMIT ?2"
)
ADD_MOVE = "INSERT INTO moves (n, name, kind, before, after, time, who, why, sum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
SESSIONS = (
    "SELECT s.session, s.runtime, c.id, c.seal, c.twin, s.parent, s.agent, s.title, s.source, s.started, s.ended, "
    "s.messages, s.state FROM sessions s LEFT JOIN commits c ON c.n = s.tip "
    "WHERE (?1 = '' OR substr(s.session, 1, length(?1)) = ?1) AND (?2 IS NULL OR s.source = ?2) ORDER BY s.n"
)
SAVE_SESSION = (
    "INSERT INTO sessions (session, runtime, tip, parent, agent, title, source, started, ended, messages, state, sum) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (session) DO UPDATE SET runtime = excluded.runtime, "
    "tip = excluded.tip, parent = excluded.parent, agent = excluded.agent, title = excluded.title, "
    "source = excluded.source, started = excluded.started, ended = excluded.ended, messages = excluded.messages, "
    "state = excluded.state, sum = excluded.sum"
)
