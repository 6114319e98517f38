"""Other kinds of store, from the entry-point group `harken.stores`: the name is the scheme, the value a function that
takes the URL and `create`, and gives a `Store`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harken.errors import HarkenError

if TYPE_CHECKING:
    from .base import Store

GROUP = "harken.stores"


def plugins() -> set[str]:
    """The schemes that plug-ins open."""
    from importlib.metadata import entry_points

    return {entry.name for entry in entry_points(group=GROUP)}


def plugin(scheme: str) -> Callable[..., Store]:
    """The function that opens stores of this scheme."""
    from importlib.metadata import entry_points

    (entry, *_) = entry_points(group=GROUP, name=scheme)
    try:
        opener: Callable[..., Store] = entry.load()
    except Exception as error:
        raise HarkenError(
            f"the plug-in for {scheme}: addresses cannot be loaded: {error}", hint=f"it is {entry.value}"
        ) from error
    return opener


def known() -> str:
    """The schemes there are, as a hint says it."""
    return "or one of " + ", ".join(f"`{name}:`" for name in ("memory", "sqlite", *sorted(plugins())))
