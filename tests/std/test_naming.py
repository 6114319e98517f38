"""How the files of session documents are named."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.formats.std.naming import LONGEST, FileName, date_in, file_name, is_multi_name, next_free, parse_name, slug


class TestASlug:
    @pytest.mark.parametrize(
        ("expected", "title"),
        [
            ("mend-the-clock", "Mend the clock!"),
            ("login-bug", "修复 login bug"),
            ("cafe-creme", "Café  crème"),
            ("dont-panic", "Don't panic"),
            ("session", "修复"),
            ("session", ""),
            ("session", "multi"),
            ("etc-passwd", "../../etc/passwd\x00"),
            ("two-hands", "Two hands multi -multi"),
            ("31mred", "\x1b[31mred"),
        ],
    )
    def test_is_the_title_in_plain_letters(self, expected: str, title: str) -> None:
        assert expected == slug(title)

    def test_is_cut_after_a_word(self) -> None:
        assert "word-" * 8 + "word" == slug("word " * 100)

    def test_of_one_long_word_is_cut_anyhow(self) -> None:
        assert "x" * LONGEST == slug("x" * 1_000_000)

    @given(st.text(), st.booleans())
    def test_makes_a_name_that_is_safe_and_read_back_whatever_the_title(self, title: str, multi: bool) -> None:
        name = file_name(title, date="2026-03-04", number=7, multi=multi)

        assert re.fullmatch(r"2026-03-04-007-[a-z0-9]+(-[a-z0-9]+)*\.json", name.text)
        assert name == parse_name(name.text) == parse_name(name.session_id)
        assert multi == is_multi_name(name.text)


class TestANumber:
    def test_is_the_one_after_the_last_of_that_date(self) -> None:
        names = [
            "2026-03-04-001-a.json", "2026-03-04-009-b-multi.json", "2026-03-04-010-c.log.jsonl",
            "2026-03-05-040-d.json", "notes.json", "2026-03-04-x.json", "2026-03-04-99999999999-y.json",
        ]  # fmt: skip

        assert 11 == next_free(names, "2026-03-04")

    def test_of_a_new_date_is_the_first(self) -> None:
        assert 1 == next_free([], "2026-03-04")

    def test_has_three_digits_or_more(self) -> None:
        assert "2026-03-04-1000-a.json" == FileName(date="2026-03-04", number=1000, slug="a").text


class TestANameThatIsNone:
    @pytest.mark.parametrize(
        "name",
        ["", "mock-session.json", "2026-03-04.json", "2026-13-04-001-a.json", "2026-03-04-001-.json",
         "2026-03-04-1-a/b", "2026-03-04-001--multi.json"],
    )  # fmt: skip
    def test_has_no_parts(self, name: str) -> None:
        assert parse_name(name) is None


class TestADate:
    @pytest.mark.parametrize("time", [None, 7, "", "yesterday", "2026-02-30T00:00:00Z", "20260304T10", "2026-3-4"])
    def test_is_unknown_where_the_time_has_none(self, time: object) -> None:
        assert date_in(time) is None

    def test_is_the_one_that_is_written(self) -> None:
        assert "2026-03-04" == date_in("2026-03-04T23:59:59+08:00")
