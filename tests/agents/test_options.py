"""How a model is asked is logged with the agent and comes back with it; an answer with a form is checked against it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest

from harken import load_session
from harken.agents import Agent, HookAgent, ModelOptions, Reply, Request, Retries, ScriptedModel, parsed
from harken.agents.schemas import misfit, misfit_text
from harken.errors import BadRequest, ModelFailed
from support.stage import call, contents, lines, say


class Weather(msgspec.Struct):
    place: str
    degrees: int


class PydanticWeather(pydantic.BaseModel):
    place: str
    degrees: int


@dataclasses.dataclass
class PlainWeather:
    place: str
    degrees: int


class Asked(ScriptedModel):
    """A script that keeps how it was asked, by agent."""

    def __init__(self, parts: dict[str, Any]) -> None:
        super().__init__({"agents": parts}, name="scripted:asked")
        self.options: list[tuple[str, ModelOptions]] = []

    async def complete(self, request: Request) -> Reply:
        self.options.append((request.name, request.options))
        return await super().complete(request)


def stage(path: Path, parts: dict[str, Any], **options: Any) -> tuple[Agent, Any, Asked]:
    model = Asked(parts)
    root, session = load_session(path, language_model=model, ack="os", retries=Retries(first=0), **options)
    return root, session, model


WARM = ModelOptions(temperature=0.5, seed=7, stop=("END",), max_tokens=99, extra={"user": "me"})


class TestOptions:
    def test_are_what_the_model_is_asked_with_also_below(self, tmp_path: Path) -> None:
        parts = {"root": [call("task", name="Ann", prompt="Go."), "Done."], "Ann": ["I am Ann."]}
        root, session, model = stage(tmp_path / "log", parts, options=WARM)
        with session:
            say(root, "Go.")
        assert [("root", WARM), ("Ann", WARM), ("root", WARM)] == model.options

    def test_of_an_agent_of_its_own_are_its_own(self, tmp_path: Path) -> None:
        root, session, model = stage(tmp_path / "log", {"Ann": ["I am Ann."]}, options=WARM)
        with session:
            cold = ModelOptions(temperature=0.0)
            ann = root.spawn("Ann", "You are Ann.", options=cold)
            say(ann, "Who?")
            assert [("Ann", cold)] == model.options

    def test_come_back_with_the_agent(self, tmp_path: Path) -> None:
        root, session, _ = stage(tmp_path / "log", {}, options=WARM)
        with session:
            root.spawn("Ann", "You are Ann.", options=ModelOptions(timeout=5))
            made = lines(session, event_type="agent_created", name="Ann")[0]
            assert {"timeout": 5} == made["attributes"]["options"]
        root, session, _ = stage(tmp_path / "log", {})
        with session:
            assert (WARM, ModelOptions(timeout=5)) == (root.options, root.subagents["Ann"].options)

    def test_that_are_changed_are_logged_once_and_the_last_stand(self, tmp_path: Path) -> None:
        root, session, _ = stage(tmp_path / "log", {}, options=WARM)
        with session:
            root.options = ModelOptions(temperature=0.1)
            root.options = ModelOptions(temperature=0.2)
            root.options = ModelOptions(temperature=0.2)
        root, session, _ = stage(tmp_path / "log", {}, options=ModelOptions(temperature=0.2))
        with session:
            changes = [line["metadata"] for line in lines(session, subtype="options")]
            assert [WARM.temperature, 0.1, 0.2] == [change["temperature"] for change in changes]
            assert ModelOptions(temperature=0.2) == root.options

    def test_that_say_when_and_whom_to_ask_instead_hold_for_hooks_too(self, tmp_path: Path) -> None:
        parts = {"root": ["Hello."], "Reviewer": ["APPROVE"], "Critic": ["APPROVE"]}
        own = ModelOptions(temperature=0.0, timeout=3.0)
        hooks = [
            HookAgent(name="Reviewer", points=("finished",), instructions="Look."),
            HookAgent(name="Critic", points=("finished",), instructions="Look.", options=own),
        ]
        options = ModelOptions(temperature=0.5, timeout=9.0, fallbacks=("demo",), api_base="http://localhost/v1")
        root, session, model = stage(tmp_path / "log", parts, options=options, hooks=hooks)
        with session:
            say(root, "Hello?")
        kept = ModelOptions(timeout=9.0, fallbacks=("demo",), api_base="http://localhost/v1")
        assert [("root", options), ("Reviewer", kept), ("Critic", own)] == model.options

        root, session, model = stage(tmp_path / "log", {"root": ["a", "Hi."], "*": ["a", "APPROVE"]})
        with session:
            say(root, "Hello again.")
        assert [("root", options), ("Reviewer", kept), ("Critic", own)] == model.options

    def test_a_hook_with_a_model_of_its_own_is_not_asked_at_the_address_of_another(self) -> None:
        options = ModelOptions(timeout=9.0, api_base="http://localhost/v1")
        assert ModelOptions(timeout=9.0) == options.for_hook(same_model=False)

    def test_of_words_are_not_given_to_hooks(self, tmp_path: Path) -> None:
        parts = {"root": ["Hello."], "Reviewer": ["APPROVE"]}
        reviewer = HookAgent(name="Reviewer", points=("finished",), instructions="Look.")
        root, session, model = stage(tmp_path / "log", parts, options=WARM, hooks=[reviewer])
        with session:
            say(root, "Hello?")
        assert [("root", WARM), ("Reviewer", ModelOptions())] == model.options

    @pytest.mark.parametrize("key", ["api_key", "base_url", "extra_headers"])
    def test_are_logged_and_so_no_place_for_keys(self, key: str) -> None:
        with pytest.raises(BadRequest, match="no option"):
            ModelOptions(extra={key: "x"})

    def test_an_address_that_only_the_log_names_gets_no_request(self, tmp_path: Path) -> None:
        away = ModelOptions(api_base="https://models.example/v1")
        root, session, model = stage(tmp_path / "log", {"root": ["One.", "Two."]}, options=away)
        with session:
            assert "One." == say(root, "Count.")
        root, session, model = stage(tmp_path / "log", {"root": ["One.", "Two."]})
        with session:
            with pytest.raises(ModelFailed, match="nobody here has said so"):
                say(root, "Go on.")
            assert [] == model.options
            root.options = root.options

            assert "Two." == asyncio.run(root.resume())

    def test_an_address_on_this_machine_comes_back_as_it_is(self, tmp_path: Path) -> None:
        here = ModelOptions(api_base="http://127.0.0.1:8000/v1")
        root, session, _ = stage(tmp_path / "log", {}, options=here)
        session.close()
        root, session, model = stage(tmp_path / "log", {"root": ["One."]})
        with session:
            assert "One." == say(root, "Count.")
            assert [("root", here)] == model.options

    @pytest.mark.parametrize(
        "found", [7, [], {"temperature": "hot"}, {"tries": 0}, {"response_format": {"type": 7}}, {"stop": 3}]
    )
    def test_that_a_log_has_wrong_are_none(self, tmp_path: Path, found: Any) -> None:
        path = tmp_path / "log"
        made = {"message_id": "m1", "event_type": "agent_created", "agent_id": "a", "attributes": {"options": found}}
        path.write_text(json.dumps(made) + "\n")
        root, session, _ = stage(path, {"root": ["Hello."]})
        with session:
            assert ModelOptions() == root.options
            assert "Hello." == say(root, "Hello?")

    @pytest.mark.parametrize("wrong", [{"temperature": "0.2"}, {"max_tokens": 2.5}, {"timeout": float("nan")}])
    def test_that_a_log_could_not_give_back_are_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(BadRequest, match=f"{next(iter(wrong))} of ModelOptions cannot be"):
            ModelOptions(**wrong)

    def test_a_whole_number_that_is_written_as_a_float_is_one(self, tmp_path: Path) -> None:
        given = ModelOptions(max_tokens=1e3, temperature=1.0)  # type: ignore[arg-type]
        root, session, model = stage(tmp_path / "log", {"root": ["Hello."]}, options=given)
        with session:
            say(root, "Hello?")
            assert [("root", ModelOptions(max_tokens=1000, temperature=1.0))] == model.options

    def test_a_request_that_takes_too_long_is_made_again(self, tmp_path: Path) -> None:
        class Slow:
            name = "slow"
            asked = 0

            async def complete(self, request: Request) -> Reply:
                self.asked += 1
                await asyncio.sleep(60 if self.asked == 1 else 0)
                return Reply(content="At last.")

        root, session = load_session(
            tmp_path / "log",
            language_model=Slow(),
            ack="os",
            retries=Retries(first=0),
            options=ModelOptions(timeout=0.02),
        )
        with session:
            assert "At last." == say(root, "Hello?")
            assert ["slow: no answer within 0.02 seconds"] == [
                line["message"] for line in lines(session, event_type="error")
            ]


GOOD, BAD = '{"place": "Rome", "degrees": 30}', '{"place": "Rome", "degrees": "hot"}'


class TestAnswersWithAForm:
    @pytest.mark.parametrize("kind", [Weather, PydanticWeather, PlainWeather])
    def test_are_values_of_a_type(self, tmp_path: Path, kind: Any) -> None:
        root, session, model = stage(tmp_path / "log", {"root": [GOOD]}, options=ModelOptions(response_format=kind))
        with session:
            value = parsed(say(root, "How is it?"), kind)
            assert ("Rome", 30) == (value.place, value.degrees)
            form = model.options[0][1].response_format
            assert ("json_schema", kind.__name__) == (form["type"], form["json_schema"]["name"])

    def test_that_never_fit_are_not_asked_for_again_until_more_may_be_tried(self, tmp_path: Path) -> None:
        parts = {"root": ["Hot.", "Hotter.", GOOD]}
        options = ModelOptions(response_format=Weather, tries=2)
        root, session, _ = stage(tmp_path / "log", parts, options=options)
        with session:
            for _ in range(2):
                with pytest.raises(ModelFailed, match="gave 2 answers"):
                    say(root, "How is it?") if not root.transcript else asyncio.run(root.response())
            assert ["Hot.", "Hotter."] == contents(root, "assistant")
            root.options = msgspec.structs.replace(options, tries=3)

            assert GOOD == asyncio.run(root.response())
            assert ["user", "assistant"] * 3 == [entry["role"] for entry in root.transcript]

    def test_that_do_not_fit_are_sent_back_with_the_reason(self, tmp_path: Path) -> None:
        parts = {"root": ["It is hot.", BAD, GOOD]}
        root, session, _ = stage(tmp_path / "log", parts, options=ModelOptions(response_format=Weather))
        with session:
            assert GOOD == say(root, "How is it?")
            first, second = contents(root, "user")[1:]
            assert "it is not JSON" in first
            assert "degrees: 'hot' is not of type 'integer'" in second
            sent = lines(session, origin="sent_back")
            assert [line["message_id"] for line in lines(session, role="assistant")[:2]] == [
                line["cause"] for line in sent
            ]

    def test_that_never_fit_stop_the_turn_after_so_many_tries(self, tmp_path: Path) -> None:
        parts = {"root": [BAD, BAD, GOOD]}
        form = ModelOptions(response_format=Weather, tries=2)
        root, session, _ = stage(tmp_path / "log", parts, options=form)
        with session:
            with pytest.raises(ModelFailed, match="2 answers that do not fit"):
                say(root, "How is it?")
            assert [BAD, BAD] == contents(root, "assistant")
            assert root.is_pending
        root, session, _ = stage(tmp_path / "log", parts)
        with session:
            assert root.is_pending
            root.options = msgspec.structs.replace(form, tries=3)

            assert GOOD == asyncio.run(root.resume())
            assert not root.is_pending

    def test_a_log_cut_after_any_line_comes_to_the_same_end(self, tmp_path: Path) -> None:
        path, parts, form = tmp_path / "log", {"root": ["no", BAD, GOOD]}, ModelOptions(response_format=Weather)
        root, session, _ = stage(path, parts, options=form)
        with session:
            say(root, "How is it?")
            expected = [entry.get("content") for entry in root.transcript]
        whole = path.read_bytes().splitlines(keepends=True)
        for cut in range(3, len(whole) + 1):
            path.write_bytes(b"".join(whole[:cut]))
            root, session, _ = stage(path, parts)
            with session:
                asyncio.run(root.resume())
                assert expected == [entry.get("content") for entry in root.transcript], f"cut after line {cut}"

    def test_do_not_use_up_the_reviews_of_hooks(self, tmp_path: Path) -> None:
        asked: list[str] = []
        from harken.agents import Hook

        watch = Hook(name="Watch", points=("finished",), function=lambda m: asked.append(m.text))
        parts = {"root": [BAD, BAD, BAD, BAD, GOOD]}
        form = ModelOptions(response_format=Weather, tries=9)
        root, session, _ = stage(tmp_path / "log", parts, options=form, hooks=[watch])
        with session:
            say(root, "How is it?")
        assert [GOOD] == asked

    def test_are_asked_of_the_agent_alone_and_not_of_those_below(self, tmp_path: Path) -> None:
        parts = {"root": [call("task", name="Ann", prompt="Go."), GOOD], "Ann": ["In prose."]}
        root, session, _ = stage(tmp_path / "log", parts, options=ModelOptions(response_format=Weather))
        with session:
            assert GOOD == say(root, "How is it?")
            assert ["In prose."] == contents(root, "tool")

    def test_that_fit_another_form_stand_and_are_given_once(self, tmp_path: Path) -> None:
        options = ModelOptions(response_format=Weather, tries=1)
        parts = {"root": ["It rains.", "Yes."]}
        root, session, _ = stage(tmp_path / "log", parts, options=options)
        with session, pytest.raises(ModelFailed, match="do not fit their form"):
            say(root, "How is the weather?")

        root, session, _ = stage(tmp_path / "log", parts, options=ModelOptions())
        with session:
            assert root.is_pending
            assert "It rains." == asyncio.run(root.resume())
            assert not root.is_pending

        root, session, _ = stage(tmp_path / "log", parts)
        with session:
            assert not root.is_pending
            assert asyncio.run(root.resume()) is None
            assert "Yes." == say(root, "Sure?")

    def test_may_stand_between_fences(self) -> None:
        schema = {"type": "object"}
        assert misfit_text("```json\n{}\n```", schema) is None
        assert Weather("Rome", 30) == parsed(f"```\n{GOOD}\n```", Weather)
        with pytest.raises(BadRequest, match="no Weather"):
            parsed(BAD, Weather)

    @pytest.mark.parametrize(
        ("form", "problem"),
        [
            ({"type": "nonsense"}, "no JSON schema"),
            ({"$ref": "https://example.com/schema"}, "not in it"),
            (lambda: None, "no JSON schema"),
        ],
    )
    def test_that_are_no_schema_are_refused(self, form: Any, problem: str) -> None:
        with pytest.raises(BadRequest, match=problem):
            ModelOptions(response_format=form)

    def test_a_misfit_names_its_place(self) -> None:
        schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}
        assert "a[1]: 'x' is not of type 'integer'" == misfit({"a": [1, "x"]}, schema)
        assert misfit({"a": [1]}, schema) is None
