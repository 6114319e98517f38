"""What a program hands over is of the type that is asked for, or it is told so: a `BadRequest` with a sentence."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import harken
from harken.api import OPERATIONS, operation, reference
from harken.errors import BadRequest, NotFound
from harken.views import SessionViewer
from support.viewed import cafe, write_log

ODD: list[Any] = [7, 1.5, b"x", [], {}, object()]
LONG = "x" * 5000
REQUESTS = {one.name: one.request for one in reference.operations()}
FIELDS = [(name, field) for name, request in REQUESTS.items() for field in msgspec.structs.fields(request)]


def request_of(name: str, field: str, value: Any) -> Any:
    """A request for an operation with that value in one field."""
    kind = REQUESTS[name]
    plain: dict[Any, Any] = {str: "x", list[str]: [], tuple[str, ...]: (), dict[str, str]: {}}
    needed = {each.name: plain[each.type] for each in msgspec.structs.fields(kind) if each.required}
    return kind(**needed | {field: value})


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_field_of_a_request_that_is_text_takes_nothing_else(name: str) -> None:
    for field in (field.name for other, field in FIELDS if other == name and field.type is str):
        for value in [*ODD, None]:
            with pytest.raises(BadRequest, match=f"`{field}` of .*expected `str`"):
                request_of(name, field, value)


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_field_of_a_request_takes_an_object_of_no_type(name: str) -> None:
    for other, field in FIELDS:
        if other == name:
            with pytest.raises(BadRequest, match=f"`{field.name}` of"):
                request_of(name, field.name, object())


def test_what_comes_from_json_is_held_to_the_same_types() -> None:
    kind = REQUESTS["log"]
    with pytest.raises(BadRequest, match="ref"):
        kind(ref=7)
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"ref": 7}', type=kind)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("log") / "cafe.jsonl", cafe())


@pytest.fixture(scope="module")
def viewer(log: Path) -> SessionViewer:
    return SessionViewer(log)


@pytest.mark.parametrize("value", [*ODD, None, "", LONG, "a\0b", "\ud800"], ids=lambda one: ascii(one)[:20])
def test_a_viewer_of_what_is_no_path_says_so(value: Any) -> None:
    with pytest.raises(BadRequest, match="no path"):
        SessionViewer(value)


def asking() -> Iterator[str]:
    """The methods of a viewer that have to be told something."""
    for name, method in inspect.getmembers(SessionViewer, inspect.isfunction):
        if not name.startswith("_") and len(inspect.signature(method).parameters) > 1:
            yield name


@pytest.mark.parametrize("method", list(asking()))
@pytest.mark.parametrize("value", [7, object(), [7], b"x", {1: 2}], ids=lambda one: ascii(one)[:20])
def test_a_viewer_refuses_what_is_no_name(viewer: SessionViewer, method: str, value: Any) -> None:
    ask = getattr(viewer, method)
    needed = [one for one in inspect.signature(ask).parameters.values() if one.default is one.empty]

    with pytest.raises(BadRequest):
        ask(*[value] * max(1, len(needed)))


@pytest.mark.parametrize(("name", "field"), [("agents", "file"), ("backup", "path"), ("chat", "file")])
def test_a_file_name_that_no_system_allows_is_a_bad_request(name: str, field: str) -> None:
    with harken.open("memory:") as repo, pytest.raises(BadRequest, match="no path"):
        answer = operation(name)(repo, request_of(name, field, LONG))
        list(answer)


def test_a_long_path_of_short_names_is_one(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        SessionViewer(tmp_path.joinpath(*["x" * 200] * 15))
