"""The races of #41 to #43 in each way of importing: `import`, `--jobs 2` and `watch`; at first and as a file grows.

The delay is certain: a runtime that is installed for the test does what is asked of it, once, while it scans a file.
With `--jobs 2` that happens in another process, as it would.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harken import clock, runtimes
from harken.runtimes.importer import Importer
from harken.runtimes.lookout import Lookout
from harken.runtimes.watch import watch
from support.sessions import conversation

from .conftest import age

PLUGIN = """
import runpy
from pathlib import Path

from msgspec.structs import replace

from harken import runtimes
from harken.formats.kit.claims import Claim

CLAUDE = runtimes.get("claude-code")
THEN = Path(__file__).with_name("then.py")


def scan(data, state):
    try:
        now = THEN.rename(THEN.with_name("now.py"))
    except FileNotFoundError:
        pass
    else:
        runpy.run_path(str(now))
    return CLAUDE.read.scan(data, state)


RUNTIME = replace(
    CLAUDE,
    name="racing",
    read=replace(CLAUDE.read, scan=scan),
    claim=lambda head, path: Claim(score=100, reason="for the test"),
)
"""
IMPORT = """
from pathlib import Path

import harken
from harken import runtimes
from harken.runtimes.importer import Importer

with harken.open({store!r}) as other:
    list(Importer(other.store, [runtimes.get("racing")]).run([Path({path!r})]))
