"""Where rules find secrets in bytes, and text with those places masked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .rules import RULES, Rule

_FEW = 6  # different bytes: no secret has so few
# Short words count only as words of their own, in one case: in the letters of a real key they come by chance.
_OWN = rb"(?<![A-Za-z0-9])(?-i:your|YOUR|my|MY)[_\-](?:(?-i:[a-z]{3}|[A-Z]{3}))"
_SAMPLE = re.compile(rb"(?i)example|placeholder|redacted|x{5}|\*{3}|\.{3}|" + _OWN + rb"|^[${%]|^pass(?:word|wd)?$")
_SHORT = 12  # up to here, a secret may well have few different bytes


@dataclass(frozen=True, slots=True, order=True)
class FoundSecret:
    """A span that looks like a secret, and the rule that says so."""

    start: int
    end: int
    rule: str


def find(data: bytes, rules: Sequence[Rule] = RULES) -> Iterator[FoundSecret]:
    """The spans of these bytes that look like secrets, in order; no two of them overlap."""
    behind = 0
    for found in sorted((f for rule in rules for f in _matches(data, rule)), key=lambda f: (f.start, -f.end)):
        if found.end > behind:
            yield FoundSecret(max(found.start, behind), found.end, found.rule)
            behind = found.end


def _matches(data: bytes, rule: Rule) -> Iterator[FoundSecret]:
    for prefix in rule.prefixes:
        at = data.find(prefix)
        while at >= 0:
            match = rule.pattern.match(data, at - rule.back) if at >= rule.back else None
            if match is None:
                at = data.find(prefix, at + 1)
                continue
            start, end = match.span(1 if rule.pattern.groups else 0)
            if start < end and not (rule.samples and _is_sample(data[start:end])):
                yield FoundSecret(start, end, rule.name)
            at = data.find(prefix, max(match.end(), at + 1))


def _is_sample(secret: bytes) -> bool:
    """Whether it is plainly what a manual shows in a secret's place."""
    return _SAMPLE.search(secret) is not None or (len(secret) > _SHORT and len({*secret}) < _FEW)


def mask(text: str, rules: Sequence[Rule] = RULES) -> tuple[str, list[FoundSecret]]:
    """The text with every secret replaced by `[masked: RULE]`, and what was found; spans count the bytes of the text
    in UTF-8."""
    data = text.encode("utf-8", "surrogatepass")
    found = list(find(data, rules))
    if not found:
        return text, found
    pieces, behind = list[bytes](), 0
    for span in found:
        pieces += data[behind : span.start], b"[masked: %b]" % span.rule.encode()
        behind = span.end
    masked = b"".join([*pieces, data[behind:]])
    try:
        return masked.decode("utf-8", "surrogatepass"), found
    except UnicodeDecodeError:  # a rule of the user's may end inside a character
        return masked.decode("utf-8", "replace"), found
