"""Reviews: who is a reviewer, and which verdict a reply states."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from .spawning import SpawnedAgent

_WORD = re.compile(r"(?<![\w-])(approved|changes[ _-]requested|rejected)(?![\w-])", re.I)
_QUOTED = re.compile(r"^[ \t]*>[^\n]*$|\"[^\"\n]{0,500}\?\s*\"|“[^”\n]{0,500}\?\s*”|'[^'\n]{0,500}\?\s*'(?!\w)", re.M)
_SENTENCE = re.compile(r"[^.!?\n]*[.!?\n]?")
_LABEL = re.compile(r"\b(?:verdict|decision|conclusion|outcome|status|result|review)\W{0,12}(?:is\W{1,12})?$", re.I)
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
    within one. Questions, quotations, conditions, choices and denials state nothing.
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
            weight = _LABELLED if _LABEL.search(before) else _AT_HEAD if _HEAD.fullmatch(before) else _WITHIN
            yield weight, re.sub("[ -]", "_", word[1].lower())
