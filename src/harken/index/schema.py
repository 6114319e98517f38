"""The tables of the index file. A change here, or of the prices that its costs come from, raises `VERSION`: a file of
another version is built again.

Instants are microseconds, sizes bytes, money micro-dollars. `messages.session` and its like are the number of a row in
`sessions`, `messages."commit"` that of a row in `commits`.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

VERSION = 30

CACHE_WRITE = (
    "CASE WHEN coalesce(cache_write_5m, cache_write_1h) IS NOT NULL"
    " THEN coalesce(cache_write_5m, 0) + coalesce(cache_write_1h, 0) END"
)
"""Tokens that a row of `usage` wrote to the cache; NULL where nobody said."""

USED_TOKENS = (
    "coalesce(input, 0) + coalesce(output, 0) + coalesce(cache_read, 0) + coalesce(cache_write_5m, 0)"
    " + coalesce(cache_write_1h, 0) > 0"
)
"""Whether a row of `usage` tells of tokens: one that only says what a process cost does not."""


_MAGIC = b"SQLite format 3\0"
_TELLS = b"CREATE VIRTUAL TABLE words USING fts5("
_LOOKED_AT = 1 << 20
"""Bytes at the beginning of a file: its tables were made first."""


def exact_sum(what: str) -> str:
    """The sum of token counts: NULL where all are. SQLite's own fails beyond 63 bits, and so for every session where
    one claims to have used that much; up to 53 bits this is exact, and more than that cannot be."""
    return f"CASE WHEN count({what}) THEN CAST(total({what}) AS INTEGER) END"


UNCOUNTED = "(SELECT session FROM stale UNION SELECT session FROM unsummed)"
"""The sessions whose numbers are not up to date."""

TRIGGERS = "\n".join(
    f"CREATE TRIGGER {table}_{event} AFTER {event} ON {table} WHEN {row}.session IS NOT NULL"
    f" BEGIN INSERT OR IGNORE INTO unsummed VALUES ({row}.session); END;"
    for table in ("usage", "calls")
    for event, row in (("insert", "new"), ("update", "new"), ("delete", "old"))
)
"""Whoever changes what is added up makes the totals of that session be made again."""

TABLES = f"""
CREATE TABLE state (key TEXT PRIMARY KEY, value) WITHOUT ROWID;

CREATE TABLE sessions (
  n INTEGER PRIMARY KEY,
  session TEXT NOT NULL UNIQUE,
  runtime TEXT,             -- what follows is NULL where the store has no row of that session
  project TEXT,
  title TEXT,
  parent TEXT,
  agent TEXT,
  started INTEGER,
  ended INTEGER
);
CREATE TABLE stale (session INTEGER PRIMARY KEY            -- its numbers have to be made again
);

CREATE TABLE commits (
  n INTEGER PRIMARY KEY,
  "commit" BLOB NOT NULL UNIQUE,                           -- its full name
  session INTEGER,                                         -- NULL where the commit names none
  "end" INTEGER,                                           -- the place in its chain behind its delta; NULL if unknown
  rows TEXT,                                               -- a letter for each row of a transcript; NULL if not read
  agents TEXT,                                             -- whose rows they are; NULL where all are the chain's own
  marks TEXT,                                              -- what an outline names of them, as JSON
  names BLOB,                                              -- what their records are called, 32 bits each
  beside BLOB,                                             -- records without a row: that before which each stands
  calls BLOB,                                              -- what tells calls and results that are told again
  hooked INTEGER NOT NULL,                                 -- something in its chain up to it may be a hook's doing
  since INTEGER,                                           -- recorded from a stream: the last message before the run
  agent TEXT NOT NULL,                                     -- the sub-agent whose chain it is, if its records do not say
  upto INTEGER NOT NULL                                    -- the last message when it was taken in
);
CREATE INDEX commits_by_session ON commits (session);
CREATE TABLE problems (
"commit" TEXT, artifact TEXT NOT NULL, session TEXT, why TEXT,
damaged INTEGER NOT NULL,                                -- 0: evicted, or of a format that is not here; -1: forgotten
PRIMARY KEY ("commit", session, why)                     -- of a damaged row neither commit nor session is known
);
CREATE INDEX problems_by_artifact ON problems (artifact);

