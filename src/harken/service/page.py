"""The files of the page, and the list of operations for people. Both need nothing from anywhere else."""

from __future__ import annotations

import functools
import html
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from harken.api.reference import value
from harken.errors import NotFound

from .operations import described, served

STATIC = Path(__file__).parent / "web" / "static"
_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".json": "application/json",
    ".map": "application/json",
    ".txt": "text/plain",
    ".webmanifest": "application/manifest+json",
}


_NAMED = ("s/", "c/")
"""Addresses that end in a name of the user's, whatever that looks like."""


@functools.lru_cache(maxsize=256)
def _file(path: Path, changed: int, size: int) -> bytes:
    return path.read_bytes()


def _found(path: str) -> Path | None:
    """A file of the page; None where it is none, whatever the path says."""
    wanted = STATIC / path
    try:
        inside = wanted.resolve().is_relative_to(STATIC.resolve())
        return wanted if inside and wanted.is_file() and wanted.suffix in _TYPES else None
    except (OSError, ValueError):  # a name that no file can have
        return None


async def page_file(request: Request) -> Response:
    """A file of the page, or the page itself, which finds out what its address means."""
    asked = request.path_params.get("path", request.url.path).lstrip("/")
    path = _found(asked) if asked else STATIC / "index.html"
    if path is None:
        if Path(asked).suffix in _TYPES and not asked.startswith(_NAMED):
            raise NotFound("there is no such file", hint="the page is at /")
        path = STATIC / "index.html"
    about = path.stat()
    etag = f'"{about.st_mtime_ns:x}-{about.st_size:x}"'
    headers = {"etag": etag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    data = _file(path, about.st_mtime_ns, about.st_size)
    return Response(data, media_type=_TYPES[path.suffix], headers=headers)


@functools.cache
def docs_page() -> bytes:
    """Every operation, its keys and its answers; plain HTML without a script."""
    parts = [_HEAD]
    for name in served():
        one = described(name)
        asked = value(one.request)
        parts.append(f"<h2 id={name}>POST /api/v1/{name}</h2><p>{html.escape(one.meaning)}</p>")
        for title, told in [("request", asked), *(("answer", value(kind)) for kind in one.answers)]:
            rows = "".join(
                f"<tr><td><code>{html.escape(key.name)}</code><td><code>{html.escape(key.type)}</code>"
                f"<td>{html.escape(key.default) if title == 'request' else ''}<td>{html.escape(key.meaning)}"
                for key in told.keys
            )
            parts.append(
                f"<h3>{title}: {html.escape(told.name)}</h3><p>{html.escape(told.meaning)}</p><table>{rows}</table>"
            )
    return "\n".join(parts).encode()


_HEAD = """<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width">
<title>Harken: operations</title><link rel=stylesheet href=/docs.css>
<h1>Harken: operations</h1>
<p>The same as a document for programs: <a href=/openapi.json>openapi.json</a>.</p>"""
