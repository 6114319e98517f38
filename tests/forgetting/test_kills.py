"""Killed at any statement, forgetting is finished by the next command that writes, or it never began."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import harken
from harken.store.db import Database

from .conftest import FIRST, SECOND, SECRET, leaks

KILLED, DONE = 9, 0


def _forget_and_die(location: Path, at: int) -> int:
    """In a process of its own: forget the secret, and die before that statement or file; the answer is how it ended."""
    child = os.fork()
    if not child:
        left = [at]

        def dying(method):
            def call(*args, **options):
                left[0] -= 1
                if not left[0]:
                    os._exit(KILLED)
                return method(*args, **options)

            return call

        for owner, names in ((Database, ("run", "inside", "commit", "alone")), (os, ("pwrite",)), (Path, ("unlink",))):
            for name in names:
                setattr(owner, name, dying(getattr(owner, name)))
        try:
            with harken.open(location) as repo:
                repo.forget(secret=[SECRET], who="me")
            os._exit(DONE)
        except BaseException:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture
def stored(repo, location):
    repo.index.catch_up()
    repo.store.cache("key", SECRET.encode())
    repo.close()
    location.with_name(f"{location.name}-unread-1").write_bytes(f"a run said {SECRET}\n".encode())
    return location


def _kill(stored: Path, run, folder: Path, at: int) -> int:
    """Whether it was killed, and what the store is like after the next command that writes."""
    location = folder / str(at) / stored.name
    shutil.copytree(stored.parent, location.parent)
    ended = _forget_and_die(location, at)
    assert ended in (KILLED, DONE)

    run("gc", store=location)

    with harken.open(location) as repo:
        begun = repo.store.erasures()
        told = b"".join(repo.materialize(session, stop="root").bytes for session in (FIRST, SECOND))
        assert repo.fsck(read_data=True).ok
    assert (0 if begun else 4) == told.count(SECRET.encode())
    if begun:
        assert [] == leaks(location)
    assert begun or ended == KILLED
    shutil.rmtree(location.parent)
    return ended


@pytest.mark.parametrize("at", [200, 372, 390, 403, 409])
def test_a_kill_here_and_there(stored, run, tmp_path, at):
    _kill(stored, run, tmp_path, at)


@pytest.mark.faults
def test_a_kill_at_every_statement(stored, run, tmp_path):
    at = 1
    while _kill(stored, run, tmp_path, at) == KILLED:
        at += 1

    assert at > 100
