"""Reviews: who is a reviewer, and which verdict a reply states."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from .spawning import SpawnedAgent

_WORD = re.compile(r"(?<![\w-])(approved|changes[ _-]requested|rejected)(?![\w-])", re.I)
_QUOTED = re.compile(r"^[ \t]*>[^\n]*$|\"[^\"\n]{0,500}\?\s*\"|“[^”\n]{0,500}\?\s*”|'[^'\n]{0,500}\?\s*'(?!\w)", re.M)
_SENTENCE = re.compile(r"[^.!?\n]*[.!?\n]?")
_LABEL = re.compile(
    r"\b(?:verdict|decision|conclusion)(?:\s+(?:on|for|of)\s+[^.:]{1,60})?\W{0,12}(?:is\W{1,12})?$"
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
_HEAD = re.compile(r"[\W_\d]*$")
"""What may stand before a word at the head of a sentence: marks, numbers, signs."""
_NEAR = 200
"""How many characters around a word are looked at."""
_LABELLED, _AT_HEAD, _WITHIN = range(3)


def is_reviewer(agent: SpawnedAgent) -> bool:
    """Whether an agent's type or name says that it reviews."""
    return "review" in agent.agent_type.lower() or "review" in agent.name.lower()


def stated_verdict(reply: str) -> str:
    """The verdict that a reply states: `approved`, `changes_requested` or `rejected`; empty where it states none, or
    not one alone.

    What is called the verdict outright counts most, then what stands at the head of a sentence, then what is said
    of the work within one. What is said in passing (bad input is rejected), questions, quotations, conditions, choices
    and denials state nothing.
    """
    if _WORD.search(reply) is None:
        return ""
    found: dict[int, set[str]] = {}
    for text, is_code in _parts(_QUOTED.sub(" ", reply)):
        for weight, verdict in _statements(text):
            if weight == _LABELLED or not is_code:
                found.setdefault(weight, set()).add(verdict)
    verdicts = found[min(found)] if found else set()
    return verdicts.pop() if len(verdicts) == 1 else ""


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """The lines of a text, and whether each is in a block of code."""
    is_code = False
    for line in text.split("\n"):
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        else:
            yield line, is_code


def _statements(line: str) -> Iterator[tuple[int, str]]:
    for sentence in _SENTENCE.findall(line) if _WORD.search(line) else ():
        words = [] if sentence.endswith("?") else list(_WORD.finditer(sentence))
        pairs = [pair for pair in pairwise(words) if not re.search(r"\w", sentence[pair[0].end() : pair[1].start()])]
        listed = {word.start() for pair in pairs for word in pair}
        for word in words:
            before, after = (
                sentence[max(0, word.start() - _NEAR) : word.start()],
                sentence[word.end() : word.end() + _NEAR],
            )
            if word.start() in listed or _HEDGED.search(_CLAUSE.split(before)[-1]) or _CONDITION.match(after):
                continue
            if (weight := _weight(before, after)) is not None:
                yield weight, re.sub("[ -]", "_", word[1].lower())


def _weight(before: str, after: str) -> int | None:
    """How much a word counts as the verdict, by what stands around it in its sentence; None where it is said in
    passing."""
    if _LABEL.search(before):
        is_verdict = _FOLLOWS.match(after) or _FOLLOWS_LABEL.match(after) or _REVIEWED.match(after)
        return _LABELLED if is_verdict else None
    if _HEAD.fullmatch(before):
        return _AT_HEAD if _FOLLOWS.match(after) else None
    is_whole = (_FOLLOWS.match(after) or _REVIEWED.match(after)) and not _HANDLED.match(after)
    return _WITHIN if is_whole and _OF_THE_WORK.fullmatch(before) else None
