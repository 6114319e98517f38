"""What a fork or a resume has copied is one message, and the sessions that have it are known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import Session
from harken.capture.claude_agent_sdk.sources import ClaudeConversation
from harken.index import StoreIndex
from harken.index.carried import Continuations
from harken.repo import Repo
from support.claude_lines import assistant, call, dump, result, user
from support.gemini_lines import SESSION as GEMINI_SESSION
from support.gemini_lines import GeminiSession, documents
from support.indexes import digest, found
from support.opencode_database import OpenCodeDatabase, text, tool
from support.pi_lines import FILE, PiSession
from support.pi_lines import SESSION as PI_SESSION
from support.pi_lines import call as pi_call
from support.pi_lines import line as pi_line
from support.rollouts import Rollout, said
from support.rollouts import message as codex_message

FIRST, SECOND = "019b88e5-0000-7b90-8953-38fce393c653", "019b88e5-ffff-7b90-8953-38fce393c653"

CALLED = {"name": "shell", "arguments": "{}", "call_id": "c1"}


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with harken.open(tmp_path / "store.db") as repo:
        yield repo


def take_in(repo: Repo, path: Path, data: bytes) -> None:
    path.write_bytes(data)
    assert "failed" not in [one.status for one in repo.import_sessions([path])]
    repo.index.catch_up()


def copied(repo: Repo) -> list[tuple[Any, ...]]:
    """Role, session of the message and session of the copy, of every copy but those of runtimes' notices."""
    return sorted(
        repo.index.query(
            "SELECT m.role, a.session, b.session FROM copies JOIN messages m ON m.n = message"
            " JOIN sessions a ON a.n = m.session JOIN sessions b ON b.n = copies.session"
        )
    )


def claude(session: str, *more: dict[str, Any]) -> bytes:
    records = [user("u0", None, "where is the walrus"), assistant("a0", "u0", "in the harbour", "m0", 1), *more]
    return dump(*(record | {"sessionId": session} for record in records))


class TestClaudeCode:
    def test_a_fork_that_keeps_the_ids(self, repo: Repo, tmp_path: Path) -> None:
        take_in(repo, tmp_path / "one.jsonl", claude("one"))
        take_in(repo, tmp_path / "two.jsonl", claude("two", user("u1", "a0", "and the otter", 2)))

        assert [("human", "u0")] == found(repo.index, "walrus")
        assert [("assistant", "one", "two"), ("human", "one", "two")] == copied(repo)
        assert [("human", "u1")] == found(repo.index, "otter")

    def test_two_sessions_that_call_different_things_alike(self, repo: Repo, tmp_path: Path) -> None:
        take_in(repo, tmp_path / "one.jsonl", claude("one"))
        take_in(repo, tmp_path / "two.jsonl", claude("two").replace(b"walrus", b"weasel"))

        assert [("human", "u0")] == found(repo.index, "walrus")
        assert [("human", "u0")] == found(repo.index, "weasel")


class TestCaptured:
    @pytest.mark.parametrize("first", ["log", "file"])
    def test_a_file_beside_the_log_that_it_was_captured_in(self, repo: Repo, tmp_path: Path, first: str) -> None:
        file, log = tmp_path / "one.jsonl", tmp_path / "log.jsonl"
        used = assistant("a1", "a0", [call("heron", "Read")], "m1", 2)
        file.write_bytes(claude("one", used, result("r1", "a1", "heron", 3)))
        with Session(log) as session:
            ClaudeConversation(session, file, "one").look(last=True)
        for path in (log, file) if first == "log" else (file, log):
            take_in(repo, path, path.read_bytes())

        assert [("human", "u0")] == found(repo.index, "walrus")
        assert [("result", "r1")] == found(repo.index, "heron")
        assert [("Read", 1)] == list(repo.index.query("SELECT tool, count(*) FROM calls GROUP BY tool"))

    def test_a_log_in_which_a_session_and_a_fork_of_it_were_captured(self, repo: Repo, tmp_path: Path) -> None:
        log, otter = tmp_path / "log.jsonl", user("u1", "a0", "and the otter", 2)
        with Session(log) as session:
            for name, more in (("one", ()), ("two", (otter,))):
                file = tmp_path / f"{name}.jsonl"
                file.write_bytes(claude(name, *more))
                ClaudeConversation(session, file, name).look(last=True)
        take_in(repo, log, log.read_bytes())

        hits = repo.search("walrus").hits
        assert [("human", "u0", "")] == [(hit.role, hit.message_id, hit.problem) for hit in hits]
        assert 1 == len(found(repo.index, "otter"))


