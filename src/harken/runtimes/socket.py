"""The context socket: an agent's tools ask which commit the agent stands on, and may ask for one to be made.

HTTP over a Unix socket, mode 0600 in a folder of mode 0700; a caller of another user is turned away.

    GET  /current-context   {"context_id": "ctx-…"}, empty before the first checkpoint
    POST /checkpoint        the same, after everything heard so far has been committed

Where it cannot be said, `context_id` is empty and `reason` says why.

The server has no thread of its own: the loop that reads the runtime's output also calls `accept` and `serve`, so an
answer is made between two reads and never in the middle of one.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import socket
import struct
import uuid
from collections.abc import Callable
from pathlib import Path

import msgspec

from harken import clock

MAX_REQUEST = 16 * 1024
MAX_CALLERS = 32
CALLER_TIME = 2.0
"""Seconds a caller may take to say what it wants."""
ASKING = 1.5
"""Seconds `ask` waits for an answer, so that a command that asks is done within two."""
_NAME = "context.sock"
_PATH_LIMIT = 107
"""What fits into a Unix address."""

_LENGTH = re.compile(rb"(?im)^content-length: *(\d{1,9}) *\r?$")


class ContextAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the socket answers."""

    context_id: str
    """The id of a commit; empty where there is none, or none can be named."""
    reason: str = ""
    """Why none can be named."""


AnswerRequest = Callable[[str, int], ContextAnswer]
"""Takes `current-context` or `checkpoint` and the process that asks (0 where the system does not tell)."""


