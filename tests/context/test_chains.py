"""One source, one chain: however it came, in one go or piece by piece, it ends at the same tip."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.context.chains import ChainState, SourceMemory, extend, recall, remember
from harken.formats.base import Delta
from harken.store import Draft, SessionRow, Store
from harken.store.memory import MemoryStore

FACTS = Draft(artifact="", format="raw-v1", time=0, template="t", session_id="s", forked_from="")


def cut(*texts: bytes, tail: bool = True) -> Iterator[tuple[Delta, bytes]]:
    """The texts as deltas, the last of which is the tail."""
    start = 0
    for number, text in enumerate(texts, 1):
        closed = number < len(texts) or not tail
        yield Delta(start=start, end=start + len(text), time=number * 10**6, closed=closed), text
        start += len(text)


def keep(store: Store, state: ChainState, *texts: bytes, tail: bool = True, keep_tail: bool = True) -> ChainState:
    with store.write() as writer:
        return extend(writer, state, cut(*texts, tail=tail), FACTS, now=1, keep_tail=keep_tail).state


def superseded(store: Store, commit: str) -> list[str]:
    return [note.value for note in store.annotations(commit) if note.key == "superseded_by"]


@pytest.fixture
def store() -> Store:
    return MemoryStore()


def test_the_tail_hangs_from_the_last_closed_commit(store: Store) -> None:
    state = keep(store, ChainState(), b"one", b"two", b"rest")

    chain = store.walk(state.tip)

    assert [b"rest", b"two", b"one"] == [store.get(link.artifact) for link in chain]
    assert (2, state.tail, chain[1].id) == (state.commits, state.tip, state.closed)


def test_a_tail_that_was_overtaken_keeps_its_id_and_says_by_what(store: Store) -> None:
    before = keep(store, ChainState(), b"one", b"tw")

    after = keep(store, msgspec.structs.replace(before), b"two", b"rest")

    assert [after.tip] == superseded(store, before.tail)
    assert b"tw" == store.get(store.get_commit(before.tail).artifact)


def test_a_tail_that_is_closed_just_where_it_ended_is_not_superseded(store: Store) -> None:
    """#32: such commits were hidden from `log` although the tip stands on them."""
    before = keep(store, ChainState(), b"one")

    after = keep(store, before, b"one", b"rest")

    assert before.tail == after.closed
    assert [] == superseded(store, before.tail)


def test_a_tail_that_waits_leaves_the_old_one_in_place(store: Store) -> None:
    before = keep(store, ChainState(), b"one", b"tw")

    waiting = keep(store, before, b"two and", keep_tail=False)

    assert before == waiting
    assert [] == superseded(store, before.tail)


def test_where_it_comes_from_stands_on_the_first_commit_alone(store: Store) -> None:
    origin = {"session": "p", "call_id": "c", "inherits": False}
    facts = msgspec.structs.replace(FACTS, spawned_from=origin)
    with store.write() as writer:
        state = extend(writer, ChainState(), cut(b"one", b"two"), facts, now=1).state

    assert [None, origin] == [commit.spawned_from for commit in store.chain(state.tip)]


@given(
    st.lists(st.binary(min_size=1, max_size=6), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), max_size=5),
)
def test_a_source_kept_as_it_grew_ends_where_one_kept_in_one_go_ends(
    texts: list[bytes], stops: list[tuple[int, int]]
) -> None:
    store, grown = MemoryStore(), ChainState()
    for end, part in [*sorted(stops), (len(texts), 6)]:
        end = min(end, len(texts))
        seen = [*texts[: end - 1], texts[end - 1][:part]]
        with store.write() as writer:
            grown = extend(writer, grown, list(cut(*seen))[grown.commits :], FACTS, now=1).state

    fresh = keep(MemoryStore(), ChainState(), *texts)

    assert fresh == grown


def test_a_rewritten_source_leaves_its_old_chain_where_they_differ(store: Store) -> None:
    old = keep(store, ChainState(), b"one", b"two", b"three")

    new = keep(store, ChainState(), b"one", b"other", b"three")

    shared = {link.id for link in store.walk(old.tip)} & {link.id for link in store.walk(new.tip)}
    assert [b"one"] == [store.get(store.get_commit(id).artifact) for id in shared]


def test_threads_remember_long_memories_at_the_same_time() -> None:
    """One compressor for all of them ended in a segmentation fault."""
    memories = [
        {f"/{name}": SourceMemory(asks={f"{name} {n}": str(hash((name, n))) for n in range(2000)})} for name in "abcd"
    ]

    def turn(number: int) -> bool:
        sources = memories[number % len(memories)]
        return sources == recall(SessionRow(session="s", runtime="r", state=remember(sources)))

    with ThreadPoolExecutor(len(memories)) as threads:
        assert all(threads.map(turn, range(200)))
