"""Bytes in and out: artifacts, session logs that are sent whole, and the pictures of a transcript."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from harken import ids
from harken.api.runtimes import ImportRequest, import_sessions
from harken.errors import BadRequest, Conflict, HarkenError, NotFound
from harken.files import make_folder
from harken.repo.looking import parts_of
from harken.views.documents import MEDIA_TYPES, picture_bytes

from .answering import encode
from .openapi import ArtifactAnswer
from .operations import READ, WRITE
from .routing import API, ServedRoute

if TYPE_CHECKING:
    from harken.events import Event
    from harken.repo import Repo

    from .answering import Workers
    from .settings import Visitor

PART = 1 << 20
"""Bytes that are written at once."""


class ArtifactRoutes:
    """Routes whose bodies or answers are bytes."""

    def __init__(
        self,
        repo: Repo,
        workers: Workers,
        streamed: Callable[..., Response],
        streamed_bytes: Callable[[Callable[[], Iterator[bytes]], dict[str, str], Request], Response],
    ) -> None:
        self._repo, self._workers, self._streamed, self._streamed_bytes = repo, workers, streamed, streamed_bytes
        self._taking: set[Path] = set()

    def routes(self) -> list[ServedRoute]:
        """What is served here."""
        return [
            ServedRoute(f"{API}/artifacts", self._put, ["PUT"], grant=WRITE, is_upload=True),
            ServedRoute(f"{API}/artifacts/{{ref}}", self._get, ["GET", "HEAD"], grant=READ),
            ServedRoute(f"{API}/session-logs/{{name}}", self._take_log, ["PUT"], grant=WRITE, is_upload=True),
            ServedRoute(f"{API}/pictures/{{rest:path}}", self._picture, ["GET", "HEAD"], grant=READ),
        ]

    async def _get(self, request: Request) -> Response:
        who, ref = request.state.visitor.name, request.path_params["ref"]
        found = await self._workers.ask(who, parts_of, self._repo.store, ref)
        headers = {
            "content-type": "application/octet-stream",
            "content-disposition": "attachment",  # it is somebody's bytes, and never a page
            "content-length": str(found.size),
            "etag": f'"{found.artifact}"',
        }
        if request.method == "HEAD":
            return Response(headers=headers)
        return self._streamed_bytes(lambda: _all_or_not_the_last(found.parts), headers, request)

    async def _put(self, request: Request) -> Response:
        policy, expires = request.query_params.get("policy", "default"), request.query_params.get("expires")
        if expires is not None and not (expires.isascii() and expires.isdigit() and len(expires) < 19):
            raise BadRequest(f"{expires!r:.99} is no instant", hint="microseconds since 1970")
        async with self._received(request) as (file, size):
            keep = functools.partial(self._keep, file, policy, None if expires is None else int(expires))
            name = await self._workers.ask(request.state.visitor.name, keep)
        told = ArtifactAnswer(artifact=name, ref=ids.artifact_ref(name), size=size)
        return Response(encode(told), status_code=201, media_type="application/json")

    def _keep(self, file: IO[bytes], policy: str, expires: int | None) -> str:
        file.seek(0)
        with self._repo.store.write() as writer:
            return writer.put_stream(iter(lambda: file.read(PART), b""), policy=policy, expires=expires)

    @contextlib.asynccontextmanager
    async def _received(self, request: Request) -> AsyncIterator[tuple[IO[bytes], int]]:
        """The body in a file without a name, and its size: a client takes its time, and no transaction waits for it."""
        with tempfile.TemporaryFile(dir=self._folder()) as file:
            yield file, await self._write_body(request, file)

    def _folder(self) -> Path | None:
        location = Path(self._repo.store.location)
        return location.parent if location.is_file() else None

    async def _write_body(self, request: Request, file: IO[bytes]) -> int:
        size, waiting, who = 0, bytearray(), request.state.visitor.name
        async for part in request.stream():
            waiting += part
            if len(waiting) >= PART:
                size += await self._workers.ask(who, file.write, bytes(waiting))
                waiting.clear()
        return size + await self._workers.ask(who, file.write, bytes(waiting))

    # -- session logs ------------------------------------------------------------------------------------------

    async def _take_log(self, request: Request) -> Response:
        name, visitor = request.path_params["name"], request.state.visitor
        if not ids.is_safe_name(name):
            raise BadRequest(f"{name!r:.99} is no name of a file", hint="letters, digits, `.`, `_` and `-`")
        path = self._place(visitor, name)
        if path in self._taking:
            raise Conflict(f"{name} is being sent already", hint="wait until that is done")
        self._taking.add(path)
        try:
            with await self._workers.ask(visitor.name, _new_file, path) as file:
                await self._write_body(request, file)
        except BaseException:
            self._forget(path)
            raise
        return self._streamed(lambda: self._import(path, visitor), request, unmade=lambda: self._forget(path))

    def _place(self, visitor: Visitor, name: str) -> Path:
        """Where the file lies while it is read: always the same for the same name, so that one that has grown is known
        again. Each principal has a folder of its own."""
        folder = self._folder()
        if folder is None:
            raise BadRequest("this store is in no file, and takes no session logs", hint="serve a store in a file")
        store = Path(self._repo.store.location).name
        whose = ids.short_digest((visitor.principal or visitor.name).encode("utf-8", "surrogatepass"))
        return folder / f"{store}-uploads" / whose / name

    def _import(self, path: Path, visitor: Visitor) -> Iterator[Any]:
        asked = ImportRequest(paths=(str(path),), principal=visitor.principal, machine=visitor.machine)
        try:
            yield from import_sessions(self._repo, asked)
        finally:
            self._forget(path)

    def _forget(self, path: Path) -> None:
        """The store has every byte of it; the next one is compared with that."""
        path.unlink(missing_ok=True)
        self._taking.discard(path)

    # -- pictures ----------------------------------------------------------------------------------------------

    async def _picture(self, request: Request) -> Response:
        # A session's id may hold a slash, so what the client has escaped is taken as it came.
        raw = request.scope["raw_path"].decode("ascii", "replace").partition("?")[0]
        parts = [unquote(part) for part in raw.removeprefix(f"{API}/pictures/").split("/")]
        if len(parts) < 4 or not all(part.isascii() and part.isdigit() and len(part) < 9 for part in parts[-2:]):
            raise NotFound("there is no such picture", hint="/api/v1/pictures/SESSION/MESSAGE/INDEX/NUMBER")
        session, message = "/".join(parts[:-3]), parts[-3]
        asked = (self._repo, session, message, int(parts[-2]), int(parts[-1]))
        kind, data = await self._workers.ask(request.state.visitor.name, find_picture, *asked)
        return Response(data, media_type=kind, headers={"cache-control": "private, max-age=86400"})


def _all_or_not_the_last(parts: Iterator[bytes]) -> Iterator[bytes]:
    """The parts, the last one when all are known to be right: who got bytes that are not the artifact's got too few."""
    before = b""
    for part in parts:
        if before:
            yield before
        before = part
    if before:
        yield before


def find_picture(repo: Repo, session: str, message: str, index: int, number: int) -> tuple[str, bytes]:
    """What type of picture it is, by its bytes, and these; `NotFound` for whatever else stands there."""
    ways: tuple[Callable[[], list[Event]], ...] = (  # what one commit adds; all of the session, where that fails
        lambda: repo.delta(f"{session}@{message}"),
        lambda: repo.events(session),
    )
    for events in ways:
        with contextlib.suppress(HarkenError):
            found = next((one for one in events() if (one.message_id, one.index) == (message, index)), None)
            images = getattr(found, "images", ())
            if found is not None and number < len(images) and (told := picture_bytes(images[number])):
                return MEDIA_TYPES[told[0]], told[1]
    raise NotFound("there is no such picture", hint="only PNG, JPEG, GIF and WebP are shown")


def _new_file(path: Path) -> IO[bytes]:
    make_folder(path.parent)
    path.unlink(missing_ok=True)
    return path.open("xb")
