"""Figures over many real sessions, and those of a session with its sub-agents, against a second count of the files."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken.index.spending import Spent
from harken.repo import Repo
from support import plain_report
from support.plain_report import Asked, Steps
from support.recordings import session_files

LARGEST = 100_000
"""Files of fewer bytes: `test_plain_report` has the large ones, one by one."""
MADE_UP = "jazzyalex__agent-sessions"
"""Files that were put together from shapes: all records of one name, or no session."""
STATES = ("prompt", "response", "tool", "thinking", "compaction", "idle")
READERS = {"claude-code": plain_report.claude, "codex": plain_report.codex}


class Kept:
    """Sessions in a store, and each of their files as plain steps."""

    def __init__(self, repo: Repo) -> None:
        self.repo = repo
        paths = [(name, path) for name in READERS for path in session_files(name) if MADE_UP not in str(path)]
        files = {str(path): name for name, path in paths if path.stat().st_size < LARGEST}
        imported = list(repo.import_sessions([Path(file) for file in files]))
        self.sessions = {one.source: one for one in imported if one.session}
        self.plain = {source: READERS[files[source]](Path(source).read_bytes()) for source in self.sessions}
        self.runtimes = {source: files[source] for source in self.sessions}

    @property
    def spent(self) -> Spent:
        return self.repo.usage()[0]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        with harken.open(tmp_path_factory.mktemp("kept") / "store.db") as repo:
            yield Kept(repo)
    time.tzset()


def test_requests_by_hour_are_those_of_the_plain_lines(kept: Kept) -> None:
    """A request is told by its record with the largest output, the first of equal ones; without a time it has that of
    the last record before it which has one."""
    told = [
        asked for source, found in kept.plain.items() if kept.runtimes[source] == "claude-code" for asked in found.asked
    ]
    known = {asked.key[0] for asked in told if not asked.embedded}
    best: dict[tuple[str, str], Asked] = {}
    for asked in told:
        if asked.embedded and asked.key[0] in known:
            continue
        if asked.key not in best or plain_report.weight(asked.usage) > plain_report.weight(best[asked.key].usage):
            best[asked.key] = asked
    spent = kept.spent
    others = sum(group.spending.requests for group in spent.groups("runtime") if group.key != "claude-code")

    by_hour = Counter({(day, hour): n for day, row in enumerate(spent.hours()) for hour, n in enumerate(row) if n})

    assert len(best) == sum(by_hour.values()) - others > 20
    assert not Counter(plain_report.by_hour(best.values())) - by_hour


def test_the_most_sessions_at_once_are_those_of_the_plain_lines(kept: Kept) -> None:
    """A fork went on behind what it repeats; of two that share records, it is the one that left the other later."""
    spans: dict[str, list[int]] = {}
    steps: dict[str, dict[str, int]] = {}
    for source, found in kept.plain.items():
        if not kept.sessions[source].parent and found.times:
            session = kept.sessions[source].session
            spans.setdefault(session, []).extend(instant for _, instant in found.times)
            named = {step.record: step.time for step in found.steps if step.record and step.time is not None}
            steps.setdefault(session, {}).update(named)
    for session, own in steps.items():
        for other in steps.values():
            left, theirs = own.keys() - other.keys(), other.keys() - own.keys()
            went_on = min((own[record] for record in left), default=0)
            if own.keys() & other.keys() and went_on > min((other[record] for record in theirs), default=0):
                spans[session] = [own[record] for record in left]

    assert plain_report.peak([(min(times), max(times)) for times in spans.values()]) == kept.spent.peak().sessions > 1


def test_tools_by_runtime_are_those_of_the_plain_lines(kept: Kept) -> None:
    """A call is one under its id in its session, and one where a fork copied its record."""
    calls: dict[tuple[str, str, str], str] = {}
    for source, found in kept.plain.items():
        runtime, session = kept.runtimes[source], kept.sessions[source].session
        for step in found.steps:
            if step.kind == "call":
                calls.setdefault((runtime, step.record or session, step.call), step.tool)
    expected = Counter((runtime, tool) for (runtime, _, _), tool in calls.items())

    found = {(group.per, group.key): group.spending.calls for group in kept.spent.groups("tool", "runtime")}
    assert expected == found


def test_a_session_and_its_sub_agents_are_what_their_plain_lines_say(kept: Kept) -> None:
    rows = kept.repo.sessions()
    families = {row.session: [one for one in rows if row.session in (one.session, one.parent)] for row in rows}
    checked = 0
    for session, family in families.items():
        # Codex gives every agent a thread, which has no name of an agent in it.
        if (
            len(family) == 1
            or family[0].runtime != "claude-code"
            or any(row.source.partition("#")[0] not in kept.plain for row in family)
        ):
            continue
        together = Steps()
        for source in dict.fromkeys(row.source.partition("#")[0] for row in family):
            together.steps += kept.plain[source].steps
            together.asked += kept.plain[source].asked
        found = kept.repo.report(session)

        whole = found.profile.whole
        spent = {state: micros for state in STATES if (micros := getattr(whole, state))}
        assert plain_report.by_state(plain_report.spent(together.steps)) == spent
        shares = (found.delegation.own, found.delegation.delegated)
        for mine, theirs in zip(plain_report.delegation(together), shares, strict=True):
            told = (theirs.agents, theirs.responses, theirs.calls, theirs.requests)
            assert (mine.agents, mine.responses, mine.calls, mine.requests) == told, session
        checked += 1

    assert checked > 2


def test_the_view_of_profiles_has_what_the_folds_say(kept: Kept) -> None:
    kept.repo.usage()
    asked = kept.repo.sql("SELECT session, tool, idle, characters_out, context FROM profiles ORDER BY session")
    alone = [row for row in kept.repo.sessions() if not row.parent]
    told = {row[0]: row[1:] for row in asked.rows}

    for row in alone[:10]:
        plain = kept.plain.get(row.source)
        (counted,) = kept.repo.stats([row.session], agents=False)
        if plain is not None and not any(step.agent for step in plain.steps) and not getattr(counted, "carried", None):
            times = plain_report.by_state(plain_report.spent(plain.steps))
            out = sum(len(step.text) for step in plain.steps if step.kind == "response")
            context = max(plain_report.curve(plain), default=None)
            assert (times.get("tool", 0) / 1e6, times.get("idle", 0) / 1e6, out, context) == tuple(told[row.session])
