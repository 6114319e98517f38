"""#14, #15: a repair that finds only a part of a session says so wherever the session is asked for, and an import of
its file makes it whole again."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3

import msgspec
import pytest

import harken
from harken.cli import main
from harken.errors import Corrupt
from harken.events import Prompt, Response
from harken.store import fsck, open_store
from support.claude_lines import assistant, dump, user

SESSION = "11111111-1111-4111-8111-111111111111"
AGENT = "a1b2c3d"
TURNS = 7
DOORS = [
    "log {}",
    "show {}",
    "materialize {}",
    "materialize {}~0",
    "materialize {}@u0",
    "resume {} --in claude-code --home {home}",
    "resume {} --in codex --home {home}",
    "stats {}",
    "stats",
    "agents {}",
    "view dialog {}",
    "view tree {}",
    "view timeline {}",
]


def lines(session=SESSION, **more):
    said = []
    for n in range(TURNS):
        said.append(user(f"u{n}", f"a{n - 1}" if n else None, f"question {n}", 10 * n, sessionId=session, **more))
        said.append(assistant(f"a{n}", f"u{n}", f"answer {n}", f"m{n}", 10 * n + 5, sessionId=session, **more))
    return said


@pytest.fixture
def source(tmp_path):
    """A session of Claude Code with a sub-agent, whose file lies beside it."""
    folder = tmp_path / "claude" / "projects" / "-home"
    below = folder / SESSION / "subagents"
    below.mkdir(parents=True)
    (below / f"agent-{AGENT}.jsonl").write_bytes(dump(*lines(agentId=AGENT, isSidechain=True)))
    path = folder / f"{SESSION}.jsonl"
    path.write_bytes(dump(*lines()))
    return path


@pytest.fixture
def run(tmp_path, source, capfd):
    """A command on the store into which the session was imported."""

    def command(words):
        given = words.format(SESSION, home=tmp_path / "other").split()
        with pytest.raises(SystemExit) as end:
            main(["--store", str(tmp_path / "store.db"), *given])
        out, err = capfd.readouterr()
        return end.value.code or 0, out, err

    assert 0 == command(f"import {source.parent}")[0]
    return command


def lose(path, session, *places):
    """Damage the commits of a session's chain at these places, and repair the store; what the repair says."""
    with contextlib.closing(open_store(path)) as store:
        chain = store.chain(store.find_session(session).tip)[::-1]
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for commit in (chain[place] for place in places):
            connection.execute(
                "UPDATE commits SET seal = zeroblob(32), sum = zeroblob(8) WHERE id = ?", (bytes.fromhex(commit.id),)
            )
        connection.commit()
    with contextlib.closing(open_store(path)) as store:
        report = fsck(store, repair=True)
        assert report.ok
        return [found.why for found in report.findings]


def sessions_in(answer):
    return {row["session"]: row for row in map(json.loads, answer[1].splitlines())}


@pytest.mark.parametrize("words", DOORS)
@pytest.mark.parametrize("how", ["", " --json"])
def test_nobody_gets_a_part_of_a_session_as_the_whole(run, tmp_path, words, how):
    if how and words.startswith("materialize"):
        how += f" -o {tmp_path / 'out'}"
    whole = run(words + how)
    assert 0 == whole[0], whole
    (tmp_path / "out").unlink(missing_ok=True)

    lose(tmp_path / "store.db", SESSION, -2, -1)

    code, out, err = run(words + how)
    assert (9, True, True) == (code, "lost" in err, "harken import" in err), err
    assert "question" not in out
    assert SESSION in err


@pytest.mark.parametrize("words", ["stats {}", "stats", "agents {}", "view dialog {}", "materialize {}/" + AGENT])
def test_a_sub_agent_that_is_lost_in_part_is_no_whole_either(run, tmp_path, words):
    lose(tmp_path / "store.db", f"{SESSION}/{AGENT}", -1)

    code, _, err = run(words)

    assert (9, True) == (code, f"{SESSION}/{AGENT}" in err)


def test_what_does_not_need_the_lost_part_is_answered(run, tmp_path):
    before = run("materialize {}")
    lose(tmp_path / "store.db", f"{SESSION}/{AGENT}", -1)

    assert before == run("materialize {}")
    assert 0 == run("log {}")[0]


@pytest.mark.parametrize("how", [" --by session --since 2020-01-01", " --json"])
def test_stats_tell_of_the_other_sessions(run, tmp_path, source, how):
    other = SESSION.replace("1", "2")
    # Requests of its own: what two sessions share is told of one of them.
    source.with_name(f"{other}.jsonl").write_bytes(re.sub(rb'"m(\d)', rb'"other\1', dump(*lines(session=other))))
    run(f"import {source.parent}")
    lose(tmp_path / "store.db", SESSION, -1)

    code, out, err = run(f"stats{how}")

    assert (9, True, True) == (code, other[:8] in out, SESSION in err)
    assert 0 == run(f"stats {other}")[0]


