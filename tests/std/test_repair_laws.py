"""Whatever a document is, validator and repairer come to an end with an answer; a second repair changes nothing.

`make mutate` plays a million random changes, and new ones each time.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.formats.std.checking.rules import validate_bytes
from harken.formats.std.document import dumps, loads
from harken.formats.std.repairing.repair import Repaired, repair
from support.std_documents import multi, single
from support.std_mutations import mutated_bytes, mutated_value, places
from support.std_strategies import documents, older

Json = dict[str, Any]
PARTS = 2
MUTATIONS = int(os.environ.get("HARKEN_MUTATIONS", "320")) // PARTS // 2
"""How many each test plays; half of them are of values, half of bytes."""
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
    left = [one.path for one in first.findings if one.level == "error"]
    for finding in validate_bytes(data, name).findings:
        if finding.level == "error" and finding.path and first.document and not has_moved(first):
            is_left = any(
                path == finding.path or path.startswith((f"{finding.path}.", f"{finding.path}[")) for path in left
            )
            assert finding.repairable is not is_left, finding
    second = repair(first.data, name)
    assert (first.data, []) == (second.data, second.changes)


def has_moved(answer: Repaired) -> bool:
    """Whether annotations were added, so that those behind have other places."""
    return any("an annotation was added" in change.message for change in answer.changes)


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
    for number in range(MUTATIONS):
        seed = f"bytes {SEED} {part} {number}"
        chance = random.Random(seed)
        try:
            law(mutated_bytes(chance, chance.choice(whole)), "")
        except BaseException as problem:
            problem.add_note(f"the seed was {seed!r}")
            raise


@settings(max_examples=50)
@given(documents())
def test_a_valid_document_is_not_touched(document: Json) -> None:
    data = dumps(document)
    assert validate_bytes(data).is_valid
    assert (data, []) == (repair(data).data, repair(data).changes)


@settings(max_examples=50)
@given(documents() | older(), st.randoms(use_true_random=False))
def test_a_second_repair_changes_nothing(document: Json, chance: random.Random) -> None:
    for holder, key in chance.sample(found := places(document), min(3, len(found))):
        if isinstance(holder, dict):
            holder.pop(key, None)
    law(dumps(document), "2026-03-04-001-x-multi.json")


def test_a_repair_of_many_broken_calls_takes_time_as_they_are_many() -> None:
    document = single()
    broken = {key: value for key, value in document["tool_calls"][0].items() if key not in ("call_id", "ended_at")}
    document["tool_calls"] = [dict(broken) for _ in range(1500)]
    answer = repair(dumps(document))
    assert answer.is_valid
    assert 1500 == len({one["call_id"] for one in loads(answer.data)["tool_calls"]})
