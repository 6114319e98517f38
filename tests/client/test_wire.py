"""The wire: errors by their class, answers as they come, connections that come and go."""

from __future__ import annotations

import inspect
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.api import OPERATIONS, operation
from harken.api.stats import StatsRequest
from harken.client import RemoteRepo
from harken.client.local import NEEDS_STORE
from harken.client.wire import place_of
from harken.errors import (
    BadRequest,
    Conflict,
    Corrupt,
    Forgotten,
    HarkenError,
    NotAllowed,
    NotFound,
    NotSignedIn,
    PartlyCorrupt,
    TooLarge,
    Unreachable,
)
from harken.events import Prompt
from harken.repo import Repo
from harken.service.running import RunningService
from harken.service.settings import ServiceSettings
from harken.store.arguments import public_methods
from support.contexts import keep, turn
from support.service import replace_operation, serving, small_store, token


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Repo]:
    with small_store(tmp_path) as repo:
        yield repo


@pytest.fixture
def service(own: Repo, tmp_path: Path) -> Iterator[RunningService]:
    with serving(own, path=tmp_path / "run" / "socket") as running:
        yield running


@pytest.fixture
def remote(service: RunningService) -> Iterator[Repo]:
    with harken.open(service.url, token=token(service)) as repo:
        yield repo


# -- where -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://localhost:8037", "http://localhost:8037"),
        ("http://127.0.0.1:8037/", "http://127.0.0.1:8037"),
        ("http://[::1]:8037", "http://[::1]:8037"),
        ("https://host.example", "https://host.example:443"),
        ("unix:/run/harken/socket", "unix:/run/harken/socket"),
        ("unix:///run/harken/socket", "unix:/run/harken/socket"),
        ("harken+unix:///run/harken/socket", "unix:/run/harken/socket"),
    ],
)
def test_an_address_names_a_service(url: str, name: str) -> None:
    assert name == place_of(url).name


