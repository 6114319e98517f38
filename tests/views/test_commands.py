"""`harken view` and `harken trace` as a user meets them: drawn at any width, as JSON, and when something is wrong."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from harken.cli import main
from support.viewed import cafe, created, entry, text, write_log

VIEWS = {
    "dialog": ["Jack", "Jill"],
    "perspective": ["Jill", "Inner"],
    "flow": [],
    "tree": [],
    "timeline": [],
    "sequence": [],
    "heard": ["m14"],
    "interventions": [],
    "knows": ["Jill", "m14"],
}


@pytest.fixture
def log(tmp_path):
    return str(write_log(tmp_path / "cafe.jsonl", cafe()))


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def harken(capsys):
    """Runs a command: exit code, stdout, stderr."""

    def run(*args):
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return left.value.code or 0, out, err

    return run


class TestDrawing:
    def test_what_the_runtime_put_before_an_agent_is_a_notice(self, harken, tmp_path):
        notice = entry("m30", "root", "user", "The task has ended.", source="injected")
        log = write_log(tmp_path / "log.jsonl", [*cafe(), notice])

        for view in ("flow", "sequence"):
            _, out, _ = harken("view", view, log)
            (head,) = [line for line in out.splitlines() if line.endswith("m30") and not line.startswith(" ")]
            assert head.startswith("(notice) ")
            assert "(outside)" in out, "a person is somebody outside"

    def test_what_records_that_nobody_can_read_might_say_is_unknown(self, harken, tmp_path):
        log = write_log(tmp_path / "log.jsonl", [*cafe(), created("m30", "bob") | {"event_type": "novelty"}])

        _, out, _ = harken("view", "knows", log, "Bob", "m11")
        assert out.startswith("Bob may know it: some records cannot be read")
        _, out, _ = harken("view", "knows", log, "Bob", "m11", "--json")
        assert json.loads(out)["knows"] is None

    def test_knowing_is_told_in_a_sentence(self, harken, log):
        _, out, _ = harken("view", "knows", log, "Jill", "m14")

        assert out.startswith("Jill knows it: heard it in m15 ")

    def test_the_dialog_names_each_speaker_and_says_each_thing_once(self, harken, log):
        expected = """\
root m11
  You meet.
Jack m14
  Hello, my password: 1234 is easy
Jill m23
  *smiles*
