"""Text of a transcript as Markdown that says nothing but the text: no heading, link, picture, mention or HTML of its
own. Paragraphs, lists, tables, emphasis and code stay what they are.

The rules are those of CommonMark and of GitHub's and GitLab's additions. Code goes between fences of our own, at the
left edge and longer than any run of backticks in it, so that whatever the text says, ours are the ones that count.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from harken.text import one_line, safe

JOINER = "\u2060"
"""An invisible character between `@` and a name, which then is no mention: trackers look at what is shown, so that no
escape helps. Behind `fixes` and its like before an address it closes no issue."""

_FENCE = re.compile(r"\s*(`{3,}(?=[^`]*$)|~{3,})\s*(.*)$")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.\-]{1,30}")
_HEADING = re.compile(r" {0,3}#{1,6}(?=\s|$)")
_CONTAINED = re.compile(r"((?:\s|>|[-*+]\s|[0-9]{1,9}[.)]\s)*)([#=\-]+)(?=\s|$)")
_ITEM = re.compile(r"\s*(?:[-*+]|[0-9]{1,9}[.)])\s")
_UNDERLINE = re.compile(r"(?:=+|-+)\s*$")
_RULE = re.compile(r" {0,3}-{3,}\s*$")
_RUNS = re.compile(r"`+")
_COLUMNS = re.compile(r"(?=[\s>\-]*[|:])[\s>|:]*-[\s>|:\-]*$")
_BAR = re.compile(r"(?<!\\)\|")
_CLOSING = (
    r"(?<![A-Za-z])(?i:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?)(?=:?\s+http)"
)
_SPECIAL = re.compile(
    r"https?://[^\s<>\[\]`\\]+"
    rf"|{_CLOSING}"
    r"|\\[!-/:-@\[-`{-~]?"
    r"|`+"
    r"|[<&\[\]$]"
    r"|(?<![A-Za-z0-9])[@#!](?=\w)"
    r"|[#!](?=[0-9])"
    r"|(?<![A-Za-z0-9])GH-(?=[0-9])"
)
_MARKS = re.compile(r"[\\`*_\[\]<>&|~$]")
_MENTION = re.compile(rf"(?<![A-Za-z0-9])(?:[@#!](?=\w)|GH-(?=[0-9]))|[#!](?=[0-9])|{_CLOSING}")
_ITEM_FENCE = re.compile(r"\s*(?:[-*+]|([0-9]{1,9})[.)])\s+(?=`{3,}[^`]*$|~{3,})")


def fenced(code: str, language: str = "") -> str:
    """Code between fences that it cannot close."""
    longest = max(map(len, _RUNS.findall(code)), default=0)
    fence = "`" * max(3, longest + 1)
    word = _LANGUAGE.match(language)
    return f"{fence}{word[0] if word else ''}\n{safe(code).rstrip(chr(10))}\n{fence}"


def inline(text: str, *, in_table: bool = False) -> str:
    """One line of text with its emphasis and code, and nothing else that Markdown would take for more than text. In a
    table the bars in code are escaped: there a cell ends first, and what was code would be read as anything else."""
    runs: dict[int, deque[int]] = {}
    for run in _RUNS.finditer(text):
        runs.setdefault(len(run[0]), deque()).append(run.start())
    pieces, at = list[str](), 0
    while (found := _SPECIAL.search(text, at)) is not None:
        pieces.append(text[at : found.start()])
        at = found.end()
        if found[0][0] != "`":
            pieces.append(_escaped(found[0]))
            continue
        # Code ends at the next run that is as long; what ends nowhere is no code.
        ends = runs.get(len(found[0]), deque())
        while ends and ends[0] < at:
            ends.popleft()
        if ends:
            end = ends[0] + len(found[0])
            code = text[found.start() : end]
            pieces.append(_BAR.sub(r"\\|", code) if in_table else code)
            at = end
        else:
            pieces.append("\\`" * len(found[0]))
    return "".join([*pieces, text[at:]])


def _escaped(special: str) -> str:
    if special.startswith("http"):
        return special.replace("&", "&amp;")
    if special == "<":
        return "&lt;"
    if special == "&":
        return "&amp;"
    if special[0] in "@#!" or special[0].isalpha():
        return special + JOINER
    if special[0] == "\\":
        # What was escaped stays so; a tracker would take `\@name` for a mention.
        return special + JOINER if special[1:] in ("@", "#", "!") else special if special[1:] else "\\\\"
    return "\\" + special


def literal(text: str) -> str:
    """One line in which nothing is more than text."""
    return unmentioned(_MARKS.sub(_marked, one_line(text)))


def _marked(found: re.Match[str]) -> str:
    return {"<": "&lt;", "&": "&amp;"}.get(found[0], "\\" + found[0])


def unmentioned(text: str) -> str:
    """The text, whose mentions of people and issues are none."""
    return _MENTION.sub(lambda found: found[0] + JOINER, text)


def code_span(text: str) -> str:
    """One line as code."""
    line = one_line(text).replace("\t", " ")
    mark = "`" * (max(map(len, _RUNS.findall(line)), default=0) + 1)
    return f"{mark} {line} {mark}" if line[:1] in ("`", " ", "") or line[-1] in "` " else f"{mark}{line}{mark}"


def prose(text: str) -> str:
    """Text of several lines."""
    return "\n".join(_blocks(safe(text).split("\n")))


def _blocks(lines: list[str]) -> Iterator[str]:
    waiting = deque(lines)
    in_table = any(map(_COLUMNS.match, lines))  # somewhere; where it ends is not looked at
    in_list, blank = False, True
    while waiting:
        line = waiting.popleft()
        if item := _ITEM_FENCE.match(line):  # code right behind the mark of a list: it gets a line of its own
            yield f"{item[1]}\\." if item[1] else ""
            line = line[item.end() :]
        if fence := _FENCE.match(line):
            yield from ("", fenced("\n".join(_until(waiting, fence[1])), fence[2]), "")
            in_list, blank = False, True
        elif blank and not in_list and _is_indented(line):
            code = [line]
            while waiting and _is_indented(waiting[0]):
                code.append(waiting.popleft())
            yield from ("", fenced("\n".join(code)), "")
        else:
            if line.strip():
                in_list = _ITEM.match(line) is not None or (in_list and line[0].isspace())
            # Below a blank line it is a rule; below text it would make a heading of that.
            yield "---" if blank and _RULE.match(line) else _line(line, in_table)
            blank = not line.strip()


def _until(waiting: deque[str], fence: str) -> list[str]:
    """The lines up to the one that closes the fence, or all."""
    code = []
    while waiting:
        line = waiting.popleft()
        closing = line.strip()
        if len(closing) >= len(fence) and not closing.strip(fence[0]):
            break
        code.append(line)
    return code


def _is_indented(line: str) -> bool:
    return (line.startswith(("    ", "\t"))) and bool(line.strip())


def _line(line: str, in_table: bool) -> str:
    if heading := _HEADING.match(line):
        title = line[heading.end() :].strip()
        bare = title.rstrip("#")
        title = literal((title if bare[-1:].strip() else bare).strip())
        return f"**{title}**" if title else ""
    held = _CONTAINED.match(line)
    if held and (held[2][0] == "#" or _UNDERLINE.match(line, held.start(2))):
        # A heading inside a list or a quote, or the line below one.
        return f"{held[1]}\\{held[2][0]}{inline(line[held.start(2) + 1 :], in_table=in_table)}"
    return inline(line, in_table=in_table)
