"""An import gives the same store contents whatever came first and in whatever steps it came (#35, #32)."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import harken
from harken import Repo, runtimes
from harken.context import chains
from harken.runtimes import importer
from harken.runtimes.files import walk
from harken.runtimes.importer import Importer
from harken.store import SessionRow
from support.rollouts import Rollout
from support.sessions import ClaudeSession, conversation

PARENT, CHILD, GRANDCHILD, FORK, POINTER = (f"019b88e5-a2e4-7b90-8953-00000000000{n}" for n in range(1, 6))


def claude_files() -> dict[str, bytes]:
    """A session with sub-agents (named by a result, told by a side file, known by a prompt; in the file and beside it;
    one that starts another), and a copy of it that goes on by itself."""
    main = conversation("aaa", 1)
    main.call("Task", "done", agent="x1", prompt="one")
    inside = ClaudeSession("aaa", salt="inside", start=main.count)
    inside.prompt("look inside", isSidechain=True)
    inside.answer("here", isSidechain=True)
    main.call("Task", "found", prompt="look inside")
    main.lines[-1:-1] = inside.lines
    main.call("Agent", "read", prompt="by prompt alone")
    main.prompt("thanks")
    main.answer("welcome")
    first = ClaudeSession("aaa", agent="x1", salt="x1", start=10)
    first.prompt("one")
    first.call("Task", "deep", agent="x2", prompt="two")
    first.answer("done")
    nested = ClaudeSession("aaa", agent="x2", salt="x2", start=20)
    nested.prompt("two")
    nested.answer("deep")
    prompted = ClaudeSession("aaa", agent="x3", salt="x3", start=20)
    prompted.prompt("by prompt alone")
    prompted.answer("read")
    sided = ClaudeSession("aaa", agent="x4", salt="x4", start=20)
    sided.prompt("nobody tells who asked")
    sided.answer("done")
    more = ClaudeSession("bbb", salt="more", start=50)
    more.prompt("and now?")
    more.answer("something else")
    return {
        "aaa.jsonl": main.data,
        "aaa/subagents/agent-x1.jsonl": first.data,
        "aaa/subagents/agent-x2.jsonl": nested.data,
        "aaa/subagents/agent-x3.jsonl": prompted.data,
        "aaa/subagents/agent-x4.jsonl": sided.data,
        "aaa/subagents/agent-x4.meta.json": b'{"toolUseId": "toolu_meta"}',
        "bbb.jsonl": b"".join(main.lines[:9]).replace(b'"aaa"', b'"bbb"') + more.data,
    }


def claude_files_that_begin_inside() -> dict[str, bytes]:
    """Sessions whose first records are those of an agent inside them: one that says nothing more, and one whose first
    records are kept for good before the session's own come."""
    found = {}
    for session, prompts in (("ddd", 1), ("eee", 3)):
        inside = ClaudeSession(session, agent=f"{session}1", salt=f"{session}1")
        for number in range(prompts):
            inside.prompt(f"look around {number}")
            inside.answer(f"seen {number}")
        main = conversation(session, 2, start=30)
        found[f"{session}.jsonl"] = inside.data + main.data
    return found


def codex_files() -> dict[str, bytes]:
    """A thread that starts another, which starts a third; a fork that copies it, and one that points at it."""
    base = Rollout(id=PARENT).turn("one")
    position = {"thread_id": PARENT, "end_ordinal_exclusive": 7, "end_byte_offset": len(base.data)}
    copied = base.lines[1:]
    base.turn("go").call("c7", "spawn_agent")
    base.event("collab_agent_spawn_end", call_id="c7", new_thread_id=CHILD).output("c7").turn("two")
    child = Rollout(id=CHILD, parent_thread_id=PARENT, source={"subagent": "x"}).turn("look").call("c8", "spawn_agent")
    child.event("collab_agent_spawn_end", call_id="c8", new_thread_id=GRANDCHILD).output("c8").turn("there")
    grandchild = Rollout(id=GRANDCHILD, parent_thread_id=CHILD, source={"subagent": "y"}).turn("deeper")
    fork = Rollout(id=FORK, forked_from_id=PARENT)
    fork.lines += copied
    fork.turn("another way")
    pointer = Rollout(id=POINTER, forked_from_id=PARENT, history_base=position).turn("three")
    threads = {PARENT: base, CHILD: child, GRANDCHILD: grandchild, FORK: fork, POINTER: pointer}
    return {f"rollout-2026-01-02T00-00-00-{thread}.jsonl": each.data for thread, each in threads.items()}


