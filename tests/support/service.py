"""A service for tests: a real one, on a port and a socket of its own."""

from __future__ import annotations

import importlib
import json
import re
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import httpx
import pytest

import harken
from harken.api import OPERATIONS
from harken.repo import Repo
from harken.service import operations
from harken.service.routing import ServedRoute
from harken.service.running import Listening, RunningService
from harken.service.settings import ServiceSettings
from support.contexts import keep, turn

QUICK = ServiceSettings(heartbeat=0.3, feed_pause=0.02, feed_patience=0.5, stranger_rate=5000.0)


@contextmanager
def serving(
    repo: Repo,
    *,
    port: int = 0,
    path: Path | None = None,
    settings: ServiceSettings = QUICK,
    log: IO[str] | None = None,
) -> Iterator[RunningService]:
    """The service while it runs."""
    with RunningService(repo, Listening(port=port, socket=path), settings=settings, log=log) as service:
        yield service


@contextmanager
def small_store(folder: Path) -> Iterator[Repo]:
    """A store with a session of two turns and a branch."""
    with harken.open(folder / "store.db") as repo:
        first = keep(repo, turn(1), session_id="s")
        keep(repo, turn(2), parent=first, session_id="s")
        repo.fork(first, "review")
        yield repo


def token(service: RunningService, *grants: str, name: str = "", **more: Any) -> str:
    """A token with these grants."""
    called = name or f"t-{uuid.uuid4().hex[:8]}"
    return service.app.tokens.create(called, grants or ("admin",), **more).secret


@contextmanager
def client(service: RunningService, secret: str = "", **headers: str) -> Iterator[httpx.Client]:
    """Somebody who asks over TCP."""
    told = {"Authorization": f"Bearer {secret}"} if secret else {}
    # A proxy that the machine has is not for us.
    with httpx.Client(base_url=service.url, headers={**told, **headers}, timeout=30, trust_env=False) as asking:
        yield asking


@contextmanager
def owner(path: Path) -> Iterator[httpx.Client]:
    """The owner, over the socket."""
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), base_url="http://localhost", timeout=30) as asking:
        yield asking


def replace_operation(monkeypatch: pytest.MonkeyPatch, name: str, function: Callable[..., Any]) -> None:
    """Have another function answer; what the operation asks for and answers is known from the real one."""
    operations.described(name)
    monkeypatch.setattr(importlib.import_module(f"harken.api.{OPERATIONS[name]}"), name, function)


def lines(response: httpx.Response) -> list[Any]:
    """The objects of an answer, one a line."""
    return [json.loads(line) for line in response.text.splitlines()]


def problem(response: httpx.Response) -> tuple[int, str]:
    """The status and the code of an error."""
    told = response.json()["error"]
    assert {"code", "message", "hint"} == set(told)
    assert told["message"] and told["hint"]
    return response.status_code, told["code"]


def address(route: ServedRoute) -> str:
    """An address that the route takes."""
    return (
        re.sub(r"\{rest:path\}", "s/m1a/0/0", re.sub(r"\{path:path\}", "sessions", route.path))
        .replace("{ref}", "art-000000000000")
        .replace("{name}", "x.jsonl")
    )


def every_route(service: RunningService) -> list[tuple[str, ServedRoute]]:
    """Every way to ask: the method and the route."""
    return [(method, route) for route in service.app.table.routes for method in sorted(route.methods or ())]


class FeedReader:
    """Follows the feed, one message after the other."""

    def __init__(self, asking: httpx.Client, place: str = "", **headers: str) -> None:
        self._stream = asking.stream("GET", f"/api/v1/feed{place}", headers=headers)
        self.response = self._stream.__enter__()
        self._parts = self.response.iter_text()
        self._rest = ""

    def next(self) -> dict[str, str]:
        """The next message; comments too, as `comment`."""
        while "\n\n" not in self._rest:
            self._rest += next(self._parts)
        block, _, self._rest = self._rest.partition("\n\n")
        fields = dict(
            line.split(": ", 1) if not line.startswith(":") else ("comment", line[1:]) for line in block.split("\n")
        )
        return fields if fields.keys() - {"retry"} else self.next()

    def close(self) -> None:
        self._stream.__exit__(None, None, None)


def raw(port: int, text: str) -> bytes:
    """What comes back for bytes that no library would send."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(text.encode("latin-1"))
        connection.shutdown(socket.SHUT_WR)
        told = b""
        while part := connection.recv(65536):
            told += part
    return told
