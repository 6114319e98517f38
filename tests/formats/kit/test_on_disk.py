"""Content on the disk reads like the content itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.formats import get
from harken.formats.kit import on_disk
from harken.formats.kit.on_disk import DiskBytes, put_down
from support.sessions import conversation, rollout

THREAD = "019b88e0-0000-7000-8000-000000000001"


@pytest.fixture(autouse=True, scope="module")
def small_steps() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_disk, "STEP", 5)
        yield


@given(data=st.binary(min_size=1, max_size=40), cut=st.data())
def test_it_is_searched_and_cut_like_bytes(data: bytes, cut: st.DataObject) -> None:
    held = put_down([data[:7], data[7:]], held=0)
    start, end = (cut.draw(st.integers(0, len(data) + 1)) for _ in range(2))
    sought = cut.draw(st.binary(min_size=1, max_size=7) | st.just(data[start : start + 3] or b"x"))

    assert isinstance(held, DiskBytes)
    assert data[start:end] == held[start:end]
    assert data.find(sought, start) == held.find(sought, start)
    assert data.find(sought, start, end) == held.find(sought, start, end)
    assert data.rfind(sought, start) == held.rfind(sought, start)
    assert data.rfind(sought, start, end) == held.rfind(sought, start, end)
    assert (sought in data) == (sought in held)
    assert data.endswith(sought) == held.endswith(sought)


@pytest.mark.parametrize(
    ("name", "data"), [("claude-code-v1", conversation("aaa", 4).data), ("codex-v1", rollout(THREAD, 4))]
)
def test_it_says_the_same(name: str, data: bytes) -> None:
    format = get(name)

    assert format.read(data) == format.read(put_down([data], held=0))


def test_what_is_little_stays_in_memory() -> None:
    assert b"abc" == put_down([b"a", b"", b"bc"], held=3)
    assert isinstance(put_down([b"a", b"bc"], held=2), DiskBytes)


def test_of_an_overlong_line_one_gets_the_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harken.formats.kit.jsonl.MAX_LINE", 100_000)
    line = b"x" * 150_000

    assert line[: on_disk.HEAD] == put_down([line], held=0)[:150_000]
