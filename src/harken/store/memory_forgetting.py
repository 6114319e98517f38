"""Forgetting in the store in memory: what is forgotten is simply put out of the dictionaries."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from harken import ids
from harken.errors import Conflict, Evicted, NotFound

from .erasing import forgotten
from .tombstones import (
    BEGUN,
    DONE,
    LIFTED,
    Erasure,
    ErasureOrder,
    Tombstone,
    Watchword,
    blanked,
    find_watched,
    keep_out_of_text,
    merged,
    without,
)

if TYPE_CHECKING:
    from .memory import MemoryStore
    from .memory_writer import MemoryArtifact, MemoryWriter


class MemoryForgetting:
    """What was forgotten, and how more is."""

    def __init__(self) -> None:
        self._erasures: dict[int, Erasure] = {}
        self.stones: dict[str, tuple[Tombstone, int]] = {}  # by artifact, with the erasure's number
        self.watchwords: list[Watchword] = []

    @property
    def _store(self) -> MemoryStore:
        return cast("MemoryStore", self)

    @property
    def has_forgotten(self) -> bool:
        """Whether anything was ever forgotten."""
        return bool(self._erasures)

    def erasures(self) -> list[Erasure]:
        """Everything that was forgotten, the oldest first."""
        return list(self._erasures.values())

    def tombstones(self, artifacts: Sequence[str]) -> dict[str, Tombstone]:
        """What was forgotten of these artifacts, by their names."""
        return {name: self.stones[name][0] for name in artifacts if name in self.stones}

    def contents(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        """Every artifact that has bytes."""
        store = self._store
        for name in store.artifacts(limit=1 << 60):
            if store.has(name):
                yield name, iter([store.get(name)])

    def keep_out(self, value: str) -> str:
        """The text without the secrets that were forgotten."""
        return keep_out_of_text(value, self.watchwords)

    def erase(self, order: ErasureOrder) -> Erasure:
        """Forget, in one transaction."""
        store, number = self._store, len(self._erasures) + 1
        erasure = Erasure(number=number, time=order.time, who=order.who, why=order.why, what=order.what, state=BEGUN)
        with store.write() as writer:
            if store.last_change() != order.at:
                raise Conflict("the store has changed meanwhile", hint="look again")
            writer.keep(self._erasures, number, erasure)
            for artifact, spans in order.artifacts.items():
                _forget(store, writer, artifact, spans, erasure)
            for session in order.sessions:
                writer.save_session(session, expect=session.version)
            _blank_said(store, writer, order)
            words = [Watchword.of(number, word) for word in order.words]
            writer.refill(self.watchwords, [*self.watchwords, *words])
        store._cache.clear()
        store._epoch = os.urandom(16).hex()
        return erasure

    def scrub(self) -> None:
        """Nothing is left in memory that nobody points at."""
        self._store._cache.clear()

    def finish_erasure(self, number: int) -> None:
        """Note that an erasure is done."""
        self._become(number, DONE)

    def lift_erasure(self, number: int) -> None:
        """Let in again what was forgotten."""
        self._become(number, LIFTED)
        self.watchwords = [word for word in self.watchwords if word.erasure != number]

    def _become(self, number: int, state: int) -> None:
        if number not in self._erasures:
            raise NotFound(f"no erasure {number}", hint="`erasures` lists them")
        self._erasures[number] = msgspec.structs.replace(self._erasures[number], state=state)

    # -- for the rest of the store -----------------------------------------------------------------------------

    def _gone(self, artifact: str) -> Evicted:
        """Why the bytes of an artifact are not here."""
        if artifact in self.stones:
            return forgotten(artifact, self.stones[artifact][0])
        return Evicted(f"the bytes of {ids.artifact_ref(artifact)} were evicted", hint="put them again")

    def _is_kept_out(self, artifact: str) -> bool:
        """Whether bytes that somebody puts again stay forgotten."""
        return artifact in self.stones and self._erasures[self.stones[artifact][1]].state != LIFTED

    def _let_in(self, writer: MemoryWriter, artifact: str, data: bytes) -> bytes:
        """The bytes of an artifact that somebody puts, without what was forgotten before."""
        if artifact in self.stones:
            writer.drop(self.stones, artifact)
        found = list(find_watched(data, self.watchwords))
        if found:
            spans = merged(span for span, _ in found)
            data = blanked(data, spans)
            _bury(self._store, writer, artifact, data, spans, self._erasures[found[0][1]])
        return data


def _forget(store: MemoryStore, writer: MemoryWriter, artifact: str, spans: Any, erasure: Erasure) -> None:
    known: MemoryArtifact = store._artifact(artifact)
    before = store.tombstones([artifact]).get(artifact)
    if spans and before is not None and not before.spans:
        return  # all of it is gone
    data = None
    if spans:
        spans = merged((*spans, *(before.spans if before else ())))
        data = blanked(known.data or b"", spans)
    writer.keep(store._artifacts, artifact, type(known)(data, known.policy, known.size))
    _bury(store, writer, artifact, data, spans, erasure)
    writer.tell("erasure", artifact)


def _bury(
    store: MemoryStore, writer: MemoryWriter, artifact: str, data: bytes | None, spans: Any, erasure: Erasure
) -> None:
    stone = Tombstone(
        spans=tuple(spans),
        hash="" if data is None else ids.artifact_id(data),
        who=erasure.who,
        why=erasure.why,
        time=erasure.time,
    )
    writer.keep(store.stones, artifact, (stone, erasure.number))


def _blank_said(store: MemoryStore, writer: MemoryWriter, order: ErasureOrder) -> None:
    """Blank the words in what people can say, and empty the remarks that go."""
    gone = set(order.notes)

    def clean(value: Any) -> Any:
        changes = {
            field: without(said, order.words)
            for field in value.__struct_fields__
            if isinstance(said := getattr(value, field), str)
        }
        return msgspec.structs.replace(value, **changes)

    for commit, notes in store._annotations.items():
        new = [msgspec.structs.replace(n, value="") if (commit, n.key) in gone else clean(n) for n in notes]
        writer.keep(store._annotations, commit, new)
    for name in list(store._names.values()):
        writer.drop(store._names, name.name)
        writer.keep(store._names, clean(name).name, clean(name))
    writer.refill(store._moves, [clean(move) for move in store._moves])
    writer.refill(store._changes, [clean(change) for change in store._changes])
