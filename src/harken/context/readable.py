"""The bytes of commits for whoever only reads them: they take no more memory than what can be read of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import TypeVar, cast

from harken.errors import HarkenError
from harken.formats import find
from harken.formats.kit.jsonl import is_overlong
from harken.formats.kit.sparse import sparse
from harken.store.base import Commit, Store, WalkStep

C = TypeVar("C", WalkStep, Commit)


def _abridged(store: Store, artifact: str) -> bytes:
    """An artifact for readers: of one that is larger than any line may be, without what nobody looks at."""
    size = store.info(artifact).size
    return cast("bytes", sparse(store.iter_parts(artifact), size)) if is_overlong(size) else store.get(artifact)


def for_readers(store: Store, steps: Iterable[WalkStep | Commit]) -> Callable[[str], bytes] | None:
    """How to get what is large, where every format among them can be read without it."""
    known = map(find, {step.format for step in steps})
    return partial(_abridged, store) if all(each is not None and each.takes_sparse for each in known) else None


def contents_of(store: Store, commits: Sequence[C]) -> Iterator[tuple[C, bytes | HarkenError]]:
    """The bytes of each commit's delta for a reader, or why they cannot be had; one after the other."""
    for _, group in groupby(commits, key=attrgetter("format")):
        same = list(group)
        large = for_readers(store, same)
        done = 0
        while done < len(same):
            try:
                for data in store.get_many([commit.artifact for commit in same[done:]], large=large):
                    yield same[done], data
                    done += 1
            except HarkenError:
                # One of them is at fault, and perhaps not this one.
                yield same[done], _content(store, same[done], large)
                done += 1


def _content(store: Store, commit: WalkStep | Commit, large: Callable[[str], bytes] | None) -> bytes | HarkenError:
    try:
        return large(commit.artifact) if large is not None else store.get(commit.artifact)
    except HarkenError as problem:
        return problem
