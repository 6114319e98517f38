"""Where the service listens, how it ends, and what is beside it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import harken
from harken import BadRequest, Conflict, HarkenError
from harken.events import Prompt
from harken.events.cbor import encode_events
from harken.repo import Repo
from harken.service import first_answers as first_answers_module
from harken.service import running
from harken.service.routing import API
from harken.service.running import Listening, RunningService, listen_on_socket
from harken.service.settings import ServiceSettings
from support.service import FeedReader, client, owner, replace_operation, serving, small_store, token


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with small_store(tmp_path) as opened:
        yield opened


def test_a_service_that_starts_has_looked_at_the_session_that_went_on_last(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    done = threading.Event()

    def noted(_: Repo, request: Any) -> None:
        asked.append(request.session)
        if len(asked) == 2:
            done.set()
            raise HarkenError("it cannot be read")

    for name in ("session_page", "transcript"):
        replace_operation(monkeypatch, name, noted)
    with serving(repo) as service:
        assert done.wait(20)
        assert 200 == httpx.get(f"{service.url}healthz", trust_env=False).status_code

    assert ["s", "s"] == asked


def test_an_index_that_is_missing_is_made_without_being_asked_for(repo: Repo, tmp_path: Path) -> None:
    def behind() -> int:
        status = repo.index.status()
        return status.last - status.at

    assert behind() > 0
    with RunningService(repo, Listening(socket=tmp_path / "run" / "socket")):
        until = time.monotonic() + 30
        while behind() and time.monotonic() < until:
            time.sleep(0.05)

        assert 0 == behind()


def test_an_answer_waits_for_no_acknowledgement_of_its_first_half(service: RunningService) -> None:
    """With Nagle's algorithm every answer but the first on a connection took 40 ms. The system is asked whether it is
    off: on a busy machine the clock does not tell why an answer is late."""
    with client(service) as asking:
        asking.get("/healthz")
        connected = [one.transport.get_extra_info("socket") for one in service._server.server_state.connections]
        by_port = [one for one in connected if one.family == socket.AF_INET]

        assert by_port
        assert all(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for one in by_port)


# -- the socket --------------------------------------------------------------------------------------------------------


def test_the_socket_is_for_its_owner_alone(repo: Repo, tmp_path: Path) -> None:
    path = tmp_path / "run" / "deep" / "socket"
    with RunningService(repo, Listening(socket=path)) as service:
        assert (None, "") == (service.port, service.url)
        assert 0o600 == stat.S_IMODE(path.stat().st_mode)
        assert 0o700 == stat.S_IMODE(path.parent.stat().st_mode)
        with owner(path) as asking:
            assert 200 == asking.post(f"{API}/sessions", json={}).status_code
            assert 200 == asking.get("/healthz", headers={"host": "anything"}).status_code
            assert 403 == asking.get("/healthz", headers={"origin": "http://evil.example"}).status_code
    assert not path.exists()


def test_another_user_is_not_even_heard(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run" / "socket"
    monkeypatch.setattr(running, "peer_user", lambda peer: os.getuid() + 1)
    with RunningService(repo, Listening(socket=path)), owner(path) as asking, pytest.raises(httpx.TransportError):
        asking.get("/healthz")


def test_whose_process_asks_is_what_the_system_says(tmp_path: Path) -> None:
    here, there = socket.socketpair(socket.AF_UNIX)
    with here, there:
        assert os.getuid() == running.peer_user(here)


def test_a_real_process_of_another_user_gets_nothing(repo: Repo, tmp_path: Path) -> None:
    if os.getuid() != 0:  # only root may become another user
        return
    path = tmp_path / "run" / "socket"
    script = (
        "import os, socket, sys\n"
        "s = socket.socket(socket.AF_UNIX); os.chdir(sys.argv[1]); os.setuid(65534)\n"
        "s.connect('socket')\n"
        "try:\n    s.sendall(b'GET /healthz HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); print(len(s.recv(100)))\n"
        "except ConnectionError:\n    print(0)\n"
    )
    with RunningService(repo, Listening(socket=path)):
        path.chmod(0o666)  # as if somebody had been careless
        path.parent.chmod(0o755)
        done = subprocess.run([sys.executable, "-c", script, str(path.parent)], capture_output=True, text=True)

    assert ("0\n", "") == (done.stdout, done.stderr)


def test_a_socket_that_was_left_behind_is_replaced(repo: Repo, tmp_path: Path) -> None:
    path = tmp_path / "run" / "socket"
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))

    with RunningService(repo, Listening(socket=path)), owner(path) as asking:
        assert 200 == asking.get("/healthz").status_code


def test_a_socket_in_use_is_not_taken_over(repo: Repo, tmp_path: Path) -> None:
    path = tmp_path / "run" / "socket"
    with RunningService(repo, Listening(socket=path)), owner(path) as asking:
        with pytest.raises(Conflict, match="another server listens"):
            RunningService(repo, Listening(socket=path))
        assert 200 == asking.get("/healthz").status_code

    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(str(path))
        stranger.listen()
        with pytest.raises(Conflict, match="another server listens"), listen_on_socket(path):
            pass


def test_what_is_no_socket_is_left_alone(repo: Repo, tmp_path: Path) -> None:
    path = tmp_path / "run" / "file"
    path.parent.mkdir(mode=0o700)
    path.write_text("mine")

    with pytest.raises(Conflict, match="is no socket"):
        RunningService(repo, Listening(socket=path))
    assert "mine" == path.read_text()


def test_a_folder_that_others_may_write_to_holds_no_socket(repo: Repo, tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)

    with pytest.raises(HarkenError, match="others may write"):
        RunningService(repo, Listening(socket=folder / "socket"))


def test_a_path_too_long_for_a_socket_is_told_so(repo: Repo, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="too long for a socket"):
        RunningService(repo, Listening(socket=tmp_path / ("x" * 120)))


# -- the port ----------------------------------------------------------------------------------------------------------


def test_a_port_that_is_taken_is_told_so(repo: Repo) -> None:
    with serving(repo) as service, pytest.raises(Conflict, match=f"port {service.port} is taken") as told:
        RunningService(repo, Listening(port=service.port))

    assert "--port 0" in (told.value.hint or "")


def test_only_this_machine_can_ask(repo: Repo) -> None:
    with serving(repo) as service:
        assert service.url == f"http://127.0.0.1:{service.port}/"
        listening = Path("/proc/net/tcp").read_text()
        assert f"0100007F:{service.port:04X} 00000000:0000 0A" in listening
        assert f"00000000:{service.port:04X} 00000000:0000 0A" not in listening


def test_nowhere_to_listen_is_refused(repo: Repo) -> None:
    with pytest.raises(BadRequest):
        RunningService(repo, Listening())


def test_stopping_twice_is_stopping_once(repo: Repo) -> None:
    with serving(repo) as service:
        service.stop()
        service.stop()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{service.url}healthz", trust_env=False)


def test_a_service_that_answers_nobody_ends_at_once(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking every so often whether it is to end would cost a tenth of a second at each end, and wake the machine."""
    waits = []
    sleep = asyncio.sleep

    async def noted(seconds: float, result: Any = None) -> Any:
        waits.append(seconds)
        return await sleep(seconds, result)

    with serving(repo) as service:
        with client(service) as asking:
            asking.get("/healthz")
        monkeypatch.setattr(asyncio, "sleep", noted)

    assert [] == [seconds for seconds in waits if seconds > 0.01]