def test_the_list_of_sessions_says_which_is_lost_in_part(run, tmp_path):
    assert {False} == {row["lost"] for row in sessions_in(run("sessions --json")).values()}
    lose(tmp_path / "store.db", SESSION, -1)

    code, out, _ = run("sessions --all")

    assert 0 == code
    assert [True, False] == ["lost in part" in line for line in out.splitlines()]
    rows = sessions_in(run("sessions --json"))
    assert {SESSION: True, f"{SESSION}/{AGENT}": False} == {name: row["lost"] for name, row in rows.items()}


def test_what_is_left_can_be_had_by_the_name_of_its_commit(run, tmp_path):
    lose(tmp_path / "store.db", SESSION, -1)
    (row,) = [row for name, row in sessions_in(run("sessions --json")).items() if name == SESSION]

    assert row["tip"] in run("materialize {}")[2]
    code, out, _ = run(f"materialize {row['tip']}")

    assert (0, True, False) == (code, "answer 0" in out, f"answer {TURNS - 1}" in out)


@pytest.mark.parametrize(
    "places", [(-1,), (-3, -2, -1), (0,), (0, 1), (0, 1, 2), (0, 1, 2, -1), (3,), (3, 4), (0, 3, 4, 7)]
)
def test_an_import_of_the_file_makes_it_whole_again(run, tmp_path, source, places):
    before = run("materialize {} --stop root")
    log = run("log {} --json")
    lose(tmp_path / "store.db", SESSION, *places)
    assert 9 == run("materialize {}")[0]

    assert 0 == run(f"import {source.parent}")[0]

    assert before == run("materialize {} --stop root")
    assert log == run("log {} --json")
    assert {False} == {row["lost"] for row in sessions_in(run("sessions --json")).values()}
    assert 0 == run("fsck --read-data")[0]
    with contextlib.closing(open_store(tmp_path / "store.db")) as store:
        assert [] == [found for found in fsck(store).findings if found.severity == "lost"]


@pytest.mark.parametrize("in_parts", [False, True])
@pytest.mark.parametrize("places", [(-1,), (0,), (3, 4)])
def test_an_import_keeps_the_older_versions_that_a_repair_left(run, tmp_path, source, monkeypatch, places, in_parts):
    if in_parts:
        monkeypatch.setattr("harken.runtimes.sources.PART", 1000)
        monkeypatch.setattr("harken.runtimes.files.CHUNK", 500)
    said = lines()
    source.write_bytes(dump(user("u0", None, "another question", 0, sessionId=SESSION), *said[1:]))
    run(f"import {source.parent}")
    asked = ["materialize {} --stop root", "materialize {}~1 --stop root", "stats {} --json"]
    before = [run(words) for words in asked]
    assert [0, 0, 0] == [code for code, _, _ in before]
    lose(tmp_path / "store.db", SESSION, *places)

    for _ in range(2):
        assert 0 == run(f"import {source.parent} --verify")[0]
        assert before == [run(words) for words in asked]


def test_older_versions_stay_where_a_repair_lost_nothing_but_bytes(run, tmp_path, source):
    source.write_bytes(dump(user("u0", None, "another question", 0, sessionId=SESSION), *lines()[1:]))
    run(f"import {source.parent}")
    with contextlib.closing(open_store(tmp_path / "store.db")) as store, store.write() as writer:
        row = store.find_session(SESSION)
        writer.save_session(msgspec.structs.replace(row, state=b""))

    run(f"import {source.parent}")

    with contextlib.closing(open_store(tmp_path / "store.db")) as store:
        found = store.find_session(SESSION)
        assert (row.tip, row.older, False) == (found.tip, found.older, found.lost)
        assert row.older


@pytest.mark.parametrize("back_first", [False, True])
def test_a_file_with_no_more_than_a_repair_left_makes_no_session_whole(run, tmp_path, source, back_first):
    before = run("materialize {} --stop root")
    short = source.parent.with_name("-other") / source.name
    short.parent.mkdir()
    short.write_bytes(dump(*lines()[:2]))
    run(f"import {short.parent}")
    with contextlib.closing(open_store(tmp_path / "store.db")) as store:
        row = store.find_session(SESSION)
        left = store.walk(row.tip)[2].id
    lose(tmp_path / "store.db", SESSION, -2, -1)

    for _ in range(0 if back_first else 2):
        assert 0 == run(f"import {short.parent} --verify")[0]
        with contextlib.closing(open_store(tmp_path / "store.db")) as store:
            found = store.find_session(SESSION)
            assert (True, left) == (found.lost, found.tip)
        assert 9 == run("log {}")[0]
    for folder in [source.parent, short.parent]:
        assert 0 == run(f"import {folder}")[0]

    assert before == run("materialize {} --stop root")
    with contextlib.closing(open_store(tmp_path / "store.db")) as store:
        found = store.find_session(SESSION)
        assert (False, row.tip, row.older) == (found.lost, found.tip, found.older)


