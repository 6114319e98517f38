"""One pass for the importer."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.analytics import stats
from harken.errors import BadRequest
from harken.events import Output
from harken.events.figures import Prompts
from harken.formats import Delta
from harken.formats.codex import read, record_names, scan, split
from support.rollouts import THREAD, Rollout, message, said

BUSY = (
    Rollout()
    .user("# AGENTS.md instructions for /x\n<INSTRUCTIONS>\n</INSTRUCTIONS>")
    .turn(
        "first\n  prompt", ("response_item", {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"})
    )
    .output("c", "x" * 9000)
    .tokens(10, 2)
    .model("go on")
    .compacted(message("user", "first\n  prompt"))
    .turn("second")
    .tokens(30, 5)
    .raw(b"{broken")
    .item("telepathy", x=1)
    .item("web_search_call", action={})
    .turn("third")
)


def test_the_facts() -> None:
    facts = scan(BUSY.data)

    assert ("codex", THREAD, "first prompt") == (facts.runtime, facts.session, facts.title)
    assert Prompts(human=3, injected=1, tool_result=1) == facts.tally.prompts
    assert {"f": 1, "web_search": 1} == facts.tally.tools
    assert (len(BUSY.lines), 2, 8, 1) == (facts.records, facts.opaque, facts.messages, facts.tally.compactions)
    assert facts.started is not None and facts.ended is not None and facts.started < facts.ended
    assert list(facts.deltas) == split(BUSY.data)


def test_the_facts_are_those_the_events_tell() -> None:
    facts, events = scan(BUSY.data), read(BUSY.data)

    told = stats(events)

    assert told == facts.tally.figures()
    assert facts.messages == told.prompts.human + told.prompts.injected + told.responses
    assert facts.opaque == sum(isinstance(event, Output) and bool(event.why) for event in events)
    assert facts.records == len({event.message_id for event in events})


def test_what_merely_came_along_with_a_prompt_is_no_message() -> None:
    along = message("user", "part 1", "part 2")
    along["internal_chat_message_metadata_passthrough"] = {"content_item_kinds": ["harken.attachment:files"] * 2}
    data = Rollout().turn("first", ("response_item", along)).data

    facts = scan(data)

    assert {} == facts.tally.origins
    assert stats(read(data)) == facts.tally.figures()
    assert 2 == facts.messages


@settings(max_examples=60, deadline=None)
@given(stops=st.lists(st.integers(0, len(BUSY.data)), max_size=4))
def test_a_grown_file_costs_its_new_bytes_and_ends_with_the_same_facts(stops: list[int]) -> None:
    data = BUSY.data
    whole = scan(data)
    state, offset, deltas, requests = b"", 0, list[Delta](), {}

    for stop in [*sorted(stops), len(data)]:
        facts = scan(data[offset : max(stop, offset)], state)
        deltas += [delta for delta in facts.deltas if delta.closed]
        requests |= facts.tally.requests
        state, offset = facts.state, facts.offset

    assert [delta for delta in whole.deltas if delta.closed] == deltas
    assert whole.tally == msgspec.structs.replace(facts.tally, requests=requests)
    for name in ("session", "title", "records", "opaque", "messages", "fingerprint"):
        assert getattr(whole, name) == getattr(facts, name), name


@pytest.mark.parametrize("bad", ["0000-00-02T00:00:00.000Z", "2026-02-30T00:00:00.000Z", "\x00026-01-02T00:00:00.000Z"])
def test_a_stamp_that_names_no_instant_hides_no_other(bad: str) -> None:
    data = Rollout().turn("one").turn("two").data.replace(b"2026-01-02T00:00:03.000Z", bad.encode(), 1)
    told, facts = stats(read(data)), scan(data)

    assert bad.encode() in data
    assert (told.started, told.ended) == (facts.tally.started, facts.tally.ended)


def test_a_state_nobody_understands_is_refused() -> None:
    with pytest.raises(BadRequest):
        scan(b"", b'{"rule":"cut-9"}')


def test_a_copy_under_another_thread_has_the_same_fingerprint() -> None:
    copy = Rollout(id="019b88e5-a2e4-7b90-8953-000000000000", forked_from_id=THREAD)
    for line in BUSY.lines[1:]:
        copy.raw(line.replace(b"2026-01-02T00:0", b"2026-05-05T05:0"))

    original, fork = scan(BUSY.data), scan(copy.data)

    assert original.fingerprint == fork.fingerprint
    assert (THREAD, "") == (fork.forked_from, original.forked_from)
    assert set(record_names(BUSY.data)) == set(record_names(copy.data))
    assert original.fingerprint[0] in set(record_names(BUSY.data))


def test_a_sub_agents_thread_names_its_parent() -> None:
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": "p", "depth": 1}}}

    by_source = scan(Rollout(source=spawn).user("look").data)
    by_field = scan(Rollout(parent_thread_id="q", agent_nickname="Ada", session_id="q").user("look").data)

    assert [("p", True), ("q", True)] == [(facts.parent, facts.sidechain) for facts in (by_source, by_field)]
    assert (("Ada",), Prompts(injected=1)) == (by_field.agents, by_field.tally.prompts)
    assert THREAD == by_field.session


def test_a_parent_knows_which_call_started_which_thread() -> None:
    item = {"type": "CollabAgentToolCall", "id": "c8", "tool": "spawn_agent", "receiver_thread_ids": ["younger"]}
    rollout = Rollout().event("collab_agent_spawn_end", call_id="c7", new_thread_id="child")
    rollout.event("item_completed", item=item).event("item_completed", item={**item, "tool": "wait", "id": "c9"})

    assert {"child": "c7", "younger": "c8"} == scan(rollout.data).calls


@pytest.mark.parametrize("wrapped", [str, lambda text: {"content": text}, lambda text: said("user", text)["content"]])
def test_the_output_of_a_spawn_names_the_thread_where_no_event_does(wrapped: Callable[[str], object]) -> None:
    """#35: Codex writes no event of it in a file without `history_mode`."""
    rollout = Rollout().call("c7", "spawn_agent").call("c8", "shell")
    rollout.output("c8", wrapped('{"agent_id":"not this"}')).output(
        "c7", wrapped('{"agent_id":"child","nickname":"Ada"}')
    )

    assert {"child": "c7"} == scan(rollout.data).calls


