"""The views that SQL is asked of: what each is for, its columns, and how it is made of the tables.

The tables are Harken's own and change with it; the views are promised. A view stands in the temporary schema of a
connection, where it hides the table of the same name. Instants are text in UTC as SQLite's date functions take it,
sessions are named rather than numbered, durations are seconds and money is dollars.
"""

from __future__ import annotations

import msgspec

from harken.analytics.prices import MICRO
from harken.errors import NotFound

from .schema import CACHE_WRITE, USED_TOKENS, exact_sum


class ViewColumn(msgspec.Struct, frozen=True):
    """A column of a view."""

    name: str
    type: str
    """`text`, `integer`, `real` or `time` (text in UTC)."""
    meaning: str


class IndexView(msgspec.Struct, frozen=True):
    """A view of the index."""

    name: str
    meaning: str
    columns: tuple[ViewColumn, ...]
    select: str
    """The expressions of its columns, in their order, and where they come from."""

    @property
    def statement(self) -> str:
        """What makes it."""
        names = ", ".join(f'"{column.name}"' for column in self.columns)
        return f'CREATE TEMP VIEW "{self.name}" ({names}) AS {self.select}'


def _view(name: str, meaning: str, columns: str, made_of: str) -> IndexView:
    """A view from lines of `name type expression -- meaning`."""
    found, expressions = [], []
    for line in columns.strip().splitlines():
        said, meant = line.split(" -- ")
        column, kind, expression = said.split(None, 2)
        found.append(ViewColumn(column, kind, meant.strip()))
        expressions.append(_instant(expression) if kind == "time" else expression.strip())
    return IndexView(name, meaning, tuple(found), f"SELECT {', '.join(expressions)} {made_of}")


def _instant(micros: str) -> str:
    return f"strftime('%Y-%m-%dT%H:%M:%fZ', {micros.strip()} / 1e6, 'unixepoch')"


_OF = "FROM main.{table} JOIN main.sessions ON sessions.n = {table}.session"
_OF_MESSAGE = f"{_OF} LEFT JOIN main.messages ON messages.n = {{table}}.message"
_SPENT = "(SELECT {what} FROM main.usage WHERE usage.session = sessions.n AND counted)"
_PROJECT = (
    "coalesce(nullif(sessions.project, ''),"
    " (SELECT nullif(parents.project, '') FROM main.sessions AS parents WHERE parents.session = sessions.parent))"
)
_COST = f"(sum(usage.cost / {MICRO}) / 1e6 + sum(usage.cost % {MICRO}) / 1e12)"
"""Dollars, of which no sum is too large for SQLite's integers."""

_TOLD = "figures.report ->> "
_CURVE = "figures.report, '$.compactions.curve'"


def _told(fact: str) -> str:
    """A fact of the report that the index keeps of a session."""
    return f"json_extract(figures.report, '$.{fact}')"


