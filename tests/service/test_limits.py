"""How much may be asked, how long it may take, and that clients which misbehave cost nobody else anything."""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from harken import ids
from harken.api import sessions
from harken.api.session_page import SessionPage, SessionPageRequest, session_page
from harken.repo import Repo
from harken.service.routing import API
from harken.service.running import RunningService
from harken.service.settings import ServiceSettings
from support.service import QUICK, client, lines, problem, raw, replace_operation, serving, small_store, token


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with small_store(tmp_path) as opened:
        yield opened


def with_settings(**changes: object) -> ServiceSettings:
    return msgspec.structs.replace(QUICK, **changes)


JSON = {"content-type": "application/json"}


def test_a_body_that_is_too_large_is_refused_before_it_is_read(repo: Repo) -> None:
    with serving(repo, settings=with_settings(body_limit=1000)) as service, client(service, token(service)) as asking:
        answer = asking.post(f"{API}/show", content=b" " * 1001, headers=JSON)
        assert (413, "too_large") == problem(answer)
        assert 404 == asking.post(f"{API}/show", content=b'{"ref": "x"}'.ljust(1000), headers=JSON).status_code


def test_a_body_that_does_not_say_how_large_it_is_is_counted(repo: Repo) -> None:
    def parts() -> Iterator[bytes]:
        for _ in range(1000):
            yield b" " * 1000

    with serving(repo, settings=with_settings(body_limit=10_000)) as service, client(service, token(service)) as asking:
        assert (413, "too_large") == problem(asking.post(f"{API}/show", content=parts(), headers=JSON))


def test_who_sends_all_of_it_before_reading_is_told_why_it_was_refused(repo: Repo) -> None:
    with serving(repo) as service:
        head = (
            f"PUT {API}/artifacts HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nContent-Length: {4 << 20}\r\n"
            f"Authorization: Bearer {token(service, 'context/read')}\r\n\r\n"
        )
        assert b"HTTP/1.1 403" in raw(service.port or 0, head + "x" * (4 << 20))[:20]


