"""`harken std validate`: what is wrong with session documents, told to people and to programs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.std_documents import multi, single

Run = Any
MULTI = "2026-03-04-002-two-hands-multi.json"
SINGLE = "2026-03-04-001-mend-the-clock.json"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, data: object) -> str:
    Path(name).write_text(data if isinstance(data, str) else json.dumps(data), "utf-8")
    return name


def broken(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    data = multi()
    change(data)
    return data


@pytest.mark.usefixtures("folder")
class TestExitCode:
    def test_is_0_for_documents_that_are_valid(self, run: Run) -> None:
        done = run("std", "validate", write(MULTI, multi()), write(SINGLE, single()))
        assert (0, f"{MULTI}: valid, std-008\n{SINGLE}: valid, std-001\n") == (done.code, done.out)
        assert "2 documents, 2 valid" in done.err

    def test_is_1_for_errors(self, run: Run) -> None:
        done = run("std", "validate", write(MULTI, broken(lambda data: data.pop("summary"))))
        assert 1 == done.code
        assert f"{MULTI}: not valid, std-008, 1 error" in done.out
        assert "summary: `summary` is missing [missing-field]" in done.out

    def test_is_0_for_warnings_and_5_where_one_is_strict(self, run: Run) -> None:
        name = write(MULTI, broken(lambda data: data.pop("user_prompt")))
        assert 0 == run("std", "validate", name).code
        assert 5 == run("std", "validate", name, "--strict").code

    def test_is_5_for_errors_where_one_is_strict(self, run: Run) -> None:
        name = write(MULTI, broken(lambda data: data.pop("summary")))
        assert 5 == run("std", "validate", name, "--strict").code

    def test_is_3_for_a_file_that_is_not_there(self, run: Run) -> None:
        done = run("std", "validate", "nowhere.json", write(SINGLE, single()))
        assert (3, f"{SINGLE}: valid, std-001\n") == (done.code, done.out)
        assert "cannot read nowhere.json" in done.err


@pytest.mark.usefixtures("folder")
class TestFiles:
    def test_in_a_folder_are_all_checked(self, run: Run, folder: Path) -> None:
        (folder / "inner").mkdir()
        write(MULTI, multi())
        write(f"inner/{SINGLE}", single())
        write("package.json", {"name": "a program"})
        done = run("std", "validate", ".")
        assert [MULTI, "package.json", f"inner/{SINGLE}"] == [
            line.partition(":")[0] for line in done.out.splitlines() if not line.startswith(" ")
        ]

    def test_a_folder_without_any_is_told(self, run: Run, folder: Path) -> None:
        assert "there is no *.json in this folder" in run("std", "validate", ".").err

    def test_a_file_that_cannot_be_read_does_not_stop_the_others(self, run: Run, folder: Path) -> None:
        (folder / "a.json").symlink_to("nowhere")
        write(SINGLE, {**single(), "status": "done"})
        done = run("std", "validate", ".")
        assert "cannot read a.json" in done.err
        assert f"{SINGLE}: not valid" in done.out

    def test_a_pipe_in_a_folder_is_not_waited_for(self, run: Run, folder: Path) -> None:
        os.mkfifo(folder / "a.json")
        write(SINGLE, {**single(), "status": "done"})
        done = run("std", "validate", ".")
        assert "cannot read a.json: it is a pipe or a device" in done.err
        assert f"{SINGLE}: not valid" in done.out

    def test_stdin_is_a_document(self, run: Run) -> None:
        assert "-: valid, std-008\n" == run("std", "validate", "-", stdin=json.dumps(multi()).encode()).out

    def test_a_file_that_is_no_json_is_told_with_its_place(self, run: Run) -> None:
        done = run("std", "validate", write("a.json", '{"session_id": "a",\n "status": "b",}'))
        assert "line 2, column 15: " in done.out
        assert "[invalid-json]" in done.out

    def test_a_file_that_holds_something_else_is_told(self, run: Run) -> None:
        assert "[not-a-session]" in run("std", "validate", write("a.json", [1, 2])).out


@pytest.mark.usefixtures("folder")
class TestFindings:
    def test_of_one_kind_are_not_all_shown(self, run: Run) -> None:
        data = single()
        data["tool_calls"] = [{**data["tool_calls"][0], "call_id": number} for number in range(20)]
        done = run("std", "validate", write(SINGLE, data))
        assert 5 == done.out.count("`call_id` is")
        assert "and 15 more of wrong-type at tool_calls[].call_id (--json lists them all)" in done.out

    def test_are_all_in_the_json(self, run: Run) -> None:
        name = write(MULTI, broken(lambda data: data.update(status="completed", task_title=3)))
        (row,) = run("std", "validate", name, "--json").json
        assert (False, "std-008", "v3", 2) == (row["valid"], row["kind"], row["generation"], row["errors"])
        assert ["unknown-value", "wrong-type"] == sorted(finding["rule"] for finding in row["findings"])

    @pytest.mark.parametrize("columns", [60, 80, 120])
    def test_fit_the_window(self, run: Run, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
        monkeypatch.setenv("COLUMNS", str(columns))
        name = write(MULTI, broken(lambda data: data["messages"][0].update(message_type="shouting")))
        done = run("std", "validate", name)
        assert columns >= max(len(line) for line in done.out.splitlines() if line.startswith(" "))
        assert "acknowledgment" in done.out

    def test_cannot_play_with_the_terminal(self, run: Run) -> None:
        name = write(MULTI, broken(lambda data: data.update(status="\x1b]0;title\x07\n")))
        assert "\x1b" not in run("std", "validate", name).out


def test_what_is_mended_in_a_folder_alone_is_told_as_that(run: Run, folder: Path) -> None:
    wrong = broken(lambda data: data.update(status="completed"))
    by_name = run("std", "validate", write("mend.json", single()))
    by_value = run("std", "validate", write(MULTI, wrong))

    assert by_name.err.endswith(" of what was found (*); a name only where OUT is a folder\n")
    assert by_value.err.endswith("mends 1 of what was found (*)\n")
