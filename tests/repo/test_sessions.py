"""A session log that a repo keeps: every agent's chain holds what that agent knew, whatever happens in between."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.agents import RunLimits, ScriptedModel, ask_person, load_session
from harken.context import SessionSettings, SessionTracker
from harken.errors import BadRequest, LimitReached, Waiting
from harken.events import Prompt, Response, System, ToolCall, ToolResult
from harken.events.figures import Figures
from harken.formats.session_log import FORMAT as SESSION_LOG
from harken.formats.session_log import events_of
from harken.log import Session
from harken.repo import Repo
from harken.repo.live import session_name
from harken.store import SessionRow
from support.contexts import Ticking, heard, keep, memory_repo, turn

CAFE = Path(__file__).parents[2] / "examples" / "cafe.toml"


@pytest.fixture
def repo() -> Repo:
    return memory_repo()


def tell(session: Session, agent: str, *roles: str) -> None:
    for role in roles:
        session.log_transcript_entry(agent, {"role": role, "content": f"{role} {session.registry.records}"})


def logged(session: Any, agent_id: str) -> list[Any]:
    """What the log says an agent's transcript is now, as events."""
    return [event for data in session.entries(agent_id) for event in events_of(data)]


def play(session: Session, *more: str) -> None:
    """The café from its script: agents that make agents that talk to each other; then more is said to the root."""

    async def talk() -> None:
        root, _ = load_session(session, language_model=f"scripted:{CAFE}")
        for text in ("Create Jack and Jill and let them meet in a café.", *more):
            root.harken(text)
            await root.response()

    asyncio.run(talk())


def tips(repo: Repo) -> dict[str, SessionRow]:
    """By agent; the root's chain is the session's own."""
    return {row.agent or "agent_001": row for row in repo.sessions()}


def messages(figures: Figures) -> int:
    return figures.prompts.human + figures.prompts.injected + figures.responses


def everything(repo: Repo) -> dict[str, list[str]]:
    """Every chain, commit by commit."""
    return {row.session: [commit.id + commit.seal for commit in repo.history(row.tip)] for row in repo.sessions()}