CREATE TABLE messages (
  n INTEGER PRIMARY KEY,                                   -- the row of its words, in the order of arrival
  key INTEGER NOT NULL UNIQUE,                             -- 64 bits of its name, the same for its copies
  session INTEGER,
  agent TEXT,                                              -- NULL for the session's own
  role TEXT NOT NULL,
  tool TEXT,
  model TEXT,
  time INTEGER,
  "commit" INTEGER,                                        -- NULL for a title
  record TEXT,                                             -- what SESSION@RECORD names
  event INTEGER NOT NULL,                                  -- its place among the events of the record
  size INTEGER NOT NULL,                                   -- characters
  sum INTEGER NOT NULL                                     -- tells whether the text is the same
);
CREATE INDEX messages_by_session ON messages (session, role);
CREATE TABLE copies (
  message INTEGER, session INTEGER, record TEXT,           -- the record that says it again there
  "commit" INTEGER,
  PRIMARY KEY (message, session)
) WITHOUT ROWID;
CREATE TABLE carried (                                     -- copies in another runtime, of which forks may make copies
  key INTEGER PRIMARY KEY,                                 -- by which one is known there
  message INTEGER NOT NULL
);
CREATE INDEX carried_by_message ON carried (message);
CREATE TABLE continued (                                   -- sessions whose own files say what they go on from
  session INTEGER PRIMARY KEY,
  "commit" BLOB NOT NULL,                                  -- that
  told INTEGER NOT NULL                                    -- whether it was there when the session was read
);
CREATE TABLE awaited (                                     -- messages that an agent began with, of a session
  source TEXT, key INTEGER,                                -- that does not say them, or is not there yet
  session INTEGER NOT NULL,                                -- of the agent
  message INTEGER,                                         -- what stands in its place; may be another's
  PRIMARY KEY (source, key)
) WITHOUT ROWID;
CREATE INDEX awaited_by_message ON awaited (message);
CREATE TABLE sources (                                     -- where a session's words come from, its agents' included
  session TEXT PRIMARY KEY, recorded INTEGER NOT NULL, told INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE superseded (
  key INTEGER PRIMARY KEY,                                 -- of a message of a recording
  message INTEGER,                                         -- the one of the file that stands in its place
  call_id TEXT                                             -- of the call that the recording told
);
CREATE INDEX superseded_by_message ON superseded (message);
CREATE TABLE contested (                                    -- messages of which a session has had several texts
  session INTEGER, key INTEGER,
  beside TEXT NOT NULL,                                    -- where it stood, and did not say it; empty if it may
  PRIMARY KEY (session, key)
) WITHOUT ROWID;
CREATE TABLE families (
  session INTEGER PRIMARY KEY,
  family TEXT NOT NULL,                                    -- what forks of one thread share
  own INTEGER NOT NULL                                     -- whether it has said something that is no copy
);
CREATE TABLE agents (session INTEGER, agent TEXT, name TEXT NOT NULL, PRIMARY KEY (session, agent)) WITHOUT ROWID;
CREATE TABLE calls (
  message INTEGER PRIMARY KEY,
  session INTEGER,
  tool TEXT NOT NULL,
  call_id TEXT NOT NULL,
  time INTEGER,
  took INTEGER,                                            -- NULL where there is no result, or no time
  failed INTEGER,                                          -- NULL where there is no result
  what TEXT NOT NULL                                       -- what it was called with, in a few words
);
CREATE INDEX calls_by_session ON calls (session);
CREATE INDEX open_calls ON calls (session, call_id) WHERE failed IS NULL;
CREATE TABLE touched (message INTEGER, session INTEGER, path TEXT, op TEXT, PRIMARY KEY (message, path)) WITHOUT ROWID;
CREATE TABLE flow (session INTEGER, message INTEGER PRIMARY KEY, source TEXT, target TEXT, how TEXT);
CREATE TABLE compactions (
  message INTEGER PRIMARY KEY, session INTEGER, time INTEGER, before INTEGER, after INTEGER, "trigger" TEXT
);

CREATE TABLE usage (
  session INTEGER NOT NULL,
  key TEXT NOT NULL,                                       -- of the request, the same in every session that tells of it
  api TEXT NOT NULL,                                       -- what reports of one message or thread have in common
  time INTEGER,
  model TEXT NOT NULL,
  agent TEXT NOT NULL,                                     -- empty for the session's own
  input INTEGER,
  output INTEGER,
  cache_read INTEGER,
  cache_write_5m INTEGER,
  cache_write_1h INTEGER,
  reasoning INTEGER,                                       -- of the output
  said_usd REAL,                                           -- what the runtime said that it cost, in dollars
  cost INTEGER,                                            -- at list price, in 1e-12 dollars; NULL where unknown
  several INTEGER NOT NULL,                                -- of several requests together
  partial INTEGER NOT NULL,                                -- only what came out was told
  nested INTEGER NOT NULL,                                 -- told by another agent's record
  carried INTEGER NOT NULL,                                -- the session began with it
  counted INTEGER NOT NULL,                                -- of all reports of the request, the one that counts
  PRIMARY KEY (session, key)
) WITHOUT ROWID;
CREATE INDEX usage_by_api ON usage (api);
CREATE TABLE figures (                                     -- of a session's own agent, what it carried over included
  session INTEGER PRIMARY KEY,
  human INTEGER, injected INTEGER, results INTEGER, responses INTEGER, calls INTEGER, errors INTEGER,
  compactions INTEGER,
  pays INTEGER,                                            -- it says what a process cost, its sub-agents included
  began INTEGER, last INTEGER,                             -- when it did what it did itself; NULL where that is nothing
  problem TEXT NOT NULL,                                   -- why it could not be counted; empty where it could
  report TEXT                                              -- all folds over what it made, as JSON
);

CREATE TABLE usage_totals (                                -- what is counted in `usage`; `slot`: a quarter of an hour
  session INTEGER NOT NULL, slot INTEGER, model TEXT NOT NULL, agent TEXT NOT NULL,
  requests INTEGER NOT NULL,
  input INTEGER, output INTEGER, cache_read INTEGER, cache_write INTEGER,
  cost INTEGER, fraction INTEGER,                          -- in micro-dollars, and what is left in 1e-12 dollars
  priced INTEGER NOT NULL, unpriced INTEGER NOT NULL,      -- reports of tokens whose cost is known, and is not
  said_usd REAL
);
CREATE INDEX usage_totals_by_session ON usage_totals (session);
CREATE TABLE call_totals (
  session INTEGER NOT NULL, slot INTEGER, tool TEXT NOT NULL,
  calls INTEGER NOT NULL, failed INTEGER NOT NULL, took INTEGER NOT NULL
);
CREATE INDEX call_totals_by_session ON call_totals (session);
CREATE TABLE unverified (model TEXT PRIMARY KEY            -- whose price nobody has compared with a published one
) WITHOUT ROWID;
CREATE TABLE unsummed (session INTEGER PRIMARY KEY         -- its totals have to be made again
);
{TRIGGERS}

CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='unicode61');
"""


def is_foreign(path: Path) -> bool:
    """Whether something of somebody else's lies in the place of an index: a whole database without the tables that
    every index has, or what never was one. A damaged file was an index if it begins as a database does, or still says
    somewhere at its beginning how our tables are made. A folder is none, nor a pipe, which would be waited for."""
    if path.exists() and not path.is_file():
        return True
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            (count,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            return count > 0 and not has_tables(connection)
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_NOTADB:
            return False
        with path.open("rb") as file:  # nobody can have a lock on it that this would drop
            begin = file.read(_LOOKED_AT)
        return not begin.startswith(_MAGIC) and _TELLS not in begin and bool(begin.strip(b"\0"))


def has_tables(connection: sqlite3.Connection) -> bool:
    """Whether a database has the tables that every index has."""
    return {"state", "words"} <= {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
