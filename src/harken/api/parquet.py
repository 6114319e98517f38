"""The views of the index as files for larger engines."""

from __future__ import annotations

from collections.abc import Iterator

from harken.repo import Repo

from .base import ApiAnswer
from .crossing import crosses
from .secret_rules import MaskedSecrets, RulesRequest, compiled, masked_secrets


class ExportParquetRequest(RulesRequest, frozen=True, kw_only=True):
    """Where to write, and how."""

    folder: str
    """The folder, which is made if it is not there."""
    reveal: bool = False
    """Whether secrets stay as they are; else they are masked."""
    replace: bool = False
    """Whether files that are there already are replaced."""
    prices: str = ""
    """A file whose prices stand over those that come with Harken."""


class ParquetAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A file that was written."""

    view: str
    """The view that it holds (`sql_schema` lists them)."""
    path: str
    """The file."""
    rows: int
    """Its rows."""
    bytes: int
    """Its size."""


class ParquetCounts(ApiAnswer, frozen=True, kw_only=True):
    """What became of it."""

    files: int
    """Files that were written."""
    rows: int
    """Their rows."""
    bytes: int
    """Their size."""
    masked: list[MaskedSecrets]
    """The secrets that were masked, by rule."""
    missing: int
    """Commits and rows of the store that cannot be read, so that they are in no file."""
    damaged: int
    """How many of these are damaged; others were evicted, or nothing here reads their format."""


class ParquetReport(ApiAnswer, frozen=True, kw_only=True):
    """The last line."""

    report: ParquetCounts
    """Everything together."""


@crosses
def export_parquet(repo: Repo, request: ExportParquetRequest) -> Iterator[ParquetAnswer | ParquetReport]:
    """Write every view of the index as a Parquet file: a line for each, and a report."""
    made = repo.export_parquet(
        request.folder,
        reveal=request.reveal,
        own_rules=compiled(request.own_rules),
        replace=request.replace,
        prices=request.prices,
    )
    files = rows = size = 0
    for file in made.files():
        files, rows, size = files + 1, rows + file.rows, size + file.size
        yield ParquetAnswer(view=file.view, path=file.path, rows=file.rows, bytes=file.size)
    masked = masked_secrets(made.masked)
    counts = ParquetCounts(
        files=files, rows=rows, bytes=size, masked=masked, missing=made.missing, damaged=made.damaged
    )
    yield ParquetReport(report=counts)
