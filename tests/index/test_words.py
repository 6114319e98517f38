"""Text prepared for the index: whatever stands in it is found by SQLite's own tokenizer."""

from __future__ import annotations

import re
import sqlite3
import sys
import unicodedata
from collections.abc import Iterable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harken.events import Prompt, Response, ToolResult
from harken.formats import get
from harken.index.words import expression, prepare
from support.recordings import session_files

HAN = "検索全文東京大阪索引会議"
KANA = "ひらがなカタカナー"
HANGUL = "검색한국어"


class Texts:
    """Texts in an index of the kind that the real one has."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.connection = sqlite3.connect(":memory:")
        self.connection.execute("CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='unicode61')")
        rows = ((number, prepare(text)) for number, text in enumerate(texts))
        self.connection.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", rows)

    def find(self, word: str, *, prefix: bool = False) -> set[int]:
        asked = expression(word, prefix=prefix)
        return {n for (n,) in self.connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (asked,))}


def test_the_parts_of_a_camel_case_word_are_appended_once_in_their_order():
    assert "findSession findSession\nfind Session" == prepare("findSession findSession")


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("findSession", ["find", "session"]),
        ("HTTPServer", ["http", "server"]),
        ("parseJSONFile2", ["parse", "json", "file2", "file"]),
        ("HTTP2Server", ["http2", "http", "server"]),
        ("base64Encode", ["base64", "base", "encode"]),
        ("find_sessionName", ["find", "session", "name", "sessionName"]),
        ("src/harken/indexFile.py", ["src", "index", "file", "indexFile.py", "src/harken"]),
        ("ERR_MODULE_NOT_FOUND", ["module", "NOT_FOUND", "ERR_MODULE_NOT_FOUND"]),
        ("TS2345", ["TS2345", "ts2345"]),
        ("0x80070005", ["0x80070005"]),
        ("ПолучитьДанные", ["получить", "данные"]),
        ("étéFini", ["été", "fini", "ete"]),
    ],
)
def test_an_identifier_is_found_by_its_parts_and_as_a_whole(word, parts):
    texts = Texts([f"before {word}(after)", "nothing of it"])

    assert {part: {0} for part in [word, *parts]} == {part: texts.find(part) for part in [word, *parts]}


@pytest.mark.parametrize("asked", ["find_session", "findSession", "find session", "find-session"])
def test_an_identifier_is_found_in_its_other_spellings(asked):
    assert {0, 1, 2} == Texts(["a findSession b", "a find_session b", "find session", "session find"]).find(asked)


def test_encoded_data_is_not_taken_apart():
    data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"

    assert data == prepare(data)


@pytest.mark.parametrize("word", ["検", "検索", "全文検", "全文検索", "カタカナ", "검", "한국어", "第3章", "検索query"])
def test_words_of_languages_without_spaces_are_found_anywhere(word):
    texts = Texts([f"これは{word}です", word, f"{word}。", f"abc {word} def", "ここ に は な い"])

    assert {0, 1, 2, 3} == texts.find(word)


def test_a_middle_dot_separates_words():
    texts = Texts(["東京・大阪", "東京大阪"])

    assert ({1}, {0, 1}) == (texts.find("京大"), texts.find("大阪"))


def test_a_name_is_found_however_its_accents_and_syllables_are_spelled():
    texts = Texts(["r\u0065\u0301sum\u0065\u0301", "\u1112\u1161\u11ab\u1100\u116e\u11a8", "か\u3099っこう"])

    assert ({0}, {1}, {2}) == (texts.find("résumé"), texts.find("한국"), texts.find("がっ"))


def test_every_accent_that_joins_a_letter_is_joined():
    marks = [mark for mark in map(chr, range(0x80, sys.maxunicode)) if unicodedata.category(mark).startswith("M")]
    apart = [letter + mark for mark in marks for letter in "eEn"]
    assert [unicodedata.normalize("NFC", text) for text in apart] == [prepare(text).split("\n")[0] for text in apart]


@pytest.mark.parametrize("sign", ["🤖", "🏷️", "✅", "₿", "⏸", "→", "…", "™"])
def test_a_sign_hides_no_word_beside_it(sign):
    """Not even one that is younger than SQLite's table of characters, which would count it as a letter."""
    assert {0} == Texts([f"{sign}report{sign}"]).find("report")


