"""However a store is broken, it says so in a sentence, never answers wrongly, and never crashes otherwise."""

from __future__ import annotations

import contextlib
import importlib.util
from pathlib import Path

import pytest

from harken.errors import BadRequest, Corrupt, HarkenError
from harken.store import fsck, open_store
from support.stores import busy_store

_spec = importlib.util.spec_from_file_location("builders", Path(__file__).with_name("builders.py"))
builders = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(builders)

REFUSED = [
    (builders.text_file, BadRequest),
    (builders.half_a_file, Corrupt),
    (builders.no_first_page, HarkenError),
]
FOUND = [
    builders.a_page_of_zeros,
    builders.another_schema,
    builders.a_hole_in_a_chain,
    builders.a_commit_without_its_artifact,
    builders.a_name_that_points_nowhere,
    builders.a_frame_that_is_gone,
    builders.a_frame_that_claims_to_be_huge,
    builders.a_frame_that_leans_on_itself,
    builders.an_index_that_lies,
    builders.text_that_is_no_text,
]


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "store.db"
    with contextlib.closing(open_store(path)) as store:
        busy_store(store)
    return path.read_bytes()


@pytest.fixture
def path(tmp_path, good):
    path = tmp_path / "store.db"
    path.write_bytes(good)
    return path


def read_everything(store):
    for commit in store.commits():
        store.annotations(commit.id)
        store.chain(commit.id)
        with contextlib.suppress(HarkenError):
            store.get(commit.artifact)


@pytest.mark.parametrize(("breaks", "error"), REFUSED, ids=lambda value: getattr(value, "__name__", ""))
def test_a_file_that_cannot_be_a_store_is_refused_or_found(path, breaks, error):
    breaks(path)
    with pytest.raises(error), contextlib.closing(open_store(path)) as store:
        if not fsck(store, read_data=True).ok:
            raise Corrupt("found")


@pytest.mark.parametrize("breaks", FOUND, ids=lambda breaks: breaks.__name__)
def test_damage_is_found_and_reading_never_crashes(path, breaks):
    breaks(path)
    with contextlib.closing(open_store(path)) as store:
        report = fsck(store, read_data=True)
        assert not report.ok
        assert all(found.why for found in report.findings)
        with contextlib.suppress(HarkenError):
            read_everything(store)


@pytest.mark.parametrize(
    "breaks",
    [builders.a_frame_that_is_gone, builders.a_frame_that_claims_to_be_huge, builders.a_frame_that_leans_on_itself],
    ids=lambda breaks: breaks.__name__,
)
def test_repair_leaves_a_store_that_is_whole_but_for_what_it_says_is_lost(path, breaks):
    breaks(path)
    with contextlib.closing(open_store(path)) as store:
        before = store.commits()
        report = fsck(store, read_data=True, repair=True)
        assert any(found.why.startswith("lost: art-") for found in report.findings)
        assert fsck(store, read_data=True).ok
        assert before == store.commits()
        read_everything(store)


def test_a_store_that_does_not_know_its_version_is_not_upgraded_by_guessing(path):
    builders.no_migrations(path)
    before = path.read_bytes()
    with pytest.raises(HarkenError):
        open_store(path)
    assert before == path.read_bytes()


def test_an_empty_file_becomes_an_empty_store(path):
    builders.empty_file(path)
    with contextlib.closing(open_store(path)) as store:
        assert [] == store.commits()
        assert fsck(store, read_data=True).ok


def test_a_path_that_cannot_be_opened_says_so(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(HarkenError):
        open_store(tmp_path / "file" / "store.db")
    with pytest.raises(BadRequest):
        open_store("ftp://x/y")
