"""Trajectories are read and written as the format says."""

from __future__ import annotations

import json

import pytest

from harken import formats, runtimes
from harken.events import (
    AgentCreated,
    Error,
    Event,
    Image,
    Metric,
    Output,
    Prompt,
    Response,
    System,
    Thinking,
    ToolCall,
    ToolResult,
)
from harken.testing.formats import FormatContract, said
from harken.testing.runtimes import RuntimeContract
from harken.testing.translations import everything
from support.trajectories import (
    ANSWER,
    FIRST_PART,
    PLAIN,
    SECOND_PART,
    SYSTEM,
    USER,
    asked,
    trajectory,
    with_agents,
)

ATIF = formats.get("atif-v1")
SAMPLES = (PLAIN, FIRST_PART, SECOND_PART, with_agents())


class TestTrajectories(FormatContract):
    format = ATIF
    samples = (*SAMPLES, ATIF.write(everything()).data)


class TestTrajectoryFiles(RuntimeContract):
    """They are imported by name: they lie wherever somebody puts them."""

    runtime = runtimes.get("atif")
    samples = (("plain.trajectory.json", PLAIN), ("agents.json", with_agents()))


# -- reading ---------------------------------------------------------------------------------------------------------


def kinds(events: list[Event]) -> list[str]:
    return [event.kind for event in events]


def test_a_step_of_an_agent_is_what_it_thought_said_and_did_and_what_that_cost() -> None:
    created, system, prompt, thought, words, call, metric, result, answer, last = ATIF.read(PLAIN)

    assert isinstance(created, AgentCreated)
    assert ("demo", "m-1", "root") == (created.name, created.language_model, created.role)
    assert ("instructions", "Be brief.") == (system.subtype, system.message)  # type: ignore[attr-defined]
    assert Prompt(content="What is there?", message_id="@2", agent_id="agent_001", time=prompt.time) == prompt
    assert isinstance(thought, Thinking)
    assert isinstance(words, Response)
    assert "m-1" == words.model
    assert isinstance(call, ToolCall)
    assert ("c1", "bash", b'{"command":"ls"}') == (call.id, call.name, call.input)
    assert isinstance(metric, Metric)
    assert (20, 100, 8, 0.5) == (
        metric.input_tokens,
        metric.cache_read_tokens,
        metric.output_tokens,
        metric.cost_usd,
    )
    assert isinstance(result, ToolResult)
    assert ("c1", "bash", "a.txt", False) == (result.id, result.name, result.output, result.is_error)
    assert {"@3"} == {event.message_id for event in (thought, words, call, metric)}
    assert ("@4", "@5", "@5") == (result.message_id, answer.message_id, last.message_id)


def test_a_system_step_is_an_instruction_before_anybody_spoke_and_a_notice_later() -> None:
    events = ATIF.read(trajectory(SYSTEM, USER, {"source": "system", "message": "Workspace added."}, ANSWER))

    assert ["instructions", "notice"] == [event.subtype for event in events if isinstance(event, System)]


def test_what_no_call_asked_for_is_put_before_the_model() -> None:
    events = ATIF.read(SECOND_PART)

    shown = [(event.source, event.origin) for event in events if isinstance(event, Prompt)]
    assert [("injected", "copied_context")] * 2 + [("injected", "observation")] == shown


def test_the_result_of_the_only_call_belongs_to_it_without_saying_so() -> None:
    events = ATIF.read(trajectory(USER, asked("c9", observation={"results": [{"content": "x"}]})))

    assert [("c9", "x")] == [(event.id, event.output) for event in events if isinstance(event, ToolResult)]


