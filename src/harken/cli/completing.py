"""What a shell offers when Tab is pressed: REFs, sessions, agents, names, formats, runtimes. Nothing here fails or
makes anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from harken.errors import HarkenError
from harken.text import one_line, plain

if TYPE_CHECKING:
    from harken.repo import Repo

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
COMMITS = 50
"""The newest commits are offered, and no more than these."""
_ACTIVE = re.compile(r"[$`;|&<>()!\\']|[^\S ]")
"""What a shell may act upon. Bash puts a word that was offered on the line as it is, and sessions, folders and agents
are called as somebody else's transcript says."""


def _completing(offer: Callable[[Repo, str], Iterable[CompletionItem]]) -> Complete:
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            with _store(ctx) as repo:
                return _fit(offer(repo, incomplete), incomplete)
        except (HarkenError, OSError, ValueError):
            return []

    return complete


def _fit(items: Iterable[CompletionItem], incomplete: str) -> list[CompletionItem]:
    """Those that go on with what was typed and can stand on a line, each with a remark that can be shown."""
    found = [item for item in items if item.value.startswith(incomplete) and _is_harmless(item.value, incomplete)]
    for item in found:
        item.help = one_line(" ".join(plain(item.help or "").split()))[:60] or None
    return found


def _is_harmless(word: str, incomplete: str) -> bool:
    looks_like_option = word.startswith("-") and not incomplete.startswith("-")
    return word.isprintable() and not looks_like_option and not _ACTIVE.search(word)


@contextmanager
def _store(ctx: click.Context) -> Iterator[Repo]:
    from .config import open_at, store_of

    with open_at(store_of(ctx), create=False) as repo:
        yield repo


def _names(repo: Repo, incomplete: str, kind: str = "") -> Iterator[CompletionItem]:
    from harken.api.names import NamesRequest, names

    for name in names(repo, NamesRequest(kind=kind)):
        yield CompletionItem(name.name, help=f"{name.kind} at {name.short}")


def _sessions(repo: Repo, incomplete: str) -> Iterator[CompletionItem]:
    from harken.api.sessions import SessionsRequest, sessions

    start, slash, _ = incomplete.partition("/")
    for one in sessions(repo, SessionsRequest(prefix=start, top=not slash)):
        # Of a session that was named by a beginning of its id, the agents go on from that.
        above, _, agent = one.session.partition("/")
        name = f"{start}/{agent}" if slash and agent else above if not slash else ""
        if name:
            yield CompletionItem(name, help=f"{one.runtime} {one.title}")


def _projects(repo: Repo, incomplete: str) -> Iterator[CompletionItem]:
    """The folders that sessions worked in: by their paths where one is begun, else by their names."""
    from harken.api.sessions import SessionsRequest, sessions

    paths = {one.project for one in sessions(repo, SessionsRequest(top=True)) if one.project}
    called = {path if "/" in incomplete else path.rstrip("/").rpartition("/")[2]: path for path in sorted(paths)}
    for name, path in called.items():
        yield CompletionItem(name, help=path)


def _refs(repo: Repo, incomplete: str) -> Iterator[CompletionItem]:
    from harken.api.commits import GraphRequest, graph

    yield from _names(repo, incomplete)
    yield from _sessions(repo, incomplete)
    if "ctx-".startswith(incomplete[:4]):
        for commit in graph(repo, GraphRequest(limit=COMMITS)).commits[:COMMITS]:
            yield CompletionItem(commit.short, help=commit.created_at)


def _filters(repo: Repo, incomplete: str) -> Iterator[CompletionItem]:
    """The filters of a query, and behind the colon the values that the store has."""
    minus = "-" if incomplete.startswith("-") else ""
    name, colon, _ = incomplete.removeprefix("-").partition(":")
    if not colon:
        for filter, what in repo.search_filters().items():
            yield CompletionItem(f"{minus}{filter}:", help=what)
        return
    for value in (value for value in repo.search_values(name) if '"' not in value):
        yield CompletionItem(f'{minus}{name}:"{value}"' if " " in value else f"{minus}{name}:{value}")


def _session_or_file(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """A session, in whatever way one names it, or a file, for which the shell is asked."""
    return [*refs(ctx, param, incomplete), CompletionItem(incomplete, type="file")]


def _own_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The branches for `harken branch`, the tags for `harken tag`."""
    kind = ctx.info_name or ""
    return _completing(lambda repo, begun: _names(repo, begun, kind))(ctx, param, incomplete)


def _formats(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from harken.api.catalog import FormatsRequest
    from harken.api.catalog import formats as known

    return [
        CompletionItem(one.name, help=one.description)
        for one in known(None, FormatsRequest())
        if one.name.startswith(incomplete)
    ]


def _stops(repo: Repo, incomplete: str) -> Iterator[CompletionItem]:
    yield CompletionItem("compaction", help="the conversation as it stands")
    yield CompletionItem("root", help="everything")
    yield from _refs(repo, incomplete)


def _runtimes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from harken.api.runtimes import RuntimesRequest, runtimes

    return [
        CompletionItem(one.name, help=one.label)
        for one in runtimes(None, RuntimesRequest())
        if one.name.startswith(incomplete)
    ]


def _agents(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The agents of the session that was named before, by their names or ids."""
    import harken
    from harken.api.sessions import AgentsRequest, agents

    from .opening import place_of

    session = ctx.params.get("session") or ""
    try:
        # A log needs no store.
        with harken.open("memory:") if Path(session).is_file() else _store(ctx) as repo:
            found = list(agents(repo, AgentsRequest(**place_of(repo, session))))
    except (HarkenError, OSError, ValueError):
        return []
    return _fit([CompletionItem(one.name or one.agent, help=one.title) for one in found], incomplete)


def _document_agents(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The agents of the session document that was named before."""
    from harken.api.std_show import StdShowRequest, std_show

    # Before an option that has no value yet, click leaves the arguments as they were typed.
    file = ctx.params.get("file") or next(iter(ctx.args), "")
    try:
        found = std_show(None, StdShowRequest(path=file)).agents
    except (HarkenError, OSError, ValueError):
        return []
    return _fit([CompletionItem(one.agent_id, help=one.agent_type) for one in found], incomplete)


def _files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


refs = _completing(_refs)
stops = _completing(_stops)
names = _completing(_names)
sessions = _completing(_sessions)
projects = _completing(_projects)
filters = _completing(_filters)
session_or_file: Complete = _session_or_file
own_names: Complete = _own_names
formats: Complete = _formats
runtimes: Complete = _runtimes
agents: Complete = _agents
document_agents: Complete = _document_agents
files: Complete = _files
