"""Threads and processes write to one store while others open and close it, check it, copy it and collect in it."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harken.errors import HarkenError
from harken.store import open_store
from support.stores import open_below

HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("storm_worker", HERE / "storm_worker.py")
storm_worker = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(storm_worker)


class Around:
    """Threads that do one thing again and again until told to stop; only errors of ours may end a turn."""

    def __init__(self):
        self.stop, self.problems, self.turns = threading.Event(), [], {}
        self._threads = []

    def start(self, name, act):
        def again():
            for n in itertools.count():
                if n and self.stop.wait(0.1):  # the writers are to be disturbed, not kept out
                    return
                try:
                    act(n)
                except HarkenError:
                    pass
                except BaseException as problem:
                    self.problems.append((name, repr(problem)))
                    return
                self.turns[name] = n + 1

        self._threads.append(threading.Thread(target=again))
        self._threads[-1].start()

    def end(self):
        self.stop.set()
        for thread in self._threads:
            thread.join(120)
        assert not any(thread.is_alive() for thread in self._threads)


def storm(tmp_path, *, threads, processes, commits):
    path = tmp_path / "store.db"
    store = open_store(path)
    around = Around()

    def elsewhere(act):
        """In a store that is opened for it and closed again."""

        def turn(n):
            with contextlib.closing(open_store(path)) as mine:
                act(mine, n)

        return turn

    def check(mine, n):
        report = mine.fsck(read_data=n % 2 == 0)
        if not report.ok:
            around.problems.append([found for found in report.findings if found.severity == "corrupt"])

    def back_up(mine, n):
        copy = tmp_path / f"copy-{n}.db"
        mine.backup(copy)
        with contextlib.closing(open_store(copy)) as copied:
            numbers = [change.number for change in copied.since(0, 10**6)]
            if numbers != list(range(1, len(numbers) + 1)):
                around.problems.append(("backup", numbers))
        copy.unlink()

    def follow(n):
        for change in store.since(max(0, store.last_change() - 20)):
            if change.kind == "commit":
                for link in store.walk(change.subject, limit=5):
                    store.get(link.artifact)

    around.start("follow", follow)
    around.start("read", lambda _: [store.get_commits([c.id]) for c in store.commits(limit=20)])
    around.start("open and close", elsewhere(lambda mine, _: mine.commits(limit=3)))
    around.start("fsck", elsewhere(check))
    around.start("backup", elsewhere(back_up))
    around.start("gc", elsewhere(lambda mine, _: mine.gc()))
    command = [sys.executable, str(HERE / "storm_worker.py"), str(path)]
    children = [
        subprocess.Popen([*command, f"p{n}", str(commits)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for n in range(processes)
    ]
    made = {}

    def land(name):
        try:
            made[name] = storm_worker.write(store, name, commits)
        except BaseException as problem:
            around.problems.append((name, repr(problem)))

    writers = [threading.Thread(target=land, args=(f"t{n}",)) for n in range(threads)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    for n, child in enumerate(children):
        out, errors = child.communicate(timeout=600)
        assert "" == errors
        made[f"p{n}"] = out.split()
    around.end()
    assert [] == around.problems
    assert {commits} == {len(names) for names in made.values()}
    assert threads + processes == len(made)
    told = store.since(0, 10**9)
    assert list(range(1, len(told) + 1)) == [change.number for change in told]
    commits_told = [change.subject for change in told if change.kind == "commit"]
    assert sorted(commits_told) == sorted(name for names in made.values() for name in names)
    assert {commits} == {len(store.chain(names[-1])) for names in made.values()}
    assert store.fsck(read_data=True).ok
    store.close()
    assert [] == open_below(path)
    assert {"follow", "read", "open and close", "fsck", "backup", "gc"} == around.turns.keys()


def test_a_small_storm_loses_nothing(tmp_path):
    storm(tmp_path, threads=4, processes=2, commits=10)


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_a_storm_of_sixteen_threads_and_eight_processes_loses_nothing(tmp_path):
    storm(tmp_path, threads=16, processes=8, commits=100)
