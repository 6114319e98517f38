"""What looks like a key or a password: named rules, the spans they find in bytes, and text without those spans.

A rule is a few bytes that every such secret has (found by `bytes.find`, which is fast) and a pattern that is then
matched at that place alone. Bytes are searched as they lie: JSON may have escaped what stands around a secret, and the
line ends inside a private key. Nothing here keeps or gives out a secret: a finding is a rule and a span.
"""

from __future__ import annotations

from .finding import FoundSecret, find, mask
from .rules import RULES, Rule, own_rule

__all__ = ["RULES", "FoundSecret", "Rule", "find", "mask", "own_rule"]
