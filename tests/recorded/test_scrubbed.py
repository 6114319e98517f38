"""What the recordings promise: nothing of a machine, no prose of a program; and scrubbing keeps equality."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from support.recordings import FOLDER
from support.scrub import Scrubber, filler

FILES = [path for path in FOLDER.rglob("*") if path.suffix in (".jsonl", ".json", ".txt")]
prose = st.text(alphabet="abcXYZ .,<>/\n'\"0123é☕", max_size=60)


def a_scrubber() -> Scrubber:
    return Scrubber(paths={"/tmp/lab": "/home/sam"}, ours=["Please run it.", "It worked."], salt="test")


@given(prose, prose)
def test_texts_that_a_program_joins_stay_comparable(one: str, other: str) -> None:
    scrub = a_scrubber()

    assert scrub.text(one) + "\n\n" + scrub.text(other) == scrub.text(f"{one}\n\n{other}")


@given(prose)
def test_a_text_keeps_its_length(text: str) -> None:
    assert len(text) == len(a_scrubber().text(text))


def test_what_the_script_said_stands_and_what_a_program_says_does_not() -> None:
    told = "<system-reminder>\nNever say this. Please run it.\n</system-reminder>"

    scrubbed = a_scrubber().text(told)

    assert "<system-reminder>\ndolor sit amet. Please run it.\n</system-reminder>" == scrubbed


def test_folders_ids_and_times_have_one_neutral_value_each() -> None:
    scrub = a_scrubber()
    record = '{"cwd":"/tmp/lab/x","id":"962ff8f5-1734-40a5-880d-c50394b13500","timestamp":"2026-11-15T15:37:49.886Z"}'
    scrub.learn([record])

    once, again = scrub.line(record), scrub.line(record)

    assert once == again
    assert len(record) - len("/tmp/lab") + len("/home/sam") == len(once)
    assert "962ff8f5" not in once
    assert '"timestamp":"2026-01-05T09:00:00.000Z"' in once
    assert '"cwd":"/home/sam/x"' in once


def test_filler_has_the_length_that_was_asked_for() -> None:
    assert list(range(40)) == [len(filler(length)) for length in range(40)]


def test_no_recording_names_a_machine_or_a_user() -> None:
    names = ("/root/", "/work/", "/tmp/harken", "harken-record")
    found = [(path.name, name) for path in FILES for name in names if name in path.read_text(encoding="utf-8")]

    assert FILES
    assert [] == found


def test_whole_sentences_in_recordings_are_filler_or_ours() -> None:
    """Eight words in a row, of which the first four are no filler, are somebody's prose; ours are short."""
    words = {filler(length) for length in range(1, 40)}
    known = ("Another language model started to solve", "This session is being continued", "It takes every year for")
    strange = set()
    for path in (path for path in FILES if path.name != "recording.json"):
        text = re.sub(r"\\[ntr\"]", " ", path.read_text(encoding="utf-8"))
        for run in re.findall(r"(?:[A-Za-z]+ ){7,}[A-Za-z]+", text):
            if not set(run.split()[:4]) & words and not run.startswith(known):
                strange.add(run[:80])

    assert set() == strange


def test_the_recordings_are_small() -> None:
    assert sum(path.stat().st_size for path in FILES) < 2_000_000
