"""What a fork of the process does to SQLite, and what is refused in the child because of it.

SQLite's table of the locks that a process has is copied by a fork, and the locks themselves are not: a child that
opened a file of its parent's again would write without any lock. And what another thread held inside SQLite at that
moment nobody in the child will ever let go: a child that called SQLite, for whatever file, might hang. So both are
refused (`opening.enlist`), and what the parent had open stays as it is, never to be closed by the child.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import Counter
from typing import Protocol


class UserOfSqlite(Protocol):
    """What has connections of its own."""

    forked: bool
    """Whether this is the copy of it in a child of the process that made it."""

    @property
    def used_by_others(self) -> bool:
        """Whether threads other than this one may be inside SQLite."""
        ...


OPENING = threading.RLock()
"""Held while a file is opened; by a thread that may give up a store that nobody closed in the middle of it."""
IN_USE: Counter[tuple[int, int]] = Counter()
"""How many databases of this process use a file, by its device and inode."""
INHERITED: set[tuple[int, int]] = set()
"""The files that were in use in the parent when this process was forked off."""
USERS: weakref.WeakSet[UserOfSqlite] = weakref.WeakSet()
"""Everything that is open; added to while `OPENING` is held."""
forked_in_use = False
"""Whether another thread used a store when this process was forked off."""
_ABANDONED: list[UserOfSqlite] = []


def _before() -> None:
    OPENING.acquire()
    _ABANDONED.extend(USERS)


def _in_parent() -> None:
    _ABANDONED.clear()
    OPENING.release()


def _in_child() -> None:
    global OPENING, forked_in_use
    OPENING = threading.RLock()
    INHERITED.update(file for file, count in IN_USE.items() if count > 0)
    IN_USE.clear()
    for user in _ABANDONED:
        user.forked = True
    forked_in_use = forked_in_use or any(user.used_by_others for user in _ABANDONED)


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
