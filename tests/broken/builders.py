"""Stores damaged on purpose. Each builder takes the path of a good, closed store and breaks it in one way."""

from __future__ import annotations

import contextlib
import sqlite3


def _sql(path, *statements):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def _patch(path, offset, data):
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def empty_file(path):
    path.write_bytes(b"")


def text_file(path):
    path.write_text("this is a diary, not a database\n" * 200)


def half_a_file(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def no_first_page(path):
    _patch(path, 0, bytes(4096))


def a_page_of_zeros(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'commits'").fetchone()
    _patch(path, (root - 1) * 4096, bytes(4096))


def another_schema(path):
    _sql(path, "ALTER TABLE artifacts ADD COLUMN more TEXT")


def no_migrations(path):
    _sql(path, "DELETE FROM migrations")


def a_hole_in_a_chain(path):
    _sql(path, "DELETE FROM commits WHERE n = (SELECT min(n) + 2 FROM commits)")


def a_commit_without_its_artifact(path):
    _sql(path, "DELETE FROM artifacts WHERE n = (SELECT artifact FROM commits LIMIT 1)")


def a_name_that_points_nowhere(path):
    _sql(path, "UPDATE names SET target = 99")


def a_frame_that_is_gone(path):
    _sql(path, "DELETE FROM frames WHERE n = 1")


def a_frame_that_claims_to_be_huge(path):
    _sql(path, "UPDATE frames SET size = 1 << 40 WHERE n = 1")


def a_frame_that_leans_on_itself(path):
    _sql(path, "UPDATE frames SET prefix = n WHERE n = 1")


def an_index_that_lies(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'commits_by_id'").fetchone()
        page = bytearray(path.read_bytes()[(root - 1) * 4096 : root * 4096])
    cell = int.from_bytes(page[8:10], "big")
    page[cell + 4] ^= 0xFF
    _patch(path, (root - 1) * 4096, bytes(page))


def text_that_is_no_text(path):
    _sql(path, "UPDATE annotations SET value = CAST(x'ff41' AS TEXT)")
