"""One folder per runtime, each a `Runtime`; beside them what imports, watches, resumes and runs any of them.

Ours are listed here and loaded when asked for. Others come through the entry-point group `harken.runtimes`, each
naming a `Runtime`. A plug-in that cannot be used is told in `problems()`, and never keeps the others from being used.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import msgspec

from harken import formats
from harken.errors import BadRequest
from harken.formats.facts import FileFacts
from harken.formats.kit.claims import Claim
from harken.ids import is_safe_name

from .base import (
    Environment,
    Identity,
    Launcher,
    LineOwner,
    Place,
    Plan,
    ResumeWriter,
    Runtime,
    SessionReader,
    ShownLine,
    StreamReader,
    Template,
    user_home,
)

GROUP = "harken.runtimes"
_OURS = {"claude-code": "claude_code", "codex": "codex", "harken": "harken"}


class PluginProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A plug-in that cannot be used, and why."""

    name: str
    package: str
    """The distribution it comes from."""
    reason: str

    def __str__(self) -> str:
        return f"the runtime {self.name!r} of the package {self.package} cannot be used: {self.reason}"


class Plugins(msgspec.Struct, frozen=True, kw_only=True):
    """What the entry points gave."""

    runtimes: dict[str, Runtime]
    problems: tuple[PluginProblem, ...]


def names() -> list[str]:
    """Every runtime there is, ours first."""
    return [*_OURS, *sorted(_plugins().runtimes)]


def get(name: str) -> Runtime:
    """The runtime of that name; `BadRequest` says what there is."""
    if module := _OURS.get(name):
        found: Runtime = importlib.import_module(f".{module}", __name__).RUNTIME
        return found
    if plugin := _plugins().runtimes.get(name):
        return plugin
    for problem in problems():
        if problem.name == name:
            raise BadRequest(str(problem), hint="there are: " + ", ".join(names()))
    raise BadRequest(f"there is no runtime {name!r}", hint="there are: " + ", ".join(names()))


def is_registered(runtime: Runtime) -> bool:
    """Whether other processes find this very runtime by its name."""
    return runtime.name in names() and get(runtime.name) is runtime


def problems() -> tuple[PluginProblem, ...]:
    """The plug-ins that cannot be used, and those that failed when they were."""
    return (*_plugins().problems, *failures())


def failures() -> tuple[PluginProblem, ...]:
    """The plug-ins that failed when they were used, here or in a process that read files for this one."""
    return tuple(_FAILED.values())


_FAILED: dict[str, PluginProblem] = {}
"""The first failure of each runtime in this process."""


def note_failure(runtime: Runtime, reason: str) -> PluginProblem:
    """A runtime did what none may: that is told once, by its name, and the others go on."""
    package = next((_package(point) for point in entry_points(group=GROUP, name=runtime.name)), "(unknown)")
    return note_problem(PluginProblem(name=runtime.name, package=package, reason=reason))


def note_problem(problem: PluginProblem) -> PluginProblem:
    """A plug-in failed, as somebody else found; of several failures of one the first is told."""
    return _FAILED.setdefault(problem.name, problem)


def claim_of(runtime: Runtime, head: bytes, path: Path) -> Claim:
    """What a runtime says of a file; one that fails claims nothing."""
    try:
        claim = runtime.claim(head, path)
        if isinstance(claim, Claim) and type(claim.score) is int:
            return claim
        reason = f"claim() gave {claim!r}, which is no Claim"
    except (Exception, SystemExit) as problem:  # noqa: BLE001 (a plug-in may fail in any way, and the others must not)
        reason = f"claim() failed: {type(problem).__name__}: {problem}"
    note_failure(runtime, reason)
    return Claim()


@cache
def _plugins() -> Plugins:
    """All plug-ins, loaded once: what cannot be loaded now cannot be loaded a moment later either."""
    return load_plugins(entry_points(group=GROUP))


def load_plugins(found: Iterable[EntryPoint]) -> Plugins:
    """The runtimes that entry points name, and what is wrong with the rest."""
    by_name: dict[str, list[EntryPoint]] = {}
    for point in found:
        by_name.setdefault(point.name, []).append(point)
    runtimes: dict[str, Runtime] = {}
    problems: list[PluginProblem] = []
    for name, points in by_name.items():
        loaded = _load(points)
        if isinstance(loaded, Runtime):
            runtimes[name] = loaded
        else:
            problems += [PluginProblem(name=name, package=_package(point), reason=loaded) for point in points]
    return Plugins(runtimes=runtimes, problems=tuple(problems))


def _load(points: list[EntryPoint]) -> Runtime | str:
    """The runtime behind a name, or why there is none."""
    name = points[0].name
    if name in _OURS:
        return "Harken has a runtime of that name itself"
    if len(points) > 1:
        # Which of them came first would be chance, and the sessions of one would be taken for the other's.
        return "several packages have one of that name: " + ", ".join(sorted(map(_package, points)))
    if not is_safe_name(name):
        return "a name has letters, digits, dots, dashes and underscores"
    try:
        runtime = points[0].load()
    except (Exception, SystemExit) as problem:  # noqa: BLE001 (a plug-in may fail in any way, and the others must not)
        return f"{type(problem).__name__}: {problem}"
    if not isinstance(runtime, Runtime):
        return f"{points[0].value} is no harken.runtimes.Runtime"
    if runtime.name != name:
        return f"it calls itself {runtime.name!r}"
    if runtime.format not in formats.names():
        return f"there is no format {runtime.format!r}"
    return runtime


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "(unknown)"


__all__ = [
    "Claim",
    "Environment",
    "FileFacts",
    "Identity",
    "Launcher",
    "LineOwner",
    "Place",
    "Plan",
    "PluginProblem",
    "ResumeWriter",
    "Runtime",
    "SessionReader",
    "ShownLine",
    "StreamReader",
    "Template",
    "claim_of",
    "failures",
    "get",
    "is_registered",
    "load_plugins",
    "names",
    "note_failure",
    "note_problem",
    "problems",
    "user_home",
]
