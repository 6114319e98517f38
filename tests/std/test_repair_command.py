"""`harken std repair`: documents mended beside their originals."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from support.std_documents import multi, single

Run = Any
NAME = "2026-03-04-001-mend-the-clock.json"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, data: object) -> str:
    Path(name).write_text(data if isinstance(data, str) else json.dumps(data), "utf-8")
    return name


def drifted(**more: Any) -> dict[str, Any]:
    return {**single(), "status": "completed", **more}


def test_without_a_place_to_write_it_only_says_what_it_would_change(run: Run) -> None:
    before = sorted([write(NAME, drifted())])
    done = run("std", "repair", NAME)
    assert 0 == done.code
    assert f"{NAME}: 2 changes, valid afterwards\n" in done.out
    assert '  * status: `status` was "completed", is "success"' in done.out
    assert "  + updated_at: " in done.out
    assert "nothing was written" in done.err
    assert before == sorted(os.listdir())


def test_where_nothing_could_be_written_it_does_not_ask_for_a_place(run: Run) -> None:
    done = run("std", "repair", write("list.json", []), "-o", "new.json")
    assert (1, False) == (done.code, Path("new.json").exists())
    assert "1 document, 0 valid afterwards, 0 written" in done.err


def test_it_writes_the_document_and_leaves_the_original(run: Run) -> None:
    original = Path(write(NAME, drifted())).read_bytes()
    assert 0 == run("std", "repair", NAME, "-o", "new.json").code
    assert original == Path(NAME).read_bytes()
    assert "success" == json.loads(Path("new.json").read_bytes())["status"]
    assert 0 == run("std", "validate", "new.json").code


def test_a_valid_document_is_copied_byte_for_byte(run: Run) -> None:
    write(NAME, single())
    done = run("std", "repair", NAME, "-o", "new.json")
    assert (0, f"{NAME}: nothing to change, valid, written to new.json\n") == (done.code, done.out)
    assert Path(NAME).read_bytes() == Path("new.json").read_bytes()


def test_the_original_is_never_written_over_by_whatever_name(run: Run, folder: Path) -> None:
    original = Path(write(NAME, drifted())).read_bytes()
    Path("link.json").symlink_to(NAME)
    Path("hard.json").hardlink_to(NAME)
    Path("deep").mkdir()
    for output in (
        NAME,
        f"./{NAME}",
        str(folder / NAME),
        "link.json",
        "hard.json",
        f"deep/../{NAME}",
        f"none/../{NAME}",
    ):
        done = run("std", "repair", NAME, "-o", output, "--force")
        assert 2 == done.code, output
        assert "is the original" in done.err
    assert 2 == run("std", "repair", "link.json", "-o", NAME, "--force").code
    assert original == Path(NAME).read_bytes()


def test_a_file_that_is_there_is_only_replaced_when_asked_for(run: Run) -> None:
    write(NAME, drifted())
    write("new.json", "mine")
    assert 4 == run("std", "repair", NAME, "-o", "new.json").code
    assert "mine" == Path("new.json").read_text()
    assert 0 == run("std", "repair", NAME, "-o", "new.json", "--force").code
    assert "mine" != Path("new.json").read_text()


def test_the_store_is_never_written_over(run: Run, where: Path) -> None:
    write(NAME, drifted())
    assert 2 == run("std", "repair", NAME, "-o", str(where), "--force").code


def test_a_name_in_a_folder_that_was_taken_meanwhile_is_not_written_over(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a.json", drifted())
    Path("out").mkdir()
    write("out/2026-03-04-001-mend-the-clock.json", "theirs")
    monkeypatch.setattr("harken.cli.std_repair._Target.taken", lambda self: ())  # looked before the other one wrote
    assert 4 == run("std", "repair", "a.json", "-o", "out", "--force").code
    assert "theirs" == Path("out/2026-03-04-001-mend-the-clock.json").read_text()


def test_in_a_folder_a_valid_document_with_a_good_name_keeps_both(run: Run) -> None:
    titled = single() | {"session_id": "2026-03-04-005-修好时钟", "task_title": "修好时钟"}
    files = [write(f"{one['session_id']}.json", one) for one in (titled, multi())]
    before = {name: Path(name).read_bytes() for name in files}
    Path("out").mkdir()

    assert 0 == run("std", "repair", *files, "-o", "out").code

    assert before == {path.name: path.read_bytes() for path in Path("out").iterdir()}


def test_in_a_folder_a_good_name_that_is_taken_is_not_kept(run: Run) -> None:
    write(NAME, single())
    Path("out").mkdir()
    Path("out", NAME).write_text("mine")

    assert 0 == run("std", "repair", NAME, "-o", "out").code

    assert {NAME, "2026-03-04-002-mend-the-clock.json"} == {path.name for path in Path("out").iterdir()}
    assert "mine" == Path("out", NAME).read_text()


def test_in_a_folder_each_gets_the_next_free_name_and_its_id_follows(run: Run) -> None:
    Path("in").mkdir()
    Path("out").mkdir()
    write("in/a.json", drifted(task_title="Déjà vu: a test"))
    write(
        "in/b.json",
        drifted(task_title="时间线", created_at="2026-03-05T10:00:00+08:00", completed_at="2026-03-05T11:00:00+08:00"),
    )
    write("in/c.json", multi())
    write("out/2026-03-04-007-something.json", "x")
    assert 0 == run("std", "repair", "in", "-o", "out").code
    names = ["2026-03-04-008-deja-vu-a-test.json", "2026-03-04-009-two-hands-multi.json", "2026-03-05-001-session.json"]
    assert ["2026-03-04-007-something.json", *names] == sorted(os.listdir("out"))
    assert names == [f"{json.loads(Path('out', name).read_bytes())['session_id']}.json" for name in names]
    assert 0 == run("std", "validate", *(f"out/{name}" for name in names)).code


def test_a_name_that_was_given_stands_and_a_mismatch_is_a_warning(run: Run) -> None:
    write(NAME, drifted())
    assert 0 == run("std", "repair", NAME, "-o", "other.json").code
    assert "2026-03-04-001-mend-the-clock" == json.loads(Path("other.json").read_bytes())["session_id"]
    (row,) = run("std", "repair", NAME, "-o", "other.json", "--force", "--json").json
    assert ["file-name"] == [finding["rule"] for finding in row["findings"]]


def test_what_is_left_is_told_and_written_all_the_same(run: Run) -> None:
    write(NAME, {**drifted(), "task_title": 7.5, "user_prompt": [], "session_id": {}})
    done = run("std", "repair", NAME, "-o", "new.json")
    assert 1 == done.code
    assert "not valid afterwards, written to new.json" in done.out
    assert "  ! session_id: " in done.out
    assert "success" == json.loads(Path("new.json").read_bytes())["status"]


def test_what_is_no_session_document_is_not_written_and_stops_nothing(run: Run) -> None:
    Path("out").mkdir()
    write("broken.json", '{"session_id": "x", ')
    write("other.json", "[1, 2]")
    write(NAME, drifted())
    done = run("std", "repair", "broken.json", "nowhere.json", "other.json", NAME, "-o", "out")
    assert 1 == done.code
    assert [NAME] == os.listdir("out")
    assert "broken.json: nothing to change, not valid\n  ! line 1, column 21: " in done.out
    assert "cannot read nowhere.json" in done.err


def test_a_file_that_is_not_there_is_3(run: Run) -> None:
    assert 3 == run("std", "repair", "nowhere.json").code


def test_it_reads_stdin_and_writes_stdout(run: Run) -> None:
    done = run("std", "repair", "-", "-o", "-", stdin=json.dumps(drifted()).encode())
    assert 0 == done.code
    assert "success" == json.loads(done.out)["status"]
    assert "-: 2 changes, valid afterwards" in done.err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["a.json", "b.json", "-o", "new.json"], 2),  # several need a folder
        (["a.json", "b.json", "-o", "-"], 2),
        (["a.json", "-o", "-", "--json"], 2),  # a document and a report
        (["a.json", "-o", "nowhere/"], 3),
        (["a.json", "-o", "nowhere/new.json"], 1),
        (["a.json", "-o", ""], 2),
        ([], 2),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(run: Run, words: list[str], code: int) -> None:
    write("a.json", drifted())
    write("b.json", drifted())
    before = sorted(os.listdir())
    done = run("std", "repair", *words)
    assert (code, "") == (done.code, "" if code == 1 else done.out)
    assert before == sorted(os.listdir())


def test_many_changes_of_one_kind_are_shown_in_part_and_listed_whole_as_json(run: Run) -> None:
    document = drifted()
    document["tool_calls"] = [
        {**document["tool_calls"][0], "call_id": f"c{at}", "output": {"status": "error"}} for at in range(9)
    ]
    write(NAME, document)
    assert "and 4 more of unknown-value at tool_calls[].output.status" in run("std", "repair", NAME).out
    (row,) = run("std", "repair", NAME, "--json").json
    assert 9 == sum(change["path"].endswith("output.status") for change in row["changes"])


def test_what_a_document_says_does_not_reach_the_terminal(run: Run) -> None:
    write(NAME, drifted(status="\x1b[2Jdone\u202e"))
    assert "\x1b" not in run("std", "repair", NAME).out


def test_it_asks_for_a_place_to_write_only_where_there_is_something_to_write(run: Run) -> None:
    write(NAME, single())
    write("drifted.json", drifted())
    write("text.txt", "hello")
    asks = ": name a file or a folder with -o\n"

    assert run("std", "repair", "drifted.json").err.endswith(f"nothing was written{asks}")
    assert run("std", "repair", NAME).err.endswith("1 valid afterwards, nothing was written\n")
    assert run("std", "repair", "text.txt", "-o", "new.json").err.endswith("0 valid afterwards, 0 written\n")
    assert "documents" not in run("std", "repair", "missing.json").err.partition("error: ")[0]


def test_several_documents_are_refused_with_the_place_that_is_no_folder(run: Run) -> None:
    done = run("std", "repair", write(NAME, single()), write("other.json", single()), "-o", "mended")

    assert 2 == done.code
    assert "several documents need a folder, and mended is none" in done.err
    assert not Path("mended").exists()


def test_a_file_in_the_place_of_a_folder_is_told(run: Run) -> None:
    told, named = (run("std", "repair", write(NAME, single()), "-o", name) for name in ("mended", "mended.json"))

    assert (0, True) == (told.code, "mended is a file: there was no folder of that name\n" in told.err)
    assert (0, False) == (named.code, "folder" in named.err)
