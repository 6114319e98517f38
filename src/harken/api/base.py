"""What requests and answers have in common: what they are, how times are written, what the index lacks, and a session's
figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harken import clock
from harken.errors import BadRequest, refuse_other_types
from harken.events import Tokens
from harken.events.base import excerpt as excerpt
from harken.events.figures import Figures

if TYPE_CHECKING:
    from harken.index import IndexProgress


class ApiRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a caller asks for. A key that no operation knows is refused, not ignored, and so is a value of another type
    than the field's."""

    __post_init__ = refuse_other_types  # type: ignore[misc]  # it is called as one all the same


class OneSessionRequest(ApiRequest, frozen=True, kw_only=True):
    """Which session is meant: one in the store, or a file."""

    session: str = ""
    """The id of a session in the store, or a unique beginning of one."""
    file: str = ""
    """The path of a session log, in place of an id."""

    def place(self) -> str | Path:
        """The session as `Repo` takes it: text is an id, a path object a file."""
        if bool(self.session) == bool(self.file):
            raise BadRequest("name a session or a file", hint="give exactly one of the two")
        return Path(self.file) if self.file else self.session


class ApiAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller is told."""


class IndexedAnswer(ApiAnswer, frozen=True, kw_only=True):
    """What an answer from the index says of the index: it may lack something of the store."""

    behind: int
    """How many changes of the store are not in the index yet; the next who asks finds it further on."""
    stale: int
    """Of how many sessions the numbers are not up to date yet, where numbers were asked for."""
    problem: str
    """Why the index cannot be brought up to date; empty where it can."""
    missing: int
    """Commits and rows of the store that cannot be read (`harken index` names them), so that they are in no answer."""
    damaged: int
    """How many of these are damaged; others were evicted, or nothing here reads their format."""


def index_fields(reached: IndexProgress) -> dict[str, Any]:
    """The fields of such an answer."""
    return {name: getattr(reached, name) for name in IndexedAnswer.__struct_fields__}


def stamp(instant: int | None) -> str | None:
    """An instant as answers write it: RFC 3339, UTC, six digits; None where nobody knows it."""
    return None if instant is None or not clock.in_calendar(instant) else clock.format_instant(instant)


def instant(text: str) -> int | None:
    """The instant that a request names; None where it names none."""
    if not text:
        return None
    if (found := clock.parse_instant(text)) is None:
        raise BadRequest(f"{text!r} is no instant", hint="write it as RFC 3339, like 2026-01-31T12:00:00Z")
    return found


# -- figures, which import and stats tell alike ------------------------------------------------------------------------


class TokensAnswer(ApiAnswer, frozen=True, kw_only=True):
    """Tokens; null where nobody counted, which is not zero."""

    input: int | None
    """Put before the model, without what came from a cache or went into it."""
    output: int | None
    """Written by the model."""
    cache_read: int | None
    """Read from a cache."""
    cache_write: int | None
    """Written into a cache."""


class PromptsAnswer(ApiAnswer, frozen=True, kw_only=True):
    """What stood in the user's place, by record."""

    human: int
    """A person wrote it."""
    injected: int
    """Another agent or the harness put it there."""
    tool_result: int
    """A tool answered."""


class FiguresAnswer(ApiAnswer, frozen=True, kw_only=True):
    """The numbers of a session, or of several."""

    usage: TokensAnswer
    """Tokens, each request once."""
    prompts: PromptsAnswer
    """Prompts, by who made them."""
    injected: dict[str, int]
    """Injected prompts, by what they are."""
    tools: dict[str, int]
    """Calls, by the tool's name; the most frequent first."""
    responses: int
    """Messages of the model."""
    errors: int
    """Errors."""
    compactions: int
    """Compactions."""
    requests: int
    """Requests whose usage is known, each once."""
    models: dict[str, TokensAnswer]
    """Tokens by model, where they are known per request."""
    cost_usd_micros: int | None
    """What it cost in millionths of a dollar; null where nobody said."""
    started: str | None
    """When it began."""
    ended: str | None
    """When it ended."""


def figures_fields(figures: Figures) -> dict[str, Any]:
    """The fields of figures, as answers have them."""
    prompts = figures.prompts
    return {
        **{name: getattr(figures, name) for name in Figures.__struct_fields__},
        "usage": tokens_answer(figures.usage),
        "prompts": PromptsAnswer(human=prompts.human, injected=prompts.injected, tool_result=prompts.tool_result),
        "models": {model: tokens_answer(tokens) for model, tokens in figures.models.items()},
        "started": stamp(figures.started),
        "ended": stamp(figures.ended),
    }


def tokens_answer(tokens: Tokens) -> TokensAnswer:
    """Tokens, as an answer."""
    return TokensAnswer(
        input=tokens.input, output=tokens.output, cache_read=tokens.cache_read, cache_write=tokens.cache_write
    )