class TestCodex:
    def thread(self, *more: str) -> Rollout:
        rollout = Rollout(id=FIRST)
        for words in ("where is the walrus", "go on", "go on", *more):
            rollout.event("user_message", message=words).user(words)
            rollout.item("message", **said("assistant", f"about {words}"))
        return rollout

    def fork(self, *more: str) -> bytes:
        """The thread's lines under a new head, at other times, and what was said behind them."""
        head = Rollout(id=SECOND, forked_from_id=FIRST)
        copy = [line.replace(b"2026-01-02", b"2026-01-03") for line in self.thread().lines]
        rest = Rollout(bare=True)
        for words in more:
            rest.event("user_message", message=words).user(words)
            rest.item("message", **said("assistant", f"again about {words}"))
        return b"".join(line + b"\n" for line in [*head.lines, *copy, *rest.lines])

    def test_a_fork_repeats_records_that_have_no_names(self, repo: Repo, tmp_path: Path) -> None:
        take_in(repo, tmp_path / f"rollout-2026-01-02T00-00-00-{FIRST}.jsonl", self.thread().data)
        take_in(repo, tmp_path / f"rollout-2026-01-03T00-00-00-{SECOND}.jsonl", self.fork("the otter"))

        assert 1 == len([role for role, _ in found(repo.index, "walrus") if role == "human"])
        assert 2 == len([role for role, _ in found(repo.index, '"go on"') if role == "human"])
        assert 3 == len([one for one in copied(repo) if one == ("human", FIRST, SECOND)])
        assert 1 == len([role for role, _ in found(repo.index, "otter") if role == "human"])

    def test_what_both_say_afterwards_is_said_twice(self, repo: Repo, tmp_path: Path) -> None:
        take_in(repo, tmp_path / f"rollout-2026-01-03T00-00-00-{SECOND}.jsonl", self.fork("the otter", "thank you"))
        take_in(
            repo, tmp_path / f"rollout-2026-01-02T00-00-00-{FIRST}.jsonl", self.thread("the otter", "thank you").data
        )

        assert 2 == len([role for role, _ in found(repo.index, '"thank you"') if role == "human"])

    def test_a_thread_that_grows_copies_nothing_of_itself(self, repo: Repo, tmp_path: Path) -> None:
        path = tmp_path / f"rollout-2026-01-02T00-00-00-{FIRST}.jsonl"
        for count in range(3):
            take_in(repo, path, self.thread(*["go on"] * count).data)

        assert 4 == len([role for role, _ in found(repo.index, '"go on"') if role == "human"])
        assert [] == copied(repo)

    def test_what_a_compaction_puts_back_is_no_prompt_of_a_person(self, repo: Repo, tmp_path: Path) -> None:
        rollout = Rollout(id=FIRST).turn("where is the walrus").turn("and the otter")
        kept = [said("user", "where is the walrus"), said("user", "a summary of everything")]
        rollout.compacted(*({"type": "message", **one} for one in kept)).turn("go on")
        take_in(repo, tmp_path / f"rollout-2026-01-02T00-00-00-{FIRST}.jsonl", rollout.data)

        assert [(3, 3)] == [
            tuple(row)
            for row in repo.sql("SELECT human, (SELECT count(*) FROM messages WHERE role = 'human') FROM sessions").rows
        ]
        assert ["human"] == [hit.role for hit in repo.search("walrus -answer").hits]
        assert ["system"] == [hit.role for hit in repo.search("everything").hits]


