"""The sentences of `Repo` about what can be found in the store, by its index."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from harken.store import Store

if TYPE_CHECKING:
    from harken.index import Index


class Finding:
    """A store that is searched."""

    store: Store

    @cached_property
    def index(self) -> Index:
        """Words, rows and numbers of the store, in a file beside it; opened when it is first asked for."""
        from harken.index import Index  # most commands do without it

        return Index.open(self.store)
