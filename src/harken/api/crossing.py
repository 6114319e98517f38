"""Operations whose store lies behind a wire: they are asked there, by the same call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from .base import ApiRequest

F = TypeVar("F", bound=Callable[..., Any])


def crosses(function: F) -> F:
    """The operation; given a remote `Repo` (one with `ask_service`), it is the service's that answers.

    What is told of a file, or of a viewer that whoever asks has in hand, needs no store, and is told here. Whoever
    wants to be told how far it is (`moved`, `on_files` …) is not told it over a wire."""

    @functools.wraps(function)
    def operation(repo: Any, request: ApiRequest, **more: Any) -> Any:
        ask = getattr(repo, "ask_service", None)
        if ask is None or more.get("viewer") is not None or _names_file(request):
            return function(repo, request, **more)
        return ask(function.__name__, request)

    return operation  # type: ignore[return-value]


def _names_file(request: ApiRequest) -> bool:
    return bool(getattr(request, "file", "") or getattr(request, "files", ()))
