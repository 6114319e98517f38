"""`harken stats`: figures of sessions in the store and in files, alone and together."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harken import runtimes
from harken.context import Tracker, TrackerSettings
from harken.events import Metric, Prompt, Response, Tokens
from harken.events.figures import Figures
from harken.log import Session
from harken.repo import Repo
from harken.runtimes.files import walk
from harken.runtimes.importer import Importer
from harken.runtimes.memory import ImportResult
from harken.store import SessionRow
from support.contexts import keep, turn
from support.plain_count import count_file, one_session, total
from support.recordings import corpus_files, recorded, session_folders
from support.rollouts import Rollout

from .conftest import Run

FIGURES = Figures.__struct_fields__
Record = dict[str, Any]
Lay = Callable[..., Path]


def said(uuid: str, message: str, output: int, block: Record, **more: Any) -> Record:
    usage = {"input_tokens": 10, "output_tokens": output, "cache_read_input_tokens": 100}
    body = {"id": message, "model": "m", "role": "assistant", "content": [block], "usage": usage}
    return {"type": "assistant", "uuid": uuid, "requestId": f"req-{message}", "message": body} | more


def asked(uuid: str, content: Any, **more: Any) -> Record:
    return {"type": "user", "uuid": uuid, "message": {"role": "user", "content": content}} | more


def text(words: str) -> Record:
    return {"type": "text", "text": words}


def talk(**more: Any) -> list[Record]:
    """A person asks, the model answers over two lines and calls a tool, the harness adds something."""
    result = [{"type": "tool_result", "tool_use_id": "t1", "content": "a.txt"}]
    return [
        asked("u1", "what is here?", **more),
        said("a1", "msg_1", 1, text("let me look"), **more),
        said("a2", "msg_1", 40, {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}, **more),
        asked("u2", result, **more),
        asked("u3", "<task-notification>done</task-notification>", **more),
        said("a3", "msg_2", 7, text("a file"), **more),
    ]


def figures(line: Record) -> Record:
    return {key: line[key] for key in FIGURES}


def damage(repo: Repo, statement: str) -> None:
    """Change a row behind the store's back."""
    with contextlib.closing(sqlite3.connect(str(repo.store.location))) as connection:
        assert 1 == connection.execute(statement).rowcount
        connection.commit()


@pytest.fixture
def lay(tmp_path: Path, repo: Repo) -> Lay:
    """Write a session's file and import everything that was written."""

    def write(name: str, session: str, records: list[Record]) -> Path:
        path = tmp_path / "projects" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        stamped = [
            {"sessionId": session, "parentUuid": None, "timestamp": f"2026-01-01T00:00:{at:02}Z"} | record
            for at, record in enumerate(records)
        ]
        path.write_text("".join(json.dumps(record) + "\n" for record in stamped))
        list(Importer(repo.store, [runtimes.get("claude-code")]).run(walk(path)))
        return path

    return write


def test_a_session_is_one_line_with_the_keys_others_rely_on(lay: Lay, run: Run) -> None:
    lay("one.jsonl", "one", talk())

    (line,) = run("stats", "one", "--json").json

    assert {"input": 20, "output": 47, "cache_read": 200, "cache_write": None} == line["usage"]
    assert {"human": 1, "injected": 1, "tool_result": 1} == line["prompts"]
    assert {"Bash": 1} == line["tools"]
    assert (0, None) == (line["compactions"], line["cost_usd_micros"])


def test_a_file_has_the_figures_of_its_session(lay: Lay, run: Run) -> None:
    path = lay("one.jsonl", "one", talk())

    (stored,), (read,) = run("stats", "one", "--json").json, run("stats", str(path), "--json").json

    assert stored["usage"] == read["usage"]
    assert stored["prompts"] == read["prompts"]


def test_what_a_fork_copied_counts_once_in_the_total(lay: Lay, run: Run) -> None:
    lay("one.jsonl", "one", talk())
    lay("two.jsonl", "two", [*talk(), asked("u9", "and then?"), said("a9", "msg_9", 5, text("nothing"))])

    one, two, last = run("stats", "one", "two", "--json").json

    assert (47, 52) == (one["usage"]["output"], two["usage"]["output"])
    assert 52 == last["total"]["usage"]["output"]
    assert {"human": 2, "injected": 1, "tool_result": 1} == last["total"]["prompts"]
    assert {"Bash": 1} == last["total"]["tools"]


