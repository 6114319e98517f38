"""Text as the full-text index takes it: so that parts of identifiers and Chinese, Japanese and Korean words are found.

SQLite's `unicode61` takes every run of letters and digits for a word. That finds the parts of `snake_case`, of paths
and of error codes, but neither those of `camelCase`, nor anything in a language that writes without spaces. So:

- the parts of every camelCase word are appended to the text, each word once;
- so is the word behind a line break or tab that is spelled `\\n` or `\\t`, as in JSON that somebody printed;
- what tells a terminal which colour to use is left out: it would be a part of the word behind it;
- a run of CJK characters becomes its pairs of neighbours, and its last character alone: a word of two characters is
  one of the pairs, a longer one is a phrase of them, and a single character begins a pair or ends a run.

What is looked for goes through the same rules (`expression`), so that it is found wherever it stands.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from operator import add

VERSION = 3
"""The version of what `prepare` gives. A change of it makes every index be built again."""

# A byte of a small letter or digit, a capital, or what separates words. Bytes beyond ASCII count as small letters: they
# mostly are some, and a wrong guess only repeats a word.
_CLASSES = bytes(
    ord("U" if byte < 0x80 and chr(byte).isupper() else "l" if byte >= 0x80 or chr(byte).isalnum() else " ")
    for byte in range(256)
)
_SEAMS = (b"lU", b"UUl")
"""Where a part ends: `find|Session`, `HTTP|Server`."""

# Capitals of other alphabets: Latin, Greek, Cyrillic. Texts without the bytes these begin with are not looked through.
_OTHER_CAPITALS = "\u00c0-\u00d6\u00d8-\u00de\u0391-\u03a9\u0400-\u042f"
_CAPITALS = f"A-Z{_OTHER_CAPITALS}"
_SMALL = "a-z\u00df-\u00f6\u00f8-\u00ff\u03b1-\u03c9\u0430-\u045f"
_OTHER_SEAM = re.compile(f"[{_OTHER_CAPITALS}](?<=[^\\W_].)")
_NO_ALPHABETS = bytes(byte for byte in range(256) if not 0xC3 <= byte <= 0xD1)
_WORD_BEFORE = re.compile(r"[^\W_]*\Z")
_WORD_AFTER = re.compile(r"[^\W_]*")

_PART = re.compile(f"[{_CAPITALS}]+[0-9]*(?![{_SMALL}0-9])|[{_CAPITALS}]?[^\\W_{_CAPITALS}]+|[{_CAPITALS}]|[\\W_]+")
_DIGIT = re.compile(r"\d")
_LETTERS_OR_DIGITS = re.compile(r"\d+|[^\W\d_]+")
_LONGEST = 200
"""A longer word is no name; its parts are not looked for."""
_LONG, _SHORT_PARTS = 20, 4
"""A word longer than the first, with digits, and parts on average shorter than the second is encoded data."""

# Bytes with which a CJK character may begin. Emoji begin with F0 too, and are told apart by the expression below.
_LEADS = bytes([0xE1, *range(0xE3, 0xEE), 0xEF, 0xF0])
_NO_LEADS = bytes(byte for byte in range(256) if byte not in _LEADS)

# The letters of these scripts; U+30FB separates words.
_CJK = (
    "\u1100-\u11ff\u3005-\u3007\u3031-\u3035\u303b\u303c\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7a3"
    "\uf900-\ufa6d\ufa70-\ufad9\uff66-\uffdc\U00020000-\U0003ffff"
)
_RUN = re.compile(f"[{_CJK}]+")

_ASCII = bytes(range(0x80))
_ACCENTS = (b"\xcc", b"\xcd")
"""How the bytes of accents begin that become one with an ASCII letter before them. No others do."""

# SQLite takes what Unicode 6.1 had not named yet for letters: newer signs and emoji would hide the words beside them.
_SIGN = re.compile("[\u20a0-\u20cf\u23e9-\u23ff\U0001f000-\U0001faff]+")
_SIGNS = (b"\xf0", b"\xe2\x82", b"\xe2\x8f")
"""How the bytes of these begin."""


_COLOUR = re.compile("\x1b\\[[0-9;:?]*[A-Za-z]")
_BEHIND_BREAK = re.compile(r"\\[nrt]([^\W_]+)")


def without_colours(text: str) -> str:
    """The text without what tells a terminal how to show it."""
    # One character is looked for at the speed of memory, and few texts have it; two are not.
    return _COLOUR.sub("", text) if "\x1b" in text else text


def prepare(text: str) -> str:
    """The text as it goes into the index."""
    text = without_colours(text)
    words: dict[bytes, None] = {}
    data = text.encode("utf-8", "replace")
    if not text.isascii():
        text, data, words = _of_other_alphabets(text, data)
    _add_camel_words(data, words)
    parts = [*filter(None, map(_spoken, words))]
    if "\\" in text:
        parts += dict.fromkeys(_BEHIND_BREAK.findall(text))
    return f"{text}\n{' '.join(parts)}" if parts else text


def _of_other_alphabets(text: str, data: bytes) -> tuple[str, bytes, dict[bytes, None]]:
    """A text that is not all ASCII and its bytes, as they go into the index, and the words with foreign capitals."""
    foreign = data.translate(None, _ASCII)  # everything is looked for here: it is little, mostly
    text, data = _one_spelling(text, data, foreign)
    if foreign.translate(None, _NO_LEADS):
        text = _RUN.sub(_pairs, text)
        data = text.encode()
    return text, data, _words_of_other_alphabets(text) if foreign.translate(None, _NO_ALPHABETS) else {}


def _one_spelling(text: str, data: bytes, foreign: bytes) -> tuple[str, bytes]:
    """What can be written in several ways, in one (some systems take file names apart); newer signs as spaces. The text
    and its bytes."""
    spelled = data.decode()  # without lone surrogates; SQLite takes none
    if any(map(foreign.__contains__, _ACCENTS)) or not unicodedata.is_normalized("NFC", foreign.decode()):
        spelled = unicodedata.normalize("NFC", spelled)
    if any(map(foreign.__contains__, _SIGNS)):
        spelled = _SIGN.sub(" ", spelled)
    return (text, data) if spelled == text else (spelled, spelled.encode())


def _pairs(run: re.Match[str]) -> str:
    characters = run[0]
    return f" {' '.join(map(add, characters, characters[1:]))} {characters[-1]} "


def _add_camel_words(data: bytes, found: dict[bytes, None]) -> None:
    """Add the words with a seam in them, each once."""
    classes = data.translate(_CLASSES)
    find, last = classes.find, classes.rfind
    for seam in _SEAMS:
        at = find(seam)
        while at >= 0:
            end = find(b" ", at)
            if end < 0:
                end = len(data)
            found[data[last(b" ", 0, at) + 1 : end]] = None
            at = find(seam, end)


def _words_of_other_alphabets(text: str) -> dict[bytes, None]:
    """The words in which a capital of another alphabet stands behind a letter."""
    found: dict[bytes, None] = {}
    seam = _OTHER_SEAM.search(text)
    while seam is not None:
        at = seam.start()
        before = _WORD_BEFORE.search(text[max(0, at - _LONGEST) : at])
        after = _WORD_AFTER.match(text, at, at + _LONGEST)
        word = (before[0] if before else "") + (after[0] if after else "")
        found[word.encode()] = None
        seam = _OTHER_SEAM.search(text, after.end() if after else at + 1)
    return found


@lru_cache(maxsize=65_536)
def _spoken(word: bytes) -> str:
    """The parts of a word as the index takes them; once more by digits where it has some. Names come again and again,
    and this is most of the work on one."""
    if len(word) > _LONGEST:
        return ""
    text = word.decode("utf-8", "replace")
    parts = parts_of(text)
    if len(parts) < 2:
        return ""
    spoken = " ".join(parts)
    if _DIGIT.search(text) is None:
        return spoken
    if len(text) > _LONG and len(text) < _SHORT_PARTS * len(parts):
        return ""
    finer = _LETTERS_OR_DIGITS.findall(spoken)
    return spoken if len(finer) == len(parts) else f"{spoken} {' '.join(finer)}"


def parts_of(word: str) -> list[str]:
    """`findHTTPSession2` is `find`, `HTTP` and `Session2`."""
    parts = _PART.findall(word)
    return parts if word.isalnum() else [part for part in parts if part.isalnum()]


# -- what is looked for ------------------------------------------------------------------------------------------------


def is_unspaced(character: str) -> bool:
    """Whether it is of a script that puts no spaces between words."""
    return _RUN.match(character) is not None


def expression(text: str, *, prefix: bool = False) -> str:
    """What finds a word or a phrase in prepared text, in the language of FTS5; empty where nothing in it is a word.

    It consists of quoted strings alone: nothing in the text is taken for syntax."""
    data = text.encode("utf-8", "replace")
    text, _ = _one_spelling(text, data, data.translate(None, _ASCII))
    if not any(map(str.isalnum, text)):
        return ""
    spellings = [_phrase(text, prefix=prefix)]
    parts = parts_of(text)
    if len(parts) > 1 and text.isalnum() and not _RUN.search(text):
        spellings.append(_quoted(" ".join(parts), prefix=prefix))
    return spellings[0] if len(spellings) == 1 else f"({' OR '.join(spellings)})"


def _phrase(text: str, *, prefix: bool) -> str:
    """The phrase of the text's words, and of the pairs of its CJK runs."""
    stripped = text.rstrip()
    runs = list(_RUN.finditer(stripped))
    if not runs or runs[-1].end() != len(stripped):
        return _quoted(_RUN.sub(_pairs, stripped), prefix=prefix)
    last = runs[-1]
    before = _RUN.sub(_pairs, stripped[: last.start()])
    # The run may go on in the text: its last character is no word there, unless it is all there is.
    pairs = " ".join(map(add, last[0], last[0][1:])) or last[0]
    return _quoted(f"{before} {pairs}", prefix=prefix or len(last[0]) == 1)


def _quoted(text: str, *, prefix: bool) -> str:
    # A quotation mark would end the string, a NUL the query; both separate words, as they do in the index.
    return '"' + text.replace('"', " ").replace("\0", " ") + '"' + ("*" if prefix else "")
