"""`harken search`: find what was said or done, in any session."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from itertools import groupby, islice
from operator import itemgetter
from pathlib import PurePath
from typing import TYPE_CHECKING

import click

from harken.text import wrap

from . import completing, ui
from .commits import age
from .options import json_option, pass_repo
from .wholeness import tell_what_is_missing

if TYPE_CHECKING:
    from harken.api.search import SearchHit, SearchRest
    from harken.repo import Repo

INSET = "  "
LINES = 2
"""How many lines of a snippet are shown in a window."""
SHORT_ID = 8
PROJECT = 5
"""A project's name takes one part of so many of the window."""
LONG_NAME = 20
"""An agent's name that is longer is an id, of which the beginning will do."""
_NOT = re.compile(r"-(?!n\d*$|h$|-)\S")
"""A word that must not be there; `-n`, `-n5` and `-h` are options."""
_SPACED = re.compile(r'-?(?P<name>[A-Za-z]+):(?P<value>[^"]*\s[^"]*)')
"""A filter whose quotation marks the shell has taken away (`project:"my shop"`), or a whole query that begins with a
filter (`'project:shop pytest'`)."""


class WordsCommand(click.Command):
    """A command whose words may begin with a minus, like the words that must not be there."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Tell such words from options."""
        return super().parse_args(ctx, [f" {word}" if _NOT.match(word) else word for word in args])


