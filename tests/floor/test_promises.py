"""What `harken` promises by name is there."""

from __future__ import annotations

import pytest

import harken


@pytest.mark.parametrize("name", harken.__all__)
def test_every_promised_name_is_there(name: str) -> None:
    assert getattr(harken, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'telepathy'"):
        harken.telepathy  # noqa: B018
