"""Who made whom: the tree of a session's agents, from the links between its events alone."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harken.context import session_events
from harken.events import AgentCreated, Event, Metric, PieceOfText, Prompt, Response, System, ToolCall, ToolResult
from harken.formats.std.checking.rules import validate
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.exporting.spawning import session_tree
from harken.repo.looking import in_store_of_its_own
from support.recordings import FOLDER

MAIN = AgentCreated(message_id="m0", agent_id="main", name="Main", role="root", time=1)
CALL = ToolCall(
    message_id="m1", agent_id="main", time=2, id="c1", name="Agent",
    input=b'{"subagent_type": "looker", "prompt": "Look around."}',
)  # fmt: skip
MADE = AgentCreated(message_id="s0", agent_id="sub", name="Sub", cause="m1", role="child", time=3)
TASK = Prompt(message_id="s1", agent_id="sub", time=3, content="Look around.", source="injected", cause="m1")
WORDS = Response(message_id="s2", agent_id="sub", time=4, content="All quiet.")


def result(text: str = "All quiet.", *, time: int = 5, **more: object) -> ToolResult:
    fields = {"message_id": "m2", "agent_id": "main", "time": time, "id": "c1", "output": text} | more
    return ToolResult(**fields)  # type: ignore[arg-type]


def notice(status: str = "completed", **more: object) -> Prompt:
    words = f"<task-notification><tool-use-id>c1</tool-use-id><status>{status}</status></task-notification>"
    fields = {"message_id": "m9", "agent_id": "main", "time": 9, "content": words, "source": "injected"} | more
    return Prompt(origin="task_notification", **fields)  # type: ignore[arg-type]


def test_an_agent_that_is_waited_for_ends_with_the_result_of_its_call() -> None:
    answer = result(substance="s2")

    tree = session_tree([MAIN, CALL, MADE, TASK, WORDS, answer])

    agent = tree.agents["sub"]
    assert ("main", ["sub"]) == (tree.main, list(tree.agents))
    assert (CALL, answer, TASK, None) == (agent.call, agent.result, agent.task, agent.notice)
    assert ("Sub", "looker", "main", 3, 5) == (agent.name, agent.agent_type, agent.parent, agent.started, agent.ended)
    assert (True, False, False) == (agent.finished, agent.failed, agent.launched)
    assert [MADE, TASK, WORDS] == tree.own("sub") == agent.events
    assert [MAIN, CALL, answer] == tree.own("main")
    assert [agent] == tree.made_by(CALL)


def test_an_agent_in_the_background_ends_with_its_notice() -> None:
    came = notice(cause=("s2",))

    agent = session_tree([MAIN, CALL, result("launched"), MADE, TASK, WORDS, came]).agents["sub"]

    assert (True, came, 9) == (agent.launched, agent.notice, agent.ended)
    assert (True, False) == (agent.finished, agent.failed)


def test_a_notice_without_words_is_known_by_the_call_that_it_names() -> None:
    came = notice("failed")

    agent = session_tree([MAIN, CALL, result("launched"), MADE, TASK, came]).agents["sub"]

    assert (came, True, True) == (agent.notice, agent.finished, agent.failed)


def test_an_agent_in_the_background_that_was_not_heard_of_again_has_ended_where_it_has_said_something_last() -> None:
    launch = [MAIN, CALL, result("launched"), MADE, TASK]
    work = ToolCall(message_id="s9", agent_id="sub", time=8, id="c9", name="Read")

    done, open_ = (session_tree([*launch, *more]).agents["sub"] for more in ([WORDS], [WORDS, work]))

    assert (True, True, None, 4) == (done.launched, done.finished, done.notice, done.ended)
    assert (True, False, None, 8) == (open_.launched, open_.finished, open_.notice, open_.ended)


def test_what_is_only_noted_of_an_agent_after_its_result_is_no_work() -> None:
    noted = System(message_id="s8", agent_id="sub", time=8, subtype="recorded_message")

    agent = session_tree([MAIN, CALL, MADE, TASK, WORDS, result("All quiet."), noted]).agents["sub"]

    assert (False, True, None) == (agent.launched, agent.finished, agent.notice)


def test_a_result_that_is_an_error_is_a_failure() -> None:
    agent = session_tree([MAIN, CALL, MADE, TASK, result("stopped", is_error=True)]).agents["sub"]

    assert (True, True, False) == (agent.failed, agent.finished, agent.launched)


def test_an_agent_that_is_told_that_its_call_failed_does_not_go_on() -> None:
    told = Prompt(message_id="s8", agent_id="sub", time=6, content="Stop.", source="injected", origin="agent")

    agent = session_tree([MAIN, CALL, MADE, TASK, result("stopped", is_error=True), told]).agents["sub"]

    assert (True, True, False) == (agent.finished, agent.failed, agent.launched)


def test_an_agent_that_says_something_after_its_call_failed_has_failed() -> None:
    said = Response(message_id="s8", agent_id="sub", time=6, content="Not done.")

    agent = session_tree([MAIN, CALL, MADE, TASK, result("the machine went down", is_error=True), said]).agents["sub"]

    assert (True, True, False) == (agent.finished, agent.failed, agent.launched)


def test_what_another_agent_hears_is_no_notice() -> None:
    beside = AgentCreated(message_id="t0", agent_id="beside", cause="m1", role="child", time=3)
    heard = Prompt(message_id="t1", agent_id="beside", content="[Sub]: All quiet.", source="injected", substance="s2")

    assert [] == session_tree([MAIN, CALL, MADE, TASK, beside, WORDS, heard]).agents["sub"].notices


def test_an_agent_may_be_made_by_one_that_was_made() -> None:
    inner = ToolCall(message_id="s3", agent_id="sub", id="c2", name="Agent", input=b'{"prompt": "Deeper."}')
    made = AgentCreated(message_id="d0", agent_id="deep", cause="s3", role="child")

    tree = session_tree([MAIN, CALL, MADE, TASK, inner, made])

    assert {"sub": "main", "deep": "sub"} == {agent.agent_id: agent.parent for agent in tree.agents.values()}
    assert inner == tree.agents["deep"].call


def test_calls_in_one_record_that_tell_nothing_made_an_agent_each() -> None:
    calls = [ToolCall(message_id="m1", agent_id="main", index=n, id=f"c{n}", name="task") for n in range(3)]
    made = [AgentCreated(message_id=f"a{n}", agent_id=f"a{n}", cause="m1", role="child") for n in range(3)]

    tree = session_tree([MAIN, *calls, *made])

    assert ["c0", "c1", "c2"] == [agent.call.id for agent in tree.agents.values() if agent.call]


@pytest.mark.parametrize("by_name", [True, False])
def test_of_several_calls_in_one_record_the_right_one_made_an_agent(by_name: bool) -> None:
    calls = [
        ToolCall(message_id="m1", agent_id="main", index=n, id=f"c{n}", name="task", input=b'{"prompt": "Do %d."}' % n)
        for n in range(3)
    ]
    made: list[Event] = []
    for n in (2, 0, 1):
        named = b'{"call_id": "c%d"}' % n if by_name else b""
        made.append(AgentCreated(message_id=f"a{n}", agent_id=f"a{n}", cause="m1", role="child", attributes=named))
        made.append(Prompt(message_id=f"p{n}", agent_id=f"a{n}", content="" if by_name else f"Do {n}.", cause="m1"))

    tree = session_tree([MAIN, *calls, *made])

    assert {"a2": "c2", "a0": "c0", "a1": "c1"} == {a.agent_id: a.call.id for a in tree.agents.values() if a.call}


def test_a_call_without_an_id_may_make_an_agent() -> None:
    call = CALL.replace(id="")

    tree = session_tree([MAIN, call, MADE, TASK])

    assert [tree.agents["sub"]] == tree.made_by(call)


def test_an_agent_that_the_program_made_has_no_call() -> None:
    hook = AgentCreated(message_id="h0", agent_id="hook", name="Guard", cause="m0", role="hook")
    asked = Prompt(message_id="h1", agent_id="hook", content="May it?", source="injected", point="tool")

    agent = session_tree([MAIN, hook, asked]).agents["hook"]

    assert (None, "main", "hook", None) == (agent.call, agent.parent, agent.agent_type, agent.task)
    assert agent.is_hook


def test_what_a_hook_refuses_is_not_its_own_failure() -> None:
    hook = AgentCreated(message_id="h0", agent_id="hook", name="Guard", cause="m0", role="hook", time=1)
    said = Response(message_id="h1", agent_id="hook", content="DENY. No.", time=3)
    refused = result("Error: No.", is_error=True, cause=("h1",))

    agent = session_tree([MAIN, hook, CALL, said, refused]).agents["hook"]

    assert ([], False, True) == (agent.notices, agent.failed, agent.finished)


def test_words_for_others_that_a_call_made_are_the_task() -> None:
    piece = PieceOfText(message_id="m5", agent_id="main", cause="m1", content="Look around.")
    earlier = Prompt(message_id="s5", agent_id="sub", content="Be kind.", source="injected")
    given = Prompt(message_id="s6", agent_id="sub", content="Look around.", source="injected", substance="m5")

    assert given == session_tree([MAIN, CALL, MADE, earlier, piece, given]).agents["sub"].task


def test_agents_that_made_each_other_hang_from_the_main_one() -> None:
    one = AgentCreated(message_id="x0", agent_id="x", parent="y", role="child")
    other = AgentCreated(message_id="y0", agent_id="y", parent="x", role="child")

    tree = session_tree([MAIN, one, other])

    assert "main" in {agent.parent for agent in tree.agents.values()}


def test_of_agents_that_called_each_other_one_was_made_by_no_call() -> None:
    ask = {"name": "Task", "input": b'{"prompt": "Look."}'}
    events = [
        MAIN,
        AgentCreated(message_id="x0", agent_id="x", cause="y1", role="child"),
        ToolCall(message_id="x1", agent_id="x", id="c-x", **ask),
        AgentCreated(message_id="y0", agent_id="y", cause="x1", role="child"),
        ToolCall(message_id="y1", agent_id="y", id="c-y", **ask),
    ]

    tree, document = session_tree(events), document_of(events, SessionFacts(title="Two"), "std-008").document

    assert [("main", None), ("x", "c-x")] == [(one.parent, one.call and one.call.id) for one in tree.agents.values()]
    assert [] == [one for one in validate(document) if one.level == "error"]


def test_a_stream_names_an_agent_after_its_call() -> None:
    call, said = CALL.replace(agent_id=""), WORDS.replace(agent_id="c1")

    tree = session_tree([call, said, result(agent_id="")])

    assert ("", call, "looker") == (tree.main, tree.agents["c1"].call, tree.agents["c1"].agent_type)


def test_an_agent_whose_own_file_is_gone_is_known_by_the_result_that_names_it() -> None:
    used = Metric(message_id="m7", agent_id="a9a05d4", time=4, output_tokens=5, scope="embedded")
    other = CALL.replace(message_id="m8", id="c8", input=b'{"prompt": "Something else."}')
    answer = result("All quiet.\nagentId: a9a05d4 (for resuming)")

    agent = session_tree([MAIN, other, CALL, used, answer]).agents["a9a05d4"]

    assert (CALL, answer, "looker", "main") == (agent.call, agent.result, agent.agent_type, agent.parent)
    assert (True, False, 5) == (agent.finished, agent.launched, agent.ended)


def test_an_agent_that_nothing_names_was_made_by_the_call_with_its_words() -> None:
    made, task = MADE.replace(cause=None), TASK.replace(cause=None)
    other = CALL.replace(message_id="m8", id="c8", input=b'{"subagent_type": "x", "prompt": "Something else."}')

    agent = session_tree([MAIN, other, CALL, made, task]).agents["sub"]

    assert (CALL, False) == (agent.call, agent.is_call_told)


def test_an_agent_that_nothing_names_was_made_by_the_only_call_for_one_that_is_open() -> None:
    used = Metric(message_id="m7", agent_id="a9a05d4", time=4, output_tokens=5, scope="embedded")
    other = CALL.replace(message_id="m8", id="c8")
    answered = ToolResult(message_id="m9", agent_id="main", id="c8", output="done")

    agent = session_tree([MAIN, other, answered, CALL, used]).agents["a9a05d4"]
    unclear = session_tree([MAIN, other, CALL, used]).agents["a9a05d4"]

    assert (CALL, False, False) == (agent.call, agent.is_call_told, agent.finished)
    assert unclear.call is None


def test_a_call_made_only_one_of_two_agents_that_nothing_names() -> None:
    used = [Metric(message_id=f"m{n}", agent_id=f"a{n}", time=4, scope="embedded") for n in (7, 8)]

    assert [CALL, None] == [one.call for one in session_tree([MAIN, CALL, *used]).agents.values()]


def test_a_type_may_stand_at_the_head_of_the_agents_own_file() -> None:
    told = b'{"source": {"subagent": {"thread_spawn": {"agent_role": "explorer"}}}}'
    head = System(message_id="s1", agent_id="sub", subtype="init", metadata=told)
    call = CALL.replace(input=b'{"message": "Look."}')

    other = System(message_id="s2", agent_id="sub", subtype="instructions", metadata=b'{"role": "developer"}')

    assert "explorer" == session_tree([MAIN, call, MADE, other, head]).agents["sub"].agent_type
    assert "" == session_tree([MAIN, call, MADE, other]).agents["sub"].agent_type


def test_agents_are_numbered_and_have_a_type_in_a_document() -> None:
    plain = AgentCreated(message_id="t0", agent_id="other", role="child")

    tree = session_tree([MAIN, CALL, MADE, plain])

    assert [("sub-001", "task-001"), ("sub-002", "task-002")] == [
        (agent.sub_session_id, agent.task_id) for agent in tree.agents.values()
    ]
    assert ["architect", "looker", "agent"] == [
        tree.identifier(agent)["agent_type"] for agent in ("main", "sub", "other")
    ]
    assert "main" == session_tree([Prompt(content="hi")]).identifier("")["agent_id"]


def test_a_session_without_agents_or_events_has_a_tree() -> None:
    assert ("", {}) == (session_tree([]).main, session_tree([]).agents)
    assert ("", {}) == (session_tree([Prompt(content="hi")]).main, session_tree([Prompt(content="hi")]).agents)


def test_recorded_agents_in_parallel_and_in_the_background() -> None:
    (path,) = Path(FOLDER, "claude-code-2.1.325/parallel-agents/projects").glob("*/*.jsonl")
    with in_store_of_its_own(path) as found:
        assert found is not None
        tree = session_tree(session_events(*found))

    told = [(one.agent_type, one.launched, one.finished, one.call.id) for one in tree.agents.values() if one.call]
    assert [
        ("looker", False, True, "toolu_000002"),
        ("looker", False, True, "toolu_000003"),
        ("late", True, True, "toolu_000016"),
    ] == told
    assert [None, None, "task_notification"] == [getattr(one.notice, "origin", None) for one in tree.agents.values()]
    assert "SUB-ONE: look around" == getattr(next(iter(tree.agents.values())).task, "content", "")


class TestAnAgentOfWhichOnlyTheCallIsKept:
    def test_is_told_by_its_call_and_its_answer(self) -> None:
        answer = result("All quiet.\nagentId: a1b2 (for resuming)")

        tree = session_tree([MAIN, CALL, answer])

        agent = tree.agents["a1b2"]
        assert (CALL, answer, [], False) == (agent.call, agent.result, agent.events, agent.is_recorded)
        assert ("looker", "main", 2, 5) == (agent.agent_type, agent.parent, agent.started, agent.ended)
        assert (True, False) == (agent.finished, agent.failed)
        assert [agent] == tree.made_by(CALL)

    def test_is_called_as_its_call_where_nothing_names_it(self) -> None:
        assert ["c1"] == list(session_tree([MAIN, CALL, result()]).agents)

    @pytest.mark.parametrize(
        "answer",
        [
            result("no such type", is_error=True),
            result("Async agent launched successfully."),
            result('{"agent_id": "a1b2"}'),
        ],
    )
    def test_is_none_where_the_call_failed_or_only_launched(self, answer: ToolResult) -> None:
        assert {} == session_tree([MAIN, CALL, answer]).agents

    def test_is_none_where_there_is_no_answer_or_another_tool_was_called(self) -> None:
        other = msgspec.structs.replace(CALL, name="Read")
        assert {} == session_tree([MAIN, CALL]).agents
        assert {} == session_tree([MAIN, other, result()]).agents

    def test_is_none_where_the_call_goes_on_with_one_that_is_there(self) -> None:
        again = msgspec.structs.replace(CALL, message_id="m5", id="c5", input=b'{"resume": "sub", "prompt": "On."}')
        by_call = result("Done.", id="c5", message_id="m6", time=9)
        by_result = result("Done.\nagentId: sub", id="c5", message_id="m6", time=9)
        whole = [MAIN, CALL, MADE, TASK, WORDS, result(substance="s2")]
        fresh = msgspec.structs.replace(again, input=b"{}")
        for events in ([again, by_call], [fresh, by_result]):
            assert ["sub"] == list(session_tree([*whole, *events]).agents)

    def test_is_none_where_an_agent_is_there_that_no_call_names(self) -> None:
        heard_of = Metric(message_id="x", agent_id="sub", time=4, scope="agent")
        assert ["sub"] == list(session_tree([MAIN, CALL, result(), heard_of]).agents)

    def test_has_a_sub_session_and_messages(self) -> None:
        second = msgspec.structs.replace(CALL, message_id="m5", id="c5", time=6)
        answers = [result(), result("Still quiet.", id="c5", message_id="m6", time=9)]
        events: list[Event] = [MAIN, CALL, answers[0], second, answers[1]]

        made = document_of(events, SessionFacts(title="Two looks"))

        data = made.document.data
        assert ("std-008", []) == (made.document.kind, [one for one in validate(made.document) if one.level == "error"])
        assert ["c1", "c5"] == [sub["triggered_by_call_id"] for sub in data["sub_sessions"]]
        assert ["All quiet.", "Still quiet."] == [sub["output"]["summary"] for sub in data["sub_sessions"]]
        assert ["task_assignment", "task_completion"] * 2 == [one["message_type"] for one in data["messages"]]
        assert "tool_calls[0].subagent_info.tool_uses" in made.derived
        assert "tokens_used" not in data["tool_calls"][0]["subagent_info"]

    def test_used_nobody_knows_how_many_tokens_also_when_it_was_imported(self) -> None:
        created = AgentCreated(message_id="sub:created", agent_id="sub", role="child", time=3, cause=CALL.message_id)

        made = document_of([MAIN, CALL, created, result()], SessionFacts(title="One look"))

        assert "tokens_used" not in made.document.data["tool_calls"][0]["subagent_info"]

    def test_makes_a_single_agent_document_with_what_is_known_of_it(self) -> None:
        made = document_of([MAIN, CALL, result()], SessionFacts(title="One look"))

        info = {"subagent_type": "looker", "tool_uses": 0}
        assert ("std-001", info) == (made.document.kind, made.document.data["tool_calls"][0]["subagent_info"])


def test_a_call_that_made_an_agent_is_not_that_of_another_which_nothing_names() -> None:
    first = AgentCreated(message_id="o0", agent_id="other", name="Other", role="child", time=2)
    heard = Prompt(message_id="o1", agent_id="other", time=2, content="Wait.", source="injected")

    tree = session_tree([MAIN, first, heard, CALL, MADE, TASK])

    assert (None, CALL) == (tree.agents["other"].call, tree.agents["sub"].call)


def test_who_is_only_listed_was_made_by_no_call() -> None:
    listed = AgentCreated(message_id="o0", agent_id="other", name="Other", role="child")

    tree = session_tree([MAIN, listed, CALL])

    assert tree.agents["other"].call is None


def test_what_a_program_asked_for_itself_is_the_sessions_use_and_no_agent() -> None:
    used = Metric(message_id="t1", agent_id="memory-extractor-1", time=6, input_tokens=60, output_tokens=7)
    events: list[Event] = [MAIN, CALL, MADE, TASK, WORDS, result(substance="s2"), used]

    tree = session_tree(events)

    assert ["sub"] == list(tree.agents)
    assert used in tree.own("main")
    made = document_of(events, SessionFacts(session="s", title="t"))
    assert 1 == made.agents
    assert ["Task"] == [call["tool_name"] for call in made.document.data["tool_calls"]]


def test_one_that_a_call_made_is_an_agent_though_only_its_use_is_kept() -> None:
    told = ToolResult(message_id="m2", agent_id="main", time=5, id="c1", output="agentId: a1\nAll quiet.")
    used = Metric(message_id="t1", agent_id="a1", time=6, input_tokens=60, output_tokens=7)

    assert ["a1"] == list(session_tree([MAIN, CALL, told, used]).agents)


def test_an_agent_that_names_such_a_request_as_its_maker_is_the_main_agents() -> None:
    used = Metric(message_id="t1", agent_id="memory-extractor-1", time=6, input_tokens=60, output_tokens=7)
    named = AgentCreated(message_id="s0", agent_id="sub", time=7, parent="memory-extractor-1")
    caused = AgentCreated(message_id="s1", agent_id="other", time=8, cause="t1")

    tree = session_tree([MAIN, used, named, caused])

    assert {"sub": "main", "other": "main"} == {name: agent.parent for name, agent in tree.agents.items()}
