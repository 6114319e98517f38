"""Folds for numbers: pure functions from events to values; somebody else draws them."""

from __future__ import annotations

from .stats import SessionCount, SessionTotals, count_records, stats, tells_process_cost, with_told_cost, without_cost

__all__ = [
    "SessionCount",
    "SessionTotals",
    "count_records",
    "stats",
    "tells_process_cost",
    "with_told_cost",
    "without_cost",
]
