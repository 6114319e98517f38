"""The filters of a query as conditions on the rows of messages. A value that nothing has is an error, not no hits.

Names are asked for in the query as people write them, in any case of letters; each filter first finds out which of the
names in the index are meant. Everything that was typed is bound as a value.

`runtime:`, `project:` and `session:` ask for sessions. A message fits where one session that has it, as its own or as a
copy, fits all of them. The others ask for messages; a copy is said by the same agent, at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import orjson

from harken.errors import BadRequest, NotFound
from harken.text import close_to

from .file import StoreIndex
from .query import Filter, Query, instant_of, roles_of
from .rows import ROLES

_MOST_NAMES = 8
"""How many names a hint lists."""


class Condition(NamedTuple):
    """A part of a statement, and the values in it. The tables are `m` (messages) and `s` (their sessions)."""

    sql: str = ""
    values: tuple[Any, ...] = ()


class SessionChoice(NamedTuple):
    """The sessions that a query asks for."""

    numbers: Condition
    """What selects their numbers."""
    unknown: bool
    """Whether a message fits that has no session: it is in none of those that are left out."""

    def own(self) -> Condition:
        """Whether a message's own session is one of them."""
        return Condition(f"coalesce(m.session IN ({self.numbers.sql}), {int(self.unknown)})", self.numbers.values)

    def any(self) -> Condition:
        """Whether a session that has the message is one of them."""
        copied = f"SELECT 1 FROM copies c WHERE c.message = m.n AND c.session IN ({self.numbers.sql})"
        own = self.own()
        return Condition(f"({own.sql} OR EXISTS ({copied}))", own.values + self.numbers.values)


class Limits(NamedTuple):
    """What the filters of a query leave."""

    messages: Condition
    """All filters together."""
    sessions: SessionChoice | None
    """Those that ask for sessions, if there are any."""


def limits_of(index: StoreIndex, query: Query, present: int) -> Limits:
    """All filters; one that is repeated means any of its values, one with a minus none of them."""
    about = [filter for filter in query.filters if filter.name in _OF_SESSIONS]
    others = [filter for filter in query.filters if filter.name not in _OF_SESSIONS]
    within = _together(index, others, present)
    if not about:
        return Limits(within, None)
    asked = _together(index, about, present)
    numbers = Condition(f"SELECT n FROM {_SESSIONS} WHERE {asked.sql}", asked.values)
    chosen = SessionChoice(numbers, unknown=all(filter.without for filter in about))
    return Limits(_and([within, chosen.any()]), chosen)


def _together(index: StoreIndex, filters: Sequence[Filter], present: int) -> Condition:
    parts: list[Condition] = []
    for (name, without), group in groupby(sorted(filters, key=_kind), key=_kind):
        made = [_MAKERS[name](index, filter, present) for filter in group]
        sql = " OR ".join(f"({one.sql})" for one in made)
        values = tuple(value for one in made for value in one.values)
        # What is unknown of a message is not that.
        parts.append(Condition(f"NOT coalesce({sql}, 0)" if without else f"({sql})", values))
    return _and(parts)


def _and(parts: Sequence[Condition]) -> Condition:
    sql = " AND ".join(part.sql for part in parts if part.sql)
    return Condition(sql, tuple(value for part in parts for value in part.values))


def check_values(index: StoreIndex, query: Query, present: int) -> None:
    """Refuse a value that no message has; asked where nothing was found, since it looks through all of them."""
    for filter in query.filters:
        if filter.name in _KNOWN and not _is_had(index, filter, present):
            raise _nothing_has(filter, _names(index, _KNOWN[filter.name]))


def has_value(index: StoreIndex, name: str, value: str) -> bool:
    """Whether something in the index has what a filter of this value asks for."""
    try:
        return name in _LISTED and _is_had(index, Filter(name, value), 0)
    except (BadRequest, NotFound):  # several sessions begin so, or none has it
        return False


def _is_had(index: StoreIndex, filter: Filter, present: int) -> bool:
    sql, values = _MAKERS[filter.name](index, filter, present)
    table = _SESSIONS if filter.name in _OF_SESSIONS else "messages m LEFT JOIN sessions s ON s.n = m.session"
    return bool(index.query(f"SELECT 1 FROM {table} WHERE {sql} LIMIT 1", values))


def _kind(filter: Filter) -> tuple[str, bool]:
    return filter.name, filter.without


# -- one for each filter -----------------------------------------------------------------------------------------------


def _since(_index: StoreIndex, filter: Filter, present: int) -> Condition:
    return Condition("m.time >= ?", (instant_of(filter, present),))


def _until(_index: StoreIndex, filter: Filter, present: int) -> Condition:
    return Condition("m.time <= ?", (instant_of(filter, present),))


def _role(_index: StoreIndex, filter: Filter, _present: int) -> Condition:
    return _any_of("m.role", roles_of(filter.value))


def _runtime(index: StoreIndex, filter: Filter, _present: int) -> Condition:
    known = known_values(index, "runtime")
    return _any_of("runtime", _meant(filter, known))


def _project(index: StoreIndex, filter: Filter, _present: int) -> Condition:
    """A folder and all in it, as `stats` and `sessions` have it."""
    known, value = known_values(index, "project"), filter.value.lower()
    found = [name for name in known if _is_project(name.lower(), value)]
    if not found:
        raise _nothing_has(filter, known)
    return _any_of("project", found)


def _model(_index: StoreIndex, filter: Filter, _present: int) -> Condition:
    """What the model wrote. Not every record says which one that was; then it is one that its session asked."""
    value = filter.value.lower()
    asked = "m.session IN (SELECT session FROM usage WHERE instr(lower(model), ?))"
    written = "m.role IN ('assistant', 'thinking', 'call')"
    return Condition(f"instr(lower(m.model), ?) OR (m.model IS NULL AND {written} AND {asked})", (value, value))


