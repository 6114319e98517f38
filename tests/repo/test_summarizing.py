"""A line about each commit that has none: made of its own words or by a model, once, without secrets."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

import harken
from harken.context.sentences import LENGTH, sentence
from harken.errors import BadRequest, Corrupt, ModelFailed, NotFound
from harken.events import Event, Image, Output, Prompt, Response, System, ToolCall, ToolResult
from harken.repo import Repo
from harken.repo.summarizing import EXTRACTED, Pace
from support.contexts import chain, keep, turn
from support.sessions import conversation

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9" * 2


@pytest.fixture
def repo() -> Iterator[Repo]:
    with harken.open("memory:") as opened:
        yield opened


def script(path: Path, *answers: object) -> str:
    path.write_text(json.dumps({"agents": {"summarize": answers}}))
    return f"scripted:{path}"


def summaries(repo: Repo) -> list[str]:
    return [shown.summary for shown in repo.log()]


class TestSentence:
    @pytest.mark.parametrize(
        ("events", "expected"),
        [
            (
                [
                    Prompt(content="Fix the login test of the shop. It is red."),
                    ToolCall(id="1", name="Bash", input=b'{"command": "pytest -q"}'),
                    ToolResult(id="1", output="1 failed", is_error=True),
                    ToolCall(id="2", name="Edit", input=b'{"file_path": "/w/src/a.py"}'),
                    ToolCall(id="3", name="Edit", input=b'{"file_path": "/w/src/b.py"}'),
                    Response(content="## Done\nAll tests pass."),
                ],
                "Fix the login test of the shop: ran pytest -q, edited src/a.py and 1 more (1 failed); "
                "“Done: All tests pass.”",
            ),
            ([Prompt(content="why?")], "Asked: why?"),
            ([Prompt(images=(Image(media_type="image/png"),))], "Showed a picture"),
            ([Prompt(images=(Image(media_type="image/png"),) * 2)], "Showed 2 pictures"),
            (
                [Response(content="**Because.** It is. And so on, and on.")],
                "Answered: Because. It is. And so on, and on.",
            ),
            (
                [Response(content="Two of them, both wrong:\n\n1. this\n2. that")],
                "Answered: Two of them, both wrong: 1. this",
            ),
            ([Prompt(content="Any ideas for:\n\n> A short file")], "Asked: Any ideas for: A short file"),
            (
                [
                    ToolCall(
                        name="Edit", input=b'{"file_path": "/w/src/a/long/way/down/to/where/it/is/test_overlap.py"}'
                    )
                ],
                "Edited …/way/down/to/where/it/is/test_overlap.py",
            ),
            ([ToolCall(name="Bash", input=b'{"command": "cd /w && make test 2>&1 | tail -20"}')], "Ran make test"),
            ([ToolCall(name="Grep", input=b'{"pattern": "def a", "path": "/w/src"}')], "Searched for def a in src"),
            ([ToolCall(name="write_stdin", input=b'{"session_id": 7, "chars": ""}')], "Waited for a command"),
            ([ToolCall(name="mcp__shop__add_item", input=b"{}")], "Used add_item of shop"),
            ([System(subtype="session_start")], "Session start"),
            ([ToolCall(name="mcp__x", input=b"{}")], "Used mcp__x"),
            ([Output(raw=b"{}")], "A record that is no conversation"),
            ([Prompt(content="so far", source="injected", origin="compact_summary")], "Compacted the conversation"),
            (
                [Prompt(content="<command-name>/clear</command-name>", source="injected", origin="command")],
                "Command: /clear",
            ),
        ],
        ids=lambda value: value[:12] if isinstance(value, str) else "",
    )
    def test_is_plain_english(self, events: list[Event], expected: str) -> None:
        assert expected == sentence(events, "/w")

    def test_is_one_line_of_bounded_length(self) -> None:
        events = [ToolCall(name=f"tool {n}\n", input=json.dumps({"command": "x\n" * 999}).encode()) for n in range(99)]

        text = sentence([Prompt(content="a\n" * 999 + "b" * 9999), *events, Response(content="c " * 999)])

        assert "\n" not in text
        assert len(text) <= LENGTH


def test_every_commit_without_a_line_gets_one_and_only_once(repo: Repo) -> None:
    chain(repo, [1, 2, 3])
    repo.annotate(next(repo.log()), "mine")

    made = list(repo.summarize())

    assert 2 == len(made)
    assert ["mine", *(one.summary for one in made)] == summaries(repo)
    assert [] == list(repo.summarize())


def test_only_what_is_behind_a_ref_and_no_more_than_asked(repo: Repo) -> None:
    one, other = chain(repo, [1, 2]), keep(repo, turn(9))

    assert [one.id] == [made.commit.id for made in repo.summarize([one.id], limit=1)]
    assert other.id not in {made.commit.id for made in repo.summarize([one.id])}


def test_a_tail_that_gave_way_to_another_is_passed_over(repo: Repo, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    session = conversation("s", turns=1)
    session.call("Read", "the result comes later")
    for lines in (session.lines[:-1], session.lines):
        path.write_bytes(b"".join(lines))
        list(repo.import_sessions([path]))

    made = {one.commit.id for one in repo.summarize()}

    hidden = {shown.id for shown in repo.log(superseded=True) if shown.superseded}
    assert hidden
    assert not made & hidden


def test_a_model_writes_and_writes_anew_what_was_put_together(repo: Repo, tmp_path: Path) -> None:
    chain(repo, [1, 2])
    list(repo.summarize(limit=1))

    list(repo.summarize(model=script(tmp_path / "m.json", '"Second turn"\n\nmore', "First turn")))

    assert ["Second turn", "First turn"] == summaries(repo)
    assert [] == list(repo.summarize(model=script(tmp_path / "m.json", "never asked")))


def test_a_model_never_sees_a_secret_and_no_line_has_one(repo: Repo, tmp_path: Path) -> None:
    keep(repo, [Prompt(message_id="1", content=f"use {KEY}"), Response(message_id="2", content="ok")])

    list(repo.summarize())
    (told,) = summaries(repo)
    assert "Use [masked: github-token]: “ok”" == told

    # The model says what it was shown.
    list(repo.summarize(model=script(tmp_path / "m.json", f"it said {KEY}")))
    assert ["it said [masked: github-token]"] == summaries(repo)


def test_what_a_model_is_asked_is_masked(repo: Repo) -> None:
    from harken.context.sentences import sentence_request
    from harken.repo.masking import Masks

    masks = Masks((), reveal=False, for_people=True)

    assert KEY not in sentence_request([masks.event(Prompt(content=f"use {KEY}"))])


def test_a_model_that_fails_is_not_asked_for_ever_and_what_it_wrote_is_kept(repo: Repo, tmp_path: Path) -> None:
    chain(repo, range(6))
    made = repo.summarize(model=script(tmp_path / "m.json", "The newest", "", "", "", "never asked"))

    with pytest.raises(ModelFailed, match="3 times in a row"):
        list(made)

    assert "The newest" == summaries(repo)[0]
    assert "never asked" not in summaries(repo)
    assert 5 == len(list(repo.summarize()))


def test_a_model_that_fails_in_passing_is_asked_again(repo: Repo, tmp_path: Path) -> None:
    """As it does where it is asked too often (429), or the service is down (500)."""

    class Waiting(threading.Event):
        waited: ClassVar[list[float]] = []

        def wait(self, timeout: float | None = None) -> bool:
            self.waited.append(timeout or 0)
            return self.is_set()

    chain(repo, [1, 2])
    lines = ({"say": "Second turn", "failures": 2}, {"say": "First turn", "failures": 99})

    made = list(repo.summarize(model=script(tmp_path / "m.json", *lines), stop=Waiting()))

    assert ["Second turn", ""] == [one.summary for one in made]
    assert "scripted failure" in made[1].problem
    assert [1, 2, 1, 2, 4, 8] == [seconds for seconds in Waiting.waited if seconds]


def test_whoever_stops_does_not_wait_for_a_model(repo: Repo, tmp_path: Path) -> None:
    chain(repo, [1])
    stop = threading.Event()

    made = repo.summarize(model=script(tmp_path / "m.json", {"say": "never", "failures": 9}), stop=stop)
    threading.Timer(0.05, stop.set).start()

    assert [""] == [one.summary for one in made]


def test_what_cannot_be_read_stops_no_other(repo: Repo) -> None:
    repo.checkpoint(b"\x00", format="blob-v1")
    keep(repo, turn(1))

    made = list(repo.summarize())

    assert [False, True] == sorted(bool(one.summary) for one in made)
    assert all(one.summary or one.problem for one in made)


def test_stopped_it_does_no_more(repo: Repo) -> None:
    chain(repo, [1])
    stop = threading.Event()
    stop.set()

    assert [] == list(repo.summarize(stop=stop))
    assert [] == list(repo.summarize(stop=stop, watch=True))


def test_watching_it_goes_on_with_what_comes(repo: Repo) -> None:
    chain(repo, [1])
    stop = threading.Event()
    made = repo.summarize(watch=True, stop=stop)

    first = next(made)
    commit = keep(repo, turn(5))
    second = next(made)
    stop.set()

    assert first.commit.id != commit.id == second.commit.id
    assert [] == list(made)


def test_a_pace_spreads_what_is_asked_over_the_minute() -> None:
    pace = Pace(30)

    assert [0, 2, 4, 3] == [pace.delay(100.0), pace.delay(100.0), pace.delay(100.0), pace.delay(103.0)]
    assert [0, 0] == [Pace(None).delay(1.0), Pace(None).delay(1.0)]


@pytest.mark.parametrize(
    ("how", "error"),
    [({"refs": ["nowhere"]}, NotFound), ({"limit": -1}, BadRequest), ({"per_minute": 0}, BadRequest)],
)
def test_what_makes_no_sense_is_refused_at_once(repo: Repo, how: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        repo.summarize(**how)  # type: ignore[arg-type]


def test_who_wrote_a_line_is_known(repo: Repo) -> None:
    chain(repo, [1])
    list(repo.summarize())

    assert [EXTRACTED] == [note.who for note in next(repo.log()).annotations]


def test_a_damaged_commit_stops_no_other_and_is_told_behind_them(tmp_path: Path) -> None:
    with harken.open(tmp_path / "store.db") as opened:
        for number in range(3):
            keep(opened, turn(number), session_id=f"s{number}")
    with contextlib.closing(sqlite3.connect(tmp_path / "store.db")) as damaged, damaged:
        row = "SELECT n FROM commits ORDER BY n LIMIT 1 OFFSET 1"
        assert 1 == damaged.execute(f"UPDATE commits SET messages = 77 WHERE n = ({row})").rowcount
    made: list[str] = []
    with harken.open(tmp_path / "store.db") as opened, pytest.raises(Corrupt, match="is not what was written"):
        for one in opened.summarize():
            made.append(one.commit.session_id)

    assert ["s0", "s2"] == sorted(made)
