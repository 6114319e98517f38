"""The index as files of tables, without secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .masking import Masks

if TYPE_CHECKING:
    from harken.analytics.prices import PriceList
    from harken.index import StoreIndex
    from harken.index.parquet import ParquetFile
    from harken.secrets import Rule


class TableExport:
    """Files that are written one by one; when the last has been taken, what was masked is known."""

    def __init__(
        self,
        index: StoreIndex,
        folder: Path,
        own_rules: Sequence[Rule],
        *,
        reveal: bool,
        replace: bool,
        prices: PriceList | None = None,
    ) -> None:
        self._index, self._folder, self._replace, self._prices = index, folder, replace, prices
        self._masks = Masks(own_rules, reveal=reveal, for_people=False)
        self.missing = self.damaged = 0
        """Parts of the store that cannot be read, and how many of these are damaged."""

    @property
    def masked(self) -> Mapping[str, int]:
        """How many secrets were masked, by rule."""
        return self._masks.counts

    def files(self) -> Iterator[ParquetFile]:
        """The files, each when it is there. The index takes in all of the store first."""
        from harken.index.parquet import write_parquet

        reached = self._index.catch_up()
        self.missing, self.damaged = reached.missing, reached.damaged
        yield from write_parquet(
            self._index, self._folder, mask=self._masks.text, replace=self._replace, prices=self._prices
        )