class TestAgentsThatTalk:
    def test_every_chain_holds_what_its_agent_knew(self, repo: Repo, tmp_path: Path) -> None:
        """`load_session` and `materialize(tip)` agree, for the root and for every agent below it."""
        with repo.session(tmp_path / "cafe.jsonl") as session:
            play(session, "And then?", "Go on")

        with Session(tmp_path / "cafe.jsonl", readonly=True) as again:
            kept = tips(repo)

            assert set(again.agents) == set(kept)
            assert 4 == len(kept)
            for agent_id, row in kept.items():
                assert logged(again, agent_id) == heard(repo, row.tip)

    def test_every_agent_is_found_under_its_session(self, repo: Repo, tmp_path: Path) -> None:
        with repo.session(tmp_path / "cafe.jsonl") as session:
            play(session)

        found = {agent.agent: agent.tip for agent in repo.agents(session.session_id)}
        assert found == {agent: repo.commit(f"{session.session_id}/{agent}").id for agent in found}
        assert 4 == len(found)

    def test_every_agent_is_counted_apart_live_and_imported(self, repo: Repo, tmp_path: Path) -> None:
        with repo.session(tmp_path / "cafe.jsonl") as session:
            play(session, "And then?")
        live = {row.session: row.messages for row in repo.sessions()}
        with harken.open("memory:") as other:
            list(other.import_sessions([tmp_path / "cafe.jsonl"]))
            read = sorted(row.messages for row in other.sessions())

        (told,) = repo.stats([session.session_id])
        listed = {agent.session: agent.messages for agent in repo.agents(session.session_id)}

        assert live == listed == {each.session: messages(each.figures) for each in (told, *told.agents)}
        assert sorted(live.values()) == read
        assert told.with_agents is not None
        assert sum(live.values()) == messages(told.with_agents)

    @pytest.mark.parametrize("reopened", [False, True])
    def test_a_message_that_a_commit_or_another_agent_parts_counts_once(
        self, repo: Repo, tmp_path: Path, reopened: bool
    ) -> None:
        called = ToolCall(id="c", name="look", input=b"{}", message_id="m2", agent_id="a")
        hint = Prompt(content="hint", source="injected", origin="reminder", message_id="m3", agent_id="a", index=1)
        events = [
            Prompt(content="go", message_id="m1", agent_id="a"),
            called,
            ToolResult(id="c", output="four", message_id="m3", agent_id="a"),
            called.replace(message_id="n1", agent_id="b"),
            hint,
            Response(content="four", message_id="m4", agent_id="a"),
        ]
        path = tmp_path / "s.jsonl"
        path.write_bytes(SESSION_LOG.write(events).data)
        lines = path.read_bytes().splitlines(keepends=True)
        name = session_name(path, lines[0])
        tracker = SessionTracker(repo, session=name, source=str(path), settings=SessionSettings())
        for at, line in enumerate(lines):
            if reopened:
                tracker = SessionTracker(repo, session=name, source=str(path), settings=SessionSettings())
                tracker.feed(b"".join(lines[:at]))
            tracker.feed(line)
            tracker.checkpoint()
        live = {row.session: row.messages for row in repo.sessions()}
        with harken.open("memory:") as other:
            list(other.import_sessions([path]))
            read = {row.session: row.messages for row in other.sessions()}

        (told,) = repo.stats([name])
        assert {name: 2, f"{name}/b": 0} == live == read
        assert told.with_agents is not None
        assert 2 == messages(told.with_agents)

    def test_a_transcript_that_was_folded_is_folded_in_the_chain(self, repo: Repo, tmp_path: Path) -> None:
        with repo.session(tmp_path / "cafe.jsonl") as session:
            play(session, "And then?", "Go on", "Is that all?")
            root, _ = load_session(session, language_model=f"scripted:{CAFE}")
            before = [event for event in session.events() if event.agent_id == root.agent_id]
            assert asyncio.run(root.compact("a summary of the middle"))
            root.harken("after the summary")
            expected = logged(session, root.agent_id)

        tip = tips(repo)[root.agent_id].tip
        assert expected == heard(repo, tip)
        assert "a summary of the middle" in [e.content for e in heard(repo, tip) if isinstance(e, Prompt)]
        assert set(before) <= set(heard(repo, tip, stop="root")), "compaction hides, and never loses"

    def test_a_compaction_is_a_delta_and_the_summary_behind_it(self, repo: Repo, tmp_path: Path) -> None:
        with repo.session(tmp_path / "s.jsonl") as session:
            tell(session, "agent_001", "user", "assistant", "user")
            session.log_transcript_edit("agent_001", "compact", 2, start=1, content="in short")

        newest, below = repo.history(session.session_id, limit=2)

        assert ("compaction", "compaction") == (newest.commit_type, newest.checkpoint)
        assert ("delta", "compaction") == (below.commit_type, below.checkpoint)

    def test_a_transcript_that_was_cut_back_is_cut_back_in_the_chain(self, repo: Repo, tmp_path: Path) -> None:
        with repo.session(tmp_path / "s.jsonl") as session:
            tell(session, "agent_001", "system", "user", "assistant", "user", "assistant")
            session.log_transcript_edit("agent_001", "truncate", 3)
            tell(session, "agent_001", "user")

            expected = logged(session, "agent_001")

        assert expected == heard(repo, session.session_id)
        assert 4 == len(expected)


