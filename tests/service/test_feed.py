"""The feed as a page follows it: what changes, where to go on, and clients that take nothing."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from harken.repo import Repo
from harken.service.running import RunningService
from support.service import QUICK, FeedReader, client, problem, serving, small_store, token


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with small_store(tmp_path) as opened:
        yield opened


@contextmanager
def following(service: RunningService, place: str = "", **headers: str) -> Iterator[FeedReader]:
    with client(service, token(service, "context/read")) as asking:
        reader = FeedReader(asking, place, **headers)
        try:
            yield reader
        finally:
            reader.close()


def numbers(message: dict[str, str]) -> list[int]:
    return [change["number"] for change in json.loads(message["data"])["changes"]]


def next_change(reader: FeedReader) -> dict[str, str]:
    """The next message that tells of a change."""
    while not (message := reader.next()).get("data") or not numbers(message):
        continue
    return message


def test_a_client_is_told_what_came_after_what_it_knows(repo: Repo) -> None:
    with serving(repo) as service, following(service, "?after=3") as reader:
        first = reader.next()
        assert list(range(4, repo.last_change() + 1)) == numbers(first)
        assert f"{repo.epoch}:{repo.last_change()}" == first["id"]
        assert "text/event-stream" in reader.response.headers["content-type"]

        repo.annotate("s", "news")
        assert [repo.last_change()] == numbers(next_change(reader))


def test_a_client_that_knows_nothing_is_told_what_comes_from_now_on(repo: Repo) -> None:
    with serving(repo) as service, following(service) as reader:
        first = reader.next()
        assert ([], f"{repo.epoch}:{repo.last_change()}") == (numbers(first), first["id"])

        repo.annotate("s", "news")
        assert [repo.last_change()] == numbers(next_change(reader))


def test_what_a_browser_sends_by_itself_says_where_to_go_on(repo: Repo) -> None:
    known = f"{repo.epoch}:{repo.last_change() - 1}"
    with serving(repo) as service, following(service, "?after=0", **{"last-event-id": known}) as reader:
        assert [repo.last_change()] == numbers(reader.next())


def test_a_client_of_another_epoch_is_told_everything(repo: Repo) -> None:
    with serving(repo) as service, following(service, "?after=0123:99999") as reader:
        first = json.loads(reader.next()["data"])

    assert (0, 1) == (first["after"], first["changes"][0]["number"])


@pytest.mark.parametrize("place", ["x", "-1", "1.5", "x:y", "9" * 30, ":"])
def test_a_place_that_is_none_is_refused(repo: Repo, place: str) -> None:
    with serving(repo) as service, client(service, token(service)) as asking:
        assert (400, "bad_request") == problem(asking.get("/api/v1/feed", params={"after": place}))


def test_a_silent_feed_says_that_it_is_there(repo: Repo) -> None:
    with serving(repo) as service, following(service) as reader:
        reader.next()
        assert ["comment", "comment"] == [*reader.next(), *reader.next()]


def test_many_changes_at_once_come_in_few_messages(repo: Repo) -> None:
    settings = msgspec.structs.replace(QUICK, feed_pause=0.1)
    with serving(repo, settings=settings) as service, following(service) as reader:
        reader.next()
        began, told, messages = time.monotonic(), 0, 0
        for number in range(200):
            repo.annotate("s", f"remark {number}")
        while told < 200:
            told += len(numbers(next_change(reader)))
            messages += 1
        took = time.monotonic() - began

    assert messages <= 10 * took + 2


def test_a_client_goes_on_after_the_server_was_restarted(repo: Repo) -> None:
    with serving(repo) as service:
        port = service.port or 0
        with following(service, "?after=0") as reader:
            known = reader.next()["id"]
    repo.annotate("s", "while nobody served")

    with serving(repo, port=port) as service, following(service, **{"last-event-id": known}) as reader:
        assert [repo.last_change()] == numbers(next_change(reader))


def test_a_browser_stays_signed_in_when_the_server_is_restarted(repo: Repo) -> None:
    with serving(repo) as service, client(service) as browser:
        port = service.port or 0
        browser.post("/api/v1/login", json={"word": service.app.words.new()})
        cookies = dict(browser.cookies)

    with serving(repo, port=port) as service, httpx.Client(base_url=service.url, cookies=cookies) as browser:
        assert 200 == browser.post("/api/v1/sessions", json={}).status_code


def test_the_end_of_the_server_is_told(repo: Repo) -> None:
    with serving(repo) as service, following(service) as reader:
        reader.next()
        began = time.monotonic()
        service.stop()
        while (last := reader.next()).get("event") != "end":
            continue

    assert "the server is stopping" == json.loads(last["data"])["error"]["message"]
    assert time.monotonic() - began < 2


def stuck(service: RunningService, secret: str) -> socket.socket:
    """A client that asks for everything and takes nothing."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    connection.connect(("127.0.0.1", service.port))
    head = (
        f"GET /api/v1/feed?after=0 HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nAuthorization: Bearer {secret}\r\n\r\n"
    )
    connection.sendall(head.encode())
    return connection


