"""Threads of Codex that come from other threads: sub-agents, and forks that only point at what they go on from."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import harken
from harken import runtimes
from harken.api.sessions import SessionsRequest, sessions
from harken.api.stats import StatsAnswer, StatsRequest, stats
from harken.events import Prompt, Response
from harken.formats import codex
from harken.runtimes.files import walk
from harken.runtimes.importer import Importer
from support.recordings import FOLDER
from support.rollouts import Rollout, texts_of

PARENT, CHILD, FORK = (f"019b88e5-a2e4-7b90-8953-00000000000{n}" for n in (1, 2, 3))


def import_all(repo: Any, folder: Path) -> None:
    for _ in Importer(repo.store, [runtimes.get("codex")]).run(walk(folder)):
        pass


def first_commit(repo: Any, session: str) -> Any:
    return repo.store.get_commit(repo.store.walk(repo.show(session).id)[-1].id)


@pytest.mark.parametrize("told", ["event", "output"])
def test_a_sub_agents_chain_says_which_call_started_it(tmp_path: Path, told: str) -> None:
    """#35: in a file without `history_mode` only the output of the call names the agent."""
    files = tmp_path / "files"
    files.mkdir()
    parent = Rollout(id=PARENT).turn("go").call("c7", "spawn_agent")
    if told == "event":
        parent.event("collab_agent_spawn_end", call_id="c7", new_thread_id=CHILD).output("c7")
    else:
        parent.output("c7", json.dumps({"agent_id": CHILD, "nickname": "Ada"}))
    (files / f"rollout-2026-01-02T00-00-00-{PARENT}.jsonl").write_bytes(parent.data)
    child = Rollout(id=CHILD, parent_thread_id=PARENT, source={"subagent": "x"}).turn("look")
    (files / f"rollout-2026-01-02T00-00-01-{CHILD}.jsonl").write_bytes(child.data)

    with harken.open(tmp_path / "store.db") as repo:
        import_all(repo, files)

        assert {"session": PARENT, "call_id": "c7", "inherits": False} == first_commit(repo, CHILD).spawned_from
        assert child.data == repo.materialize(CHILD).bytes, "it was told its prompt, and no more"


def write_fork(folder: Path) -> bytes:
    """A thread of two turns, and one that goes on from its first; the bytes of the second."""
    folder.mkdir()
    base = Rollout(id=PARENT).turn("one")
    position = {"thread_id": PARENT, "end_ordinal_exclusive": 7, "end_byte_offset": len(base.data)}
    (folder / f"rollout-2026-01-02T00-00-00-{PARENT}.jsonl").write_bytes(base.turn("two").data)
    fork = Rollout(id=FORK, forked_from_id=PARENT, history_base=position).turn("three")
    (folder / f"rollout-2026-01-02T00-00-01-{FORK}.jsonl").write_bytes(fork.data)
    return fork.data


@pytest.mark.parametrize("target", ["codex", "claude-code"])
def test_a_fork_whose_base_is_missing_is_resumed_with_a_loss(tmp_path: Path, target: str) -> None:
    """#26: it was resumed without its first half, and nothing was said."""
    files = tmp_path / "files"
    write_fork(files)
    next(files.glob(f"*{PARENT}.jsonl")).unlink()

    with harken.open(tmp_path / "store.db") as repo:
        import_all(repo, files)
        done = repo.resume(FORK, target, cwd=str(tmp_path), home=str(tmp_path / "home"))

    [loss] = [loss for loss in done.losses if loss.what == "inherited context"]
    assert (1, f"{PARENT} is not in this store") == (loss.count, loss.why)


def test_a_fork_that_only_points_knows_what_it_goes_on_from(tmp_path: Path) -> None:
    files = tmp_path / "files"
    own = write_fork(files)

    with harken.open(tmp_path / "store.db") as repo:
        import_all(repo, files)

        whole = repo.materialize(FORK).bytes
        assert ["one", "answer to one", "three", "answer to three"] == texts_of(codex.request_items(whole))
        assert own == repo.materialize(FORK, stop="root").bytes