def _tool(_index: StoreIndex, filter: Filter, _present: int) -> Condition:
    return Condition("m.tool = ? COLLATE NOCASE", (filter.value,))


def _agent(_index: StoreIndex, filter: Filter, _present: int) -> Condition:
    """By its id, or by what it is called."""
    value = filter.value.lower()
    named = "SELECT 1 FROM agents a WHERE a.session = m.session AND a.agent = m.agent AND instr(lower(a.name), ?) = 1"
    by_id = "instr(lower(m.agent), ?) = 1 OR instr(lower(s.agent), ?) = 1"
    return Condition(f"{by_id} OR EXISTS ({named})", (value, value, value))


def _file(_index: StoreIndex, filter: Filter, _present: int) -> Condition:
    value = filter.value.replace("\\", "/").rstrip("/").lower()
    end = value.lstrip("/")
    fits = (
        "substr('/' || replace(lower(path), '\\', '/'), -length(?) - 1) = '/' || ? OR instr(lower(path), ? || '/') = 1"
    )
    return Condition(f"m.n IN (SELECT message FROM touched WHERE {fits})", (end, end, value))


def _session(index: StoreIndex, filter: Filter, _present: int) -> Condition:
    """The session and its sub-agents'."""
    known = known_values(index, "session")
    value = filter.value
    if value not in known:
        value = _one_session(filter, known)
    return Condition("session = ? OR parent = ?", (value, value))


def _one_session(filter: Filter, known: Sequence[str]) -> str:
    found = {name for name in known if name.startswith(filter.value)}
    meant = sorted(name for name in found if not found.intersection(_above(name)))
    if len(meant) > 1:
        raise BadRequest(f"several sessions begin with {filter.value!r}", hint="give more of the id: " + _list(meant))
    if not meant:
        raise NotFound(f"no session begins with {filter.value!r}", hint="`harken sessions` lists them")
    return meant[0]


def _above(name: str) -> Iterator[str]:
    """The sessions that one with such a name is a sub-agent of."""
    while name := name.rpartition("/")[0]:
        yield name


_MAKERS: dict[str, Callable[[StoreIndex, Filter, int], Condition]] = {
    "agent": _agent,
    "runtime": _runtime,
    "project": _project,
    "model": _model,
    "tool": _tool,
    "role": _role,
    "file": _file,
    "since": _since,
    "until": _until,
    "session": _session,
}
_OF_SESSIONS = ("runtime", "project", "session")
"""The filters whose conditions are on the rows of sessions."""
_BELOW = "(SELECT max({fact}) FROM sessions AS below WHERE below.parent = sessions.session)"
_SESSIONS = (
    f"(SELECT n, session, parent, coalesce(runtime, {_BELOW.format(fact='runtime')}) AS runtime,"
    f" coalesce(project, {_BELOW.format(fact='project')}) AS project FROM sessions)"
)
"""The rows that they are on. What a sub-agent says is its session's; where that is not in the store, nobody but the
sub-agent says which runtime and project it was."""


_KNOWN = {
    "agent": "SELECT agent FROM sessions UNION SELECT agent FROM messages UNION SELECT name FROM agents",
    "model": "SELECT model FROM messages UNION SELECT model FROM usage",
    "tool": "SELECT DISTINCT tool FROM messages",
    "file": "SELECT DISTINCT path FROM touched",
}
"""What gives the names there are, for the filters whose values are only looked at when nothing was found."""
_LISTED = _KNOWN | {
    "runtime": "SELECT DISTINCT runtime FROM sessions",
    "project": "SELECT DISTINCT project FROM sessions",
    "session": "SELECT session FROM sessions",
}
_TIMES = ("today", "yesterday", "12h", "7d", "30d")


def known_values(index: StoreIndex, name: str) -> list[str]:
    """The values that a filter may have: those that something in the index has."""
    if name in _LISTED:
        return _names(index, _LISTED[name])
    return list({"role": ROLES, "since": _TIMES, "until": _TIMES}.get(name, ()))


# -- names -------------------------------------------------------------------------------------------------------------


def _any_of(column: str, values: Sequence[str]) -> Condition:
    return Condition(f"{column} IN (SELECT value FROM json_each(?))", (orjson.dumps(list(values)).decode(),))


def _names(index: StoreIndex, sql: str) -> list[str]:
    return sorted(name for (name,) in index.query(sql) if name)


def _meant(filter: Filter, known: Sequence[str]) -> list[str]:
    """The known names that the value means, in any case of letters."""
    found = [name for name in known if name.lower() == filter.value.lower()]
    if not found:
        raise _nothing_has(filter, known)
    return found


def _nothing_has(filter: Filter, known: Sequence[str]) -> NotFound:
    return NotFound(f"nothing in the store has the {filter.name} {filter.value!r}", hint=_suggestion(filter, known))


def _is_project(name: str, value: str) -> bool:
    """`shop` and `work/shop` mean /home/me/work/shop; a path that begins with a slash means what lies in it, too."""
    name, value = name.rstrip("/\\") or name, value.rstrip("/\\") or value
    return name == value or name.endswith(("/" + value, "\\" + value)) or name.startswith((value + "/", value + "\\"))


def _suggestion(filter: Filter, known: Sequence[str]) -> str:
    if not known:
        return "it has none at all"
    if close := close_to(filter.value.lower(), {name.lower() for name in known}):
        return f"did you mean {filter.name}:{next(name for name in known if name.lower() == close[0])}?"
    return "it has " + _list(known)


def _list(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_NAMES]) + (
        f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    )