def wait_for(condition: Any, seconds: float = 10) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come to that in time"
        time.sleep(0.02)


def test_a_client_that_takes_nothing_is_let_go_and_costs_nobody_anything(repo: Repo) -> None:
    with repo.store.write() as writer:
        for number in range(60_000):
            writer.put(b"%d" % number)
    with serving(repo) as service:
        secret = token(service, "context/read")
        idle = [stuck(service, secret) for _ in range(20)]
        with following(service) as reader, client(service, secret) as asking:
            reader.next()
            began = time.monotonic()
            repo.annotate("s", "news")
            assert [repo.last_change()] == numbers(next_change(reader))
            assert 200 == asking.post("/api/v1/sessions", json={}).status_code
            assert time.monotonic() - began < 5
        wait_for(lambda: service.app.metrics.feeds == 0, 30)
        assert 20 == service.app.metrics.dropped
        for connection in idle:
            connection.close()


def test_no_more_clients_follow_than_may(repo: Repo) -> None:
    settings = msgspec.structs.replace(QUICK, feeds=1)
    with serving(repo, settings=settings) as service, following(service) as reader:
        reader.next()
        with client(service, token(service)) as asking:
            answer = asking.get("/api/v1/feed")
            assert (429, "too_many") == problem(answer)
            assert int(answer.headers["retry-after"]) > 0


def test_a_token_that_follows_too_often_keeps_no_other_from_it(repo: Repo) -> None:
    settings = msgspec.structs.replace(QUICK, feeds_each=1)
    with serving(repo, settings=settings) as service, client(service, token(service)) as asking:
        first = FeedReader(asking)
        first.next()
        assert (429, "too_many") == problem(asking.get("/api/v1/feed"))
        with following(service) as other:
            assert other.next()
        first.close()
        wait_for(lambda: service.app.metrics.feeds == 0)
        again = FeedReader(asking)
        assert again.next()
        again.close()


def test_a_client_that_goes_is_forgotten(repo: Repo) -> None:
    with serving(repo) as service:
        with following(service) as reader:
            reader.next()
            assert 1 == service.app.metrics.feeds
        wait_for(lambda: service.app.metrics.feeds == 0)
        assert 0 == service.app.metrics.dropped


def test_a_feed_ends_when_its_token_is_taken_back(repo: Repo) -> None:
    with serving(repo) as service, client(service, token(service, "context/read", name="phone")) as asking:
        reader = FeedReader(asking)
        reader.next()
        service.app.tokens.revoke("phone")
        while (last := reader.next()).get("event") != "end":
            continue
        reader.close()

    assert "not_signed_in" == json.loads(last["data"])["error"]["code"]