class TestGoingBack:
    """#25: going back to an earlier turn writes a second file of the same thread, which points at the first."""

    def make(self, folder: Path) -> dict[str, Path]:
        folder.mkdir()
        first = Rollout(id=PARENT).turn("one")
        position = {"thread_id": PARENT, "end_ordinal_exclusive": 7, "end_byte_offset": len(first.data)}
        first.turn("two, taken back")
        paths = {name: folder / f"rollout-2026-01-02T00-00-0{n}-{PARENT}.jsonl" for n, name in enumerate("ab")}
        paths["a"].write_bytes(first.data)
        second = Rollout(bare=True)
        second.lines = [b""] * 40  # later than all of the first
        second.meta(id=PARENT, history_base=position).turn("three")
        second.lines = second.lines[40:]
        paths["b"].write_bytes(second.data)
        return paths

    @pytest.mark.parametrize("order", ["ab", "ba"])
    @pytest.mark.parametrize("together", [True, False])
    def test_the_session_is_what_codex_would_resume_whatever_came_first(
        self, tmp_path: Path, order: str, together: bool
    ) -> None:
        paths = self.make(tmp_path / "files")
        with harken.open(tmp_path / "store.db") as repo:
            for batch in [order] if together else list(order):
                for _ in Importer(repo.store, [runtimes.get("codex")]).run([paths[name] for name in batch]):
                    pass

            assert [PARENT] == [row.session for row in repo.sessions()]
            heard = texts_of(codex.request_items(repo.materialize(PARENT).bytes))
            assert ["one", "answer to one", "three", "answer to three"] == heard
            assert paths["b"].read_bytes() == repo.materialize(PARENT, stop="root").bytes
            taken_back = repo.materialize(f"{PARENT}~1", stop="root").bytes
            assert paths["a"].read_bytes() == taken_back

    def test_messages_are_those_of_the_session_as_it_stands_and_stats_counts_all_versions(self, tmp_path: Path) -> None:
        self.make(tmp_path / "files")
        with harken.open(tmp_path / "store.db") as repo:
            import_all(repo, tmp_path / "files")

            (row,) = sessions(repo, SessionsRequest())
            (counted,) = stats(repo, StatsRequest(sessions=(PARENT,)))
            assert isinstance(counted, StatsAnswer)

            assert (4, "one") == (row.messages, row.title), "what the newest file goes on from, and what it says"
            said = counted.prompts.human + counted.prompts.injected + counted.responses
            assert 6 == said, "one and two of the first file, three of the second"

    def test_twice_leaves_the_title_and_every_message_that_still_stands(self, tmp_path: Path) -> None:
        paths = self.make(tmp_path / "files")
        end = paths["b"].stat().st_size
        third = Rollout(bare=True)
        third.lines = [b""] * 80
        position = {"thread_id": PARENT, "end_ordinal_exclusive": 14, "end_byte_offset": end}
        third.meta(id=PARENT, history_base=position).turn("four")
        (paths["b"].parent / f"rollout-2026-01-02T00-00-09-{PARENT}.jsonl").write_bytes(
            b"\n".join(third.lines[80:]) + b"\n"
        )
        with harken.open(tmp_path / "store.db") as repo:
            import_all(repo, tmp_path / "files")
            (row,) = sessions(repo, SessionsRequest())
            heard = texts_of(codex.request_items(repo.materialize(PARENT).bytes))

        assert (len(heard), "one") == (row.messages, row.title)
        assert 6 == len(heard)

    def test_keeps_a_name_that_was_given_behind_it(self, tmp_path: Path) -> None:
        paths = self.make(tmp_path / "files")
        named = Rollout(bare=True).event("thread_name_updated", thread_id=PARENT, thread_name="The plan")
        paths["b"].write_bytes(paths["b"].read_bytes() + named.data)
        with harken.open(tmp_path / "store.db") as repo:
            import_all(repo, tmp_path / "files")

            assert ["The plan"] == [row.title for row in repo.sessions()]

    def test_to_before_the_first_prompt_leaves_nothing_of_it(self, tmp_path: Path) -> None:
        paths = self.make(tmp_path / "files")
        data = paths["b"].read_bytes()
        paths["b"].write_bytes(re.sub(rb'"end_byte_offset": \d+', b'"end_byte_offset": 0', data))
        with harken.open(tmp_path / "store.db") as repo:
            import_all(repo, tmp_path / "files")

            assert [("three", 2)] == [(row.title, row.messages) for row in repo.sessions()]

    def test_the_rows_are_the_same_in_any_order(self, tmp_path: Path) -> None:
        paths = self.make(tmp_path / "files")
        seen = []
        for number, order in enumerate(("ab", "ba")):
            with harken.open(tmp_path / f"{number}.db") as repo:
                for name in order:
                    list(Importer(repo.store, [runtimes.get("codex")]).run([paths[name]]))
                seen += [msgspec.structs.replace(row, state=b"", version=0) for row in repo.sessions()]

        assert seen[0] == seen[1]
        assert 2 == len(seen)


