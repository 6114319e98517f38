"""A session log whose agents are checkpointed as they speak."""

from __future__ import annotations

import os
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken import context
from harken.context import SessionSettings, SessionTracker
from harken.context.session_tracker import RUNTIME
from harken.formats.session_log import first_digits
from harken.log import Session
from harken.store import Commit

from .beginning import LogBeginning, beginning, remember, source_of, write_beginning

if TYPE_CHECKING:
    from .repo import Repo
    from .voices import RuntimeModel, RuntimeUse


class KeptSession(Session):
    """A session log that is kept line by line, with a chain of commits for each of its agents.

    With `start` it is a new log that begins with the conversation at that commit, for an agent that speaks with the
    `language_model`. With `runtimes` agents may have runtimes as their models (`runtime:claude-code`). A log that is
    opened again is read once, and what the store does not have of it yet is made up for."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        repo: Repo,
        session_id: str | None = None,
        start: Commit | None = None,
        language_model: str | None = None,
        frequency: str = "turn",
        principal: str = "",
        on_warning: context.tracker.Warn | None = None,
        runtimes: RuntimeUse | None = None,
        **options: Any,
    ) -> None:
        self.tracker: SessionTracker | None = None
        """None until something is logged: a session is named after the first line of its log."""
        self._repo = repo
        self._chosen_id = session_id or ""
        self._settings = SessionSettings(frequency=frequency, principal=principal, on_warning=on_warning)
        self._fed = 0
        """How much of the file the tracker has been given."""
        self.begun: LogBeginning | None = (
            self._begin(Path(path), start, language_model or "") if start is not None else None
        )
        """What was carried over from the commit it starts from."""
        super().__init__(path, **options)
        self._runtimes = runtimes
        self.extensions["models"] = {"runtime": self._voice}
        self._keep()
        self.observers.insert(0, self._keep)
        if not self.readonly and any(info.entries < info.begins_with for info in self.agents.values()):
            from .starting import write_rest

            write_rest(repo.store, self)

    def _begin(self, path: Path, start: Commit, language_model: str) -> LogBeginning:
        store, time = self._repo.store, self._repo.clock()
        begun = beginning(store, start, time=time, language_model=language_model)
        write_beginning(path, begun)
        name = self._chosen_id or session_name(path, begun.data)
        remember(store, start, name, begun, runtime=RUNTIME, time=time)
        return begun

    @property
    def session_id(self) -> str:
        """The name its chains go by in the store; empty while nothing is logged."""
        return self.tracker.session if self.tracker else self._chosen_id

    def checkpoint(self) -> None:
        """Keep what is pending, of every agent."""
        if self.tracker is not None:
            self.tracker.checkpoint()

    def close(self) -> None:
        """Checkpoint the end of the session, then close the log."""
        try:
            if self.tracker is not None and not self.readonly:
                self.tracker.close()
        finally:
            super().close()

    def _keep(self, _: object = None) -> None:
        """Give the tracker what the file has beyond what it was given; the log's own lines are what is kept."""
        for lines in self.appended(self._fed):
            self._fed += len(lines)
            if self.tracker is None:
                self.tracker = self._track(self._chosen_id or session_name(self.path, lines))
            self.tracker.feed(lines)

    def _voice(self, runtime: str) -> RuntimeModel:
        """A runtime that speaks for agents of this session."""
        from .voices import RuntimeModel

        return RuntimeModel(self._repo, self, runtime, self._runtimes)

    def _track(self, name: str) -> SessionTracker:
        return SessionTracker(
            self._repo,
            session=name,
            source=str(self.path),
            settings=self._settings,
            forked_from=lambda told: source_of(self._repo.store, name, told),
        )


SETTINGS = (
    *("session_id", "language_model", "frequency", "principal", "on_warning", "runtimes"),
    *(name for name in signature(Session).parameters if name != "file"),
)
"""The keywords that a kept session takes beside where it starts."""


def session_name(path: Path, lines: bytes) -> str:
    """The id of a session log: what its file is called, and a few digits of its first line."""
    return f"{path.stem}-{first_digits(lines)}"
