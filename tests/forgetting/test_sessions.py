"""A session is forgotten: its bytes go, its place in the history stays, and no import brings it back by itself."""

from __future__ import annotations

import json

import pytest

from harken.errors import Conflict, Forgotten, NotFound
from harken.files import SPOOL, name_beside

from .conftest import FIRST, SECOND, SECRET, leaks, write_session


class TestASessionThatIsForgotten:
    def test_has_no_bytes_left_and_all_its_commits(self, repo, location, files):
        own = "only the first session says this"
        write_session(files[0], FIRST, own, "done")
        list(repo.import_sessions(files))
        repo.annotate(FIRST, f"about {own}")
        history, other = repo.history(FIRST), repo.materialize(SECOND, stop="root").bytes

        report = repo.forget(FIRST, who="me", why="over")

        assert (FIRST,) == report.sessions
        assert (SECOND,) == report.copies
        assert history == repo.history(FIRST)
        with pytest.raises(Forgotten, match="by me: over"):
            repo.materialize(FIRST)
        assert other == repo.materialize(SECOND, stop="root").bytes
        assert "(forgotten)" == repo.sessions(FIRST)[0].title
        assert repo.fsck(read_data=True).ok
        repo.close()
        assert [] == leaks(location, own)

    def test_is_not_brought_back_by_an_import(self, repo, files):
        repo.forget(FIRST)
        artifacts = {commit.artifact for commit in repo.history(FIRST)}

        as_it_was = [one.status for one in repo.import_sessions(files)]
        write_session(files[0], FIRST, "go on", "done", "more")
        copy = write_session(files[0].with_name("copy.jsonl"), FIRST, "go on", "done", "more")
        grown = [(one.session, one.status) for one in repo.import_sessions([files[0], copy], verify=True)]

        assert ["forgotten", "unchanged"] == as_it_was
        assert [(FIRST, "forgotten")] * 2 == grown
        assert not [artifact for artifact in artifacts if repo.store.has(artifact)]
        assert artifacts == {commit.artifact for commit in repo.history(FIRST)}

    def test_is_nothing_that_an_answer_from_the_index_lacks(self, repo, files):
        repo.forget(FIRST)

        assert (0, 0) == ((found := repo.search("done")).reached.missing, found.reached.damaged)
        assert {SECOND} == {hit.session for hit in found.hits}
        assert () == repo.index.status().problems

    def test_may_be_brought_back(self, repo, files):
        before = repo.materialize(FIRST, stop="root").bytes
        repo.forget(FIRST)

        assert [FIRST] == repo.restorable()
        repo.lift_forgetting([FIRST])
        list(repo.import_sessions(files, verify=True))

        assert before == repo.materialize(FIRST, stop="root").bytes
        assert SECRET in repo.sessions(FIRST)[0].title
        assert repo.search(f"session:{FIRST}").hits
        assert repo.fsck(read_data=True).ok

    def test_cannot_be_forgotten_twice(self, repo):
        repo.forget(FIRST)

        with pytest.raises(NotFound, match="already"):
            repo.forget(FIRST)

    def test_keeps_what_another_session_stands_on(self, repo):
        base = repo.history(FIRST)[2]
        mine = repo.checkpoint(b'{"type":"x"}\n', format="claude-code-v1", parent=base, session_id="mine")

        report = repo.forget(FIRST)

        assert ("mine",) == report.kept_for
        assert len(repo.history(mine)) - 1 == report.kept
        repo.materialize(mine, stop="root")
        with pytest.raises(Forgotten):
            repo.materialize(FIRST, stop="root")

    def test_of_which_every_byte_stays_may_be_brought_back(self, repo, files):
        before = repo.materialize(FIRST, stop="root").bytes
        line = b'{"type":"x"}\n'
        repo.checkpoint(line, format="claude-code-v1", parent=repo.commit(FIRST), session_id="mine")
        report = repo.forget(FIRST)

        assert ((), ("mine",)) == (report.places, report.kept_for)
        assert [report.erasure] == [erasure.number for erasure in repo.lift_forgetting([FIRST])]
        list(repo.import_sessions(files, verify=True))
        assert before == repo.materialize(FIRST, stop="root").bytes

    def test_of_a_run_that_goes_on_is_refused(self, repo, location):
        name_beside(location, SPOOL, "1").write_bytes(f'{{"harken_spool":1}}\n{{"session_id":"{FIRST}"}}\n'.encode())

        with pytest.raises(Conflict):
            repo.forget(FIRST)


class TestWhatACommitAdds:
    def test_goes_alone(self, repo, files):
        history = repo.history(FIRST)

        report = repo.forget(history[2])

        assert [history[2].short] == [place.commit for place in report.places]
        assert history == repo.history(FIRST)
        with pytest.raises(Forgotten):
            repo.get(history[2].artifact)
        repo.get(history[1].artifact)
        assert ["unchanged", "unchanged"] == [one.status for one in repo.import_sessions(files, verify=True)]
        assert not repo.store.has(history[2].artifact)
        assert repo.fsck(read_data=True).ok

    def test_takes_along_what_stood_there_before_the_file_had_grown(self, repo, files):
        old = repo.commit(FIRST)
        with files[0].open("a") as file:
            file.write(json.dumps({"type": "system", "uuid": "1", "sessionId": FIRST, "content": "a notice"}) + "\n")
        list(repo.import_sessions(files))
        new = repo.commit(FIRST)
        assert old.parent == new.parent and old.id != new.id

        report = repo.forget(new)

        assert {old.artifact, new.artifact} == {place.artifact for place in report.places}


def test_a_commit_that_was_forgotten_makes_no_number_corrupt(repo, run):
    tip = repo.store.find_session(FIRST).tip
    repo.forget(tip)
    repo.close()

    assert 9 != run("stats", "--since", "2020-01-01", "--by", "project").code
