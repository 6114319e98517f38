"""The service with 200 readers and 20 writers at once, and a server that is killed in the middle of it.

Readers ask what the page asks; each pauses for a while between two questions, as somebody who looks does. Writers make
commits without a pause. At half time the server gets SIGKILL and is started again. Whatever is answered but by the end
of the connection is an error; every commit that was answered has to be there afterwards.

python benchmarks/service.py [SECONDS [PAUSE]]
"""

from __future__ import annotations

import asyncio
import base64
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harken
from harken.events import Prompt, Response
from harken.events.cbor import encode_events
from harken.service.tokens import TokenFile, tokens_beside

READERS, WRITERS = 200, 20
SESSIONS, TURNS = 40, 25
PAUSE = 1.0
WORDS = "the store keeps what agents said heard and knew of harbours lanterns ferries nets ropes tides".split()
LOST = (OSError, asyncio.IncompleteReadError, EOFError)


def delta(session: str, number: int) -> bytes:
    """A turn with words of its own."""
    some = random.Random(f"{session} {number}")
    name = f"{session}-{number}"
    asked, answered = (" ".join(some.choices(WORDS, k=40)) for _ in range(2))
    return encode_events(
        [Prompt(content=f"{name} {asked}", message_id=f"{name}a"), Response(content=answered, message_id=f"{name}b")]
    )


def fill(store: Path) -> list[str]:
    """Sessions to look at."""
    names = [f"session-{number:03}" for number in range(SESSIONS)]
    with harken.open(store) as repo:
        for name in names:
            parent = None
            for number in range(TURNS):
                parent = repo.checkpoint(delta(name, number), format="events-v1", parent=parent, session_id=name)
        repo.keep_index()
    return names


