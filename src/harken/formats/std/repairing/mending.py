"""A document that is being repaired: what was changed so far, and the ways in which a field is changed.

Nothing is lost: what a new value does not say is kept beside it, in the field `x_harken_old_…`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

import msgspec

from harken.formats.std.checking.schema import shown
from harken.formats.std.document import Json
from harken.formats.std.findings import OLD, DocumentChange
from harken.formats.std.spellings import known_time, says_nothing
from harken.formats.std.summary import computed_summary

_STEP = re.compile(r'(?:^|\.)([^.\[\]]+)|\[([0-9]+)\]|\[("(?:[^"\\]|\\.)*")\]')

T = TypeVar("T")


class Mending:
    """The document, which is changed in place, and what was changed."""

    def __init__(self, data: Json, name: str = "", *, derives: bool = True) -> None:
        """`derives` is whether it gets values that it does not say itself."""
        self.data = data
        self.derives = derives
        self.name = name
        """What the file is called, without `.json`; empty where nobody said."""
        self.changes: list[DocumentChange] = []
        self.runs: dict[int, list[list[str]]] = {}
        """An annotation, by the identity of its object, to the further runs of calls that it is about."""
        self._known: dict[Any, Any] = {}

    def start_round(self) -> None:
        """Forget what was worked out from the document before it was changed."""
        self._known.clear()

    def once(self, name: Hashable, make: Callable[[], T]) -> T:
        """Something that is worked out from the document once in a round, however many places ask for it."""
        if name not in self._known:
            self._known[name] = make()
        found: T = self._known[name]
        return found

    def summary(self) -> Json:
        """The summary that the document should have."""
        return self.once("summary", lambda: computed_summary(self.data))

    def free_id(self, kind: str, make: Callable[[int], str], ids: Callable[[], Iterable[Any]]) -> str:
        """The first id, by its number, that no thing of a kind has yet; it is taken then."""
        taken = self._ids(kind, ids)
        last = self.once(("last", kind, make(0)), lambda: [0])
        last[0] += 1
        while (name := make(last[0])) in taken:
            last[0] += 1
        taken.add(name)
        return name

    def claim_id(self, kind: str, name: str, ids: Callable[[], Iterable[Any]]) -> bool:
        """Whether no thing of a kind has this id yet; it is taken then."""
        taken = self._ids(kind, ids)
        is_free = name not in taken
        taken.add(name)
        return is_free

    def _ids(self, kind: str, ids: Callable[[], Iterable[Any]]) -> set[str]:
        return self.once(("ids", kind), lambda: {one for one in ids() if isinstance(one, str)})

    def move(self, name: str, moved: dict[int, int]) -> None:
        """Say of earlier changes in a list where its items are now."""
        pattern = re.compile(rf"{re.escape(name)}\[([0-9]+)\]")
        for place, change in enumerate(self.changes):
            if found := pattern.match(change.path):
                path = f"{name}[{moved[int(found[1])]}]{change.path[found.end() :]}"
                self.changes[place] = msgspec.structs.replace(change, path=path)

    def tell(self, rule: str, path: str, message: str, *, derived: bool = False) -> None:
        self.changes.append(DocumentChange(rule=rule, path=path, message=message, derived=derived))


class Spot(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a document where something is wrong."""

    doc: Mending
    rule: str
    path: str
    holder: Any
    """The object or list that the place is in."""
    key: Any

    @property
    def value(self) -> Any:
        """What is there; None where nothing is."""
        if isinstance(self.holder, dict):
            return self.holder.get(self.key)
        return self.holder[self.key]

    def put(self, value: Any, why: str, *, derived: bool = False, keep: bool = False) -> bool:
        """Put another value there, and say why. What was there is kept beside it, where that does not say the same."""
        if derived and not self.doc.derives:
            return False
        was = self.value
        if (keep or derived) and was is not None and isinstance(self.holder, dict):
            self.holder.setdefault(OLD + self.key, was)
        self.holder[self.key] = value
        before = shown(was) if was is not None else "missing"
        name = f"`{self.key}`" if isinstance(self.key, str) else "the entry"
        self.doc.tell(self.rule, self.path, f"{name} was {before}, is {shown(value)}: {why}", derived=derived)
        return True

    def take(self, names: Iterable[str], kind: type | tuple[type, ...]) -> bool:
        """Take the value from the first of these fields beside it that has one of that kind; they stay."""
        for name in names:
            if isinstance(found := self.holder.get(name), kind) and found != "":
                return self.put(found, f"as `{name}` says", keep=True)
        return False

    def take_time(self, names: Iterable[str]) -> bool:
        """The same of a time: a text, unless it says nothing, or a number that is one."""
        told = {name: self.holder.get(name) for name in names}
        return self.take([name for name, said in told.items() if _may_be_time(said)], (str, int, float))

    def set_aside(self, because: str = "which has no place there") -> bool:
        """Keep what is there beside its place, which need not be filled."""
        if not self.doc.derives:
            return False
        was = self.holder.pop(self.key)
        self.holder.setdefault(OLD + self.key, was)
        said = f"`{self.key}` was {shown(was)}, {because}; it is kept as `{OLD}{self.key}`"
        self.doc.tell(self.rule, self.path, said)
        return True


def _may_be_time(said: object) -> bool:
    return not says_nothing(said) if isinstance(said, str) else known_time(said) is not None


Mender = Callable[[Spot], bool]
"""Mends what is wrong at a place, and says whether it did."""


def spot_at(doc: Mending, rule: str, path: str) -> Spot | None:
    """The place that a path names; None where it is not there, or names the document itself."""
    steps = path_steps(path)
    holder: Any = doc.data
    for step in steps[:-1]:
        holder = _below(holder, step)
    if not steps or not _can_hold(holder, steps[-1]):
        return None
    return Spot(doc=doc, rule=rule, path=path, holder=holder, key=steps[-1])


def path_steps(path: str) -> list[str | int]:
    """The keys and places that a path is made of."""
    found = (match.groups() for match in _STEP.finditer(path))
    return [
        name if name is not None else int(place) if place is not None else json.loads(odd) for name, place, odd in found
    ]


def pattern_of(path: str) -> str:
    """The path without places: what is alike in it for all items of a list."""
    return re.sub(r"\[[0-9]+\]", "[]", path)


def _below(holder: Any, step: str | int) -> Any:
    if isinstance(holder, dict) and isinstance(step, str):
        return holder.get(step)
    return holder[step] if _can_hold(holder, step) else None


def _can_hold(holder: Any, step: str | int) -> bool:
    if isinstance(step, int):
        return isinstance(holder, list) and step < len(holder)
    return isinstance(holder, dict)
