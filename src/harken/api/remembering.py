"""What was worked out for one question and serves the next: kept in memory, a few of each kind, per repository.

Everything in it can be made again. A key names what the value was made of (the commit a session stands at, the place
of the index), so nothing has to be taken out when something is added: nobody asks for it any more. Where something was
erased, also by another process, the store has another epoch, and everything is dropped: a session stands where it
stood, and its words must be gone.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

from harken.repo import Repo

T = TypeVar("T")


class _Kept(NamedTuple):
    """What is kept of a repository, by kind, and the epoch in which it was made."""

    epoch: str
    kinds: dict[str, OrderedDict[Hashable, Any]]
    making: dict[tuple[str, Hashable], threading.Event]
    """What is being made, and who is told when it is."""


_KEPT: weakref.WeakKeyDictionary[Repo, _Kept] = weakref.WeakKeyDictionary()
_LOCK = threading.Lock()


def remembered(
    repo: Repo, kind: str, key: Hashable, make: Callable[[], T], *, most: int = 8, opened: int | None = None
) -> T:
    """The value of a key, made where nobody has asked for it lately. Of many who ask at once one makes it for all;
    where that fails, the next does. What is made may ask for other keys, and not for its own.

    `opened` is that of the index which the value is made from (`IndexProgress.opened`): where another has come in its
    place meanwhile, which is not filled yet, the value is not kept."""
    epoch = repo.epoch
    while True:
        with _LOCK:
            if repo not in _KEPT or _KEPT[repo].epoch != epoch:
                _KEPT[repo] = _Kept(epoch, {}, {})
            kept, making = _KEPT[repo].kinds.setdefault(kind, OrderedDict()), _KEPT[repo].making
            if key in kept:
                kept.move_to_end(key)
                found: T = kept[key]
                return found
            if (under_way := making.get((kind, key))) is None:
                done = making[kind, key] = threading.Event()
                break
        under_way.wait()
    try:
        made = make()
        if opened is not None and repo.index.opened != opened:
            return made
        with _LOCK:
            kept[key] = made
            while len(kept) > most:
                kept.popitem(last=False)
    finally:
        with _LOCK:
            del making[kind, key]
        done.set()
    return made
