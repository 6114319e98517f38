"""Text from outside: what is text at all; made fit to be seen, since neither a terminal nor a document trusts anything
in a transcript; and how many columns it takes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff"
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
    "\u180e\u200b\u2028\u2029\u2061-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""C0 and C1 controls except tab and newline, the characters that reorder text, and those that nobody sees though a
program reads them: of these the joiners stay, which scripts and emoji need."""

_COLOUR = re.compile("\x1b\\[[0-9;:]{0,32}[mK]")


def text_of(value: object) -> str:
    """The value where it is a text, else the empty one: where a text belongs, a record may hold anything."""
    return value if isinstance(value, str) else ""


def plain(text: str) -> str:
    """The text without the sequences that colour it in a terminal, and with one kind of line end."""
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def safe(text: str) -> str:
    """The text with every control character made visible."""
    if text.isprintable():  # then there is none, and no line break either
        return text
    return CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def safe_json(text: str) -> str:
    """A text of JSON in which every such character is an escape of JSON: it says the same."""
    return text if text.isprintable() else CONTROL.sub(_json_escape, text)


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def one_line(text: str) -> str:
    """The text with every control character and every line break made visible."""
    return text if text.isprintable() else safe(text).replace("\n", "\\n")


def wrap(line: str, columns: int) -> Iterator[tuple[int, int]]:
    """Where the pieces of a line begin and end that have at most so many columns each. It is cut at spaces, which are
    in no piece; a word that is longer than a piece is cut anywhere."""
    at = 0
    while (end := end_of(line, at, columns)) < len(line):
        space = line.rfind(" ", at, end + 1)
        is_between = space > at and bool(line[at:space].strip())
        if is_between and (space == end or _fits(line, space + 1, columns)):
            yield at, space
            at = space + 1
        else:
            yield at, end
            at = end
    yield at, len(line)


def _fits(line: str, at: int, columns: int) -> bool:
    """Whether the word that begins there has at most so many columns."""
    end = end_of(line, at, columns)
    return end == len(line) or " " in line[at : end + 1]


def end_of(line: str, at: int, columns: int) -> int:
    """Where the piece ends that begins there and has so many columns; it has at least one character."""
    if line[at : at + columns + 1].isascii():
        return min(len(line), at + columns)
    used = 0
    for place in range(at, len(line)):
        used += width_of(line[place])
        if used > columns:
            return max(place, at + 1)
    return len(line)


def width_of(character: str) -> int:
    """The columns a character takes: none for a combining one, two for a wide one."""
    if character.isascii():
        return 1
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def close_to(word: str, known: Iterable[str], *, most: int = 1, least: float = 0.6) -> list[str]:
    """Those of the known words that a word may have been meant for, the closest first."""
    import difflib  # only who mistyped needs it

    return difflib.get_close_matches(word, list(known), n=most, cutoff=least)
