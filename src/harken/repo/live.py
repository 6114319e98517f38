"""A session log whose agents are checkpointed as they speak."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken import context, ids
from harken.context import SessionTracker
from harken.context.agents import RUNTIME
from harken.events import Event
from harken.events.cbor import encode_event
from harken.log import Session
from harken.store import Commit

from .beginning import LogBeginning, beginning, remember, source_of, write_beginning

if TYPE_CHECKING:
    from .repo import Repo


class KeptSession(Session):
    """A session log with a chain of commits for each of its agents.

    With `start` it is a new log that begins with the conversation at that commit. A log that is opened again is read
    once, and what the store does not have of it yet is made up for."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        repo: Repo,
        session_id: str | None = None,
        start: Commit | None = None,
        frequency: str = "turn",
        principal: str = "",
        on_warning: context.tracker.Warn | None = None,
        **options: Any,
    ) -> None:
        self.tracker: SessionTracker | None = None
        """None until something is logged: a session is named after the first event in its log."""
        self._repo = repo
        self._chosen_id = session_id or ""
        self._settings: dict[str, Any] = {"frequency": frequency, "principal": principal, "on_warning": on_warning}
        self.begun: LogBeginning | None = self._begin(Path(path), start) if start is not None else None
        """What was carried over from the commit it starts from."""
        super().__init__(path, **options)
        self._catch_up()
        self.observers.insert(0, self._keep)

    def _begin(self, path: Path, start: Commit) -> LogBeginning:
        store, time = self._repo.store, self._repo.clock()
        begun = beginning(store, start, time=time)
        write_beginning(path, begun)
        name = self._chosen_id or session_name(path, begun.created)
        remember(store, start, name, begun, runtime=RUNTIME, time=time)
        return begun

    @property
    def session_id(self) -> str:
        """The name its chains go by in the store; empty while nothing is logged."""
        return self.tracker.session if self.tracker else self._chosen_id

    def checkpoint(self, reason: str = "explicit") -> None:
        """Keep what is pending, of every agent."""
        if self.tracker is not None:
            self.tracker.checkpoint(reason)

    def close(self) -> None:
        """Checkpoint the end of the session, then close the log."""
        if self.tracker is not None and not self.readonly:
            self.tracker.close()
        super().close()

    def _catch_up(self) -> None:
        events = self.events()
        if (first := next(events, None)) is not None:
            self._follow(first).observe((first, *events))

    def _keep(self, events: list[Event]) -> None:
        self._follow(events[0]).observe(events)

    def _follow(self, first: Event) -> SessionTracker:
        if self.tracker is None:
            name = self._chosen_id or session_name(self.path, first)
            self.tracker = SessionTracker(
                self._repo,
                session_id=name,
                forked_from=lambda: source_of(self._repo.store, name),
                source=str(self.path),
                template=RUNTIME,
                **self._settings,
            )
        return self.tracker


def session_name(path: Path, first: Event) -> str:
    """The id of a session log: what its file is called, and a few digits of its first event."""
    return f"{path.stem}-{ids.artifact_id(encode_event(first))[:8]}"
