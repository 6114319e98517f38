"""Laws of the views, held against slow and obvious versions of themselves on arbitrary sessions."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.log import Registry
from harken.views import SessionViewer
from harken.views.wording import Differ
from support.viewed import calls, created, entry, long_session, text, viewed, write_log

AGENTS = ("a", "b", "c")
SIZE = 14
NAMES = [f"m{n}" for n in range(SIZE)] + ["outside", "elsewhere"]
WORDS = st.sampled_from(["", "hi", "[a]: hi", "ho", "password 1234"])


@st.composite
def events(draw, message_id):
    agent = draw(st.sampled_from(AGENTS))
    shape = draw(st.sampled_from(["said", "heard", "heard", "received", "system", "action", "text", "created"]))
    link = draw(st.sampled_from(["substance", "substance", "cause", "causes", ""]))
    links = {}
    if link == "causes":
        links = {"cause": draw(st.lists(st.sampled_from(NAMES), max_size=3))}
    elif link:
        links = {link: draw(st.sampled_from(NAMES))}
    words = draw(WORDS)
    match shape:
        case "said" | "heard" | "system":
            role = {"said": "assistant", "heard": "user", "system": "system"}[shape]
            return entry(message_id, agent, role, words, **links)
        case "received":
            return entry(message_id, agent, "tool", words, tool_call_id=draw(st.sampled_from(["c1", "c2"])), **links)
        case "action":
            return entry(message_id, agent, "assistant", words, tool_calls=calls(("c1", "f"), ("c2", "g")))
        case "text":
            return text(message_id, agent, words, links.get("cause", "outside"))
    return created(message_id, agent, name=agent.upper(), **{key: links[key] for key in links if key == "cause"})


@st.composite
def sessions(draw):
    return [draw(events(f"m{n}")) for n in range(draw(st.integers(1, SIZE)))]


DIRT = [b"", b"not json", b"[1, 2]", b'{"message_id": "torn', b'{"agent_id":"a","x":"\xff"}']
ODD = [None, 7, 1.5, True, "", "x", [], ["x"], [None, 3], {}, {"text": "x"}, [{"text": "x"}], 10**30, "\ud800"]
ODD_FIELDS = ("event_type", "agent_id", "content", "tool_calls", "tool_call_id", "cause", "timestamp", "thinking")


@st.composite
def dirty_logs(draw):
    """A log as bytes: lines with a field of any type, and between them what is no object at all."""
    lines = []
    for event in draw(sessions()):
        if draw(st.integers(0, 3)) == 0:
            event = event | {draw(st.sampled_from(ODD_FIELDS)): draw(st.sampled_from(ODD))}
        lines += [*draw(st.lists(st.sampled_from(DIRT), max_size=1)), json.dumps(event).encode()]
    return b"\n".join(lines) + draw(st.sampled_from([b"", b"\n"]))


def same_content(log):
    """Groups of ids that substance connects, by merging until nothing changes."""
    groups = [{event["message_id"]} | ({event["substance"]} if event.get("substance") else set()) for event in log]
    changed = True
    while changed:
        changed = False
        for one in groups:
            for other in groups:
                if one is not other and one & other:
                    one |= other
                    groups.remove(other)
                    changed = True
                    break
            if changed:
                break
    return groups


def group_of(log, message_id):
    return next(group for group in same_content(log) if message_id in group)


def caused(event):
    """The ids of what caused an event."""
    cause = event.get("cause")
    return set(cause) if isinstance(cause, list) else {cause} - {None}


def is_dialog(event):
    if event["event_type"] != "transcript_entry" or not event.get("content"):
        return False
    return event["role"] == "user" or (event["role"] == "assistant" and not event.get("tool_calls"))


def chosen_events(log, agents):
    return [event for event in log if event["agent_id"] in agents and is_dialog(event)]


known = settings(max_examples=100, deadline=None)
selections = st.lists(st.sampled_from(AGENTS), unique=True)


def select(viewer, agents):
    return [agent for agent in agents if agent in viewer.list_agents()]


@known
@given(sessions(), selections)
def test_the_dialog_has_each_content_exactly_once(log, wanted):
    viewer = viewed(log)
    agents = select(viewer, wanted)
    told = {event["message_id"] for event in chosen_events(log, agents)}
    expected = sum(1 for group in same_content(log) if group & told)

    dialog = viewer.extract_dialog(agents)

    assert expected == len(dialog) == len({line["message_id"] for line in dialog})
    assert all(group_of(log, line["message_id"]) & told for line in dialog)


@known
@given(sessions(), selections)
def test_the_dialog_is_made_of_texts_in_the_file_and_in_its_order(log, wanted):
    viewer = viewed(log)
    by_id = {event["message_id"]: event for event in log}
    places = {event["message_id"]: place for place, event in enumerate(log)}

    dialog = viewer.extract_dialog(select(viewer, wanted))

    for line in dialog:
        group = group_of(log, line["message_id"])
        assert line["content"] in {by_id[one]["content"] for one in group if by_id.get(one, {}).get("content")}
    in_file = [places[line["message_id"]] for line in dialog if line["message_id"] in places]
    assert sorted(in_file) == in_file


@known
@given(sessions(), st.sampled_from(NAMES))
def test_who_heard_equals_a_search_through_the_whole_file(log, message_id):
    viewer = viewed(log)
    if viewer.index.find(message_id) is None:
        return
    group = group_of(log, message_id)
    # A result that the content caused was put together from it; a call and an agent's beginning are no content.
    there = group & {event["message_id"] for event in log}
    root = viewer._content(message_id)
    is_content = root < 0 or viewer.index.kinds[root] not in ("action", "created")
    expected = [
        event["message_id"]
        for event in log
        if event["event_type"] == "transcript_entry"
        and (
            (event["message_id"] in group and event["role"] == "user")
            or (
                event["message_id"] in group
                and event["role"] != "assistant"
                and event.get("substance") not in (None, event["message_id"])
            )
            or (event["message_id"] not in group and is_content and event["role"] == "tool" and caused(event) & there)
        )
    ]

    heard = viewer.who_heard(message_id)

    assert sorted(expected) == sorted(one["message_id"] for one in heard)
    assert all(
        one["agent_id"] == next(e for e in log if e["message_id"] == one["message_id"])["agent_id"] for one in heard
    )


def call_of(log, message_id):
    """The call that a result answers: the last before it with the id, of the same agent if there is one."""
    place, result = next(
        ((at, event) for at, event in enumerate(log) if event["message_id"] == message_id), (0, dict[str, str]())
    )
    if result.get("role") != "tool":
        return []
    made = [event for event in log[:place] if event.get("tool_calls")]
    own = [event for event in made if event["agent_id"] == result["agent_id"]]
    return [event["message_id"] for event in (own or made)[-1:]]


@known
@given(sessions(), st.sampled_from(NAMES))
def test_a_trace_is_everything_reachable_by_the_causality_index_and_from_an_answer_to_its_call(log, message_id):
    viewer = viewed(log)
    if message_id not in {event["message_id"] for event in log}:
        return
    index = viewer.build_causality_index()
    reached, pending = set(), [message_id]
    while pending:
        one = pending.pop()
        if one not in reached:
            reached.add(one)
            links = index.get(one, [])
            pending += links if isinstance(links, list) else [links]
            pending += call_of(log, one)

    traced = [event["message_id"] for event in viewer.trace_message_flow(message_id)]

    assert [event["message_id"] for event in log if event["message_id"] in reached] == traced


@known
@given(sessions(), st.sampled_from(AGENTS), st.sampled_from(NAMES), st.integers(0, SIZE - 1))
def test_knowing_never_ends_and_begins_with_the_entry_that_is_named(log, agent, message_id, place):
    viewer = viewed(log)
    if agent not in viewer.list_agents() or viewer.index.find(message_id) is None:
        return
    later = viewer.knows(agent, message_id)
    at = f"m{min(place, len(log) - 1)}"

    then = viewer.knows(agent, message_id, at=at)

    reached = later["knows"] and int(str(later["message_id"])[1:]) <= int(at[1:])
    assert reached == then["knows"]
    assert not then["knows"] or then == later


@known
@given(sessions(), st.sampled_from(AGENTS))
def test_hearing_a_content_again_adds_nothing_to_the_dialog(log, agent):
    viewer = viewed(log)
    if agent not in viewer.list_agents():
        return
    before = viewer.extract_dialog([agent])
    again = [entry(f"n{n}", agent, "user", "again", substance=line["message_id"]) for n, line in enumerate(before)]

    assert before == viewed([*log, *again]).extract_dialog([agent])


@known
@given(sessions())
def test_every_agent_is_in_the_tree_once_and_below_its_parent(log):
    viewer = viewed(log)
    rows = viewer.agent_tree()
    depths = {row["agent_id"]: row["depth"] for row in rows}

    assert sorted(viewer.list_agents()) == sorted(row["agent_id"] for row in rows)
    assert all(depths[row["parent"]] == row["depth"] - 1 for row in rows if row["depth"] and row["parent"])


@known
@given(st.text(alphabet="ab .\n", max_size=40), st.text(alphabet="ab .\n", max_size=40))
def test_a_comparison_gives_back_both_texts(said, heard):
    pieces = Differ().compare(said, heard)

    assert said == "".join(piece["text"] for piece in pieces if piece["op"] != "added")
    assert heard == "".join(piece["text"] for piece in pieces if piece["op"] != "removed")


@pytest.mark.parametrize("changed", ["ho", "[b]: hi", "hi "])
def test_a_change_is_an_intervention_and_a_label_is_not(changed):
    log = [
        created("m0", "a", name="Ann"),
        entry("m1", "a", "assistant", "hi"),
        entry("m2", "b", "user", "[Ann]: hi", substance="m1"),
        entry("m3", "b", "user", "hi", substance="m1"),
        entry("m4", "b", "user", changed, substance="m1"),
    ]

    assert ["m4"] == [one["message_id"] for one in viewed(log).interventions()]


def disguised(log):
    """The same session with every tool under another name and with other arguments."""
    masks = [{"name": "whisper", "arguments": "\x00{"}, {"arguments": None}, {"name": 7}, {"arguments": {"to": "b"}}]
    found = []
    for n, event in enumerate(log):
        if event.get("tool_calls"):
            mask = masks[n % len(masks)]
            event = event | {"tool_calls": [{"id": call["id"], "function": mask} for call in event["tool_calls"]]}
        found.append(event)
    return found


@known
@given(sessions())
def test_no_view_depends_on_which_tools_were_used(log):
    plain, masked = viewed(log), viewed(disguised(log))
    agents = list(plain.list_agents())

    assert plain.extract_dialog(agents) == masked.extract_dialog(agents)
    assert plain.build_causality_index() == masked.build_causality_index()
    assert plain.flow() == masked.flow()
    assert plain.agent_tree() == masked.agent_tree()
    assert plain.interventions() == masked.interventions()


@known
@given(sessions(), selections)
def test_the_sequence_is_the_flow_with_the_deliveries_counted_by_agent(log, wanted):
    viewer = viewed(log)
    for agents in (None, select(viewer, wanted)):
        expected = [
            {
                "message_id": one["message_id"],
                "time": one["time"],
                "speaker": one["agent_id"],
                "source": one["source"],
                "hearers": list(dict.fromkeys(heard["agent_id"] for heard in one["heard"])),
                "returned": list(dict.fromkeys(result["agent_id"] for result in one["results"])),
                "content": one["content"],
                "changed": list(dict.fromkeys(heard["agent_id"] for heard in one["heard"] if heard["changed"])),
            }
            for one in viewer.flow()
            if agents is None or {one["agent_id"], *(heard["agent_id"] for heard in one["heard"])} & set(agents)
        ]

        assert expected == viewer.sequence(agents)


def test_the_sequence_takes_less_than_the_flow_it_is_a_summary_of():
    viewer = viewed(long_session(2000))

    def peak(view):
        tracemalloc.start()
        try:
            assert view()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(viewer.sequence) < peak(viewer.flow)


@known
@given(sessions())
def test_the_tree_is_that_of_the_session_itself(log):
    registry = Registry()
    for _ in registry.fold_lines(log):
        pass

    tree = {row["agent_id"]: row["parent"] for row in viewed(log).agent_tree()}

    assert {agent_id: info.parent for agent_id, info in registry.agents.items()}.items() <= tree.items()


@settings(max_examples=30, deadline=None)
@given(sessions())
def test_a_session_from_a_file_looks_like_the_events_themselves(tmp_path_factory, log):
    path = write_log(tmp_path_factory.mktemp("logs") / "log.jsonl", log)
    filed, held = SessionViewer(path), viewed(log)

    assert held.problems == filed.problems
    assert held.timeline() == filed.timeline()
    assert held.flow() == filed.flow()
