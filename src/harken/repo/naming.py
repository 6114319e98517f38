"""The sentences of `Repo` about names: branches, tags and pins, and what is said about a commit."""

from __future__ import annotations

from harken import clock as clocks
from harken import context
from harken.context import Ref, names
from harken.context.summary import WRITTEN
from harken.errors import BadRequest
from harken.store import Move, Name, Store

OWN_REMARKS, is_kept = names.OWN_REMARKS, names.is_kept


class Naming:
    """A store whose commits are named and spoken of."""

    store: Store
    clock: clocks.Clock

    def annotate(self, ref: Ref, text: str, *, key: str = WRITTEN, who: str = "") -> None:
        """Say something about a commit; the newest summary is the one that is shown."""
        if not text.strip():
            raise BadRequest("there is nothing to say", hint="give a text")
        commit = context.get_commit(self.store, ref)
        with self.store.write() as writer:
            writer.annotate(commit.id, key, text, time=self.clock(), who=who)

    def fork(self, ref: Ref, name: str, *, who: str = "", why: str = "") -> Name:
        """A new branch at a commit; nothing is copied."""
        return self._new_name(ref, name, "branch", who, why or "fork")

    def tag(self, ref: Ref, name: str, *, who: str = "", why: str = "") -> Name:
        """A new tag at a commit."""
        return self._new_name(ref, name, "tag", who, why or "tag")

    def _new_name(self, ref: Ref, name: str, kind: str, who: str, why: str) -> Name:
        commit = context.get_commit(self.store, ref)
        self.move(name, commit, kind=kind, expect="", who=who, why=why)
        return Name(name=name, kind=kind, target=commit.id)

    def move(
        self, name: str, to: Ref | None, *, kind: str, expect: str | None = None, who: str = "", why: str = ""
    ) -> None:
        """Point a branch or tag elsewhere (None: remove it), and write down that it was moved."""
        target = context.get_commit(self.store, to).id if to is not None else ""
        with self.store.write() as writer:
            writer.move(name, kind=kind, to=target, expect=expect, time=self.clock(), who=who, why=why)

    def undo(self, name: str | None = None, *, number: int | None = None, who: str = "") -> Name:
        """Take back the newest deliberate move of a name (or of any), or the move of that number, which is one more
        move. `Conflict` if the name has gone on since."""
        if name and number is not None:
            raise BadRequest("a move is named by its number or by a name, not by both", hint="give one of the two")
        return names.undo(self.store, name, number, time=self.clock(), who=who)

    def names(self, kind: str | None = None) -> list[Name]:
        """The branches and tags, or those of one kind."""
        return self.store.names(kind)

    def find_name(self, name: str) -> Name | None:
        """The branch or tag of exactly this name."""
        return self.store.find_name(name)

    def moves(self, name: str | None = None, *, limit: int | None = None) -> list[Move]:
        """Where names were moved on purpose, newest first."""
        return self.store.moves(name, limit=limit)

    def pin(self, ref: Ref, *, off: bool = False, only: bool = False) -> int:
        """Keep a commit's bytes for ever (`off`: no longer), with the chain behind it unless `only`. The answer is
        the number of artifacts."""
        return names.set_pin(self.store, context.get_commit(self.store, ref), pinned=not off, only=only)