class TestSubAgents:
    def test_a_chain_begins_where_its_agent_was_created(self, repo: Repo, tmp_path: Path) -> None:
        with repo.session(tmp_path / "s.jsonl") as session:
            session.log_agent_created("agent_001")
            tell(session, "agent_001", "user")
            calls = [{"id": "c1", "function": {"name": "task", "arguments": "{}"}}]
            made = session.log_transcript_entry("agent_001", {"role": "assistant", "tool_calls": calls})
            session.log_agent_created("agent_002", cause=made, name="Jill")
            tell(session, "agent_002", "user", "assistant")
            tell(session, "agent_001", "user", "assistant")

        child = repo.history(f"{session.session_id}/agent_002")[-1]
        origin = child.spawned_from or {}

        assert "" == child.parent
        assert (session.session_id, "c1", False) == (origin["session"], origin["call_id"], origin["inherits"])
        assert ["agent_002", "agent_002"] == [e.agent_id for e in heard(repo, child)]

    @pytest.mark.parametrize("named", [True, False])
    def test_of_calls_made_at_once_each_is_named_by_the_agent_it_made(
        self, repo: Repo, tmp_path: Path, named: bool
    ) -> None:
        """#5: the second and third agent must not say that the first call made them."""
        names = {"c1": "Jack", "c2": "Jill", "c3": "Joe"}
        calls = [
            {"id": call, "function": {"name": "task", "arguments": f'{{"name":"{name}"}}' if named else "{}"}}
            for call, name in names.items()
        ]
        with repo.session(tmp_path / "s.jsonl") as session:
            session.log_agent_created("agent_001")
            tell(session, "agent_001", "user")
            made = session.log_transcript_entry("agent_001", {"role": "assistant", "tool_calls": calls})
            order = reversed(names.items()) if named else names.items()
            for call, name in order:
                session.log_agent_created(f"agent_{call}", cause=made, name=name)
                tell(session, f"agent_{call}", "user", "assistant")

        origins = {call: repo.history(f"{session.session_id}/agent_{call}")[-1].spawned_from or {} for call in names}

        assert {call: call for call in names} == {call: origin["call_id"] for call, origin in origins.items()}

    def test_what_is_in_nobodys_transcript_is_in_no_chain(self, repo: Repo, tmp_path: Path) -> None:
        with repo.session(tmp_path / "s.jsonl") as session:
            session.log_agent_created("agent_001")
            session.log_piece_of_text("agent_001", "on its way", cause="msg_001")
            tell(session, "agent_001", "user", "assistant")

        assert ["prompt", "response"] == [event.kind for event in heard(repo, session.session_id)]

    def test_a_terminated_agent_is_checkpointed(self, repo: Repo, tmp_path: Path) -> None:
        session = repo.session(tmp_path / "s.jsonl")
        tell(session, "agent_001", "user")
        session.log_agent_terminated("agent_001")

        assert ["session_end"] == [commit.checkpoint for commit in repo.history(session.session_id)]
        session.close()


class TestOpeningALogAgain:
    def test_makes_no_commit_twice(self, repo: Repo, tmp_path: Path) -> None:
        with repo.session(tmp_path / "cafe.jsonl") as session:
            play(session)
        before = everything(repo)

        with repo.session(tmp_path / "cafe.jsonl"):
            pass

        assert before == everything(repo)

    def test_goes_on_where_the_chain_stopped(self, repo: Repo, tmp_path: Path) -> None:
        with repo.session(tmp_path / "s.jsonl") as session:
            tell(session, "agent_001", "user", "assistant")
        with repo.session(tmp_path / "s.jsonl") as session:
            tell(session, "agent_001", "user", "assistant")

            assert logged(session, "agent_001") == heard(repo, session.session_id)
        assert 2 == len(repo.history(session.session_id))

    def test_makes_up_for_what_was_logged_without_the_repo(self, repo: Repo, tmp_path: Path) -> None:
        with repo.session(tmp_path / "s.jsonl") as session:
            tell(session, "agent_001", "user", "assistant")
        with Session(tmp_path / "s.jsonl") as alone:
            tell(alone, "agent_001", "user", "assistant", "user")
        with repo.session(tmp_path / "s.jsonl") as again:
            expected = logged(again, "agent_001")

            assert expected[:-1] == heard(repo, again.session_id)
        assert expected == heard(repo, again.session_id)

    def test_a_log_kept_later_gives_the_commits_it_would_have_given_live(self, repo: Repo, tmp_path: Path) -> None:
        """Ids are functions of content: the same events on two stores."""
        with repo.session(tmp_path / "cafe.jsonl") as session:
            play(session, "And then?")
        late = memory_repo()

        with late.session(tmp_path / "cafe.jsonl"):
            pass

        assert everything(repo) == everything(late)

    def test_a_crash_between_any_two_records_changes_nothing(self, repo: Repo, tmp_path: Path) -> None:
        with repo.session(tmp_path / "cafe.jsonl") as session:
            play(session)
        lines = (tmp_path / "cafe.jsonl").read_bytes().splitlines(keepends=True)
        halting = memory_repo()

        for end in range(1, len(lines) + 1, 3):
            (tmp_path / "cafe.jsonl").write_bytes(b"".join(lines[:end]))
            crashed = halting.session(tmp_path / "cafe.jsonl")
            Session.close(crashed)  # no last checkpoint: the process is gone
        (tmp_path / "cafe.jsonl").write_bytes(b"".join(lines))
        with halting.session(tmp_path / "cafe.jsonl"):
            pass

        assert everything(repo) == everything(halting)