class TestWhatCameBefore:
    """One rule for a thread that went back or was forked: whoever looks at it sees what it goes on from."""

    SAID = ("one", "answer to one", "three", "answer to three")

    @pytest.fixture(params=["went back", "forked"])
    def repo_and_session(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Any, str]]:
        files = tmp_path / "files"
        if request.param == "went back":
            TestGoingBack().make(files)
        else:
            write_fork(files)
        with harken.open(tmp_path / "store.db") as repo:
            import_all(repo, files)
            yield repo, PARENT if request.param == "went back" else FORK

    def test_is_in_the_views(self, repo_and_session: tuple[Any, str]) -> None:
        repo, session = repo_and_session
        view = repo.view(session)

        said = [line["content"] for line in view.extract_dialog(view.list_agents())]
        assert list(self.SAID) == [text for text in said if text in self.SAID or "taken back" in text]
        assert ["codex"] == list(view.list_agents())
        assert len(set(view.index.ids)) == len(view.index.by_id)

    def test_is_in_the_log(self, repo_and_session: tuple[Any, str]) -> None:
        repo, session = repo_and_session

        listed = [shown.id for shown in repo.log(session)]

        assert listed == [commit.id for commit in repo.history(session)]
        before = first_commit(repo, session)
        assert before.id in listed[:-1], "the chain goes on behind its root"
        assert listed[:1] == [commit.id for commit in repo.history(session, limit=1)]
        assert listed[:-1] == [commit.id for commit in repo.history(session, limit=len(listed) - 1)]

    def test_is_what_materialize_gives(self, repo_and_session: tuple[Any, str]) -> None:
        repo, session = repo_and_session
        whole = repo.materialize(session).bytes

        assert list(self.SAID) == texts_of(codex.request_items(whole))

    def test_is_found_by_the_names_that_the_views_print(self, repo_and_session: tuple[Any, str]) -> None:
        repo, session = repo_and_session
        listed = {shown.id for shown in repo.log(session)}
        holding = {}
        for event in repo.events(session):
            if isinstance(event, Prompt | Response):
                found = repo.commit(f"{session}@{event.message_id}")
                holding[event.content] = found.id
                assert found.id in listed
                assert event.content in [getattr(one, "content", "") for one in repo.delta(found.id)]

        assert set(self.SAID) <= holding.keys()


