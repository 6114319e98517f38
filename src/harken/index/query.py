"""What people type to search, as a value: words, "phrases", beginnings*, -not, OR, and filters like `role:human`.

    fix "off by one" -test           both, in one message, and not the third
    timeout OR deadline              either
    Conn*                            whatever begins so
    tool:Bash since:7d project:shop  only messages of that kind; a filter that is repeated means any of its values
    -tool:Read                       only others
    project:"my shop"                a value with spaces

Everything here is a pure function of the text. No part of a query reaches SQLite as syntax: words go through
`words.expression`, values are bound.
"""

from __future__ import annotations

import re

import msgspec

from harken import clock
from harken.errors import BadRequest
from harken.text import close_to

from . import words
from .rows import ROLES

FILTERS = {
    "agent": "an agent's name or id",
    "runtime": "the program, like claude-code",
    "project": "a folder, or its last part",
    "model": "a model, or a part of its name",
    "tool": "a tool that was called",
    "role": "human, assistant, thinking, call, result, …",
    "file": "a file that was touched, or the end of its path",
    "since": "today, yesterday, 7d, 12h, 2026-01-31",
    "until": "the same; a day counts to its end",
    "session": "a session's id, or its beginning",
}
"""Every filter, and what its value is."""
OTHER_NAMES = {"user": ("human",), "prompt": ("human",), "tool": ("call", "result"), "response": ("assistant",)}
"""What else people call roles."""
LONGEST = 2000
MOST_TERMS = 64
_PIECE = re.compile(
    rf"""
    \s*(?P<minus>-(?=[^\s-]))?
    (?: (?P<filter>(?i:{"|".join(FILTERS)})): (?: "(?P<spaced>[^"]*)" | (?P<value>[^\s"]*) )
      | (?P<unknown>[a-z]+):(?=[^\s/:0-9])(?P<rest>[^\s"]+)
      | "(?P<phrase>[^"]*)" (?P<star>\*(?=\s|$))?
      | (?P<word>[^\s"]+)
    )""",
    re.X,
)
"""A piece of a query. Addresses, `std::sort` and `localhost:80` are words, not filters that nobody knows."""


class Term(msgspec.Struct, frozen=True):
    """A word, or several in a row; with `prefix` the last may go on."""

    text: str
    prefix: bool = False

    @property
    def expression(self) -> str:
        """What finds it."""
        return words.expression(self.text, prefix=self.prefix)


