"""Reviews: who is a reviewer, and which verdict a reply states."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from .spawning import SpawnedAgent
from .verdict_words import is_earlier, is_marked_off, is_of_earlier, is_present, taken_back

_WORD = re.compile(r"(?<![\w-])(approved|changes[ _-]requested|rejected)(?![\w-])", re.I)
_QUOTED = re.compile(
    r"^[ \t]*>[^\n]*$|\"[^\"\n]{0,500}\?\s*\"|“[^”\n]{0,500}\?\s*”|'[^'\n]{0,500}\?\s*'(?!\w)"
    r"|~~[^~\n]{1,500}~~|<!--[^\n]{0,500}?-->",
    re.M,
)
"""What is said of other words: quotations, questions in quotes, what is struck out, remarks that nobody sees."""
_SENTENCE = re.compile(r"[^.!?\n]*[.!?\n]?")
_CALLED = re.compile(r"\b(?:verdict|decision|conclusion)\b", re.I)
_LABEL = re.compile(
    r"\b(?:verdict|decision|conclusion)(?:\s+(?:on|for|of)\s+[^.:]{1,60})?(?:\s+(?:now|this\s+time|today|currently))?"
    r"(?:\s*[(\[][^()\[\]]{1,60}[)\]])?\W{0,12}(?:is\W{1,12}(?:now\W{1,12})?)?$"
    r"|(?:^[\W_\d]*|\"|\b(?:overall|final|my|review)\W{1,3})(?:outcome|status|result|review)\W{0,12}(?:is\W{1,12})?$",
    re.I,
)
"""A word for the verdict; one that is a word for much else stands at the head, or says whose it is."""
_FOLLOWS = re.compile(
    r"\s*(?:$|[^\w\s]|(?:and|as|because|due|for|in|on|pending|since|subject|to|with|without)\b)", re.I
)
"""What may stand behind a verdict at the head of a sentence: not what is rejected, or who was approved."""
_FOLLOWS_LABEL = re.compile(r"\s+(?:again|by|now|overall|this time|unanimously)\b", re.I)
"""What may stand behind one that is called the verdict, besides."""
_OF_THE_WORK = re.compile(
    r"[\W_\d]*(?:(?:overall|so|therefore|thus|hence|in short|in summary|finally)\W+)?"
    r"(?:(?:it|this|that|these|they|everything|all of (?:it|this))"
    r"|(?:the|this|these|your|all)\s+(?:\w+\s+)?(?:change|changes|patch|diff|pr|pull request|commit|commits|code|work|"
    r"implementation|design|plan|proposal|task|solution|fix|version|submission|branch|document))"
    r"\s+(?:is|are|was|were|has been|have been|gets|stands)(?:\s+(?:now|hereby|therefore|thus|fully|all))?\s+[\W_]*"
    r"|[\W_\d]*I(?:\s+have|['’]ve)?(?:\s+(?:now|hereby|therefore))?\s+",
    re.I,
)
"""What stands before a verdict within a sentence, from its head on: the work that was reviewed, or who reviewed it."""
_REVIEWED = re.compile(r"\s+(?:it|this|these|them|(?:the|your)\s+\w+)\W*$", re.I)
"""What a reviewer approved: I have approved it."""
_HANDLED = re.compile(
    r"\s+(?:by\b|with\s+(?:an?\s+|the\s+)?(?:\w+\s+)?(?:error|exception|message|status|code|warning|\d))", re.I
)
"""Behind the word: a program rejects, not the reviewer."""
_HEDGED = re.compile(
    r"\b(?:not|never|no|nothing|nobody|none|cannot|without|neither|nor|if|unless|until|once|when|whether|before|after|"
    r"would|could|may|might|should|can|must|will|shall|to|or|either)\b|n['’]t\b",
    re.I,
)
_CLAUSE = re.compile(r"[,;:(—–]| - | but | and ")
_CONDITION = re.compile(r"\W*(?:if|once|unless|when|provided|after|or|/|\|)(?!\w)", re.I)
_HEAD = re.compile(r"(?:\[x\]|\b(?:now|this\s+time|today|currently)\b|[\W_\d])*$", re.I)
"""What may stand before a word at the head of a sentence: marks, numbers, signs, and that it is so now."""
_DENIED = re.compile(r"\b(?:not|never|no|neither|cannot)\b|n['’]t\b", re.I)
_INSTEAD = re.compile(
    r"[\"'”’`*_)\]\s]*(?:[,;:.|(}–—→]|-+>?\s)[\s\"'`*_]*(?:(?:and|but|instead|rather|so)\b\W*)?"
    r"|\s+(?:but|instead|rather)\b\W*",
    re.I,
)
"""What may stand between a verdict that is denied and what is said instead."""
_HEADING = re.compile(r"\s*(?:(#{1,6})\s+|\*\*(?=[^*]+\*\*:?\s*$)|(?=[^:\n]{1,80}:\s*$))(.*)")
_NEAR = 200
"""How many characters around a word are looked at."""
_LOWEST = 7
"""The level of a heading that is a line in bold, or ends in a colon."""
_NOW, _LABELLED, _AT_HEAD, _WITHIN = range(4)


def is_reviewer(agent: SpawnedAgent) -> bool:
    """Whether an agent's type or name says that it reviews."""
    return "review" in agent.agent_type.lower() or "review" in agent.name.lower()