class TestGrowing:
    """A thread that was imported while it grew says of where it comes from what a fresh import of it says."""

    def make(self, folder: Path) -> dict[str, Path]:
        folder.mkdir()
        base = Rollout(id=PARENT).turn("one")
        position = {"thread_id": PARENT, "end_ordinal_exclusive": 7, "end_byte_offset": len(base.data)}
        base.turn("go").call("c7", "spawn_agent")
        base.event("collab_agent_spawn_end", call_id="c7", new_thread_id=CHILD).output("c7")
        threads = {
            PARENT: base,
            CHILD: Rollout(id=CHILD, parent_thread_id=PARENT, source={"subagent": "x"}).turn("look").turn("again"),
            FORK: Rollout(id=FORK, forked_from_id=PARENT, history_base=position).turn("three").turn("four"),
        }
        paths = {name: folder / f"rollout-2026-01-02T00-00-0{n}-{name}.jsonl" for n, name in enumerate(threads)}
        for name, path in paths.items():
            path.write_bytes(threads[name].data)
        return paths

    @pytest.mark.parametrize("session", [CHILD, FORK])
    @pytest.mark.parametrize("seen", ["torn", "first", "most"])
    def test_it_is_what_a_fresh_import_of_it_is(self, tmp_path: Path, session: str, seen: str) -> None:
        files = tmp_path / "files"
        path = self.make(files)[session]
        whole = path.read_bytes()
        lines = whole.splitlines(keepends=True)
        path.write_bytes({"torn": lines[0][:-5], "first": lines[0], "most": b"".join(lines[:3])}[seen])
        with harken.open(tmp_path / "grown.db") as grown, harken.open(tmp_path / "fresh.db") as fresh:
            import_all(grown, files)
            path.write_bytes(whole)
            import_all(grown, files)
            import_all(fresh, files)

            assert first_commit(fresh, session) == first_commit(grown, session)
            assert fresh.materialize(session) == grown.materialize(session)
            assert told(fresh) == told(grown)


def told(repo: Any) -> list[Any]:
    """What the rows say, without what only an import needs."""
    rows = sorted(repo.sessions(), key=lambda row: row.session)
    return [msgspec.structs.replace(row, state=b"", version=0) for row in rows]


def test_the_sub_agents_of_a_thread_are_among_its_agents_and_in_its_views(tmp_path: Path) -> None:
    files, nested = tmp_path / "files", FORK
    files.mkdir()
    above = ""
    for n, (name, below) in enumerate([(PARENT, CHILD), (CHILD, nested), (nested, "")]):
        made = {"parent_thread_id": above, "source": {"subagent": "x"}} if above else {}
        thread = Rollout(bare=True)
        thread.lines = [b""] * 40 * n  # later than all of the one above
        thread.meta(id=name, **made).turn(f"task {n}")
        if below:
            thread.call(f"c{n}", "spawn_agent")
            thread.event("collab_agent_spawn_end", call_id=f"c{n}", new_thread_id=below).output(f"c{n}")
        thread.lines = thread.lines[40 * n :]
        (files / f"rollout-2026-01-02T00-00-0{n}-{name}.jsonl").write_bytes(thread.data)
        above = name

    with harken.open(tmp_path / "store.db") as repo:
        import_all(repo, files)

        agents = [(agent.session, agent.parent) for agent in repo.agents(PARENT)]
        assert [(PARENT, ""), (CHILD, "codex"), (nested, CHILD)] == agents, "by the names that the views know"
        assert [nested] == [agent.session for agent in repo.agents(CHILD)][1:]
        events = repo.events(PARENT)
        assert {"codex", CHILD, nested} == {event.agent_id for event in events}
        owners: dict[str, set[str]] = {}
        for event in events:
            owners.setdefault(event.message_id, set()).add(event.agent_id)
        assert {1} == {len(one) for one in owners.values()}, "no two agents have a record of one name"
        tree = {agent["agent_id"]: agent["parent"] for agent in repo.view(PARENT).agent_tree()}
        assert {"codex": None, CHILD: "codex", nested: CHILD} == tree


