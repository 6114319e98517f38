"""Pictures in the results of tools: in the log, and as a model is shown them."""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Sequence
from typing import Any

from harken.events import Image

MAX_IMAGES = 20
"""How many pictures of one result a model is shown."""
_KINDS = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}
_KEYS = ("media_type", "data", "url", "at")


def as_line(image: Image) -> dict[str, Any]:
    """A picture as it stands on a line of the log."""
    return {key: value for key in _KEYS if (value := getattr(image, key)) not in ("", None)}


def sound(image: Image) -> Image | None:
    """A picture as providers take it, named for what it is; None for one they would refuse, with all that was said."""
    if not image.data:
        return image if image.is_public else None
    try:
        head = binascii.a2b_base64(image.data, strict_mode=True)[:16]
    except (binascii.Error, ValueError):
        return None
    kind = next((kind for magic, kind in _KINDS.items() if head.startswith(magic)), None)
    return None if kind is None else Image(media_type=kind, data=image.data, at=image.at)


def of_results(results: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The pictures of the results of one call, as they are logged; of several results nobody knows the places."""
    found = [one for result in results for one in _listed(result.get("images"))]
    if len(results) > 1:
        found = [{key: value for key, value in one.items() if key != "at"} for one in found]
    return found


def _listed(images: Any) -> list[dict[str, Any]]:
    return [one for one in images if isinstance(one, dict)] if isinstance(images, list) else []


def _image(line: dict[str, Any]) -> Image:
    place = line.get("at")
    texts = {key: line[key] for key in _KEYS[:3] if isinstance(line.get(key), str)}
    return Image(**texts, at=place if type(place) is int else None)


def with_pictures(messages: Iterable[dict[str, Any]], *, seen: bool = True) -> list[dict[str, Any]]:
    """Messages for a provider that takes pictures from users only: those of results follow the results, in a message of
    their own. What cannot be shown (`seen` is False where the model sees nothing) is named."""
    shown: list[dict[str, Any]] = []
    waiting: list[dict[str, Any]] = []
    for message in messages:
        if message.get("role") != "tool":
            shown += _as_prompt(waiting)
            waiting = []
        lines = _listed(message.get("images"))
        plain = {key: value for key, value in message.items() if key != "images"}
        found = [one for line in lines[:MAX_IMAGES] if (one := sound(_image(line))) is not None] if seen else []
        if len(found) < len(lines):
            plain["content"] = f"{plain.get('content') or ''}\n[{len(lines) - len(found)} pictures not shown]".strip()
        shown.append(plain)
        if found:
            name = str(message.get("name") or "a tool")
            waiting += [{"type": "text", "text": f"[pictures in the result of {name}]"}, *map(_as_part, found)]
    return shown + _as_prompt(waiting)


def _as_prompt(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": parts}] if parts else []


def _as_part(image: Image) -> dict[str, Any]:
    url = f"data:{image.media_type};base64,{image.data}" if image.data else image.url
    return {"type": "image_url", "image_url": {"url": url}}
