"""#9: a model that was shown too much; #7: what the log says of who answered, at what cost, and who failed."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken import SessionViewer, load_session
from harken.agents import Agent, ModelError, Reply, Request, Retries
from harken.agents.entries import calls_of, results_by_call, steps
from harken.agents.models import Usage, tool_call
from harken.errors import ModelFailed
from harken.events import Tokens
from harken.events.tally import Tally
from support.stage import call, contents, lines, open_stage, say


class Narrow:
    """A model that takes in so many characters, acts so many times for each prompt, and can sum up or cannot."""

    name = "narrow"

    def __init__(self, room: int, acts: int = 0, *, sums: bool = True) -> None:
        self.room, self.acts, self.sums = room, acts, sums
        self.refused = 0

    async def complete(self, request: Request) -> Reply:
        shown = sum(len(str(message.get("content") or "")) for message in request.messages)
        if shown > self.room:
            self.refused += 1
            raise ModelError(f"{shown} characters are too long", too_long=True)
        last = str(request.messages[-1].get("content"))
        if last.startswith(("Sum up", "This is a part")):
            if not self.sums:
                raise ModelError("cannot sum up")
            return Reply(content="SUMMARY", usage=Usage(tokens=Tokens(input=10, output=1), cost_usd=0.0000004))
        done = request.turn % (self.acts + 1)
        if done < self.acts:
            return Reply(tool_calls=(tool_call(f"c{request.turn}", "read", f'{{"n":{done}}}'),))
        return Reply(content=f"answer {request.turn}")


def read(n: int) -> str:
    """Read a page."""
    return f"page {n}: " + "x" * 1000


def opened(path: Path, model: Any, **options: Any) -> tuple[Agent, Any]:
    options = {"retries": Retries(attempts=2, first=0), "tools": [read], "ack": "os"} | options
    return load_session(path, language_model=model, **options)


def whole(agent: Agent) -> bool:
    """Whether every call that is left has its result."""
    results = results_by_call(agent.transcript)
    return all(
        (place, call["id"]) in results for place, entry in enumerate(agent.transcript) for call in calls_of(entry)
    ) and sum(map(len, results.values())) == len(contents(agent, "tool"))


class TestShownTooMuch:
    @pytest.mark.parametrize("sums", [True, False])
    @pytest.mark.parametrize("acts", [1, 3, 12])
    def test_an_agent_folds_within_its_turn_and_goes_on(self, tmp_path: Path, acts: int, sums: bool) -> None:
        root, session = opened(tmp_path / "log", model := Narrow(8_500, acts, sums=sums), system_prompt="Be brief.")
        with session:
            for number in range(3):
                assert f"answer {(acts + 1) * (number + 1) - 1}" == say(root, f"Read them all, {number}.")

            assert whole(root)
            assert ["Be brief."] == contents(root, "system")
            assert "Read them all, 2." in contents(root, "user"), "what was asked stays"
            assert (acts > 1) == bool(model.refused)
            assert root.transcript == session_entries(root)

    def test_one_result_may_be_more_than_it_takes_in(self, tmp_path: Path) -> None:
        def read(n: int) -> str:
            """Read a book."""
            return "y" * 50_000

        root, session = opened(tmp_path / "log", Narrow(6_000, 1), tools=[read])
        with session:
            assert "answer 1" == say(root, "Read it.")
            assert ["Read it.", "SUMMARY"] == contents(root, "user")

    def test_a_prompt_that_is_too_long_by_itself_is_told(self, tmp_path: Path) -> None:
        root, session = opened(tmp_path / "log", Narrow(1_000))
        with session:
            with pytest.raises(ModelFailed) as failed:
                say(root, "z" * 2_000)
            assert "larger window" in str(failed.value.hint)

            root.language_model = Wide()
            assert "I see." == asyncio.run(root.resume())

    def test_it_can_be_compacted_by_hand_and_resumed(self, tmp_path: Path) -> None:
        root, session = opened(tmp_path / "log", Narrow(100_000))
        with session:
            for number in range(4):
                say(root, f"{number} " + "x" * 1_000)
            root.pool.models["narrow"] = Narrow(4_500)
            root.harken("And now?")

            assert asyncio.run(root.compact())
            assert "SUMMARY" in contents(root, "user")
            assert "answer 4" == asyncio.run(root.resume())

    def test_the_window_of_a_setting_is_kept_within_a_turn(self, tmp_path: Path) -> None:
        root, session = opened(tmp_path / "log", model := Narrow(100_000, 12), window=2_000)
        with session:
            assert "answer 12" == say(root, "Read them all.")
            assert 0 == model.refused
            assert lines(session, event_type="transcript_edit")
            assert sum(len(text) for text in contents(root, "tool")) < 9_000


class Wide:
    name = "wide"

    async def complete(self, request: Request) -> Reply:
        return Reply(content="I see.")


def session_entries(agent: Agent) -> list[dict[str, Any]]:
    agent.evict()
    return agent.transcript


def test_cut_anywhere_it_comes_to_the_same_end(tmp_path: Path) -> None:
    """#9: a fold within a turn may be the last thing that a crash leaves."""
    root, session = opened(tmp_path / "whole", Narrow(4_000, 5))
    with session:
        expected = say(root, "Read them all.")
    written = (tmp_path / "whole").read_bytes().splitlines(keepends=True)
    assert any(b"transcript_edit" in line for line in written)
    begun = next(at for at, line in enumerate(written) if b'"Read them all."' in line) + 1

    for cut in range(begun, len(written) + 1):
        path = tmp_path / f"cut{cut}"
        path.write_bytes(b"".join(written[:cut]))
        root, session = opened(path, Narrow(4_000, 5))
        with session:
            said = asyncio.run(root.resume())
            assert (expected if cut < len(written) else None) == said, cut
            assert [expected] == contents(root, "assistant")[-1:]
            assert whole(root)
        shutil.rmtree(path, ignore_errors=True)