def test_colours_of_a_terminal_are_no_part_of_a_word():
    assert {0} == Texts(["\x1b[1;31mreport\x1b[0m"]).find("report")
    assert {0} == Texts(["find\x1b[31mSession\x1b[m"]).find("findSession")


def test_a_word_behind_a_spelled_line_break_is_found():
    texts = Texts([r'{"text": "first\nsecond\tthird"}', r"C:\new\table"])

    assert ({0}, {0}, {1}, {1}) == tuple(map(texts.find, ("second", "third", "new", "table")))


def test_what_has_no_letter_and_no_digit_finds_nothing():
    assert ["", "", ""] == [expression(text) for text in ("", "--", '"*"')]


@given(st.text())
@settings(max_examples=200, deadline=None)
def test_no_text_can_break_the_index_or_be_taken_for_syntax(text):
    """Not even one with quotation marks, NULs, lone surrogates or the operators of FTS5."""
    texts = Texts([text])
    assume(expression(text))

    found = texts.find(text) | texts.find(text, prefix=True)

    # What Unicode 6.1 did not have yet is no word to SQLite.
    assert found <= {0}
    if text.isascii():
        assert {0} == found


CAMEL = st.lists(st.sampled_from(["find", "http", "x", "session", "json", "id"]), min_size=1, max_size=5).flatmap(
    lambda parts: st.lists(st.sampled_from([str.capitalize, str.upper]), min_size=len(parts), max_size=len(parts)).map(
        lambda ways: [parts[0], *(way(part) for way, part in zip(ways[1:], parts[1:], strict=True))]
    )
)


@given(st.lists(st.lists(CAMEL, max_size=4), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_a_part_is_found_in_exactly_the_texts_that_have_it(all_words):
    """Against a look at every text; parts are those that a reader of the word sees."""
    texts = [" ".join("".join(parts) for parts in words) for words in all_words]
    index = Texts(texts)
    wanted = {part.lower() for text in texts for part in _parts_by_hand(text)}

    for part in wanted:
        holding = {n for n, text in enumerate(texts) if part in {found.lower() for found in _parts_by_hand(text)}}
        assert holding == index.find(part) & holding


def _parts_by_hand(text: str) -> list[str]:
    return re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", text)


@given(
    st.lists(st.text(alphabet=HAN + KANA + HANGUL + "・。 a", max_size=12), min_size=1, max_size=6),
    st.text(alphabet=HAN + KANA + HANGUL, min_size=1, max_size=4),
)
@settings(max_examples=200, deadline=None)
def test_a_cjk_word_is_found_in_exactly_the_texts_that_have_it(texts, word):
    texts = [*texts, f"{texts[0]}{word}{texts[-1]}"]

    assert {n for n, text in enumerate(texts) if word in text} == Texts(texts).find(word)


def test_recorded_sessions_are_found_by_every_part_and_cjk_word():
    """Recall 1.0 against a look at every text, on what runtimes really wrote."""
    texts = _recorded_texts()
    index = Texts(texts)
    by_word: dict[str, set[int]] = {}
    for number, text in enumerate(texts):
        for word in _words_by_hand(text):
            by_word.setdefault(word, set()).add(number)
    chosen = sorted(by_word)[:: max(1, len(by_word) // 400)]

    assert len(chosen) > 100
    assert {} == {word: lost for word in chosen if (lost := by_word[word] - index.find(word))}


def _recorded_texts() -> list[str]:
    texts: list[str] = []
    files = [(name, path) for name in ("claude-code", "codex") for path in session_files(name)]
    for name, path in files[:: max(1, len(files) // 60)]:
        format = get(f"{name}-v1")
        for event in format.read(path.read_bytes()[:400_000]):
            match event:
                case Prompt(content=text) | Response(content=text) | ToolResult(output=text) if text:
                    texts.append(text[:20_000])
    return texts


def _words_by_hand(text: str) -> set[str]:
    """Parts of identifiers that a name may have, and CJK words of one to four characters."""
    found = set()
    for word in re.findall(r"(?<![^\W_])[A-Za-z]{2,40}(?![^\W_])", text):
        found |= {part.lower() for part in _parts_by_hand(word) if len(part) > 1}
    for run in re.findall(r"[\u4e00-\u9fa5\u3041-\u3096\u30a1-\u30fa\uac00-\ud7a3]+", text):
        found |= {run[at : at + size] for size in (1, 2, 3, 4) for at in range(len(run) - size + 1)}
    return found