class Server:
    """`harken serve` as a process, on one port however often it is started."""

    def __init__(self, store: Path) -> None:
        self._store, self.port = store, 0
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        words = ["--store", str(self._store), "serve", "--port", str(self.port), "--no-watch", "--no-open", "--json"]
        self._process = subprocess.Popen([sys.executable, "-m", "harken", *words], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = json.loads(self._process.stdout.readline())["port"]

    def end(self, how: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait()


class Client:
    """One connection, made anew where it broke."""

    def __init__(self, server: Server, token: str) -> None:
        self._server, self._token = server, token
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, operation: str, request: dict[str, Any]) -> tuple[int, bytes]:
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._server.port)
        try:
            return await self._ask(operation, json.dumps(request).encode())
        except LOST:
            self._writer.close()
            self._writer = None
            raise

    async def _ask(self, operation: str, body: bytes) -> tuple[int, bytes]:
        assert self._writer is not None
        assert self._reader is not None
        self._writer.write(
            f"POST /api/v1/{operation} HTTP/1.1\r\nHost: 127.0.0.1:{self._server.port}\r\n"
            f"Authorization: Bearer {self._token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        status = int(head.split(" ", 2)[1])
        if "content-length:" in head:
            return status, await self._reader.readexactly(int(head.partition("content-length:")[2].split("\r\n")[0]))
        told = b""
        while size := int(await self._reader.readline(), 16):
            told += await self._reader.readexactly(size)
            await self._reader.readline()
        await self._reader.readline()
        return status, told


class Load:
    """What everybody does, and what came of it."""

    def __init__(self, server: Server, tokens: dict[str, str], sessions: list[str], pause: float) -> None:
        self._server, self._tokens, self._sessions, self._pause = server, tokens, sessions, pause
        self._until = 0.0
        self.took: dict[str, list[float]] = {"readers": [], "writers": []}
        self.by_operation: dict[str, list[float]] = {}
        self.lost = 0
        self.wrong: Counter[str] = Counter()
        self.kept: dict[str, list[str]] = {}

    async def run(self, seconds: float, *, kill: bool) -> None:
        self._until = time.monotonic() + seconds
        everybody = [self._read(number) for number in range(READERS)] + [self._write(n) for n in range(WRITERS)]
        tasks = [asyncio.ensure_future(one) for one in everybody]
        if kill:
            await asyncio.sleep(seconds / 2)
            await asyncio.to_thread(self._server.end, signal.SIGKILL)
            await asyncio.to_thread(self._server.start)
        await asyncio.gather(*tasks)

    async def _timed(self, who: str, client: Client, operation: str, request: dict[str, Any]) -> bytes | None:
        began = time.monotonic()
        try:
            status, told = await client.ask(operation, request)
        except LOST:
            self.lost += 1
            await asyncio.sleep(0.2)
            return None
        took = time.monotonic() - began
        self.took[who].append(took)
        self.by_operation.setdefault(operation, []).append(took)
        if status == 200 and b'{"error"' not in told[-2000:]:
            return told
        self.wrong[f"{operation}: {status} {told[-200:].decode(errors='replace')}"] += 1
        return None

    async def _read(self, number: int) -> None:
        client, some = Client(self._server, self._tokens["readers"]), random.Random(number)
        await asyncio.sleep(some.random() * self._pause)
        while time.monotonic() < self._until:
            session = some.choice([*self._sessions, *self.kept] if number % 2 else self._sessions)
            operation, request = some.choice(
                [
                    ("sessions_page", {"count": 20}),
                    ("session_page", {"session": session}),
                    ("transcript", {"session": session, "start": 0, "count": 50}),
                    ("search", {"query": some.choice(WORDS), "limit": 10}),
                    ("log", {"ref": session, "limit": 20}),
                    ("home", {}),
                    ("materialize", {"ref": session}),
                ]
            )
            await self._timed("readers", client, operation, request)
            await asyncio.sleep(self._pause * (0.5 + some.random()))

    async def _write(self, number: int) -> None:
        client, name = Client(self._server, self._tokens["writers"]), f"written-{number:02}"
        made, parent = 0, ""
        while time.monotonic() < self._until:
            body = base64.b64encode(delta(name, made)).decode()
            asked = {"body": body, "format": "events-v1", "session_id": name, "parent": parent or None}
            made += 1
            if (told := await self._timed("writers", client, "checkpoint", asked)) is not None:
                parent = json.loads(told)["id"]
                self.kept.setdefault(name, []).append(parent)
            elif parent:
                parent = name  # it may have been kept, and only the answer was lost


def quantile(times: list[float], share: float) -> str:
    return f"{sorted(times)[min(len(times) - 1, int(len(times) * share))]:.2f}" if times else "-"


def measure(out: Callable[[str], object], seconds: float, pause: float, *, kill: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store.db"
        sessions = fill(store)
        file = TokenFile(tokens_beside(str(store)))
        tokens = {who: file.create(who, ("context/write",)).secret for who in ("readers", "writers")}
        server = Server(store)
        server.start()
        load = Load(server, tokens, sessions, pause)
        try:
            asyncio.run(load.run(seconds, kill=kill))
        finally:
            server.end(signal.SIGTERM)
        with harken.open(store) as repo:
            kept = [commit for commits in load.kept.values() for commit in commits]
            chains = {name: [one.id for one in repo.history(commits[-1])][::-1] for name, commits in load.kept.items()}
            lost = sum(one not in set(chains[name]) for name, commits in load.kept.items() for one in commits)
            sound = repo.fsck(read_data=True).ok
    told = {**load.took, **dict(sorted(load.by_operation.items()))}
    for who, times in told.items():
        shares = " | ".join(quantile(times, share) for share in (0.5, 0.95, 0.99, 1.0))
        out(f"| {who} | {len(times) / seconds:.0f} | {shares} |")
    out("")
    out(f"{len(kept)} commits were answered, {lost} of them lost; the store is {'' if sound else 'not '}sound.")
    out(f"{load.lost} questions met the end of their connection. Other errors: {sum(load.wrong.values())}")
    for problem, count in load.wrong.most_common(5):
        out(f"  {count} × {problem}")


def main(out: Callable[[str], object], seconds: float = 60.0, pause: float = PAUSE) -> None:
    out(
        f"{READERS} readers, {pause:g} s between two questions, and {WRITERS} writers; {seconds:g} s, SIGKILL in the middle."
    )
    out("")
    out("| who | a second | p50, s | p95 | p99 | worst |")
    out("|---|---|---|---|---|---|")
    measure(out, seconds, pause, kill=True)


if __name__ == "__main__":
    main(print, *map(float, sys.argv[1:]))