class TestARowThatOthersSaveMeanwhile:
    def test_an_import_after_every_line_changes_no_commit(self, repo: Repo, tmp_path: Path) -> None:
        """#42"""
        path, plain = tmp_path / "s.jsonl", memory_repo()
        with repo.session(path) as session:
            for number in range(12):
                tell(session, "agent_001", ("user", "assistant")[number % 2])
                results = list(repo.import_sessions([path]))
                assert [session.session_id] == [result.session for result in results]
                assert logged(session, "agent_001") == heard(repo, session.session_id), "nothing is taken back"
            tell(session, "agent_001", "user")
        list(plain.import_sessions([path]))

        assert everything(plain) == everything(repo)
        assert () == repo.sessions()[0].older

    def test_an_import_that_is_further_on_is_not_taken_back(self, repo: Repo, tmp_path: Path) -> None:
        """#42"""
        path = tmp_path / "s.jsonl"
        with Session(path) as session:
            tell(session, "agent_001", *("user", "assistant") * 4)
        lines = path.read_bytes().splitlines(keepends=True)
        name = session_name(path, lines[0])
        late = SessionTracker(repo, session=name, source=str(path), settings=SessionSettings())
        late.feed(b"".join(lines[:2]))
        list(repo.import_sessions([path]))
        imported = repo.commit(name).id
        late.feed(b"".join(lines[2:5]))
        late.checkpoint()

        assert imported == repo.commit(name).id
        late.feed(b"".join(lines[5:]))
        late.checkpoint()
        assert (imported, imported) == (repo.commit(name).id, late.tip())

    def test_what_somebody_put_on_the_chain_stays_among_its_older_ends(self, repo: Repo, tmp_path: Path) -> None:
        """#18: it was acknowledged, and is no line of the log."""
        with repo.session(tmp_path / "s.jsonl") as session:
            tell(session, "agent_001", "user", "assistant")
            mine = keep(repo, turn(1), session.session_id, session_id=session.session_id)
            tell(session, "agent_001", "user", "assistant")

            expected = logged(session, "agent_001")

        assert expected == heard(repo, session.session_id)
        assert (mine.id,) == repo.sessions()[0].older

    def test_the_same_is_so_when_the_log_is_opened_again(self, repo: Repo, tmp_path: Path) -> None:
        """#18"""
        with repo.session(tmp_path / "s.jsonl") as session:
            tell(session, "agent_001", "user", "assistant")
        mine = keep(repo, turn(1), session.session_id, session_id=session.session_id)
        with repo.session(tmp_path / "s.jsonl") as session:
            tell(session, "agent_001", "user", "assistant")

            expected = logged(session, "agent_001")

        assert expected == heard(repo, session.session_id)
        assert (mine.id,) == repo.sessions()[0].older


class TestAStoreThatDoesNotAnswer:
    def test_is_asked_again_and_the_agents_go_on(self, repo: Repo, tmp_path: Path) -> None:
        warnings: list[str] = []
        whole = repo.store
        with repo.session(tmp_path / "s.jsonl", on_warning=warnings.append) as session:
            repo.store = None  # type: ignore[assignment]
            tell(session, "agent_001", "user", "assistant")
            repo.store = whole
            tell(session, "agent_001", "user", "assistant")
            expected = logged(session, "agent_001")

        assert expected == heard(repo, session.session_id)
        assert 2 == len([warning for warning in warnings if "asked again later" in warning])


class TestTheName:
    def test_comes_from_the_file_and_its_first_event(self, repo: Repo, tmp_path: Path) -> None:
        with repo.session(tmp_path / "cafe.jsonl") as session:
            assert "" == session.session_id
            tell(session, "agent_001", "user", "assistant")

        assert session.session_id.startswith("cafe-")
        assert repo.commit("cafe").id == repo.commit(session.session_id).id

    def test_can_be_chosen(self, repo: Repo, tmp_path: Path) -> None:
        with repo.session(tmp_path / "cafe.jsonl", session_id="evening") as session:
            tell(session, "agent_001", "user", "assistant")

        assert ["evening"] == [row.session for row in repo.sessions()]