def test_a_body_with_two_lengths_is_refused(repo: Repo) -> None:
    with serving(repo) as service:
        head = (
            f"POST {API}/show HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {token(service)}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        told = raw(service.port or 0, head + "0\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n")

    assert (b"400", 1) == (told[9:12], told.count(b"HTTP/1.1 ")), "nothing behind it is taken for a question"
    assert b"two lengths" in told


def test_an_upload_may_be_larger_and_has_a_limit_too(repo: Repo) -> None:
    settings = with_settings(body_limit=1000, upload_limit=100_000)
    with serving(repo, settings=settings) as service, client(service, token(service)) as asking:
        assert 201 == asking.put(f"{API}/artifacts", content=b"x" * 100_000).status_code
        assert (413, "too_large") == problem(asking.put(f"{API}/artifacts", content=b"x" * 100_001))


def test_an_upload_of_many_megabytes_needs_little_memory(repo: Repo) -> None:
    with serving(repo) as service, client(service, token(service)) as asking:
        kept = asking.put(f"{API}/artifacts", content=(bytes([n]) * (1 << 20) for n in range(40)))

        assert (201, 40 << 20) == (kept.status_code, kept.json()["size"])


def test_an_upload_that_breaks_off_leaves_nothing(repo: Repo) -> None:
    with serving(repo) as service:
        before = repo.last_change()
        with socket.create_connection(("127.0.0.1", service.port or 0)) as connection:
            head = (
                f"PUT {API}/artifacts HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nContent-Length: 1000\r\n"
                f"Authorization: Bearer {token(service)}\r\n\r\n"
            )
            connection.sendall(head.encode() + b"x" * 500)
        time.sleep(0.2)
        assert before == repo.last_change()


def test_whoever_asks_too_often_is_told_when_to_ask_again(repo: Repo) -> None:
    with (
        # So slow that none comes back before the last is asked, however busy the machine is.
        serving(repo, settings=with_settings(rate=0.01, burst=5.0)) as service,
        client(service, token(service)) as asking,
        client(service, token(service)) as other,
    ):
        answers = [asking.post(f"{API}/formats", json={}) for _ in range(8)]
        assert [200] * 5 + [429] * 3 == [answer.status_code for answer in answers]
        assert "too_many" == answers[-1].json()["error"]["code"]
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 100
        assert 200 == other.post(f"{API}/formats", json={}).status_code


def test_whoever_tries_one_token_after_the_other_is_slowed_down(repo: Repo) -> None:
    with serving(repo, settings=with_settings(stranger_rate=1.0)) as service, client(service, "wrong") as asking:
        codes = [asking.post(f"{API}/formats", json={}).status_code for _ in range(8)]
        assert [401] * 5 + [429] * 3 == codes
        with client(service, token(service)) as known:
            assert 200 == known.post(f"{API}/formats", json={}).status_code


def test_wrong_words_of_others_keep_no_right_one_out(repo: Repo) -> None:
    with serving(repo, settings=with_settings(stranger_rate=0.2)) as service, client(service) as asking:
        codes = [asking.post(f"{API}/login", json={"word": "wrong"}).status_code for _ in range(3)]
        assert [401, 429, 429] == codes
        assert 429 == asking.post(f"{API}/login", content=b"{", headers=JSON).status_code
        assert 429 == asking.get(f"{API}/login").status_code
        for right in (service.login_url().partition("#token=")[2], token(service)):
            with client(service) as browser:
                assert 200 == browser.post(f"{API}/login", json={"word": right}).status_code
                assert 200 == browser.post(f"{API}/formats", json={}).status_code


# -- time --------------------------------------------------------------------------------------------------------------


def test_an_answer_that_does_not_come_is_given_up(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    let_go = threading.Event()
    replace_operation(monkeypatch, "show", lambda repo, request: let_go.wait(20))
    with serving(repo, settings=with_settings(seconds=0.3)) as service, client(service, token(service)) as asking:
        assert (504, "took_too_long") == problem(asking.post(f"{API}/show", json={"ref": "s"}))
        assert 200 == asking.post(f"{API}/names", json={}).status_code
        let_go.set()


def test_whoever_waits_for_news_as_long_as_may_be_is_answered(repo: Repo) -> None:
    with serving(repo, settings=with_settings(seconds=3.0)) as service, client(service, token(service)) as asking:
        last = repo.last_change()
        answer = asking.post(f"{API}/changes", json={"after": last, "wait": 60.0})

        assert (200, []) == (answer.status_code, answer.json()["changes"])


def test_no_more_questions_wait_than_may(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    let_go = threading.Event()

    def slow(repo: object, request: object) -> None:
        let_go.wait(20)

    replace_operation(monkeypatch, "show", slow)
    with (
        serving(repo, settings=with_settings(workers=2, waiting=2)) as service,
        client(service, token(service)) as asking,
        ThreadPoolExecutor(8) as pool,
    ):
        asked = [pool.submit(asking.post, f"{API}/show", json={"ref": f"s{n}"}) for n in range(8)]
        time.sleep(0.5)
        let_go.set()
        codes = sorted(one.result().status_code for one in asked)

    assert [200] * 4 + [429] * 4 == codes


def test_who_asks_the_same_while_it_waits_shares_the_answer_and_nobody_gets_an_old_one(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go, made = threading.Event(), list[str]()

    def slow(repo: object, request: Any) -> dict[str, int]:
        made.append(request.ref)
        number = len(made)
        let_go.wait(20)
        return {"number": number}

    replace_operation(monkeypatch, "show", slow)
    with (
        serving(repo, settings=with_settings(workers=2, waiting=2)) as service,
        client(service, token(service)) as asking,
        client(service, token(service)) as other,
        ThreadPoolExecutor(16) as pool,
    ):

        def ask(who: httpx.Client, ref: str) -> Future[httpx.Response]:
            asked = pool.submit(who.post, f"{API}/show", json={"ref": ref})
            time.sleep(0.1)
            return asked

        begun = [ask(asking, "s"), ask(asking, "t")]
        same = [ask(asking, "s") for _ in range(5)]
        another = [ask(other, "s")]
        let_go.set()
        numbers = [[one.result().json()["number"] for one in some] for some in (begun, same, another)]

    assert ["s", "t", "s", "s"] == made
    assert [1, 2] == numbers[0]  # what is begun is shared with nobody who asks later
    assert 1 == len(set(numbers[1])) and numbers[1][0] != numbers[2][0]


def test_pages_of_one_session_that_are_opened_at_once_share_their_first_answers(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go, made = threading.Event(), list[str]()
    replace_operation(monkeypatch, "show", lambda *_: let_go.wait(20))

    def noted(repo: Repo, request: SessionPageRequest) -> SessionPage:
        made.append(request.session)
        return session_page(repo, request)

    replace_operation(monkeypatch, "session_page", noted)
    with (
        serving(repo, settings=with_settings(workers=1)) as service,
        client(service, token(service)) as asking,
        client(service, token(service)) as other,
        ThreadPoolExecutor(16) as pool,
    ):
        for thread in threading.enumerate():
            if thread.name == "harken-loading":  # it looks at the session once, when the service starts
                thread.join(20)
        made.clear()
        for who in (asking, other):
            who.post(f"{API}/formats", json={})  # that a token is used is noted now and then, which takes a turn, too
        busy = pool.submit(asking.post, f"{API}/show", json={"ref": "s"})
        time.sleep(0.1)
        visits = [(asking, "/s/s"), (asking, "/s/s?v=flow"), (other, "/s/s")] * 3
        pages = [pool.submit(who.get, path) for who, path in visits]
        while service.app.metrics.running < 1 + len(visits):
            time.sleep(0.02)
        time.sleep(0.2)
        let_go.set()
        busy.result()
        texts = [page.result().text for page in pages]

    assert ["s"] * 3 == made
    assert all("first-answers" in text for text in texts)
    assert [texts[:3]] * 3 == [texts[at : at + 3] for at in (0, 3, 6)]


def test_an_answer_is_made_for_those_who_still_wait_when_the_first_has_gone(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = threading.Event()

    def slow(repo: object, request: Any) -> dict[str, str]:
        let_go.wait(20)
        return {"ref": request.ref}

    replace_operation(monkeypatch, "show", slow)
    with (
        serving(repo, settings=with_settings(workers=1, waiting=1)) as service,
        client(service, token(service)) as asking,
        ThreadPoolExecutor(8) as pool,
    ):
        first = pool.submit(asking.post, f"{API}/show", json={"ref": "a"})
        time.sleep(0.2)
        with pytest.raises(httpx.ReadTimeout):
            asking.post(f"{API}/show", json={"ref": "b"}, timeout=0.2)
        waits = pool.submit(asking.post, f"{API}/show", json={"ref": "b"})
        time.sleep(0.2)
        let_go.set()
        assert ["a", "b"] == [one.result().json()["ref"] for one in (first, waits)]


def begun(service: RunningService, operation: str, size: int, secret: str = "") -> socket.socket:
    """A client that has sent a request but for its last byte."""
    connection = socket.create_connection(("127.0.0.1", service.port or 0), timeout=10)
    who = f"Authorization: Bearer {secret}\r\n" if secret else ""
    head = f"POST {API}/{operation} HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nContent-Type: application/json\r\n"
    connection.sendall(f"{head}{who}Content-Length: {size}\r\n\r\n".encode() + b" " * (size - 1))
    return connection


def test_a_token_cannot_have_the_server_hold_as_much_as_it_likes(repo: Repo) -> None:
    with serving(repo, settings=with_settings(held_limit=250_000)) as service, client(service, token(service)) as other:
        secret = token(service)
        idle = [begun(service, "names", 100_000, secret) for _ in range(2)]
        time.sleep(0.3)
        with client(service, secret) as asking:
            assert (429, "too_many") == problem(asking.post(f"{API}/names", content=b" " * 90_000, headers=JSON))
            assert 200 == other.post(f"{API}/names", content=b"{}" + b" " * 90_000, headers=JSON).status_code
            for connection in idle:
                connection.close()
            time.sleep(0.3)
            assert 200 == asking.post(f"{API}/names", content=b"{}" + b" " * 90_000, headers=JSON).status_code


def test_who_has_no_token_may_send_little(repo: Repo) -> None:
    with serving(repo) as service, client(service) as stranger:
        assert (413, "too_large") == problem(stranger.post(f"{API}/login", json={"word": "x" * 70_000}))
        assert (401, "not_signed_in") == problem(stranger.post(f"{API}/login", json={"word": "x" * 60_000}))


def test_an_answer_that_the_end_of_the_server_cuts_off_is_none(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    let_go = threading.Event()
    replace_operation(monkeypatch, "show", lambda repo, request: let_go.wait(20))
    with (
        serving(repo) as service,
        client(service, token(service)) as asking,
        ThreadPoolExecutor(1) as pool,
    ):
        asked = pool.submit(asking.post, f"{API}/show", json={"ref": "s"})
        time.sleep(0.3)
        service.stop()
        let_go.set()

        with pytest.raises(httpx.TransportError):
            asked.result()


def test_slow_questions_of_one_token_cost_no_other_anything(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    let_go = threading.Event()
    replace_operation(monkeypatch, "show", lambda repo, request: let_go.wait(20))
    with (
        serving(repo, settings=with_settings(workers=4, workers_each=2, waiting=6)) as service,
        client(service, token(service)) as slow,
        client(service, token(service)) as other,
        ThreadPoolExecutor(12) as pool,
    ):
        asked = [pool.submit(slow.post, f"{API}/show", json={"ref": f"s{n}"}) for n in range(12)]
        time.sleep(0.5)
        assert 200 == other.post(f"{API}/home", json={}, timeout=5).status_code
        assert 200 == other.get("/metrics", timeout=5).status_code
        let_go.set()
        codes = sorted(one.result().status_code for one in asked)

    assert [200] * 8 + [429] * 4 == codes


def test_a_query_that_takes_too_long_has_the_status_of_that(repo: Repo) -> None:
    endless_query = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    with serving(repo) as service, client(service, token(service)) as asking:
        answer = asking.post(f"{API}/sql", json={"query": endless_query, "seconds": 0.1})

        assert (504, "took_too_long") == problem(answer)


def asked_for_bytes(service: RunningService, secret: str, ref: str) -> socket.socket:
    """A client that has asked for an artifact, and takes nothing."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", service.port or 0))
    head = f"GET {API}/artifacts/{ref} HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\n"
    connection.sendall(f"{head}Authorization: Bearer {secret}\r\n\r\n".encode())
    return connection


def test_clients_that_do_not_take_a_large_artifact_cost_little_memory(repo: Repo) -> None:
    with serving(repo) as service, client(service, secret := token(service)) as asking:
        ref = asking.put(f"{API}/artifacts", content=(bytes([n]) * (1 << 20) for n in range(64))).json()["ref"]
        before = resident()
        idle = [asked_for_bytes(service, secret, ref) for _ in range(6)]
        time.sleep(2)
        grown = resident() - before
        for connection in idle:
            connection.close()

    assert grown < 100 << 20, f"{grown >> 20} MiB"


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_large_artifact_whose_bytes_are_wrong_is_never_sent_whole(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(repo) as service, client(service, token(service)) as asking:
        ref = asking.put(f"{API}/artifacts", content=b"x" * (40 << 20)).json()["ref"]
        wrong = ids.artifact_id(b"something else")
        monkeypatch.setattr(ids.ArtifactHasher, "hexdigest", lambda self: wrong)

        with pytest.raises(httpx.TransportError):
            asking.get(f"{API}/artifacts/{ref}")


def test_a_body_that_breaks_off_is_no_fault_of_ours(repo: Repo) -> None:
    log = io.StringIO()
    with serving(repo, log=log) as service:
        with socket.create_connection(("127.0.0.1", service.port or 0)) as connection:
            head = f"POST {API}/names HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nContent-Type: application/json\r\n"
            connection.sendall(f"{head}Content-Length: 9\r\nAuthorization: Bearer {token(service)}\r\n\r\n{{".encode())
        time.sleep(0.3)

    assert '"route":"/api/v1/names"' in log.getvalue()
    assert "fault" not in log.getvalue()


def wait_until(is_so: Callable[[], bool]) -> None:
    """What the service notes when an answer is out may come a moment later."""
    deadline = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def endless(repo: object, request: object) -> Iterator[sessions.SessionsRequest]:
    while True:
        yield sessions.SessionsRequest(match="x" * 10_000)


def test_a_client_that_does_not_take_a_long_answer_is_let_go(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_operation(monkeypatch, "sessions", endless)
    with serving(repo, settings=with_settings(seconds=2.0)) as service, contextlib.ExitStack() as idle:
        secret = token(service)
        for _ in range(10):
            connection = idle.enter_context(socket.create_connection(("127.0.0.1", service.port or 0)))
            head = f"POST {API}/sessions HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nContent-Length: 0\r\n"
            connection.sendall(f"{head}Authorization: Bearer {secret}\r\n\r\n".encode())
        with client(service, secret) as asking:
            wait_until(lambda: 10 == service.app.streams.used)
            assert 200 == asking.post(f"{API}/names", json={}).status_code
        wait_until(lambda: 0 == service.app.streams.used)
        assert not [one for one in threading.enumerate() if one.name == "harken-stream"]


def test_a_client_that_goes_in_the_middle_ends_the_work(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_operation(monkeypatch, "sessions", endless)
    with serving(repo) as service:
        with client(service, token(service)) as asking, asking.stream("POST", f"{API}/sessions", json={}) as answer:
            next(answer.iter_raw())
        until = time.monotonic() + 10
        while [one for one in threading.enumerate() if one.name == "harken-stream"] and time.monotonic() < until:
            time.sleep(0.05)
        assert not [one for one in threading.enumerate() if one.name == "harken-stream"]


def test_long_answers_of_one_token_wait_for_each_other_and_for_nobody_else(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_operation(monkeypatch, "sessions", endless)
    with (
        serving(repo, settings=with_settings(streams_each=1, seconds=2.0)) as service,
        client(service, token(service)) as asking,
        asking.stream("POST", f"{API}/sessions", json={}) as answer,
    ):
        parts = answer.iter_raw()
        next(parts)
        with client(service, token(service)) as other:
            assert 1 == len(lines(other.post(f"{API}/names", json={})))
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(asking.post, f"{API}/names", json={})
            time.sleep(0.2)
            assert not waiting.done()
            answer.close()
            assert 200 == waiting.result(5).status_code


def test_no_more_long_answers_wait_than_may(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_operation(monkeypatch, "sessions", endless)
    with (
        serving(repo, settings=with_settings(streams_each=1, waiting=0)) as service,
        client(service, token(service)) as asking,
        asking.stream("POST", f"{API}/sessions", json={}) as answer,
    ):
        parts = answer.iter_raw()
        next(parts)
        assert (429, "too_many") == problem(asking.post(f"{API}/sessions", json={}))


def test_a_log_whose_turn_did_not_come_can_be_sent_again(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_operation(monkeypatch, "sessions", endless)
    with (
        serving(repo, settings=with_settings(streams_each=1, waiting=0)) as service,
        client(service, token(service)) as asking,
    ):
        with asking.stream("POST", f"{API}/sessions", json={}) as answer:
            parts = answer.iter_raw()
            next(parts)
            assert (429, "too_many") == problem(asking.put(f"{API}/session-logs/a.jsonl", content=b"{}\n"))
        until = time.monotonic() + 5
        while (again := asking.put(f"{API}/session-logs/a.jsonl", content=b"{}\n")).status_code == 429:
            assert time.monotonic() < until  # until the other one has noticed that nobody listens
        assert 200 == again.status_code
        assert [] == list(Path(repo.store.location).parent.rglob("a.jsonl"))


def test_many_short_lists_at_once_are_all_answered(repo: Repo) -> None:
    with (
        serving(repo, settings=with_settings(streams=2, streams_each=2)) as service,
        client(service, token(service)) as asking,
        ThreadPoolExecutor(24) as pool,
    ):
        answers = list(pool.map(lambda _: asking.post(f"{API}/names", json={}).status_code, range(72)))
        assert {200} == set(answers)
        wait_until(lambda: 0 == service.app.streams.used)


def test_a_refusal_does_not_cost_the_connection(repo: Repo) -> None:
    with serving(repo) as service, client(service, token(service, "context/read")) as asking:
        for _ in range(3):
            answer = asking.post(f"{API}/gc", json={"dry_run": True})
            assert (403, "keep-alive") == (answer.status_code, answer.headers.get("connection", "keep-alive"))


def test_a_head_that_does_not_end_is_not_waited_for(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    from harken.service import running

    monkeypatch.setattr(running, "HEAD_SECONDS", 0.2)
    with serving(repo) as service, socket.create_connection(("127.0.0.1", service.port or 0), timeout=5) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost:")
        with pytest.raises(ConnectionResetError):
            assert b"" == connection.recv(100)
            raise ConnectionResetError


def test_a_head_that_is_too_long_is_refused(repo: Repo) -> None:
    with serving(repo) as service, client(service) as asking:
        assert 431 == asking.get("/healthz", headers={"x": "y" * 100_000}).status_code


# -- what is told of it ------------------------------------------------------------------------------------------------


def test_the_log_has_a_line_for_each_request_and_nothing_of_what_was_asked(repo: Repo) -> None:
    log = io.StringIO()
    with serving(repo, log=log) as service, client(service, token(service, name="ci")) as asking:
        asking.post(f"{API}/search", json={"query": "somewords"})
        asking.get("/s/somewords?q=somewords")
        asking.get(f"{API}/artifacts/somewords")
        asking.post(f"{API}/somewords", json={})

    told = [json.loads(line) for line in log.getvalue().splitlines()]
    assert ["/api/v1/search", "/{path:path}", "/api/v1/artifacts/{ref}", "/api/v1/{unknown}"] == [
        line["route"] for line in told
    ]
    assert [(200, "ci"), (200, "ci"), (404, "ci"), (404, "ci")] == [(line["status"], line["token"]) for line in told]
    assert "somewords" not in log.getvalue() and "hk_" not in log.getvalue()


def test_a_log_that_nobody_takes_stops_nobody(repo: Repo) -> None:
    class Stuck(io.StringIO):
        def write(self, _: str) -> int:
            time.sleep(30)
            return 0

    with serving(repo, log=Stuck()) as service, client(service, token(service)) as asking:
        assert [200] * 20 == [asking.get("/healthz").status_code for _ in range(20)]


def test_numbers_are_told_for_prometheus(repo: Repo) -> None:
    with serving(repo) as service, client(service, token(service)) as asking:
        asking.post(f"{API}/names", json={})
        asking.post(f"{API}/show", json={"ref": "nowhere"})
        told = asking.get("/metrics")

    assert "text/plain" in told.headers["content-type"]
    assert 'harken_requests_total{route="/api/v1/names",status="200"} 1' in told.text
    assert 'harken_requests_total{route="/api/v1/show",status="404"} 1' in told.text
    assert 'harken_request_seconds_bucket{route="/api/v1/names",le="+Inf"} 1' in told.text
    assert f"harken_store_last_change {repo.last_change()}" in told.text


def test_readers_and_writers_at_once_get_what_they_ask_for(repo: Repo) -> None:
    with serving(repo) as service:
        secret = token(service)

        def ask(number: int) -> int:
            with client(service, secret) as asking:
                if number % 4:
                    return httpx.codes(asking.post(f"{API}/log", json={"ref": "s"}).status_code)
                return asking.post(f"{API}/annotate", json={"ref": "s", "text": f"{number}"}).status_code

        with ThreadPoolExecutor(16) as pool:
            assert {200} == set(pool.map(ask, range(80)))
