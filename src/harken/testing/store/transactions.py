"""Transactions, threads and closing: whole or not at all, whoever else is there."""
# ruff: noqa: SIM300  (what is expected stands on the left)

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harken.errors import BadRequest, Closed
from harken.store import Draft, SessionRow, Store

from .arguments import right_calls
from .chains import T0, grow


class TransactionContract:
    """What a store does when something raises, when many use it at once, and at its end."""

    def test_a_block_that_raises_leaves_nothing(self, store: Store) -> None:
        base = grow(store, 1)[0]
        with pytest.raises(RuntimeError), store.write() as writer:
            artifact = writer.put(b"half")
            commit = writer.commit(Draft(artifact=artifact, parent=base.id, format="x", time=T0))
            writer.annotate(base.id, "summary", "half", time=T0)
            writer.move("main", kind="branch", to=commit.id, expect="", time=T0)
            writer.save_session(SessionRow(session="s", runtime="r", tip=commit.id))
            writer.set_policy(base.artifact, "pin")
            raise RuntimeError
        assert [base] == store.commits()
        assert [base.artifact] == store.artifacts()
        assert [] == [*store.annotations(base.id), *store.names(), *store.moves(), *store.sessions()]
        assert "default" == store.info(base.artifact).policy
        assert 2 == len(store.chain(grow(store, 1, parent=base.id, start=1)[0].id))

    def test_a_block_that_does_nothing_does_nothing(self, store: Store) -> None:
        with store.write():
            pass
        assert [] == store.commits()

    def test_a_transaction_inside_a_transaction_is_refused(self, store: Store) -> None:
        with store.write() as writer:
            artifact = writer.put(b"x")
            with pytest.raises(BadRequest), store.write():
                pass
        assert b"x" == store.get(artifact)

    def test_after_closing_every_call_says_so(self, store: Store, tmp_path: Path) -> None:
        commit = grow(store, 1)[0]
        before = store.closed
        store.close()
        store.close()
        assert (False, True) == (before, store.closed)
        answers: list[Callable[[], object]] = [
            *(
                lambda method=method, given=given: getattr(store, method)(**given)
                for method, given in right_calls(Store)
                if method != "close"
            ),
            lambda: store.get(commit.artifact),
            lambda: store.get_many([]),
            lambda: store.wait(0, 1),
            lambda: store.backup(tmp_path / "copy.db"),
            lambda: store.epoch,
            lambda: grow(store, 1),
        ]
        for ask in answers:
            with pytest.raises(Closed) as caught:
                ask()
            assert caught.value.hint
        assert [] == [path for path in tmp_path.iterdir() if path.name.startswith("copy")]

    def test_who_waits_for_a_change_is_woken_by_the_end(self, store: Store) -> None:
        problems = list[BaseException]()
        waiting = threading.Event()

        def wait() -> None:
            waiting.set()
            try:
                store.wait(0, 60)
            except Closed as problem:
                problems.append(problem)

        thread = threading.Thread(target=wait)
        thread.start()
        assert waiting.wait(30)
        store.close()
        thread.join(30)
        assert not thread.is_alive()
        assert 1 == len(problems)

    def test_a_store_is_not_closed_from_inside_its_transaction(self, store: Store) -> None:
        with store.write() as writer:
            name = writer.put(b"x")
            with pytest.raises(BadRequest):
                store.close()
        assert b"x" == store.get(name)

    # -- threads -----------------------------------------------------------------------------------------------

    def test_a_reader_never_sees_half_a_transaction(self, store: Store) -> None:
        """#20: transactions that are taken back leave nothing, and nothing stale, for whoever reads meanwhile."""
        base = grow(store, 1)[0]
        done, problems = threading.Event(), list[object]()

        def read() -> None:
            while not done.is_set():
                try:
                    for commit in store.commits():
                        said = {note.key for note in store.annotations(commit.id)}
                        if commit.id != base.id and said != {"a", "b"}:
                            problems.append((commit.short, said))
                        store.walk(commit.id)
                        list(store.get_many([commit.artifact]))
                except Exception as problem:  # noqa: BLE001
                    problems.append(problem)

        readers = [threading.Thread(target=read) for _ in range(4)]
        for reader in readers:
            reader.start()
        for n in range(60):
            with contextlib.suppress(RuntimeError), store.write() as writer:
                artifact = writer.put(b"%d" % n * 100)
                facts: dict[str, Any] = {"session_id": f"s{n}", "principal": f"p{n}"}
                made = writer.commit(Draft(artifact=artifact, format="x", time=T0 + n, parent=base.id, **facts))
                writer.annotate(made.id, "a", "1", time=T0)
                store.get_commit(made.id)
                writer.annotate(made.id, "b", "2", time=T0)
                if n % 2:
                    raise RuntimeError
        done.set()
        for reader in readers:
            reader.join()
        assert [] == problems
        assert 31 == len(store.commits())

    def test_threads_write_at_once_and_every_number_is_there(self, store: Store) -> None:
        def work(name: str) -> None:
            for n in range(20):
                with contextlib.suppress(RuntimeError), store.write() as writer:
                    writer.commit(Draft(artifact=writer.put(f"{name} {n}".encode()), format="x", time=T0))
                    if n % 4 == 0:
                        raise RuntimeError

        threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        told = store.since(0, limit=10**6)
        assert list(range(1, store.last_change() + 1)) == [change.number for change in told]
        assert {commit.id for commit in store.commits()} == {each.subject for each in told if each.kind == "commit"}
        assert 8 * 15 == len(store.commits())

    def test_closing_while_others_read_ends_in_closed(self, store: Store) -> None:
        chain = grow(store, 50)
        problems, began = list[object](), threading.Barrier(5)

        def read() -> None:
            began.wait(30)
            with contextlib.suppress(Closed):
                while True:
                    try:
                        list(store.get_many([step.artifact for step in store.walk(chain[-1].id)]))
                    except Closed:
                        raise
                    except Exception as problem:
                        problems.append(problem)
                        raise Closed("stop") from problem

        readers = [threading.Thread(target=read) for _ in range(4)]
        for reader in readers:
            reader.start()
        began.wait(30)
        store.close()
        for reader in readers:
            reader.join(30)
        assert [] == problems