def native_files() -> dict[str, bytes]:
    """A log in which an agent makes an agent that makes another."""

    def call(name: str) -> list[Any]:
        return [{"id": name, "type": "function", "function": {"name": "task", "arguments": "{}"}}]

    def entry(agent: str, message: str, role: str, **more: Any) -> dict[str, Any]:
        head = {"event_type": "transcript_entry", "agent_id": agent, "message_id": message, "role": role}
        return head | {"content": "c", "timestamp": "2026-01-02T00:00:00.000000Z"} | more

    def created(agent: str, message: str, **more: Any) -> dict[str, Any]:
        head = {
            "event_type": "agent_created",
            "agent_id": agent,
            "message_id": message,
            "name": more.pop("name", agent),
        }
        return head | {"timestamp": "2026-01-02T00:00:00.000000Z"} | more

    lines = [
        created("agent_001", "msg_001", name="Jack"),
        entry("agent_001", "msg_002", "user"),
        entry("agent_001", "msg_003", "assistant", tool_calls=call("c1")),
        created("agent_002", "msg_004", cause="msg_003", parent="agent_001"),
        entry("agent_002", "msg_005", "user", cause="msg_003"),
        entry("agent_002", "msg_006", "assistant", tool_calls=call("c2")),
        created("agent_003", "msg_007", cause="msg_006", parent="agent_002"),
        entry("agent_003", "msg_008", "user", cause="msg_006"),
        entry("agent_003", "msg_009", "assistant"),
        entry("agent_002", "msg_010", "tool", tool_call_id="c2", cause="msg_009"),
        entry("agent_002", "msg_011", "assistant"),
        entry("agent_001", "msg_012", "tool", tool_call_id="c1", cause="msg_011"),
        entry("agent_001", "msg_013", "assistant"),
        entry("agent_001", "msg_014", "user"),
        entry("agent_001", "msg_015", "assistant"),
    ]
    return {"log.jsonl": b"".join(json.dumps(line).encode() + b"\n" for line in lines)}


FILES = claude_files() | codex_files() | native_files()
TRANSCRIPTS = sorted(name for name in FILES if name.endswith(".jsonl"))


