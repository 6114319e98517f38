"""What a list shows of each session: its letters, its calls, and what of it failed; a few statements for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from .families import indexed_families
from .file import StoreIndex

_COUNTED = "SELECT s.session, human, f.calls, errors, compactions FROM sessions s JOIN figures f ON f.session = s.n"
_CALLED = """
SELECT s.session, sum(calls), sum(failed) FROM call_totals t JOIN sessions s ON s.n = t.session
WHERE s.runtime IS NOT NULL GROUP BY t.session
"""
_CALLED_APART = """
SELECT s.session, coalesce(m.agent, ''), count(*), total(c.failed)
FROM sessions s JOIN calls c ON c.session = s.n JOIN messages m ON m.n = c.message
WHERE s.runtime IS NULL GROUP BY 1, 2
"""
"""Of sub-agents whose session is not in the store."""
_COPIED = """
SELECT s.session, made.session, CASE WHEN s.runtime IS NULL THEN coalesce(m.agent, '') ELSE '' END, count(*),
       total(c.failed)
FROM copies k JOIN calls c ON c.message = k.message AND c.session IS NOT k.session JOIN messages m ON m.n = k.message
JOIN sessions s ON s.n = k.session LEFT JOIN sessions made ON made.n = c.session GROUP BY 1, 2, 3
"""
"""What sessions began with; a sub-agent may begin with what its own session did, which counts there."""
_LETTERS = """
SELECT s.session, lower(hex(c."commit")), c.rows FROM sessions s JOIN commits c ON c.session = s.n
WHERE s.session IN (SELECT value FROM json_each(?)) AND c.rows != '' ORDER BY c.n
"""


class SessionGlance(NamedTuple):
    """The numbers of a session in a list."""

    prompts: int | None = None
    """What people said to it; None where nobody has counted yet."""
    calls: int = 0
    """Its calls, those that it began with and those of its sub-agents included."""
    failed: int = 0
    """How many of these failed."""
    errors: int = 0
    compactions: int = 0


def glances(index: StoreIndex) -> dict[str, SessionGlance]:
    """The numbers of every session, by its id."""
    families = indexed_families(index)
    called: dict[str, tuple[int, int]] = {}
    told = [(session, "", calls, failed) for session, calls, failed in index.query(_CALLED)]
    told += index.query(_CALLED_APART)
    for session, made, agent, calls, failed in index.query(_COPIED):
        if families.top(session, agent) != families.top(made or "", agent):
            told.append((session, agent, calls, failed))
    for session, agent, calls, failed in told:
        top = families.top(session, agent)
        before = called.get(top, (0, 0))
        called[top] = before[0] + calls, before[1] + int(failed)
    found = {session: SessionGlance(calls=calls, failed=failed) for session, (calls, failed) in called.items()}
    for session, prompts, calls, errors, compactions in index.query(_COUNTED):
        number, failed = called.get(session, (calls or 0, 0))
        found[session] = SessionGlance(prompts, number, failed, errors or 0, compactions or 0)
    return found


def letters_of(index: StoreIndex, sessions: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """For each session the commits that name it, in the order of arrival, with the letters of their rows."""
    found: dict[str, list[tuple[str, str]]] = {session: [] for session in sessions}
    for session, commit, letters in index.query(_LETTERS, (msgspec.json.encode(list(sessions)).decode(),)):
        found[session].append((commit, letters))
    return found


def known_commits(index: StoreIndex, commits: Sequence[str | None]) -> set[str | None]:
    """Those of the commits that the index has taken in, with all that their chains stand on."""
    found: set[str | None] = set()
    for start in range(0, len(commits), _AT_ONCE):
        some = [bytes.fromhex(commit or "") for commit in commits[start : start + _AT_ONCE]]
        marks = ", ".join("?" * len(some))
        rows = index.query(f'SELECT lower(hex("commit")) FROM commits WHERE "commit" IN ({marks})', some)
        found |= {commit for (commit,) in rows}
    return found


_AT_ONCE = 500
_MANY = 4000


def commit_letters(index: StoreIndex, commits: Sequence[str]) -> dict[str, str]:
    """The letters of the rows that commits add to a transcript; what the index does not know of, or could not read, is
    left out. Many are quicker read all together than looked up one by one."""
    columns = 'SELECT lower(hex("commit")), rows FROM commits WHERE rows IS NOT NULL'
    if len(commits) > _MANY:
        wanted = set(commits)
        return {commit: letters for commit, letters in index.query(columns) if commit in wanted}
    found: dict[str, str] = {}
    for start in range(0, len(commits), _AT_ONCE):
        some = [bytes.fromhex(commit) for commit in commits[start : start + _AT_ONCE]]
        found.update(index.query(f'{columns} AND "commit" IN ({", ".join("?" * len(some))})', some))
    return found
