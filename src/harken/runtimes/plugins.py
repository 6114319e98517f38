"""The runtimes that other packages bring, through the entry-point group `harken.runtimes`: each names a `Runtime`."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points

import msgspec

from harken import formats
from harken.ids import is_safe_name

from .base import GROUP, OURS, PluginProblem, Runtime


class Plugins(msgspec.Struct, frozen=True, kw_only=True):
    """What the entry points gave."""

    runtimes: dict[str, Runtime]
    problems: tuple[PluginProblem, ...]


def installed() -> Iterable[EntryPoint]:
    """What other packages say that they bring."""
    return entry_points(group=GROUP)


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
            problems += [PluginProblem(name=name, package=_package_of(point), reason=loaded) for point in points]
    return Plugins(runtimes=runtimes, problems=tuple(problems))


def package_with(runtime: str) -> str:
    """The distribution that brings a runtime."""
    return next(map(_package_of, entry_points(group=GROUP, name=runtime)), "(unknown)")


def _package_of(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "(unknown)"


def _load(points: list[EntryPoint]) -> Runtime | str:
    """The runtime behind a name, or why there is none."""
    name = points[0].name
    if name in OURS:
        return "Harken has a runtime of that name itself"
    if len(points) > 1:
        # Which of them came first would be chance, and the sessions of one would be taken for the other's.
        return "several packages have one of that name: " + ", ".join(sorted(map(_package_of, points)))
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
