"""Session documents as sessions: imported, grown, rewritten, and asked by every command."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import Repo, runtimes
from harken.capture import MultiAgentRecorder
from harken.formats.std.repairing.repair import repair
from harken.runtimes.files import sought, walk
from harken.runtimes.importer import Importer
from harken.runtimes.memory import ImportResult
from support.command_line import Run
from support.recordings import FOLDER
from support.std_documents import BUILDER, PLANNER, call, multi, single

Json = dict[str, Any]
MULTI = "2026-03-04-002-two-hands-multi"
SINGLE = "2026-03-04-001-mend-the-clock"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "documents"
    found.mkdir()
    return found


def put(folder: Path, document: Json, name: str = "") -> Path:
    path = folder / f"{name or document['session_id']}.json"
    path.write_text(json.dumps(document, indent=2))
    return path


def take(repo: Repo, *paths: Path) -> list[ImportResult]:
    importer = Importer(repo.store, [runtimes.get(name) for name in runtimes.names()])
    return [outcome for path in paths for outcome in importer.run(walk(path, (".json", ".jsonl")))]


# -- what goes in ------------------------------------------------------------------------------------------------------


def test_a_document_is_a_session_named_by_its_id_with_a_chain_for_each_agent(repo: Repo, folder: Path) -> None:
    put(folder, multi())
    put(folder, single())
    (folder / "package.json").write_text('{"name": "x", "phases": [], "title": "y"}')

    outcomes = take(repo, folder)

    assert {(SINGLE, "new"), (MULTI, "new"), ("", "skipped")} == {(o.session, o.status) for o in outcomes}
    rows = {row.session: row for row in repo.store.sessions()}
    assert {SINGLE, MULTI, f"{MULTI}/builder", f"{MULTI}/checker"} == rows.keys()
    assert ("Two hands", "std-008", 1) == (rows[MULTI].title, rows[MULTI].runtime, rows[MULTI].messages)
    assert ("Mend the clock", "std-001") == (rows[SINGLE].title, rows[SINGLE].runtime)
    assert (MULTI, "builder") == (rows[f"{MULTI}/builder"].parent, rows[f"{MULTI}/builder"].agent)
    assert [] == [o for o in take(repo, folder) if o.commits]


@pytest.mark.parametrize(
    "document",
    [
        {
            "session_id": "mock-1",
            "created_at": "2026-03-04T10:00:00Z",
            "steps": [{"step_id": "s1", "step_name": "code_generation", "status": "success", "input": {}}],
        },
        {"title": "early", "phases": [{"phase": "explore", "tool_calls": [{"tool": "Read", "target": "clock.py"}]}]},
    ],
)
def test_an_old_document_is_imported_before_and_after_its_repair(repo: Repo, folder: Path, document: Json) -> None:
    old = json.dumps(document).encode()
    (folder / "old.json").write_bytes(old)
    (folder / "mended.json").write_bytes(repair(old, "old", session_id="2026-03-04-001-mended").data)

    assert ["new", "new"] == [outcome.status for outcome in take(repo, folder)]


def test_the_session_of_an_agent_is_called_by_its_name_or_its_first_task(repo: Repo, folder: Path) -> None:
    document = multi()
    document["sub_sessions"][1]["x_harken_name"] = "The checker"
    put(folder, document)
    take(repo, folder)

    titles = {row.agent: row.title for row in repo.store.sessions(parent=MULTI)}

    task = document["sub_sessions"][0]["task"]["description"]
    assert {"builder": task, "checker": "The checker"} == titles


def test_requests_of_a_session_and_of_its_document_count_as_the_sessions(run: Run, repo: Repo, folder: Path) -> None:
    list(repo.import_sessions([FOLDER / "claude-code-2.1.325" / "parallel-agents"]))
    asked = ("sql", "SELECT session, count(*) AS n FROM usage WHERE counted AND input IS NOT NULL GROUP BY 1", "--json")
    before = run(*asked).json

    assert 0 == run("std", "export", "a549dc23", "-o", str(folder)).code
    take(repo, folder)

    assert 4 == len(before)
    assert before == run(*asked).json


def test_a_list_of_documents_does_not_ask_for_folders_that_they_never_name(run: Run, repo: Repo, folder: Path) -> None:
    put(folder, multi())
    take(repo, folder)

    assert ["", "no such sessions; `harken sessions` lists all\n"] == [
        run("sessions").err,
        run("sessions", "--project", "shop").err,
    ]


def test_the_bytes_of_a_document_are_kept_as_they_are(repo: Repo, folder: Path) -> None:
    path = put(folder, multi())
    take(repo, path)

    assert path.read_bytes() == repo.materialize(MULTI).bytes


def test_a_document_without_a_usable_id_is_named_after_its_file_and_place(repo: Repo, folder: Path) -> None:
    for name in ("", "a/b", "line\nbreak", 5.5, "x" * 1000):
        put(folder, single() | {"session_id": name}, "clock")
        (outcome,) = take(repo, folder)
        assert outcome.session.startswith("clock-"), name


def test_two_documents_of_one_id_are_two_versions_of_a_session(repo: Repo, folder: Path) -> None:
    put(folder, single(), "one")
    later = single() | {"completed_at": "2026-03-04T11:00:00Z", "user_prompt": "Mend it again."}
    put(folder, later, "two")
    take(repo, folder)

    (row,) = repo.store.sessions()

    assert ("two.json", 1) == (Path(row.source).name, len(row.older))


def test_a_grown_document_ends_where_a_fresh_import_ends(repo: Repo, folder: Path, tmp_path: Path) -> None:
    whole = multi()
    steps = [
        whole | {"tool_calls": whole["tool_calls"][:1], "sub_sessions": [], "messages": [], "status": "in_progress"},
        whole | {"tool_calls": whole["tool_calls"][:2], "sub_sessions": whole["sub_sessions"][:1], "messages": []},
        whole,
    ]
    statuses = []
    for step in steps:
        path = put(folder, step, "grown")
        statuses += [outcome.status for outcome in take(repo, path)]

    with harken.open(tmp_path / "fresh.db") as other:
        (fresh,) = take(other, path)
        expected = {row.session: (row.tip, row.messages) for row in other.store.sessions()}

    assert ["new", "grown", "grown"] == statuses
    rows = repo.store.sessions()
    assert expected == {row.session: (row.tip, row.messages) for row in rows}
    assert fresh.tip == repo.store.find_session(MULTI).tip  # type: ignore[union-attr]
    assert [()] == list({row.older for row in rows})


def test_a_document_that_gets_its_second_agent_stays_the_same_session(repo: Repo, folder: Path) -> None:
    alone = multi() | {"sub_sessions": [], "messages": []}
    alone["collaboration"] = alone["collaboration"] | {"mode": "single"}
    outcomes = [take(repo, put(folder, document, "x"))[0] for document in (alone, multi())]

    assert [(MULTI, "new"), (MULTI, "grown")] == [(outcome.session, outcome.status) for outcome in outcomes]
    assert {MULTI, f"{MULTI}/builder", f"{MULTI}/checker"} == {row.session for row in repo.store.sessions()}


def test_a_document_in_the_place_of_another_sessions_leaves_that_one_as_it_was(repo: Repo, folder: Path) -> None:
    first, second = (multi() | {"session_id": name, "task_title": name} for name in ("first", "second"))
    later = first | {"user_prompt": "Go on."}
    outcomes = [take(repo, put(folder, one, "latest"))[0] for one in (first, second, second, first, later)]

    expected = [
        ("first", "new"),
        ("second", "new"),
        ("second", "unchanged"),
        ("first", "unchanged"),
        ("first", "grown"),
    ]
    assert expected == [(outcome.session, outcome.status) for outcome in outcomes]
    rows = {row.session: row for row in repo.store.sessions() if not row.parent}
    assert {"first": "first", "second": "second"} == {name: row.title for name, row in rows.items()}
    assert {json.dumps(one, indent=2).encode() for one in (later, second)} == {
        repo.store.get(repo.store.get_commit(row.tip).artifact) for row in rows.values()
    }


def test_a_document_that_was_put_aside_is_still_its_session_when_another_takes_its_place(
    repo: Repo, folder: Path
) -> None:
    path = put(folder, single(), "latest")
    take(repo, folder)
    path.rename(folder / "aside.json")
    put(folder, single() | {"session_id": "second"}, "latest")
    take(repo, folder)

    assert {SINGLE, "second"} == {row.session for row in repo.store.sessions()}


def test_a_session_that_was_forgotten_does_not_keep_out_the_next_one_in_its_file(repo: Repo, folder: Path) -> None:
    take(repo, put(folder, single(), "latest"))
    repo.forget(SINGLE)
    outcomes = take(repo, put(folder, single() | {"session_id": "second"}, "latest"))

    assert [("second", "new")] == [(outcome.session, outcome.status) for outcome in outcomes]


def test_an_agent_that_is_renamed_in_its_document_is_the_same_agent(repo: Repo, folder: Path, run: Run) -> None:
    path = put(folder, multi())
    importer = Importer(repo.store, [runtimes.get(name) for name in runtimes.names()])
    list(importer.run([path]))
    before = repo.store.find_session(f"{MULTI}/builder")

    for old, new in (("builder", "maker"), ("maker", "smith")):
        path.write_text(path.read_text().replace(f'"{old}"', f'"{new}"'))
        list(importer.run([path]))

    assert {MULTI, f"{MULTI}/smith", f"{MULTI}/checker"} == {row.session for row in repo.store.sessions()}
    after = repo.store.find_session(f"{MULTI}/smith")
    assert before is not None and after is not None
    assert ("smith", MULTI, before.messages) == (after.agent, after.parent, after.messages)
    told = run("agents", MULTI, "--json").json
    assert {MULTI, f"{MULTI}/smith", f"{MULTI}/checker"} == {one["session"] for one in told}


def test_agents_that_take_each_others_names_keep_their_rows(repo: Repo, folder: Path) -> None:
    path = put(folder, multi())
    take(repo, path)
    swapped = path.read_text().replace('"builder"', '"x"').replace('"checker"', '"builder"').replace('"x"', '"checker"')
    path.write_text(swapped)
    take(repo, path)

    assert {MULTI, f"{MULTI}/builder", f"{MULTI}/checker"} == {row.session for row in repo.store.sessions()}


def test_a_document_that_was_cut_off_keeps_its_name(repo: Repo, folder: Path) -> None:
    path = put(folder, single())
    whole = path.read_bytes()
    for data in (whole, whole[:700], whole):
        path.write_bytes(data)
        assert [SINGLE] == [outcome.session for outcome in take(repo, folder)]

    assert [SINGLE] == [row.session for row in repo.store.sessions()]


def test_several_documents_in_one_file_are_not_made_one_session(repo: Repo, folder: Path) -> None:
    lines = b"".join(json.dumps(one).encode() + b"\n" for one in (single(), multi()))
    path = folder / "sessions.jsonl"
    path.write_bytes(lines)
    (outcome,) = take(repo, path)
    assert ("failed", True) == (outcome.status, "2 session documents in one file" in outcome.error)

    kept = put(folder, single())
    take(repo, kept)
    before = repo.materialize(SINGLE).bytes
    kept.write_bytes(kept.read_bytes() + b"\n" + lines)
    assert ["failed"] == [outcome.status for outcome in take(repo, kept)]
    assert before == repo.materialize(SINGLE).bytes
    assert [SINGLE] == [row.session for row in repo.store.sessions()]


def test_a_document_that_comes_to_the_other_standard_stays_the_same_session(repo: Repo, folder: Path) -> None:
    alone = {key: value for key, value in multi().items() if key not in ("collaboration", "sub_sessions", "messages")}
    outcomes = [take(repo, put(folder, document, "x"))[0] for document in (alone, multi())]

    assert [(MULTI, "new"), (MULTI, "grown")] == [(outcome.session, outcome.status) for outcome in outcomes]
    expected = {(MULTI, "std-008"), (f"{MULTI}/builder", "std-008"), (f"{MULTI}/checker", "std-008")}
    assert expected == {(row.session, row.runtime) for row in repo.store.sessions()}


def test_watching_takes_in_a_document_that_is_rewritten(repo: Repo, folder: Path) -> None:
    path, stop = put(folder, single()), threading.Event()
    seen = []
    for outcome in repo.watch([folder], interval=0.01, stop=stop):
        seen.append((outcome.session, outcome.status))
        if len(seen) == 1:
            scratch = path.with_suffix(".tmp")
            scratch.write_text(json.dumps(single() | {"tool_calls": [call("tool-001", 5), call("tool-009", 50)]}))
            scratch.rename(path)
        else:
            stop.set()

    assert [(SINGLE, "new"), (SINGLE, "grown")] == seen


def test_an_import_of_the_runtimes_own_folders_looks_for_no_documents(tmp_path: Path) -> None:
    known = [runtimes.get(name) for name in runtimes.names()]

    assert {"std-001", "std-008"} <= {each.name for each in sought([tmp_path], known, {})}
    # A program's own documents lie in its folder; those that may lie anywhere are not looked for there.
    assert not {"std-001", "std-008"} & {each.name for each in sought([], known, {"HOME": "/home/ada"})}


@pytest.mark.parametrize(
    "document",
    [
        {
            "session_id": "s",
            "created_at": "2026-01-01T00:00:00Z",
            "steps": [{"step_id": "1", "step_name": "debug_fix"}],
        },
        {"title": "t", "phases": [{"phase": "explore", "tool_calls": [{"tool": "Read", "target": "x"}]}]},
        {"session_id": "s", "task_title": "t", "created_at": "2026-01-01T00:00:00Z", "phases": [], "tool_calls": []},
        single(),
        multi(),
        multi() | {"user_prompt": "word " * 40_000},
    ],
    ids=["steps", "early phases", "phases", "one agent", "several", "a long prompt"],
)
def test_every_generation_is_claimed_by_one_of_the_two(document: Json) -> None:
    for data in (json.dumps(document).encode(), b"\xef\xbb\xbf" + json.dumps(document, indent=4).encode()):
        scores = [runtimes.get(n).claim(data[:65536], Path("x-multi.json")).score for n in ("std-001", "std-008")]
        assert [0, 90] == sorted(scores)


@pytest.mark.parametrize(
    "data",
    [
        b'{"messages": [{"role": "assistant", "tool_calls": []}], "model": "m"}',
        b'{"session_id": "s", "tool_calls": []}',
        b'{"steps": [], "name": "build", "phases": ["a"]}',
        b'[{"session_id": "s", "task_title": "t", "tool_calls": [], "summary": {}}]',
        b'{"jobs": {"build": {"steps": [{"step_name": "x"}]}}}',
        b'{"title": "Plan", "phases": [{"phase": "1", "tasks": []}]}',
        b'"tool_calls"',
    ],
)
def test_other_json_is_nobodys(data: bytes) -> None:
    assert [0, 0] == [runtimes.get(n).claim(data, Path("x-multi.json")).score for n in ("std-001", "std-008")]


def test_hostile_names_of_agents_do_no_harm(repo: Repo, folder: Path) -> None:
    names = ["../../etc", "a/b", "x\ny", "\x1b[31m", "#", "@", "~1", "é" * 300, "y" * 5000, "lead", ".", "\ud800"]
    document = multi()
    first = document["sub_sessions"][0]
    document["sub_sessions"] = [
        first | {"sub_session_id": f"s{n}", "agent": BUILDER | {"agent_id": name}} for n, name in enumerate(names)
    ]
    path = folder / "odd.json"
    path.write_text(json.dumps(document))

    (outcome,) = take(repo, path)

    assert ("new", "") == (outcome.status, outcome.error)
    listed = [agent.agent for agent in repo.agents(MULTI)]
    assert {"lead", "builder", "checker", "s11", *names[:9], "."} == set(listed)
    assert "lead" == listed[0]
    assert [] == list(repo.fsck().findings)


def test_a_document_beside_the_log_that_it_was_recorded_in_is_not_counted_again(repo: Repo, folder: Path) -> None:
    path = folder / "2026-03-04-003-recorded-multi.json"
    with MultiAgentRecorder(path, task_title="R", user_prompt="Go.", orchestrator="lead", participants=["dev"]) as told:
        sub = told.start_sub("dev", "Do it.")
        told.sub_call(sub, "Read", {"file_path": "x"}, result="y")
        told.finish_sub(sub, "Done.")

    with_folder = {outcome.source: (outcome.status, outcome.error) for outcome in take(repo, folder)}
    importer = Importer(repo.store, [runtimes.get(name) for name in runtimes.names()])
    (by_name,) = importer.run([path], named=True)

    assert ("skipped", "it is made from 2026-03-04-003-recorded-multi.log.jsonl, which has more") == with_folder[
        str(path)
    ]
    assert {"skipped", "new"} == {status for status, _ in with_folder.values()}
    assert ("new", path.stem) == (by_name.status, by_name.session)


@pytest.mark.parametrize("log", [b"", b'{"level": "info", "message": "started"}\n'])
def test_a_document_beside_a_log_that_is_no_session_is_imported(repo: Repo, folder: Path, log: bytes) -> None:
    path = folder / f"{MULTI}.json"
    path.write_text(json.dumps(multi()))
    (folder / f"{MULTI}.log.jsonl").write_bytes(log)

    found = {outcome.source: outcome.status for outcome in take(repo, folder)}

    assert "new" == found[str(path)]


# -- what is asked -----------------------------------------------------------------------------------------------------


@pytest.fixture
def kept(repo: Repo, folder: Path) -> Iterator[Repo]:
    document = multi()
    document["messages"].append(
        {
            "message_id": "msg-005",
            "timestamp": "2026-03-04T10:00:50Z",
            "sequence_number": 5,
            "from_agent": PLANNER,
            "to_agent": BUILDER,
            "message_type": "feedback",
            "payload": {"content": "Mind the pendulum."},
        }
    )
    put(folder, document)
    put(folder, single())
    take(repo, folder)
    yield repo


def printed(run: Run, *words: str) -> str:
    done = run(*words)
    assert 0 == done.code, done.err
    return done.out


@pytest.mark.usefixtures("kept")
class TestAnswers:
    """What commands answer of a session that was a document."""

    def test_sessions_and_agents(self, run: Run) -> None:
        listed = {row["session"]: row for row in run("sessions", "--json").json}
        assert ("Two hands", "std-008") == (listed[MULTI]["title"], listed[MULTI]["runtime"])
        agents = {row["agent"]: row for row in run("agents", MULTI, "--json").json}
        assert {"lead": None, "builder": "lead", "checker": "lead"} == {a: r["parent"] for a, r in agents.items()}
        assert f"{MULTI}/builder" == agents["builder"]["session"]

    def test_what_nobody_counted_has_no_price(self, run: Run) -> None:
        (line,) = run("stats", MULTI, "--json").json
        assert [None, None] == [line[price]["usd_micros"] for price in ("price", "price_with_agents")]
        assert {None} == {agent["price"]["usd_micros"] for agent in line["agents"]}
        assert "price    ?" in printed(run, "stats", MULTI)

    def test_log_and_show(self, run: Run) -> None:
        assert "Have the clock mended" in printed(run, "log", MULTI)
        assert "the work of sub-001" in printed(run, "log", f"{MULTI}/builder")
        for name in ("tool-001", "sub-001/answer", "msg-005:heard"):
            assert "std-008" in printed(run, "show", f"{MULTI}@{name}")

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            (("tree", MULTI), "└ builder"),
            (("timeline", MULTI), "sub-001/b-001 builder action"),
            (("dialog", MULTI, "lead", "builder"), "Mind the pendulum."),
            (("flow", MULTI), "=> lead tool-002:result in a tool result"),
            (("sequence", MULTI), "lead -> builder sub-001/task"),
            (("perspective", MULTI, "builder"), "[Heard]: [lead]: Mind the pendulum."),
            (("perspective", MULTI, "lead"), "[Said]: Mind the pendulum."),
            (("heard", MULTI, "msg-005"), "builder msg-005:heard"),
            (("knows", MULTI, "builder", "Mind the pendulum."), "builder knows it"),
            (("interventions", MULTI), ""),
        ],
        ids=lambda value: value[0] if isinstance(value, tuple) else "",
    )
    def test_views(self, run: Run, words: tuple[str, ...], expected: str) -> None:
        assert expected in printed(run, "view", *words)

    def test_a_document_can_be_looked_at_without_importing_it(self, run: Run, folder: Path) -> None:
        assert "└ builder" in printed(run, "view", "tree", str(folder / f"{MULTI}.json"))
        assert "builder" in printed(run, "agents", str(folder / f"{MULTI}.json"))

    def test_trace(self, run: Run) -> None:
        assert "tool-002:result lead received" in printed(run, "trace", f"{MULTI}@sub-001/answer")

    def test_numbers_count_every_call_once(self, run: Run) -> None:
        def tools(*words: str) -> dict[str, int]:
            rows = run("sql", "--json", *words).json
            return {row["tool"]: row["calls"] for row in rows}

        counted = "SELECT tool, count(*) AS calls FROM calls GROUP BY tool"
        assert {"Read": 3, "Task": 2, "Edit": 1, "Write": 1} == tools(counted)
        by_tool = printed(run, "stats", "--since", "2026-03-01", "--by", "tool").splitlines()
        assert ["Read 3", "Task 2"] == [" ".join(line.split()[:2]) for line in by_tool[1:3]]
        (told,) = run("stats", MULTI, "--json").json[:1]
        assert {"Task": 2, "Read": 1} == told["tools"]
        agents = run("sql", "--json", "SELECT agent, count(*) AS calls FROM calls GROUP BY agent").json
        assert {"main": 2, "lead": 3, "builder": 1, "checker": 1} == {row["agent"]: row["calls"] for row in agents}

    def test_search(self, run: Run) -> None:
        (found,) = run("search", "pendulum", "--json").json[:1]
        assert MULTI in found["session"]

    def test_export_and_diff(self, run: Run) -> None:
        page = printed(run, "export", MULTI, "--to", "md")
        assert "# Two hands" in page
        assert "Mind the pendulum." in page
        told = printed(run, "diff", SINGLE, MULTI)
        assert "-      user  The clock is an hour late, mend it." in told
        assert "+      user  Have the clock mended, and have it checked." in told

    def test_the_conversation_is_the_main_agents_or_that_of_the_agent_that_is_named(self, run: Run) -> None:
        main = printed(run, "materialize", MULTI, "--format", "anthropic-messages-v1")
        agent = printed(run, "materialize", f"{MULTI}/builder", "--format", "anthropic-messages-v1")
        assert ["Read", "Task", "Task"] == _tools(main)
        assert ["Write"] == _tools(agent)
        assert "[lead]: Mind the pendulum." in agent
        said = [part for m in json.loads(main)["messages"] if m["role"] == "assistant" for part in m["content"]]
        assert ["Mind the pendulum."] == [part["text"] for part in said if part["type"] == "text"]
        _check_pairs(json.loads(main)["messages"])
        (counted,) = run("materialize", MULTI, "--format", "events-v1", "--json").json
        assert (2, []) == (counted["message_count"], counted["losses"])

    @pytest.mark.parametrize("runtime", ["claude-code", "codex"])
    def test_resume(self, run: Run, runtime: str, tmp_path: Path, kept: Repo) -> None:
        home = tmp_path / runtime
        done = run("resume", MULTI, "--in", runtime, "--home", str(home), "--json")
        assert 0 == done.code, done.err
        (path,) = [found for found in home.rglob("*.jsonl") if done.json[0]["session"] in found.name]
        with harken.open("memory:") as other:
            (outcome,) = take(other, path)
            again = other.materialize(outcome.session, format="anthropic-messages-v1").bytes.decode()
        assert 3 == len(_tools(again))
        _check_pairs(json.loads(again)["messages"])
        assert "Have the clock mended, and have it checked." in again
        assert 1 == again.count("Mind the pendulum."), "what it told another agent"

    def test_fork_compact_and_fsck(self, run: Run, tmp_path: Path) -> None:
        summary = tmp_path / "summary.txt"
        summary.write_text("All was done.")
        printed(run, "fork", MULTI, "--name", "side")
        printed(run, "compact", "side", "--summary", str(summary))
        made = printed(run, "materialize", "side", "--format", "anthropic-messages-v1")
        assert [["All was done."]] == [[part["text"] for part in m["content"]] for m in json.loads(made)["messages"]]
        assert "0 findings" in run("fsck").err

    def test_forget(self, run: Run) -> None:
        printed(run, "forget", MULTI, "--yes")
        titles = {row["session"]: row["title"] for row in run("sessions", "--json").json}
        assert "Mend the clock" == titles.pop(SINGLE)
        assert {"(forgotten)"} == set(titles.values())
        assert "pendulum" not in run("search", "pendulum").out
        assert 0 == run("fsck").code


def _tools(messages: str) -> list[str]:
    blocks = [block for message in json.loads(messages)["messages"] for block in message["content"]]
    return [block["name"] for block in blocks if block["type"] == "tool_use"]


def _check_pairs(messages: list[Json]) -> None:
    """Every call is answered in the message behind it, as providers ask for."""
    for place, message in enumerate(messages):
        calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        if calls:
            behind = messages[place + 1]["content"]
            assert calls == [block["tool_use_id"] for block in behind if block["type"] == "tool_result"]


@pytest.mark.parametrize("runtime", ["claude-code", "codex"])
def test_a_document_without_a_prompt_goes_on_from_its_title(repo: Repo, tmp_path: Path, runtime: str) -> None:
    given = {key: value for key, value in single().items() if key != "user_prompt"}
    take(repo, put(tmp_path, given))

    ready = repo.resume(given["session_id"], runtime, cwd=tmp_path, home=tmp_path / "home")

    assert given["task_title"] in Path(ready.path).read_text()
    assert "user_prompt" not in repo.document(given["session_id"]).document.data
