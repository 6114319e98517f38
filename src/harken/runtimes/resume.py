"""`harken resume`: write a conversation into a runtime's own place, so that the runtime itself goes on with it.

The same runtime gets its own records back, under a new session id; another runtime gets a translation and the list
of what could not be said. The original is never touched. What was written is remembered: an annotation beside the
source commit, and a branch `resumed/SESSION` by which an import of the continued session finds where it came from.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harken import clock
from harken.context import continued, find_session
from harken.errors import BadRequest, NotFound
from harken.events import Event
from harken.formats import Loss, Written
from harken.ids import is_safe_name
from harken.store import Commit

from .instantiate import RUNTIMES, Place, place, write_new
from .lineage import RESUMED
from .memory import recall

if TYPE_CHECKING:
    from harken.repo import Repo

RAW = "4"
REMEMBERED = "instantiated"
"""The key of the annotation that remembers what was written."""


class Resumed(msgspec.Struct, frozen=True, kw_only=True):
    """A session that is ready to be continued."""

    runtime: str
    session: str
    path: str
    command: tuple[str, ...]
    tier: str
    losses: tuple[Loss, ...] = ()
    cwd: str = ""
    environment: dict[str, str] = {}
    source: str = ""
    """The commit it continues."""


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept beside the source commit: the new session, and how many of its first bytes are not its own."""

    runtime: str
    session: str
    prefix: int
    tier: str = "1"
    losses: tuple[Loss, ...] = ()


def resume(
    repo: Repo,
    ref: str,
    *,
    runtime: str,
    home: Path,
    cwd: Path,
    usual: bool = False,
    now: clock.Clock = clock.now,
) -> Resumed:
    """Write the conversation at `ref` where `runtime` finds it, and say how to go on."""
    where = place(runtime, home=home, cwd=cwd, now=now, usual=usual)
    commit = repo.commit(ref)
    tier, data, losses = _written(repo, commit, where)
    write_new(where.path, data)
    if tier == "1" and runtime == "claude-code":
        _restore_side_files(repo, commit.session_id, where)
    kept = Remembered(runtime=runtime, session=where.session, prefix=len(data), tier=tier, losses=losses)
    with repo.store.write() as writer:
        writer.annotate(commit.id, REMEMBERED, msgspec.json.encode(kept).decode(), time=where.time)
        writer.move(RESUMED + where.session, kind="branch", to=commit.id, expect="", time=where.time, record=False)
    return Resumed(
        runtime=runtime,
        session=where.session,
        path=str(where.path),
        command=where.command,
        tier=tier,
        losses=losses,
        cwd=str(where.cwd),
        environment=where.environment,
        source=commit.id,
    )


def _restore_side_files(repo: Repo, session: str, where: Place) -> None:
    """Put what lay beside the original (long outputs of tools, journals) beside the new session, as far as it is
    kept. A name that could lead anywhere else is passed over."""
    sources = recall(find_session(repo.store, session)) if session else {}
    side_files = {name: file for source in sources.values() for name, file in source.side_files.items()}
    for name, file in side_files.items():
        _, *inside = name.split("/")
        if not inside or not all(map(is_safe_name, inside)):
            continue
        with contextlib.suppress(NotFound):
            write_new(where.path.with_suffix("").joinpath(*inside), repo.store.get(file.artifact))


def _written(repo: Repo, commit: Commit, where: Place) -> tuple[str, bytes, tuple[Loss, ...]]:
    """The tier, the bytes of the new session, and what they could not say."""
    target = RUNTIMES[where.runtime]
    made = continued(repo.store, commit, format=target, write=lambda events: _translated(events, where))
    if made.tier == RAW:
        raise BadRequest(
            f"{commit.short} is kept as {made.format}, which {where.runtime} cannot continue",
            hint="`harken materialize` gives it in any format that can say it",
        )
    return (
        made.tier,
        _native(made.data, where) if made.format == target and made.tier == "1" else made.data,
        made.losses,
    )


def _native(data: bytes, where: Place) -> bytes:
    """The runtime's own records under the new session's id, in the folder it is going to work in."""
    if where.runtime == "claude-code":
        from harken.formats import claude_code

        return claude_code.rewrite(data, session_id=where.session, cwd=str(where.cwd))
    from harken.formats import codex

    return codex.rewrite(data, session_id=where.session, cwd=str(where.cwd), time=where.time)


def _translated(events: Sequence[Event], where: Place) -> Written:
    """What happened in another runtime, as records of this one."""
    if where.runtime == "claude-code":
        from harken.formats import claude_code

        written = claude_code.FORMAT.adopt(events)
        data = claude_code.rewrite(written.data, session_id=where.session, cwd=str(where.cwd))
        return Written(data=data, losses=written.losses)
    from harken.formats import codex

    return codex.write_session(events, session_id=where.session, cwd=str(where.cwd), time=where.time)
