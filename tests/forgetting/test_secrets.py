"""A secret leaves the whole store, and everything else stays byte for byte."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest

import harken
from harken.context.chains import readable_sessions
from harken.errors import BadRequest, Corrupt, NotFound
from harken.files import SPOOL, UNREAD, name_beside
from harken.repo import erasing

from .conftest import FIRST, SECOND, SECRET, leaks, write_session

BLANK = "*" * len(SECRET)


def everything(repo, session):
    return repo.materialize(session, stop="root").bytes


class TestASecretThatIsForgotten:
    def test_is_in_no_file_and_no_frame_and_all_else_is_what_it_was(self, repo, location, files):
        repo.index.catch_up()
        before = [everything(repo, session) for session in (FIRST, SECOND)]
        commits = repo.store.commits()
        repo.annotate(FIRST, f"it used {SECRET}")
        repo.store.cache("something", before[0])

        report = repo.forget(secret=[SECRET], who="me", why="leaked")

        assert [one.replace(SECRET.encode(), BLANK.encode()) for one in before] == [
            everything(repo, session) for session in (FIRST, SECOND)
        ]
        assert commits == repo.store.commits()
        assert repo.fsck(read_data=True).ok
        assert {FIRST, SECOND} == {place.session for place in report.places}
        assert 4 * len(SECRET) == report.bytes
        assert 3 == report.rows  # two titles and a remark
        repo.close()
        assert [] == leaks(location)

    def test_goes_out_of_a_store_that_has_lost_commits_and_was_repaired(self, repo, location, files):
        repo.close()
        with contextlib.closing(sqlite3.connect(location)) as damaged, damaged:
            first = "SELECT min(n) FROM commits"
            assert 1 == damaged.execute(f"UPDATE commits SET messages = 77 WHERE n = ({first})").rowcount
        with harken.open(location) as damaged:
            with pytest.raises(Corrupt):
                damaged.forget(secret=[SECRET])
            damaged.fsck(repair=True)
            report = damaged.forget(secret=[SECRET])

            assert report.places
            assert report.left == tuple(map(str, location.parent.glob("*before-repair*")))
            assert damaged.fsck(read_data=True).ok
        for copy in report.left:
            Path(copy).unlink()
        assert [] == leaks(location)

    def test_goes_where_a_program_escapes_what_need_not_be(self, repo, location, files):
        secret = "nobody&s-password<1>"
        written = secret.replace("&", r"\u0026").replace("<", r"\u003C").replace("y", r"\u0079")
        text = write_session(files[0].with_name("c.jsonl"), "33333333-aaaa-bbbb-cccc-000000000003", secret=secret)
        text.write_text(text.read_text().replace(secret, written))
        list(repo.import_sessions([text]))
        name_beside(location, SPOOL, "1").write_text(f'{{"said": "{written}"}}\n')
        assert written.encode() in everything(repo, "3333")

        report = repo.forget(secret=[secret])

        assert 3 == len(report.places) + report.rows
        assert written.encode() not in everything(repo, "3333")
        assert "password" not in str(repo.sessions("3333"))
        assert f'{{"said": "{"*" * len(written)}"}}\n' == name_beside(location, SPOOL, "1").read_text()
        grown = write_session(text, "33333333-aaaa-bbbb-cccc-000000000003", f"again {secret}", secret=secret)
        grown.write_text(grown.read_text().replace(secret, written))
        list(repo.import_sessions([grown]))
        assert b"password" not in everything(repo, "3333")

    def test_is_told_by_whoever_reads_what_is_left(self, repo):
        repo.forget(secret=[SECRET], who="me", why="leaked")

        losses = repo.materialize(FIRST, stop="root").losses
        first = repo.history(FIRST)[-1]

        assert ["forgotten bytes"] * 2 == [loss.what for loss in losses]
        assert "by me: leaked" in losses[0].why
        assert f"{len(SECRET)} bytes of it were forgotten" in repo.forgotten_of(first)
        assert "" == repo.forgotten_of(FIRST)
        assert {"forgotten"} == {found.severity for found in repo.fsck(read_data=True).findings}

    def test_stays_forgotten_whatever_is_imported(self, repo, location, files):
        repo.forget(secret=[SECRET])
        tip = repo.commit(FIRST).id

        again = [one.status for one in repo.import_sessions(files, verify=True)]
        write_session(files[0], FIRST, "go on", "done", f"and {SECRET} again", "ok")
        third = write_session(files[0].with_name("c.jsonl"), "33333333-aaaa-bbbb-cccc-000000000003")
        grown = [one.status for one in repo.import_sessions([files[0], third])]

        assert (["unchanged", "unchanged"], ["grown", "new"]) == (again, grown)
        assert tip in [commit.id for commit in repo.history(FIRST)]
        assert f"and {BLANK} again".encode() in everything(repo, FIRST)
        assert f"use the key {BLANK} please" in repo.sessions("3333")[0].title
        assert repo.fsck(read_data=True).ok
        repo.close()
        assert [] == leaks(location)

    def test_has_the_same_commits_as_where_nothing_was_forgotten(self, repo, files, tmp_path):
        repo.forget(secret=[SECRET])
        write_session(files[0], FIRST, "go on", "done", "more", "and more")
        list(repo.import_sessions(files))

        with harken.open(tmp_path / "other.db") as other:
            list(other.import_sessions(files))
            assert other.commit(FIRST).id == repo.commit(FIRST).id

    def test_is_found_by_a_rule(self, repo, location):
        from harken import secrets

        report = repo.forget(rules=[rule for rule in secrets.RULES if rule.name == "anthropic-key"])

        assert 4 == len(report.places)
        assert [] == list(repo.find_secrets())
        repo.close()
        assert [] == leaks(location)

    def test_that_json_escapes_is_found_as_it_stands(self, repo, files, location):
        secret = 'the "quoted"\npass phrase é of ours'
        write_session(files[0], FIRST, "go on", "done", secret, json.dumps({"deep": json.dumps(secret)}))
        list(repo.import_sessions(files))

        repo.forget(secret=[secret])

        assert b"pass phrase" not in everything(repo, FIRST)
        assert repo.materialize(FIRST, format="events-v1").losses

    @pytest.mark.parametrize("by_rule", [False, True])
    def test_of_several_lines_leaves_the_titles_which_have_one(self, repo, files, location, by_rule):
        from harken import secrets

        body = "\n".join(f"{n}x{'Zy9Xw7Vu5Ts3Rq1Po2Nm4Lk6' * 2}" for n in range(9))
        key = f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"
        third = "33333333-aaaa-bbbb-cccc-000000000003"
        source = write_session(files[0].with_name("c.jsonl"), third, secret=key)
        list(repo.import_sessions([source]))

        rules = [rule for rule in secrets.RULES if rule.name == "private-key"]
        repo.forget(rules=rules) if by_rule else repo.forget(secret=[key])
        list(repo.import_sessions([source], verify=True))
        repo.index.catch_up()

        assert "Zy9Xw7Vu5Ts3" not in repo.store.find_session(third).title
        repo.close()
        assert [] == leaks(location, body.split("\n")[0])

    def test_that_a_title_ends_in_is_not_brought_back_with_it(self, repo, files, location):
        """A title is cut off, perhaps in the middle of a secret, which no hash can tell then."""
        secret = "mL5" + SECRET[::-1]
        titled = write_session(files[0].with_name("c.jsonl"), "3" * 8, secret=f"{'w ' * 77}{secret}")
        list(repo.import_sessions([titled]))
        assert secret[:20] in repo.store.find_session("3" * 8).title
        repo.forget(secret=[secret])

        list(repo.import_sessions([titled], verify=True))
        copy = write_session(files[0].with_name("d.jsonl"), "4" * 8, secret=f"{'w ' * 77}{secret}")
        list(repo.import_sessions([copy]))

        repo.index.catch_up()
        repo.close()
        assert [] == leaks(location, secret)

    def test_in_a_spool_is_blanked_where_it_lies(self, repo, location):
        spools = [name_beside(location, kind, "1") for kind in (SPOOL, UNREAD)]
        for spool in spools:
            spool.write_bytes(f'{{"harken_spool":1}}\nsaid {SECRET} there\n'.encode())

        report = repo.forget(secret=[SECRET])

        assert [spool.name for spool in spools] == list(report.spools)
        assert all(f"said {BLANK} there".encode() in spool.read_bytes() for spool in spools)
        repo.close()
        assert [] == leaks(location)

    def test_is_not_in_a_backup_made_afterwards(self, repo, tmp_path):
        repo.forget(secret=[SECRET])
        (tmp_path / "copy").mkdir()
        repo.backup(tmp_path / "copy" / "copy.db")

        assert [] == leaks(tmp_path / "copy" / "copy.db")

    def test_may_be_brought_back(self, repo, files):
        before = everything(repo, FIRST)
        number = repo.forget(secret=[SECRET]).erasure

        assert [FIRST, SECOND] == repo.restorable([files[0].parent])
        assert [number] == [erasure.number for erasure in repo.lift_forgetting([FIRST, SECOND])]
        list(repo.import_sessions(files, verify=True))

        assert before == everything(repo, FIRST)
        assert [] == repo.restorable()
        assert repo.fsck(read_data=True).ok

    def test_is_brought_back_with_that_of_other_sessions_which_are_looked_through_once(self, repo, monkeypatch):
        repo.forget(secret=[SECRET])
        asked = []
        monkeypatch.setattr(erasing, "readable_sessions", lambda store: asked.append(1) or readable_sessions(store))

        assert ([SECOND], [FIRST], []) == tuple(map(repo.restored_along, ([FIRST], [SECOND], [FIRST, SECOND])))
        assert len(asked) <= 6

    def test_in_what_a_row_remembers_goes_too(self, repo, location):
        """The names of models and tools are counted, and stay in the row of the session."""
        repo.forget(secret=["claude-x"])

        assert not [row for row in repo.store.sessions() if b"claude-x" in row.state]
        assert ["unchanged"] * 2 == [
            one.status for one in repo.import_sessions([repo.sessions()[0].source, repo.sessions()[1].source])
        ]

    def test_leaves_the_names_of_other_answers_good(self, repo):
        other = repo.checkpoint(b'{"type":"x"}\n', format="claude-code-v1", session_id="mine")
        made = repo.materialize(other, format="events-v1")

        repo.forget(secret=[SECRET])

        assert made.bytes == repo.get(made.artifact)

    def test_that_comes_while_it_is_looked_for_is_found_too(self, repo, monkeypatch):
        from harken.repo.erasure_plan import ForgetPlan

        order, late = ForgetPlan.order, []

        def overtaken(plan, **said):
            if not late:
                with repo.store.write() as writer:
                    late.append(writer.put(f"late {SECRET}".encode()))
            return order(plan, **said)

        monkeypatch.setattr(ForgetPlan, "order", overtaken)

        report = repo.forget(secret=[SECRET])

        assert late[0] in {place.artifact for place in report.places}
        assert f"late {BLANK}".encode() == repo.get(late[0])


class TestADryRun:
    def test_says_the_same_and_changes_nothing(self, repo):
        before, last = everything(repo, FIRST), repo.last_change()

        rehearsed = repo.forget(secret=[SECRET], dry_run=True)

        assert (before, last, []) == (everything(repo, FIRST), repo.last_change(), repo.store.erasures())
        assert rehearsed.places == repo.forget(secret=[SECRET]).places

    def test_nothing_to_forget_is_no_erasure(self, repo):
        assert 0 == repo.forget(secret=["nobody ever said this"]).erasure
        assert [] == repo.store.erasures()

    def test_too_little_or_too_much_is_refused(self, repo):
        for given in ({}, {"ref": FIRST, "secret": [SECRET]}, {"secret": ["short"]}):
            with pytest.raises(BadRequest):
                repo.forget(**given)
        with pytest.raises(NotFound):
            repo.forget("nothing-of-the-kind")


class TestCandidates:
    def test_name_the_rule_and_the_message_and_never_the_secret(self, repo):
        repo.annotate(FIRST, f"it used {SECRET}")

        found = list(repo.find_secrets())

        assert {"anthropic-key"} == {one.rule for one in found}
        assert {"message": 4, "title": 2, "remark": 1} == {
            where: sum(one.where == where for one in found) for where in ("message", "title", "remark")
        }
        assert f"{FIRST}@00000000-0000-0000-0000-000000000000" in {one.ref for one in found}
        assert all("[masked: anthropic-key]" in one.excerpt for one in found)
        assert not [one for one in found if SECRET[8:24] in str(one)]
        for one in found:
            repo.commit(one.ref)

    def test_can_be_asked_of_one_session_or_conversation(self, repo):
        assert {FIRST} == {one.session for one in repo.find_secrets([FIRST])}
        assert {SECOND} == {one.session for one in repo.find_secrets([repo.commit(SECOND).short])}

    def test_are_found_across_the_parts_of_something_large(self, repo):
        with repo.store.write() as writer:
            writer.put(b"x " * ((1 << 19) - 10) + SECRET.encode() + b" y" * 100)

        assert 1 == sum(one.ref.startswith("art-") for one in repo.find_secrets())
        repo.forget(secret=[SECRET])
        assert [] == list(repo.find_secrets())
