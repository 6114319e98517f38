"""A conversation that is too long: what goes along, what is summed up, and where it may be parted."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.api.writing import MaterializeRequest, materialize
from harken.context.shortening import SMALLEST, Shortening, shorten
from harken.errors import BadRequest
from harken.events import Error, Event, Prompt, Response, System, ToolCall, ToolResult
from harken.events.cbor import encode_events
from harken.formats import detect, get, narrative
from harken.formats.base import CHARACTERS_PER_TOKEN, characters
from harken.repo import Repo
from harken.store.memory import MemoryStore


def turn(number: int, size: int = 400, calls: int = 2) -> list[Event]:
    """A turn with calls that are answered side by side."""
    names = [f"c{number}-{call}" for call in range(calls)]
    said: list[Event] = [Prompt(message_id=f"p{number}", content=f"Question {number}")]
    said += [Response(message_id=f"a{number}", content="I look. " + "y" * size)]
    said += [ToolCall(message_id=f"a{number}", id=name, name="Bash", input=b"{}") for name in names]
    said += [ToolResult(message_id=f"r{name}", id=name, output="z" * size) for name in names]
    return [*said, Response(message_id=f"e{number}", content=f"Answer {number}")]


CONVERSATION = [event for number in range(20) for event in turn(number)]


def size(events: list[Event]) -> int:
    return sum(map(characters, events)) // CHARACTERS_PER_TOKEN


def test_what_is_short_enough_stays_as_it_is() -> None:
    assert (CONVERSATION, ()) == shorten(CONVERSATION, Shortening(budget=100_000))
    assert (CONVERSATION, ()) == shorten(CONVERSATION, Shortening(last=20))


def test_the_last_turns_stay_word_for_word_behind_a_summary_of_the_others() -> None:
    kept, losses = shorten(CONVERSATION, Shortening(last=2))

    assert [*turn(18), *turn(19)] == kept[1:]
    assert isinstance(kept[0], Prompt)
    assert "Question 0" in kept[0].content
    assert {"earlier message": 18 * 3, "earlier tool call": 36} == {loss.what: loss.count for loss in losses}


def test_a_budget_holds_and_is_used() -> None:
    kept, _ = shorten(CONVERSATION, Shortening(budget=2000))

    assert 1000 < size(kept) <= 2000
    assert kept[-1] == CONVERSATION[-1]


def test_one_turn_that_is_too_long_is_parted_between_its_steps() -> None:
    steps = [event for number in range(10) for event in turn(number)[1:-1]]
    kept, losses = shorten([Prompt(content="Do it all."), *steps], Shortening(budget=1500))

    assert size(kept) <= 1500
    assert "Do it all." in kept[0].content  # type: ignore[attr-defined]
    assert losses


def test_a_last_step_that_is_over_the_budget_goes_along_and_that_is_told() -> None:
    kept, losses = shorten([*turn(0), *turn(1, size=20_000)], Shortening(budget=SMALLEST))

    assert isinstance(kept[-1], Response)
    assert "earlier message" in {loss.what for loss in losses}


@settings(max_examples=60, deadline=None)
@given(
    turns=st.lists(st.tuples(st.integers(0, 800), st.integers(0, 4)), min_size=1, max_size=12),
    budget=st.integers(SMALLEST, 4000),
)
def test_a_call_and_its_result_are_never_parted(turns: list[tuple[int, int]], budget: int) -> None:
    events = [event for number, (size, calls) in enumerate(turns) for event in turn(number, size, calls)]

    kept, losses = shorten(events, Shortening(budget=budget))

    calls = [event.id for event in kept if isinstance(event, ToolCall)]
    results = [event.id for event in kept if isinstance(event, ToolResult)]
    assert calls == results
    behind = kept[1:] if losses else kept
    assert behind == events[len(events) - len(behind) :]


@pytest.mark.parametrize(
    "wrong", [{}, {"budget": 1000, "last": 1}, {"budget": 10}, {"last": 0}, {"narrative": True, "last": 1}]
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(BadRequest):
        Shortening(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("agent", ["", "jill"], ids=["of nobody", "of an agent"])
@pytest.mark.parametrize(
    "runtime", ["claude-code", "codex", "gemini-cli", "opencode", "pi", "qwen-code", "copilot-cli"]
)
def test_a_resume_with_less_writes_the_summary_and_the_last_turns(runtime: str, agent: str, tmp_path: Path) -> None:
    repo = Repo(MemoryStore())
    conversation = [event.replace(agent_id=agent) for event in CONVERSATION]
    commit = repo.checkpoint(encode_events(conversation), format="events-v1")

    done = repo.resume(commit, runtime, cwd=tmp_path, home=tmp_path / ".gemini", last=1)

    assert done.tier == "2s"
    assert {"earlier message", "earlier tool call"} == {loss.what for loss in done.losses}
    written = Path(done.path).read_bytes()
    known = detect(written)
    assert known is not None
    said = known.read_conversation(known.context(written))
    prompts = [event.content for event in said if isinstance(event, Prompt)]
    assert prompts[-1] == "Question 19"
    assert "Question 3" in prompts[0]
    assert ["Answer 19"] == [event.content for event in said if isinstance(event, Response)][1:]
    assert ["z" * 400] * 2 == [event.output for event in said if isinstance(event, ToolResult)]
    # Nothing is lost: the store still has all of it.
    assert conversation == get("events-v1").read(repo.materialize(commit).bytes)


def test_a_runtimes_own_session_that_is_short_enough_stays_its_own_records(tmp_path: Path) -> None:
    repo = Repo(MemoryStore())
    written = get("codex-v1").write(turn(1))
    commit = repo.checkpoint(written.data, format="codex-v1")

    whole = repo.resume(commit, "codex", cwd=tmp_path, home=tmp_path / "home", budget=100_000)
    less = repo.resume(commit, "codex", cwd=tmp_path, home=tmp_path / "home", narrative=True)

    assert (whole.tier, whole.losses) == ("1", ())
    assert less.tier == "3"
    said = get("codex-v1").read_conversation(Path(less.path).read_bytes())
    [told] = [event for event in said if isinstance(event, Prompt)]
    assert "Question 1" in told.content
    assert "Answer 1" in told.content


def test_a_narrative_stays_within_its_budget_and_tells_the_newest_best() -> None:
    for budget in (300, 1000, 3000, 100_000):
        written = narrative.write_within(CONVERSATION, budget)

        text = written.data.decode()
        assert len(text) <= budget * CHARACTERS_PER_TOKEN
        assert "Answer 19" in text
        left_out = next((loss.count for loss in written.losses if loss.what == "earlier turn"), 0)
        assert text.count("## User") == 20 - left_out
    assert written == narrative.write(CONVERSATION)


def test_one_long_turn_is_told_within_its_budget_by_how_it_began_and_how_it_ended() -> None:
    steps = [event for at in range(200) for event in turn(at) if not isinstance(event, Prompt)]
    events = [Prompt(content="Do all of it.\n" + "# 很长\n" * 500), *steps]
    for budget in (narrative.SMALLEST, 300, 1000):
        written = narrative.write_within(events, budget)

        text = written.data.decode()
        assert len(text) <= budget * CHARACTERS_PER_TOKEN
        assert text.index("Do all of it.") < text.index("steps are left out") < text.index("Answer 199")
        lost = {loss.what: loss.count for loss in written.losses}
        told = text.count("## Assistant")
        assert lost["step of a long turn"] + told + lost.get("tool call", 0) + lost.get("result of a tool", 0) == len(
            steps
        )


def test_what_a_narrative_leaves_out_is_counted() -> None:
    call = ToolCall(id="c", name="Write", input=b'{"file_path":"/a","content":"' + b"x" * 900 + b'"}')
    events = [
        Prompt(content="Write it"),
        System(subtype="title", message="Writing"),
        call,
        ToolResult(id="c", output="done"),
        Error(message="no " * 100),
    ]

    lost = {loss.what: loss.count for loss in narrative.write(events).losses}

    assert {"notices": 1, "arguments of a tool call": 1, "end of a long text": 1} == lost


def test_what_is_told_within_a_budget_counts_no_more_tokens_than_it() -> None:
    repo = Repo(MemoryStore())
    commit = repo.checkpoint(
        encode_events([Prompt(content="很" * 900), Response(content="长" * 9000)]), format="events-v1"
    )

    told = materialize(repo, MaterializeRequest(ref=commit.id, format="narrative-v1", budget=1000))

    assert told.token_count is not None
    assert len(told.body.decode()) // CHARACTERS_PER_TOKEN == told.token_count <= 1000