def test_a_total_counts_where_it_is_more_than_the_steps_tell() -> None:
    steps = (USER, {"source": "agent", "message": "Hm."})
    total = {"total_prompt_tokens": 50, "total_cached_tokens": 20, "total_completion_tokens": 7, "total_cost_usd": 0.25}
    scan = runtimes.get("atif").read.scan

    alone = scan(trajectory(*steps, final_metrics=total), b"").tally.figures()
    told = scan(trajectory(USER, asked("c1"), final_metrics=total), b"").tally.figures()
    continued = scan(SECOND_PART, b"").tally.figures()

    assert (30, 20, 7, 250_000) == (
        alone.usage.input,
        alone.usage.cache_read,
        alone.usage.output,
        alone.cost_usd_micros,
    )
    assert (8, 500_000) == (told.usage.output, told.cost_usd_micros)
    assert 4 == continued.usage.output  # its total is of the part before it too


def test_a_compaction_hides_what_was_said_before_it_from_the_conversation() -> None:
    boundary = {"source": "system", "message": "…", "extra": {"context_management": {"type": "compaction"}}}
    data = trajectory(SYSTEM, USER, ANSWER, boundary, {"source": "user", "message": "So far: nothing."}, ANSWER)

    assert [("prompt", "So far: nothing."), ("response", "One file.")] == said(ATIF.read_conversation(data))
    assert "instructions" == ATIF.read_conversation(data)[0].subtype  # type: ignore[attr-defined]
    assert said(ATIF.read(FIRST_PART)) == said(ATIF.read_conversation(FIRST_PART))  # it goes on in another file


def test_agents_inside_are_told_where_they_were_started() -> None:
    events = ATIF.read(with_agents())
    created = {event.agent_id: event for event in events if isinstance(event, AgentCreated)}
    call = next(event for event in events if isinstance(event, ToolCall))

    assert ["", "agent_001", "agent_002", "agent_001"] == [one.parent for one in created.values()]
    assert call.message_id == created["agent_002"].cause
    assert {"agent_001"} == {event.agent_id for event in ATIF.read_conversation(with_agents())}


def test_what_is_no_step_is_kept_with_the_reason() -> None:
    odd = [7, {"source": "oracle", "message": "?"}, {"source": "user", "message": [{"type": "smell"}]}]
    odd += [asked("c", tool_calls=["x"], observation={"results": [3]})]
    data = json.dumps({"schema_version": "ATIF-v1.8", "agent": [], "steps": odd}).encode()

    assert 5 == sum(isinstance(event, Output) and bool(event.why) for event in ATIF.read(data))
    assert ["a trajectory is an object with steps"] == [event.why for event in ATIF.read(b"{}")]  # type: ignore[attr-defined]


# -- writing ---------------------------------------------------------------------------------------------------------


def written(*events: Event) -> dict[str, object]:
    made: dict[str, object] = json.loads(ATIF.write(list(events)).data)
    return made


def test_one_reply_is_one_step_with_the_results_of_its_calls() -> None:
    made = json.loads(ATIF.write(everything()).data)

    assert "ATIF-v1.8" == made["schema_version"]
    assert ["system", "user", "agent", "agent", "user", "agent"] == [step["source"] for step in made["steps"]]
    reply = made["steps"][2]
    assert ("A square, perhaps.", "I will look.") == (reply["reasoning_content"], reply["message"])
    assert ["call_1", "call_2"] == [call["tool_call_id"] for call in reply["tool_calls"]]
    assert [None, {"is_error": True}] == [result.get("extra") for result in reply["observation"]["results"]]
    assert "data:image/png;base64," == made["steps"][1]["message"][1]["source"]["path"][:22]


def test_everything_reads_back_as_it_was() -> None:
    again = [event for event in ATIF.read(ATIF.write(everything()).data) if not isinstance(event, AgentCreated)]

    plain = {"message_id": "", "agent_id": "", "time": None, "index": 0, "api_id": ""}
    assert [event.replace(**plain) for event in everything()] == [event.replace(**plain) for event in again]


