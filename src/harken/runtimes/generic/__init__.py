"""Any program that Harken does not know: `harken run generic -- CMD…`.

The command line, and what was piped in before the program first printed something, is the prompt; each line that it
prints is what it said. It has no files of its own that could be imported, and cannot go on from a commit.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from harken.errors import BadRequest
from harken.events import Event, Response
from harken.formats.facts import FileFacts
from harken.formats.kit.claims import NO_CLAIM
from harken.runtimes.base import (
    Identity,
    Launcher,
    LineOwner,
    Plan,
    Runtime,
    SessionReader,
    ShownLine,
    Template,
    user_home,
)

NAME = "generic"


def _plan(words: Sequence[str], resume: str) -> Plan:
    if not words:
        raise BadRequest("which program is to be run?", hint="harken run generic -- CMD ARGS…")
    if resume:
        raise BadRequest(
            "a program that Harken does not know cannot go on from a commit",
            hint="`harken materialize REF --format narrative-v1` writes what it could be told",
        )
    return Plan(arguments=tuple(words[1:]), prompt=shlex.join(words), show="stream")


def _template(template: Template, words: Sequence[str]) -> list[str]:
    if template.model or template.system_prompt or template.append_system_prompt:
        raise BadRequest(
            f"template {template.name!r} names a model or a prompt, and nobody knows how this program takes them",
            hint="a template for it has arguments alone",
        )
    return [*words[:1], *template.arguments, *words[1:]]


class _LineReader:
    """Each line is something that the program said, all of it one message."""

    def __init__(self, now: int) -> None:
        self._name, self._count = f"{now:x}", 0

    def feed(self, line: bytes) -> list[Event]:
        """What stands on the line."""
        self._count += 1
        text = line.decode("utf-8", "replace").rstrip("\r")
        return [Response(content=text, message_id=f"{self._name}-{self._count}", api_id=self._name)]


def _identify(path: Path, facts: FileFacts) -> Identity:
    return Identity(session=path.stem)


RUNTIME = Runtime(
    name=NAME,
    label="the program",
    format="events-v1",
    home=user_home,
    roots=lambda home: (),
    claim=lambda head, path: NO_CLAIM,
    read=SessionReader(scan=lambda data, state: FileFacts(runtime=NAME), identify=_identify, suffixes=()),
    launch=Launcher(
        program="",
        plan=_plan,
        reader=_LineReader,
        owner=lambda line: LineOwner(),
        shown=lambda line, found, show: ShownLine(),
        template=_template,
        named_by_plan=True,
    ),
)
