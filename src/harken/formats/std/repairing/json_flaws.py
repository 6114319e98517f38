"""What makes a text no JSON, found in one pass: each flaw with its place, its cause and, where there is only one way to
read the text, what belongs there instead.

The one hard case is a quote inside a text that was not escaped. A quote ends a text where what follows could follow a
text at that place: the next key and its value, the next item, or brackets that close what is open. Any other quote is
inside. There is only one reading where these come in pairs, as quotes around words do; an odd number of them, or a pair
whose first one stands where a text ends, means that a text was ended too early or too late, and then nothing is mended.

Rule: every look ahead stops at the next quote or bracket, so that the time grows with the size of the text and no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

import msgspec

from harken.formats.std.json_text import DEEPEST, is_too_large

MOST_FLAWS = 20_000
"""A text with more of them is garbage, and is not looked at any further."""

_BLANKS = re.compile(r"[ \t\n\r]*+")
_COMMENT = re.compile(r"//[^\n]*+|#[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/")
_HASH = r"(?:[ \t]*+#[^\n\"]{0,500}(?=\n))?+"
_GAP = rf"(?:[ \t\r]++|\n{_HASH}|//[^\n]{{0,500}}\n|/\*(?:[^*]|\*(?!/)){{0,500}}\*/)*+"
"""Blanks and comments. One that begins with `#` stands behind a comma or on a line of its own, and has no quotes in it:
behind a quote inside a text a `#` is often that of a number."""
_VALUE = r"""(?:["'{\[\-0-9]|true\b|false\b|null\b|NaN\b|Infinity\b|True\b|False\b|None\b)"""
_AFTER_TEXT = re.compile(_GAP)
_AFTER_COMMA = re.compile(r"(?:[ \t\n\r]++|//[^\n]*+|#[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_NEXT_ITEM = re.compile(rf"{_HASH}{_GAP}(?:\Z|\]|{_VALUE})")
_NEXT_FIELD = re.compile(
    rf"{_HASH}{_GAP}(?:\Z|\}}|\"(?:[^\"\\\n]++|\\.)*+(?:\Z|\"{_GAP}(?:\Z|:{_GAP}(?:\Z|{_VALUE}))))"
    rf"|[ \t]*+\r?\n{_HASH}{_GAP}(?:[A-Za-z_]\w*+|'[^'\"\n]*+'|“[^“”\"\n]*+”|\"[A-Za-z_]\w*+\"){_GAP}[:：]"
)
"""The second part: what begins a line as a key does is one, whatever its value looks like."""
_KEY = re.compile(rf"\"(?:[^\"\\\n]++|\\.)*+\"{_GAP}:")
_KEY_ON_A_NEW_LINE = re.compile(rf"[ \t]*+\r?\n{_HASH}{_GAP}\"[A-Za-z_]\w*+\"{_GAP}:")
_ITEM_ON_A_NEW_LINE = re.compile(rf"[ \t]*+\r?\n{_HASH}{_GAP}[{{\[]")
_AS_BEHIND_AN_END = re.compile(r"[ \t]*+(?:[,:;+，：；、]|\r?\n)")
"""What stands behind a quote that ends something, and behind none that begins something."""
_BEHIND_THE_END = re.compile(r"[ \t]*+\r?\n\s*+[{\[]|[\]}\s]*+\Z|\s*+```[ \t]*+(?:\r?\n|\Z)")
"""Another document, brackets too many, or the end of a fence, which words may follow."""
_ODD_BEHIND = re.compile(
    r"[\s}\]]*+(?:,\s*+)?+(?:(?P<dots>\.\.\.|…)(?=\s*+[,{}\[\]\"])|(?P<comma>,)|(?P<comment>(?<=[\s,])#)"
    r"|(?P<stray>;[ \t]*+\r?\n|\+[ \t]*+\"|<!--))"
)
"""Behind a text that has ended, what belongs into no document. Words would be inside of a text."""
_ODD_CAUSES = {"dots": "left-out", "comma": "missing-value", "comment": "comment", "stray": "stray"}
_FENCE = re.compile(r"```[\w-]*+[ \t]*+\r?\n|```\s*+\Z")
_WORDS_AND_FENCE = re.compile(r"(?:(?![ \t]*+(?:```|[{\[]))[^\n]*+\n)++```[\w-]*+[ \t]*+\r?\n(?=\s*+\{)")
_FENCE_AND_WORDS = re.compile(r"```[ \t]*+\r?\n(?:(?![ \t]*+(?:```|[{\[]))[^\n]*+(?:\n|\Z))*?\Z")
"""Words around a fence: lines that could be no part of a document."""
_OTHER_WORD = re.compile(r"(?:(?P<number>[+-]?(?:NaN|Infinity))|True|False|None)(?![\w.+-])")
_JSON_WORD = {"True": "true", "False": "false"}
_PLAIN_QUOTED = re.compile(r"'([^'\"\\\x00-\x1f]*+)'(?=\s*+[,:}\]])|“([^“”\"\\\x00-\x1f]*+)”(?=\s*+[,:}\]])")
"""A text in quotes of another kind, with nothing in it that could be one."""
_TEXT = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"')
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*+')
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_ESCAPE_BY_CHANCE = re.compile(r"(?<!\\)\\[bf]|(?<=[\w.:])\\[nrt](?=\w)")
"""What may be an escape, or a path or a pattern (`src\\types`, `\\bword`) whose backslash begins one by chance."""
_SCALAR = re.compile(r"(?:-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null)(?![\w.+-])")
_HALF_SCALAR = re.compile(
    r"(?:t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?|-|-?(?:0|[1-9][0-9]*+)(?:\.|(?:\.[0-9]++)?[eE][+-]?))\Z"
)
"""The beginning of one, where the file ends in it."""
_WORD = re.compile(r"[^\W\d]\w*+")
_BARE_KEY = re.compile(r"[A-Za-z_]\w*+(?=\s*+:)")
_CLOSES = {"{": "}", "[": "]"}
_DOTS = ("...", "…")
_ODD_QUOTES = "“”„‟‘’‚「」『』«»＂"


class Flaw(msgspec.Struct, frozen=True, kw_only=True):
    """A place where a text is no JSON."""

    cause: str
    """A key of `broken_json.CAUSES`."""
    at: int
    end: int
    """What is replaced: from `at` to before `end`."""
    instead: str | None = None
    """What belongs there; None where that would be a guess."""


def flaws(text: str) -> Iterator[Flaw]:
    """The flaws in order. The first that cannot be mended is the last: what comes behind it cannot be known."""
    for number, flaw in enumerate(_Scan(text).document()):
        if number == MOST_FLAWS:
            yield Flaw(cause="garbage", at=flaw.at, end=flaw.at)
            return
        yield flaw
        if flaw.instead is None:
            return


class _Scan:
    """Where a pass stands: the place, the brackets that are open, what may come next."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.open: list[str] = []
        self.want = "value"
        self.value_end = 0
        self.is_fenced = False
        self.has_escapes = False

    @cached_property
    def _has_doubtful_escapes(self) -> bool:
        """Whether a text may have a backslash that begins an escape by chance: which one does, nobody can tell."""
        return _ESCAPE_BY_CHANCE.search(self.text) is not None

    def document(self) -> Iterator[Flaw]:
        steps = {"value": self._value, "key": self._key, "colon": self._colon, "after": self._after}
        while True:
            self.at = _end(_BLANKS, self.text, self.at)
            if self.at == len(self.text):
                break
            if self.text[self.at] in "/#":
                yield self._comment()
            else:
                yield from steps[self.want.removeprefix("first-")]()
        if self.open or self.want != "after":
            yield self._cannot("cut-off" if self.text.strip() else "empty")

    # -- one step each ---------------------------------------------------------------------------------------------

    def _comment(self) -> Flaw:
        found = _COMMENT.match(self.text, self.at)
        if found is None:
            return self._cannot("comment" if self.text.startswith("/*", self.at) else "stray")
        self.at = found.end()
        return Flaw(cause="comment", at=found.start(), end=found.end(), instead="")

    def _value(self) -> Iterator[Flaw]:
        char = self.text[self.at]
        if char == '"':
            yield from self._read_text()
        elif char in "{[":
            if len(self.open) == DEEPEST:
                yield self._cannot("deep")
            self.open.append(char)
            self.at += 1
            self.want = "first-key" if char == "{" else "first-value"
        elif char == "]" and self.want == "first-value":
            self._close()
        elif found := _SCALAR.match(self.text, self.at):
            if is_too_large(found[0]):
                yield self._cannot("large-number")
            self._ended(found.end())
        elif (flaw := self._other_value()) is not None:
            yield flaw
        else:
            yield self._cannot(self._odd_value(char))

    def _other_value(self) -> Flaw | None:
        """A value that other languages write in another way: as Python, as JavaScript, or in a fence of Markdown."""
        for cause, begin in (("fence", _FENCE), ("words", _WORDS_AND_FENCE)) if not self.open else ():
            if found := begin.match(self.text, self.at):
                self.at, self.is_fenced = found.end(), True
                return Flaw(cause=cause, at=found.start(), end=found.end(), instead="")
        if found := _OTHER_WORD.match(self.text, self.at):
            self._ended(found.end())
            cause = "not-a-number" if found["number"] else "python-word"
            return Flaw(cause=cause, at=found.start(), end=found.end(), instead=_JSON_WORD.get(found[0], "null"))
        return self._quoted_otherwise("after")

    def _quoted_otherwise(self, then: str) -> Flaw | None:
        found = _PLAIN_QUOTED.match(self.text, self.at)
        if found is None:
            return None
        self._ended(found.end())
        self.want = then
        cause, inside = ("single-quotes", found[1]) if found[1] is not None else ("odd-quotes", found[2])
        return Flaw(cause=cause, at=found.start(), end=found.end(), instead=f'"{inside}"')

    def _key(self) -> Iterator[Flaw]:
        char = self.text[self.at]
        if found := _TEXT.match(self.text, self.at):
            self.at, self.want = found.end(), "colon"
        elif char == "}" and self.want == "first-key":
            self._close()
        elif char == '"':
            yield self._broken_key()
        elif found := _BARE_KEY.match(self.text, self.at):
            self.at, self.want = found.end(), "colon"
            yield Flaw(cause="key-without-quotes", at=found.start(), end=found.end(), instead=f'"{found[0]}"')
        elif _WORD.match(self.text, self.at):
            yield self._cannot("key-without-quotes")
        elif (flaw := self._quoted_otherwise("colon")) is not None:
            yield flaw
        else:
            yield self._cannot(self._odd_value(char))

    def _colon(self) -> Iterator[Flaw]:
        if self.text[self.at] == "：":
            yield Flaw(cause="wide-colon", at=self.at, end=self.at + 1, instead=":")
        elif self.text[self.at] != ":":
            yield self._cannot("missing-colon")
        self.at += 1
        self.want = "value"

    def _after(self) -> Iterator[Flaw]:
        char = self.text[self.at]
        if not self.open and (found := _FENCE.match(self.text, self.at)) and found.end() == len(self.text):
            yield Flaw(cause="fence", at=self.at, end=found.end(), instead="")
            self.at = found.end()
        elif not self.open and self.is_fenced and (found := _FENCE_AND_WORDS.match(self.text, self.at)):
            yield Flaw(cause="words", at=self.at, end=found.end(), instead="")
            self.at = found.end()
        elif not self.open:
            yield self._cannot("several" if char in "{[" else "after-the-end")
        elif char == _CLOSES[self.open[-1]]:
            self._close()
        elif char == ",":
            behind = _end(_AFTER_COMMA, self.text, self.at + 1)
            if self.text.startswith(_CLOSES[self.open[-1]], behind):
                yield Flaw(cause="trailing-comma", at=self.at, end=self.at + 1, instead="")
            else:
                self.want = "key" if self.open[-1] == "{" else "value"
            self.at += 1
        elif char == "，":
            yield Flaw(cause="wide-comma", at=self.at, end=self.at + 1, instead=",")
            self.at += 1
            self.want = "key" if self.open[-1] == "{" else "value"
        elif self._lacks_comma():
            yield Flaw(cause="missing-comma", at=self.value_end, end=self.value_end, instead=",")
            self.want = "key" if self.open[-1] == "{" else "value"
        else:
            odd = "left-out" if self.text.startswith(_DOTS, self.at) else "missing-comma"
            yield self._cannot("wrong-bracket" if char in "]}" else odd)

    # -- texts -----------------------------------------------------------------------------------------------------

    def _read_text(self) -> Iterator[Flaw]:
        found = _TEXT.match(self.text, self.at)
        if found and self._may_end(found.end()):
            self._ended(found.end())
            return
        self.has_escapes = False
        inside = list(self._inside_text())
        # Where there are escapes, a backslash may begin one, or be meant itself.
        if self.has_escapes or (inside and self._has_doubtful_escapes):
            inside = [msgspec.structs.replace(one, instead=None) if one.cause == "escape" else one for one in inside]
        quotes = [at for at, flaw in enumerate(inside) if flaw.cause == "quote"]
        opens = (_AS_BEHIND_AN_END.match(self.text, inside[at].end) is None for at in quotes[::2])
        is_cut = bool(inside) and inside[-1].instead is None
        if quotes and (is_cut or len(quotes) % 2 or not all(opens)):
            refused = inside[quotes[0]]
            if found and (odd := _ODD_BEHIND.match(self.text, found.end())) and odd.lastgroup:
                at = odd.start(odd.lastgroup)
                inside = [Flaw(cause=_ODD_CAUSES[odd.lastgroup], at=at, end=at)]
            elif not is_cut:
                inside[quotes[0]] = Flaw(cause="odd-quote", at=refused.at, end=refused.end)
        yield from inside

    def _inside_text(self) -> Iterator[Flaw]:
        """The flaws of a text up to its end."""
        text, at = self.text, self.at + 1
        for _ in range(MOST_FLAWS + 1):
            while (at := _end(_PLAIN, text, at)) < len(text) and text[at] == "\\":
                found = _ESCAPE.match(text, at)
                if found is None and at + 6 > len(text):
                    yield Flaw(cause="cut-off", at=at, end=at)
                    return
                if found is None:
                    yield Flaw(cause="escape", at=at, end=at + 1, instead="\\\\")
                self.has_escapes |= found is not None
                at = found.end() if found else at + 1
            if at == len(text):
                yield Flaw(cause="cut-off", at=at, end=at)
                return
            if text[at] != '"':
                yield _raw_character(text[at], at)
            elif self._may_end(at + 1):
                self._ended(at + 1)
                return
            elif self._may_lack_comma(at + 1):
                is_sure = self.open[-1] == "{" and _KEY_ON_A_NEW_LINE.match(text, at + 1) is not None
                self.at, self.want = at + 1, "key"
                yield Flaw(cause="missing-comma", at=at + 1, end=at + 1, instead="," if is_sure else None)
                return
            else:
                yield Flaw(cause="quote", at=at, end=at + 1, instead='\\"')
            at += 1
        yield Flaw(cause="garbage", at=at, end=at)

    def _may_end(self, at: int) -> bool:
        """Whether a text may end before this place: what follows fits into what is open."""
        depth, text = len(self.open), self.text
        while True:
            if depth == 0 and _BEHIND_THE_END.match(text, at):
                return True
            end, at = at, _end(_AFTER_TEXT, text, at)
            if at == len(text):
                return True
            if depth == 0:
                return False
            inside, char = self.open[depth - 1], text[at]
            at += 1
            if char == ",":
                return (_NEXT_FIELD if inside == "{" else _NEXT_ITEM).match(text, at) is not None
            if char == "，":
                return _begins_a_line(inside, text, at)
            if char != _CLOSES[inside]:
                # Brackets were closed, and the comma behind them is missing.
                return depth < len(self.open) and _begins_a_line(inside, text, end)
            depth -= 1

    def _may_lack_comma(self, at: int) -> bool:
        """Whether the next field or item may begin here, with nothing but the comma before it missing."""
        at = _end(_AFTER_TEXT, self.text, at)
        if not self.open or not self.text.startswith('"', at):
            return False
        if self.open[-1] == "{":
            return _KEY.match(self.text, at) is not None
        return not self._may_end(at + 1)

    # -- small things ----------------------------------------------------------------------------------------------

    def _ended(self, at: int) -> None:
        self.at = self.value_end = at
        self.want = "after"

    def _close(self) -> None:
        self.open.pop()
        self._ended(self.at + 1)

    def _cannot(self, cause: str) -> Flaw:
        return Flaw(cause=cause, at=self.at, end=self.at)

    def _lacks_comma(self) -> bool:
        """Whether a comma alone is missing, and no text is at its left that could go on."""
        if self.text[self.value_end - 1] in "}]" and self.open[-1] == "[":
            return self.text[self.at] in "{["
        return self.text[self.value_end - 1] != '"' and self.open[-1] == "{" and bool(_KEY.match(self.text, self.at))

    def _broken_key(self) -> Flaw:
        at = _end(_PLAIN, self.text, self.at + 1)
        while self.text.startswith("\\", at) and (found := _ESCAPE.match(self.text, at)):
            at = _end(_PLAIN, self.text, found.end())
        if at == len(self.text):
            return Flaw(cause="cut-off", at=at, end=at)
        return Flaw(cause="escape" if self.text[at] == "\\" else "broken-key", at=at, end=at)

    def _odd_value(self, char: str) -> str:
        if self.open and _HALF_SCALAR.match(self.text, self.at):
            return "cut-off"
        if char == "'":
            return "single-quotes"
        if char in _ODD_QUOTES:
            return "odd-quotes"
        if self.text.startswith(("NaN", "Infinity", "-Infinity", "-NaN", "+Infinity"), self.at):
            return "not-a-number"
        if self.text.startswith(("True", "False", "None"), self.at):
            return "python-word"
        if self.text.startswith("```", self.at):
            return "fence"
        if self.text.startswith(_DOTS, self.at):
            return "left-out"
        if char in ",]}":
            return "missing-value"
        if char.isalpha():
            return "text-without-quotes"
        return "number" if char in "+-.0123456789" else "stray"


def _begins_a_line(inside: str, text: str, at: int) -> bool:
    """Whether the next field of an object, or the next object or list of a list, begins on a new line."""
    return (_KEY_ON_A_NEW_LINE if inside == "{" else _ITEM_ON_A_NEW_LINE).match(text, at) is not None


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Where a match of a pattern that always matches ends."""
    found = pattern.match(text, at)
    return found.end() if found else at


def _raw_character(char: str, at: int) -> Flaw:
    cause = "line-break" if char in "\r\n" else "control-character"
    escapes = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return Flaw(cause=cause, at=at, end=at + 1, instead=escapes.get(char, f"\\u{ord(char):04x}"))
