"""A file is there whole, for its owner alone, or not at all."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from harken.files import write_whole


def test_it_is_whole_and_private(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", b"all of it")

    assert b"all of it" == (tmp_path / "a").read_bytes()
    assert 0o600 == stat.S_IMODE((tmp_path / "a").stat().st_mode)
    assert ["a"] == os.listdir(tmp_path)


def test_what_is_there_already_stays(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"older")

    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "a", b"newer")

    assert (["a"], b"older") == (os.listdir(tmp_path), (tmp_path / "a").read_bytes())


def test_what_is_to_be_replaced_is_replaced_in_one_step(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"older")
    with (tmp_path / "a").open("rb") as reader:
        write_whole(tmp_path / "a", b"newer", replace=True)

        assert (b"older", b"newer") == (reader.read(), (tmp_path / "a").read_bytes())
    assert ["a"] == os.listdir(tmp_path)


def test_a_file_system_without_links_serves_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    write_whole(tmp_path / "a", b"all of it")

    assert (["a"], b"all of it") == (os.listdir(tmp_path), (tmp_path / "a").read_bytes())
    with pytest.raises(OSError, match="not permitted"):
        write_whole(tmp_path / "a", b"newer")


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()

    with pytest.raises(OSError, match="a"):
        write_whole(tmp_path / "a", b"x", replace=True)

    assert ["a"] == os.listdir(tmp_path)