def test_sub_agents_stand_beneath_their_session(lay: Lay, run: Run) -> None:
    lay("one.jsonl", "one", talk())
    side = {"isSidechain": True, "agentId": "x1"}
    lay(
        "one/subagents/agent-x1.jsonl", "one", [asked("s1", "count", **side), said("s2", "msg_s", 3, text("3"), **side)]
    )

    (line,) = run("stats", "one", "--json").json
    (alone,) = run("stats", "one", "--no-agents", "--json").json

    assert 47 == line["usage"]["output"] == alone["usage"]["output"]
    assert [3] == [agent["usage"]["output"] for agent in line["agents"]]
    assert 50 == line["with_agents"]["usage"]["output"]
    assert 1 == line["with_agents"]["prompts"]["human"], "nobody types to a sub-agent"
    assert [] == (alone)["agents"]


def test_sub_agents_inside_a_file_stand_beneath_their_session_too(lay: Lay, run: Run) -> None:
    side = {"isSidechain": True, "agentId": "x1"}
    path = lay("one.jsonl", "one", [*talk(), asked("s1", "count", **side), said("s2", "msg_s", 3, text("3"), **side)])

    (line,) = run("stats", "one", "--json").json
    (alone,) = run("stats", "one", "--no-agents", "--json").json

    assert (47, 1) == (line["usage"]["output"], line["prompts"]["injected"])
    assert {key: line[key] for key in FIGURES} == {key: alone[key] for key in FIGURES}
    assert count_file(path, own=True).figures() == picked(line)
    assert [(3, 1)] == [(agent["usage"]["output"], agent["prompts"]["injected"]) for agent in line["agents"]]
    assert (50, 2) == (line["with_agents"]["usage"]["output"], line["with_agents"]["prompts"]["injected"])
    assert [4, 2] == [row["messages"] for row in run("sessions", "--json").json]
    assert [4, 2] == [row["messages"] for row in run("agents", "one", "--json").json]