class TestAResume:
    @pytest.mark.parametrize("runtime", ["claude-code", "codex"])
    def test_is_the_same_conversation_in_whatever_runtime(self, repo: Repo, tmp_path: Path, runtime: str) -> None:
        more = [user("u1", "a0", "and the otter", 2), assistant("a1", "u1", "in the river", "m1", 3)]
        take_in(repo, tmp_path / "S.jsonl", claude("S", *more))
        ready = repo.resume("S", runtime, cwd=tmp_path, home=tmp_path / "home")
        list(repo.import_sessions([ready.path]))
        repo.index.catch_up()

        assert [("human", "u0")] == found(repo.index, "walrus")
        assert [("assistant", "a1")] == found(repo.index, "river")
        assert 4 == len([one for one in copied(repo) if one[1:] == ("S", ready.session)])
        with StoreIndex(repo.store, None) as fresh:
            fresh.catch_up()
            assert digest(fresh) == digest(repo.index)

    @pytest.mark.parametrize("runtime", ["claude-code", "codex"])
    def test_has_words_that_were_said_twice_as_often(self, repo: Repo, tmp_path: Path, runtime: str) -> None:
        again = [
            line
            for turn in (1, 2)
            for line in (
                user(f"u{turn}", f"a{turn - 1}", "go on", 2 * turn),
                assistant(f"a{turn}", f"u{turn}", f"done {turn}", f"m{turn}", 2 * turn + 1),
            )
        ]
        take_in(repo, tmp_path / "S.jsonl", claude("S", *again))
        ready = repo.resume("S", runtime, cwd=tmp_path, home=tmp_path / "home")
        list(repo.import_sessions([ready.path]))
        repo.index.catch_up()

        rows = repo.index.query(
            "SELECT m.record FROM copies c JOIN messages m ON m.n = c.message WHERE m.role = 'human' ORDER BY 1"
        )
        assert ["u0", "u1", "u2"] == [record for (record,) in rows]

    @pytest.mark.parametrize(
        "runtimes", [("codex", "claude-code"), ("claude-code", "codex"), ("codex", "codex", "codex")]
    )
    def test_of_a_resume_has_nothing_a_second_time(self, repo: Repo, tmp_path: Path, runtimes: tuple[str, ...]) -> None:
        more = [assistant("a1", "a0", [call("c", "Read")], "m1", 2), result("r1", "a1", "c", 3)]
        take_in(repo, tmp_path / "S.jsonl", claude("S", *more))
        session = "S"
        for runtime in runtimes:
            ready = repo.resume(session, runtime, cwd=tmp_path, home=tmp_path / runtime)
            list(repo.import_sessions([ready.path]))
            session = ready.session

        assert [(1,)] == [tuple(row) for row in repo.sql("SELECT count(*) FROM calls").rows]
        assert [("Read", 1)] == [(group.key, group.spending.calls) for group in repo.usage()[0].groups("tool")]
        assert [("human", "u0")] == found(repo.index, "walrus")

    def test_reads_what_was_said_before_once_however_many_turns_it_has(self, repo, tmp_path, monkeypatch) -> None:
        turns = [
            line
            for turn in range(1, 9)
            for line in (
                user(f"u{turn}", f"a{turn - 1}", f"turn {turn}", 2 * turn),
                assistant(f"a{turn}", f"u{turn}", f"done {turn}", f"m{turn}", 2 * turn + 1),
            )
        ]
        take_in(repo, tmp_path / "S.jsonl", claude("S", *turns))
        ready = repo.resume("S", "codex", cwd=tmp_path, home=tmp_path / "home")
        list(repo.import_sessions([ready.path]))
        read, reading = [], Continuations._read
        monkeypatch.setattr(Continuations, "_read", lambda *given: read.append(given[1]) or reading(*given))

        with StoreIndex(repo.store, None) as fresh:
            fresh.catch_up()

        assert [ready.session] == read

    @pytest.mark.parametrize("runtime", ["claude-code", "codex"])
    def test_is_found_under_the_session_that_is_asked_for(self, repo: Repo, tmp_path: Path, runtime: str) -> None:
        take_in(repo, tmp_path / "S.jsonl", claude("S").replace(b'"/x"', b'"/home/me/shop"'))
        (tmp_path / "zoo").mkdir()
        ready = repo.resume("S", runtime, cwd=tmp_path / "zoo", home=tmp_path / "home")
        list(repo.import_sessions([ready.path]))

        (hit,) = repo.search("project:zoo harbour").hits

        assert (ready.session, runtime, str(tmp_path / "zoo")) == (hit.session, hit.runtime, hit.project)
        assert (("S",), "in the harbour") == (hit.copies, hit.snippet.text)
        assert ready.session == repo.commit(hit.commit).session_id
        assert [ready.session] == [hit.session for hit in repo.search("-session:S role:assistant harbour").hits]
        assert ["S"] == [hit.session for hit in repo.search("-project:zoo role:assistant harbour").hits]
        assert ["S"] == [hit.session for hit in repo.search("runtime:claude-code project:shop harbour").hits]
        assert ["S"] == [hit.session for hit in repo.search("harbour").hits]

    def test_no_session_that_has_it_fits_all_that_is_asked_for(self, repo: Repo, tmp_path: Path) -> None:
        take_in(repo, tmp_path / "S.jsonl", claude("S").replace(b'"/x"', b'"/home/me/shop"'))
        ready = repo.resume("S", "codex", cwd=tmp_path, home=tmp_path / "home")
        list(repo.import_sessions([ready.path]))

        assert [] == repo.search("project:shop runtime:codex harbour").hits


