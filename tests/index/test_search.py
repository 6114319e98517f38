"""Search finds what was said, the best first, and says where it stands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken import clock
from harken.context.chains import in_project
from harken.errors import BadRequest, NotFound
from harken.events import AgentCreated, Prompt, Response, System, ToolCall, ToolResult
from harken.repo import Repo
from support.claude_lines import assistant, call, dump, result, thinking, user
from support.contexts import Ticking, keep
from support.sessions import rollout

DAY = 24 * 3600 * 1_000_000
NOW = clock.parse_instant("2026-01-02T12:00:00Z")
assert NOW is not None


def in_session(name: str, folder: str, *records: dict) -> bytes:
    return dump(*(record | {"sessionId": name, "cwd": folder} for record in records))


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repo]:
    """Two sessions of Claude Code, a fork of the first, one of Codex, and one of events."""
    folder = tmp_path_factory.mktemp("found")
    first = [
        user("u1", None, "please fix findSession in the walrus module"),
        assistant("a1", "u1", [thinking("the walrus has an off by one error")], "msg1", 1),
        assistant("a2", "a1", [call("c1")], "msg1", 2),
        result("r1", "a2", "c1", 3),
        assistant("a3", "r1", "I changed find_session and its callers", "msg2", 4, model="claude-opus-4-6"),
    ]
    other = [
        user("v1", None, "全文検索のテスト about otters", 60),
        assistant("w1", "v1", "walrus? no, an otter", "m3", 61),
    ]
    (folder / "one.jsonl").write_bytes(in_session("11111111-aaaa", "/home/me/shop", *first))
    fork = [*first, user("u9", "a3", "and now the fork", 300)]
    (folder / "two.jsonl").write_bytes(in_session("22222222-bbbb", "/home/me/shop", *fork))
    (folder / "three.jsonl").write_bytes(in_session("33333333-cccc", "/home/me/zoo garden", *other))
    (folder / "rollout-2026-01-01T00-00-00-0199.jsonl").write_bytes(rollout("0199aaaa-0000-7000-8000-000000000000"))
    with harken.open(folder / "store.db", clock=lambda: NOW or 0) as repo:
        list(repo.import_sessions([folder]))
        events = [
            Prompt(content="an ancient walrus", message_id="e1", time=NOW - 900 * DAY, agent_id="jill"),
            Response(content="\x1b]0;gotcha\x07 <b>walrus</b>; DROP TABLE messages", message_id="e2", time=NOW - DAY),
        ]
        keep(repo, events, session_id="evil'; --")
        edit = b'{"file_path": "/home/me/zoo/cage.py", "new_string": "lock()\\nfeed()"}'
        team = [
            AgentCreated(agent_id="agent_002", name="Reviewer", message_id="t0"),
            Prompt(content="who keeps the keys", message_id="t1", agent_id="agent_002"),
            ToolCall(name="Edit", id="k1", input=edit, message_id="t2", agent_id="agent_002"),
        ]
        keep(repo, team, session_id="team")
        repo.index.catch_up()
        yield repo


def hits(repo: Repo, query: str, **how: object) -> list[str]:
    return [hit.message_id or hit.role for hit in repo.search(query, **how).hits]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("callers", {"a3"}),
        ("session module", {"u1"}),
        ("find_session", {"u1", "a3"}),
        ("findSession", {"u1", "a3"}),
        ('"off by one"', {"a1"}),
        ('"one by off"', set()),
        ("otter*", {"v1", "w1"}),
        ("otter", {"w1"}),
        ("otters OR callers", {"v1", "a3"}),
        ("walrus -otter -ancient -DROP -find*", {"a1"}),
        ("検索", {"v1"}),
        ("索", {"v1"}),
        ("role:human walrus", {"u1", "e1"}),
        ("role:thinking", {"a1"}),
        ("-role:human -role:title walrus error", {"a1"}),
        ("tool:bash", {"a2", "r1"}),
        ("tool:Bash -role:call", {"r1"}),
        ("model:opus", {"a3"}),
        ("model:SONNET walrus", {"a1", "w1"}),
        ("runtime:claude-code walrus -find*", {"a1", "w1"}),
        ("project:shop callers", {"a3"}),
        ('project:"zoo garden" otter', {"w1"}),
        ("project:/home/me otter", {"w1"}),
        ("session:33333333 walrus", {"w1"}),
        ("session:22222222 callers", {"a3"}),
        ("agent:jill", {"e1"}),
        ("agent:reviewer", {"t1", "t2"}),
        ("agent:agent_002 keys", {"t1"}),
        ("feed", {"t2"}),
        ("file:cage.py", {"t2"}),
        ("file:/home/me/zoo/cage.py lock", {"t2"}),
        ("file:/home/me/zoo", {"t2"}),
        ("-file:cage.py agent:reviewer", {"t1"}),
        ("since:2026-01-01 until:2026-01-01 otter", {"w1"}),
        ("since:2025-12-31 ancient", set()),
        ("until:2024-01-01 walrus", {"e1"}),
    ],
)
def test_a_query_finds_what_it_names(repo, query, found):
    assert found == {hit for hit in hits(repo, query) if hit != "title"}


def test_a_folder_is_all_that_lies_in_it_also_where_somebody_worked_in_itself(tmp_path):
    worked = (("1111", "/home/me"), ("2222", "/home/me/shop"), ("3333", "/home/mellow"))
    for name, folder in worked:
        (tmp_path / f"{name}.jsonl").write_bytes(in_session(name, folder, user(f"u{name}", None, f"newt {name}")))
    with harken.open(tmp_path / "store.db") as repo:
        list(repo.import_sessions([tmp_path]))

        for project, found in (("/home/me", {"1111", "2222"}), ("/home/me/", {"1111", "2222"}), ("me", {"1111"})):
            assert found == {hit.session for hit in repo.search(f"project:{project} role:human").hits}
            assert found == {name for name, folder in worked if in_project(folder, project)}


def by_agent(session: str, name: str, *records: dict) -> bytes:
    return in_session(session, "/home/me/shop", *(each | {"isSidechain": True, "agentId": name} for each in records))


def test_what_was_said_comes_before_what_a_tool_printed():
    said = [
        ToolCall(name="Bash", id="k", message_id="call", time=NOW),
        ToolResult(id="k", output="an odd newt", message_id="printed", time=NOW),
        System(message="an odd newt", subtype="notice", message_id="noted", time=NOW),
        Response(content="an odd newt", message_id="answered", time=NOW),
        Prompt(content="an odd newt", message_id="asked", time=NOW),
    ]
    with harken.open("memory:", clock=lambda: NOW or 0) as repo:
        keep(repo, said, session_id="s")

        assert ["asked", "answered", "printed"] == hits(repo, "newt")[:3]


def test_the_beginning_of_a_session_s_id_names_its_sub_agents_along(tmp_path):
    (tmp_path / "11111111-aaaa.jsonl").write_bytes(
        in_session("11111111-aaaa", "/x", user("u1", None, "feed the newts"))
    )
    (tmp_path / "agent-ab12.jsonl").write_bytes(by_agent("11111111-aaaa", "ab12", user("s1", None, "count the newts")))
    with harken.open(tmp_path / "store.db") as repo:
        list(repo.import_sessions([tmp_path]))

        assert {"u1", "s1"} == {hit for hit in hits(repo, "session:1111 newts") if hit != "title"}


def test_what_a_sub_agent_said_has_its_runtime_and_project_where_the_session_is_not_in_the_store(tmp_path):
    words = (user("s1", None, "count the newts"), assistant("s2", "s1", [call("c1")], "m1", 1))
    (tmp_path / "agent-ab12.jsonl").write_bytes(by_agent("44444444-dddd", "ab12", *words))
    with harken.open(tmp_path / "store.db") as repo:
        list(repo.import_sessions([tmp_path]))

        for query in ("runtime:claude-code", "project:shop", "session:4444"):
            assert {"s1", "s2"} == {hit for hit in hits(repo, query) if hit != "title"}
        for query in ("-runtime:claude-code", "-project:shop"):
            assert [] == hits(repo, query)
        for project, calls in (("shop", 1), ("zoo", 0)):
            spent, _ = repo.usage(project=project)
            assert calls == spent.total().calls
        assert ["claude-code"] == [group.per for group in spent_by_tool(repo)]


def spent_by_tool(repo: Repo) -> list:
    spent, _ = repo.usage()
    return spent.groups("tool", "runtime")


def test_what_a_fork_copied_is_one_hit_that_names_both(repo):
    (hit,) = repo.search("callers").hits

    assert {"11111111-aaaa", "22222222-bbbb"} == {hit.session, *hit.copies}


def test_a_prompt_after_which_its_session_is_called_is_one_hit(repo):
    assert ["v1"] == hits(repo, "otters")


def test_the_same_name_letter_for_letter_comes_first(repo):
    assert "a3" == hits(repo, "find_session role:assistant role:human")[0]
    assert "u1" == hits(repo, "findSession role:assistant role:human")[0]


def test_of_equal_messages_the_newer_comes_first(tmp_path):
    now = Ticking().now
    with harken.open(tmp_path / "store.db", clock=lambda: now) as repo:
        for age in (700, 1, 90):
            keep(
                repo,
                [Prompt(content="the same words", message_id=f"d{age}", time=now - age * DAY)],
                session_id=f"s{age}",
            )

        assert ["d1", "d90", "d700"] == hits(repo, "same")


def test_with_filters_alone_the_newest_come_first_whenever_they_arrived(tmp_path):
    """More than are ranked, of which the newest arrived first; one of unknown time comes last."""
    now = Ticking().now
    with harken.open(tmp_path / "store.db", clock=lambda: now) as repo:
        said = [Response(content="new", message_id="d0", time=now), Prompt(content="when?", message_id="unknown")]
        keep(repo, said, session_id="first")
        old = [Prompt(content=f"old {age}", message_id=f"d{age}", time=now - age * DAY) for age in range(1, 601)]
        keep(repo, old, session_id="second")

        assert ["d0", "d1", "d2"] == hits(repo, "-role:title", limit=3)
        assert ["d1", "d2"] == hits(repo, "role:human", limit=2)
        assert "unknown" == hits(repo, "session:first role:human role:assistant")[-1]


def test_a_snippet_shows_where_the_words_stand(repo):
    (hit,) = repo.search("callers").hits

    start, end = hit.snippet.spots[0]
    assert "I changed find_session and its callers" == hit.snippet.text
    assert "callers" == hit.snippet.text[start:end]


def test_without_snippets_the_hits_are_the_same(repo):
    with_text = repo.search("walrus").hits
    without = repo.search("walrus", snippets=False).hits

    assert [hit.message_id for hit in with_text] == [hit.message_id for hit in without]
    assert {""} == {hit.snippet.text for hit in without}


def test_there_are_more_than_were_asked_for(repo):
    assert (1, True) == (len(repo.search("walrus", limit=1).hits), repo.search("walrus", limit=1).more)
    assert not repo.search("callers").more


def test_as_many_are_shown_as_are_asked_for(tmp_path):
    with harken.open(tmp_path / "store.db", clock=Ticking()) as repo:
        keep(repo, [Prompt(content=f"walrus {n}", message_id=f"m{n}") for n in range(900)], session_id="s")

        found = [repo.search("walrus", limit=limit) for limit in (899, 900, 1000)]

    assert [(899, True), (900, False), (900, False)] == [(len(one.hits), one.more) for one in found]
    assert [] == [hit for hit in found[-1].hits if hit.problem]


@pytest.mark.parametrize(
    ("query", "problem", "hint"),
    [
        ("x project:shpo", "project 'shpo'", "has /home/me/shop"),
        ("x runtime:claude-cod", "runtime 'claude-cod'", "did you mean runtime:claude-code?"),
        ("x tool:Bahs", "tool 'Bahs'", "did you mean tool:Bash?"),
        ("x model:gpt-9", "model 'gpt-9'", "it has"),
        ("x agent:jack", "agent 'jack'", "jill"),
        ("x file:nowhere.py", "file 'nowhere.py'", "it has"),
        ("x session:ffff", "begins with 'ffff'", "harken sessions"),
    ],
)
def test_a_value_that_nothing_has_is_an_error_with_a_suggestion(repo, query, problem, hint):
    with pytest.raises(NotFound) as raised:
        repo.search(query)

    assert problem in str(raised.value)
    assert hint in (raised.value.hint or "")


@pytest.mark.parametrize("query", ["'; DROP TABLE messages; --", 'session:"evil\'; --"', "a* OR NEAR(b)", "{text}: ^x"])
def test_a_query_cannot_break_out(repo, query):
    before = repo.index.status().messages

    repo.search(query)

    assert before == repo.index.status().messages


def test_wrong_limits_are_refused(repo):
    for limit in (0, -1, 1001):
        with pytest.raises(BadRequest, match="1 to 1000"):
            repo.search("x", limit=limit)


def test_bytes_that_are_gone_cost_only_their_snippet(tmp_path):
    with harken.open(tmp_path / "store.db", clock=Ticking()) as repo:
        gone = keep(repo, [Prompt(content="walrus one", message_id="g1")], session_id="s1")
        keep(repo, [Prompt(content="walrus two", message_id="g2")], session_id="s2")
        repo.index.catch_up()
        with repo.store.write() as writer:
            writer.evict(gone.artifact)

        found = {hit.message_id: (hit.snippet.text, bool(hit.problem)) for hit in repo.search("walrus").hits}

    assert {"g1": ("", True), "g2": ("walrus two", False)} == found


def test_every_message_of_real_sessions_gives_its_own_text(tmp_path):
    """What the index says of a message and what the store says are the same, whatever runtime wrote it."""
    recorded = Path(__file__).parents[1] / "recorded"
    with harken.open(tmp_path / "store.db") as repo:
        list(repo.import_sessions([recorded]))
        everything = repo.search("since:2000-01-01", limit=1000)

    assert len(everything.hits) > 100
    assert [] == [hit for hit in everything.hits if hit.problem or not hit.snippet.text]


def test_what_is_said_in_hundreds_of_sessions_leaves_room_for_others(tmp_path):
    rules = "the rules of this project: every heron is fed at noon. " * 5
    said = [Prompt(content=rules, message_id=f"p{n}", time=NOW) for n in range(300)]
    other = Response(content="a heron, and many words about something else " * 40, message_id="r0", time=NOW)
    with harken.open(tmp_path / "store.db", clock=lambda: NOW or 0) as repo:
        keep(repo, [other, *said], session_id="zoo")

        found = repo.search("every OR heron")

    assert {"r0"} < {hit.message_id for hit in found.hits}
