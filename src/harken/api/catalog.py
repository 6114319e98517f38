"""What this installation knows: its formats."""

from __future__ import annotations

from collections.abc import Iterator

from harken import formats as known
from harken.errors import HarkenError

from .base import ApiAnswer, ApiRequest


class FormatsRequest(ApiRequest, frozen=True, kw_only=True):
    """Which formats to list: all of them."""


class FormatAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A format."""

    name: str
    """What it is called, like `claude-code-v1`."""
    can: list[str]
    """What can be done with it: `read`, `write`."""
    description: str
    """A sentence about it."""
    problem: str
    """Why it could not be loaded; empty where it was."""


def formats(repo: None, request: FormatsRequest) -> Iterator[FormatAnswer]:
    """The formats that can be read or written here. Needs no store: `repo` is None."""
    for name in known.names():
        try:
            found = known.get(name)
        except HarkenError as problem:
            yield FormatAnswer(name=name, can=[], description="", problem=str(problem))
        except Exception as problem:  # noqa: BLE001  a format of somebody else may break in any way
            yield FormatAnswer(name=name, can=[], description="", problem=f"{type(problem).__name__}: {problem}")
        else:
            yield FormatAnswer(name=name, can=sorted(found.can), description=found.description, problem="")
