"""The views of the index as Parquet files, for engines that are made for large tables. DuckDB, an extra, writes them.

Rows go to DuckDB as lines of JSON in a scratch file: it reads those quickly, needs no other package, and memory stays
bounded. All views are of one moment. A file is there whole or not at all.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import orjson

from harken.errors import BadRequest, Conflict, HarkenError
from harken.files import write_hint, write_whole

from .file import StoreIndex
from .making_views import make_views
from .views import VIEWS, IndexView

if TYPE_CHECKING:
    from harken.analytics.prices import PriceList

ROWS = 1000
"""Rows that are written at once."""
CHUNK = 1 << 20
CLEAN = 100_000
"""How many texts are remembered to hold nothing that is masked."""
IDS = {"session", "parent", "message", "source_message", "commit_id", "call_id", "request"}
"""Columns that name something: tables are joined by them, and they are not masked."""
_TYPES = {"text": "VARCHAR", "integer": "BIGINT", "real": "DOUBLE", "time": "VARCHAR"}


class ParquetFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was written."""

    view: str
    path: str
    rows: int
    size: int


def write_parquet(
    index: StoreIndex, folder: Path, *, mask: Callable[[str], str], replace: bool, prices: PriceList | None = None
) -> Iterator[ParquetFile]:
    """A file for each view, as it is written; text that is no name goes through `mask` first, and `prices` stand over
    those that come with Harken."""
    try:
        import duckdb
    except ImportError:
        raise BadRequest("Parquet files are written by DuckDB", hint="pip install 'harken[analytics]'") from None
    paths = {view.name: folder / f"{view.name}.parquet" for view in VIEWS}
    for path in paths.values():
        if path.exists() and not replace:
            raise Conflict(f"{path} exists already", hint="name a new folder, or replace the files with --force")
    mask = _remembering(mask)
    with (
        tempfile.TemporaryDirectory(prefix="harken-") as scratch,
        closing(index.connect()) as connection,
        closing(duckdb.connect()) as engine,
    ):
        engine.execute("SET autoinstall_known_extensions = false")  # nothing is fetched from anywhere
        engine.execute(f"SET temp_directory = {_literal(Path(scratch, 'engine'))}")
        connection.execute("PRAGMA temp_store = MEMORY")
        make_views(connection, prices)
        connection.execute("BEGIN")
        for view in VIEWS:
            lines, made = Path(scratch, "rows.jsonl"), Path(scratch, "made.parquet")
            count = _write_lines(connection, view, lines, mask)
            engine.execute(_copy(view, lines, made))
            yield _keep(view.name, made, paths[view.name], count, replace=replace)


def _remembering(mask: Callable[[str], str]) -> Callable[[str], str]:
    """The same; most columns say the same few things again and again."""
    clean: set[str] = set()

    def remembered(text: str) -> str:
        if text in clean:
            return text
        masked = mask(text)
        if masked == text and len(clean) < CLEAN:
            clean.add(text)
        return masked

    return remembered


def _write_lines(connection: sqlite3.Connection, view: IndexView, path: Path, mask: Callable[[str], str]) -> int:
    names = [column.name for column in view.columns]
    masked = {column.name for column in view.columns if column.type == "text"} - IDS
    cursor, count = connection.execute(f'SELECT * FROM "{view.name}"'), 0
    with path.open("wb") as file:
        while rows := cursor.fetchmany(ROWS):
            for row in rows:
                said = dict(zip(names, row, strict=True))
                said |= {name: mask(said[name]) for name in masked if said[name]}
                file.write(orjson.dumps(said) + b"\n")
            count += len(rows)
    return count


def _copy(view: IndexView, lines: Path, made: Path) -> str:
    """What DuckDB is told; instants become its own."""
    columns = ", ".join(f"{column.name}: '{_TYPES[column.type]}'" for column in view.columns)
    chosen = ", ".join(
        f'TRY_CAST("{column.name}" AS TIMESTAMP) AS "{column.name}"' if column.type == "time" else f'"{column.name}"'
        for column in view.columns
    )
    read = f"read_json({_literal(lines)}, format = 'newline_delimited', columns = {{{columns}}})"
    return f"COPY (SELECT {chosen} FROM {read}) TO {_literal(made)} (FORMAT parquet, COMPRESSION zstd)"


def _literal(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _keep(view: str, made: Path, path: Path, rows: int, *, replace: bool) -> ParquetFile:
    def chunks() -> Iterator[bytes]:
        with made.open("rb") as file:
            while data := file.read(CHUNK):
                yield data

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, chunks(), replace=replace)
    except OSError as problem:
        raise HarkenError(f"cannot write {path}: {problem.strerror or problem}", hint=write_hint(problem)) from None
    return ParquetFile(view=view, path=str(path), rows=rows, size=made.stat().st_size)
