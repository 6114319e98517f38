"""What a session carried over counts where it was made: totals grow by what is new, whoever continues what (#33)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harken import runtimes
from harken.context import Tracker, TrackerSettings
from harken.errors import BadRequest
from harken.events import Metric, Prompt, Response
from harken.events.figures import Figures
from harken.repo import Repo
from harken.repo.counting import SessionFigures, TotalFigures
from harken.runtimes.importer import Importer
from harken.runtimes.resume import Destination, Resumed
from harken.runtimes.resume import resume as resume_in
from harken.store import MemoryStore
from support.plain_count import objects
from support.recordings import named, session_files
from support.rollouts import Rollout

from .conftest import Run

NAMES = ("claude-code", "codex")
FILES = [path for name in NAMES for path in session_files(name)]
Record = dict[str, Any]
NEW = {"human": 1, "injected": 0, "tool_result": 0}


def take_in(repo: Repo, *paths: Path) -> list[str]:
    importer = Importer(repo.store, [runtimes.get(name) for name in runtimes.names()])
    return [result.session for result in importer.run(paths) if result.session]


def resume(repo: Repo, session: str, runtime: str, folder: Path) -> Resumed:
    row = repo.store.find_session(session)
    assert row is not None
    to = Destination(runtime=runtimes.get(runtime), cwd=folder, environ={"HOME": str(folder)}, home=folder / "home")
    return resume_in(repo.store, repo.store.get_commit(row.stand), to)


def total(repo: Repo) -> Record:
    """The sum over the whole store."""
    *_, last = repo.stats([])
    figures = last.figures if isinstance(last, TotalFigures) else last.with_agents or last.figures
    return counts(figures)


def counts(figures: Figures) -> Record:
    prompts, usage = figures.prompts, figures.usage
    return {
        "prompts": {name: getattr(prompts, name) for name in NEW},
        "injected": figures.injected,
        "tools": figures.tools,
        "usage": [usage.input, usage.output, usage.cache_read, usage.cache_write],
        "rest": [figures.responses, figures.errors, figures.compactions, figures.requests],
    }


def own(repo: Repo, session: str) -> SessionFigures:
    [found] = repo.stats([session])
    assert isinstance(found, SessionFigures)
    return found


@pytest.mark.parametrize("runtime", NAMES)
@pytest.mark.parametrize("path", FILES, ids=named)
def test_a_resume_adds_nothing_to_the_totals_and_a_turn_behind_it_adds_that_turn(
    repo: Repo, tmp_path: Path, path: Path, runtime: str
) -> None:
    """Every session at hand, in each of the four directions."""
    sessions = take_in(repo, path)
    for session in sessions[:1]:
        before = total(repo)
        try:
            done = resume(repo, session, runtime, tmp_path)
        except BadRequest:
            assert not said_by_anybody(repo, session), "only what says nothing cannot be continued"
            continue
        take_in(repo, Path(done.path))

        assert before == total(repo)

        with open(done.path, "ab") as file:
            file.writelines(turn(runtime, Path(done.path).read_bytes(), done.session))
        take_in(repo, Path(done.path))
        after = total(repo)

        assert {name: count + NEW[name] for name, count in before["prompts"].items()} == after["prompts"]
        assert (before["injected"], before["tools"]) == (after["injected"], after["tools"])
        assert [a + b for a, b in zip(before["rest"], (1, 0, 0, 1), strict=True)] == after["rest"]
        assert [(a or 0) + b for a, b in zip(before["usage"], (50, 5, 0, 0), strict=True)] == [
            count or 0 for count in after["usage"]
        ]


def said_by_anybody(repo: Repo, session: str) -> bool:
    return any(isinstance(event, Prompt | Response) for event in repo.conversation(session))


def turn(runtime: str, data: bytes, session: str) -> Iterator[bytes]:
    """What a program writes of a prompt and its answer: 50 tokens in, 5 out."""
    records = claude_turn(data, session) if runtime == "claude-code" else codex_turn(data)
    for number, record in enumerate(records):
        stamp = {"timestamp": f"2030-01-01T00:00:0{number}.000Z"}
        yield json.dumps(stamp | record).encode() + b"\n"


def claude_turn(data: bytes, session: str) -> Iterator[Record]:
    known = {"sessionId": session, "isSidechain": False, "cwd": "/", "version": "2.1.325"}
    parent = next((record["uuid"] for record in reversed(list(objects(data))) if record.get("uuid")), None)
    usage = {"input_tokens": 50, "output_tokens": 5, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    words = {"role": "user", "content": "And now?"}
    yield known | {"type": "user", "uuid": "new-1", "parentUuid": parent, "message": words}
    answer = {"id": "msg_new", "role": "assistant", "model": "m", "usage": usage}
    answer |= {"content": [{"type": "text", "text": "Now this."}]}
    yield known | {"type": "assistant", "uuid": "new-2", "parentUuid": "new-1", "requestId": "r", "message": answer}


def codex_turn(data: bytes) -> Iterator[Record]:
    """Codex goes on from the last total in the file."""
    names = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_input_tokens")
    last: Record = {}
    for record in objects(data):
        payload = record.get("payload")
        info = payload.get("info") if isinstance(payload, dict) and payload.get("type") == "token_count" else None
        last = (info or {}).get("total_token_usage") or last
    used = {"input_tokens": 50, "output_tokens": 5, "cached_input_tokens": 0, "cache_write_input_tokens": 0}
    sums = {name: (last.get(name) or 0) + used[name] for name in names}
    for role, kind, words in (("user", "input_text", "And now?"), ("assistant", "output_text", "Now this.")):
        item = {"type": "message", "role": role, "content": [{"type": kind, "text": words}]}
        yield {"type": "response_item", "payload": item}
    info = {"total_token_usage": sums, "last_token_usage": used}
    yield {"type": "event_msg", "payload": {"type": "token_count", "info": info}}


# -- small sessions ----------------------------------------------------------------------------------------------------

Lay = Callable[..., Path]


@pytest.fixture
def lay(tmp_path: Path, repo: Repo) -> Lay:
    """Write a Claude Code session and take it in."""

    def write(session: str, *records: Record) -> Path:
        path = tmp_path / f"{session}.jsonl"
        known = {"sessionId": session, "parentUuid": None, "isSidechain": False, "timestamp": "2026-01-01T00:00:00Z"}
        path.write_text("".join(json.dumps(known | record) + "\n" for record in records))
        take_in(repo, path)
        return path

    return write


def asked(uuid: str, words: str, **more: Any) -> Record:
    return {"type": "user", "uuid": uuid, "message": {"role": "user", "content": words}} | more


def answered(uuid: str, words: str, **more: Any) -> Record:
    body = {"id": f"msg-{uuid}", "model": "m", "role": "assistant", "content": [{"type": "text", "text": words}]}
    return {"type": "assistant", "uuid": uuid, "message": body} | more


def test_what_was_carried_over_is_shown_beside_the_sessions_own_figures(
    repo: Repo, run: Run, lay: Lay, tmp_path: Path
) -> None:
    lay("one", asked("u1", "hello"), answered("a1", "hi", parentUuid="u1"))
    done = resume(repo, "one", "codex", tmp_path)
    with open(done.path, "ab") as file:
        file.writelines(turn("codex", b"", done.session))
    take_in(repo, Path(done.path))

    (line,) = run("stats", done.session, "--json").json
    (original,) = run("stats", "one", "--json").json

    assert (2, 1) == (line["prompts"]["human"], line["carried"]["prompts"]["human"])
    assert original["carried"] is None


def test_a_summary_that_was_carried_over_is_no_human_prompt(repo: Repo, lay: Lay, tmp_path: Path) -> None:
    summary = "This session is being continued from a previous conversation that ran out of context. It was about snow."
    lay(
        "one",
        asked("u1", "hello"),
        {"type": "system", "subtype": "compact_boundary", "uuid": "b1"},
        asked("u2", summary, isCompactSummary=True, parentUuid="b1"),
        asked("u3", "go on", parentUuid="u2"),
        answered("a3", "so", parentUuid="u3"),
    )
    done = resume(repo, "one", "codex", tmp_path)
    take_in(repo, Path(done.path))

    figures = own(repo, done.session).figures

    assert (1, {"compact_summary": 1}) == (figures.prompts.human, figures.injected)


@pytest.mark.parametrize("order", [("first", "second"), ("second", "first")])
def test_what_a_program_copied_out_of_a_translation_is_carried_over_too(
    repo: Repo, tmp_path: Path, order: tuple[str, str]
) -> None:
    """Claude Code's forks keep the uuids that Harken made up."""
    (tmp_path / "rollout-1.jsonl").write_bytes(Rollout().turn("hello").data)
    (session,) = take_in(repo, tmp_path / "rollout-1.jsonl")
    before = total(repo)
    done = resume(repo, session, "claude-code", tmp_path)
    fork = tmp_path / "fork.jsonl"
    fork.write_bytes(Path(done.path).read_bytes().replace(done.session.encode(), b"fork"))
    paths = {"first": Path(done.path), "second": fork}
    for name in order:
        take_in(repo, paths[name])

    assert before == total(repo)