class TestANameGivenInCodex:
    """Codex keeps a list of the names that people gave to threads beside the folder of its sessions."""

    def make(self, home: Path, *names: str, folder: str = "sessions/2026/01/02") -> Path:
        path = home / folder / f"rollout-2026-01-02T00-00-00-{PARENT}.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(Rollout(id=PARENT).turn("one").data)
        lines = [{"id": PARENT, "thread_name": name, "updated_at": "2026-01-02T00:00:00Z"} for name in names]
        other = {"id": FORK, "thread_name": "Another", "updated_at": "2026-01-02T00:00:00Z"}
        text = "".join(json.dumps(line) + "\n" for line in (*lines, other))
        (home / "session_index.jsonl").write_text(f"no line of it\n{text}")
        return path

    def titles(self, folder: Path, home: Path) -> list[str]:
        with harken.open(folder / "store.db") as repo:
            import_all(repo, home)
            return [row.title for row in repo.sessions()]

    @pytest.mark.parametrize("folder", ["sessions/2026/01/02", "archived_sessions"])
    def test_is_the_title_and_the_last_one_counts(self, tmp_path: Path, folder: str) -> None:
        self.make(tmp_path / "codex", "A plan", "The\nplan", folder=folder)

        assert ["The plan"] == self.titles(tmp_path, tmp_path / "codex")

    def test_is_not_waited_for_where_a_pipe_has_the_name_of_the_list(self, tmp_path: Path) -> None:
        self.make(tmp_path / "codex", "A plan")
        (tmp_path / "codex" / "session_index.jsonl").unlink()
        os.mkfifo(tmp_path / "codex" / "session_index.jsonl")

        assert ["one"] == self.titles(tmp_path, tmp_path / "codex")

    def test_of_another_thread_is_none_of_its_business(self, tmp_path: Path) -> None:
        self.make(tmp_path / "codex")

        assert ["one"] == self.titles(tmp_path, tmp_path / "codex")

    def test_is_seen_when_the_file_grows(self, tmp_path: Path) -> None:
        path = self.make(tmp_path / "codex")
        self.titles(tmp_path, tmp_path / "codex")
        with (tmp_path / "codex" / "session_index.jsonl").open("a") as index:
            index.write(json.dumps({"id": PARENT, "thread_name": "The plan"}) + "\n")
        path.write_bytes(Rollout(id=PARENT).turn("one").turn("two").data)

        assert ["The plan"] == self.titles(tmp_path, tmp_path / "codex")

    @pytest.mark.parametrize("damage", [b"\xff\xfe\n", b'{"id": 7, "thread_name": []}\n', b"[" * 5000 + b"\n", b""])
    def test_in_a_list_that_is_damaged_costs_no_session(self, tmp_path: Path, damage: bytes) -> None:
        self.make(tmp_path / "codex")
        (tmp_path / "codex" / "session_index.jsonl").write_bytes(damage)

        assert ["one"] == self.titles(tmp_path, tmp_path / "codex")


@pytest.mark.parametrize("source", ["codex-0.166.0", "claude-code-2.1.325"])
def test_a_compacted_session_that_is_resumed_in_codex_keeps_its_title(tmp_path: Path, source: str) -> None:
    with harken.open(tmp_path / "store.db") as repo:
        list(repo.import_sessions([str(FOLDER / source / "compacted")]))
        (row,) = repo.sessions()
        done = repo.resume(row.session, "codex", cwd=str(tmp_path), home=str(tmp_path / "home"))
        list(repo.import_sessions([str(tmp_path / "home")]))

        assert {row.title} == {each.title for each in repo.sessions()}
        assert done.session in {each.session for each in repo.sessions()}


def test_every_file_of_a_thread_belongs_to_a_run_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "sessions" / "2026" / "01" / "02"
    folder.mkdir(parents=True)
    names = [f"rollout-2026-01-02T00-00-0{n}-{PARENT}{end}.jsonl" for n, end in enumerate(("", f"_{FORK}"))]
    for name in (*names, f"rollout-2026-01-02T00-00-09-{FORK}.jsonl"):
        (folder / name).touch()
    launch = runtimes.get("codex").launch

    assert launch is not None
    assert [folder / name for name in names] == list(launch.session_files(tmp_path, PARENT))
