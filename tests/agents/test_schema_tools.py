"""Tools from a JSON schema and from a model, and results with pictures."""

from __future__ import annotations

import base64
import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest

from harken.agents import Answer, Call, Image, tool_from_model, tool_from_schema
from harken.agents.entries import for_model
from harken.agents.pictures import with_pictures
from harken.agents.schema_tools import safely_checked
from harken.agents.schemas import misfit
from harken.errors import BadRequest
from support.mcp_tools import picture
from support.stage import call, contents, open_stage, say

DOT = base64.b64encode(picture()).decode()
ORDER = {
    "type": "object",
    "properties": {"what": {"type": "string"}, "count": {"type": "integer", "minimum": 1}},
    "required": ["what"],
    "additionalProperties": False,
}


class Order(pydantic.BaseModel):
    """Something to buy."""

    what: str
    count: int = pydantic.Field(default=1, ge=1)


class OrderStruct(msgspec.Struct):
    what: str
    count: int = 1


@dataclasses.dataclass
class OrderData:
    what: str
    count: int = 1


def results(tmp_path: Path, tool: Any, *arguments: Any) -> list[str]:
    """What a tool answers to calls with these arguments."""
    steps = [{"call": {"tool": tool.name, "arguments": one}} for one in arguments]
    root, session = open_stage(tmp_path / "log", {"root": [*steps, "Done."]}, tools=[tool])
    with session:
        say(root, "Go.")
        return contents(root, "tool")


class TestATool:
    def test_from_a_schema_is_called_with_what_fits_it(self, tmp_path: Path) -> None:
        def buy(what: str, count: int = 1) -> str:
            return f"{count} {what}"

        tool = tool_from_schema("buy", "Buy something.", ORDER, buy)

        assert ORDER == tool.schema()["function"]["parameters"]
        good, more, wrong, none, other = results(
            tmp_path, tool, {"what": "tea"}, {"what": "tea", "count": 2}, {"what": "tea", "count": 0}, {}, {"who": 1}
        )
        assert ("1 tea", "2 tea") == (good, more)
        assert "count: 0 is less than the minimum of 1" in wrong
        assert "'what' is a required property" in none
        assert "Error" in other

    def test_from_a_schema_may_take_the_running_call(self, tmp_path: Path) -> None:
        async def who(running: Call, **arguments: Any) -> str:
            return f"{running.agent.label}: {arguments}"

        tool = tool_from_schema("who", "Who?", {"properties": {"self": {}, "a b": {}}}, who)

        assert ["root: {'self': 1, 'a b': 2}"] == results(tmp_path, tool, {"self": 1, "a b": 2})

    @pytest.mark.parametrize("model", [Order, OrderStruct, OrderData])
    def test_from_a_model_is_called_with_a_value_of_it(self, tmp_path: Path, model: Any) -> None:
        def buy(order: Any) -> str:
            """Buy something."""
            assert type(order) is model
            return f"{order.count} {order.what}"

        tool = tool_from_model(model, buy)

        assert ("buy", "Buy something.") == (tool.name, tool.description)
        assert "object" == tool.schema()["function"]["parameters"]["type"]
        good, wrong = results(tmp_path, tool, {"what": "tea", "count": 3}, {"what": 1})
        assert "3 tea" == good
        assert "the arguments of buy do not fit" in wrong

    def test_from_a_model_is_checked_by_the_model_too(self, tmp_path: Path) -> None:
        class Even(pydantic.BaseModel):
            number: int

            @pydantic.field_validator("number")
            @classmethod
            def check(cls, value: int) -> int:
                if value % 2:
                    raise ValueError("it is odd")
                return value

        async def half(value: Even, call: Call) -> int:
            return value.number // 2

        assert ["3"] == results(tmp_path, tool_from_model(Even, half), {"number": 6})
        assert "it is odd" in results(tmp_path / "again", tool_from_model(Even, half), {"number": 3})[0]

    @pytest.fixture(autouse=True)
    def again(self, tmp_path: Path) -> None:
        (tmp_path / "again").mkdir()

    @pytest.mark.parametrize(
        ("name", "schema"),
        [
            ("", ORDER),
            ("a b", ORDER),
            ("x" * 65, ORDER),
            ("a", {"type": "string"}),
            ("a", None),
            ("a", {"properties": []}),
            ("a", {"properties": {"x": {"type": "nothing"}}}),
            ("a", {"properties": {"x": {"$ref": "https://example.org/schema"}}}),
            ("a", {"properties": {"x": {"enum": list(range(100_000))}}}),
            ("a", {"properties": {"call": {}}}),
        ],
    )
    def test_from_something_odd_is_refused(self, name: str, schema: Any) -> None:
        def function(call: Call) -> None: ...

        with pytest.raises(BadRequest):
            tool_from_schema(name, "", schema, function)

    @pytest.mark.parametrize("model", [Order(what="tea"), int, None, "Order", list])
    def test_from_no_model_is_refused(self, model: Any) -> None:
        with pytest.raises(BadRequest):
            tool_from_model(model, lambda value: value, name="a")


