"""A store behind a service passes the suite that our own stores pass, but for what needs the store itself."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken.client import RemoteRepo
from harken.client.local import NEEDS_STORE
from harken.repo import Repo
from harken.store.arguments import public_methods
from harken.testing import RepoContract
from support.contexts import Ticking
from support.service import serving, token

# What these tests are about cannot be asked over a wire; `local.py` says what to do instead.
NOT_OVER_A_WIRE = (
    "test_a_log_is_seen_and_listed_like_a_session",
    "test_a_session_and_its_file_are_the_same_document",
    "test_a_file_is_watched_until_it_is_enough",
    "test_a_runtime_is_run_and_kept",
    "test_an_agent_begins_with_what_a_commit_knows",
    "test_events_are_kept_as_they_come",
    "test_a_watch_ends_when_the_repository_is_closed",
    "test_a_live_session_says_so_when_nothing_can_be_kept_any_more",
    "test_a_tracker_says_so_when_nothing_can_be_kept_any_more",
    "test_what_was_forgotten_is_let_in_again",
    "test_tables_are_written_as_their_files_are_taken",
    "test_the_index_itself_is_asked",
)


class RemoteContract(RepoContract):
    """The suite without these."""


for _name in NOT_OVER_A_WIRE:
    setattr(RemoteContract, _name, None)


class TestTcp(RemoteContract):
    @pytest.fixture
    def repo(self, tmp_path: Path) -> Iterator[Repo]:
        with (
            harken.open(tmp_path / "store" / "store.db", clock=Ticking()) as own,
            serving(own) as service,
            harken.open(service.url, token=token(service)) as repo,
        ):
            yield repo


class TestSocket(RemoteContract):
    @pytest.fixture
    def repo(self, tmp_path: Path) -> Iterator[Repo]:
        path = tmp_path / "store" / "run" / "socket"
        with (
            harken.open(tmp_path / "store" / "store.db", clock=Ticking()) as own,
            serving(own, path=path),
            harken.open(f"unix:{path}") as repo,
        ):
            yield repo


def test_only_what_needs_the_store_itself_is_left_out() -> None:
    for name in NOT_OVER_A_WIRE:
        called = set(re.findall(r"\brepo\.(\w+)\b", inspect.getsource(getattr(RepoContract, name))))
        assert called & (NEEDS_STORE.keys() | {"index"}), f"{name} could be asked of a service"


def test_no_method_of_a_repo_is_forgotten() -> None:
    """Each is answered by the service, or is refused with a sentence; none is left to a store that is not there."""
    own = {name for name, _ in public_methods(Repo)}
    told = {name for kind in RemoteRepo.__mro__[: RemoteRepo.__mro__.index(Repo)] for name in vars(kind)}

    assert set() == own - told
    assert {"epoch", "damage"} <= told