def went_on(path: Path, runtime: str, *words: str) -> None:
    """What is asked in a session of Claude Code or Codex behind what was carried over into it, each answered alike."""
    with path.open("ab") as file:
        for number, said_here in enumerate(words):
            if runtime == "claude-code":
                asked, answered = f"{path.stem}-u{number}", f"{path.stem}-a{number}"
                file.write(dump(user(asked, None, said_here, 90), assistant(answered, asked, "so it is", answered, 91)))
            else:
                asked_here = Rollout(bare=True).event("user_message", message=said_here).user(said_here)
                file.write(asked_here.model("so it is").data)


class TestAResumeThatWentOn:
    """From another runtime into this one, where more was said, and then on in a session of the same runtime."""

    @pytest.mark.parametrize("words", [("and the otter", "and the seal"), ("go on", "go on")])
    @pytest.mark.parametrize("runtime", ["claude-code", "codex"])
    def test_keeps_its_own_words_when_it_is_resumed(
        self, repo: Repo, tmp_path: Path, runtime: str, words: tuple[str, ...]
    ) -> None:
        source = GeminiSession(started=False).user("where is the walrus").model("in the harbour")
        take_in(repo, tmp_path / f"session-2026-01-02T00-00-{GEMINI_SESSION[:8]}.jsonl", source.data)
        asked = "SELECT role, count(*) FROM messages WHERE role != 'title' GROUP BY role ORDER BY role"
        session = GEMINI_SESSION
        for turn in (1, 2, 3):
            ready = repo.resume(session, runtime, cwd=tmp_path, home=tmp_path / f"home-{turn}")
            list(repo.import_sessions([ready.path]))
            went_on(Path(ready.path), runtime, *words)
            list(repo.import_sessions([ready.path]))
            session = ready.session

            counted = {tuple(row) for row in repo.sql(asked).rows}
            assert {("assistant", 1 + 2 * turn), ("human", 1 + 2 * turn)} == counted

    def test_of_codex_has_what_was_said_before_once_however_often_it_is_resumed(
        self, repo: Repo, tmp_path: Path
    ) -> None:
        first = Rollout(id=FIRST).turn("where is the walrus", ("response_item", {"type": "function_call", **CALLED}))
        take_in(repo, tmp_path / f"rollout-2026-01-02T00-00-00-{FIRST}.jsonl", first.data)
        asked = "SELECT (SELECT count(*) FROM calls), (SELECT count(*) FROM messages WHERE role IN ('human', 'call'))"
        session = FIRST
        for turn in (1, 2, 3):
            ready = repo.resume(session, "codex", cwd=tmp_path, home=tmp_path / f"home-{turn}")
            went_on(Path(ready.path), "codex", "go on")
            list(repo.import_sessions([ready.path]))
            session = ready.session

            assert [(1, 2 + turn)] == [tuple(row) for row in repo.sql(asked).rows]


