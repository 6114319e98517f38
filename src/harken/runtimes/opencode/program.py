"""What OpenCode and Kilo have in common: the schema of their databases, and the commands that take sessions in."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from harken.events import Event
from harken.files import make_folder, write_whole
from harken.formats import Written
from harken.formats.facts import ORIGIN, Origin
from harken.formats.kit.claims import Claim
from harken.formats.kit.jsonl import encode
from harken.formats.opencode.export import export_rows
from harken.formats.opencode.identifiers import session_identifier
from harken.formats.opencode.rows import record_names
from harken.formats.opencode.write import Target, rewrite, with_metadata, write_rows
from harken.runtimes.base import Environment, Place, ResumeWriter, Runtime, SessionReader, user_home
from harken.runtimes.files import SQLITE

from .database import sessions, versions
from .launch import launcher
from .model import chosen_model
from .reading import identify, scan

FORMAT = "opencode-rows-v1"


def database_runtime(name: str, label: str) -> Runtime:
    """The runtime of a program with this schema."""
    variable = f"{name.upper()}_DB"

    def home(environ: Environment) -> Path:
        named = Path(environ.get(variable) or "")
        if named.is_absolute():
            return named.parent
        data = environ.get("XDG_DATA_HOME") or ""
        return (Path(data) if Path(data).is_absolute() else user_home(environ) / ".local" / "share") / name

    def environment(home: Path) -> Mapping[str, str]:
        return {variable: str(home / f"{name}.db")}

    def claim(head: bytes, path: Path) -> Claim:
        if head.startswith(SQLITE) and path.name.startswith(name):
            return Claim(score=90, reason=f"a database that is called as {label}'s")
        return Claim()

    return Runtime(
        name=name,
        label=label,
        format=FORMAT,
        source="database",
        home=home,
        roots=lambda home: (home,),
        claim=claim,
        environment=environment,
        read=SessionReader(
            scan=partial(scan, runtime=name),
            identify=identify,
            suffixes=tuple(f"{name}{channel}.db" for channel in ("", "-dev", "-local")),
            sessions=sessions,
            versions=versions,
            record_names=record_names,
        ),
        resume=ResumeWriter(
            place=partial(_place, name),
            native=_native,
            translated=_translated,
            write=_write,
            name=_name,
            sign=_sign,
        ),
        launch=launcher(name),
    )


# -- resume ----------------------------------------------------------------------------------------------------------


def _place(program: str, home: Path, cwd: Path, now: int) -> Place:
    session = session_identifier(now // 1000, os.urandom(16).hex())
    # Not called like an export: an import of the folder would take it for another session.
    path = home / "harken" / f"{session}.import"
    return Place(
        session=session,
        path=path,
        command=(program, "-s", session),
        prepare=((program, "import", str(path)),),
        cwd=cwd,
        time=now,
        provider=chosen_model(program, home, cwd, home.parents[2] if len(home.parents) > 2 else home),
    )


def _target(place: Place) -> Target:
    return Target(session=place.session, cwd=str(place.cwd), now=place.time // 1000, model=place.provider)


def _native(data: bytes, place: Place) -> bytes:
    return rewrite(data, _target(place))


def _translated(events: Sequence[Event], place: Place) -> Written:
    return write_rows(events, _target(place))


def _write(place: Place, data: bytes) -> None:
    """The document that the program takes in."""
    make_folder(place.path.parent)
    write_whole(place.path, export_rows(data).data)


def _name(place: Place, title: str) -> tuple[Path, bytes]:
    """One more line of the session's own row."""
    return place.path, encode({"session": {"id": place.session, "title": title}}) + b"\n"


def _sign(data: bytes, tell: Callable[[bytes], Origin]) -> bytes:
    """One more key of the session's metadata, which the program keeps and leaves alone."""
    return with_metadata(data, ORIGIN, tell(data))