@pytest.mark.parametrize(
    "url",
    ["http://", "http://host:port", "http://me:word@localhost:1", "http://localhost:1/page", "unix:", "unix:a\0b"],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(BadRequest) as problem:
        harken.open(url)
    assert problem.value.hint


def test_a_token_is_not_sent_in_the_clear_to_another_machine() -> None:
    with pytest.raises(BadRequest, match="in the clear"):
        harken.open("http://host.example:8037", token="secret")


# -- errors ------------------------------------------------------------------------------------------------------------


def test_an_error_has_the_class_it_has_here(own: Repo, remote: Repo) -> None:
    for call, kind in (
        (lambda: remote.commit("nowhere"), NotFound),
        (lambda: remote.fork("s", "review"), Conflict),
        (lambda: remote.checkpoint(b""), BadRequest),
    ):
        with pytest.raises(kind) as problem:
            call()
        assert kind is type(problem.value)
        assert problem.value.hint
    own.forget("s")
    with pytest.raises(Forgotten):
        remote.materialize("review")


def test_an_error_behind_some_answers_comes_when_they_were_taken(
    remote: RemoteRepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harken.api.stats import stats

    def broken(repo: Repo, request: StatsRequest) -> Iterator[Any]:
        yield from stats(repo, request)
        raise Corrupt("the disk has lost something", hint="run `harken fsck`")

    assert list(remote.stats())  # what it answers is known from the real one
    replace_operation(monkeypatch, "stats", broken)
    found = remote.stats()

    assert "s" == next(found).session  # type: ignore[union-attr]
    with pytest.raises(Corrupt, match="the disk has lost something") as problem:
        next(found)
    assert "run `harken fsck`" == problem.value.hint
    assert remote.commit("s")


def test_what_can_be_read_comes_with_the_error(own: Repo, remote: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = own.sessions()

    def broken(prefix: str = "") -> list[Any]:
        raise PartlyCorrupt("a row is damaged", rest=rows, hint="fsck")

    monkeypatch.setattr(own, "sessions", broken)
    with pytest.raises(PartlyCorrupt) as problem:
        remote.sessions()

    assert rows == problem.value.rest


def test_who_may_not_is_told(service: RunningService) -> None:
    with harken.open(service.url) as nobody, pytest.raises(NotSignedIn):
        nobody.names()
    with harken.open(service.url, token=token(service, "context/read")) as reader:
        assert reader.names()
        with pytest.raises(NotAllowed):
            reader.fork("s", "mine")


def test_what_is_too_large_is_told(own: Repo) -> None:
    settings = ServiceSettings(body_limit=1000)
    with serving(own, settings=settings) as small, harken.open(small.url, token=token(small)) as repo:
        with pytest.raises(TooLarge):
            repo.checkpoint(b"x" * 2000, format="blob-v1")
        assert repo.checkpoint(artifact=repo.put(b"x" * 2000), format="blob-v1").id


@pytest.mark.parametrize("over", ["tcp", "socket"])
def test_why_much_was_refused_is_told(own: Repo, tmp_path: Path, over: str) -> None:
    """The service answers before all of it was sent: who sends on finds the connection broken."""
    path, settings = tmp_path / "run" / "socket", ServiceSettings(upload_limit=1 << 20, stranger_rate=1000.0)
    with serving(own, path=path, settings=settings) as service:
        url = service.url if over == "tcp" else f"unix:{path}"
        with harken.open(url, token=token(service, "context/read")) as reader:
            with pytest.raises(NotAllowed):
                reader.put(b"x" * (6 << 20))
            with pytest.raises(NotAllowed):
                reader.checkpoint(b"x" * (6 << 20), format="blob-v1")
        with harken.open(url, token="hk_unknown") as nobody, pytest.raises(NotSignedIn):
            nobody.put_key("p", "k", b"x" * (6 << 20))
        with harken.open(url, token=token(service)) as repo:
            with pytest.raises(TooLarge):
                repo.put(b"x" * (6 << 20))
            kept = repo.checkpoint(b"x" * (6 << 20), format="blob-v1")
            assert 6 << 20 == len(own.materialize(kept.id).bytes)


@pytest.mark.parametrize("name", sorted({name for name, _ in public_methods(Repo)} & NEEDS_STORE.keys()))
def test_what_needs_the_store_itself_says_what_to_do(remote: Repo, name: str) -> None:
    with pytest.raises(BadRequest, match=f"`{name}` needs the store itself") as problem:
        getattr(remote, name)()
    assert NEEDS_STORE[name] == problem.value.hint


def test_there_is_no_store_to_reach_into(remote: Repo) -> None:
    for call in (lambda: remote.store, lambda: remote.index, lambda: remote.transcripts):
        with pytest.raises(BadRequest, match="needs the store itself"):
            call()


# -- connections -------------------------------------------------------------------------------------------------------


def test_a_service_that_was_started_again_is_asked_again(own: Repo, tmp_path: Path) -> None:
    path = tmp_path / "run" / "socket"
    with harken.open(f"unix:{path}") as remote:
        with serving(own, path=path):
            first = remote.commit("s")
        with pytest.raises(Unreachable, match="nobody answers"):
            remote.commit("s")
        with serving(own, path=path):
            assert first == remote.commit("s")
            remote.annotate("s", "said after a restart")
    assert "said after a restart" == own.show("s").summary


def test_nothing_is_written_twice_where_a_connection_breaks(own: Repo, tmp_path: Path) -> None:
    """Whoever takes the question and says nothing may have done it."""
    taken: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def swallow() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                taken.append(connection.recv(65536))

    threading.Thread(target=swallow, daemon=True).start()
    try:
        with harken.open(f"http://127.0.0.1:{listener.getsockname()[1]}") as remote:
            with pytest.raises(Unreachable, match="broke") as problem:
                remote.annotate("s", "once")
            assert "look whether it was done" in (problem.value.hint or "")
            assert 1 == len(taken)
            with pytest.raises(Unreachable):
                remote.commit("s")
            assert 3 == len(taken), "a question that changes nothing is asked once more"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def test_whoever_stops_early_lets_go_of_the_connection(own: Repo, service: RunningService, remote: RemoteRepo) -> None:
    for number in range(30):
        keep(own, turn(number + 3), session_id=f"t{number}")
    for _ in range(40):
        next(remote.log())
    assert len(list(remote.log())) > 30


def test_many_threads_ask_at_once(remote: Repo) -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(remote.commit("s").id)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [remote.commit("s").id] * 20 == found


def test_what_is_no_service_of_ours_is_told(tmp_path: Path) -> None:
    path = tmp_path / "other"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def answer() -> None:
        connection, _ = listener.accept()
        asked = b""
        with connection:
            while not asked.endswith(b"}"):  # its head and its body may come one by one
                asked += connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")

    threading.Thread(target=answer, daemon=True).start()
    with harken.open(f"unix:{path}") as remote, pytest.raises(HarkenError, match="no service of Harken"):
        remote.last_change()
    listener.close()


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_an_operation_that_is_given_a_remote_repo_asks_the_service(name: str) -> None:
    """`crosses` stands before each that needs a store: the commands work over a wire by it."""
    function = operation(name)
    needs_store = "None" != inspect.signature(function).parameters["repo"].annotation

    assert needs_store == hasattr(function, "__wrapped__")


# -- what goes over it -------------------------------------------------------------------------------------------------


def test_more_than_a_request_holds_is_put_first(own: Repo, remote: Repo) -> None:
    data = b"x" * (20 << 20)

    made = remote.checkpoint(data, format="blob-v1")

    assert data == own.get(made.artifact)


def test_a_file_of_this_machine_is_read_here(remote: Repo, tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_bytes(remote.materialize("s", format="claude-code-v1").bytes)

    assert remote.events(path)
    assert remote.view(path).timeline()
    assert [str(path)] == [getattr(one, "session", "") for one in remote.stats([path])]


def test_a_commit_is_of_the_tokens_principal_and_machine(own: Repo, service: RunningService) -> None:
    secret = token(service, "context/write", principal="ci", machine="runner-1")
    with harken.open(service.url, token=secret) as remote:
        made = remote.checkpoint([Prompt(content="hello", time=1_700_000_000_000_000)])
        kept = remote.put_key("", "plan", b"do it")
        remote.start_session("mine", principal="")
        with pytest.raises(NotAllowed):
            remote.put_key("somebody", "plan", b"else")

        assert ("ci", "runner-1", 1_700_000_000_000_000) == (made.principal, made.machine, made.time)
        assert kept == remote.get_key("", "plan") == own.get_key("ci", "plan")
        assert ["plan"] == [one.key for one in remote.keys("")]
        latest = remote.latest_session("")
        assert latest is not None
        assert ("ci", "runner-1", "mine") == (latest.principal, latest.machine, latest.session)


def test_a_summary_and_tags_are_updated_together(own: Repo, remote: RemoteRepo) -> None:
    from harken.api.metadata import UpdateMetadataRequest, update_metadata

    own.tag("s", "old")
    shown = update_metadata(
        remote, UpdateMetadataRequest(ref="s", summary="what it is about", tags=("v1", "v2"), remove_tags=("old",))
    )

    assert ("what it is about", {"v1", "v2"}) == (shown.summary, set(shown.names))
    assert own.show("s").summary == shown.summary
    with pytest.raises(Conflict):
        update_metadata(remote, UpdateMetadataRequest(ref="review", tags=("v1",)))
    with pytest.raises(BadRequest):
        update_metadata(remote, UpdateMetadataRequest(ref="review"))


def test_a_child_that_is_forked_off_has_connections_of_its_own(remote: Repo) -> None:
    """What the parent asks and what the child asks at the same time would meet on one connection."""
    (first, second) = remote.history("s")
    child = os.fork()
    asked, wrong = (first.id, 0) if child else (second.id, 0)
    for _ in range(100):
        try:
            wrong += asked != remote.commit(asked).id
        except Exception:  # a child ends in no other way than by its code
            wrong += 1
    if not child:
        os._exit(min(wrong, 100))
    assert (0, 0) == (wrong, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def test_an_answer_that_was_begun_before_a_fork_leaves_the_child_no_connection(remote: Repo) -> None:
    assert isinstance(remote, RemoteRepo)
    names = remote.wire.send("POST", "/api/v1/names", b"{}", "application/json", is_safe=True).lines()
    next(names)
    child = os.fork()
    if not child:
        list(names)
        os._exit(len(remote.wire._kept))
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