class TestFrequency:
    def test_what_a_person_is_asked_and_that_a_limit_is_reached_is_kept_while_the_agent_waits(
        self, repo: Repo, tmp_path: Path
    ) -> None:
        """Else the page would not show what is asked until it is answered."""
        asks = {"call": {"tool": "ask_person", "arguments": {"question": "Which colour?"}}}
        model = ScriptedModel({"agents": {"root": [asks, "Blue, then."]}}, name="scripted:asks")
        with repo.session(tmp_path / "s.jsonl", session_id="s") as session:
            root, _ = load_session(session, language_model=model, tools=[ask_person])
            root.harken("Paint it.")
            with pytest.raises(Waiting):
                asyncio.run(root.response())

            (asked,) = session.open_questions()
            assert asked.message_id in repo.view("s").build_causality_index()
            session.answer(asked.message_id, "blue")
            root.limits = RunLimits(steps=1)
            with pytest.raises(LimitReached):
                asyncio.run(root.resume())

            assert ["limit"] == [event.subtype for event in repo.events("s") if isinstance(event, System)][-1:]
            root.limits = RunLimits(steps=2)
            assert "Blue, then." == asyncio.run(root.resume())
        again = memory_repo()
        list(again.import_sessions([tmp_path / "s.jsonl"]))
        assert [one.id for one in again.history(again.sessions()[0].tip)] == [one.id for one in repo.history("s")]

    @pytest.mark.parametrize(("frequency", "soon"), [("turn", 3), ("tool", 4), ("every=3", 2), ("end", 0)])
    def test_says_how_soon_and_the_chain_is_the_same(self, tmp_path: Path, frequency: str, soon: int) -> None:
        """Where a log is cut follows from the log alone."""
        repo = memory_repo()
        with repo.session(tmp_path / "s.jsonl", session_id="s", frequency=frequency) as session:
            for _ in range(4):
                session.log_transcript_entry("a", {"role": "user", "content": "go"})
                calls = [{"id": "c", "function": {"name": "Read", "arguments": "{}"}}]
                session.log_transcript_entry("a", {"role": "assistant", "tool_calls": calls})
                session.log_transcript_entry("a", {"role": "tool", "tool_call_id": "c", "content": "done"})
            kept = len(repo.history("s")) if repo.sessions() else 0

        assert soon == kept
        assert 4 == len(repo.history("s"))
        assert 12 == len(heard(repo, "s"))

    def test_an_unknown_one_is_refused(self, repo: Repo, tmp_path: Path) -> None:
        with repo.session(tmp_path / "s.jsonl", frequency="often") as session, pytest.raises(BadRequest, match="often"):
            tell(session, "agent_001", "user")


def test_sqlite_keeps_the_same_as_memory(tmp_path: Path) -> None:
    repo = memory_repo()
    with repo.session(tmp_path / "cafe.jsonl") as session:
        play(session)

    with harken.open(tmp_path / "store.db", clock=Ticking()) as other:
        with other.session(tmp_path / "cafe.jsonl"):
            pass

        assert everything(repo) == everything(other)
        assert heard(repo, "cafe") == heard(other, "cafe")


def test_the_deltas_of_a_chain_are_the_same_however_it_grew_since_they_were_asked_for(tmp_path: Path) -> None:
    with harken.open(tmp_path / "store.db") as repo, harken.open(tmp_path / "store.db") as other:
        tips: list[str] = []
        for number in range(150):
            # Every tenth goes on from somewhere before, so that there are branches too.
            parent = None if not tips else tips[number // 2 if number % 10 == 9 else -1]
            tips.append(repo.checkpoint([Prompt(content=f"{number}")], format="events-v1", parent=parent))
            if number % 7 in (0, 3):
                asked = repo.commit(tips[-1]).id
                assert {one.id for one in repo.history(asked)} == repo.chains.deltas_behind(asked)
        for tip in tips:
            asked = repo.commit(tip).id
            assert other.chains.deltas_behind(asked) == repo.chains.deltas_behind(asked)