@pytest.mark.parametrize(
    "output", ["no more agents", "[1]", '{"agent_id":7}', '{"agent_id":"\\ud800"}', "[" * 9999, None]
)
def test_a_spawn_that_failed_names_no_thread(output: object) -> None:
    assert {} == scan(Rollout().call("c7", "spawn_agent").output("c7", output).data).calls


def test_a_thread_that_an_event_and_an_output_name_is_there_once() -> None:
    rollout = Rollout().call("c7", "spawn_agent")
    rollout.event("collab_agent_spawn_end", call_id="c7", new_thread_id="child").output("c7", '{"agent_id":"child"}')

    assert {"child": "c7"} == scan(rollout.data).calls


def test_the_output_of_a_spawn_is_known_behind_a_cut() -> None:
    begun = Rollout().turn("a").call("c7", "spawn_agent").turn("b")
    state = scan(begun.data)
    whole = begun.output("c7", '{"agent_id":"child"}').data

    assert 0 < state.offset and {} == state.calls
    assert {"child": "c7"} == scan(whole[state.offset :], state.state).calls


def test_the_first_session_meta_is_the_files_own() -> None:
    facts = scan(Rollout().turn("a").meta(id="other", cwd="/elsewhere").data)

    assert THREAD == facts.session


@pytest.mark.parametrize(
    ("typed", "title"),
    [
        ("# Context from my IDE setup:\n## Open tabs\n- x\n## My request for Codex:\nfix it\n", "fix it"),
        ("a\n b\tc", "a b c"),
        ("x" * 500, "x" * 200),
    ],
)
def test_the_title_is_what_the_person_asked_for(typed: str, title: str) -> None:
    assert title == scan(Rollout().user(typed).event("user_message", message=typed).data).title


def test_a_title_somebody_chose_stands() -> None:
    assert "My thread" == scan(Rollout().turn("a").event("thread_name_updated", thread_name="My thread").data).title
