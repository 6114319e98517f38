"""The sentences of `Repo` about what can be found in the store, by its index."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from harken.store import Store

if TYPE_CHECKING:
    from harken.index import StoreIndex


class Indexed:
    """A store that is searched."""

    store: Store

    @cached_property
    def index(self) -> StoreIndex:
        """Words, rows and numbers of the store, in a file beside it; opened when it is first asked for."""
        from harken.index import StoreIndex  # most commands do without it

        return StoreIndex.open(self.store)
