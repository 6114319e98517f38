"""The numbers in the index are those of `Repo.stats`, in whatever order sessions came."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.analytics.prices import micros
from harken.events import Tokens
from harken.formats.std.document import write
from harken.repo import Repo
from harken.repo.counting import TotalFigures
from support import traces
from support.claude_lines import assistant, call, dump, result, user
from support.copilot_lines import SESSION, CopilotSession
from support.double_counting import CASES, OPUS, Case, Used, answered, claude, name, said
from support.qwen_lines import SESSION as QWEN
from support.qwen_lines import QwenSession
from support.qwen_lines import answer as qwen_answer
from support.qwen_lines import call as qwen_call

DAILY = "SELECT model, cost, unpriced FROM daily WHERE model != ''"
RECORDED = Path(__file__).parents[1] / "recorded"
SUMS = "SELECT sum(input), sum(output), sum(cache_read), sum(coalesce(cache_write_5m, 0) + coalesce(cache_write_1h, 0))"


def counted(repo: Repo) -> list[int]:
    repo.index.catch_up()
    assert [] == repo.index.query("SELECT problem FROM figures WHERE problem != ''")
    ((*sums,),) = repo.index.query(f"{SUMS} FROM usage WHERE counted")
    return [each or 0 for each in sums]


def total(repo: Repo) -> list[int]:
    *_, last = repo.stats()
    figures = last.figures
    usage = figures.usage if isinstance(last, TotalFigures) or last.with_agents is None else last.with_agents.usage
    return [getattr(usage, name) or 0 for name in Tokens.__struct_fields__]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repo]:
    with harken.open(tmp_path_factory.mktemp("recorded") / "store.db") as repo:
        list(repo.import_sessions([RECORDED]))
        yield repo


def test_the_sum_over_what_is_counted_is_the_total(recorded: Repo) -> None:
    assert total(recorded) == counted(recorded) != [0, 0, 0, 0]


class TestNothingIsCountedTwice:
    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
    @pytest.mark.parametrize("order", [1, -1], ids=["first to last", "last to first"])
    def test_tokens_and_cost_are_those_that_were_used(self, case: Case, order: int, tmp_path: Path) -> None:
        used = case.write(tmp_path)
        with harken.open("memory:") as repo:
            for path in sorted(tmp_path.rglob("*.jsonl"))[::order]:
                list(repo.import_sessions([path]))
                repo.index.catch_up()

            assert tokens(used) == counted(repo) == total(repo)
            ((cost,),) = repo.index.query("SELECT sum(cost) FROM usage WHERE counted")
            assert round(sum(one.micros for one in used)) == micros(cost)


@pytest.mark.parametrize("order", [1, -1], ids=["the call first", "the result first"])
def test_a_call_has_its_result_whichever_file_came_first(tmp_path: Path, order: int) -> None:
    (tmp_path / "1.jsonl").write_bytes(dump(user("u1", None, "go"), assistant("a1", "u1", [call("c1")], "m1", 1)))
    (tmp_path / "2.jsonl").write_bytes(dump(result("r1", "a1", "c1", 4)))
    with harken.open(tmp_path / "store.db") as repo:
        for path in (tmp_path / "1.jsonl", tmp_path / "2.jsonl")[::order]:
            list(repo.import_sessions([path]))
            repo.index.catch_up()

        assert [("c1", 0, 3.0)] == repo.sql("SELECT call_id, failed, seconds FROM calls").rows
        (spent, _) = repo.usage()
        assert (1, 3_000_000) == (spent.total().calls, spent.total().took)


def test_so_has_that_of_a_sub_agent(tmp_path: Path) -> None:
    by_agent = {"isSidechain": True, "agentId": "ab12"}
    (tmp_path / "2.jsonl").write_bytes(dump(result("r1", "a1", "c1", 4, **by_agent)))
    asked = assistant("a1", "u1", [call("c1")], "m1", 1, **by_agent)
    (tmp_path / "3.jsonl").write_bytes(dump(user("u1", None, "go", **by_agent), asked))
    with harken.open(tmp_path / "store.db") as repo:
        list(repo.import_sessions([tmp_path / "2.jsonl"]))
        list(repo.import_sessions([tmp_path / "3.jsonl"]))

        assert [("ab12", 0, 3.0)] == repo.sql("SELECT agent, failed, seconds FROM calls").rows


def test_a_call_by_an_id_that_was_answered_before_has_no_result(tmp_path: Path) -> None:
    called = [user("u1", None, "go"), assistant("a1", "u1", [call("c1")], "m1", 1), result("r1", "a1", "c1", 4)]
    (tmp_path / "1.jsonl").write_bytes(dump(*called, assistant("a2", "r1", [call("c1")], "m2", 5)))
    with harken.open(tmp_path / "store.db") as repo:
        list(repo.import_sessions([tmp_path / "1.jsonl"]))

        assert [("a1", 0), ("a2", None)] == repo.sql("SELECT message, failed FROM calls ORDER BY time").rows


@pytest.mark.parametrize("runtime", ["claude-code", "codex"])
def test_what_a_resume_carries_over_counts_where_it_was_made(tmp_path: Path, runtime: str) -> None:
    used = Used(OPUS, 10, 200, 3000, 400, 50)
    claude(tmp_path, name(1), said(name(1), 1), answered(name(1), 2, used, "msg_1"))
    with harken.open(tmp_path / "store.db") as repo:
        list(repo.import_sessions([tmp_path / "claude"]))
        repo.resume(name(1), runtime, cwd=tmp_path, home=tmp_path / "home", environ={})
        list(repo.import_sessions([tmp_path / "home"]))

        assert tokens([used]) == counted(repo) == total(repo)
        assert 2 == len(repo.sessions())


def tokens(used: list[Used]) -> list[int]:
    columns = [*zip(*used, strict=True)][1:]
    given, output, read, for_minutes, for_an_hour = (sum(map(int, column)) for column in columns)
    return [given, output, read, for_minutes + for_an_hour]


def test_whatever_stands_in_a_session_is_counted_and_stops_no_other(tmp_path: Path) -> None:
    odd = answered(name(1), 3, Used(OPUS, 1, 1), "msg_\ud800")
    given = {"file_path": "/a/\ud800", "model": "\udfff"}
    odd["message"]["content"] = [{"type": "tool_use", "id": "\ud800", "name": "Re\ud800ad", "input": given}]
    odd["message"]["model"] = "m\ud800"
    boundary = said(name(1), 4) | {"type": "system", "subtype": "compact_boundary"}
    boundary["compactMetadata"] = {"trigger": "\ud800", "preTokens": 1e400}
    claude(tmp_path, name(1), said(name(1), 1), odd, boundary)
    claude(tmp_path, name(2), said(name(2), 1), answered(name(2), 2, Used(OPUS, 10, 20), "msg_2"))
    with harken.open("memory:") as repo:
        list(repo.import_sessions([tmp_path]))

        assert [11, 21, 0, 0] == counted(repo)


class TestASum:
    def test_of_calls_takes_an_id_for_one_call_in_its_session_only(self, tmp_path: Path) -> None:
        for session in (1, 2):
            claude(tmp_path, name(session), said(name(session), 1), called(session, 2, "call_1"))
        with harken.open("memory:") as repo:
            list(repo.import_sessions([tmp_path]))

            assert 2 == repo.usage()[0].total().calls

    def test_of_calls_has_one_once_that_another_record_tells_again(self, tmp_path: Path) -> None:
        first = called(1, 2, "call_1")
        claude(tmp_path, name(1), said(name(1), 1), first, first | {"uuid": name(99)})
        with harken.open("memory:") as repo:
            list(repo.import_sessions([tmp_path]))

            assert 1 == repo.usage()[0].total().calls
            assert 2 == len(repo.index.query("SELECT message FROM calls"))

    def test_of_calls_has_those_whose_time_nobody_said(self, tmp_path: Path) -> None:
        timeless = called(1, 2, "call_1")
        del timeless["timestamp"]
        claude(tmp_path, name(1), said(name(1), 1), timeless)
        with harken.open("memory:") as repo:
            list(repo.import_sessions([tmp_path]))

            assert 1 == repo.usage(since=0)[0].total().calls

    def test_of_what_nobody_counted_is_unknown(self, tmp_path: Path) -> None:
        silent = answered(name(1), 2, Used(OPUS, 10, 20), "msg_1")
        silent["message"]["usage"] = {"input_tokens": 10, "output_tokens": 20}
        claude(tmp_path, name(1), said(name(1), 1), silent)
        with harken.open("memory:") as repo:
            list(repo.import_sessions([tmp_path]))

            assert Tokens(input=10, output=20) == repo.usage()[0].total().tokens
            assert [(None, None)] == repo.sql("SELECT cache_read, cache_write FROM daily").rows

    def test_that_is_too_large_stops_no_other(self, tmp_path: Path) -> None:
        many = [answered(name(1), n, Used("nobody-knows", 2**53 - 1, 1), f"msg_{n}") for n in range(2, 1100)]
        dear = [answered(name(2), n, Used(OPUS, 10, 15 * 10**10), f"msg_2{n}") for n in range(2, 6)]
        claude(tmp_path, name(1), said(name(1), 1), *many)
        claude(tmp_path, name(2), said(name(2), 1), *dear)
        with harken.open("memory:") as repo:
            list(repo.import_sessions([tmp_path]))

            by_model = {group.key: group.spending.tokens.possible for group in repo.usage()[0].groups("model")}
            assert (None, 40) == (by_model["nobody-knows"].input, by_model[OPUS].input)
            assert [(15e6 + 0.0002,)] == repo.sql(f"SELECT cost FROM daily WHERE model = '{OPUS}'").rows
            assert [(15e6 + 0.0002,)] == repo.sql(f"SELECT cost FROM sessions WHERE session = '{name(2)}'").rows


def called(session: int, number: int, call: str) -> dict[str, Any]:
    record = answered(name(session), number, Used(OPUS, 1, 1), f"msg_{session}{number}")
    record["message"]["content"] = [{"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "ls"}}]
    return record


def test_a_sub_agent_whose_session_is_not_there_stands_for_itself(tmp_path: Path) -> None:
    side = {"isSidechain": True, "agentId": "a1"}
    lines = [said(name(1), 1, **side), answered(name(1), 2, Used(OPUS, 10, 20), "msg_1", **side)]
    claude(tmp_path, name(1), *lines, below=f"{name(1)}/subagents/agent-a1.jsonl")
    with harken.open("memory:") as repo:
        list(repo.import_sessions([tmp_path]))

        (group,) = repo.usage()[0].groups("session")
        assert [group.key] == [row.session for row in repo.sessions()]


def test_what_was_forgotten_is_in_no_number_and_no_problem(tmp_path: Path) -> None:
    for session in (1, 2):
        used = Used(OPUS, 10, 20)
        claude(tmp_path, name(session), said(name(session), 1), answered(name(session), 2, used, f"msg_{session}"))
    with harken.open(tmp_path / "store.db") as repo:
        list(repo.import_sessions([tmp_path]))
        repo.forget(name(1))

        spent, _ = repo.usage()
        assert ([], [name(2)]) == (spent.problems(), [group.key for group in spent.groups("session")])


def test_a_day_says_what_stats_says(tmp_path: Path) -> None:
    told = {"type": "cost-state", "sessionId": name(1), "totalCostUSD": 0.5, "modelUsage": {}}
    side = {"isSidechain": True, "agentId": "a1", "cwd": ""}
    claude(tmp_path, name(1), said(name(1), 1), answered(name(1), 2, Used(OPUS, 10, 20), "msg_1"), told)
    lines = [said(name(1), 11, **side), answered(name(1), 12, Used(OPUS, 1, 2), "msg_2", **side)]
    claude(tmp_path, name(1), *lines, below=f"{name(1)}/subagents/agent-a1.jsonl")
    with harken.open("memory:") as repo:
        list(repo.import_sessions([tmp_path]))

        whole = repo.usage()[0].total()
        ((requests, unpriced),) = repo.sql("SELECT sum(requests), sum(unpriced) FROM daily").rows
        assert (2, 0) == (requests, unpriced) == (whole.requests, len(whole.unpriced))
        assert [("/work/demo",)] == repo.sql("SELECT DISTINCT project FROM daily").rows


def test_a_request_that_two_traces_tell_is_one(tmp_path: Path) -> None:
    used = {"gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 50}
    spoken = {
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "Hi."}]}])
    }
    about = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", **spoken, **used}
    for place in (1, 2):
        told = traces.span("c1", "chat m", about, trace=f"{place:032x}")
        (tmp_path / f"{place}.json").write_bytes(traces.document(told))
    with harken.open("memory:") as repo:
        list(repo.import_sessions([tmp_path]))

        *_, line = repo.stats()
        whole = repo.usage()[0].total()
        assert (2, 1, 150) == (len(repo.sessions()), whole.requests, whole.tokens.input + whole.tokens.output)
        assert 1 == line.figures.requests
        assert total(repo) == counted(repo)


class TestOnlyTheOutput:
    """Copilot CLI before 1.0.70 says what went into its requests when it ends; one that was killed never says it."""

    def test_a_session_that_was_killed_has_no_price(self, tmp_path: Path) -> None:
        session = CopilotSession()
        session.prompt("Hello?")
        said = {"messageId": "m", "content": "Hello.", "model": "claude-sonnet-4-5", "outputTokens": 10}
        session.add("assistant.message", said)
        used = {"inputTokens": 1000, "outputTokens": 10, "cacheReadTokens": 0, "cacheWriteTokens": 0}
        killed = session.data
        session.add("session.shutdown", {"modelMetrics": {"claude-sonnet-4-5": {"usage": used}}})

        assert (None, [("claude-sonnet-4-5", None, 1)], 1) == self.prices(tmp_path / "killed", killed)
        assert (3150, [("claude-sonnet-4-5", 0.00315, 0)], 0) == self.prices(tmp_path / "ended", session.data)

    def prices(self, folder: Path, data: bytes) -> tuple[Any, ...]:
        """What the session cost, by model, and how many requests nobody knows the price of."""
        path = folder / SESSION / "events.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
        (mine := folder / "mine.toml").write_text('[[model]]\nname = "claude-sonnet-4-5"\ninput = 3\noutput = 15\n')
        with harken.open("memory:") as repo:
            list(repo.import_sessions([path]))
            (line,) = repo.stats([SESSION])
            [found] = repo.usage()[0].groups("model")
            assert line.price.usd_micros == found.spending.price_usd_micros
            assert 1 == line.figures.requests == found.spending.requests
            assert found == repo.usage(prices=str(mine))[0].groups("model")[0]
            rows, same = (repo.sql(DAILY, prices=prices).rows for prices in ("", str(mine)))
            assert rows == same
            return line.price.usd_micros, [tuple(row) for row in rows], sum(line.price.unpriced.values())


class TestAgentsOfQwenCode:
    """A sub-agent's file names no model; the telemetry of the session that started it tells the same requests."""

    @pytest.fixture(params=[1, -1], ids=["the session first", "the agent first"])
    def repo(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Repo]:
        agent, main = QwenSession(agent="general-purpose-c3"), QwenSession()
        main.user("Look.").says(qwen_call("c3", "agent", prompt="SUB: look")).result(qwen_answer("c3", "agent"))
        main.asked(subagent_id="general-purpose-c3", subagent_name="general-purpose").says("It is back.")
        agent.user("SUB: look").says("SUB: done")
        for record in agent.records:
            record.pop("model", None)
        project = tmp_path / "projects" / "-home-me-proj"
        files = {
            project / "chats" / f"{QWEN}.jsonl": main.data,
            project / "subagents" / QWEN / "agent-general-purpose-c3.jsonl": agent.data,
        }
        with harken.open("memory:") as repo:
            for path, data in list(files.items())[:: request.param]:
                path.parent.mkdir(parents=True)
                path.write_bytes(data.replace(b"test-model", b"claude-sonnet-4-5"))
                list(repo.import_sessions([path]))
                repo.index.catch_up()
            yield repo

    def test_its_requests_are_of_the_model_that_answered_and_have_a_price(self, repo: Repo) -> None:
        [group] = repo.usage()[0].groups("model")
        *_, line = repo.stats([QWEN])

        assert ("claude-sonnet-4-5", 3) == (group.key, group.spending.requests)
        assert {} == group.spending.unpriced == line.price_with_agents.unpriced
        assert group.spending.price_usd_micros == line.price_with_agents.usd_micros
        assert {"claude-sonnet-4-5"} == line.with_agents.models.keys()
        assert ["claude-sonnet-4-5"] == [model for agent in line.agents for model in agent.figures.models]

    def test_an_agent_that_is_counted_alone_has_them_too(self, repo: Repo) -> None:
        [agent] = [row.session for row in repo.sessions() if row.parent]
        *_, line = repo.stats([QWEN])
        [alone] = repo.stats([agent])

        assert ["claude-sonnet-4-5"] == list(alone.figures.models)
        assert (line.agents[0].figures, line.agents[0].price) == (alone.figures, alone.price)

    def test_a_document_of_the_session_names_it_too(self, repo: Repo, tmp_path: Path) -> None:
        made = repo.document(QWEN, kind="std-008").document
        (path := tmp_path / "document-multi.json").write_bytes(write(made))
        with harken.open("memory:") as other:
            list(other.import_sessions([path]))
            [group] = other.usage()[0].groups("model")

        assert ("claude-sonnet-4-5", 3) == (group.key, group.spending.requests)

    def test_they_count_once(self, repo: Repo) -> None:
        *_, line = repo.stats([QWEN])
        sums = "SELECT input, output FROM sessions ORDER BY input"

        assert ([1], 3) == ([agent.figures.requests for agent in line.agents], line.with_agents.requests)
        assert [(60, 7), (120, 14)] == [tuple(row) for row in repo.sql(sums).rows]
