"""Figures that decide names: another figure would give the same file other commits, or give it to somebody else."""

from __future__ import annotations

from harken.formats.claude_code import cut as claude
from harken.formats.codex import cut as codex
from harken.formats.kit import claims, jsonl
from harken.formats.session_log.scan import DIGITS, HARD, REFUSALS, SOFT

KIB, MIB = 1024, 1024 * 1024


def test_the_figures_of_the_cut_rules_are_those_of_the_format_document() -> None:
    assert (256 * KIB, 16 * MIB, 4) == (claude.SOFT, claude.HARD, claude.REFUSALS)
    assert (8 * KIB, 256 * KIB) == (codex.LEAST, codex.CAP)
    assert (256 * KIB, 16 * MIB, 4, 8) == (SOFT, HARD, REFUSALS, DIGITS)


def test_the_limits_of_lines_are_those_of_the_format_document() -> None:
    assert (64 * MIB, 1000, 1000) == (jsonl.MAX_LINE, jsonl.MAX_DEPTH, jsonl.MAX_OBJECTS)
    assert (MIB, 500_000) == (jsonl.LARGE, jsonl.MAX_VALUES)


def test_a_file_is_claimed_from_its_first_64_kib_by_a_score_of_50() -> None:
    assert (64 * KIB, 50) == (claims.HEAD, claims.ENOUGH)