class ContextSocket:
    """The listening end, and the callers that are being served."""

    def __init__(self, folder: Path, answer: AnswerRequest) -> None:
        self.path = _free_path(folder)
        self._answer = answer
        self._callers: dict[socket.socket, tuple[bytearray, float, int]] = {}
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        starting = self.path.with_suffix(".new")
        before = os.umask(0o177)
        try:
            self.listener.bind(str(starting))
        finally:
            os.umask(before)
        self.listener.listen(MAX_CALLERS)
        self.listener.setblocking(False)
        # Under its name it listens from the first moment on: one that refuses has nobody behind it any more.
        starting.rename(self.path)

    def accept(self, selector: selectors.BaseSelector) -> None:
        """Let the next caller in, if it is ours and there is room."""
        try:
            caller, _ = self.listener.accept()
        except OSError:
            return
        caller.setblocking(False)
        process, user = _peer(caller)
        if user != os.getuid():
            self._reply(caller, 403, {"error": "this socket belongs to another user"})
            caller.close()
        elif len(self._callers) >= MAX_CALLERS:
            caller.close()
        else:
            self._callers[caller] = (bytearray(), clock.monotonic() + CALLER_TIME, process)
            selector.register(caller, selectors.EVENT_READ, self.serve)

    def serve(self, caller: socket.socket, selector: selectors.BaseSelector) -> None:
        """Read what a caller says; answer once its request is whole."""
        heard, _, process = self._callers[caller]
        try:
            part = caller.recv(MAX_REQUEST)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        heard += part
        if part and not _is_whole(heard) and len(heard) < MAX_REQUEST:
            return
        status, body = self._decide(bytes(heard), process)
        self._reply(caller, status, body)
        self._forget(caller, selector)

    def drop_slow(self, selector: selectors.BaseSelector) -> None:
        """Close the connections of callers who have had their time."""
        now = clock.monotonic()
        for caller in [caller for caller, (_, deadline, _) in self._callers.items() if deadline < now]:
            self._forget(caller, selector)

    def close(self) -> None:
        """Stop listening and take the socket away."""
        for caller in self._callers:
            caller.close()
        self._callers.clear()
        self.listener.close()
        with contextlib.suppress(OSError):
            self.path.unlink()
        with contextlib.suppress(OSError):
            self.path.parent.rmdir()

    def _decide(self, heard: bytes, process: int) -> tuple[int, dict[str, str] | ContextAnswer]:
        words = heard.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or b"\r\n\r\n" not in heard or not words[2].startswith(b"HTTP/"):
            return 400, {"error": "not an HTTP request"}
        match words[0], words[1].split(b"?")[0]:
            case b"GET", b"/current-context":
                return 200, self._answer("current-context", process)
            case b"POST", b"/checkpoint":
                return 200, self._answer("checkpoint", process)
            case _, b"/current-context" | b"/checkpoint":
                return 405, {"error": "GET /current-context, POST /checkpoint"}
        return 404, {"error": "GET /current-context, POST /checkpoint"}

    def _reply(self, caller: socket.socket, status: int, body: dict[str, str] | ContextAnswer) -> None:
        reasons = {200: "OK", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed"}
        data = msgspec.json.encode(body)
        head = f"HTTP/1.1 {status} {reasons[status]}\r\ncontent-type: application/json\r\n"
        head += f"content-length: {len(data)}\r\nconnection: close\r\n\r\n"
        # The answer fits into any socket buffer; a caller that has gone misses it.
        with contextlib.suppress(OSError):
            caller.send(head.encode() + data)

    def _forget(self, caller: socket.socket, selector: selectors.BaseSelector) -> None:
        selector.unregister(caller)
        del self._callers[caller]
        caller.close()


def _is_whole(heard: bytearray) -> bool:
    """Whether a request has come to its end; a body means nothing here, but closing before it is read would lose
    the answer."""
    head, end, body = heard.partition(b"\r\n\r\n")
    size = _LENGTH.search(head)
    return bool(end) and len(body) >= (int(size[1]) if size else 0)


def _free_path(folder: Path) -> Path:
    """A new folder of ours alone, short enough for an address."""
    name = uuid.uuid4().hex[:12]
    for base in (folder, Path("/tmp")):  # noqa: S108 (only where the first is too long; the folder is 0700)
        path = base / f"harken-{name}" / _NAME
        if len(os.fsencode(path)) <= _PATH_LIMIT:
            _remove_stale(base)
            path.parent.mkdir(parents=True, mode=0o700)
            return path
    raise OSError("no folder short enough for a socket")


def _remove_stale(folder: Path) -> None:
    """Take away what runs that were killed have left behind. It is only tidying: whatever goes wrong, it stays."""
    with contextlib.suppress(OSError):
        for path in folder.glob(f"harken-*/{_NAME}"):
            if _is_abandoned(path):
                path.unlink()
                path.parent.rmdir()


def _is_abandoned(path: Path) -> bool:
    """Whether a socket is ours and nobody listens there."""
    if path.lstat().st_uid != os.getuid() or not path.is_socket():
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.setblocking(False)
        try:
            line.connect(str(path))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False


def _peer(caller: socket.socket) -> tuple[int, int]:
    """The process on the other end and its user, as the kernel tells it; 0 for a process that it does not tell."""
    if hasattr(socket, "SO_PEERCRED"):
        found = caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        process, user, _ = struct.unpack("3i", found)
        return int(process), int(user)
    # Elsewhere (macOS, the BSDs) the same is called LOCAL_PEERCRED, at level 0: a version, then the user.
    return 0, int(struct.unpack("2I", caller.getsockopt(0, 1, struct.calcsize("2I")))[1])


NO_ANSWER = ContextAnswer(context_id="")


def ask(path: str, what: str = "current-context") -> ContextAnswer:
    """Ask the socket; whatever goes wrong, the answer is an empty one, and soon."""
    method = "POST" if what == "checkpoint" else "GET"
    deadline = clock.monotonic() + ASKING
    heard = b""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.settimeout(ASKING)
            line.connect(path)
            line.sendall(f"{method} /{what} HTTP/1.1\r\nhost: harken\r\ncontent-length: 0\r\n\r\n".encode())
            while len(heard) < MAX_REQUEST and (left := deadline - clock.monotonic()) > 0:
                line.settimeout(left)
                if not (part := line.recv(4096)):
                    break
                heard += part
        head, _, body = heard.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            return NO_ANSWER
        return msgspec.json.decode(body, type=ContextAnswer)
    except (OSError, ValueError):
        return NO_ANSWER
