"""The guide for format authors shows a format that passes the suite it tells of."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

from harken.formats import Format
from harken.formats.kit.claims import best
from harken.testing import FormatContract

GUIDE = (Path(__file__).parents[3] / "docs" / "guides" / "formats.md").read_text()


def shown(name: str) -> ModuleType:
    """The module that the guide shows under that file name."""
    (code,) = (
        block for block in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL) if block.startswith(f"# {name}.py")
    )
    module = ModuleType(name)
    sys.modules[name] = module
    exec(compile(code, f"{name}.py", "exec"), module.__dict__)
    return module


DIARY = shown("diary")
CONTRACT = shown("test_diary").TestDiary


class TestTheDiaryOfTheGuide(CONTRACT):  # type: ignore[misc, valid-type]
    pass


def test_the_example_is_a_contract_of_the_format_it_shows() -> None:
    assert issubclass(CONTRACT, FormatContract)
    assert CONTRACT.format is DIARY.FORMAT
    assert {"read", "write"} == DIARY.FORMAT.can


def test_the_example_claims_its_own_file() -> None:
    claim = DIARY.FORMAT.claim(CONTRACT.samples[0], "")

    assert best([("diary-v1", claim)]) == ("diary-v1", claim)


def test_the_guide_names_every_field_that_a_format_may_leave_out() -> None:
    told = set(re.findall(r"^\| `(\w+)` \|", GUIDE, re.MULTILINE))

    assert set(Format.__struct_fields__) - {"name", "media_type", "description"} == told
