"""Two continuations of one Codex thread, looked at as files that are in no store: what each did counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from harken.api.stats import StatsRequest, StatsTotal, stats
from support.contexts import memory_repo
from support.rollouts import THREAD, Rollout

BASE = {"thread_id": THREAD, "end_ordinal_exclusive": 7, "end_byte_offset": 400}
FORK = "019b88e5-a2e4-7b90-8953-000000000009"


def used(total: int) -> dict[str, object]:
    figures = {"input_tokens": total, "output_tokens": 1, "cached_input_tokens": 0, "total_tokens": total + 1}
    return {"total_token_usage": figures, "last_token_usage": figures | {"input_tokens": 10}}


def continuation(path: Path, thread: str, begun: str) -> str:
    """A file that points at the same place, and says and uses the same as any other made here."""
    made = Rollout(bare=True).meta(id=thread, timestamp=begun, history_base=BASE).turn("go on")
    path.write_bytes(made.event("token_count", info=used(110)).data)
    return str(path)


@pytest.mark.parametrize("second", [THREAD, FORK], ids=["went back twice", "forked"])
def test_count_each_even_where_they_say_and_use_the_same(tmp_path: Path, second: str) -> None:
    files = (
        continuation(tmp_path / "a.jsonl", THREAD, "2026-01-02T00:00:00.000Z"),
        continuation(tmp_path / "b.jsonl", second, "2026-01-02T01:00:00.000Z"),
    )

    *each, total = stats(memory_repo(), StatsRequest(files=files))

    assert isinstance(total, StatsTotal)
    assert [1, 1] == [one.prompts.human for one in each]
    assert (2, 20) == (total.total.prompts.human, total.total.usage.input)


def test_a_copy_of_the_file_adds_nothing(tmp_path: Path) -> None:
    first = continuation(tmp_path / "a.jsonl", THREAD, "2026-01-02T00:00:00.000Z")
    copy = continuation(tmp_path / "b.jsonl", THREAD, "2026-01-02T00:00:00.000Z")

    *_, total = stats(memory_repo(), StatsRequest(files=(first, copy)))

    assert isinstance(total, StatsTotal)
    assert (1, 10) == (total.total.prompts.human, total.total.usage.input)