def write(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def bring_in(repo: Repo, paths: list[Path], **options: Any) -> None:
    known = [runtimes.get(name) for name in runtimes.names()]
    for outcome in Importer(repo.store, known, **options).run(paths):
        assert "failed" != outcome.status, outcome


def contents(repo: Repo) -> list[tuple[SessionRow, dict[str, Any], list[tuple[Any, ...]]]]:
    """Every session: its row and what an import remembers of it without when and where, and its chain's commits."""

    def chain(tip: str) -> list[tuple[Any, ...]]:
        assert not any(shown.superseded for shown in repo.log(tip)), "#32: what a tip stands on is not superseded"
        return [(each.id, each.spawned_from, each.forked_from, each.principal) for each in repo.store.chain(tip)]

    def known(row: SessionRow) -> dict[str, Any]:
        drop = {"stamp": chains.UNREAD, "read_at": 0, "side_files": {}}
        return {Path(path).name: msgspec.structs.replace(m, **drop) for path, m in chains.recall(row).items()}

    return [
        (msgspec.structs.replace(row, version=0, source="", state=b""), known(row), chain(row.tip))
        for row in sorted(repo.sessions(), key=lambda row: row.session)
    ]


@cache
def expected() -> Any:
    """What one import of everything gives."""
    with tempfile.TemporaryDirectory() as folder, harken.open("memory:") as repo:
        for name, data in FILES.items():
            write(Path(folder), name, data)
        bring_in(repo, [path for path in walk(Path(folder)) if isinstance(path, Path)])
        return contents(repo)


@pytest.fixture
def everything(tmp_path: Path) -> Iterator[Repo]:
    for name, data in FILES.items():
        write(tmp_path / "files", name, data)
    with harken.open(tmp_path / "store.db") as repo:
        bring_in(repo, [tmp_path / "files" / name for name in reversed(TRANSCRIPTS)])
        yield repo


def origin(repo: Repo, session: str) -> Any:
    return repo.store.chain(repo.show(session).id)[-1]


def steps() -> st.SearchStrategy[list[tuple[str, float]]]:
    """Files in any order, each as often as it grows: how much of it is there then. All of each comes at last."""
    grown = st.lists(st.tuples(st.sampled_from(TRANSCRIPTS), st.floats(0.02, 1)), max_size=8)
    return st.tuples(grown, st.permutations(TRANSCRIPTS)).map(
        lambda both: [*both[0], *((name, 1.0) for name in both[1])]
    )


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=steps(), together=st.booleans(), late=st.integers(0, 15))
def test_any_order_and_any_steps_give_the_same_sessions(
    order: list[tuple[str, float]], together: bool, late: int
) -> None:
    """`late` is the step at which the side file comes; at the last, all that it belongs to is there already."""
    with tempfile.TemporaryDirectory() as folder, harken.open("memory:") as repo:
        files, there = Path(folder, "files"), dict.fromkeys(TRANSCRIPTS, 0)
        side = "aaa/subagents/agent-x4.meta.json"
        for step, (name, share) in enumerate([*order, order[-1]]):
            if step == min(late, len(order)):
                write(files, side, FILES[side])
            there[name] = max(there[name], round(len(FILES[name]) * share))
            path = write(files, name, FILES[name][: there[name]])
            if not together:
                bring_in(repo, [path])
        bring_in(repo, [path for path in walk(files) if isinstance(path, Path)])

        assert expected() == contents(repo)


@pytest.mark.parametrize("session", ["ddd", "eee"])
@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("others", [(), ("other",), ("agent",), ("other", "agent")])
def test_a_session_that_begins_with_an_agents_records_is_no_agent_of_itself(
    tmp_path: Path, session: str, verify: bool, others: tuple[str, ...]
) -> None:
    """Whether or not other files of the session, or of the agent, are there already. Grown line by line it is what it
    is when it is imported at once; only the principal of the first commits stays that of the agent, as a commit that is
    there is not written again."""
    data = claude_files_that_begin_inside()[f"{session}.jsonl"]
    lines = data.splitlines(keepends=True)
    inside = ClaudeSession(session, agent=f"{session}1", salt="agent", start=20)
    inside.prompt("once more")
    files = {"other": conversation(session, 1, salt="other").data, "agent": inside.data}
    kept = []
    for counts in (range(1, len(lines) + 1), [len(lines)]):
        with harken.open(tmp_path / f"{len(counts)}.db") as repo:
            for other in others:
                bring_in(repo, [write(tmp_path / str(len(counts)), f"{other}.jsonl", files[other])])
            for count in counts:
                path = write(tmp_path / str(len(counts)), f"{session}.jsonl", b"".join(lines[:count]))
                bring_in(repo, [path], verify=verify)
            assert repo.store.fsck(read_data=True).ok
            kept.append([(row, known, [each[:3] for each in chain]) for row, known, chain in contents(repo)])
    grown, fresh = kept

    assert {session: ("", ""), f"{session}/{session}1": (session, f"{session}1")} == {
        row.session: (row.parent, row.agent) for row, _, _ in grown
    }
    assert fresh == grown