VIEWS: tuple[IndexView, ...] = (
    _view(
        "sessions",
        "one row for each session, sub-agents' included",
        f"""
        session text sessions.session -- its id
        runtime text sessions.runtime -- the program that held it
        project text nullif(sessions.project, '') -- the folder that was worked in
        title text nullif(sessions.title, '') -- what it is called
        parent text nullif(sessions.parent, '') -- the session that spawned it, for a sub-agent
        agent text nullif(sessions.agent, '') -- the agent, for a sub-agent
        started time sessions.started -- when it began
        ended time sessions.ended -- when it was last active
        human integer figures.human -- prompts that a person wrote
        injected integer figures.injected -- prompts that a program wrote
        responses integer figures.responses -- messages of the model
        calls integer figures.calls -- calls of tools
        errors integer figures.errors -- errors
        compactions integer figures.compactions -- compactions
        input integer {_SPENT.format(what=exact_sum("input"))} -- tokens that count here, not those carried over
        output integer {_SPENT.format(what=exact_sum("output"))} -- tokens that count here
        cost real {_SPENT.format(what=_COST)} -- dollars at list price; NULL where no price is known
        """,
        "FROM main.sessions LEFT JOIN main.figures ON figures.session = sessions.n WHERE sessions.runtime IS NOT NULL",
    ),
    _view(
        "figures",
        "one row for each session that was counted: what it made, in every version of it, without its sub-agents",
        f"""
        session text sessions.session -- the session
        outcome text {_told("lifecycle.outcome")} -- how its last run ended; NULL where its source does not say
        seconds real {_told("lifecycle.duration")} / 1e6 -- from its beginning to its end
        turns integer {_told("lifecycle.turns")} -- how often a person said something
        prompt_seconds real {_told("profile.whole.prompt")} / 1e6 -- the time that people took, up to five minutes each
        response_seconds real {_told("profile.whole.response")} / 1e6 -- the time to answers and calls
        thinking_seconds real {_told("profile.whole.thinking")} / 1e6 -- the time to thoughts
        tool_seconds real {_told("profile.whole.tool")} / 1e6 -- the time to results of tools
        compaction_seconds real {_told("profile.whole.compaction")} / 1e6 -- the time to compactions
        idle_seconds real {_told("profile.whole.idle")} / 1e6 -- the time in which nothing was done
        characters_in integer {_told("amplification.characters_in")} -- of what people wrote
        characters_out integer {_told("amplification.characters_out")} -- of what models answered
        compactions_per_hour real {_told("compactions.per_hour")} -- NULL where it took no time
        """,
        f"{_OF.format(table='figures')} WHERE figures.report IS NOT NULL",
    ),
    _view(
        "agents",
        "one row for each agent that said something in a session",
        """
        session text sessions.session -- the session
        agent text coalesce(messages.agent, sessions.agent, '') -- its id; empty for the session's own
        messages integer count(*) -- messages, calls and results of its own
        calls integer sum(messages.role = 'call') -- calls of tools
        started time min(messages.time) -- when it first said something
        ended time max(messages.time) -- when it last did
        """,
        "FROM main.messages JOIN main.sessions ON sessions.n = messages.session"
        " WHERE messages.role NOT IN ('title', 'summary') GROUP BY sessions.session, messages.agent",
    ),
    _view(
        "messages",
        "one row for each thing that was said; what a fork or a resume copied is one row",
        """
        session text sessions.session -- the session that said it first
        message text messages.record -- the record it stands in; SESSION@MESSAGE names it
        part integer messages.event -- its place in the record
        agent text coalesce(messages.agent, sessions.agent, '') -- who said it; empty for the session's own
        role text messages.role -- human, injected, assistant, thinking, call, result, system, title or summary
        tool text messages.tool -- the tool, of a call or a result
        model text messages.model -- the model, of a response
        time time messages.time -- when; NULL where it is not known
        size integer messages.size -- characters
        copies integer (SELECT count(*) FROM main.copies WHERE copies.message = messages.n) -- other sessions with it
        commit_id text (SELECT lower(hex("commit")) FROM main.commits WHERE n = messages."commit") -- its commit
        """,
        "FROM main.messages LEFT JOIN main.sessions ON sessions.n = messages.session",
    ),
    _view(
        "calls",
        "one row for each call of a tool",
        """
        session text sessions.session -- the session
        message text messages.record -- the record it stands in
        agent text coalesce(messages.agent, sessions.agent, '') -- who called; empty for the session's own
        tool text calls.tool -- the tool
        call_id text calls.call_id -- what joins it to its result
        time time calls.time -- when it was called
        seconds real calls.took / 1e6 -- how long it took; NULL where there is no result
        failed integer calls.failed -- 1 where it failed; NULL where there is no result
        what text calls.what -- what it was called with, in a few words
        """,
        _OF_MESSAGE.format(table="calls"),
    ),
    _view(
        "usage",
        "one row for each report of what a request to a model used, or of what a run or a whole session did; sums over"
        " those with `counted` have each request once, and `daily` has how many requests there were",
        """
        session text sessions.session -- the session that reports it
        request text usage.key -- the request
        time time usage.time -- when
        model text nullif(usage.model, '') -- the model; NULL where it is not known
        agent text usage.agent -- whose request it was; empty for the session's own
        input integer usage.input -- tokens of input that were not in the cache
        output integer usage.output -- tokens of output
        cache_read integer usage.cache_read -- tokens read from the cache
        cache_write_5m integer usage.cache_write_5m -- tokens written to it for five minutes
        cache_write_1h integer usage.cache_write_1h -- tokens written to it for an hour
        reasoning integer usage.reasoning -- tokens of the output that were reasoning
        cost real usage.cost / 1e12 -- dollars at list price; NULL where no price is known
        said_cost real usage.said_usd -- dollars, as the runtime said
        carried integer usage.carried -- 1 where the session began with it
        counted integer usage.counted -- 1 in the one report of a request that counts
        """,
        _OF.format(table="usage"),
    ),
    _view(
        "daily",
        "one row for each day (in UTC), project, runtime and model, each request once",
        f"""
        day text date(usage.time / 1e6, 'unixepoch') -- the day; NULL where it is not known
        project text {_PROJECT} -- the folder that was worked in; a sub-agent's is its session's where it says none
        runtime text sessions.runtime -- the program
        model text nullif(usage.model, '') -- the model; NULL where it is not known
        requests integer sum(NOT usage.several) -- requests
        input integer {exact_sum("usage.input")} -- tokens of input that were not in the cache
        output integer {exact_sum("usage.output")} -- tokens of output
        cache_read integer {exact_sum("usage.cache_read")} -- tokens read from the cache
        cache_write integer {exact_sum(CACHE_WRITE)} -- tokens written
        cost real {_COST} -- dollars at list price, of the requests whose price is known
        unpriced integer sum(usage.cost IS NULL AND {USED_TOKENS}) -- requests without a known price
        """,
        f"{_OF.format(table='usage')} WHERE usage.counted GROUP BY 1, 2, 3, 4",
    ),
    _view(
        "files",
        "one row for each file that a call read or changed",
        """
        session text sessions.session -- the session
        message text messages.record -- the record of the call
        agent text coalesce(messages.agent, sessions.agent, '') -- who did it; empty for the session's own
        path text touched.path -- the file
        op text touched.op -- what was done to it
        time time messages.time -- when
        """,
        _OF_MESSAGE.format(table="touched"),
    ),
    _view(
        "flow",
        "one row for each message that has its words, or its reason, from another one",
        """
        session text sessions.session -- the session
        message text messages.record -- the record
        source_message text flow.source -- the record that it comes from
        source text CASE WHEN said.n THEN coalesce(said.agent, sessions.agent, '') END -- who said that one
        target text coalesce(flow.target, sessions.agent, '') -- who heard or did this one
        how text flow.how -- substance: the same words; cause: it was the reason
        time time messages.time -- when; NULL where it is not known
        """,
        f"{_OF_MESSAGE.format(table='flow')} LEFT JOIN main.messages AS said"
        " ON said.record = flow.source AND said.session = flow.session AND said.event = 0",
    ),
    _view(
        "compactions",
        "one row for each time that a conversation was folded into a summary",
        """
        session text sessions.session -- the session
        message text messages.record -- the record
        time time compactions.time -- when
        before integer compactions.before -- tokens before it
        after integer compactions.after -- tokens after it
        cause text nullif(compactions."trigger", '') -- what set it off; NULL where it is not known
        """,
        _OF_MESSAGE.format(table="compactions"),
    ),
    _view(
        "profiles",
        "one row for each session: where its time went and what came of what people said, without its sub-agents",
        f"""
        session text sessions.session -- the session
        outcome text {_TOLD}'$.lifecycle.outcome' -- how its last run ended; NULL where the source does not say
        duration real {_TOLD}'$.lifecycle.duration' / 1e6 -- seconds from its beginning to its end
        prompt real {_TOLD}'$.profile.whole.prompt' / 1e6 -- seconds of people's turns
        thinking real {_TOLD}'$.profile.whole.thinking' / 1e6 -- seconds in which a model thought
        response real {_TOLD}'$.profile.whole.response' / 1e6 -- seconds in which a model answered or asked for a tool
        tool real {_TOLD}'$.profile.whole.tool' / 1e6 -- seconds in which a tool was at work
        compaction real {_TOLD}'$.profile.whole.compaction' / 1e6 -- seconds of compactions
        idle real {_TOLD}'$.profile.whole.idle' / 1e6 -- seconds in which nobody did anything
        characters_in integer {_TOLD}'$.amplification.characters_in' -- characters that people wrote
        characters_out integer {_TOLD}'$.amplification.characters_out' -- characters that models answered
        context integer (SELECT max(value ->> '$.tokens') FROM json_each({_CURVE})) -- most tokens before the model
        """,
        "FROM main.figures JOIN main.sessions ON sessions.n = figures.session WHERE figures.report IS NOT NULL",
    ),
)
NAMES = tuple(view.name for view in VIEWS)


def find_views(name: str = "") -> list[IndexView]:
    """The view of a name, which has to be there; without one, all."""
    found = [view for view in VIEWS if name in ("", view.name)]
    if not found:
        raise NotFound(f"there is no view {name!r}", hint=f"the views are {', '.join(NAMES)}")
    return found
