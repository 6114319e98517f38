"""The files that a runtime itself writes while it runs: imported like any others, by the same rules.

A stream says less than the file does (nothing of a sub-agent that is a thread of its own, no title, no figures of
single requests), so the files of a run are read when it is over, and a sub-agent's when its tool asks where it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from harken import clock
from harken.context import chains
from harken.errors import HarkenError
from harken.ids import file_around, is_safe_name
from harken.store import SessionRow, Store, Writer

from . import sources
from .base import Environment, Runtime
from .files import stamp_of
from .importer import Importer
from .live import RunFacts
from .memory import ImportResult
from .sources import Reading, Resumption


class RunFiles(msgspec.Struct, frozen=True):
    """Where the files of a run are, and what the run says of itself."""

    store: Store
    runtime: Runtime
    environ: Environment
    facts: RunFacts
    started: int
    """When the run began: what was written since then is of the run."""
    now: clock.Clock

    def read(self, sessions: Iterable[str], moved: Callable[[], None] = lambda: None) -> list[ImportResult]:
        """Import the files of these sessions as they are now, then those of the agents that they say they started and
        of what they go on from. `moved` is called with everything that is read."""

        def read(path: Path, since: Resumption | None) -> Reading:
            for part in sources.read_source(path, (self.runtime,), since, self.now):
                moved()
                yield part

        importer = Importer(self.store, [self.runtime], now=self.now, read=read, details=False)
        moved()
        results: list[ImportResult] = []
        met: set[str] = set()
        names = set(sessions)
        while names := names - met:
            met |= names
            found = list(importer.run(self._files(names)))
            results += found
            moved()
            names = {name for one in found if one.session for name in _relatives(importer.rows[one.session])}
        for result in results:
            if result.session:
                self._tell(result)
        return results

    def _files(self, sessions: Iterable[str]) -> list[Path]:
        if (launch := self.runtime.launch) is None:
            return []
        home = self.runtime.home(self.environ)
        named = sorted(session for session in sessions if is_safe_name(session))
        return [path for session in named for path in launch.session_files(home, session)]

    def _tell(self, result: ImportResult) -> None:
        """Say what the run says of itself of an agent that was started in it, and that its own recording did not tell
        of. What the agent's commits are does not depend on it."""
        if self._untold(result.session) is None or not self._is_written(result.source):
            return
        with self.store.write() as writer:
            row = self._untold(result.session)  # again: a watch may have changed it meanwhile
            if row is not None:
                self._write_facts(writer, row)

    def _untold(self, session: str) -> SessionRow | None:
        """The row of a sub-agent of which nobody has said in what run it was; what a session goes on from was no part
        of this one, whoever wrote to its file meanwhile."""
        row = self.store.find_session(session)
        return row if row is not None and row.parent and row.tip and not row.principal else None

    def _write_facts(self, writer: Writer, row: SessionRow) -> None:
        facts = self.facts
        who = f"{facts.principal}/{row.agent or row.session}" if facts.principal else f"{facts.runtime}:{row.session}"
        said = {
            "template": facts.template or facts.runtime,
            "principal": who,
            "machine": facts.machine,
            "ticket_id": facts.ticket_id,
            "thread_id": facts.thread_id,
        }
        writer.save_session(msgspec.structs.replace(row, **said), expect=row.version)
        for commit in self.store.get_commits([step.id for step in self.store.walk(row.tip)]):
            writer.commit(msgspec.structs.replace(commit, principal=who, machine=facts.machine))

    def _is_written(self, source: str) -> bool:
        try:
            return stamp_of(file_around(source) or source).modified // 1000 >= self.started
        except HarkenError:
            return False


def _relatives(row: SessionRow) -> Iterator[str]:
    """The agents that a session's sources say it started, and the session that holds its beginning."""
    for known in chains.recall(row).values():
        yield from known.calls
        if known.spawned_from and known.spawned_from.get("inherits"):
            yield str(known.spawned_from.get("session", ""))