def test_what_is_being_answered_when_the_service_is_to_end_is_answered(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, go_on = threading.Event(), threading.Event()
    answers: list[int] = []

    def slow(*_: Any) -> None:
        asked.set()
        go_on.wait(20)
        raise BadRequest("as was to be expected")

    replace_operation(monkeypatch, "sessions", slow)
    monkeypatch.setattr(running, "STOP_SECONDS", 20.0)
    with serving(repo) as service, client(service, token(service)) as asking:
        asker = threading.Thread(target=lambda: answers.append(asking.post(f"{API}/sessions", json={}).status_code))
        ender = threading.Thread(target=service.stop)
        asker.start()
        assert asked.wait(20)
        ender.start()
        with pytest.raises(httpx.TransportError):  # nobody else is let in
            while True:
                httpx.get(f"{service.url}healthz", trust_env=False)
        go_on.set()
        asker.join(20)
        ender.join(20)

    assert [400] == answers


def test_the_service_watches_while_it_serves(tmp_path: Path) -> None:
    home = tmp_path / "home"
    recorded = sorted(Path(__file__).parents[1].glob("recorded/*/plain/projects/*/*.jsonl"))[0]
    folder = home / ".claude" / "projects" / "-home-sam-project"
    folder.mkdir(parents=True)
    with harken.open(tmp_path / "store.db") as repo:
        where = Listening(port=0, watch=True)
        with (
            RunningService(repo, where, settings=ServiceSettings(usual={"environ": {"HOME": str(home)}})) as service,
            client(service, token(service)) as asking,
        ):
            reader = FeedReader(asking)
            reader.next()
            (folder / recorded.name).write_bytes(recorded.read_bytes())
            while not json.loads(reader.next()["data"])["changes"]:
                continue
            reader.close()
        assert [recorded.stem] == [row.session for row in repo.sessions()]


# -- the page's files --------------------------------------------------------------------------------------------------


def test_every_address_that_is_no_file_is_the_page(repo: Repo) -> None:
    with serving(repo) as service, client(service) as asking:
        page = asking.get("/")
        assert "text/html; charset=utf-8" == page.headers["content-type"]
        for address in ("/sessions", "/s/some%2Fthing?v=flow", "/c/ctx-1"):
            assert page.content == asking.get(address).content
        assert 404 == asking.get("/missing.js").status_code
        assert 304 == asking.get("/", headers={"if-none-match": page.headers["etag"]}).status_code


def first_answers(page: httpx.Response) -> list[dict[str, Any]]:
    """What the server put into the page."""
    found = re.findall(r'<script type="application/json" id="first-answers">([^<]*)</script>', page.text)
    return json.loads(found[0]) if found else []


def test_the_page_of_a_session_brings_what_it_asks_for_first(repo: Repo) -> None:
    session = repo.sessions()[0].session
    with serving(repo) as service, client(service, token(service, "context/read")) as asking:
        page = asking.get(f"/s/{session}")
        told = first_answers(page)
        assert ["session_page", "transcript"] == [one["operation"] for one in told]
        for one in told:
            assert asking.post(f"{API}/{one['operation']}", json=one["request"]).json() == one["answer"]
        assert "no-store" == page.headers["cache-control"]
        assert ["session_page"] == [one["operation"] for one in first_answers(asking.get(f"/s/{session}?v=flow"))]
        for address in ("/", "/sessions", "/s/", "/s/nobody-knows-it", "/c/ctx-1"):
            assert [] == first_answers(asking.get(address))


def test_who_is_not_signed_in_gets_the_page_and_no_answer(repo: Repo) -> None:
    session = repo.sessions()[0].session
    with serving(repo) as service, client(service) as asking:
        assert asking.get("/").content == asking.get(f"/s/{session}").content
        assert asking.get(f"/s/{session}").headers["etag"]


@pytest.mark.parametrize("problem", [RuntimeError("a fault"), OSError(5, "the disk"), HarkenError("no", hint="")])
def test_the_page_is_whole_where_its_answers_fail(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    def fail(*_: Any) -> None:
        raise problem

    replace_operation(monkeypatch, "session_page", fail)
    with serving(repo) as service, client(service, token(service, "context/read")) as asking:
        assert asking.get("/").content == asking.get("/s/s").content


def test_the_page_does_not_wait_for_ever_for_its_answers(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_answers_module, "PATIENCE", 0.1)
    stuck = threading.Event()
    replace_operation(monkeypatch, "session_page", lambda *_: stuck.wait(20))
    with serving(repo) as service, client(service, token(service, "context/read")) as asking:
        try:
            assert asking.get("/").content == asking.get("/s/s").content
        finally:
            stuck.set()


def test_nothing_in_an_answer_ends_the_element_that_it_stands_in(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script><!-- <b>"
    with harken.open(tmp_path / "store.db") as repo:
        repo.checkpoint(encode_events([Prompt(content=evil, message_id="a")]), format="events-v1", session_id="evil")
        with serving(repo) as service, client(service, token(service, "context/read")) as asking:
            page = asking.get("/s/evil")
            rows = first_answers(page)[1]["answer"]["rows"]
    assert [evil] == [row["text"] for row in rows]
    assert "alert(1)</script>" not in page.text and "<!-- <b>" not in page.text


def test_a_browser_keeps_what_changes_its_address_when_it_changes(repo: Repo) -> None:
    with serving(repo) as service, client(service) as asking:
        index = asking.get("/").text
        named = re.findall(r'"(/(?:app\.(?:js|css)\?v=|part-)[^"]+)"', index)
        assert 3 <= len(named)
        for address in named:
            assert "immutable" in asking.get(address).headers["cache-control"]
        for address in ("/", "/app.js", "/app.js?v=0123456789ab", "/icon.svg"):
            assert "no-cache" == asking.get(address).headers["cache-control"]


@pytest.mark.parametrize(
    "path", ["/../app.py", "/..%2fapp.py", "/%2e%2e/%2e%2e/app.py", "//etc/passwd", "/%00", "/" + "x" * 5000]
)
def test_no_address_leads_out_of_the_folder_of_the_page(repo: Repo, path: str) -> None:
    with serving(repo) as service, socket.create_connection(("127.0.0.1", service.port or 0)) as connection:
        connection.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nConnection: close\r\n\r\n".encode()
        )
        told = b"".join(iter(lambda: connection.recv(65536), b""))

    assert b"root:" not in told and b"class ServiceApp" not in told
    assert told.split()[1] in (b"200", b"404")


# -- as a command ------------------------------------------------------------------------------------------------------


@contextmanager
def command(store: Path, *words: str, **environ: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """`harken serve` in a process of its own, and what it printed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "harken", "--store", str(store), "serve", "--no-watch", "--no-open", "--json", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environ},
    )
    try:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_within_two_seconds_while_somebody_follows(tmp_path: Path, number: int) -> None:
    with small_store(tmp_path):
        pass
    path = tmp_path / "run" / "s"
    with command(tmp_path / "store.db", "--port", "0", "--socket", str(path)) as (process, _), owner(path) as asking:
        reader = FeedReader(asking)
        reader.next()
        began = time.monotonic()
        process.send_signal(number)
        status = process.wait(5)
        took = time.monotonic() - began
        reader.close()

    assert 0 == status
    assert took < 2
    assert not path.exists()


def test_the_command_prints_one_address_that_signs_in(tmp_path: Path) -> None:
    with command(tmp_path / "store.db", "--port", "0") as (_, told):
        assert told["url"].startswith(f"http://127.0.0.1:{told['port']}/#token=")
        assert told["socket"] is None
        with httpx.Client(base_url=told["url"].partition("#")[0], trust_env=False) as browser:
            word = told["url"].partition("#token=")[2]
            assert 200 == browser.post(f"{API}/login", json={"word": word}).status_code
            assert 200 == browser.post(f"{API}/sessions", json={}).status_code


def test_a_killed_server_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    with small_store(tmp_path):
        pass
    path = tmp_path / "run" / "s"
    kept = []
    with command(tmp_path / "store.db", "--socket", str(path)) as (process, _), owner(path) as asking:
        for number in range(20):
            kept.append(asking.put(f"{API}/artifacts", content=f"artifact {number}".encode()).json()["artifact"])
        process.kill()
        process.wait()
    with command(tmp_path / "store.db", "--socket", str(path)) as _, owner(path) as asking:
        for number, name in enumerate(kept):
            assert f"artifact {number}" == asking.get(f"{API}/artifacts/{name}").text
