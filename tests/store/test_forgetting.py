"""What a file holds after something was forgotten: searched byte by byte, and in every frame; and what is finished."""

from __future__ import annotations

import contextlib
import gzip
import os
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.errors import HarkenError
from harken.store import Draft, PackedFrame, SessionRow, SqliteStore, open_store, sql
from harken.store.tombstones import BEGUN, EscapedForms, blanked, find_words, forms, merged, without
from harken.testing.store.forgetting import BLANK, LINE, SECRET, forget, order
from support.users import as_a_user

NOISE = [bytes(os.urandom(3000)).hex().encode() + b"\n" for _ in range(40)]


@pytest.fixture
def store(tmp_path):
    with contextlib.closing(open_store(tmp_path / "in" / "store.db")) as store:
        yield store


def pieces(secret: str) -> list[bytes]:
    data = secret.encode()
    return [data[at : at + 16] for at in range(max(len(data) - 15, 1))]


def assert_nowhere(store, secret: str = SECRET) -> None:
    """No sixteen bytes of the secret are in a file of the folder, nor in what a frame holds."""
    folder = Path(store.location).parent
    held = [path.read_bytes() for path in folder.iterdir() if path.is_file()]
    held += [
        store.frame(number) for (number,) in store.db.all("SELECT n FROM frames UNION ALL SELECT -slot FROM loose")
    ]
    for piece in pieces(secret):
        assert not [data for data in held if piece in data]


class TestAFileThatHasForgotten:
    def test_has_nothing_of_it_in_loose_packed_leaning_and_large_frames(self, store):
        with store.write() as writer:
            small = writer.put(LINE)
        with store.write() as writer:
            one = b"".join(NOISE) + LINE
            base = writer.put(one)
            [packed, *_] = writer.put_many([PackedFrame.of([b"packed " + LINE, *NOISE])])
        with store.write() as writer:
            copy = writer.put(b"copy " + one, like=base)
            clean = writer.put(b"".join(NOISE) + b"clean", like=base)
            large = writer.put(b"y" * ((1 << 20) - 30) + LINE * 3)
        with store.write() as writer:
            leaning = store.db.all("SELECT n FROM frames WHERE prefix IS NOT NULL")
        before = {name: b"".join(parts) for name, parts in store.contents()}

        forget(store)

        assert leaning
        assert_nowhere(store)
        for name, data in before.items():
            assert data.replace(SECRET.encode(), b"*" * len(SECRET)) == store.get(name)
        assert store.tombstones(list(before)).keys() == {small, base, packed, copy, large}
        assert clean not in store.tombstones([clean])
        assert store.fsck(read_data=True).ok

    def test_a_copy_still_leans_on_what_it_copies(self, store):
        with store.write() as writer:
            base, *_ = writer.put_many([*NOISE, LINE])
        with store.write() as writer:
            writer.put(b"".join(NOISE) + b"clean", like=base)

        forget(store)

        assert store.db.all("SELECT 1 FROM frames WHERE prefix IS NOT NULL")

    def test_has_nothing_of_what_it_held_before_in_slots_and_pages_that_are_free(self, store):
        for n in range(30):
            with store.write() as writer:
                artifact = writer.put(b"%d " % n + LINE + NOISE[n])
                writer.commit(Draft(artifact=artifact, format="x", time=n, session_id="s"))
                row = store.find_session("s") or SessionRow(session="s", runtime="r")
                title = SECRET if n < 29 else "plain"
                writer.save_session(SessionRow(session="s", runtime="r", title=title, version=row.version))
        store.pack()

        forget(store)

        assert_nowhere(store)
        assert (0,) == store.db.one("PRAGMA freelist_count")
        assert store.fsck(read_data=True).ok

    def test_goes_on_as_before(self, store):
        with store.write() as writer:
            held = writer.put(LINE)
            first = writer.commit(Draft(artifact=held, format="x", time=1))
        forget(store)
        for n in range(20):
            with store.write() as writer:
                artifact = writer.put(b"%d" % n)
                first = writer.commit(Draft(artifact=artifact, format="x", parent=first.id, time=n + 2))
        store.pack()
        store.gc()

        assert 21 == len(store.chain(first.id))
        assert BLANK == store.get(held)
        assert store.fsck(read_data=True).ok

    def test_survives_a_repair(self, store):
        with store.write() as writer:
            held, whole = writer.put(LINE), writer.put(b"whole")
        forget(store, artifacts={**order(store).artifacts, whole: ()})
        store.db.do("UPDATE facts SET sum = x'00' WHERE key = 'epoch'")

        report = store.fsck(repair=True)

        assert report.ok
        assert BLANK == store.get(held)
        assert store.tombstones([held, whole]).keys() == {held, whole}
        with store.write() as writer:
            later = writer.put(b"later " + LINE)
        assert b"later " + BLANK == store.get(later)


