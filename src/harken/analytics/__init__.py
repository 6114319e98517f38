"""Folds for numbers: pure functions from events to values; somebody else draws them."""

from __future__ import annotations

from .stats import Prompts, Stats, stats
from .usage import Usage, UsageCounter, usage

__all__ = ["Prompts", "Stats", "Usage", "UsageCounter", "stats", "usage"]