@click.command("search", cls=WordsCommand)
@click.argument("query", nargs=-1, required=True, metavar="QUERY...", shell_complete=completing.filters)
@click.option("-n", "limit", type=click.IntRange(1, 1000), default=10, metavar="N", help="Show at most N hits (10)")
@json_option
@pass_repo
def search_command(repo: Repo, query: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Find what was said or done, in any session

    A QUERY is words, all of which stand in one message: what a person, a model or a tool said, what a tool was called
    with, a session's title, a commit's summary. Parts of identifiers are words, too: `session` finds findSession and
    find_session. Case does not matter. The best and newest come first, with filters alone the newest; what a fork or a
    resume copied is one hit.

        "off by one"      these words in this order
        conn*             whatever begins so
        -test             messages without it
        timeout OR slow   either

    Filters: role: (human, assistant, thinking, call, result, system, title, summary, injected), tool:, file:, model:,
    agent:, runtime:, project: (a folder or its last part), session: (an id or its beginning), since: and until:
    (today, yesterday, 12h, 7d, 2026-01-31, in local time). With a minus before it a filter leaves out; one that is
    repeated means any of its values. For example:

        harken search find_session
        harken search '"connection refused" -test since:7d'
        harken search tool:Bash pytest project:shop
        harken search otter project:"my shop"
        harken search role:human since:yesterday
    """
    from harken.api.search import SearchHit, SearchRequest, SearchRest, search

    text = " ".join(_as_typed(repo, word) for word in query)
    shown, rest = 0, None
    for one in search(repo, SearchRequest(query=text, limit=limit)):
        if isinstance(one, SearchRest):
            rest = one
        if as_json:
            ui.json_line(one)
        elif isinstance(one, SearchHit):
            _draw(one, first=not shown)
        shown += isinstance(one, SearchHit)
    if not shown and not as_json:
        so_far = " in what the index has" if rest is not None and (rest.behind or rest.stale) else ""
        ui.note(f"no hits{so_far}; {_suggestion(text, repo.search_filters())}")
    if rest is not None:
        if not as_json:
            _remark(rest, limit)
        tell_what_is_missing(
            behind=rest.behind,
            stale=rest.stale,
            missing=rest.missing,
            damaged=rest.damaged,
            problem=rest.problem,
            quiet=as_json,
        )


def _as_typed(repo: Repo, word: str) -> str:
    """The word as the query has it: all behind the colon is one value where something has that value."""
    word = word.removeprefix(" ")
    spaced = _SPACED.fullmatch(word)
    if spaced and repo.has_search_value(spaced["name"].lower(), spaced["value"]):
        return f'{word[: spaced.start("value")]}"{spaced["value"]}"'
    return word


def _suggestion(query: str, filters: Iterable[str]) -> str:
    """What may find more."""
    if re.search(rf"(^|\s)-?({'|'.join(filters)}):\S", query):
        return "leave out a filter, or look for fewer words"
    if '"' in query:
        return "without quotation marks the words need not stand together"
    words = query.split()
    if len(words) > 1:
        return f"look for fewer words, or any of them: {' OR '.join(words[:3])}"
    return f"`harken search {shlex.quote(words[0].rstrip('*') + '*')}` finds what begins so"


def _remark(rest: SearchRest, limit: int) -> None:
    if rest.rebuilt:
        ui.note(f"the index was built anew: {rest.rebuilt}")
    if rest.more:
        ui.note(f"there are more; `-n {2 * limit}` shows them")


# -- how a hit is shown ------------------------------------------------------------------------------------------------


def _draw(hit: SearchHit, *, first: bool) -> None:
    """A hit: where it stands, what it says, and how to go on from there."""
    if not first:
        ui.line()
    ui.row(
        ui.Styled(hit.commit or hit.ref, "name"),
        age(hit.time),
        ui.Styled(_speaker(hit), "mark"),
        _project(hit),
        (hit.session or "")[:SHORT_ID],
        ui.Styled(hit.title or "", "dim"),
    )
    for pieces in _lines(hit):
        ui.rows([[INSET, *pieces]], gap="")
    if hit.problem:
        ui.line(f"{INSET}(its text cannot be shown: {hit.problem})")
    copies = f"   also in {ui.count(len(hit.copies), 'other session')}" if hit.copies else ""
    ui.row(INSET + shlex.join(hit.command) + copies)


def _project(hit: SearchHit) -> str:
    """The folder's name, as much of it as leaves room for the session and its title."""
    name, wide = ui.one_line(PurePath(hit.project or "").name), ui.width()
    return ui.fit(name, wide // PROJECT) if wide else name


def _speaker(hit: SearchHit) -> str:
    who = f"{hit.role} {hit.tool}" if hit.tool else hit.role
    if not hit.agent:
        return who
    return f"{who} of {hit.agent if len(hit.agent) <= LONG_NAME else hit.agent[:SHORT_ID]}"


def _lines(hit: SearchHit) -> list[list[ui.Words]]:
    """The snippet in lines that fit the window, what was found in it marked; into a pipe it goes as one."""
    text, marks = _made_safe(hit)
    wide = ui.width() - len(INSET)
    places = _places(text, wide)
    first = marks.index(True) if True in marks else 0
    if wide > 0 and places and ui.columns(text[places[-1][0] : first + 1]) >= wide:  # it would be cut off
        cut = max(0, first - wide // 2)
        cut = text.find(" ", cut, first) + 1 or cut
        text, marks = f"…{text[cut:]}", [False, *marks[cut:]]
        places = _places(text, wide)
    return [_marked(text[start:end], marks[start:end]) for start, end in places]


def _places(text: str, wide: int) -> list[tuple[int, int]]:
    """Where each line begins and ends; the last has all the rest."""
    if wide <= 0 or not text:
        return [(0, len(text))][: len(text)]
    *places, (start, _) = islice(wrap(text, wide), LINES)
    return [*places, (start, len(text))]


def _made_safe(hit: SearchHit) -> tuple[str, list[bool]]:
    """The snippet with controls made visible, and of each character whether it was found."""
    text, marks, at = "", list[bool](), 0
    for start, end in [*hit.highlights, (len(hit.snippet), len(hit.snippet))]:
        for piece, found in ((hit.snippet[at:start], False), (hit.snippet[start:end], True)):
            shown = ui.one_line(piece)
            text += shown
            marks += [found] * len(shown)
        at = end
    return text, marks


def _marked(line: str, marks: list[bool]) -> list[ui.Words]:
    """The line in pieces, those that were found in their style."""
    pieces: list[ui.Words] = []
    for found, group in groupby(zip(line, marks, strict=True), key=itemgetter(1)):
        piece = "".join(character for character, _ in group)
        pieces.append(ui.Styled(piece, "strong") if found else piece)
    return pieces