@pytest.mark.parametrize("runtime", NAMES)
def test_what_was_carried_over_is_unknown_to_another_store_and_not_zero(
    repo: Repo, lay: Lay, tmp_path: Path, runtime: str
) -> None:
    """Another store does not know who used what: the file that was written says that nobody counted."""
    (tmp_path / "rollout-1.jsonl").write_bytes(Rollout().turn("hello").data)
    take_in(repo, tmp_path / "rollout-1.jsonl")
    lay("one", asked("u1", "hello"), answered("a1", "hi", parentUuid="u1"))
    [session] = [row.session for row in repo.store.sessions() if row.runtime != runtime]
    elsewhere = Repo(MemoryStore())
    take_in(elsewhere, Path(resume(repo, session, runtime, tmp_path).path))
    sums = total(elsewhere)

    assert (1, [None] * 4) == (sums["prompts"]["human"], sums["usage"])
    assert 0 == sums["rest"][3], "no request is known"


def test_a_fork_of_the_sdk_has_new_uuids_and_names_the_old_ones(repo: Repo, lay: Lay) -> None:
    lay("one", asked("u1", "hello"), answered("a1", "hi"))
    before = total(repo)
    lay(
        "two",
        asked("v1", "hello", forkedFrom={"sessionId": "one", "messageUuid": "u1"}),
        answered("w1", "hi", forkedFrom={"sessionId": "one", "messageUuid": "a1"}),
        asked("v2", "and then?"),
    )

    assert before["prompts"] | {"human": 2} == total(repo)["prompts"]
    assert before["rest"][0] == total(repo)["rest"][0]