class TestWhatWasBegun:
    def test_is_finished_by_whoever_comes_next(self, store, tmp_path):
        with store.write() as writer:
            held = writer.put(LINE)
        number = store.erase(order(store)).number
        location = store.location
        store.close()

        with contextlib.closing(open_store(location)) as again:
            assert [(number, BEGUN)] == [(one.number, one.state) for one in again.erasures()]
            assert BLANK == again.get(held)
            again.scrub()
            again.scrub()
            again.finish_erasure(number)
            assert_nowhere(again)
            assert again.fsck(read_data=True).ok

    def test_another_process_that_has_the_store_open_lets_nothing_in(self, store):
        with contextlib.closing(open_store(store.location)) as other:
            with other.write() as writer:
                held = writer.put(LINE)
            forget(store)
            with other.write() as writer:
                later = writer.put(b"later " + LINE)

            assert [BLANK, b"later " + BLANK] == [other.get(held), other.get(later)]

    def test_waits_for_whoever_still_reads_what_was_there(self, store, monkeypatch):
        monkeypatch.setattr("harken.store.erasing._PATIENCE", 0.05)
        with store.write() as writer:
            writer.put(LINE)
        with contextlib.closing(sqlite3.connect(store.location)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM artifacts").fetchone()
            store.erase(order(store))
            with pytest.raises(HarkenError, match="still reading") as caught:
                store.scrub()
            assert caught.value.hint
        store.scrub()
        assert_nowhere(store)


class TestAnOlderStore:
    @pytest.fixture
    def old(self, folder):
        path = folder / "store.db"
        path.write_bytes(gzip.decompress(Path(__file__).with_name("version-3.db.gz").read_bytes()))
        return path

    def test_gets_what_it_lacks_and_can_forget(self, old):
        with contextlib.closing(open_store(old)) as store:
            row = store.find_session("s")
            assert (4,) == store.db.one("PRAGMA user_version")
            assert ("of version 3", False) == (row.title, row.forgotten)
            assert store.fsck(read_data=True).ok

            forget(store, "turn of version 3")

            assert b'{"text":"a first *****************"}\n' == store.get(store.chain(row.tip)[1].artifact)
            assert store.fsck(read_data=True).ok

    def test_can_be_looked_at_as_it_is_where_it_cannot_be_written(self, old):
        old.chmod(0o444)
        old.parent.chmod(0o555)
        with as_a_user(), contextlib.closing(SqliteStore(old)) as store:
            assert (True, False) == (store.db.is_old, store.db.writable)
            tip = store.find_session("s").tip
            assert [] == store.erasures()
            assert {} == store.tombstones([store.chain(tip)[1].artifact])
            assert store.fsck(read_data=True).ok


class TestTheFormsOfASecret:
    def test_of_a_plain_one_there_is_one(self):
        assert (b"plain-secret-123",) == forms("plain-secret-123")

    def test_json_within_json_is_found(self):
        import json

        secret = 'a "quoted" secret\nin two lines/é'
        for data in (
            secret.encode(),
            json.dumps({"a": secret}).encode(),
            json.dumps({"a": secret}, ensure_ascii=False).encode(),
            json.dumps({"a": json.dumps({"b": secret})}).encode(),
            json.dumps({"a": secret}).replace("/", r"\/").encode(),
        ):
            assert merged(find_words(data, forms(secret))), data

    @pytest.mark.parametrize("secret", ["the first line\nand the second", 'a "quoted" secret', "C:\\\\secret\\\\place"])
    def test_so_it_is_however_deep_it_stands(self, secret):
        import json

        written = secret
        for _ in range(6):
            written = json.dumps(written)[1:-1]
            data = f"before {written} behind".encode()
            spans = merged([*find_words(data, forms(secret)), *EscapedForms(secret).find(data)])

            assert f"before {'*' * len(written)} behind".encode() == blanked(data, spans)

    @given(
        secret=st.text(st.characters(codec="utf-8"), min_size=1, max_size=12),
        escaped=st.lists(st.booleans(), min_size=12, max_size=12),
        upper=st.booleans(),
        levels=st.integers(0, 2),
    )
    def test_needless_escapes_are_found_and_nothing_beside_them(self, secret, escaped, upper, levels):
        import json

        def escape(letter):
            raw = letter.encode("utf-16-be").hex()
            units = [raw[at : at + 4] for at in range(0, len(raw), 4)]
            return "".join(rf"\u{unit.upper() if upper else unit}" for unit in units)

        written = "".join(
            escape(letter) if alone else json.dumps(letter, ensure_ascii=False)[1:-1]
            for letter, alone in zip(secret, [True, *escaped[1:]], strict=False)
        )
        for _ in range(levels):
            written = json.dumps(written, ensure_ascii=False)[1:-1]
        data = f'{{"before": "x", "said": "{written}", "behind": "y"}}'.encode()

        found = blanked(data, merged(EscapedForms(secret).find(data)))

        assert data.replace(written.encode(), b"*" * len(written.encode())) == found

    def test_too_short_a_secret_is_refused(self):
        with pytest.raises(HarkenError, match="at least 8"):
            forms("short")

    @pytest.mark.parametrize("end", ["", "…", "..."])
    def test_an_excerpt_that_ends_inside_it_is_covered(self, end):
        assert "use " + "*" * 14 + end == without(f"use {SECRET[:14]}{end}", forms(SECRET))

    def test_every_step_of_the_schema_makes_its_tables(self):
        made = {word for _, _, said in sql.STEPS for line in said for word in line.split()[2:3]}

        assert {"erasures", "tombstones", "watchwords"} <= made