def test_two_jobs_give_the_same_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importer, "WORTH_WORKERS", 1)
    for name, data in FILES.items():
        write(tmp_path / "files", name, data)
    with harken.open(tmp_path / "store.db") as repo:
        bring_in(repo, [tmp_path / "files" / name for name in reversed(TRANSCRIPTS)], jobs=2)

        assert expected() == contents(repo)


def test_two_importers_at_once_link_what_each_of_them_kept(tmp_path: Path) -> None:
    """One begins before the other has kept anything, and ends after it."""
    for name, data in FILES.items():
        write(tmp_path / "files", name, data)
    known = [runtimes.get(name) for name in runtimes.names()]
    halves = [[tmp_path / "files" / name for name in TRANSCRIPTS[start::2]] for start in (0, 1)]
    with harken.open(tmp_path / "store.db") as repo:
        slow, fast = (Importer(repo.store, known).run(half) for half in halves)
        next(slow)
        assert list(fast)
        assert list(slow)

        assert expected() == contents(repo)


def test_every_link_of_a_change_is_told_in_the_feed(tmp_path: Path) -> None:
    with harken.open(tmp_path / "store.db") as repo:
        bring_in(repo, [write(tmp_path, f"rollout-1-{CHILD}.jsonl", codex_files()[_rollout(CHILD)])])
        first, before = origin(repo, CHILD), repo.store.last_change()
        assert {"session": PARENT, "call_id": "", "inherits": False} == first.spawned_from

        bring_in(repo, [write(tmp_path, f"rollout-1-{PARENT}.jsonl", codex_files()[_rollout(PARENT)])])

        assert {"session": PARENT, "call_id": "c7", "inherits": False} == origin(repo, CHILD).spawned_from
        assert [first.id] == [each.subject for each in repo.store.since(before) if each.kind == "link"]
        assert repo.store.fsck(read_data=True).ok


def _rollout(thread: str) -> str:
    return f"rollout-2026-01-02T00-00-00-{thread}.jsonl"