def test_a_file_that_was_rewritten_since_leaves_what_the_repair_did(run, tmp_path, source):
    lose(tmp_path / "store.db", SESSION, -1)
    with contextlib.closing(open_store(tmp_path / "store.db")) as store:
        left = store.find_session(SESSION).tip
    source.write_bytes(dump(user("u0", None, "another question", 0, sessionId=SESSION), *lines()[1:]))

    for _ in range(2):
        assert 0 == run(f"import {source.parent} --verify")[0]
        with contextlib.closing(open_store(tmp_path / "store.db")) as store:
            assert (False, (left,)) == (store.find_session(SESSION).lost, store.find_session(SESSION).older)
    assert "another question" in run("materialize {} --stop root")[1]


@pytest.mark.parametrize("place", [0, 3])
def test_a_tail_that_the_file_has_gone_on_from_is_no_older_version(run, tmp_path, source, place):
    lose(tmp_path / "store.db", SESSION, place)
    with source.open("ab") as file:
        file.write(dump(user("u9", f"a{TURNS - 1}", "one more", 900, sessionId=SESSION)))

    assert 0 == run(f"import {source.parent}")[0]

    with contextlib.closing(open_store(tmp_path / "store.db")) as store:
        assert (False, ()) == (store.find_session(SESSION).lost, store.find_session(SESSION).older)


def test_all_commits_but_the_newest_are_brought_back(run, tmp_path, source):
    before = run("materialize {} --stop root")
    with contextlib.closing(open_store(tmp_path / "store.db")) as store:
        length = len(store.chain(store.find_session(SESSION).tip))
        tip = store.find_session(SESSION).tip
    lose(tmp_path / "store.db", SESSION, *range(length - 1))
    with contextlib.closing(open_store(tmp_path / "store.db")) as store, pytest.raises(Corrupt, match="lost"):
        store.chain(tip)

    run(f"import {source.parent}")

    assert before == run("materialize {} --stop root")
    with contextlib.closing(open_store(tmp_path / "store.db")) as store:
        assert length == len(store.chain(tip))


@pytest.mark.parametrize("places", [(-1,), (-2, -1), (0, 1), (1, 2)])
def test_a_session_of_ones_own_is_made_whole_when_its_log_goes_on(tmp_path, places):
    """Its log has every line, and is read from the first on; an import is not needed."""
    log, path = tmp_path / "log", tmp_path / "store.db"
    with harken.open(path) as repo, repo.session(log, session_id="s") as session:
        talk(session, range(4))
    lose(path, "s", *places)
    with harken.open(path) as repo, pytest.raises(Corrupt, match="lost in part"):
        repo.materialize("s")

    with harken.open(path) as repo, repo.session(log, session_id="s") as session:
        talk(session, range(4, 5))

    with harken.open(path) as repo:
        assert log.read_bytes() == repo.materialize("s", stop="root").bytes
        shown = {commit.id for commit in repo.family().commits}
        assert {link.id for link in repo.store.walk(repo.store.find_session("s").tip)} <= shown


def talk(session, turns):
    for turn in turns:
        session.log_transcript_entry("a1", {"role": "user", "content": f"question {turn}"})
        session.log_transcript_entry("a1", {"role": "assistant", "content": f"answer {turn}"})


def test_a_wrong_name_is_not_found_while_a_commit_is_lost(run, tmp_path):
    lose(tmp_path / "store.db", SESSION, 2)

    assert 3 == run("materialize nothing-of-that-name")[0]


@pytest.mark.parametrize("kept", [2, 1, 0])
def test_a_tracker_says_that_a_repair_did_not_find_what_it_stands_on(tmp_path, kept):
    """What it is fed then is kept behind the last that is left, and the session goes on saying that a part is lost."""
    path, told = tmp_path / "store.db", []
    with harken.open(path) as repo:
        tracker = repo.track(session_id="s", on_warning=told.append)
        for n in range(3):
            tracker.feed([Prompt(content=f"question {n}"), Response(content=f"answer {n}")])
        stood, chain = tracker.current, [each.id for each in repo.history("s")][::-1]
        lose(path, "s", *range(kept, 3))

        for n in (3, 4):
            tracker.feed([Prompt(content=f"question {n}"), Response(content=f"answer {n}")])

        assert 1 == len(told)
        assert stood in told[0]
        assert ["question 3", "answer 3"] == [event.content for event in repo.delta(tracker.tip.parent)]
        assert chain[:kept] == [each.id for each in repo.history(tracker.current)][::-1][:-2]
        assert repo.store.find_session("s").lost
        with pytest.raises(Corrupt, match="lost in part"):
            repo.materialize("s")
