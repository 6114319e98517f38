"""Rules of the user's for what is a secret, as requests give them, beside those that Harken has; what was masked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from harken.errors import BadRequest
from harken.secrets import RULES, Rule, own_rule

from .base import ApiAnswer, ApiRequest


class OwnRule(ApiRequest, frozen=True, kw_only=True):
    """A rule of the user's for what is a secret."""

    name: str
    """What it is called."""
    prefix: str
    """How every such secret begins."""
    pattern: str
    """A regular expression that matches one from there on; its first group is the secret, or all of it."""


class RulesRequest(ApiRequest, frozen=True, kw_only=True):
    """A request for which secrets are looked for."""

    own_rules: tuple[OwnRule, ...] = ()
    """Rules for what is a secret beside those that Harken has."""


class MaskedSecrets(ApiAnswer, frozen=True, kw_only=True):
    """Secrets that were masked."""

    rule: str
    """The rule that found them."""
    count: int
    """How many."""


def masked_secrets(counts: Mapping[str, int]) -> list[MaskedSecrets]:
    """How many secrets were masked, by rule."""
    return [MaskedSecrets(rule=rule, count=count) for rule, count in sorted(counts.items())]


def compiled(own: Iterable[OwnRule]) -> tuple[Rule, ...]:
    """The user's rules, ready to be looked for."""
    return tuple(own_rule(rule.name, rule.prefix, rule.pattern) for rule in own)


def all_rules(own: Iterable[OwnRule]) -> tuple[Rule, ...]:
    """Harken's rules and the user's."""
    return (*RULES, *compiled(own))


def rules_named(names: Sequence[str], own: Iterable[OwnRule]) -> tuple[Rule, ...]:
    """The rules of these names, which there must be."""
    known = all_rules(own)
    for name in names:
        if name not in {rule.name for rule in known}:
            listed = ", ".join(_names(known))
            raise BadRequest(f"there is no rule {name!r}", hint=f"one of {listed}")
    return tuple(rule for rule in known if rule.name in names)


def rule_names(own: Iterable[OwnRule] = ()) -> list[str]:
    """What rules there are."""
    return _names(all_rules(own))


def _names(rules: Iterable[Rule]) -> list[str]:
    return list(dict.fromkeys(rule.name for rule in rules))
