"""Folds for numbers: pure functions from events to values; somebody else draws them."""

from __future__ import annotations

from .stats import SessionTotals, stats

__all__ = ["SessionTotals", "stats"]
