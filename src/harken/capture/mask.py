"""Secrets are masked before they are logged, where the caller asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import structs

from harken import secrets
from harken.errors import BadRequest
from harken.events import Event

Mask = bool | Callable[[str], str] | None
"""`True` for what Harken knows as secrets, or a function from a text to the text without what is secret in it."""
_TEXTS = ("content", "message", "name", "output", "signature")
_BYTES = ("input", "raw", "metadata")


def masking(mask: Mask) -> Callable[[str], str] | None:
    """The function that masks a text; None where nothing is to be masked."""
    if mask is True:
        return _known_secrets
    if mask is None or mask is False:
        return None
    if not callable(mask):
        raise BadRequest(f"{mask!r:.80} is no mask", hint="`True`, or a function from text to text")
    return mask


def _known_secrets(text: str) -> str:
    return secrets.mask(text)[0]


def masked(events: Iterable[Event], mask: Callable[[str], str] | None) -> Iterator[Event]:
    """The events with masked texts."""
    for event in events:
        if mask is None:
            yield event
            continue
        changes: dict[str, Any] = {
            name: new for name in _TEXTS if (text := getattr(event, name, "")) and (new := mask(text)) != text
        }
        for name in _BYTES:
            if given := getattr(event, name, b""):
                text = given.decode("utf-8", "replace")
                if (new := mask(text)) != text:
                    changes[name] = new.encode("utf-8", "replace")
        if images := getattr(event, "images", ()):
            changes["images"] = tuple(structs.replace(image, url=mask(image.url or "")) for image in images)
        yield event.replace(**changes) if changes else event


def masked_value(value: Any, mask: Callable[[str], str] | None) -> Any:
    """A JSON value with masked texts."""
    if mask is None:
        return value
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {masked_value(key, mask): masked_value(inner, mask) for key, inner in value.items()}
    return [masked_value(inner, mask) for inner in value] if isinstance(value, list) else value
