"""Bytes that are no JSON: where they stop being it, what the likely cause is, and what they must have been where there
is only one way to read them."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from harken.errors import BadRecord
from harken.formats.std.document import loads
from harken.formats.std.encodings import utf_16
from harken.formats.std.findings import DocumentChange, DocumentFinding

from .json_flaws import Flaw, flaws

RULE = "invalid-json"
_BOM = b"\xef\xbb\xbf"

CAUSES = {
    "quote": 'a quote inside a text, which must be written \\"',
    "odd-quote": 'a quote inside a text, which must be written \\", or one too many: it is not clear which',
    "line-break": "a text that goes over a line break, which must be written \\n, or that lacks its closing quote",
    "control-character": "a control character in a text, which must be written as an escape",
    "trailing-comma": "a comma behind the last entry",
    "missing-comma": "a comma is missing here",
    "missing-colon": "a colon is missing behind the key",
    "wide-colon": "a colon of Chinese writing behind the key",
    "wide-comma": "a comma of Chinese writing between two entries",
    "missing-value": "a value or a key is missing here",
    "left-out": "dots where something was left out: what they stand for cannot be known",
    "comment": "a comment, which JSON does not have",
    "single-quotes": "single quotes: JSON has texts in double quotes alone",
    "odd-quotes": "typographic quotes around a text: JSON has texts in double quotes alone",
    "key-without-quotes": "a key without quotes",
    "text-without-quotes": "a text without quotes",
    "broken-key": "a key with a quote, a line break or a control character in it",
    "escape": "a backslash that begins no escape: a backslash must be written \\\\",
    "not-a-number": "NaN or Infinity, which JSON does not have",
    "python-word": "True, False or None, as Python writes them: JSON has true, false and null",
    "number": "a number that is not written as JSON has it",
    "large-number": "a number that is too large for any program",
    "wrong-bracket": "a bracket that closes what is not open",
    "several": "several documents, one after another, as in JSON lines: a session document is one object",
    "after-the-end": "text behind the end of the document",
    "cut-off": "the file ends in the middle: it was cut off, or closing brackets or quotes are missing",
    "empty": "the file is empty",
    "deep": "it is nested too deeply",
    "fence": "a fence of Markdown around the document",
    "words": "words around a fence of Markdown: a session document is one object",
    "html": "this is a page of HTML or XML",
    "utf-16": "it is encoded as UTF-16: JSON is UTF-8",
    "encoding": "bytes that are no UTF-8: perhaps the file has another encoding",
    "bom": "a byte order mark before the document",
    "stray": "a character that has no place here",
    "garbage": "there is more wrong here than can be told",
}
"""Cause to what is said of it."""

_MENDED = {
    "quote": ("a quote inside a text was escaped", "{} quotes inside a text were escaped"),
    "line-break": ("a line break in a text was escaped", "{} line breaks in texts were escaped"),
    "control-character": ("a control character was escaped", "{} control characters were escaped"),
    "trailing-comma": ("a comma behind the last entry was removed", "{} commas behind last entries were removed"),
    "missing-comma": ("a missing comma was put in", "{} missing commas were put in"),
    "wide-colon": (
        "a colon of Chinese writing is that of JSON now",
        "{} colons of Chinese writing are those of JSON now",
    ),
    "wide-comma": (
        "a comma of Chinese writing is that of JSON now",
        "{} commas of Chinese writing are those of JSON now",
    ),
    "comment": ("a comment was removed", "{} comments were removed"),
    "fence": ("a fence of Markdown was removed", "{} fences of Markdown were removed"),
    "words": ("words around the document were removed, with its fence", ""),
    "escape": ("a backslash that begins no escape was escaped", "{} backslashes that begin no escape were escaped"),
    "not-a-number": ("NaN or Infinity is null now", "{} times NaN or Infinity is null now"),
    "python-word": ("a word of Python is that of JSON now", "{} words of Python are those of JSON now"),
    "single-quotes": ("single quotes are double ones now", "single quotes of {} texts are double ones now"),
    "odd-quotes": ("typographic quotes are double ones now", "typographic quotes of {} texts are double ones now"),
    "key-without-quotes": ("a key was put in quotes", "{} keys were put in quotes"),
    "bom": ("the byte order mark was removed", ""),
    "utf-16": ("UTF-16 was encoded as UTF-8", ""),
}


class Mended(msgspec.Struct, frozen=True, kw_only=True):
    """JSON that was made from bytes that were none."""

    data: bytes
    changes: list[DocumentChange]


def explain(data: bytes) -> DocumentFinding | None:
    """Why the bytes are no JSON; None where they are."""
    try:
        loads(data)
    except BadRecord as problem:
        text, flaw = _first_flaw(data)
        line, column = _place(text, flaw.at)
        cause = CAUSES.get(flaw.cause)
        said = f"the file is no JSON; likely cause: {cause}" if cause else str(problem)
        return DocumentFinding(
            rule=RULE,
            level="error",
            path="",
            message=said,
            repairable=mend(data) is not None,
            line=line,
            column=column,
        )
    return None


def mend(data: bytes) -> Mended | None:
    """The JSON that the bytes must have been; None where they are JSON already, or where that would be a guess."""
    decoded = _decoded(data)
    if isinstance(decoded, Flaw):
        return None
    text, marks = decoded
    found = list(flaws(text))
    if found and found[-1].instead is None:
        return _from_python(text, marks) if any(flaw.cause in _OF_PYTHON for flaw in found) else None
    if not found and not marks:
        return None
    mended = _replaced(text, found).encode("utf-8", "surrogatepass")
    try:
        loads(mended)
    except BadRecord:
        return None
    return Mended(data=mended, changes=[*_decoding(marks), *_changes(text, found)])


def _decoding(marks: list[str]) -> list[DocumentChange]:
    return [_change(_MENDED[mark][0]) for mark in marks]


_OF_PYTHON = ("single-quotes", "python-word")
"""What objects have that Python wrote."""


def _from_python(text: str, marks: list[str]) -> Mended | None:
    """An object as Python prints it: what has quotes of both kinds has one reading there."""
    from .python_text import json_of_python

    made = json_of_python(text)
    said = "the document was written as Python has it, and is JSON now"
    return None if made is None else Mended(data=made, changes=[*_decoding(marks), _change(said)])


def _decoded(data: bytes) -> tuple[str, list[str]] | Flaw:
    """The text, and what had to be done to get at it; or the flaw that is in the way."""
    if encoding := utf_16(data):
        try:
            return data.decode(encoding).removeprefix("\ufeff"), ["utf-16"]
        except UnicodeDecodeError:
            return Flaw(cause="encoding", at=0, end=0)
    try:
        text = data.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as problem:
        before = data[: problem.start].decode("utf-8", "replace")
        return Flaw(cause="encoding", at=len(before), end=len(before))
    return text, ["bom"] if data.startswith(_BOM) else []


def _first_flaw(data: bytes) -> tuple[str, Flaw]:
    """The text as far as it can be decoded, and the first flaw in it."""
    decoded = _decoded(data)
    if isinstance(decoded, Flaw):
        return data.decode("utf-8", "replace"), decoded
    text, marks = decoded
    if "utf-16" in marks:
        return text, Flaw(cause="utf-16", at=0, end=0)
    begin = len(text) - len(text.lstrip())
    if text.startswith("<", begin):
        return text, Flaw(cause="html", at=begin, end=begin)
    return text, next(flaws(text), Flaw(cause="unknown", at=0, end=0))


def _place(text: str, at: int) -> tuple[int, int]:
    """Line and column, both from 1."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def _replaced(text: str, found: list[Flaw]) -> str:
    parts, at = [], 0
    for flaw in sorted(found, key=lambda flaw: (flaw.at, flaw.end)):
        parts += [text[at : flaw.at], flaw.instead or ""]
        at = flaw.end
    return "".join([*parts, text[at:]])


def _changes(text: str, found: list[Flaw]) -> Iterator[DocumentChange]:
    """What was mended, that of one kind in one line told together."""
    line, at, told = 1, 0, dict[tuple[int, str], int]()
    for flaw in sorted(found, key=lambda flaw: flaw.at):
        line, at = line + text.count("\n", at, flaw.at), flaw.at
        told[line, flaw.cause] = told.get((line, flaw.cause), 0) + 1
    for (line, cause), number in told.items():
        one, many = _MENDED[cause]
        yield _change(f"line {line}: {one if number == 1 else many.format(number)}")


def _change(message: str) -> DocumentChange:
    return DocumentChange(rule=RULE, path="", message=message)
