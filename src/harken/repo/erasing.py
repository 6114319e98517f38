"""The sentences of `Repo` about forgetting: what looks like a secret, what would go, and letting it go for good."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harken import clock as clocks
from harken.context.chains import readable_sessions, recall_stamps
from harken.context.materialize import keeping_recipes
from harken.context.refs import Ref, get_commit
from harken.errors import BadRequest, Conflict
from harken.store import Erasure, ErasureOrder, SessionRow, Store
from harken.store.tombstones import BEGUN, BLANK, Tombstone

if TYPE_CHECKING:
    from harken.index import StoreIndex
    from harken.secrets import Rule

    from .candidates import SecretCandidate
    from .erasure_plan import ForgetReport

TRIES = 5
"""How often what is to go is looked for anew, where others write meanwhile."""


def check_forgotten(ref: Ref | None, secret: Sequence[str], rules: Sequence[Rule]) -> None:
    """Refuse to forget nothing, or two things at once."""
    if (ref is None) == (not secret and not rules):
        raise BadRequest("name a session or a commit, or give a secret or a rule", hint="exactly one of the two")


def _ignore(size: int) -> None:
    """Nobody wants to know how far it is."""


class _Overtaken(Exception):
    """Somebody has written since it was found out what goes."""


class Erasing:
    """A store that can forget."""

    store: Store
    clock: clocks.Clock

    def find_secrets(
        self,
        refs: Iterable[Ref] = (),
        *,
        rules: Sequence[Rule] | None = None,
        moved: Callable[[int], None] | None = None,
    ) -> Iterator[SecretCandidate]:
        """What looks like a key or a password: in these sessions, or in the conversations at these commits, or in all
        of the store. Nothing of the secret itself is in an answer."""
        from harken.secrets import RULES  # most commands do without them

        from .candidates import candidates

        return candidates(self.store, list(refs), RULES if rules is None else rules, moved or _ignore)

    def forget(
        self,
        ref: Ref | None = None,
        *,
        secret: Sequence[str] = (),
        rules: Sequence[Rule] = (),
        who: str = "",
        why: str = "",
        dry_run: bool = False,
        moved: Callable[[int], None] | None = None,
    ) -> ForgetReport:
        """Take a session, what a commit adds, or secrets (given, or found by rules) out of the store for good.

        Secrets are looked for in all of the store. With `dry_run` nothing changes, and the answer is what would go."""
        check_forgotten(ref, secret, rules)
        from .erasure_plan import ForgetPlan

        self.finish_forgetting()
        for _ in range(TRIES):
            plan = ForgetPlan(self.store, self.clock())
            plan.look(ref, secret, rules, moved or _ignore)
            report = plan.report(dry_run=dry_run)
            if dry_run or plan.is_empty:
                return report
            try:
                order = plan.order(who=who, why=why)
                with keeping_recipes(self.store):  # names of answers that have nothing to do with it stay good
                    erasure = self._erased(order)
            except _Overtaken:
                continue
            return msgspec.structs.replace(report, erasure=erasure.number)
        raise Conflict("the store changes all the time", hint="stop what writes to it, then try again")

    def _erased(self, order: ErasureOrder) -> Erasure:
        """All three steps; what is begun is finished here, or by whoever comes next."""
        try:
            erasure = self.store.erase(order)
        except Conflict as problem:
            raise _Overtaken from problem
        self.finish_forgetting()
        return erasure

    def unfinished_forgetting(self) -> list[Erasure]:
        """What somebody began to forget and did not finish."""
        return [erasure for erasure in self.store.erasures() if erasure.state == BEGUN]

    def finish_forgetting(self) -> list[Erasure]:
        """Finish what was begun, here or by somebody who was killed: nothing of it is left in any file then."""
        begun = self.unfinished_forgetting()
        for erasure in begun:
            _blank_spools(self.store, _told(erasure).get("spools", {}))
        if begun:
            self._remove_index()
            self.store.scrub()
        for erasure in begun:
            self.store.finish_erasure(erasure.number)
        return begun

    def restorable(self, paths: Sequence[str | os.PathLike[str]] = ()) -> list[str]:
        """The sessions of which something was forgotten, and whose sources lie at or below these paths, or anywhere."""
        places = [Path(path).absolute() for path in paths]
        return sorted(
            row.session
            for row in readable_sessions(self.store)
            if (not places or any(_is_below(source, places) for source in (*recall_stamps(row), row.source)))
            and (row.forgotten or self.store.tombstones(self._held(row)))
        )

    def forgotten_of(self, ref: Ref) -> str:
        """What was forgotten of the bytes that a commit adds, by whom and why; empty where nothing was."""
        artifact = get_commit(self.store, ref).artifact
        stone = self.store.tombstones([artifact]).get(artifact)
        if stone is None:
            return ""
        what = f"{stone.count} bytes of it were" if stone.spans else "all of it was"
        return f"{what} forgotten{stone.said}"

    def lift_forgetting(self, sessions: Iterable[str]) -> list[Erasure]:
        """Let these sessions in again, whole: an import of their sources brings back what was forgotten of them."""
        names = set(sessions)
        lifted = self._about(names)
        for erasure in lifted:
            self.store.lift_erasure(erasure.number)
        with self.store.write() as writer:
            for name in sorted(names):
                if (row := self.store.find_session(name)) is not None and row.forgotten:
                    writer.save_session(msgspec.structs.replace(row, forgotten=False, state=b""), expect=row.version)
        return lifted

    def restored_along(self, sessions: Iterable[str]) -> list[str]:
        """Other sessions of which something was forgotten together with something of these: an erasure is lifted whole,
        since nobody can tell in whose file a secret will stand."""
        names = set(sessions)
        together = self._about(names)
        taken = {name for erasure in together for name in _told(erasure).get("sessions", ())}
        marks = {_mark(erasure) for erasure in together}
        found = []
        for row in readable_sessions(self.store) if together else ():
            here = set() if row.session in names else self._marks([row])
            if here & marks or (row.session in taken - names and (here or row.forgotten)):
                found.append(row.session)
        return sorted(found)

    def _about(self, names: set[str]) -> list[Erasure]:
        """The erasures that took one of these sessions, or blanked a secret in one."""
        said = self._marks([row for row in readable_sessions(self.store) if row.session in names])
        return [
            erasure
            for erasure in self.store.erasures()
            if names & {*_told(erasure).get("sessions", ())} or _mark(erasure) in said
        ]

    def _marks(self, rows: Iterable[SessionRow]) -> set[tuple[int, str, str]]:
        """Which erasures left tombstones in these sessions."""
        stones = self.store.tombstones([artifact for row in rows for artifact in self._held(row)])
        return {_mark(stone) for stone in stones.values()}

    def _held(self, row: SessionRow) -> list[str]:
        """The artifacts of a session's chains."""
        return [step.artifact for tip in (row.stand, *row.older) if tip for step in self.store.walk(tip)]

    def _remove_index(self) -> None:
        """The words of what was forgotten are in the index, and SQLite cannot take them out of it: it is built anew."""
        held: StoreIndex | None = self.__dict__.pop("index", None)
        if held is not None:
            held.close()
        from harken.index.file import index_files
        from harken.index.schema import is_foreign

        place = Path(self.store.location)
        files = index_files(place) if place.is_file() else []
        for path in () if not files or is_foreign(files[0]) else files:
            path.unlink(missing_ok=True)


def _is_below(source: str, places: Sequence[Path]) -> bool:
    return bool(source) and any(Path(source).is_relative_to(place) for place in places)


def _mark(one: Erasure | Tombstone) -> tuple[int, str, str]:
    """What an erasure and the tombstones that it left have in common."""
    return one.time, one.who, one.why


def _told(erasure: Erasure) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(erasure.what)
    except msgspec.MsgspecError:
        return {}
    return found if isinstance(found, dict) else {}


def _blank_spools(store: Store, spools: dict[str, Sequence[Sequence[int]]]) -> None:
    """Blank spans of files that only grow, where they lie."""
    for name, spans in spools.items():
        path = Path(store.location).with_name(Path(name).name)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:  # it was stored meanwhile, without what is not let in
            continue
        try:
            for start, end in spans:
                os.pwrite(handle, BLANK * (end - start), start)
            os.fsync(handle)
        finally:
            os.close(handle)