class TestASchemaOfAStranger:
    def test_is_checked_as_far_as_that_ends(self) -> None:
        branches: dict[str, Any] = {"$ref": "#/$defs/n0"}
        defs = {f"n{n}": {"anyOf": [{"$ref": f"#/$defs/n{n + 1}"}] * 2} for n in range(60)} | {"n60": False}
        schema = {
            "type": "object",
            "properties": {
                "a": branches,
                "b": {"type": "string", "pattern": "^(a+)+$"},
                "c": {"type": "array", "items": {"type": "integer"}},
                "d": {"$ref": "#"},
            },
            "required": ["b"],
            "additionalProperties": False,
            "$defs": defs,
        }

        checked = safely_checked(schema)

        assert misfit({"a": 1, "b": "a" * 40 + "!", "c": [1], "d": {}}, checked) is None
        assert "required" in str(misfit({}, checked))
        assert "c[0]" in str(misfit({"b": "", "c": ["x"]}, checked))
        assert "unexpected" in str(misfit({"b": "", "e": 1}, checked))
        assert {} == safely_checked({"type": "object", "required": 7})


class TestPictures:
    def test_of_a_result_are_in_the_log_and_shown(self, tmp_path: Path) -> None:
        def draw() -> Answer:
            """Draw."""
            return Answer(content="A dot.", images=(Image(media_type="image/png", data=DOT),))

        root, session = open_stage(tmp_path / "log", {"root": [call("draw"), "Done."]}, tools=[draw])
        with session:
            say(root, "Go.")
            shown = for_model(root.transcript)
        line = {"media_type": "image/png", "data": DOT}
        assert [line] == shown[-2]["images"]
        *_, result, seen, _ = with_pictures(shown)
        assert {"role": "tool", "tool_call_id": result["tool_call_id"], "name": "draw", "content": "A dot."} == result
        assert {"url": f"data:image/png;base64,{DOT}"} == seen["content"][1]["image_url"]

    def test_stand_behind_the_results_of_all_calls_of_a_message(self) -> None:
        tool = {"role": "tool", "name": "draw", "content": "x"}
        image = {"media_type": "image/jpeg", "data": DOT}
        messages = [{**tool, "images": [image]}, {**tool, "images": [image]}, {"role": "assistant", "content": "y"}]

        shown = with_pictures(messages)

        assert ["tool", "tool", "user", "assistant"] == [one["role"] for one in shown]
        assert 4 == len(shown[2]["content"])
        assert shown[2]["content"][1]["image_url"]["url"].startswith("data:image/png")

    @pytest.mark.parametrize(
        "image",
        [
            {"data": "not base64!"},
            {"data": "AAAA", "media_type": "image/png"},
            {"url": "file:///etc/passwd"},
            {},
            {"data": 3, "at": "x"},
        ],
    )
    def test_that_a_provider_would_refuse_are_named(self, image: dict[str, Any]) -> None:
        (shown,) = with_pictures([{"role": "tool", "content": "x", "images": [image, "odd"]}])

        assert {"role": "tool", "content": "x\n[1 pictures not shown]"} == shown

    def test_are_named_where_the_model_sees_nothing(self) -> None:
        image = {"media_type": "image/png", "data": DOT}

        assert [{"role": "tool", "content": "[1 pictures not shown]"}] == with_pictures(
            [{"role": "tool", "content": "", "images": [image]}], seen=False
        )

    @pytest.mark.parametrize("images", [[], ("x",), "x", (1,)])
    def test_are_images(self, images: Any) -> None:
        with pytest.raises(BadRequest):
            Answer(content="x", images=images)
