"""Files that were damaged or made to hurt: no view hangs, recurses, raises or shows the same content twice."""

from __future__ import annotations

import json
import time

import pytest

from harken.log import Session
from harken.views import SessionViewer
from harken.views.hearing import split_label
from harken.views.index import roots
from harken.views.wording import Differ
from support.viewed import cafe, calls, created, entry, logged, text, viewed, write_log


def every_view(viewer: SessionViewer) -> None:
    """Ask everything; whatever it answers, it has to answer."""
    agents = list(viewer.list_agents())
    viewer.extract_dialog(agents)
    viewer.extract_agent_perspective(agents)
    viewer.perspective(agents, system=True)
    viewer.build_causality_index()
    viewer.interventions()
    viewer.said_vs_heard()
    viewer.agent_tree()
    viewer.timeline()
    viewer.sequence(agents)
    viewer.flow()
    for message_id in viewer.index.ids[:50] + viewer.index.ids[-50:]:
        viewer.trace_message_flow(message_id)
        viewer.trace_content_references(message_id)
        viewer.who_heard(message_id)
        viewer.said_vs_heard(message_id)
        for agent in agents[:3]:
            viewer.knows(agent, message_id)
            viewer.knows(agent, "word")
    for agent in agents:
        viewer.get_transcript(agent)


class TestRoots:
    def test_new_content_is_its_own_root(self):
        assert ([0, 1], [0, 0]) == roots([0, 1])

    def test_a_chain_ends_at_its_beginning_whatever_the_order(self):
        assert ([2, 2, 2], [2, 1, 0]) == roots([1, 2, 2])

    def test_a_circle_belongs_to_its_earliest_member(self):
        assert ([0, 0, 0], [0, 2, 1]) == roots([1, 2, 0])

    def test_a_way_into_a_circle_ends_at_its_earliest_member(self):
        assert ([1, 1, 1], [2, 0, 1]) == roots([2, 2, 1])

    def test_what_is_outside_is_a_root_too(self):
        assert ([-1, -1, -2], [1, 2, 1]) == roots([-1, 0, -2])


class TestLinks:
    def test_a_circle_of_substance_is_one_content(self):
        viewer = viewed(
            [
                entry("a", "x", "user", "one", substance="c"),
                entry("b", "y", "user", "two", substance="a"),
                entry("c", "z", "user", "three", substance="b"),
            ]
        )

        assert [("a", "one")] == [(d["message_id"], d["content"]) for d in viewer.extract_dialog(["x", "y", "z"])]
        assert ["x", "y", "z"] == [heard["agent_id"] for heard in viewer.who_heard("b")]

    def test_a_circle_of_causes_is_traced_once_round(self):
        viewer = viewed([text("a", "x", "one", "b"), text("b", "x", "two", ["a", "b"])])

        assert ["a", "b"] == [event["message_id"] for event in viewer.trace_message_flow("a")]

    def test_a_message_that_repeats_itself_is_itself(self):
        viewer = viewed([entry("a", "x", "assistant", "one", substance="a")])

        assert ["a"] == [line["message_id"] for line in viewer.extract_dialog(["x"])]

    def test_a_link_outside_the_file_groups_those_who_heard_it(self):
        viewer = viewed(
            [
                entry("b", "x", "user", "[Jack]: hi", substance="gone"),
                entry("c", "y", "user", "[Jack]: hi", substance="gone"),
            ]
        )

        assert [{"message_id": "gone", "content": "[Jack]: hi", "agent_id": None}] == viewer.extract_dialog(["x", "y"])
        assert ["x", "y"] == [heard["agent_id"] for heard in viewer.who_heard("gone")]
        assert [] == viewer.trace_message_flow("gone")
        assert "heard" == viewer.knows("y", "gone")["how"]
        assert [] == viewer.interventions()

    def test_ids_that_repeat_are_still_two_contents(self):
        viewer = viewed([entry("a", "x", "assistant", "one"), entry("a", "x", "assistant", "two")])

        assert ["one", "two"] == [line["content"] for line in viewer.extract_dialog(["x"])]

    def test_a_message_on_several_lines_is_known_by_the_line_with_its_words(self):
        viewer = viewed(
            [
                entry("a", "x", "assistant", thinking="hm"),
                entry("a", "x", "assistant", "Hello", index=1),
                entry("b", "y", "user", "[x]: Hello", substance="a"),
            ]
        )

        assert [("a", "Hello")] == [(d["message_id"], d["content"]) for d in viewer.extract_dialog(["x", "y"])]
        assert [] == viewer.interventions()

    def test_a_line_with_both_links_is_reported_and_followed_along_substance(self):
        viewer = logged(
            [
                entry("a", "x", "assistant", "one"),
                entry("b", "x", "assistant", "two"),
                entry("c", "y", "user", "one", substance="a", cause="b"),
            ]
        )

        assert ["a", "c"] == [event["message_id"] for event in viewer.trace_message_flow("c")]
        assert {"c": "a"} == viewer.build_causality_index()
        assert [["a"], []] == [viewer.timeline()[2]["links"], viewer.content_flow("b")["heard"]]
        assert [{"line": 3, "problem": "substance and cause on one line: c"}] == viewer.problems

    def test_parents_in_a_circle_are_all_in_the_tree(self):
        viewer = viewed(
            [created("a", "x", parent="y"), created("b", "y", parent="x"), created("c", "z", parent="nobody")]
        )

        assert {"x", "y", "z"} == {row["agent_id"] for row in viewer.agent_tree()}

    def test_a_result_belongs_to_the_nearest_call_of_its_own_agent(self):
        viewer = viewed(
            [
                entry("a", "x", "assistant", tool_calls=calls(("c1", "f"))),
                entry("b", "y", "assistant", tool_calls=calls(("c1", "f"))),
                entry("c", "x", "tool", "done", tool_call_id="c1"),
                entry("d", "x", "assistant", tool_calls=calls(("c1", "f"))),
                entry("e", "x", "tool", "done", tool_call_id="c1"),
            ]
        )

        assert {"c": "a", "e": "d"} == viewer.build_causality_index()