def test_prompts_that_a_compaction_of_codex_repeats_stay_one_message_each_over_two_resumes(
    repo: Repo, tmp_path: Path
) -> None:
    asked = ["where is the walrus", "and the otter"]
    first = Rollout(id=FIRST).turn(asked[0]).turn(asked[1])
    first.compacted(*(codex_message("user", text) for text in asked))
    take_in(repo, tmp_path / f"rollout-2026-01-02T00-00-00-{FIRST}.jsonl", first.turn("and the seal").data)
    count = "SELECT count(*) FROM messages WHERE role = 'human'"
    expected = [tuple(row) for row in repo.sql(count).rows]
    session = FIRST
    for runtime in ("codex", "claude-code"):
        ready = repo.resume(session, runtime, cwd=tmp_path, home=tmp_path / runtime)
        list(repo.import_sessions([ready.path]))
        session = ready.session

        assert expected == [tuple(row) for row in repo.sql(count).rows], runtime


def forked(data: bytes, session: str, fork: str) -> bytes:
    """The file as a program writes it that copies a session: what Harken noted about itself is gone."""
    lines = []
    for record in map(json.loads, data.splitlines()):
        if record.pop("harken_origin", None) is not None and record["type"] == "harken-origin":
            continue
        if record["type"] == "session_meta":
            record["payload"].pop("harken_origin")
        line = json.dumps(record, separators=(",", ":")).replace(session, fork)
        lines.append(line.replace('"originator"', f'"forked_from_id":"{session}","originator"'))
    return "".join(f"{line}\n" for line in lines).encode()


class TestAForkOfAResume:
    """What was carried to another runtime and forked there was said by the first of the three."""

    MORE = (
        assistant("a1", "a0", [call("c", "Read")], "m1", 2),
        result("r1", "a1", "c", 3),
        user("u2", "r1", "go on", 4),
    )

    @pytest.mark.parametrize("runtime", ["codex", "pi", "qwen-code"])
    @pytest.mark.parametrize("order", [1, -1], ids=["the resume first", "the fork first"])
    def test_has_nothing_a_second_time(self, repo: Repo, tmp_path: Path, runtime: str, order: int) -> None:
        take_in(repo, tmp_path / "S.jsonl", claude("S", *self.MORE))
        ready = repo.resume("S", runtime, cwd=tmp_path, home=tmp_path / "home")
        path = Path(ready.path)
        fork = ready.session[:-4] + "ffff"
        other = path.with_name(path.name.replace(ready.session, fork))
        other.write_bytes(forked(path.read_bytes(), ready.session, fork))
        for each in (path, other)[::order]:
            assert "failed" not in [one.status for one in repo.import_sessions([each])]
            repo.index.catch_up()

        assert [(1,)] == [tuple(row) for row in repo.sql("SELECT count(*) FROM calls").rows]
        assert [("Read", 1)] == [(group.key, group.spending.calls) for group in repo.usage()[0].groups("tool")]
        assert [("human", "u0")] == found(repo.index, "walrus")
        assert [("human", "u2")] == [one for one in found(repo.index, "go on") if one[0] == "human"]
        for session in (ready.session, fork):
            assert 5 == len([one for one in copied(repo) if one[1:] == ("S", session)])
        with StoreIndex(repo.store, None) as fresh:
            fresh.catch_up()
            assert digest(fresh) == digest(repo.index)


