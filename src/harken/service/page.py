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
_FOR_EVER = "private, max-age=31536000, immutable"
"""How long a browser may keep a file whose address changes with what is in it."""


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


INDEX = STATIC / "index.html"


def file_of(request: Request) -> Path:
    """The file that an address means: one of the page's, or the page itself, which finds out what its address means."""
    asked = request.path_params.get("path", request.url.path).lstrip("/")
    path = _found(asked) if asked else INDEX
    if path is None:
        if Path(asked).suffix in _TYPES and not asked.startswith(_NAMED):
            raise NotFound("there is no such file", hint="the page is at /")
        path = INDEX
    return path


def read_file(path: Path) -> bytes:
    """What is in a file of the page."""
    about = path.stat()
    return _file(path, about.st_mtime_ns, about.st_size)


def _is_named_by_content(path: Path, request: Request) -> bool:
    """Whether the address is another one as soon as the file says something else: it is one that the page itself names.
    What a page from before an upgrade asks for is not kept under that name."""
    version = request.query_params.get("v", "")
    return path.name.startswith("part-") or f'"/{path.name}?v={version}"'.encode() in read_file(INDEX)


def page_file(path: Path, request: Request) -> Response:
    """A file of the page."""
    about = path.stat()
    etag = f'"{about.st_mtime_ns:x}-{about.st_size:x}"'
    keep = _FOR_EVER if path != INDEX and _is_named_by_content(path, request) else "no-cache"
    headers = {"etag": etag, "cache-control": keep}
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    return Response(read_file(path), media_type=_TYPES[path.suffix], headers=headers)


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
<title>Harken: operations</title><link rel=stylesheet href=/docs.css><link rel=icon href=/icon.svg>
<h1>Harken: operations</h1>
<p>The same as a document for programs: <a href=/openapi.json>openapi.json</a>.</p>"""
