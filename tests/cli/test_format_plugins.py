"""Formats of others: one that is broken costs only what was asked of it, and one that changes is asked again."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import harken
from harken import formats
from harken.errors import NotFound
from harken.events import Output
from harken.formats import base
from harken.repo import Repo

from .conftest import Run

Install = Callable[[str], None]
SOUND = """
from harken.events import Prompt
from harken.formats import Format, Written

def read(data):
    return [Prompt(content=line.decode(), message_id=str(n)) for n, line in enumerate(data.splitlines())]

def write(events):
    return Written(data=b"".join(b"%s " + event.content.encode() + b"\\n" for event in events))

FORMAT = Format(name="odd-v1", media_type="application/jsonl", reader=read, writer=write)
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Put a plug-in in place, as a process finds it that starts afterwards."""
    point = EntryPoint(name="odd-v1", value="odd_plugin:FORMAT", group="harken.formats")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(base, "_installed", lambda: {"odd-v1": point})

    def forget() -> None:
        sys.modules.pop("odd_plugin", None)
        base._loaded.cache_clear()
        base._plugin_code.cache_clear()

    def put(text: str) -> None:
        (tmp_path / "odd_plugin.py").write_text(text)
        forget()

    yield put
    forget()


BROKEN = {
    "it cannot be imported": "import nothing_of_that_name",
    "it ends the process": "raise SystemExit(3)",
    "it is no format": "FORMAT = 7",
    "it has another name": SOUND.replace("odd-v1", "even-v1"),
    "its reader fails": SOUND.replace("return [Prompt", "1 / 0; return [Prompt"),
    "its join fails": SOUND + "import msgspec\nFORMAT = msgspec.structs.replace(FORMAT, join=lambda d: 1 / 0)",
    "its context fails": SOUND + "import msgspec\nFORMAT = msgspec.structs.replace(FORMAT, context=lambda d: 1 / 0)",
    "its measurer fails": SOUND + "import msgspec\nFORMAT = msgspec.structs.replace(FORMAT, measurer=lambda d: 1 / 0)",
    "its writer fails": SOUND.replace("return Written", "1 / 0; return Written"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_plug_in_gives_no_traceback(install: Install, repo: Repo, run: Run, kind: str) -> None:
    install(SOUND)
    tip = repo.checkpoint(b'{"n":1}\n', format="odd-v1", session_id="odd")
    other = repo.checkpoint([harken.Prompt(content="hello")], session_id="other")
    install(BROKEN[kind])

    for words in (
        ("log", tip.short),
        ("log", "--all"),
        ("show", tip.short),
        ("stats",),
        ("materialize", tip.short),
        ("materialize", tip.short, "--format", "session-log-v2"),
        ("materialize", other.short, "--format", "odd-v1"),
        ("view", "conversation", tip.short),
        ("doctor",),
    ):
        assert "Traceback" not in run(*words).err  # what is raised and no HarkenError fails the test
    assert "hello" in run("log", other.short).out
    assert b'{"n":1}\n' == run("materialize", tip.short).data


def test_one_that_cannot_be_loaded_is_named_once_and_counts_as_unknown(
    install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    install("import nothing_of_that_name")
    with caplog.at_level(logging.WARNING, "harken"):
        assert [None, None] == [formats.find("odd-v1") for _ in range(2)]
    assert 1 == len(caplog.records)
    assert "the format 'odd-v1'" in caplog.text
    assert "nothing_of_that_name" in caplog.text
    with pytest.raises(NotFound, match="nothing_of_that_name"):
        formats.get("odd-v1")


def test_a_reader_that_fails_gives_the_bytes_and_the_reason(install: Install) -> None:
    install(BROKEN["its reader fails"])

    (event,) = formats.get("odd-v1").read(b"abc")

    assert isinstance(event, Output)
    assert (b"abc", "the format odd-v1 failed: ZeroDivisionError: division by zero") == (event.raw, event.why)


@pytest.mark.parametrize("change", [("%s", "second"), ('name="odd-v1"', 'name="odd-v1", revision="2"')])
def test_an_answer_that_older_code_made_is_made_again(
    install: Install, tmp_path: Path, change: tuple[str, str]
) -> None:
    with harken.open(tmp_path / "store.db") as repo:
        install(SOUND.replace("%s", "first"))
        tip = repo.checkpoint([harken.Prompt(content="hello")], session_id="s")
        assert b"first hello\n" == repo.materialize(tip, format="odd-v1").bytes
        before = base.revision("odd-v1")
        install(SOUND.replace(*change).replace("%s", "second"))

        assert b"second hello\n" == repo.materialize(tip, format="odd-v1").bytes
        assert before != base.revision("odd-v1")
        assert b"second hello\n" == repo.materialize(tip, format="odd-v1").bytes
