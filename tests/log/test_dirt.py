"""Files that others wrote, tore or soiled: they load, and what is odd about them is told."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from harken.errors import BadRequest
from harken.events import Output
from harken.formats.session_log import FORMAT
from harken.log import LogProblem, Session, scan
from harken.views import SessionViewer

GOOD = '{"message_id":"msg_001","event_type":"agent_created","agent_id":"a","role":"root"}\n'
ENTRY = '{"message_id":"msg_002","event_type":"transcript_entry","agent_id":"a","role":"user","content":"x"}\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def report(path: Path, text: str) -> list[LogProblem]:
    path.write_text(text)
    return Session.load(path, readonly=True).report


def test_a_clean_file_has_nothing_to_report(path: Path) -> None:
    assert [] == report(path, GOOD + ENTRY)


@pytest.mark.parametrize(
    ("line", "what", "detail"),
    [
        ("{broken", "not JSON", ""),
        ("[]", "not an object", ""),
        ('{"message_id":"m","event_type":"party","agent_id":"a"}', "unknown event type", "'party'"),
        ('{"message_id":"m","event_type":["party"],"agent_id":"a"}', "unknown event type", "['party']"),
        (
            '{"message_id":"m","event_type":"transcript_entry","agent_id":"a","role":"robot"}',
            "unknown role",
            "'robot'",
        ),
        (
            '{"message_id":"m","event_type":"transcript_entry","agent_id":"a","role":{}}',
            "unknown role",
            "{}",
        ),
        ('{"event_type":"error","agent_id":"a"}', "no message id", ""),
        ('{"message_id":["m"],"event_type":"error","agent_id":"a"}', "no message id", "['m']"),
        ('{"message_id":"msg_001","event_type":"error","agent_id":"a"}', "message id used twice", "msg_001"),
        ('{"message_id":"m","event_type":"agent_created","agent_id":"a"}', "agent created twice", "a"),
        (
            '{"message_id":"m","event_type":"error","agent_id":"a","substance":"msg_001","cause":"msg_001"}',
            "substance and cause on one line",
            "m",
        ),
        (
            '{"message_id":"m","event_type":"error","agent_id":"a","cause":"elsewhere"}',
            "a link outside the file",
            "m to elsewhere",
        ),
        (
            '{"message_id":"m","event_type":"error","agent_id":"a","cause":[{}]}',
            "a link that is not an id",
            "{}",
        ),
        (
            '{"message_id":"m","event_type":"transcript_entry","agent_id":"b","role":"user"}',
            "agent used but never created",
            "b",
        ),
        ('{"message_id":"m","event_type":"agent_created","agent_id":"b"}', "no parent found", "b"),
        (
            '{"message_id":"m","event_type":"transcript_entry","agent_id":"a","role":"assistant","tool_calls":[1]}',
            "not a tool call",
            "m",
        ),
        (
            '{"message_id":"m","event_type":"transcript_entry","agent_id":"a","role":"tool","tool_call_id":"c"}',
            "a result without its call",
            "c",
        ),
        (
            '{"message_id":"m","event_type":"error","agent_id":"a","n":36893488147419103233}',
            "number beyond 64 bits",
            "",
        ),
        ('{"message_id":"m","event_type":"error","agent_id":"a","message":"\\ud800"}', "lone surrogate", ""),
    ],
)
def test_an_odd_line_is_reported_at_its_place_and_the_load_goes_on(
    path: Path, line: str, what: str, detail: str
) -> None:
    assert [LogProblem(2, len(GOOD), what, detail)] == report(path, GOOD + line + "\n" + ENTRY)
    assert {"role": "user", "content": "x"} == Session.load(path, readonly=True).transcript("a")[-1]


def test_an_entry_of_an_unknown_role_is_kept_from_models(path: Path) -> None:
    path.write_text(GOOD + ENTRY.replace('"user"', '"robot"') + ENTRY.replace("msg_002", "msg_003"))

    session = Session.load(path, readonly=True)

    assert ["robot", "user"] == [line["role"] for line in session.records() if line["event_type"] == "transcript_entry"]
    assert ["user"] == [line["role"] for line in session.entries("a")]
    assert ["user"] == [message["role"] for message in session.transcript("a")]


def test_a_link_to_a_later_line_leads_somewhere(path: Path) -> None:
    early = '{"message_id":"m","event_type":"error","agent_id":"a","cause":"msg_002"}\n'

    assert [] == report(path, GOOD + early + ENTRY)


def test_two_objects_on_a_line_are_both_taken_in(path: Path) -> None:
    problems = report(path, GOOD + ENTRY.strip() + ENTRY.replace("msg_002", "msg_003"))

    assert ["several objects on one line"] * 2 == [problem.what for problem in problems]
    assert 2 == Session.load(path, readonly=True).agents["a"].entries


def test_many_problems_of_a_kind_are_counted_and_not_all_told(path: Path) -> None:
    path.write_text(GOOD + "{broken\n" * 3000)

    session = Session.load(path, readonly=True)

    assert 1000 == len(session.report)
    assert {"not JSON": 3000} == session.registry.counts


def test_a_parent_inferred_for_a_v2_agent_without_a_cause(path: Path) -> None:
    call = (
        '{"message_id":"m1","event_type":"transcript_entry","agent_id":"a","role":"assistant","tool_calls":'
        '[{"id":"c1","function":{"name":"task","arguments":"{\\"name\\": \\"Jack\\"}"}},'
        '{"id":"c2","function":{"name":"task","arguments":"{\\"name\\": \\"Jill\\"}"}}]}\n'
    )
    born = '{"message_id":"m2","event_type":"agent_created","agent_id":"b","name":"Jill"}\n'
    path.write_text(GOOD + call + born)

    session = Session.load(path, readonly=True)

    assert ("a", "m1", True) == (
        session.agents["b"].parent,
        session.agents["b"].cause,
        session.agents["b"].inferred,
    )
    assert ["parent inferred"] == [problem.what for problem in session.report]


def test_a_call_id_that_is_used_again_is_another_call(path: Path) -> None:
    with Session(path) as session:
        for content in ("one", "two"):
            calls = [{"id": "c1", "function": {"name": "look", "arguments": "{}"}}]
            session.log_transcript_entry("a", {"role": "assistant", "tool_calls": calls})
            session.log_transcript_entry("a", {"role": "tool", "tool_call_id": "c1", "content": content})

        results = [message["content"] for message in session.transcript("a") if message["role"] == "tool"]
        assert ["one", "two"] == results
        assert [] == session.open_calls
    assert {"agent used but never created": 1} == Session.load(path, readonly=True).registry.counts


class TestATornLastLine:
    TORN = ENTRY[:40]

    def test_it_is_closed_by_appending_and_nothing_is_removed(self, path: Path) -> None:
        path.write_text(GOOD + self.TORN)

        with Session.load(path) as session:
            session.log_transcript_entry("a", {"role": "user", "content": "after"})

        assert (GOOD + self.TORN + "\n").encode() == path.read_bytes()[: len(GOOD + self.TORN) + 1]
        kinds = [record.data["event_type"] if record.data else None for record in scan(path)]
        assert ["agent_created", None, "recovery", "transcript_entry"] == kinds

    def test_the_recovery_says_where_the_torn_bytes_are(self, path: Path) -> None:
        path.write_text(GOOD + self.TORN)

        with Session.load(path) as session:
            (recovery,) = [event for event in session.events() if event.kind == "recovery"]

        assert (len(GOOD), len(self.TORN)) == (recovery.offset, recovery.length)  # type: ignore[attr-defined]

    def test_the_id_in_it_is_not_given_again(self, path: Path) -> None:
        path.write_text(GOOD + self.TORN)

        with Session.load(path) as session:
            assert "msg_004" == session.log_piece_of_text("a", "x", "msg_001")
        assert b'"msg_003","event_type":"recovery"' in path.read_bytes()

    def test_a_line_that_lacks_only_its_newline_is_a_good_line(self, path: Path) -> None:
        path.write_text(GOOD + ENTRY[:-1])

        with Session.load(path) as session:
            assert 1 == session.agents["a"].entries
        again = Session.load(path, readonly=True)
        assert [] == again.report
        assert 1 == again.agents["a"].entries

    def test_it_is_healed_once(self, path: Path) -> None:
        path.write_text(GOOD + self.TORN)
        Session.load(path).close()
        healed = path.read_bytes()

        Session.load(path).close()

        assert healed == path.read_bytes()

    def test_a_reader_leaves_it_alone(self, path: Path) -> None:
        path.write_text(GOOD + self.TORN)

        session = Session.load(path, readonly=True)

        assert (GOOD + self.TORN).encode() == path.read_bytes()
        assert ["no newline at the end; not JSON"] == [problem.what for problem in session.report]

    def test_a_long_one_is_found_whole(self, path: Path) -> None:
        torn = ENTRY[:40] + "x" * 200_000
        path.write_text(GOOD + torn)

        with Session.load(path) as session:
            (recovery,) = [event for event in session.events() if event.kind == "recovery"]

        assert (len(GOOD), len(torn)) == (recovery.offset, recovery.length)  # type: ignore[attr-defined]


def test_an_overlong_line_stays_in_the_file_and_is_reported(path: Path) -> None:
    with path.open("w") as file:
        file.write(GOOD + '{"message_id":"msg_041","event_type":"transcript_entry","content":"')
        for _ in range(65):
            file.write("x" * (1 << 20))
        file.write('"}\n' + ENTRY)
    size = path.stat().st_size

    with Session.load(path) as session:
        assert ["line too long"] == [problem.what for problem in session.report]
        assert 1 == session.agents["a"].entries
        assert size == path.stat().st_size
        assert "msg_042" == session.log_piece_of_text("a", "x", "msg_001")


def crowded(values: int) -> str:
    return ENTRY.replace('"x"}', '"x","z":[' + ",".join(["{}"] * values) + "]}").replace("msg_002", "msg_003")


def test_a_long_line_of_very_many_values_is_kept_as_bytes(path: Path) -> None:
    line = crowded(600_000)

    assert [LogProblem(2, len(GOOD), "more than 500000 values on one line", "")] == report(path, GOOD + line + ENTRY)
    assert [("msg_001", None), ("@83", line.strip().encode()), ("msg_002", None)] == [
        (event.message_id, event.raw if isinstance(event, Output) else None)
        for event in Session.load(path, readonly=True).events()
    ]
    assert [["msg_002"], 1] == [
        [line["message_id"] for line in Session.load(path, readonly=True).entries("a")],
        len(SessionViewer(path).get_transcript("a")),
    ]


def test_commas_and_brackets_in_a_long_text_are_no_values(path: Path) -> None:
    content = 'a, "quoted\\" [text], {with}, ' * 100_000
    with Session(path) as session:
        session.log_transcript_entry("a", {"role": "user", "content": content})

    again = Session.load(path, readonly=True)

    assert [content] == [message["content"] for message in again.transcript("a")]
    assert ["agent used but never created"] == [problem.what for problem in again.report]


def test_a_line_of_too_many_values_is_refused_at_the_door(path: Path) -> None:
    with Session(path) as session:
        with pytest.raises(BadRequest, match="values") as refused:
            session.log_transcript_entry("a", {"role": "user", "content": [{}] * 600_000})
        assert refused.value.hint
    assert b"" == path.read_bytes()


def test_memory_stays_bounded_whatever_a_line_holds(path: Path) -> None:
    """Fifteen megabytes of empty objects would be half a gigabyte of them in memory."""
    path.write_text(GOOD + crowded(5_000_000) + ENTRY)

    tracemalloc.start()
    try:
        session = Session.load(path, readonly=True)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert ["more than 500000 values on one line"] == [problem.what for problem in session.report]
    assert peak < 5 * path.stat().st_size


@pytest.mark.parametrize("end", ["\n", ""])
def test_a_byte_order_mark_before_the_first_line_is_reported_and_the_line_is_read(path: Path, end: str) -> None:
    torn = "" if end else "no newline at the end; "
    problems = report(path, "\ufeff" + GOOD.strip() + end)

    assert [LogProblem(1, 3, f"{torn}byte order mark", "")] == problems
    assert "a" == Session.load(path, readonly=True).root
    assert {"a": "a"} == SessionViewer(path).list_agents()
    assert FORMAT.claim is not None
    assert 90 == FORMAT.claim(path.read_bytes(), "").score


def test_a_byte_order_mark_changes_nothing_about_what_cannot_be_read(path: Path) -> None:
    path.write_text("\ufeff{broken\n\ufeff\n" + GOOD)

    found = list(scan(path))

    assert [("byte order mark; not JSON", 0), ("byte order mark; blank line", 11), (None, 15)] == [
        (record.problem, record.offset) for record in found
    ]
    assert "\ufeff{broken".encode() == found[0].raw


def test_objects_after_a_byte_order_mark_stand_where_they_are(path: Path) -> None:
    path.write_text("\ufeff" + GOOD.strip() + ENTRY)

    for record in scan(path):
        assert path.read_bytes()[record.offset : record.offset + record.length] == record.raw
        assert record.data is not None