def stated_verdict(reply: str) -> str:
    """The verdict that a reply states: `approved`, `changes_requested` or `rejected`; empty where it states none, or
    not one alone.

    What is called the verdict of now, or the final one, counts most, then what is called the verdict, then what stands
    at the head of a sentence, then what is said of the work within one. What is said in passing (bad input is rejected)
    or of an earlier time, questions, quotations, conditions, choices, numbers and denials state nothing; a denial that
    says at once what is so instead (not approved: changes requested) states that.
    """
    if _WORD.search(reply) is None:
        return ""
    found: dict[int, set[str]] = {}
    for line, below, is_code in _lines(_QUOTED.sub(" ", reply)):
        for weight, verdict in _statements(line, below):
            if weight <= _LABELLED or not is_code:
                found.setdefault(weight, set()).add(verdict)
    verdicts = found[min(found)] if found else set()
    return verdicts.pop() if len(verdicts) == 1 else ""


def _lines(text: str) -> Iterator[tuple[str, str, bool]]:
    """The lines of a text that have words, each with the next one, and whether it is in a block of code; without those
    that stand below a heading which is about an earlier time."""
    lines = text.split("\n")
    next_ones, is_code, old, is_below = _next_lines(lines), False, 0, False
    for line, below in zip(lines, next_ones, strict=True):
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        elif not line.strip():
            old = 0 if old == _LOWEST and is_below else old
        else:
            heading = None if is_code else _HEADING.match(line)
            level = (len(heading[1] or "") or _LOWEST) if heading else 0
            old = 0 if 0 < level <= old else old
            is_below = not level
            old = old or (level if heading and is_of_earlier(heading[2]) else 0)
            if not old:
                yield line, below, is_code


def _next_lines(lines: list[str]) -> list[str]:
    """Of each line the next one that has words."""
    found, last = [], ""
    for line in reversed(lines):
        found.append(last)
        last = line if line.strip() else last
    return found[::-1]


def _statements(line: str, below: str) -> Iterator[tuple[int, str]]:
    """What a line states, each verdict with its weight."""
    for found in _SENTENCE.finditer(line) if _WORD.search(line) else ():
        sentence = found[0]
        words = [] if sentence.endswith("?") else list(_WORD.finditer(sentence))
        firsts = {one.start() for one, other in pairwise(words) if _is_choice(sentence[one.end() : other.start()])}
        seconds = {other.start() for one, other in pairwise(words) if one.start() in firsts}
        begin = 0
        for word, other in zip(words, [*words[1:], None], strict=False):
            verdict = re.sub("[ -]", "_", word[1].lower())
            before = sentence[max(begin, word.start() - _NEAR) : word.start()]
            after = sentence[word.end() : word.end() + _NEAR]
            end = found.start() + word.end()
            answer = taken_back(verdict, line[end : end + _NEAR], below)
            part = _CLAUSE.split(before)[-1]
            if answer is not None or _DENIED.search(part):
                instead = _INSTEAD.match(sentence, word.end() + (answer or 0))
                begin = instead.end() if instead else begin
                seconds -= {other.start()} if other else set()
                continue
            is_choice = word.start() in firsts or word.start() in seconds
            if is_choice or is_marked_off(verdict, before) or _is_open(part, before, after):
                continue
            if (weight := _weight(before, after)) is not None:
                yield weight, verdict


def _is_choice(between: str) -> bool:
    """Whether nothing but marks stands between two verdicts: `approved / rejected`."""
    return re.search(r"\w", between) is None


def _is_open(part: str, before: str, after: str) -> bool:
    """Whether a verdict hangs on something, or is one of another time."""
    return bool(_HEDGED.search(part) or _CONDITION.match(after) or is_earlier(before, after))


def _weight(before: str, after: str) -> int | None:
    """How much a word counts as the verdict, by what stands around it in its sentence; None where it is said in
    passing."""
    if _LABEL.search(before):
        is_verdict = _FOLLOWS.match(after) or _FOLLOWS_LABEL.match(after) or _REVIEWED.match(after)
        weight = _NOW if _CALLED.search(before) and is_present(before) else _LABELLED
        return weight if is_verdict else None
    if _HEAD.fullmatch(before):
        return _AT_HEAD if _FOLLOWS.match(after) else None
    is_whole = (_FOLLOWS.match(after) or _REVIEWED.match(after)) and not _HANDLED.match(after)
    return _WITHIN if is_whole and _OF_THE_WORK.fullmatch(before) else None