def test_what_a_codex_fork_copied_counts_once(repo: Repo, tmp_path: Path) -> None:
    old, new = (f"019b88e5-a2e4-7b90-8953-00000000000{digit}" for digit in "12")
    original = Rollout(id=old).turn("hello").turn("yes").turn("yes")
    fork = Rollout(id=new, forked_from_id=old)
    for line in original.lines:
        copy = json.loads(line) | {"timestamp": "2026-01-03T00:00:00.000Z"}
        fork.raw(json.dumps(copy).encode())
    fork.turn("no")
    for name, rollout in (("a", original), ("b", fork)):
        (tmp_path / f"rollout-{name}.jsonl").write_bytes(rollout.data)
        take_in(repo, tmp_path / f"rollout-{name}.jsonl")

    assert 4 == total(repo)["prompts"]["human"], "three, of which two say the same, and a new one"


def test_records_of_two_native_logs_are_not_one_because_both_have_a_msg_001(repo: Repo, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.jsonl").write_text(
            f'{{"event_type":"agent_created","message_id":"msg_001","agent_id":"agent_001","role":"root","name":"{name}",'
            '"timestamp":"2026-01-01T00:00:00Z"}\n'
            '{"event_type":"transcript_entry","message_id":"msg_002","agent_id":"agent_001","role":"user",'
            '"content":"hello"}\n'
            '{"event_type":"transcript_entry","message_id":"msg_003","agent_id":"agent_001","role":"assistant",'
            '"content":"hi","cause":"msg_002"}\n'
        )
        take_in(repo, tmp_path / f"{name}.jsonl")

    assert (2, 2) == (total(repo)["prompts"]["human"], total(repo)["rest"][0])


def test_a_chain_that_hangs_from_another_sessions_commits_has_carried_those_over(repo: Repo, lay: Lay) -> None:
    lay("one", asked("u1", "hello"), answered("a1", "hi"))
    before = total(repo)
    tracker = Tracker(repo, TrackerSettings(session_id="two", parent=repo.commit("one").id))
    used = Metric(api_id="x", output_tokens=5)
    tracker.feed([Prompt(content="more", time=1), Response(content="less", time=2), used])
    tracker.close()

    assert (2, 1) == (
        own(repo, "two").figures.prompts.human,
        total(repo)["prompts"]["human"] - before["prompts"]["human"],
    )
    carried = own(repo, "two").carried
    assert carried is not None
    assert 1 == carried.prompts.human


