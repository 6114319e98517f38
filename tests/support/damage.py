"""A small store with one of everything, closed, so that every table is one page; and where its rows lie in the file."""

from __future__ import annotations

import contextlib

from harken.store import Draft, SessionRow, open_store
from harken.testing.store import T0, grow

PAGE = 4096


def store_of_everything(path):
    """The bytes of a store with one of everything, all that can be asked of it, and what it answers."""
    with contextlib.closing(open_store(path)) as store:
        chain = grow(store, 3, principal="a", machine="m", session_id="s")
        grow(store, 1, principal="b", session_id="s")
        with store.write() as writer:
            large = writer.put_stream([b"large" * 300_000])
            writer.set_policy(large, "pin")
            facts = {"spawned_from": {"session": "s", "call_id": "c"}, "forked_from": chain[0].id}
            tip = writer.commit(Draft(artifact=large, parent=chain[1].id, format="x", time=T0, **facts))
            writer.commit(Draft(artifact=writer.put(b"middling" * 9000), parent=tip.id, format="x", time=T0 + 1))
            writer.annotate(tip.id, "summary", "said", time=T0, who="me")
            writer.move("main", kind="branch", to=tip.id, expect="", time=T0, who="me", why="because")
            row = SessionRow(session="s", runtime="r", tip=tip.id, live=chain[2].id, older=(chain[0].id,), source="/x")
            writer.save_session(row)
        asked = questions([commit.id for commit in store.commits()], store.artifacts())
        answers = [ask(store) for ask in asked]
    assert any(answer != [] for answer in answers)
    return path.read_bytes(), asked, answers


def questions(commits, artifacts):
    """All that a caller can ask, each by itself."""
    return [
        lambda s: s.commits(),
        lambda s: s.names(),
        lambda s: s.find_name("main"),
        lambda s: s.moves(),
        lambda s: s.sessions(),
        lambda s: s.sessions(prefix="s"),
        lambda s: s.sessions(source="/x"),
        lambda s: s.find_session("s"),
        lambda s: s.artifacts(),
        lambda s: [s.latest(who, T0 * 2) for who in "ab"],
        lambda s: s.since(0),
        lambda s: s.since(5),
        lambda s: s.last_change(),
        lambda s: s.epoch,
        *(lambda s, c=c: s.get_commit(c) for c in commits),
        *(lambda s, c=c: s.chain(c) for c in commits),
        *(lambda s, c=c: [list(s.get_many([link.artifact for link in s.walk(c)]))] for c in commits),
        lambda s: s.annotations_of(commits),
        lambda s: s.sightings_of(commits),
        lambda s: s.names_at(commits),
        *(lambda s, a=a: (s.info(a), s.get(a), b"".join(s.iter_parts(a)), s.has(a)) for a in artifacts),
    ]


def varint(page, at):
    value = 0
    for n in range(9):
        byte = page[at + n]
        if n == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + n + 1
    raise AssertionError


def rows(data, root):
    """Where in the file each row of a table lies, without what spilled over; the table is one page."""
    start = (root - 1) * PAGE
    page = data[start : start + PAGE]
    assert page[0] in (0x0D, 0x0A), "the table has more than one page"
    for n in range(int.from_bytes(page[3:5], "big")):
        cell = int.from_bytes(page[8 + 2 * n : 10 + 2 * n], "big")
        size, at = varint(page, cell)
        if page[0] == 0x0D:
            _, at = varint(page, at)
        most = PAGE - 35 if page[0] == 0x0D else (PAGE - 12) * 64 // 255 - 23
        least = (PAGE - 12) * 32 // 255 - 23
        if size > most:
            spilled = least + (size - least) % (PAGE - 4)
            size = (spilled if spilled <= most else least) + 4
        yield start + cell, start + at + size
