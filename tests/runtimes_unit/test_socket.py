"""The context socket: who may ask, what is answered, and that nobody can make it wait."""

from __future__ import annotations

import os
import selectors
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harken.runtimes.socket import CALLER_TIME, NO_ANSWER, ContextAnswer, ContextSocket, ask


class Server:
    """A context socket with a loop around it."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []
        self.processes: list[int] = []
        self.door = ContextSocket(folder, self._answer)
        self._going = True
        self._thread = threading.Thread(target=self._loop)
        self._thread.start()

    def _answer(self, what: str, process: int) -> ContextAnswer:
        self.asked.append(what)
        self.processes.append(process)
        return ContextAnswer(context_id=f"ctx-{len(self.asked):08x}")

    def _loop(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self.door.listener, selectors.EVENT_READ)
            while self._going:
                for key, _ in selector.select(0.05):
                    if key.data is None:
                        self.door.accept(selector)
                    else:
                        key.data(key.fileobj, selector)
                self.door.drop_slow(selector)

    def close(self) -> None:
        self._going = False
        self._thread.join()
        self.door.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    yield made
    made.close()


def speak(server: Server, words: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(10)
        line.connect(str(server.door.path))
        line.sendall(words)
        heard = b""
        while part := line.recv(4096):
            heard += part
        return heard


def test_the_current_context_is_answered(server: Server) -> None:
    assert ask(str(server.door.path)).context_id == "ctx-00000001"
    assert ask(str(server.door.path), "checkpoint").context_id == "ctx-00000002"
    assert server.asked == ["current-context", "checkpoint"]
    assert server.processes == [os.getpid()] * 2, "the system tells who asks"


def test_plain_http_is_enough(server: Server) -> None:
    heard = speak(server, b"GET /current-context HTTP/1.1\r\nhost: x\r\n\r\n")
    assert heard.startswith(b"HTTP/1.1 200 OK\r\n")
    assert heard.endswith(b'\r\n\r\n{"context_id":"ctx-00000001"}')


def test_a_request_with_a_body_is_read_to_its_end(server: Server) -> None:
    heard = speak(server, b"POST /checkpoint HTTP/1.1\r\nContent-Length: 2000\r\n\r\n" + b"x" * 2000)
    assert heard.startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (b"GET /elsewhere HTTP/1.1\r\n\r\n", b"404"),
        (b"DELETE /current-context HTTP/1.1\r\n\r\n", b"405"),
        (b"GET /checkpoint HTTP/1.1\r\n\r\n", b"405"),
        (b"hello\r\n\r\n", b"400"),
        (b"x" * 16_384, b"400"),
    ],
)
def test_what_makes_no_sense_is_refused(server: Server, words: bytes, status: bytes) -> None:
    assert speak(server, words).split(b" ")[1] == status
    assert server.asked == []


def test_only_the_owner_can_open_it(server: Server) -> None:
    assert os.stat(server.door.path).st_mode & 0o777 == 0o600
    assert os.stat(server.door.path.parent).st_mode & 0o777 == 0o700


def test_another_user_is_turned_away(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even one who got past the modes of file and folder."""
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)  # so that we are somebody else than the server

    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(10)
        line.connect(str(server.door.path))
        assert line.recv(4096).startswith(b"HTTP/1.1 403 ")
    assert server.asked == []


def test_a_caller_that_says_nothing_is_let_go_and_holds_up_nobody(server: Server) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(str(server.door.path))
        assert ask(str(server.door.path)).context_id == "ctx-00000001"
        silent.settimeout(CALLER_TIME + 5)
        assert silent.recv(1) == b""


def test_asking_never_takes_longer_than_it_may(tmp_path: Path) -> None:
    """The other end accepts and then says nothing at all."""
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(tmp_path / "mute.sock"))
        mute.listen(1)
        start = time.monotonic()
        assert ask(str(tmp_path / "mute.sock")) == NO_ANSWER
        assert time.monotonic() - start < 2


def test_a_folder_too_long_for_an_address_is_replaced(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 120)
    made = ContextSocket(long, lambda *_: NO_ANSWER)
    try:
        assert len(os.fsencode(made.path)) < 108
        assert os.stat(made.path.parent).st_mode & 0o777 == 0o700
    finally:
        made.close()
    assert not made.path.parent.exists()


def test_what_a_killed_run_left_behind_is_taken_away_by_the_next(tmp_path: Path, server: Server) -> None:
    """#39: and nothing else is, least of all the socket of a run that goes on."""
    killed = ContextSocket(tmp_path, lambda *_: NO_ANSWER)
    killed.listener.close()  # as the kernel does for a process that was killed
    for name in ("harken-mine", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "context.sock").touch()

    ContextSocket(tmp_path, lambda *_: NO_ANSWER).close()

    left = sorted(path.name for path in tmp_path.iterdir())
    assert sorted(["harken-mine", "other", server.door.path.parent.name]) == left
    assert "ctx-00000001" == ask(str(server.door.path)).context_id