class TestTokensOfCodex:
    OLD, ONE, TWO = (f"019b88e5-a2e4-7b90-8953-00000000000{digit}" for digit in "123")

    def used(self, rollout: Rollout, total: int, last: int) -> Rollout:
        info = {
            "total_token_usage": {"input_tokens": 10 * total, "output_tokens": total},
            "last_token_usage": {"input_tokens": 10 * last, "output_tokens": last},
        }
        return rollout.event("token_count", info=info)

    def test_two_forks_that_used_as_much_stay_two(self, repo: Repo, tmp_path: Path) -> None:
        first = self.used(Rollout(id=self.OLD).turn("hello"), 7, 7)
        base = {"thread_id": self.OLD, "end_ordinal_exclusive": 9, "end_byte_offset": len(first.data)}
        forks = [
            self.used(Rollout(id=id, forked_from_id=self.OLD, history_base=base).turn("again"), 10, 3)
            for id in (self.ONE, self.TWO)
        ]
        for name, rollout in zip("abc", (first, *forks), strict=True):
            (tmp_path / f"rollout-{name}.jsonl").write_bytes(rollout.data)
            take_in(repo, tmp_path / f"rollout-{name}.jsonl")

        assert [130, 13] == total(repo)["usage"][:2]

    def test_what_a_compaction_left_behind_is_not_used_again(self, repo: Repo, tmp_path: Path) -> None:
        """Of the session alone as well: its file begins with a total of more than it tells of."""
        old = self.used(self.used(Rollout(id=self.OLD).turn("hello"), 7, 7).compacted().turn("so"), 10, 3)
        (tmp_path / "rollout-a.jsonl").write_bytes(old.data)
        take_in(repo, tmp_path / "rollout-a.jsonl")
        done = resume(repo, self.OLD, "codex", tmp_path)
        take_in(repo, Path(done.path))

        assert (3, 30) == (own(repo, done.session).figures.usage.output, own(repo, done.session).figures.usage.input)
        assert [100, 10] == total(repo)["usage"][:2]

    @pytest.mark.parametrize("words", [("Try again.", "Try again."), ("Try again.", "Something else.")])
    @pytest.mark.parametrize("used", [(3, 3), (3, 4)])
    def test_a_thread_that_is_continued_twice_was_continued_twice(
        self, repo: Repo, tmp_path: Path, words: tuple[str, str], used: tuple[int, int]
    ) -> None:
        """In the same words or others, with as many tokens or others."""
        self.lay(repo, tmp_path, "a", self.used(Rollout(id=self.OLD).turn("hello"), 7, 7))
        for text, more in zip(words, used, strict=True):
            done = resume(repo, self.OLD, "codex", tmp_path)
            self.go_on(Path(done.path), text, 7 + more, more)
            take_in(repo, Path(done.path))

        assert self.sums(3, 7 + sum(used)) == self.found(repo)

    @pytest.mark.parametrize("order", ["abc", "cba"])
    def test_two_forks_that_copied_and_went_on_in_the_same_words_stay_two(
        self, repo: Repo, tmp_path: Path, order: str
    ) -> None:
        old = self.used(Rollout(id=self.OLD).turn("hello"), 7, 7)
        files = {"a": old}
        for name, thread in (("b", self.ONE), ("c", self.TWO)):
            fork = Rollout(id=thread, forked_from_id=self.OLD)
            for line in old.lines:
                fork.raw(line)
            files[name] = self.used(fork.turn("again"), 10, 3)
        for name in order:
            self.lay(repo, tmp_path, name, files[name])

        assert self.sums(3, 13) == self.found(repo)

    def test_what_a_fork_copied_out_of_a_resumed_thread_counts_once(self, repo: Repo, tmp_path: Path) -> None:
        self.lay(repo, tmp_path, "a", self.used(Rollout(id=self.OLD).turn("hello"), 7, 7))
        done = resume(repo, self.OLD, "codex", tmp_path)
        self.go_on(Path(done.path), "again", 10, 3)
        take_in(repo, Path(done.path))
        fork = Rollout(id=self.TWO, forked_from_id=done.session)
        for line in Path(done.path).read_bytes().splitlines():
            fork.raw(line)
        self.lay(repo, tmp_path, "b", self.used(fork.turn("again"), 14, 4))

        assert self.sums(3, 14) == self.found(repo)

    def lay(self, repo: Repo, folder: Path, name: str, rollout: Rollout) -> None:
        (folder / f"rollout-{name}.jsonl").write_bytes(rollout.data)
        take_in(repo, folder / f"rollout-{name}.jsonl")

    def go_on(self, path: Path, text: str, total: int, last: int) -> None:
        more = self.used(Rollout(bare=True).user(text).model("Yes."), total, last)
        path.write_bytes(path.read_bytes() + more.data)

    def sums(self, turns: int, output: int) -> Record:
        return {"human": turns, "responses": turns, "requests": turns, "usage": [10 * output, output]}

    def found(self, repo: Repo) -> Record:
        sums = total(repo)
        responses, _, _, requests = sums["rest"]
        human = sums["prompts"]["human"]
        return {"human": human, "responses": responses, "requests": requests, "usage": sums["usage"][:2]}