WRONG = [None, 7, 1.5, True, "", "x", [], ["x"], [None, 3], {}, {"text": "x"}, [{"text": "x"}], [[]], 10**30, "\ud800"]
FIELDS = ("message_id", "event_type", "agent_id", "role", "content", "tool_calls", "tool_call_id", "tool_call")
FIELDS += ("substance", "cause", "timestamp", "name", "parent", "hook", "thinking", "index", "language_model")


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_of_any_type_breaks_no_view(field):
    for wrong in WRONG:
        every_view(viewed([event | {field: wrong} for event in cafe()]))


def test_dirt_in_the_file_is_reported_and_the_rest_is_shown(tmp_path):
    lines = [json.dumps(event) for event in cafe()]
    lines[5:5] = ["not json", "", "[1, 2]", '{"event_type": "from the future", "message_id": "f1", "agent_id": "jack"}']
    path = tmp_path / "dirty.jsonl"
    path.write_text("\n".join(lines) + "\n" + '{"message_id": "torn', encoding="utf-8")

    viewer = SessionViewer(path)

    assert [
        {"line": 6, "problem": "not JSON"},
        {"line": 8, "problem": "not an object"},
        {"line": 9, "problem": "unknown event type: 'from the future'"},
        {"line": len(lines) + 1, "problem": "no newline at the end; not JSON"},
    ] == viewer.problems
    assert ["m11", "m14", "m23"] == [line["message_id"] for line in viewer.extract_dialog(["jack", "jill"])]
    assert "output" in [one["kind"] for one in viewer.timeline("jack")]
    assert "from the future" == viewer.line("f1")["event_type"]
    every_view(viewer)


def test_what_the_report_of_a_session_calls_wrong_is_a_problem_here_too(tmp_path):
    path = write_log(
        tmp_path / "odd.jsonl",
        [
            created("a", "x"),
            entry("b", "x", "user", "one"),
            entry("b", "x", "user", "one again"),
            entry("c", "x", "robot", "two"),
            entry("d", "x", "user", "three", substance="b", cause="a"),
            created("e", "x"),
        ],
    )
    report = Session.load(path, readonly=True).report

    assert ["message id used twice", "unknown role", "substance and cause on one line", "agent created twice"] == [
        problem.what for problem in report
    ]
    for viewer in (SessionViewer(path), logged(Session.load(path, readonly=True).records())):
        assert [(one.line, f"{one.what}: {one.detail}") for one in report] == [
            (one["line"], one["problem"]) for one in viewer.problems
        ]


def test_what_a_file_only_lacks_is_no_problem_of_a_line():
    viewer = viewed([entry("a", "x", "tool", "done", tool_call_id="c", cause="gone"), created("b", "y")])

    assert [] == viewer.problems


def test_problems_without_end_are_counted_and_not_all_told():
    viewer = viewed([created("a", "x")] + [entry("b", "x", "user", "again") for _ in range(3001)])

    assert (3000, 1000) == (viewer.problem_count, len(viewer.problems))


def test_an_empty_file_has_no_agents_and_nothing_to_show(tmp_path):
    viewer = SessionViewer(write_log(tmp_path / "empty.jsonl", []))

    assert {} == viewer.list_agents()
    assert [] == viewer.timeline()


def chain(n):
    """Everybody repeats the one before, in other words."""
    return [entry("0", "a0", "assistant", "start")] + [
        entry(str(i), f"a{i % 50}", "user", f"[a{i}]: word {i}", substance=str(i - 1)) for i in range(1, n)
    ]


def circle(n):
    return [entry(str(i), f"a{i % 50}", "user", f"word {i}", substance=str((i + 1) % n)) for i in range(n)]


def causes_of_all(n):
    """One line names thousands of causes, and a circle of causes runs through everything."""
    lines = [text(str(i), f"a{i % 50}", f"word {i}", str((i + 1) % n)) for i in range(n)]
    return [*lines, entry("end", "a1", "tool", "all", tool_call_id="x", cause=[str(i) for i in range(n)])]