def counted(repo: Repo) -> tuple[tuple[Any, ...], Any]:
    """Messages, calls and tokens in the index; tokens and calls by tool in the total of all sessions."""
    asked = (
        "SELECT (SELECT count(*) FROM messages WHERE role != 'title'), (SELECT count(*) FROM calls),"
        " (SELECT sum(input + output) FROM usage WHERE counted)"
    )
    [found] = repo.sql(asked).rows
    total = list(repo.stats())[-1].figures
    return tuple(found), (total.usage, total.tools)


class TestAResumeInAnotherStore:
    """The file says what it goes on from: a store that was not there when it was written knows no more."""

    @pytest.mark.parametrize("target", ["claude-code", "codex", "gemini-cli", "opencode", "pi", "qwen-code"])
    def test_what_was_carried_over_stands_once(self, repo: Repo, tmp_path: Path, target: str) -> None:
        path = tmp_path / "S.jsonl"
        take_in(repo, path, claude("S", assistant("a1", "a0", [call("c1")], "m1", 2), result("u1", "a1", "c1", 3)))
        home = tmp_path / (".gemini" if target == "gemini-cli" else "home")
        ready = repo.resume("S", target, cwd=tmp_path, home=home)
        with harken.open(tmp_path / "another.db") as other:
            list(other.import_sessions([path]))
            before = counted(other)
            list(other.import_sessions([ready.path]))
            assert min(before[0]) > 0
            assert before == counted(other)
            with StoreIndex(other.store, None) as fresh:
                fresh.catch_up()
                assert digest(fresh) == digest(other.index)


class TestAResumeInADatabase:
    @pytest.mark.parametrize("room", [0, 50_000])
    def test_what_was_carried_over_stands_once_however_much_room_the_rows_take(
        self, repo: Repo, tmp_path: Path, room: int
    ) -> None:
        take_in(repo, tmp_path / "one.jsonl", claude("one", user("u1", "a0", "and the otter", 2)))
        ready = repo.resume("one", "opencode", cwd=tmp_path, home=tmp_path / "home")
        database = OpenCodeDatabase(tmp_path / "opencode.db")
        database.take_in(Path(ready.path).read_bytes())
        database.execute("UPDATE session SET title = ?", "T" * room)
        list(repo.import_sessions([database.path]))
        repo.index.catch_up()
        for question in ("and the heron", "and the otter"):
            database.turn(ready.session, question, text(f"{question}: here."))
            list(repo.import_sessions([database.path]))
            repo.index.catch_up()
        database.close()

        query = "SELECT role, count(*) FROM messages WHERE role != 'title' GROUP BY role ORDER BY role"
        assert {"assistant": 3, "human": 4} == dict(tuple(row) for row in repo.sql(query).rows)
        with StoreIndex(repo.store, None) as fresh:
            fresh.catch_up()
            assert digest(fresh) == digest(repo.index)

    @pytest.mark.parametrize("source", ["claude-code", "opencode"])
    @pytest.mark.parametrize("target", ["opencode", "kilo"])
    def test_the_document_that_was_written_for_the_program_counts_nothing_again(
        self, repo: Repo, tmp_path: Path, source: str, target: str
    ) -> None:
        """Also beside the database that took it in, and in a store that knows nothing of the resume."""
        database = OpenCodeDatabase(tmp_path / "opencode.db")
        if source == "opencode":
            session = database.session()
            database.turn(session, "and the otter", tool("c1"), text("In the bay."))
            path = database.path
        else:
            session, path = "S", tmp_path / "S.jsonl"
            path.write_bytes(claude("S", assistant("a1", "a0", [call("c1")], "m1", 2), result("u1", "a1", "c1", 3)))
        list(repo.import_sessions([path]))
        before, spent = counted(repo)
        ready = repo.resume(session, target, cwd=tmp_path, home=tmp_path / "home")
        document = Path(ready.path)
        list(repo.import_sessions([document]))

        assert min(before) > 0
        assert (before, spent) == counted(repo)
        own = OpenCodeDatabase(tmp_path / "second" / f"{target}.db")
        own.take_in(document.read_bytes())
        list(repo.import_sessions([own.path]))
        own.close()
        database.close()
        assert (before, spent) == counted(repo)
        with harken.open(tmp_path / "another.db") as other:
            for one in (document, path):
                list(other.import_sessions([one]))
            assert spent == counted(other)[1]


