"""Whatever a document is, validator and repairer come to an end with an answer; a second repair changes nothing.

`HARKEN_MUTATIONS=1000000 make explore` (or pytest on this file alone) plays as many random changes as it says.
"""

from __future__ import annotations

import os
import random

import pytest

from harken.formats.std.document import dumps, loads
from harken.formats.std.repair import repair
from harken.formats.std.rules import validate_bytes
from support.std_documents import multi, single
from support.std_mutations import mutated_bytes, mutated_value

PARTS = 8
MUTATIONS = int(os.environ.get("HARKEN_MUTATIONS", "480")) // PARTS
SEED = random.SystemRandom().randrange(2**32) if os.environ.get("HARKEN_EXPLORE") else 0


def law(data: bytes, name: str) -> None:
    """What holds for all bytes."""
    first = repair(data, name)
    checked = validate_bytes(first.data, name)
    assert checked.findings == first.findings
    if validate_bytes(data, name).is_valid:
        assert (data, []) == (first.data, first.changes)
    if not first.changes:
        assert data == first.data
    second = repair(first.data, name)
    assert (first.data, []) == (second.data, second.changes)


@pytest.mark.parametrize("part", range(PARTS))
def test_random_changes_of_values_are_answered_and_repaired_once(part: int) -> None:
    for number in range(MUTATIONS):
        seed = f"value {SEED} {part} {number}"
        try:
            law(dumps(mutated_value(random.Random(seed))), "2026-03-04-001-mend-the-clock.json")
        except BaseException as problem:
            problem.add_note(f"the seed was {seed!r}")
            raise


@pytest.mark.parametrize("part", range(PARTS))
def test_random_changes_of_bytes_are_answered_and_repaired_once(part: int) -> None:
    whole = (dumps(single()), dumps(multi()))
    for number in range(MUTATIONS // 2):
        seed = f"bytes {SEED} {part} {number}"
        chance = random.Random(seed)
        try:
            law(mutated_bytes(chance, chance.choice(whole)), "")
        except BaseException as problem:
            problem.add_note(f"the seed was {seed!r}")
            raise


def test_a_repair_of_many_broken_calls_takes_time_as_they_are_many() -> None:
    document = single()
    broken = {key: value for key, value in document["tool_calls"][0].items() if key not in ("call_id", "ended_at")}
    document["tool_calls"] = [dict(broken) for _ in range(3000)]
    answer = repair(dumps(document))
    assert answer.is_valid
    assert 3000 == len({one["call_id"] for one in loads(answer.data)["tool_calls"]})