def test_several_thoughts_of_one_reply_stay_apart() -> None:
    thoughts = [Thinking(content="a"), Thinking(signature="sealed"), Thinking(content="b\n\nc", signature="s")]
    data = ATIF.write([event.replace(api_id="m", message_id="1") for event in (*thoughts, Response(content="d"))]).data

    assert "a\n\nb\n\nc" == json.loads(data)["steps"][0]["reasoning_content"]
    assert [("a", ""), ("", "sealed"), ("b\n\nc", "s")] == [
        (event.content, event.signature) for event in ATIF.read(data) if isinstance(event, Thinking)
    ]


def test_arguments_that_are_no_object_come_back_as_they_were() -> None:
    given = [b"*** Begin Patch", b"[1]", b'{"half', b"", b'{"a": 1}']
    data = ATIF.write([ToolCall(id=f"c{at}", name="t", input=one) for at, one in enumerate(given)]).data

    read = [event.input for event in ATIF.read(data) if isinstance(event, ToolCall)]
    assert [b"*** Begin Patch", b"[1]", b'{"half', b"{}", b'{"a":1}'] == read


def test_a_result_without_its_call_and_an_error_have_steps_of_their_own() -> None:
    events = [ToolResult(id="c7", name="t", output="late", is_error=True), Error(message="busy")]

    read = [event for event in ATIF.read(ATIF.write(events).data) if not isinstance(event, AgentCreated)]

    assert ["tool_result", "error"] == kinds(read)
    assert ("c7", "t", "late", True) == (read[0].id, read[0].name, read[0].output, read[0].is_error)  # type: ignore[attr-defined]


def test_usage_counts_once_however_often_it_is_told() -> None:
    used = [Metric(api_id="m", request_id="r", input_tokens=3, cache_write_tokens=4, output_tokens=n) for n in (1, 9)]
    made = written(Prompt(content="?"), Response(content="!", api_id="m"), *used)

    (step,) = [step for step in made["steps"] if step["source"] == "agent"]  # type: ignore[attr-defined]
    assert {"prompt_tokens": 7, "completion_tokens": 9, "extra": {"cache_creation_input_tokens": 4}} == step["metrics"]
    assert {"total_prompt_tokens": 7, "total_completion_tokens": 9, "total_steps": 2} == made["final_metrics"]


def test_agents_are_written_inside_the_one_that_started_them() -> None:
    made = json.loads(ATIF.write(ATIF.read(with_agents())).data)

    assert ["agent_002", "agent_004"] == [one["trajectory_id"] for one in made["subagent_trajectories"]]
    assert "agent_003" == made["subagent_trajectories"][0]["subagent_trajectories"][0]["trajectory_id"]
    (result,) = made["steps"][1]["observation"]["results"]
    assert [{"trajectory_id": "agent_002"}] == result["subagent_trajectory_ref"]
    assert said(ATIF.read(with_agents())) == said(ATIF.read(json.dumps(made).encode()))


def test_agents_of_joined_trajectories_keep_apart() -> None:
    joined = ATIF.join([with_agents(), with_agents()])

    made = json.loads(joined)
    assert ["finder", "loose", "finder-2", "loose-2"] == [one["trajectory_id"] for one in made["subagent_trajectories"]]
    assert list(range(1, 7)) == [step["step_id"] for step in made["steps"]]
    assert [("agent_002", "agent_001"), ("agent_004", "agent_001")] == [
        (event.agent_id, event.parent)
        for event in ATIF.read(joined)
        if isinstance(event, AgentCreated) and event.cause and event.parent == "agent_001"
    ]


def test_a_file_that_no_part_can_be_is_counted_as_lost() -> None:
    files = (Image(media_type="application/pdf", data="JVBERi0="), Image(media_type="image/png"))
    made = ATIF.write([Prompt(content="see", images=files)])

    assert {("files", 1), ("pictures without content", 1)} == {(loss.what, loss.count) for loss in made.losses}


@pytest.mark.parametrize("blank", [b"", b"\n", b" \t\r\n"])
def test_a_file_of_white_space_alone_comes_back_as_it_is(blank: bytes) -> None:
    assert blank == ATIF.join([blank])