class TestPiWithoutIds:
    """pi's first version gave its entries no ids; whoever opens such a file gives them some."""

    def old(self) -> PiSession:
        made = PiSession(version=None).user("where is the walrus").answer("I look.", pi_call("t1"))
        made.result("t1", "in the harbour").answer("In the harbour.", responseId="")
        return made.entry("compaction", summary="The walrus.", firstKeptEntryIndex=1, tokensBefore=9).user("go on")

    def rewritten(self) -> bytes:
        """As pi rewrites it: each entry has an id, the rest is the same."""
        header, *entries = [json.loads(line) for line in self.old().lines]
        made, parent = [pi_line(header | {"version": 3})], None
        for number, entry in enumerate(entries):
            if entry.pop("firstKeptEntryIndex", None) is not None:
                entry["firstKeptEntryId"] = f"{0:08x}"
            made.append(pi_line({**entry, "id": f"{number:08x}", "parentId": parent}))
            parent = f"{number:08x}"
        return b"".join(made)

    def figures(self, repo: Repo) -> tuple[Any, ...]:
        *_, told = repo.stats([PI_SESSION])
        queries = (
            "SELECT human, responses, calls, compactions, input, output FROM sessions",
            "SELECT role, count(*) FROM messages GROUP BY role ORDER BY role",
            "SELECT tool, failed FROM calls",
        )
        return told.figures, *([tuple(row) for row in repo.sql(query).rows] for query in queries)

    def test_a_file_that_pi_rewrote_with_ids_counts_once(self, repo: Repo, tmp_path: Path) -> None:
        path = tmp_path / FILE
        take_in(repo, path, self.old().data)
        before = self.figures(repo)
        more = pi_line(
            {"type": "message", "id": "new00001", "parentId": "00000005", "timestamp": "2026-11-15T14:00:00.000Z"}
            | {"message": {"role": "user", "content": "and the otter"}}
        )
        take_in(repo, path, self.rewritten())

        assert before == self.figures(repo)
        take_in(repo, path, self.rewritten() + more)
        assert before[0].prompts.human + 1 == self.figures(repo)[0].prompts.human
        assert [("human", "00000000")] == [one for one in found(repo.index, "walrus") if one[0] == "human"]
        assert [] == copied(repo)
        with StoreIndex(repo.store, None) as fresh:
            fresh.catch_up()
            assert digest(fresh) == digest(repo.index)

    def test_a_resume_in_pi_that_gives_ids_has_nothing_a_second_time(self, repo: Repo, tmp_path: Path) -> None:
        take_in(repo, tmp_path / FILE, self.old().data)
        ready = repo.resume(PI_SESSION, "pi", cwd=tmp_path, home=tmp_path / "home")
        list(repo.import_sessions([ready.path]))
        repo.index.catch_up()

        assert [(1,)] == [tuple(row) for row in repo.sql("SELECT count(*) FROM calls").rows]
        assert [("bash", 1)] == [(group.key, group.spending.calls) for group in repo.usage()[0].groups("tool")]
        assert 1 == len([role for role, _ in found(repo.index, "walrus") if role == "human"])


