"""The checks that follow from the types: every field of every type, missing, of another type, of another value."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import inspect

from harken.formats.std.checking import schema
from harken.formats.std.checking.rules import validate
from harken.formats.std.checking.schema import check, shown
from harken.formats.std.document import parse_session
from harken.formats.std.models import MultiAgentSession, StdObject
from support.std_documents import multi
from support.std_strategies import json_values

Json = dict[str, Any]
ODD: list[Any] = [None, True, 3, 1.5, "\ud800 odd", [3], {"odd": 3}]


def every_model() -> list[type[StdObject]]:
    found: list[type[StdObject]] = list(StdObject.__subclasses__())
    for model in found:
        found += model.__subclasses__()
    return found


def fields() -> Iterator[tuple[type[StdObject], inspect.Field]]:
    for model in every_model():
        described = inspect.type_info(model)
        assert isinstance(described, inspect.StructType)
        yield from ((model, field) for field in described.fields)


FIELDS = list(fields())
NAMES = [f"{model.__name__}.{field.name}" for model, field in FIELDS]


def sample(info: inspect.Type) -> Any:
    """A value that fits."""
    match info:
        case inspect.Metadata():
            extra = info.extra or {}
            return next(iter(extra.get("open") or extra.get("known") or [sample(info.type)]))
        case inspect.UnionType():
            return sample(next(one for one in info.types if not isinstance(one, inspect.NoneType)))
        case inspect.StructType():
            return {field.name: sample(field.type) for field in info.fields}
        case inspect.LiteralType():
            return info.values[0]
        case inspect.ListType():
            return [sample(info.item_type)]
        case inspect.DictType():
            return {"key": sample(info.value_type)}
        case inspect.StrType():
            return "text"
        case inspect.BoolType():
            return True
        case inspect.IntType():
            return 1
        case inspect.FloatType():
            return 1.5
        case _:
            return "anything"


def bare(info: inspect.Type) -> inspect.Type:
    """The type without what is said about it, and without null."""
    if isinstance(info, inspect.Metadata):
        return bare(info.type)
    if isinstance(info, inspect.UnionType):
        return bare(next(one for one in info.types if not isinstance(one, inspect.NoneType)))
    return info


def allows(info: inspect.Type, value: Any) -> bool:
    """Whether a value may stand there, as plainly as can be said."""
    inside = bare(info)
    is_optional = isinstance(info, inspect.UnionType) or (
        isinstance(info, inspect.Metadata) and isinstance(info.type, inspect.UnionType)
    )
    if value is None:
        return is_optional or isinstance(inside, inspect.AnyType)
    kinds: dict[type, Any] = {
        inspect.StrType: str, inspect.BoolType: bool, inspect.ListType: list, inspect.DictType: dict,
        inspect.StructType: dict, inspect.IntType: int, inspect.FloatType: (int, float), inspect.AnyType: object,
        inspect.LiteralType: str,
    }  # fmt: skip
    if isinstance(value, bool) and isinstance(inside, (inspect.IntType, inspect.FloatType)):
        return False
    return isinstance(value, kinds[type(inside)])


@cache
def _whole(model: type[StdObject]) -> str:
    return json.dumps(sample(inspect.type_info(model)))


def whole(model: type[StdObject]) -> Json:
    """An object of that type with all its fields."""
    found: Json = json.loads(_whole(model))
    return found


def rules_at(data: Json, model: type[StdObject], path: str) -> set[str]:
    return {one.rule for one in check(data, model) if one.path == path}


@pytest.mark.parametrize("model", every_model(), ids=lambda model: model.__name__)
def test_an_object_that_fits_is_told_nothing(model: type[StdObject]) -> None:
    assert [] == list(check(whole(model), model))


@pytest.mark.parametrize(("model", "field"), FIELDS, ids=NAMES)
def test_a_field_that_is_missing_is_told_where_it_is_required(model: type[StdObject], field: inspect.Field) -> None:
    data = whole(model)
    del data[field.name]
    extra = (field.type.extra or {}) if isinstance(field.type, inspect.Metadata) else {}
    expected = {"missing-advised" if extra.get("advised") else "missing-field"} if field.required else set()
    assert expected == rules_at(data, model, field.name)


@pytest.mark.parametrize(("model", "field"), FIELDS, ids=NAMES)
def test_a_field_of_another_type_is_told(model: type[StdObject], field: inspect.Field) -> None:
    for odd in ODD:
        found = rules_at({**whole(model), field.name: odd}, model, field.name)
        if not allows(field.type, odd):
            is_literal = isinstance(bare(field.type), inspect.LiteralType)
            is_advised = odd is None and "missing-advised" in found
            assert is_advised or {"unknown-value" if is_literal else "wrong-type"} == found, odd
        else:
            assert "wrong-type" not in found, odd


VOCABULARIES = [
    (model, field)
    for model, field in FIELDS
    if isinstance(bare(field.type), inspect.LiteralType) or isinstance(field.type, inspect.Metadata)
]


@pytest.mark.parametrize(
    ("model", "field"), VOCABULARIES, ids=[f"{model.__name__}.{field.name}" for model, field in VOCABULARIES]
)
def test_a_value_that_nobody_knows_is_told(model: type[StdObject], field: inspect.Field) -> None:
    extra = (field.type.extra or {}) if isinstance(field.type, inspect.Metadata) else {}
    if extra.get("advised"):
        return
    expected = "open-value" if "open" in extra else "unknown-value"
    assert {expected} == rules_at({**whole(model), field.name: "nobody knows"}, model, field.name)
    for added in extra.get("added", ()):
        assert {"open-value"} == rules_at({**whole(model), field.name: added}, model, field.name)


def test_a_value_is_told_with_those_that_it_may_have_as_the_standard_lists_them() -> None:
    (found,) = check({**multi(), "status": "completed"}, MultiAgentSession)
    assert '`status` is "completed"; it must be one of success, failed, in_progress' == found.message


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a", '"a"'),
        ("x" * 100, '"' + "x" * 59 + '…"'),
        (10**5000, "a number of more than 20 digits"),
        ([1], "a list"),
        ([], "[]"),
        ({"a": 1}, "an object"),
        (None, "null"),
    ],
    ids=["text", "long", "number", "list", "empty", "object", "null"],
)
def test_a_value_is_shown_in_few_words(value: Any, expected: str) -> None:
    assert expected == shown(value)


@st.composite
def damaged(draw: st.DrawFn) -> Json:
    """A document with any value in any few places."""
    document: Json = multi()
    for _ in range(draw(st.integers(1, 3))):
        place: Any = document
        while True:
            keys = list(place) if isinstance(place, dict) else range(len(place))
            key = draw(st.sampled_from(keys)) if keys else None
            if key is None:
                break
            if isinstance(place[key], (dict, list)) and draw(st.integers(0, 4)):
                place = place[key]
                continue
            if isinstance(place, dict) and draw(st.booleans()):
                del place[key]
            else:
                place[key] = draw(json_values)
            break
    return document


@given(damaged())
@settings(max_examples=80, deadline=None)
def test_the_quick_look_and_the_walk_agree(document: Json) -> None:
    quick = validate(parse_session(document))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "_fits", lambda value, model: False)
        assert validate(parse_session(document)) == quick
