"""The bytes of commits for whoever only reads them: they take no more memory than what can be read of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import cast

from harken.formats import find
from harken.formats.kit.jsonl import is_overlong
from harken.formats.kit.sparse import sparse
from harken.store.base import Commit, Store, WalkStep


def _abridged(store: Store, artifact: str) -> bytes:
    """An artifact for readers: of one that is larger than any line may be, without what nobody looks at."""
    size = store.info(artifact).size
    return cast("bytes", sparse(store.iter_parts(artifact), size)) if is_overlong(size) else store.get(artifact)


def for_readers(store: Store, steps: Iterable[WalkStep | Commit]) -> Callable[[str], bytes] | None:
    """How to get what is large, where every format among them can be read without it."""
    known = map(find, {step.format for step in steps})
    return partial(_abridged, store) if all(each is not None and each.takes_sparse for each in known) else None