def nested_agents(n):
    return [created(str(i), f"a{i}", parent=f"a{i - 1}") for i in range(n)]


def refusals(n):
    """A hook refuses over and over, and one text names every refusal as its cause."""
    lines = [created("h", "hook", role="hook"), entry("s", "x", "assistant", "said")]
    for i in range(n // 2):
        lines.append(entry(f"q{i}", "hook", "user", "said?", cause="s"))
        lines.append(entry(f"r{i}", "hook", "assistant", "DENY"))
    lines.append(text("p", "hook", "no", [f"r{i}" for i in range(n // 2)]))
    return lines + [entry(f"c{i}", f"y{i % 50}", "user", "no", substance="p") for i in range(n // 2)]


def many_calls(n):
    """One message with thousands of calls, all blocked."""
    ids = [(f"c{i}", "task") for i in range(n)]
    blocked = "Error: Action blocked by hook 'H': no"
    return [entry("a", "x", "assistant", tool_calls=calls(*ids))] + [
        entry(f"r{i}", "x", "tool", blocked, tool_call_id=f"c{i}") for i in range(n)
    ]


def labels(n):
    """A delivery that is nothing but labels."""
    return [
        entry("a", "x", "assistant", "x"),
        entry("b", "y", "user", "[x]: " * n, substance="a"),
        entry("c", "y", "user", "[" * n, substance="a"),
    ]


def reworded(n):
    """Two long texts that share every word in another order."""
    words = [f"w{i % 97}" for i in range(n)]
    return [
        entry("a", "x", "assistant", " ".join(words)),
        *(entry(f"b{i}", "y", "user", f"{i} " + " ".join(words[::-1]), substance="a") for i in range(20)),
    ]


@pytest.mark.parametrize("build", [chain, circle, causes_of_all, nested_agents, refusals, many_calls, labels, reworded])
def test_a_hostile_shape_costs_no_more_than_its_length(build):
    viewer = viewed(build(20_000))
    start = time.process_time()

    for view in (viewer.flow, viewer.interventions, viewer.said_vs_heard, viewer.agent_tree, viewer.timeline):
        view()
    viewer.extract_dialog(list(viewer.list_agents())[:100])
    viewer.build_causality_index()
    for message_id in (viewer.index.ids[0], viewer.index.ids[-1]):
        viewer.trace_message_flow(message_id)
        viewer.who_heard(message_id)
        viewer.knows(next(iter(viewer.list_agents())), message_id)

    assert time.process_time() - start < 10


class TestWording:
    def test_content_that_is_no_text_is_shown_as_it_is(self):
        viewer = viewed([entry("a", "x", "assistant") | {"content": {"mood": "gay"}}])

        assert ['{"mood":"gay"}'] == [line["content"] for line in viewer.extract_dialog(["x"])]

    def test_content_in_parts_is_the_text_of_the_parts(self):
        parts = [{"type": "text", "text": "one"}, {"type": "image_url", "image_url": {"url": "x"}}, "two"]
        viewer = viewed([entry("a", "x", "user") | {"content": parts}])

        assert ["one\ntwo"] == [line["content"] for line in viewer.extract_dialog(["x"])]

    def test_content_nested_beyond_measure_breaks_nothing(self):
        deep = b"[" * 100_000 + b"]" * 100_000
        line = b'{"message_id":"a","event_type":"transcript_entry","agent_id":"x","role":"user","content":%b}\n' % deep
        viewer = SessionViewer.of_log([line, json.dumps(entry("b", "x", "user", "hello")).encode()])

        assert ["hello"] == [line["content"] for line in viewer.extract_dialog(["x"])]
        assert 2 == viewer.problem_count

    def test_a_label_that_was_part_of_what_was_said_is_kept(self):
        assert ("", "[Jack]: hi") == split_label("[Jack]: hi", "[Jack]: hi", {"Jack"})
        assert ("[Jack]: ", "[Jack]: hi") == split_label("[Jack]: [Jack]: hi", "[Jack]: hi", {"Jack"})

    def test_a_label_of_somebody_else_is_part_of_what_was_heard(self):
        assert ("", "[Jill]: hi") == split_label("[Jill]: hi", "hi", {"Jack"})

    def test_any_label_is_taken_where_the_speaker_is_not_known(self):
        assert ("[Jill]: ", "[Jack]: hi") == split_label("[Jill]: [Jack]: hi", "hi", None)

    def test_a_comparison_beyond_the_budget_is_coarse_and_still_true(self):
        said, heard = "same " + "a b " * 2000 + "end", "same " + "b c " * 2000 + "end"
        pieces = Differ().compare(said, heard)

        assert said == "".join(piece["text"] for piece in pieces if piece["op"] != "added")
        assert heard == "".join(piece["text"] for piece in pieces if piece["op"] != "removed")
        assert ("same", "same ") == (pieces[0]["op"], pieces[0]["text"])
