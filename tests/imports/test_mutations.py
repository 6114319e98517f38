"""Sessions of both runtimes with a field changed, for every field of every kind of record (#40).

An import ends with exit 0, or with a failure of that file alone; and whatever was imported can be listed, counted,
shown, written out byte for byte, and continued, or is refused with a sentence. Nothing is written outside the runtime's
folder.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import harken
from harken.cli import main
from support.mutations import ODD, Mutant, mutants
from support.recordings import CORPUS
from support.sessions import conversation

RUNTIMES = ("claude-code", "codex")
PARTS = 3
"""Into how many stores the sessions of a runtime go."""
SAMPLE = 60
"""Every so-many-th session is in the fast suite."""
FILES = ["store.db-lock", *(f"store.db{of}{end}" for of in ("", "-cache", "-index") for end in ("", "-wal", "-shm"))]


class Bench:
    """One store that commands are run on, in this process; a traceback is an exception here."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder / "a" / "b" / "c" / "d"

    def run(self, *words: str) -> tuple[int, bytes]:
        """The exit code of a command and what it printed."""
        out = io.TextIOWrapper(io.BytesIO(), "utf-8")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.TextIOWrapper(io.BytesIO(), "utf-8")):
            try:
                main(list(words))
            except SystemExit as end:
                code = end.code
        out.flush()
        assert isinstance(code, int)
        return code, out.buffer.getvalue()  # type: ignore[attr-defined]

    def import_all(self, batch: Sequence[Mutant], odd: str) -> Iterator[tuple[Mutant, str, Path]]:
        """Import them, and a good session with them; those that went in, each changed file with its session."""
        files = self.folder / "files"
        for number, mutant in enumerate(batch):
            mutant.write(files / str(number), odd, number + 1)
        (files / "good.jsonl").write_bytes(conversation("good").data)
        code, out = self.run("import", str(files), "--json", "--jobs", "1")
        lines = [json.loads(line) for line in out.splitlines()]
        failed = [line["source"] for line in lines[:-1] if line["status"] == "failed"]
        assert (1 if failed else 0, len(failed)) == (code, lines[-1]["report"]["failed"])
        assert ["new"] == [line["status"] for line in lines[:-1] if line["session"] == "good"]
        for line in lines[:-1]:
            source = Path(line["source"])
            if source.parent != files and source.as_posix() not in failed:
                yield batch[int(source.relative_to(files).parts[0])], line["session"], source

    def use(self, session: str, runtime: str) -> None:
        """Ask everything about a session that a person would."""
        for words in (["stats", session], ["log", session], ["view", "timeline", session]):
            assert 0 == self.run(*words)[0], words
        code, _ = self.run("resume", session, "--in", runtime, "--home", str(self.home / "home"))
        assert code in (0, 2), "it goes on, or holds nothing to go on from"

    def check_the_rest(self) -> None:
        """The commands about everything, and that nothing was written elsewhere."""
        assert [0, 0, 0] == [self.run(*words)[0] for words in (["sessions"], ["sessions", "--json"], ["stats"])]
        assert {"a", "files", *FILES} >= {path.name for path in self.folder.iterdir()}
        home = self.home / "home"
        below = [path for path in self.folder.glob("a/**/*") if not path.is_relative_to(home)]
        assert [] == [path for path in below if not home.is_relative_to(path)]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    folder = tmp_path / "bench"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    # Opening and closing a store takes longer than anything that is asked of it.
    with harken.open(folder / "store.db") as repo, monkeypatch.context() as patch:
        patch.setattr(harken, "open", lambda *_, **__: repo)
        patch.setattr(repo, "close", lambda: None)
        yield Bench(folder)


def check(bench: Bench, batch: Sequence[Mutant], odd: str) -> None:
    taken = list(bench.import_all(batch, odd))
    files = Counter(session for _, session, _ in taken)
    for place, (mutant, session, source) in enumerate(taken):
        if not any(field.path.name[-12:] == source.name[-12:] for field in mutant.fields):
            continue  # it only belongs to one that was changed
        try:
            bench.use(session, RUNTIMES[place % 2])
            code, out = bench.run("materialize", session, "--stop", "root")
            # Where the changed field is what tells a sub-agent's file from its parent's, both are one session.
            assert (0, True) == (code, files[session] > 1 or source.read_bytes() == out)
        except Exception as problem:
            raise AssertionError(f"{odd} in {mutant}") from problem
    bench.check_the_rest()


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_some_fields_may_hold_anything(bench: Bench, runtime: str, odd: str) -> None:
    """#40: a few of the recorded ones, others for each odd value."""
    check(bench, mutants(runtime)[list(ODD).index(odd) :: SAMPLE], odd)


@pytest.mark.faults
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("part", [*range(PARTS), *(["corpus"] if CORPUS else [])])
def test_every_field_may_hold_anything(bench: Bench, runtime: str, odd: str, part: int | str) -> None:
    """#40: those that are recorded hold every odd value in turn, those of the corpus one of them."""
    if isinstance(part, int):
        check(bench, mutants(runtime)[part::PARTS], odd)
    else:
        check(bench, mutants(runtime, corpus=True)[list(ODD).index(odd) :: len(ODD)], odd)
