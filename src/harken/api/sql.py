"""SQL over the views of the index."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from harken.repo import Repo

from .base import ApiAnswer, ApiRequest, IndexedAnswer, index_fields
from .crossing import crosses


class SqlRequest(ApiRequest, frozen=True, kw_only=True):
    """What to ask."""

    query: str
    """One query; it can only read the views that `sql_schema` lists."""
    seconds: float = 10.0
    """How long it may take."""
    rows: int = 1000
    """How many rows it may give."""
    megabytes: int = 256
    """How much memory it may take."""
    prices: str = ""
    """A file whose prices stand over those that come with Harken."""


class SqlAnswer(IndexedAnswer, frozen=True, kw_only=True):
    """The rows of a query."""

    columns: list[str]
    """The names of the columns; of two with the same name the second is numbered."""
    rows: list[list[Any]]
    """Numbers, text and null; bytes are text of hex digits, a number beyond all bounds is text."""
    more: bool
    """Whether there were more rows than were asked for."""


@crosses
def sql(repo: Repo, request: SqlRequest) -> SqlAnswer:
    """Ask the index a question in SQL."""
    found = repo.sql(
        request.query,
        seconds=request.seconds,
        rows=request.rows,
        megabytes=request.megabytes,
        prices=request.prices,
    )
    rows = [[_as_json(value) for value in row] for row in found.rows]
    return SqlAnswer(columns=list(found.columns), rows=rows, more=found.more, **index_fields(found.reached))


def _as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


class SqlSchemaRequest(ApiRequest, frozen=True, kw_only=True):
    """Which views to describe."""

    name: str = ""
    """The view of this name; empty for all."""


class SqlColumn(ApiAnswer, frozen=True, kw_only=True):
    """A column of a view."""

    name: str
    """What it is called."""
    type: str
    """`text`, `integer`, `real`, or `time`: text in UTC, such as 2026-11-15T10:30:00.000Z."""
    meaning: str
    """What it says."""


class SqlView(ApiAnswer, frozen=True, kw_only=True):
    """A view that can be asked."""

    name: str
    """What it is called."""
    meaning: str
    """What its rows are."""
    columns: list[SqlColumn]
    """Its columns."""


def sql_schema(repo: None, request: SqlSchemaRequest) -> Iterator[SqlView]:
    """The views that `sql` can be asked of. Needs no store: `repo` is None."""
    from harken.repo.finding import sql_views

    for view in sql_views(request.name):
        columns = [SqlColumn(name=one.name, type=one.type, meaning=one.meaning) for one in view.columns]
        yield SqlView(name=view.name, meaning=view.meaning, columns=columns)