class TestGeminiCli:
    """Where it goes on with a document it writes the same messages into a file of lines."""

    @pytest.mark.parametrize("first", [".json", ".jsonl"])
    def test_a_session_in_both_shapes_has_each_message_once(self, repo: Repo, tmp_path: Path, first: str) -> None:
        lines = GeminiSession(started=False).user("where is the walrus").tools("I look.", "in the harbour")
        header, *records = [json.loads(line) for line in lines.lines]
        *messages, _ = list({record["id"]: record for record in records if "id" in record}.values())
        name = tmp_path / f"session-2026-01-02T00-00-{GEMINI_SESSION[:8]}.json"
        files = {".json": json.dumps(header | {"messages": messages}).encode()}
        grown = GeminiSession(started=False)
        for message in messages:
            grown.add(message)
        files[".jsonl"] = grown.changed(sessionId=GEMINI_SESSION).user("and the otter").data
        for suffix in sorted(files, key=lambda suffix: suffix != first):
            take_in(repo, name.with_suffix(suffix), files[suffix])

        query = "SELECT role, count(*) FROM messages WHERE role != 'title' GROUP BY role ORDER BY role"
        counted = {"assistant": 1, "call": 1, "human": 2, "result": 1}
        assert counted == dict(tuple(row) for row in repo.sql(query).rows)
        assert [(1,)] == [tuple(row) for row in repo.sql("SELECT count(*) FROM calls").rows]
        assert [] == copied(repo)

    def test_a_document_that_is_resumed_as_lines_has_all_once(self, repo: Repo, tmp_path: Path) -> None:
        take_in(repo, tmp_path / f"session-2026-01-02T00-00-{GEMINI_SESSION[:8]}.json", documents()[0])
        asked = (
            "SELECT (SELECT count(*) FROM messages WHERE role != 'title'), (SELECT count(*) FROM calls),"
            " (SELECT sum(input + output) FROM usage WHERE counted)"
        )
        [before] = repo.sql(asked).rows
        spent = [one.figures.usage for one in repo.stats()][-1]
        ready = repo.resume(GEMINI_SESSION, "gemini-cli", cwd=tmp_path, home=tmp_path / ".gemini")
        list(repo.import_sessions([ready.path]))

        [after] = repo.sql(asked).rows
        assert min(before) > 0
        assert before == after
        assert spent == [one.figures.usage for one in repo.stats()][-1]

    def test_messages_with_ids_of_another_hand_are_there_once_when_they_are_resumed(
        self, repo: Repo, tmp_path: Path
    ) -> None:
        """Ids like these may be other messages' elsewhere; in a session that Harken wrote they are those it went on
        from."""
        for session, words in ((FIRST, "where is the walrus"), (SECOND, "where is the heron")):
            said = GeminiSession(session, started=False).user(words, "m1").model("I look.", "m2")
            take_in(repo, tmp_path / f"session-2026-01-02T00-00-{session[:8]}-{words[-5:]}.jsonl", said.data)
        session = FIRST
        for turn in (1, 2):
            ready = repo.resume(session, "gemini-cli", cwd=tmp_path, home=tmp_path / f"home-{turn}" / ".gemini")
            more = GeminiSession(ready.session, started=False).user("go on", f"n{turn}").lines[1:]
            with Path(ready.path).open("ab") as file:
                file.write(b"".join(line + b"\n" for line in more))
            list(repo.import_sessions([ready.path]))
            repo.index.catch_up()
            session = ready.session

            asked = "SELECT role, count(*) FROM messages WHERE role != 'title' GROUP BY role"
            assert {"assistant": 2, "human": 2 + turn} == dict(tuple(row) for row in repo.sql(asked).rows)
        with StoreIndex(repo.store, None) as fresh:
            fresh.catch_up()
            assert digest(fresh) == digest(repo.index)
