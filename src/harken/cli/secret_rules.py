"""The rules for secrets that commands know: Harken's, and those of the user's configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from . import config, ui

if TYPE_CHECKING:
    from harken.api.secret_rules import MaskedSecrets, OwnRule


def own_rules() -> tuple[OwnRule, ...]:
    """The rules of the configuration."""
    from harken.api.secret_rules import OwnRule

    found = config.load().secrets.items()
    return tuple(OwnRule(name=name, prefix=rule.prefix, pattern=rule.pattern) for name, rule in found)


def rule_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The names of rules, for completion."""
    from harken.api.secret_rules import rule_names

    return [name for name in rule_names(own_rules()) if name.startswith(incomplete)]


def note_masked(found: Iterable[MaskedSecrets]) -> None:
    """Say what was masked."""
    for masked in found:
        ui.note(f"masked: {masked.rule} ×{masked.count} (--reveal keeps them)")


def counting(bar: ui.ProgressBar) -> Callable[[int], None]:
    """What tells a progress bar how many bytes were looked through; how many there are nobody knows before."""
    seen = 0

    def moved(size: int) -> None:
        nonlocal seen
        seen += size
        bar.begin(seen)

    return moved