class Filter(msgspec.Struct, frozen=True):
    """A condition on messages: a value that they have, or with `without` have not."""

    name: str
    value: str
    without: bool = False


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked for."""

    wanted: tuple[tuple[Term, ...], ...] = ()
    """One of each of these groups."""
    without: tuple[Term, ...] = ()
    """None of these."""
    filters: tuple[Filter, ...] = ()

    @property
    def expression(self) -> str:
        """What finds the wanted words, in the language of FTS5; empty where there are only filters."""
        groups = [" OR ".join(term.expression for term in group) for group in self.wanted]
        found = " AND ".join(f"({group})" for group in groups)
        return f"({found}) NOT ({self.unwanted})" if found and self.without else found

    @property
    def unwanted(self) -> str:
        """What finds the words that must not be there."""
        return " OR ".join(term.expression for term in self.without)

    @property
    def needs_numbers(self) -> bool:
        """Whether what sessions used has to be known: which models they asked."""
        return any(filter.name == "model" for filter in self.filters)


def parse(text: str) -> Query:
    """The query that a text means; `BadRequest` says what is wrong with it."""
    if len(text) > LONGEST:
        raise BadRequest(f"the query is longer than {LONGEST} characters", hint="a few words will do")
    wanted: list[list[Term]] = []
    without: list[Term] = []
    filters: list[Filter] = []
    either = False
    for piece in _pieces(text):
        if piece["unknown"]:
            raise _no_filter(piece["unknown"], piece["rest"])
        if piece["word"] == "OR" and not piece["minus"]:
            if either or not wanted:
                raise _about_or()
            either = True
        elif piece["filter"]:
            if either:
                raise _about_or()
            filters.append(_filter(piece))
        elif term := _term(piece):
            if piece["minus"]:
                without.append(term)
            elif either:
                wanted[-1].append(term)
            else:
                wanted.append([term])
            if either and piece["minus"]:
                raise _about_or()
            either = False
    if either:
        raise _about_or()
    query = Query(wanted=tuple(map(tuple, wanted)), without=tuple(without), filters=tuple(filters))
    _check(query)
    return query


def _pieces(text: str) -> list[re.Match[str]]:
    pieces = []
    at, end = 0, len(text.rstrip())
    while at < end:
        piece = _PIECE.match(text, at)
        if piece is None:
            hint = 'a phrase stands between two: "like this"'
            raise BadRequest("a quotation mark in the query is not closed", hint=hint)
        pieces.append(piece)
        at = piece.end()
    return pieces


def _check(query: Query) -> None:
    if not query.wanted and not query.filters:
        hint = "give a word to look for; `harken search --help` says what else there is"
        if query.without:
            hint = "give something that is wanted, too: a word, or a filter like role:human"
        raise BadRequest("the query names nothing to look for", hint=hint)
    if sum(map(len, query.wanted)) + len(query.without) + len(query.filters) > MOST_TERMS:
        raise BadRequest(f"the query has more than {MOST_TERMS} words", hint="a few will do")


def _about_or() -> BadRequest:
    return BadRequest(
        "OR stands between two words or phrases",
        hint='like: timeout OR "took too long"; a filter that is repeated means any of its values; to find the word, '
        'write it small or as "OR"',
    )


def _term(piece: re.Match[str]) -> Term | None:
    """The word or phrase; None where it has neither letter nor digit, as the index knows none such."""
    if piece["phrase"] is not None:
        text, prefix = piece["phrase"], piece["star"] is not None
    else:
        text = piece["word"].rstrip("*")
        prefix = text != piece["word"]
    return Term(text, prefix) if words.expression(text) else None


# -- filters -----------------------------------------------------------------------------------------------------------


def _filter(piece: re.Match[str]) -> Filter:
    name, value = piece["filter"].lower(), piece["value"] or piece["spaced"] or ""
    if not value.strip():
        raise BadRequest(f"{name}: needs a value", hint=f"that is {FILTERS[name]}")
    if name in ("since", "until") and piece["minus"]:
        raise BadRequest(f"-{name}: makes no sense", hint="`since:` and `until:` are each other's opposite")
    if name == "role":
        roles_of(value)
    return Filter(name, value, without=piece["minus"] is not None)


def _no_filter(name: str, value: str) -> BadRequest:
    close = close_to(name, FILTERS)
    meant = f"did you mean {close[0]}:{value}? " if close else f"there are: {': '.join(FILTERS)}:. "
    return BadRequest(f"there is no filter {name}:", hint=f'{meant}To find the text itself, quote it: "{name}:{value}"')


def roles_of(value: str) -> tuple[str, ...]:
    """The roles that a value of `role:` means."""
    value = value.lower()
    found = (value,) if value in ROLES else OTHER_NAMES.get(value)
    if found is None:
        raise BadRequest(f"there is no role {value!r}", hint="there are: " + ", ".join(ROLES))
    return found


def instant_of(filter: Filter, present: int) -> int:
    """The instant that a value of `since:` or `until:` means."""
    instant = clock.parse_when(filter.value, present, end=filter.name == "until")
    if instant is None:
        raise BadRequest(
            f"{filter.name}:{filter.value} is no time",
            hint="times are today, yesterday, 12h, 7d, 2w, 2026-01-31 or 2026-01-31T12:00:00Z",
        )
    return instant