@pytest.mark.parametrize("place", ["one/subagents/agent-x1.jsonl", "agent-x1.jsonl", "one.jsonl"])
def test_a_file_has_the_sub_agents_of_its_session(
    lay: Lay, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    """Beside it or inside it; the agents of another session that lie there are none of its own."""
    side = {"isSidechain": True, "agentId": "x1"}
    agent = [asked("s1", "count", **side), said("s2", "msg_s", 3, text("3"), **side)]
    path = lay("one.jsonl", "one", [*talk(), *(agent if place == "one.jsonl" else [])])
    if place != "one.jsonl":
        lay(place, "one", agent)
    lay("agent-x9.jsonl", "two", [asked("s9", "one", isSidechain=True, agentId="x9")])
    (stored,), stored_agents = run("stats", "one", "--json").json, run("agents", "one", "--json").json

    (read,), agents = run("stats", str(path), "--json").json, run("agents", str(path), "--json").json
    monkeypatch.chdir(path.parent)
    assert agents == run("agents", path.name, "--json").json, "named from where it lies"
    monkeypatch.setenv("HARKEN_STORE", str(tmp_path / "none.db"))
    unknown = run("agents", str(path), "--json").json

    assert [figures(stored), *map(figures, stored["agents"])] == [figures(read), *map(figures, read["agents"])]
    assert stored["with_agents"] == read["with_agents"]
    assert [(read["session"], 47), 3] == [(str(path), read["usage"]["output"]), read["agents"][0]["usage"]["output"]]
    assert stored_agents == agents
    assert ["claude-code", "x1"] == [each["agent"] for each in agents]
    assert [each | {"session": None, "tip": None} for each in agents] == unknown


class TestACostOfSeveral:
    """What Claude Code says that a session cost is what its process did, sub-agents included."""

    @pytest.fixture(autouse=True)
    def family(self, lay: Lay) -> None:
        side = {"isSidechain": True, "agentId": "x1"}
        records = [asked("s1", "count", **side), said("s2", "msg_s", 3, text("3"), **side)]
        lay("one.jsonl", "one", [*talk(), {"type": "cost-state", "totalCostUSD": 0.75}])
        lay("one/subagents/agent-x1.jsonl", "one", records)

    def test_is_known_together_and_of_none_alone(self, run: Run) -> None:
        (line,) = run("stats", "one", "--json").json

        assert (750_000, 0) == (line["with_agents"]["cost_usd_micros"], line["unknown_costs"])
        assert [None, None] == [each["cost_usd_micros"] for each in (line, *line["agents"])]

    def test_is_exact_for_a_reader_and_in_a_total(self, lay: Lay, run: Run) -> None:
        costs = [line.split()[-1] for line in run("stats", "one").lines if line.split()[0] == "cost"]
        lay("two.jsonl", "two", [asked("u7", "hello"), {"type": "cost-state", "totalCostUSD": 0.5}])

        total = run("stats", "--json").json[-1]["total"]

        assert ["?", "?", "$0.7500"] == costs
        assert (1_250_000, 0) == (total["cost_usd_micros"], total["unknown_costs"])

    def test_is_nobodys_without_the_sub_agents(self, lay: Lay, run: Run) -> None:
        lay("two.jsonl", "two", [asked("u7", "hello"), {"type": "cost-state", "totalCostUSD": 0.5}])

        one, two, last = run("stats", "--no-agents", "--json").json

        assert (None, 1) == (one["cost_usd_micros"], one["unknown_costs"])
        assert (500_000, 0) == (two["cost_usd_micros"], two["unknown_costs"])
        assert (500_000, 1) == (last["total"]["cost_usd_micros"], last["total"]["unknown_costs"])

    def test_includes_what_a_request_of_a_sub_agent_cost(self, lay: Lay, run: Run) -> None:
        side = {"isSidechain": True, "agentId": "x2", "costUSD": 0.25}
        lay("one/subagents/agent-x2.jsonl", "one", [said("s3", "msg_t", 3, text("3"), **side)])

        (line,) = run("stats", "one", "--json").json

        assert [None, None, 250_000] == [each["cost_usd_micros"] for each in (line, *line["agents"])]
        assert 750_000 == line["with_agents"]["cost_usd_micros"]

    def test_does_not_include_a_process_of_its_own(self, lay: Lay, run: Run) -> None:
        side = {"isSidechain": True, "agentId": "x1"}
        told = {"type": "cost-state", "totalCostUSD": 0.25}
        records = [asked("s1", "count", **side), said("s2", "msg_s", 3, text("3"), **side), told]
        lay("one/subagents/agent-x1.jsonl", "one", records)

        (line,) = run("stats", "one", "--json").json

        assert [750_000, 250_000] == [each["cost_usd_micros"] for each in (line, *line["agents"])]
        assert 1_000_000 == line["with_agents"]["cost_usd_micros"]


class TestWhatCannotBeRead:
    """It is said, with an exit code of its own, after everything else was answered."""

    def test_a_row_costs_its_own_session_only(self, lay: Lay, run: Run, repo: Repo) -> None:
        for name in ("one", "two", "six"):
            lay(f"{name}.jsonl", name, [asked(f"u-{name}", "hello"), said(f"a-{name}", f"m-{name}", 7, text("hi"))])
        damage(repo, "UPDATE sessions SET title = 'forged' WHERE session = 'one'")

        done, drawn = run("stats", "--json"), run("stats", "--since", "2020-01-01")

        assert (9, 9) == (done.code, drawn.code)
        assert {"two", "six", None} == {line.get("session") for line in done.json}
        assert (2, 14) == (done.json[-1]["total"]["sessions"], done.json[-1]["total"]["usage"]["output"])
        assert "'one'" in done.err
        assert "two" == run("stats", "two", "one", "--json").json[0]["session"]

    def test_evicted_bytes_cost_their_own_session_only(self, lay: Lay, run: Run, repo: Repo) -> None:
        for name in ("one", "two", "six"):
            lay(f"{name}.jsonl", name, [asked(f"u-{name}", "hello"), said(f"a-{name}", f"m-{name}", 7, text("hi"))])
        with repo.store.write() as writer:
            writer.evict(repo.commit("one").artifact)

        done, drawn = run("stats", "--json"), run("stats", "--since", "2020-01-01")

        assert (3, 3) == (done.code, drawn.code)
        assert {"two", "six", None} == {line.get("session") for line in done.json}
        assert "evicted" in done.err
        assert "2 sessions" in drawn.out

    def test_bytes_cost_their_own_agent_only(self, lay: Lay, run: Run, repo: Repo) -> None:
        side = {"isSidechain": True, "agentId": "x1"}
        lay("one.jsonl", "one", talk())
        lay("one/subagents/agent-x1.jsonl", "one", [asked("s1", "count", **side)])
        n = f"SELECT n FROM artifacts WHERE id = x'{repo.commit('one/x1').artifact.removeprefix('b3:')}'"
        damage(repo, f"UPDATE artifacts SET size = size - 1 WHERE n = ({n})")

        done = run("stats", "one", "--json")

        assert 9 == done.code
        assert [(47, [])] == [(line["usage"]["output"], line["agents"]) for line in done.json]


def test_an_agent_below_an_agent_of_a_file_stands_below_it(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with Session(path) as session:
        made_by = None
        for agent in ("root", "ann", "sub"):
            session.log_agent_created(agent, made_by, agent)
            call = {"id": "c", "type": "function", "function": {"name": "task", "arguments": "{}"}}
            made_by = session.log_transcript_entry(agent, {"role": "assistant", "tool_calls": [call]})

    (told,) = run("stats", str(path), "--json").json

    assert [str(path), f"{path}#ann"] == [agent["parent"] for agent in told["agents"]]


def test_without_a_session_all_are_counted(lay: Lay, run: Run) -> None:
    lay("one.jsonl", "one", talk())
    lay("two.jsonl", "two", [asked("u7", "hello"), said("a7", "msg_7", 2, text("hi"))])

    *lines, last = run("stats", "--json").json

    assert {"one", "two"} == {line["session"] for line in lines}
    assert (2, 49) == (last["total"]["sessions"], last["total"]["usage"]["output"])


def test_a_session_named_twice_counts_once(lay: Lay, run: Run) -> None:
    lay("one.jsonl", "one", talk())

    assert 1 == len(run("stats", "one", "one", "--json").json)


@pytest.mark.parametrize("columns", ["40", "200"])
def test_a_person_sees_the_figures_at_any_width(
    lay: Lay, run: Run, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    lay("one.jsonl", "one", talk())
    lay("two.jsonl", "two", [asked("u7", "hello"), said("a7", "msg_7", 2, text("hi"))])
    monkeypatch.setenv("COLUMNS", columns)

    done = run("stats", "one", "two")

    assert "total of 2" in done.out
    assert "49" in done.out.split("total of 2")[1]
    assert "\x1b" not in done.out
    assert max(map(len, done.lines)) <= int(columns)


def test_an_unknown_session_is_not_found(run: Run) -> None:
    assert 3 == run("stats", "nobody").code


def test_a_file_in_no_format_is_refused(run: Run, tmp_path: Path) -> None:
    strange = tmp_path / "notes.txt"
    strange.write_text("just words")

    done = run("stats", str(strange))

    assert 2 == done.code
    assert "no format" in done.err


def test_an_empty_store_says_so(run: Run, repo: Repo) -> None:
    done = run("stats", "--json")

    assert (0, []) == (done.code, done.json)
    assert "harken import" in done.err


# -- real sessions -----------------------------------------------------------------------------------------------------


KEYS = ("usage", "prompts", "tools", "compactions")


def import_all(repo: Repo, *folders: Path) -> dict[str, ImportResult]:
    importer = Importer(repo.store, [runtimes.get(name) for name in runtimes.names()])
    return {outcome.source: outcome for folder in folders for outcome in importer.run(walk(folder))}


def picked(line: Record) -> Record:
    return {key: line[key] for key in KEYS}


def test_import_and_stats_and_a_count_that_knows_nothing_of_harken_agree_on_every_real_file(
    repo: Repo, run: Run
) -> None:
    """Each file by itself, and all of them together, where copies and embedded figures count once."""
    folders = [*session_folders("claude-code"), *session_folders("codex")]
    imported = {line["source"]: line for line in run("import", *map(str, folders), "--json").json if "source" in line}
    *lines, last = run("stats", "--json").json
    counted = {row["session"]: row for line in lines for row in (line, *line.get("agents", ()))}
    assert sum(1 for folder in folders for _ in folder.rglob("*.jsonl")) == len(imported)
    # Several files of one session are one count, which the last of them to be imported tells; the one it stands at is
    # counted first.
    standing = {row.session: row.source for row in repo.sessions()}
    files: dict[str, list[str]] = {}
    for source, line in sorted(imported.items(), key=lambda item: standing[item[1]["session"]] != item[0]):
        files.setdefault(line["session"], []).append(source)
    plain = {name: one_session(count_file(Path(source)) for source in sources) for name, sources in files.items()}
    inside = {row.parent for row in repo.sessions() if "#" in row.source}
    for session, line in {line["session"]: line for line in imported.values()}.items():
        stats = counted[session]
        assert plain[session].figures() == picked(line), session
        own = one_session(count_file(Path(source), own=True) for source in files[session])
        assert own.figures() == picked(stats), session
        # What a process says it cost is the cost of a session and its agents.
        together = {"cost_usd_micros": (stats["with_agents"] or stats)["cost_usd_micros"]}
        assert session in inside or stats | together == stats | {key: line[key] for key in FIGURES}, session
    # A record that two files have under one name is what the one says that made it; then, what the first line says.
    makers_first = sorted(counted, key=lambda session: counted[session]["carried"] is not None)
    assert total(plain[session] for session in makers_first if session in plain) == picked(last["total"])
    claude = [count for count in plain.values() if count.lines]
    naive = sum(row["input"] or 0 for count in claude for row in count.lines)
    assert naive > 1.2 * total(claude)["usage"]["input"], "a sum over lines is too high"


def test_sub_agents_and_their_session_are_one_sum(repo: Repo, run: Run) -> None:
    import_all(repo, *session_folders("claude-code"))
    families = [line for line in run("stats", "--json").json if line.get("agents")]
    sources = {row.session: row.source for row in repo.sessions()}

    assert families
    for line in families:
        names = [line["session"], *(agent["session"] for agent in line["agents"])]
        files = [Path(sources[name]) for name in names if "#" not in sources[name]]
        assert total(map(count_file, files)) == picked(line["with_agents"]), line["session"]


class TestSeveralVersions:
    """Every request of every version of a session that is in the store counts once."""

    def agree(self, run: Run, line: Record, *versions: Path) -> None:
        (own,) = run("stats", line["session"], "--json").json
        assert one_session(map(count_file, versions)).figures() == picked(line)
        assert own == own | {key: line[key] for key in FIGURES}

    def test_a_rewritten_file(self, tmp_path: Path, lay: Lay, run: Run) -> None:
        path = lay("one.jsonl", "one", [*talk(), asked("u4", "more"), said("a4", "msg_4", 9, text("taken back"))])
        old = tmp_path / "old.jsonl"
        old.write_bytes(path.read_bytes())
        lay("one.jsonl", "one", [*talk(), asked("u5", "other"), said("a5", "msg_5", 100, text("kept"))])
        (line, _) = run("import", str(path), "--json").json

        self.agree(run, line, path, old)
        assert (47 + 9 + 100, 3) == (line["usage"]["output"], line["prompts"]["human"])

    @pytest.mark.parametrize("order", [(0, 1), (1, 0)])
    def test_going_back_in_codex(self, tmp_path: Path, run: Run, order: tuple[int, int]) -> None:
        id = "019b88e5-a2e4-7b90-8953-000000000001"
        first = Rollout(id=id).turn("one")
        position = {"thread_id": id, "end_ordinal_exclusive": 7, "end_byte_offset": len(first.data)}
        first.turn("two, taken back")
        second = Rollout(bare=True)
        second.lines = [b""] * 40
        second.meta(id=id, history_base=position).turn("three")
        paths = [tmp_path / f"rollout-2026-01-02T00-00-0{at}-{id}.jsonl" for at in range(2)]
        paths[0].write_bytes(first.data)
        paths[1].write_bytes(b"".join(second.lines[40:]))
        for at in order:
            line, _ = run("import", str(paths[at]), "--json").json

        self.agree(run, line, *reversed(paths))
        assert 3 == line["prompts"]["human"]

    def test_a_rewritten_rollout(self, tmp_path: Path, run: Run) -> None:
        id = "019b88e5-a2e4-7b90-8953-000000000001"
        path, old = (tmp_path / at / f"rollout-2026-01-02T00-00-00-{id}.jsonl" for at in "ab")
        for file, words in ((old, "taken back"), (path, "kept instead")):
            file.parent.mkdir()
            file.write_bytes(Rollout(id=id).turn("one").turn(words).data)
        path.write_bytes(old.read_bytes())
        run("import", str(path))
        path.write_bytes(Rollout(id=id).turn("one").turn("kept instead").data)
        line, _ = run("import", str(path), "--json").json

        self.agree(run, line, path, old)
        assert 3 == line["prompts"]["human"], "what both versions have counts once"

    def test_what_only_a_live_recording_has(self, repo: Repo, tmp_path: Path, lay: Lay, run: Run) -> None:
        path = lay("one.jsonl", "one", talk())
        row = SessionRow(session="one", runtime="claude-code")
        tracker = Tracker(repo, TrackerSettings(session_id="one", branch="live/one", row=row))
        metric = Metric(api_id="msg_x", request_id="r", output_tokens=1000, time=9_000_000)
        tracker.feed([Prompt(content="late", time=8_000_000), Response(content="late!", time=9_000_000), metric])
        tracker.close()
        line, _ = run("import", str(path), "--json").json

        (own,) = run("stats", "one", "--json").json
        assert own == own | {key: line[key] for key in FIGURES}
        assert (1047, 2) == (line["usage"]["output"], line["prompts"]["human"])


GROWING = {each.name: (each.path.name, each.growing()) for each in recorded() if len(each.steps) > 1} | {
    folder.name: ("grown.jsonl", [path.read_bytes() for path in sorted(folder.iterdir())])
    for folder in corpus_files("claude_code_growth/*/*")
}


@pytest.mark.parametrize("series", GROWING)
def test_a_session_that_was_imported_as_it_grew_has_the_figures_of_a_fresh_one(
    tmp_path: Path, run: Run, series: str
) -> None:
    name, steps = GROWING[series]
    path = tmp_path / name
    for step in steps:
        path.write_bytes(step)
        grown = run("import", str(path), "--json").json[0]

        assert count_file(path).figures() == picked(grown), len(step)
        (line,) = run("stats", grown["session"], "--json").json
        whole = line["with_agents"] or line
        assert whole == whole | {key: grown[key] for key in FIGURES}


@pytest.mark.parametrize("columns", ["60", "200"])
def test_a_total_with_unknown_costs_says_that_it_is_partial(
    repo: Repo, run: Run, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    keep(repo, [*turn(0), Metric(cost_usd=7.95, status="success")], session_id="one", template="harken")
    keep(repo, turn(1), session_id="two", template="harken")

    done = run("stats", "one", "two")

    assert "?" in done.out
    assert ">= $7.95" in done.out
    assert "cost at least $7.9500, unknown for 1 of 2" == done.lines[-1]
    assert 1 == run("stats", "--json").json[-1]["total"]["unknown_costs"]


@pytest.mark.parametrize("api_id", ["", "the same"])
def test_each_reply_of_a_session_log_is_a_request_whatever_the_provider_calls_it(
    tmp_path: Path, run: Run, api_id: str
) -> None:
    paths = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    for path in paths:
        with Session(path) as session:
            session.log_agent_created("a", role="root")
            for words in ("one", "two", "three"):
                said = session.log_transcript_entry("a", {"role": "assistant", "content": words})
                metric = Metric(agent_id="a", cause=said, model="m", api_id=api_id, cost_usd=0.5)
                session.append([metric.with_tokens(Tokens(input=10, output=1))])

    one, two, last = run("stats", *map(str, paths), "--json").json

    assert (3, 3) == (one["requests"], two["requests"])
    assert {"m": {"input": 30, "output": 3, "cache_read": None, "cache_write": None}} == one["models"]
    assert one["models"]["m"] == one["usage"]
    assert 1_500_000 == one["cost_usd_micros"]
    if not api_id:  # with an id that several replies share, nobody can tell whether the second file is a copy
        assert 6 == last["total"]["requests"]
