"""`MultiAgentRecorder`: a session document, written while agents work."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from harken import clock as clocks
from harken.errors import BadRecord, BadRequest, Closed, Conflict, HarkenError, Locked, NotFound, Poisoned
from harken.files import write_hint
from harken.formats.std.document import Document, Json, kind_of
from harken.formats.std.models import PATTERNS

from . import given, making
from .acts import Act, CallEnded, MessageSent, RecordingBegun, SubBegun, acts_of
from .given import GivenAgent, GivenPath, GivenTime
from .journal import Journal, carry, log_path, session_id_of
from .recording import RecordedSession
from .writing import DocumentFile, path_of

_TRIES = 100
"""How many names in a folder are tried, where others begin recordings there at the same time."""


class MultiAgentRecorder:
    """Records a multi-agent session (STD-008) at `path`.

    Each method returns when what it was told is on the disk, in a session log beside the document
    (`NAME.json`, `NAME.log.jsonl`). The document is written at the beginning, now and then, and by `close`; after a
    crash `recover` makes it from the log. Agents are `"id"`, `("id", "type")` or an `AgentIdentifier`; times come from
    the clock unless they are given; ids are made unless they are given, and returned. All methods may be called from
    several threads.

    As a context manager it closes itself: as `success`, or as `failed` when the block raises.
    """

    def __init__(
        self,
        path: GivenPath,
        *,
        task_title: str,
        user_prompt: str,
        orchestrator: GivenAgent,
        participants: Iterable[GivenAgent] = (),
        pattern: str = "master_worker",
        model: str | None = None,
        clock: clocks.Clock = clocks.now,
    ) -> None:
        """Begin a recording; in a folder, the document gets the next free name there. `model` is the orchestrator's
        language model. `Conflict` where there is a document or a recording at `path` already, `Locked` while another
        recorder writes it."""
        present, title = clock(), given.text(task_title, "task_title")
        leader = given.agent(orchestrator, otherwise="architect")
        begun = RecordingBegun(
            time=clock(),
            session_id="",
            task_title=title,
            user_prompt=given.words(user_prompt, "user_prompt"),
            orchestrator=leader,
            participants=given.others(participants, leader),
            pattern=given.one_of(pattern, PATTERNS, "pattern"),
            model=given.text(model, "model") if model is not None else "",
        )
        for tries_left in reversed(range(_TRIES)):
            self._prepare(path_of(path, title, present), clock)
            try:
                self._begin(begun)
                break
            except (Conflict, Locked):
                # In a folder, another recorder may have taken the name that was free a moment ago.
                is_named = self.path == Path(given.path(path)).absolute()
                if is_named or not tries_left:
                    raise

    def _begin(self, begun: RecordingBegun) -> None:
        """Take the path, and put the beginning on the disk."""
        begun = msgspec.structs.replace(begun, session_id=given.text(session_id_of(self.path), "file name"))
        carry([begun])
        log = log_path(self.path)
        if not os.path.lexists(log):
            self._refuse_document()  # before a log is made that would lie beside it
        self._journal = Journal(log)
        try:
            self._refuse_existing()
            self._record(begun)
            self._write_document()
        except BaseException:
            self._journal.close()
            raise

    @classmethod
    def resume(cls, path: GivenPath, *, clock: clocks.Clock = clocks.now) -> Self:
        """Go on with a recording that was not closed, or was closed as `in_progress`. What was open is still open:
        `open_calls` and `open_subs` name it."""
        recorder = cls.__new__(cls)
        recorder._prepare(path, clock)
        recorder._load()
        try:
            if recorder._recording.ended:
                raise Closed(
                    f"the recording of {recorder.path} was closed as {recorder._recording.status}",
                    hint="begin another one, at another path",
                )
            recorder._recording.status = "in_progress"
            recorder._write_document()
        except BaseException:
            recorder._journal.close()
            raise
        return recorder

    @classmethod
    def recover(cls, path: GivenPath) -> Document:
        """Write the document of a recording again from its log, and give it back: after a crash, or whenever the
        document was lost. One that was not closed is `in_progress`; `resume` goes on with it."""
        recorder = cls.__new__(cls)
        recorder._prepare(path, clocks.now)
        recorder._load()
        try:
            return recorder._write_document()
        finally:
            recorder._journal.close()

    def _prepare(self, path: GivenPath, clock: clocks.Clock) -> None:
        self.path = Path(given.path(path)).absolute()
        self._clock = clock
        self._lock = threading.RLock()
        self._recording = RecordedSession()
        self._broken = self._released = False
        self._file = DocumentFile(self.path)

    def _refuse_existing(self) -> None:
        if any(True for _ in acts_of(self._journal.lines())):
            raise Conflict(
                f"{self._journal.path} holds a recording already",
                hint="`MultiAgentRecorder.resume(path)` goes on with it; or record at another path",
            )
        if self._journal.is_used:
            raise Conflict(f"{self._journal.path} is the log of another session", hint="record at another path")
        self._refuse_document()

    def _refuse_document(self) -> None:
        if os.path.lexists(self.path):
            raise Conflict(f"there is a file {self.path} already", hint="record at another path")

    def _load(self) -> None:
        log = log_path(self.path)
        if not os.access(log, os.F_OK):  # a path that is too long is not there either
            raise NotFound(f"there is no recording {log}", hint="give the path of the document, as to the recorder")
        self._journal = Journal(log)
        try:
            for acts in acts_of(self._journal.lines()):
                self._take_back(acts)
            self._recording.unread += self._journal.lost()
            if self._recording.ended:
                for act in making.left_open(self._recording):
                    self._recording.take(act)
            if self._recording.begun is None:
                raise NotFound(
                    f"nothing was recorded in {log}", hint="it ended before the recording began: begin again"
                )
        except BaseException:
            self._journal.close()
            raise

    def _take_back(self, acts: list[Act] | BadRecord) -> None:
        """Take in what a line of the log carries; what cannot be read is told in the document."""
        try:
            if isinstance(acts, BadRecord):
                raise acts
            for act in acts:
                self._recording.take(act)
        except BadRecord as problem:
            self._recording.unread.append(str(problem))

    # What is open

    @property
    def open_calls(self) -> list[str]:
        """The calls that were begun and have not ended."""
        with self._lock:
            return list(self._recording.open_calls)

    @property
    def open_subs(self) -> list[str]:
        """The sub-sessions that have not ended."""
        with self._lock:
            return list(self._recording.open_subs)

    # Calls

    def call(
        self,
        tool_name: str,
        params: Json | None = None,
        *,
        result: Any = None,
        error: str | BaseException | None = None,
        category: str | None = None,
        description: str | None = None,
        call_id: str | None = None,
        started_at: GivenTime = None,
        ended_at: GivenTime = None,
    ) -> str:
        """Record a call of the orchestrator that is done, and give back its id. `result` is a text or an object; an
        `error`, a text or an exception, makes it a failed one. Without `category`, tool and arguments decide."""
        about: Json = {"category": category, "description": description, "call_id": call_id}
        return self._done(None, tool_name, params, about, (result, error), (started_at, ended_at))

    def sub_call(
        self,
        sub_session_id: str,
        tool_name: str,
        params: Json | None = None,
        *,
        result: Any = None,
        error: str | BaseException | None = None,
        category: str | None = None,
        description: str | None = None,
        call_id: str | None = None,
        started_at: GivenTime = None,
        ended_at: GivenTime = None,
    ) -> str:
        """Record a call that is done, of the agent of a sub-session; otherwise as `call`."""
        about: Json = {"category": category, "description": description, "call_id": call_id}
        sub = given.text(sub_session_id, "sub_session_id")
        return self._done(sub, tool_name, params, about, (result, error), (started_at, ended_at))

    def _done(
        self,
        sub: str | None,
        tool_name: str,
        params: Json | None,
        about: Json,
        answer: tuple[Any, str | BaseException | None],
        times: tuple[GivenTime, GivenTime],
    ) -> str:
        with self._lock:
            present = self._present()
            start, end = given.instant(times[0], "started_at"), given.instant(times[1], "ended_at")
            if start is None and end is not None:
                start = min(end, present)  # told when it is done, and nobody said when it began
            begun = making.call_begun(self._recording, sub, tool_name, params, start=start, present=present, **about)
            until = making.not_before(end, begun.time, present, "ended_at")
            output = given.call_output(*answer)
            self._record(begun, CallEnded(time=until, call_id=begun.call_id, output=output))
            return begun.call_id

    def begin_call(
        self,
        tool_name: str,
        params: Json | None = None,
        *,
        sub: str | None = None,
        category: str | None = None,
        description: str | None = None,
        call_id: str | None = None,
        started_at: GivenTime = None,
    ) -> str:
        """Record that a call begins, of the orchestrator or in a sub-session, and give back its id for `end_call`."""
        about: Json = {"category": category, "description": description, "call_id": call_id}
        with self._lock:
            present, start = self._present(), given.instant(started_at, "started_at")
            begun = making.call_begun(self._recording, sub, tool_name, params, start=start, present=present, **about)
            self._record(begun)
            return begun.call_id

    def end_call(
        self, call_id: str, *, result: Any = None, error: str | BaseException | None = None, ended_at: GivenTime = None
    ) -> None:
        """Record what a call that was begun came to."""
        with self._lock:
            present = self._present()
            answer: Json = {"result": result, "error": error, "ended_at": ended_at}
            self._record(making.call_ended(self._recording, call_id, present=present, **answer))

    # Sub-sessions

    def start_sub(
        self,
        agent: GivenAgent,
        description: str,
        *,
        task_id: str | None = None,
        priority: str = "medium",
        call_id: str | None = None,
        parent: str | None = None,
        sub_session_id: str | None = None,
        started_at: GivenTime = None,
    ) -> str:
        """Record that an agent is given a task, and give back the id of its sub-session.

        The `Task` call that starts it is recorded with it, unless it was begun before (`call_id`). `parent` is the
        sub-session whose agent starts it, where that is not the orchestrator. An agent that is not among the
        participants joins them when it is given with its type."""
        about: Json = {"task_id": task_id, "priority": priority, "call_id": call_id, "parent": parent}
        about |= {"sub_session_id": sub_session_id, "started_at": started_at}
        with self._lock:
            acts = making.sub_begun(self._recording, agent, description, present=self._present(), **about)
            self._record(*acts)
            return next(act.sub_session_id for act in acts if isinstance(act, SubBegun))

    def finish_sub(
        self,
        sub_session_id: str,
        output: Any = None,
        *,
        status: str = "success",
        tokens_used: int | None = None,
        completed_at: GivenTime = None,
    ) -> None:
        """Record that a sub-agent is done, or failed (`status="failed"`), and what it handed in: a text, or an output
        as the standard has them. This ends the `Task` call, too. What a failed one left open ends as failed."""
        about: Json = {"status": status, "tokens_used": tokens_used, "completed_at": completed_at}
        with self._lock:
            acts = making.sub_ended(self._recording, sub_session_id, output, present=self._present(), **about)
            self._record(*acts)

    # Messages

    def message(
        self,
        from_agent: GivenAgent,
        to_agent: GivenAgent,
        message_type: str,
        payload: Any = None,
        *,
        message_id: str | None = None,
        correlation_id: str | None = None,
        reply_to: str | None = None,
        sent_at: GivenTime = None,
    ) -> str:
        """Record what one agent told another, and give back the id of the message."""
        about: Json = {"message_id": message_id, "correlation_id": correlation_id}
        about |= {"reply_to": reply_to, "sent_at": sent_at}
        with self._lock:
            who = (self._recording, from_agent, to_agent)
            acts = making.message_sent(*who, message_type, payload, present=self._present(), **about)
            self._record(*acts)
            return next(act.message_id for act in acts if isinstance(act, MessageSent))

    # The end

    def close(self, status: str = "success") -> None:
        """Write the document for the last time and let others write: as `success`, when nothing is open any more; as
        `failed`, which ends what is open as failed; or as `in_progress`, for `resume`."""
        with self._lock:
            try:
                present = self._present()
            except Poisoned:
                self._release()  # nothing more can be written here, and `resume` needs the lock
                raise
            acts = making.closing(self._recording, status, present)
            try:
                self._record(*acts, last=True)
                self._write_document()
            finally:
                self._release()

    def _release(self) -> None:
        self._released = True
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._released:
            return
        if self._broken:
            self._release()
            return
        try:
            self.close("success" if kind is None else "failed")
        except BadRequest:  # something is still open, and nobody will end it any more
            self.close("failed")
            raise

    def __repr__(self) -> str:
        return f"MultiAgentRecorder({str(self.path)!r}, status={self._recording.status!r})"

    # The disk

    def _present(self) -> int:
        """The instant; refuses whoever comes after the end."""
        if self._released:
            hint = "begin another one; `resume` opens one that was closed as in_progress, or left open"
            raise Closed(f"the recording of {self.path} is closed", hint=hint)
        if self._broken:
            raise Poisoned(
                f"the recording of {self.path} was interrupted",
                hint="nothing acknowledged is lost: close this one, and `MultiAgentRecorder.resume(path)` goes on",
            )
        return self._clock()

    def _record(self, *acts: Act, last: bool = False) -> None:
        """Put one act of the program on the disk, then perhaps write the document."""
        carried = carry(acts)
        try:
            for act in acts:
                self._recording.take(act)
            self._journal.write(acts, carried, self._recording)
        except BaseException:
            self._broken = True  # nobody can tell any more what is there and what is believed
            raise
        if self._file.is_due() and not last:
            with suppress(HarkenError):  # the log has it all; whoever closes is told
                self._write_document()

    def _write_document(self) -> Document:
        data = self._recording.document()
        try:
            self._file.write(data)
        except OSError as problem:
            what = f"could not write {self.path}: {problem.strerror}; the recording itself is in {self._journal.path}"
            raise HarkenError(what, hint=f"{write_hint(problem)}, then `MultiAgentRecorder.recover(path)`") from problem
        return Document(data=data, kind=kind_of(data))
