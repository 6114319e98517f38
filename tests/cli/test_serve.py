"""`harken token`, and what `harken serve` says before it serves. That it serves is tested in tests/service."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harken.cli import serve
from harken.repo import Repo
from harken.service.tokens import TokenFile, tokens_beside
from support.command_line import Run
from support.contexts import chain


@pytest.fixture(autouse=True)
def own_umask() -> Iterator[None]:
    """The command makes its process's files its owner's alone; here that is the process of all other tests."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def tokens(repo: Repo) -> TokenFile:
    chain(repo, [1])
    return TokenFile(tokens_beside(repo.store.location))


def test_a_token_is_all_that_is_printed(run: Run, tokens: TokenFile) -> None:
    done = run("token", "create", "notebook")
    (secret,) = done.lines
    found = tokens.find(secret)

    assert 0 == done.code
    assert "only time" in done.err
    assert found is not None
    assert ("notebook", ("context/read",), "notebook") == (found.name, found.grants, found.principal)
    assert found.machine


def test_a_token_has_what_it_was_given(run: Run, tokens: TokenFile) -> None:
    words = ("--grant", "context/write", "--grant", "admin", "--principal", "ci", "--machine", "m", "--expires", "30d")
    (told,) = run("token", "create", "importer", *words, "--json").json
    found = tokens.find(told["token"])

    assert found is not None
    assert (["context/write", "admin"], "ci", "m") == (told["grants"], told["principal"], told["machine"])
    assert 30 * 86400 * 1_000_000 == (found.expires or 0) - found.created


def test_the_list_tells_everything_but_the_token(run: Run, tokens: TokenFile) -> None:
    (secret,) = run("token", "create", "notebook").lines
    run("token", "create", "old", "--expires", "1s")
    listed, told = run("token", "list"), run("token", "list", "--json")

    assert ["notebook", "old"] == [one["name"] for one in told.json]
    assert "notebook" in listed.out and "never used" in listed.out
    for text in (listed.out, told.out):
        assert secret not in text and "hash" not in text


def test_a_revoked_token_is_gone(run: Run, tokens: TokenFile) -> None:
    (secret,) = run("token", "create", "notebook").lines

    assert 0 == run("token", "revoke", "notebook").code
    assert tokens.find(secret) is None
    assert 3 == run("token", "revoke", "notebook").code
    assert "there are none" in run("token", "list").err


def test_what_makes_no_sense_is_told(run: Run, tokens: TokenFile) -> None:
    run("token", "create", "notebook")

    assert 4 == run("token", "create", "notebook").code
    assert 2 == run("token", "create", "a/b").code
    assert 2 == run("token", "create", "x", "--grant", "everything").code
    assert 2 == run("token", "create", "x", "--expires", "soon").code


def test_a_store_that_is_not_there_gets_no_token(run: Run, where: Path) -> None:
    assert 3 == run("token", "create", "notebook").code
    assert not where.exists()


def test_a_store_that_is_not_there_is_not_made_to_be_looked_at(run: Run, where: Path) -> None:
    assert 3 == run("serve", "--read-only", "--port", "0").code
    assert not where.exists()


def test_a_port_that_is_taken_is_told_with_what_to_do(run: Run, repo: Repo) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run("serve", "--no-watch", "--port", str(taken.getsockname()[1]))

    assert 4 == done.code
    assert "is taken" in done.err and "--port 0" in done.err


def test_without_the_extra_it_says_what_to_install(where: Path) -> None:
    script = (
        "import sys; sys.modules['uvicorn'] = None\n"
        f"import harken.cli; harken.cli.main(['--store', {str(where)!r}, 'serve', '--port', '0'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert 3 == done.returncode
    assert "pip install 'harken[serve]'" in done.stderr


def test_making_a_token_needs_no_extra(run: Run, tokens: TokenFile, where: Path) -> None:
    script = (
        "import sys; sys.modules['uvicorn'] = sys.modules['starlette'] = None\n"
        f"import harken.cli; harken.cli.main(['--store', {str(where)!r}, 'token', 'create', 'x'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert (0, True) == (done.returncode, done.stdout.startswith("hk_"))


def test_a_browser_is_opened_only_where_somebody_sits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CI", "SSH_CONNECTION", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(serve.ui, "is_terminal", lambda: True)
    monkeypatch.setattr(serve.sys, "platform", "linux")
    assert not serve._is_desktop()
    monkeypatch.setenv("DISPLAY", ":0")
    assert serve._is_desktop()
    monkeypatch.setenv("SSH_CONNECTION", "1 2 3 4")
    assert not serve._is_desktop()
    monkeypatch.delenv("SSH_CONNECTION")
    monkeypatch.setenv("CI", "true")
    assert not serve._is_desktop()
    monkeypatch.delenv("CI")
    monkeypatch.setattr(serve.ui, "is_terminal", lambda: False)
    assert not serve._is_desktop()