"""
WRITE = "__import__('pathlib').Path({path!r}).write_bytes({data!r})\n"


class Racing:
    """A store, a file, and what happens while the file is scanned."""

    def __init__(self, repo: Any, folder: Path, take: Callable[[Any, Path], None]) -> None:
        self.repo, self.path, self._then, self._take = repo, folder / "aaa.jsonl", folder / "then.py", take

    def meanwhile(self, *steps: str) -> None:
        """What happens at the next scan."""
        self._then.write_text("".join(steps))

    def write(self, data: bytes) -> str:
        return WRITE.format(path=str(self.path), data=data)

    def import_by_another(self, path: Path | None = None) -> str:
        return IMPORT.format(store=str(self.repo.store.location), path=str(path or self.path))

    def take(self, data: bytes | None = None) -> None:
        """Import the file, with this in it."""
        if data is not None:
            self.path.write_bytes(data)
            age(self.path)
        self._take(self.repo.store, self.path)
        assert not self._then.exists(), "nothing was scanned"

    def held(self, ref: str = "aaa") -> bytes:
        return bytes(self.repo.materialize(ref, stop="root").bytes)


def _import(store: Any, path: Path, jobs: int = 1) -> None:
    results = list(Importer(store, [runtimes.get("racing")], jobs=jobs).run([path]))
    assert [] == [result.error for result in results if result.error]


def _import_with_workers(store: Any, path: Path) -> None:
    _import(store, path, 2)


def _watch(store: Any, path: Path) -> None:
    """A few looks, on a clock that goes on only while `watch` waits."""
    passed = 0.0

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            nonlocal passed
            passed += timeout or 0.0
            return passed > 30

    results = list(
        watch(
            store,
            [runtimes.get("racing")],
            Lookout(lambda: [path]),
            interval=0.5,
            stop=Stop(),
            now=lambda: clock.now() + int(passed * 1e6),
            monotonic=lambda: passed,
            busy=lambda: 0.0,
        )
    )
    assert [] == [result.error for result in results if result.error]


@pytest.fixture(params=[_import, _import_with_workers, _watch], ids=["import", "jobs 2", "watch"])
def racing(
    request: pytest.FixtureRequest, repo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Racing]:
    site = tmp_path / "site"
    (site / "racing-1.dist-info").mkdir(parents=True)
    (site / "racing-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: racing\nVersion: 1\n")
    (site / "racing-1.dist-info" / "entry_points.txt").write_text("[harken.runtimes]\nracing = racing_plugin:RUNTIME\n")
    (site / "racing_plugin.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr("harken.runtimes.importer.WORTH_WORKERS", 0)
    runtimes.base._plugins.cache_clear()
    try:
        yield Racing(repo, site, request.param)
    finally:
        runtimes.base._plugins.cache_clear()
        sys.modules.pop("racing_plugin", None)


def turns(count: int, salt: str = "x") -> bytes:
    return conversation("aaa", count, salt=salt).data


class TestAFileThatIsRewrittenWhileItIsRead:
    """It never becomes a splice of two versions (#41)."""

    @pytest.mark.parametrize("before", [0, 3], ids=["first", "growth"])
    def test_another_version(self, racing: Racing, before: int) -> None:
        """#41"""
        if before:
            racing.take(turns(before))
        racing.meanwhile(racing.write(turns(6, "y")))

        racing.take(turns(6))

        (row,) = racing.repo.store.sessions()
        assert turns(6, "y") == racing.held()
        assert [turns(before)] * bool(before) == [racing.held(f"ctx-{tip}") for tip in row.older]

    @pytest.mark.parametrize("before", [0, 3], ids=["first", "growth"])
    def test_a_shorter_one(self, racing: Racing, before: int) -> None:
        """#41: what is left of the old version behind the new one's end was never part of it."""
        if before:
            racing.take(turns(before))
        racing.meanwhile(racing.write(turns(2, "y")))

        racing.take(turns(6))

        assert turns(2, "y") == racing.held()


class TestAnotherImportMeanwhile:
    """Nobody takes back what another has acknowledged (#42)."""

    @pytest.mark.parametrize("before", [0, 3], ids=["first", "growth"])
    def test_a_faster_one_that_saw_more(self, racing: Racing, before: int) -> None:
        """#42"""
        if before:
            racing.take(turns(before))
        racing.meanwhile(racing.write(turns(8)), racing.import_by_another())

        racing.take(turns(6))

        (row,) = racing.repo.store.sessions()
        assert (turns(8), ()) == (racing.held(), row.older)

    @pytest.mark.parametrize("before", [0, 3], ids=["first", "growth"])
    def test_another_file_of_the_session(self, racing: Racing, before: int) -> None:
        """#42: both said `new`, and one was in no list."""
        if before:
            racing.take(turns(before))
        other = racing.path.parent / "other" / "aaa.jsonl"
        other.parent.mkdir()
        other.write_bytes(turns(9, "y"))
        racing.meanwhile(racing.import_by_another(other))

        racing.take(turns(6))

        assert {turns(6), turns(9, "y")} == {racing.held(), racing.held("aaa~1")}
        assert other.read_bytes() == racing.held()


class TestAnEditInTheMiddle:
    """All of what was kept is compared with the file whenever it has changed (#43)."""

    def edited(self, data: bytes) -> bytes:
        half = len(data) // 2
        return data[:half] + data[half:].replace(b"answer", b"ANSWER", 1)

    @pytest.mark.parametrize("more", [0, 2], ids=["same size", "growth"])
    def test_between_two_imports(self, racing: Racing, more: int) -> None:
        """#43"""
        racing.take(turns(300))

        racing.take(self.edited(turns(300)) + turns(302)[len(turns(300)) :][: more * 10_000])

        assert racing.path.read_bytes() == racing.held()
        assert turns(300) == racing.held("aaa~1")

    @pytest.mark.parametrize("before", [0, 290], ids=["first", "growth"])
    def test_while_it_is_read(self, racing: Racing, before: int) -> None:
        """#43, #41: the same size, and in the middle."""
        if before:
            racing.take(turns(before))
        racing.meanwhile(racing.write(self.edited(turns(300))))

        racing.take(turns(300))

        assert self.edited(turns(300)) == racing.held()


def test_the_runtime_of_these_tests_is_asked(racing: Racing) -> None:
    """So that a race that never took place does not look like one that was won."""
    racing.meanwhile(racing.write(turns(4, "y")))

    racing.take(turns(2))

    assert ["racing"] == [row.runtime for row in racing.repo.store.sessions()]
    assert turns(4, "y") == racing.held()
