"""Content without the middle of overlong lines reads like the content itself."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from harken.formats import get
from harken.formats.base import concatenate
from harken.formats.kit.sparse import SparseBytes, sparse
from support.sessions import conversation, rollout

LIMIT = 200_000
THREAD = "019b88e0-0000-7000-8000-000000000001"


@pytest.fixture(autouse=True)
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harken.formats.kit.jsonl.MAX_LINE", LIMIT)


def parts_of(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def long_line(size: int, seed: int) -> bytes:
    return (
        b'{"type":"user","isCompactSummary":true,"text":"' + random.Random(seed).randbytes(size).hex().encode() + b'"}'
    )


def with_long_lines(lines: list[bytes], *places: int) -> list[bytes]:
    """The lines, with overlong ones before those places."""
    found = list(lines)
    for number, place in enumerate(sorted(places, reverse=True)):
        found.insert(place, long_line(LIMIT + 50_000 * number, number) + b"\n")
    return found


CASES = {
    "in the middle": ((3,), False),
    "at the beginning": ((0,), False),
    "two in a row": ((2, 2), False),
    "three": ((0, 4, 9), False),
    "the last without a newline": ((6,), True),
}


@pytest.mark.parametrize("size", [1000, 70_000, 1 << 20])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ["claude-code-v1", "codex-v1"])
class TestReading:
    def content(self, name: str, case: str) -> bytes:
        whole = conversation("aaa", 4).data if name == "claude-code-v1" else rollout(THREAD, 4)
        places, torn = CASES[case]
        data = b"".join(with_long_lines(whole.splitlines(keepends=True), *places))
        return data + long_line(LIMIT, 7) if torn else data

    def test_it_says_the_same(self, name: str, case: str, size: int) -> None:
        data, format = self.content(name, case), get(name)

        content = sparse(parts_of(data, size), len(data))

        assert len(data) == len(content)
        assert format.read(data) == format.read(content)  # type: ignore[arg-type]
        assert format.read_delta(data) == format.read_delta(content)  # type: ignore[arg-type]
        if format.shared_names is not None:
            names = [event.message_id for event in format.read(data)]
            told, again = format.shared_names(data), format.shared_names(content)  # type: ignore[arg-type]
            assert list(map(told, names)) == list(map(again, names))

    def test_joined_it_says_the_same(self, name: str, case: str, size: int) -> None:
        data, format = self.content(name, case), get(name)
        deltas = (
            [data[:5000], data[5000:]]
            if data[4999:5000] == b"\n"
            else [data[: (at := data.find(b"\n") + 1)], data[at:]]
        )
        contents = [sparse(parts_of(delta, size), len(delta)) for delta in deltas]

        joined = concatenate([contents[0], deltas[1]]), concatenate([deltas[0], contents[1]]), concatenate(contents)  # type: ignore[list-item, arg-type]

        assert [format.read(data)] * 3 == [format.read(one) for one in joined]
        assert {SparseBytes} == {type(one) for one in joined}


def test_it_is_searched_and_cut_like_bytes() -> None:
    lines = with_long_lines([b"first\n", b"second\n", b"third\n"], 1)
    data = b"".join(lines)
    content = sparse([data], len(data))

    assert [data.find(b"\n"), data.find(b"second"), -1] == [
        content.find(b"\n"),
        content.find(b"second"),
        content.find(b"fourth"),
    ]
    assert [data.find(b"\n", 6), data.find(b"\n", 6, 50)] == [content.find(b"\n", 6), content.find(b"\n", 6, 50)]
    assert [data.rfind(b"\n"), data.rfind(b"\n", 0, len(data) - 6)] == [
        content.rfind(b"\n"),
        content.rfind(b"\n", 0, len(data) - 6),
    ]
    assert (True, False) == (b"third" in content, b"fourth" in content)
    assert (True, False) == (content.endswith(b"third\n"), content.endswith(b"second\n"))
    assert data[-13:-6] == content[-13:-6]
    assert data[6 : 6 + 100] == content[6 : 6 + len(lines[1])][:100]
