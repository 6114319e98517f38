"""Every operation is described, key by key, and its values can cross a wire."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import harken.api
from harken.api import OPERATIONS, reference
from harken.api.base import ApiAnswer, ApiRequest

DOCUMENT = Path(__file__).parents[2] / "docs" / "API.md"


def values() -> Iterator[type[msgspec.Struct]]:
    waiting = [struct for one in reference.operations() for struct in (one.request, *one.answers)]
    seen: set[type[msgspec.Struct]] = set()
    while waiting:
        struct = waiting.pop()
        if struct not in seen:
            seen.add(struct)
            waiting += reference.inner(struct)
            yield struct


VALUES = sorted(values(), key=lambda struct: struct.__name__)


@pytest.mark.parametrize("struct", VALUES, ids=lambda struct: struct.__name__)
def test_every_key_says_what_it_means(struct: type[msgspec.Struct]) -> None:
    described = reference.value(struct)

    assert described.meaning
    assert [] == [key.name for key in described.keys if not key.meaning]


@pytest.mark.parametrize("struct", VALUES, ids=lambda struct: struct.__name__)
def test_every_value_can_cross_a_wire(struct: type[msgspec.Struct]) -> None:
    """JSON says it and gives it back: msgspec makes a decoder for such types alone."""
    assert issubclass(struct, ApiRequest | ApiAnswer)
    assert msgspec.json.Decoder(struct)
    assert struct.__struct_config__.frozen


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_operation_says_what_it_does_and_takes_one_request(name: str) -> None:
    found = next(one for one in reference.operations() if one.name == name)

    assert found.meaning
    assert found.answers
    parameters = inspect.signature(harken.api.operation(name)).parameters
    assert ["repo", "request"] == list(parameters)[:2]
    assert all(one.default is not inspect.Parameter.empty for one in list(parameters.values())[2:]), "a wire has none"


def test_the_table_of_operations_is_complete() -> None:
    functions = set()
    for found in pkgutil.iter_modules(harken.api.__path__):
        module = importlib.import_module(f"harken.api.{found.name}")
        functions |= {
            (name, found.name)
            for name, value in inspect.getmembers(module, inspect.isfunction)
            if value.__module__ == module.__name__
            and ["repo", "request"] == list(inspect.signature(value).parameters)[:2]
        }

    assert functions == set(OPERATIONS.items())


def test_an_unknown_key_is_refused() -> None:
    request = next(one for one in reference.operations() if one.name == "log").request

    with pytest.raises(msgspec.ValidationError, match="colour"):
        msgspec.json.decode(b'{"colour": "red"}', type=request)


def test_the_document_lists_every_key() -> None:
    text = DOCUMENT.read_text("utf-8")

    for struct in VALUES:
        for key in reference.value(struct).keys:
            assert f"| `{key.name}` |" in text