ids = st.sampled_from("abc")
CALLS = st.lists(ids, min_size=1, max_size=3).map(
    lambda names: {"role": "assistant", "tool_calls": [tool_call(name, "f", "{}") for name in names]}
)
ENTRIES = st.lists(
    st.one_of(
        CALLS,
        st.just({"role": "user", "content": "u"}),
        st.just({"role": "assistant", "content": "a"}),
        ids.map(lambda name: {"role": "tool", "tool_call_id": name, "content": "r"}),
    ).map(dict),
    max_size=14,
)


@given(ENTRIES)
def test_no_step_parts_a_call_from_its_result(entries: list[dict[str, Any]]) -> None:
    places = {id(entry): place for place, entry in enumerate(entries)}

    for cut in steps(entries):
        for (place, _), results in results_by_call(entries).items():
            assert all((place < cut) == (places[id(one)] < cut) for one in results)


class TestWhatTheLogSaysOfModels:
    """#7"""

    class Telling:
        name = "alias"

        def __init__(self, *failures: ModelError) -> None:
            self.failures = list(failures)

        async def complete(self, request: Request) -> Reply:
            if self.failures:
                raise self.failures.pop(0)
            usage = Usage(tokens=Tokens(input=7, output=2), cost_usd=0.0000004)
            return Reply(
                content="cut off", usage=usage, model="exact-1", stop_reason="length", api_id=f"r{request.turn}"
            )

    def test_which_one_answered_and_why_it_stopped(self, tmp_path: Path) -> None:
        root, session = opened(tmp_path / "log", self.Telling())
        with session:
            reply = say(root, "go")

            (metric,) = lines(session, event_type="metric")
            assert {"model": "exact-1", "stop_reason": "length", "api_id": "r0", "cause": reply.message_id} == {
                key: metric[key] for key in ("model", "stop_reason", "api_id", "cause")
            }
            assert "alias" == session.agents[root.agent_id].language_model

    def test_each_failure_of_a_provider(self, tmp_path: Path) -> None:
        failures = [ModelError("overloaded", retryable=True), ModelError("bad key")]
        root, session = opened(tmp_path / "log", self.Telling(*failures))
        with session:
            with pytest.raises(ModelFailed):
                say(root, "go")

            assert ["alias: overloaded", "alias: bad key"] == [
                data["message"] for data in lines(session, event_type="error", agent_id=root.agent_id)
            ]
            assert "cut off" == asyncio.run(root.resume())
            assert 2 == Tally.of(session.events()).figures().errors

    def test_whatever_a_model_raises_leaves_the_turn_open(self, tmp_path: Path) -> None:
        """Below a call too: the child's answer is not replaced by an error that the parent goes on with."""
        parts = {"root": [call("task", name="Ann", prompt="Hello?"), "done"], "Ann": ["I am Ann."]}
        root, session = open_stage(tmp_path / "log", parts)
        with session:
            script = root.model

            class Broken:
                name = root.language_model

                async def complete(self, request: Request) -> Reply:
                    if request.name == "Ann":
                        raise ConnectionResetError("by peer")
                    return await script.complete(request)

            root.pool.models[root.language_model] = Broken()
            with pytest.raises(ModelFailed, match="ConnectionResetError: by peer"):
                say(root, "go")
            root.pool.models[root.language_model] = script

            assert "done" == asyncio.run(root.resume())
            assert ["I am Ann."] == contents(root, "tool")

    def test_what_a_compaction_cost_and_that_there_was_one(self, tmp_path: Path) -> None:
        root, session = opened(tmp_path / "log", Narrow(100_000))
        with session:
            for text in ("one", "two", "three"):
                say(root, text)

            assert asyncio.run(root.compact())

            (edit,) = lines(session, event_type="transcript_edit")
            (metric,) = lines(session, event_type="metric")
            assert (edit["message_id"], 10) == (metric["cause"], metric["input_tokens"])
            assert 1 == Tally.of(session.events()).figures().compactions

    def test_costs_are_added_up_before_they_are_rounded(self, tmp_path: Path) -> None:
        root, session = opened(tmp_path / "log", self.Telling())
        with session:
            for _ in range(10):
                say(root, "go")

            figures = Tally.of(session.events()).figures()
            assert (4, 10) == (figures.cost_usd_micros, figures.requests)
            assert ["exact-1"] == list(figures.models)

    def test_which_one_is_in_use_after_a_load_with_another(self, tmp_path: Path) -> None:
        root, session = opened(tmp_path / "log", Narrow(100_000))
        with session:
            say(root, "one")
        root, session = opened(tmp_path / "log", Wide())
        with session:
            say(root, "two")
            say(root, "three")

            assert ["wide"] == [data["message"] for data in lines(session, event_type="system")]
        (tree,) = SessionViewer(tmp_path / "log").agent_tree()
        assert "wide" == tree["language_model"]

    def test_an_older_log_without_any_of_it_is_read(self, tmp_path: Path) -> None:
        metric = {"message_id": "m2", "event_type": "metric", "agent_id": "a", "input_tokens": 3, "model": "old"}
        (tmp_path / "log").write_text(
            '{"message_id":"m1","event_type":"agent_created","agent_id":"a","role":"root"}\n'
            + json.dumps(metric)
            + "\n"
        )
        root, session = opened(tmp_path / "log", Wide())
        with session:
            assert "I see." == say(root, "go")
            assert 3 == Tally.of(session.events()).tokens.input