"""

        assert (0, expected, "") == harken("view", "dialog", log, "Jack", "Jill")

    def test_a_dialog_without_agents_is_everybodys(self, harken, log):
        _, out, _ = harken("view", "dialog", log)

        assert "Only smile." in out

    def test_the_perspective_is_a_line_for_each_thing(self, harken, log):
        _, out, _ = harken("view", "perspective", log, "Jill", "Inner")

        assert "m21 Inner [Said]: Only smile.\nm22 Jill [Received]: Only smile.\n" in out

    def test_a_changed_delivery_shows_what_went_and_what_came_without_colour(self, harken, log):
        for view in (["heard", log, "m14"], ["interventions", log]):
            _, out, _ = harken("view", *view)

            assert "Hello, my password: [-1234-]{+[REDACTED]+} is easy" in out

    def test_the_tree_is_set_in(self, harken, log):
        _, out, _ = harken("view", "tree", log)

        assert "\n  └ Jill jill, child, 4 messages\n    └ Inner inner, child, 2 messages\n" in out

    def test_nothing_to_show_is_said_on_stderr(self, harken, tmp_path):
        log = write_log(tmp_path / "log.jsonl", [created("m1", "a"), entry("m2", "a", "user", "hi")])

        assert (0, "", "everything arrived as it was meant\n") == harken("view", "interventions", log)

    @pytest.mark.parametrize("columns", ["20", "40", "200"])
    @pytest.mark.parametrize("view", VIEWS)
    def test_no_line_is_wider_than_the_window(self, harken, log, monkeypatch, view, columns):
        monkeypatch.setenv("COLUMNS", columns)

        code, out, _ = harken("view", view, log, *VIEWS[view])

        assert 0 == code
        assert out
        assert [] == [line for line in out.splitlines() if cell_len(line) > int(columns)]

    def test_wide_characters_are_counted_as_wide(self, harken, tmp_path, monkeypatch):
        monkeypatch.setenv("COLUMNS", "40")
        log = write_log(tmp_path / "log.jsonl", [entry("m1", "a", "assistant", "你好世界" * 30)])

        for view in ("dialog", "timeline"):
            _, out, _ = harken("view", view, log)
            assert all(cell_len(line) <= 40 for line in out.splitlines())


class TestAPoorTerminal:
    @pytest.fixture
    def ascii(self, monkeypatch):
        """Runs a command as if its output went to a terminal that knows ASCII only."""

        def run(*args):
            stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
            with monkeypatch.context() as patch, pytest.raises(SystemExit) as left:
                patch.setattr("sys.stdout", stream)
                main([str(arg) for arg in args])
            stream.flush()
            return left.value.code or 0, stream.buffer.getvalue().decode("ascii")

        return run

    def test_gets_a_tree_it_can_draw(self, ascii, log):
        code, out = ascii("view", "tree", log)

        assert 0 == code
        assert "\n  `- Jill jill, child, 4 messages\n    `- Inner inner, child, 2 messages\n" in out

    def test_gets_dots_where_a_text_is_cut(self, ascii, tmp_path):
        log = write_log(tmp_path / "log.jsonl", [created("m1", "a"), entry("m2", "a", "assistant", "word " * 50)])

        for view in ("timeline", "flow", "sequence"):
            code, out = ascii("view", view, log)

            assert 0 == code
            assert "\\u" not in out
            assert [80] == [len(line) for line in out.splitlines() if line.endswith("...")]


EVIL = "\x1b]0;owned\x07 \x1b[2J \u202egnp.exe \x9b31m [bold red]markup[/] [link=file:///etc]x[/link] \r back"


@pytest.fixture
def evil(tmp_path):
    """Hostile words in every place that a view shows."""
    name = f"E{EVIL}"
    events = [
        created(f"m1{EVIL}", f"a{EVIL}", name=name, role=EVIL, language_model=EVIL),
        entry(f"m2{EVIL}", f"a{EVIL}", "assistant", EVIL, tool_calls=[{"id": "c", "function": {"name": EVIL}}]),
        created(f"m3{EVIL}", f"b{EVIL}", cause=f"m2{EVIL}", name="Bob"),
        text(f"m4{EVIL}", f"a{EVIL}", EVIL, f"m2{EVIL}"),
        entry(f"m5{EVIL}", f"b{EVIL}", "user", f"[{name}]: changed {EVIL}", substance=f"m4{EVIL}", hook=EVIL),
        entry(f"m6{EVIL}", f"a{EVIL}", "tool", f"Error: Action blocked by hook '{EVIL}': {EVIL}", tool_call_id="c"),
        {"message_id": f"m7{EVIL}", "event_type": EVIL, "agent_id": f"a{EVIL}", "content": EVIL},
    ]
    return str(write_log(tmp_path / "evil.jsonl", events))


class TestHostileText:
    ARGUMENTS = VIEWS | {
        "dialog": [],
        "perspective": ["Bob", f"a{EVIL}"],
        "heard": [f"m4{EVIL}"],
        "knows": ["Bob", f"m4{EVIL}"],
    }

    @pytest.mark.parametrize("view", ARGUMENTS)
    def test_comes_out_inert(self, harken, evil, view):
        for options in ([], ["--json"]):
            code, out, err = harken("view", view, evil, *self.ARGUMENTS[view], *options)

            assert 0 == code
            assert not set("\x1b\x07\x9b\u202e\r") & set(out + err)
            assert "markup" in out or view in ("tree", "knows")

    def test_markup_is_shown_as_it_was_written(self, harken, evil):
        _, out, _ = harken("view", "dialog", evil)

        assert "[bold red]markup[/]" in " ".join(out.split())

    @pytest.mark.parametrize("view", ARGUMENTS)
    def test_in_colour_there_are_no_sequences_but_those_of_colour(self, harken, evil, monkeypatch, view):
        monkeypatch.delenv("NO_COLOR")
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm-256color")

        _, out, _ = harken("view", view, evil, *self.ARGUMENTS[view])

        assert "\x1b[1" in out
        assert not set("\x1b\x07\x9b\u202e\r") & set(re.sub(r"\x1b\[[0-9;]*m", "", out))

    def test_in_an_error_it_comes_out_inert_too(self, harken, evil):
        code, _, err = harken("view", "dialog", evil, "Joan\x1b[2J")

        assert 3 == code
        assert "\x1b" not in err


class TestKnows:
    """The second in which Bob hears m14 is 1767225615."""

    @pytest.mark.parametrize(
        ("at", "known"),
        [
            ("m15", False),
            ("m16", True),
            ("2026-01-01T00:00:14Z", False),
            ("2026-01-01T00:00:15Z", True),
            ("2026-01-01T01:00:15+01:00", True),
            ("1767225614", False),
            ("1767225614.999", False),
            ("1767225615", True),
            ("1767225615.0", True),
            ("1767225614999", False),
            ("1767225615000000", True),
        ],
    )
    def test_by_a_message_or_a_time_however_it_is_written(self, harken, log, at, known):
        code, out, _ = harken("view", "knows", log, "Bob", "m14", "--at", at, "--json")

        assert (0, known) == (code, json.loads(out)["knows"])

    @pytest.mark.parametrize("at", ["17", "m99", "tomorrow", "1767225615.0.0", "nan", "9" * 30])
    def test_by_something_else_is_a_question_of_usage(self, harken, log, at):
        code, _, err = harken("view", "knows", log, "Bob", "m14", "--at", at)

        assert 2 == code
        assert "hint: a time is" in err


class TestJson:
    @pytest.mark.parametrize("view", VIEWS)
    def test_is_one_object_per_line(self, harken, log, view):
        code, out, err = harken("view", view, log, *VIEWS[view], "--json")

        assert (0, "") == (code, err)
        assert all(isinstance(json.loads(line), dict) for line in out.splitlines())
        assert out

    def test_of_the_dialog_is_the_dialog(self, harken, log):
        _, out, _ = harken("view", "dialog", log, "jack", "jill", "--json")

        assert {"message_id": "m11", "content": "You meet.", "agent_id": "root"} == json.loads(out.splitlines()[0])

    def test_of_heard_is_a_line_for_each_hearer(self, harken, log):
        _, out, _ = harken("view", "heard", log, "m14", "--json")

        assert ["jill", "bob", "root"] == [json.loads(line)["agent_id"] for line in out.splitlines()]


class TestMistakes:
    def test_no_view_is_a_question_of_usage(self, harken):
        assert 2 == harken("view")[0]

    @pytest.mark.parametrize("view", VIEWS)
    def test_no_session_is_a_question_of_usage(self, harken, view):
        assert 2 == harken("view", view)[0]

    def test_a_perspective_of_nobody_is_a_question_of_usage(self, harken, log):
        assert 2 == harken("view", "perspective", log)[0]

    def test_an_unknown_agent_lists_the_agents(self, harken, log):
        code, out, err = harken("view", "dialog", log, "Joan")

        assert (3, "") == (code, out)
        assert "no agent 'Joan'" in err
        assert "jill (Jill)" in err

    def test_an_unknown_message_says_where_to_look(self, harken, log):
        code, _, err = harken("view", "heard", log, "m999")

        assert 3 == code
        assert "timeline" in err

    def test_a_file_that_is_not_there_is_not_found(self, harken, tmp_path):
        assert 3 == harken("view", "tree", tmp_path / "none.jsonl")[0]

    def test_a_folder_is_no_session(self, harken, tmp_path):
        assert 2 == harken("view", "tree", tmp_path)[0]

    def test_a_broken_line_is_a_remark_and_not_an_end(self, harken, tmp_path, log):
        dirty = tmp_path / "dirty.jsonl"
        dirty.write_bytes(b"{broken\n" * 5 + Path(log).read_bytes())

        code, out, err = harken("view", "dialog", dirty, "Jack", "Jill")

        assert 0 == code
        assert out.startswith("root m11\n")
        assert "line 1" in err
        assert "2 more lines" in err

    @pytest.mark.parametrize(
        "content", ['{"type": "user", "message": {"content": "hi"}}\n', "root:x:0:0:root:/root:/bin/sh\n" * 9, "\x00\n"]
    )
    def test_a_file_without_a_single_event_is_no_session(self, harken, tmp_path, content):
        path = tmp_path / "other.jsonl"
        path.write_text(content, encoding="utf-8")

        for words in (["view", "tree", path], ["view", "dialog", path, "--json"], ["trace", path, "m1"]):
            code, out, err = harken(*words)

            assert (3, "") == (code, out)
            assert "no event of a session log" in err
            assert ('"hint":' if "--json" in words else "\nhint: ") in err

    @pytest.mark.parametrize("content", ["", "\n\n"])
    def test_a_session_in_which_nothing_has_happened_yet_is_one(self, harken, tmp_path, content):
        path = tmp_path / "new.jsonl"
        path.write_text(content, encoding="utf-8")

        code, out, err = harken("view", "tree", path)

        assert (0, "") == (code, out)
        assert "nothing has happened in this session yet" in err

    def test_lines_that_are_wrong_are_told_and_counted(self, harken, tmp_path):
        events = [created("m1", "a"), *(entry("m2", "a", "user", "again") for _ in range(2001))]

        code, _, err = harken("view", "tree", write_log(tmp_path / "log.jsonl", events))

        assert 0 == code
        assert "line 3: message id used twice: m2\n" in err
        assert "1,997 more lines with problems" in err


class TestBesideAStore:
    def test_a_file_is_looked_at_whatever_the_store_is_like(self, harken, log, tmp_path, monkeypatch):
        (tmp_path / "broken.db").write_bytes(b"this is no database, and never was one" * 100)
        monkeypatch.setenv("HARKEN_STORE", str(tmp_path / "broken.db"))

        assert (0, "") == harken("view", "tree", log)[::2]
        assert (0, "") == harken("trace", log, "m24")[::2]
        assert 0 != harken("view", "tree", "session")[0]

    def test_a_session_may_be_called_like_a_folder(self, harken, log, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("HARKEN_STORE", str(tmp_path / "store.db"))
        harken("import", log)
        (tmp_path / "cafe").mkdir()

        assert "Jill" in harken("view", "tree", "cafe")[1]


class TestTrace:
    def test_goes_back_and_on(self, harken, log):
        _, out, _ = harken("trace", log, "m24", "--json")

        assert [("before", "m23"), ("this", "m24"), ("after", "m25"), ("after", "m26")] == [
            (step["step"], step["message_id"]) for step in map(json.loads, out.splitlines())
        ]

    def test_takes_the_session_either_way(self, harken, log):
        assert harken("trace", log, "m24") == harken("trace", "m24", "--session", log)

    def test_marks_the_message_itself(self, harken, log):
        _, out, _ = harken("trace", log, "m24")

        assert "** 2026-01-01 00:00:23 UTC m24 Jack heard\n    [Jill]: *smiles*\n" in out

    def test_without_a_session_is_a_question_of_usage(self, harken):
        assert 2 == harken("trace", "m24")[0]
        assert 2 == harken("trace")[0]

    def test_of_an_unknown_message_is_not_found(self, harken, log):
        assert 3 == harken("trace", log, "m999")[0]
