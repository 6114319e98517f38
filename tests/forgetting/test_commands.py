"""`harken forget`, `harken secrets` and `harken import --restore` as a user sees them."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3

import pytest

import harken
from harken.store.tombstones import BEGUN, find_words, forms, merged

from .conftest import FIRST, SECOND, SECRET, leaks


@pytest.fixture
def stored(repo):
    repo.close()


class TestForget:
    def test_only_tells_until_it_is_told_to(self, run, stored, location):
        told = run("forget", "--secret", SECRET)

        assert 0 == told.code
        assert "nothing was changed; --yes does it" in told.err
        assert 4 == len(told.out.splitlines())
        assert [] != leaks(location)

    def test_reads_a_secret_from_stdin_and_forgets_it(self, run, stored, location):
        done = run("forget", "--secret", "-", "--yes", "--why", "leaked", stdin=f"{SECRET}\n")

        assert (0, []) == (done.code, leaks(location))
        assert SECRET not in done.out + done.err
        assert "leaked" in run("fsck", "--read-data").out
        assert "forgotten" in run("show", f"{FIRST}@00000000-0000-0000-0000-000000000000").err

    @pytest.mark.parametrize("other", ["-index.html", "-index-of-2025", "-indexes.txt"])
    def test_what_is_only_called_like_the_index_stays(self, run, stored, location, other):
        beside = location.with_name(location.name + other)
        run("index")
        beside.write_text("mine")
        run("forget", "--secret", SECRET, "--yes")

        assert "mine" == beside.read_text()
        assert not location.with_name(f"{location.name}-index").exists()

    def test_a_database_of_somebody_else_in_the_place_of_the_index_stays(self, run, stored, location):
        place = location.with_name(f"{location.name}-index")
        place.unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(place)) as theirs:
            theirs.execute("CREATE TABLE mine (word)")
        before = place.read_bytes()
        done = run("forget", "--secret", SECRET, "--yes")

        assert (0, before) == (done.code, place.read_bytes())

    def test_says_where_it_stays(self, run, repo):
        facts = {"session_id": f"run-{SECRET}", "template": f"t-{SECRET}", "ticket_id": SECRET}
        parent = repo.checkpoint(b"one", format="bytes-v1", **facts)
        repo.checkpoint(b"two", format="bytes-v1", parent=parent, **facts)
        repo.close()
        for more, verb in (((), "would go"), (("--yes",), "forgotten")):
            done = run("forget", "--secret", SECRET, *more)

            assert (0, True) == (done.code, verb in done.err)
            assert f"it stays in the id of session run-{'*' * len(SECRET)}: names are made of that" in done.err
            for fact in facts:
                assert re.search(rf"it stays in `{fact}` of the commit ctx-\w+ and of 1 more: ", done.err)
            assert SECRET not in done.err + done.out
        again = run("forget", "--secret", SECRET, "--yes")
        assert (0, True) == (again.code, "there is nothing else to forget" in again.err)
        assert 4 == len(json.loads(run("forget", "--secret", SECRET, "--json").out)["stays"])

    def test_by_a_rule_as_json(self, run, stored, location):
        told = json.loads(run("forget", "--rule", "anthropic-key", "--yes", "--json").out)

        assert (False, 1, 4) == (told["dry_run"], told["erasure"], len(told["places"]))
        assert [] == leaks(location)

    def test_a_session_says_who_has_a_copy(self, run, stored):
        done = run("forget", FIRST[:8], "--yes")

        assert f"session {FIRST} forgotten\n" == done.out
        assert f"session {SECOND} began with a copy" in done.err
        assert "(forgotten)" in run("sessions").out

    @pytest.mark.parametrize(
        ("args", "said"),
        [((), "name a session"), (("x", "--rule", "y"), "name a session"), (("--rule", "nope"), "no rule 'nope'")],
    )
    def test_says_what_is_wrong(self, run, stored, args, said):
        done = run("forget", *args)

        assert 2 == done.code
        assert said in done.err


class TestSecrets:
    @pytest.mark.parametrize("table", ["artifacts", "commits", "frames", "sessions", "annotations"])
    def test_damage_hides_nothing_else_and_is_told_behind_it(self, run, repo, location, table):
        first = repo.history(FIRST)[-1]
        for word in ("one", "two"):
            repo.annotate(first, f"{SECRET[:-3]}{word}")
        repo.put(f"{SECRET} in a frame of its own".encode())
        whole = len(list(repo.find_secrets()))
        repo.close()
        with contextlib.closing(sqlite3.connect(location)) as damaged, damaged:
            what = "data = zeroblob(length(data))" if table == "frames" else "sum = x'00000000'"
            damaged.execute(f"UPDATE {table} SET {what} WHERE rowid = (SELECT min(rowid) FROM {table})")
        done, as_json = run("secrets"), run("secrets", "--json")
        *found, last = map(json.loads, as_json.out.splitlines())

        assert (9, 9) == (done.code, as_json.code)
        assert 0 < len(found) == last["report"]["candidates"] == len(done.out.splitlines()) <= whole
        assert "not looked through: " in done.err
        assert {"message", "title"} <= {one["where"] for one in found}

    def test_lists_candidates_and_no_secret(self, run, stored):
        done = run("secrets")

        assert 6 == len(done.out.splitlines())
        assert "6 candidates" in done.err
        assert SECRET[8:24] not in done.out

    def test_in_a_narrow_window_the_place_is_whole(self, run, stored):
        whole = [line.split()[1] for line in run("secrets").out.splitlines()]

        narrow = run("secrets", columns="60").out.splitlines()

        assert whole == [line.strip() for line in narrow[1::2]]
        assert 60 >= max(map(len, narrow[::2]))

    def test_as_json_ends_with_a_report(self, run, stored):
        *found, last = map(json.loads, run("secrets", FIRST, "--json").out.splitlines())

        assert {"rule", "session", "ref", "where", "size", "excerpt"} == found[0].keys()
        assert {"candidates": 3, "rules": {"anthropic-key": 3}, "bytes": last["report"]["bytes"]} == last["report"]

    def test_knows_the_rules_of_the_configuration(self, run, stored, monkeypatch, tmp_path):
        (tmp_path / "config" / "harken").mkdir(parents=True)
        text = "[secrets.house]\nprefix = 'use the'\npattern = 'use the key'\n"
        (tmp_path / "config" / "harken" / "config.toml").write_text(text)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

        from harken.api.forgetting import SecretsRequest, secrets
        from harken.cli.secret_rules import own_rules, rule_names

        assert ["house"] == [rule.name for rule in own_rules()]
        assert ["house"] == rule_names(None, None, "hou")
        with harken.open("memory:") as repo:
            repo.put(b"please use the key now")
            found = list(secrets(repo, SecretsRequest(own_rules=own_rules(), rules=("house",))))
        assert 2 == len(found)


class TestImport:
    def test_leaves_it_forgotten_and_restores_it_when_asked_and_answered(self, run, stored, files, location):
        run("forget", FIRST, "--yes")

        assert "left forgotten: 1 session" in run("import", *files).err
        refused = run("import", "--restore", *files, stdin="n\n")
        assert (1, "nothing was brought back") == (refused.code, refused.err.splitlines()[-1].partition("]: ")[2])
        unattended = run("import", "--restore", *files)
        assert (2, True) == (unattended.code, "since nobody is there to be asked" in unattended.err)
        assert "(forgotten)" in run("sessions").out
        assert 0 == run("import", "--restore", *files, stdin="y\n").code
        assert "(forgotten)" not in run("sessions").out
        assert "nothing was forgotten" in run("import", "--restore", *files).err

    def test_says_whose_else_an_erasure_is_before_it_takes_it_back(self, run, stored, files):
        run("forget", "--secret", SECRET, "--yes")
        run("forget", "--secret", "what was it?", "--yes")

        asked = run("import", "--restore", files[0], stdin="n\n").err

        assert f"of session {FIRST} something was forgotten" in asked
        assert 1 == asked.count(f"the same in session {SECOND} is no longer kept out")
        assert "is no longer kept out" not in run("import", "--restore", *files, stdin="n\n").err


class TestWhatWasBegun:
    @pytest.fixture
    def begun(self, location, stored):
        """Somebody began to forget the secret and was killed."""
        from harken.store import ErasureOrder

        with harken.open(location) as repo:
            words, found = forms(SECRET), {}
            for artifact, parts in repo.store.contents():
                if spans := merged(find_words(b"".join(parts), words)):
                    found[artifact] = spans
            at = repo.last_change()
            repo.store.erase(ErasureOrder(time=1, who="me", artifacts=found, words=words, at=at))

    def test_is_not_shown_by_a_command_that_looks(self, run, begun):
        shown = run("materialize", FIRST, "--stop", "root")

        assert SECRET not in shown.out
        assert "something is being forgotten" in shown.err

    def test_is_finished_by_a_command_that_writes_and_said(self, run, begun, location):
        assert "finished forgetting what was begun by me" in run("gc").err
        with harken.open(location) as repo:
            assert [] == [one for one in repo.store.erasures() if one.state == BEGUN]