class TestWhereSessionsComeFrom:
    """What the links are, not only that they are the same."""

    @pytest.mark.parametrize(
        ("agent", "parent", "call"),
        [
            ("aaa/x1", "aaa", "toolu_aaa_5"),
            ("aaa/x2", "aaa/x1", "toolu_x1_12"),
            ("aaa/x3", "aaa", "toolu_aaa_9"),
            ("aaa/x4", "aaa", "toolu_meta"),
            (CHILD, PARENT, "c7"),
            (GRANDCHILD, CHILD, "c8"),
        ],
    )
    def test_a_sub_agent_hangs_from_the_call_that_started_it(
        self, everything: Repo, agent: str, parent: str, call: str
    ) -> None:
        assert {"session": parent, "call_id": call, "inherits": False} == origin(everything, agent).spawned_from
        (row,) = [row for row in everything.sessions() if row.session == agent]
        assert parent == row.parent

    def test_an_agent_inside_a_file_is_found_by_its_prompt(self, everything: Repo) -> None:
        (row,) = [row for row in everything.sessions() if row.source.endswith("aaa.jsonl#" + row.agent)]

        assert {"session": "aaa", "call_id": "toolu_aaa_7", "inherits": False} == origin(
            everything, row.session
        ).spawned_from

    def test_an_agent_of_an_agent_hangs_from_it_in_a_native_log(self, everything: Repo) -> None:
        (session,) = [row.session for row in everything.sessions() if row.runtime == "harken" and not row.parent]

        found = {row.session: row.parent for row in everything.sessions() if row.parent.startswith(session)}

        assert {f"{session}/agent_002": session, f"{session}/agent_003": f"{session}/agent_002"} == found
        assert "c2" == origin(everything, f"{session}/agent_003").spawned_from["call_id"]

    @pytest.mark.parametrize(("session", "nested", "above"), [("aaa", "x2", "x1"), (PARENT, GRANDCHILD, CHILD)])
    def test_nested_agents_are_listed_and_drawn_below_their_own_parent(
        self, everything: Repo, session: str, nested: str, above: str
    ) -> None:
        (agent,) = [each for each in everything.agents(session) if each.agent == nested]
        family = everything.family(session)
        root = origin(everything, agent.session)

        assert above == agent.parent
        assert family.spawned[root.id] in {
            commit.id for commit in everything.history(f"{session}/{above}" if session == "aaa" else above)
        }

    def test_the_copy_goes_on_from_the_original_whatever_came_first(self, everything: Repo) -> None:
        assert "" == origin(everything, "aaa").forked_from
        assert origin(everything, "bbb").forked_from in {commit.id for commit in everything.history("aaa")}
        assert "" == origin(everything, PARENT).forked_from
        for fork in (FORK, POINTER):
            left = everything.store.get_commit(origin(everything, fork).forked_from)
            assert left.id in {commit.id for commit in everything.history(PARENT)}
            assert left.id != everything.show(PARENT).id, "not where the original ends now, but where it was left"

    def test_two_calls_with_one_prompt_prove_nothing(self, tmp_path: Path) -> None:
        main = conversation("aaa", 1)
        main.call("Task", "a", prompt="same")
        main.call("Task", "b", prompt="same")
        side = ClaudeSession("aaa", agent="x", start=20)
        side.prompt("same")
        with harken.open(tmp_path / "store.db") as repo:
            bring_in(repo, [write(tmp_path, "aaa.jsonl", main.data), write(tmp_path, "agent-x.jsonl", side.data)])

            assert "" == origin(repo, "aaa/x").spawned_from["call_id"]

    def test_of_several_originals_the_one_with_most_in_common_counts(self, tmp_path: Path) -> None:
        first = conversation("aaa", 4)
        second = ClaudeSession("bbb", salt="second", start=60)
        second.lines = [line.replace(b'"aaa"', b'"bbb"') for line in first.lines[:8]]
        second.prompt("another way")
        second.answer("taken")
        third = ClaudeSession("ccc", salt="third", start=90)
        third.lines = [line.replace(b'"bbb"', b'"ccc"') for line in second.lines]
        third.prompt("and a third")
        third.answer("taken too")
        files = {"aaa": first, "bbb": second, "ccc": third}
        with harken.open(tmp_path / "store.db") as repo:
            bring_in(repo, [write(tmp_path, f"{name}.jsonl", files[name].data) for name in ("ccc", "aaa", "bbb")])

            came_from = {name: origin(repo, name).forked_from for name in files}

            assert "" == came_from["aaa"]
            assert "aaa" == repo.store.get_commit(came_from["bbb"]).session_id
            assert "bbb" == repo.store.get_commit(came_from["ccc"]).session_id

    def test_a_relative_whose_bytes_are_gone_keeps_nobody_out(self, tmp_path: Path) -> None:
        original = conversation("aaa", 3)
        copy = original.data.replace(b'"aaa"', b'"bbb"')
        with harken.open(tmp_path / "store.db") as repo:
            bring_in(repo, [write(tmp_path, "aaa.jsonl", original.data)])
            with repo.store.write() as writer:
                for commit in repo.history("aaa"):
                    writer.evict(commit.artifact)
            bring_in(repo, [write(tmp_path, "bbb.jsonl", copy)])

            assert copy == repo.materialize("bbb", stop="root").bytes
            assert "" == origin(repo, "bbb").forked_from

    def test_agents_that_name_each_other_are_both_listed(self, tmp_path: Path) -> None:
        files = {"aaa.jsonl": conversation("aaa", 1).data}
        for one, other in (("x", "y"), ("y", "x")):
            side = ClaudeSession("aaa", agent=one, salt=one)
            side.prompt("go")
            side.call("Task", "done", agent=other, prompt="go")
            files[f"agent-{one}.jsonl"] = side.data
        with harken.open(tmp_path / "store.db") as repo:
            bring_in(repo, [write(tmp_path, name, data) for name, data in files.items()])

            assert {"aaa", "aaa/x", "aaa/y"} == {each.session for each in repo.agents("aaa")}
