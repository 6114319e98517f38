"""Traces of OpenTelemetry are imported like sessions of any program."""

from __future__ import annotations

import json
from pathlib import Path

from harken import Repo, formats, runtimes
from harken.runtimes.files import walk
from harken.runtimes.importer import Importer
from harken.runtimes.memory import ImportResult
from harken.testing.formats import said as words
from support.traces import AGENTS, LOOP, agent, chat, document, span

RUNTIME = runtimes.get("otel")


def test_the_agents_of_a_trace_have_chains_of_their_own_and_count_once() -> None:
    data = document(*AGENTS)

    facts, chains = RUNTIME.read.scan(data, b""), RUNTIME.read.side_chains(data)

    assert (("agent_002",), {"agent_002": "c9"}, True) == (facts.agents, facts.calls, facts.side_chains)
    assert (4, 2) == (facts.messages, facts.inside)
    alone = RUNTIME.read.scan(chains["agent_002"], b"")
    assert ["Find it.", 2] == [alone.title, alone.messages]
    assert set(alone.tally.requests) <= set(facts.tally.requests)


def test_a_chain_says_what_the_agent_says_in_the_whole_file() -> None:
    read = formats.get("otel-genai-v1").read
    data = document(*AGENTS)
    (chain,) = RUNTIME.read.side_chains(data).values()

    assert words([event for event in read(data) if "agent_002" == event.agent_id]) == words(read(chain))


def test_a_file_that_grows_is_the_same_session_and_tells_its_agents(repo: Repo, tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    lines = [document(one) + b"\n" for one in AGENTS]
    path.write_bytes(b"".join(lines[:3]))
    first = take(repo, path)
    path.write_bytes(b"".join(lines))
    second = take(repo, path)
    again = take(repo, path)

    (session,) = {outcome.session for outcome in (*first, *second, *again)}
    assert session.startswith("traces-")
    rows = {row.session: row for row in repo.store.sessions()}
    assert {session, f"{session}/agent_002"} == rows.keys()
    assert ("otel", "What is the weather in Rome?") == (rows[session].runtime, rows[session].title)


def test_what_was_imported_goes_on_as_a_request(repo: Repo, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(document(*LOOP))
    (outcome,) = take(repo, path)

    made = repo.materialize(outcome.session, format="openai-chat-v1")

    roles = [message["role"] for message in json.loads(made.bytes)["messages"]]
    assert ["user", "assistant", "tool", "assistant"] == roles


def test_a_trace_that_speaks_of_no_model_is_passed_over(repo: Repo, tmp_path: Path) -> None:
    path = tmp_path / "web.json"
    path.write_bytes(document(span("1", "GET /", {"http.route": "/"})))

    assert ["skipped"] == [outcome.status for outcome in take(repo, path)]


def test_agents_without_words_have_chains_too() -> None:
    used = {"gen_ai.usage.output_tokens": 2}
    first = (agent("1", "a"), chat("2", [], [], used, parent="1"))
    data = document(*first, agent("3", "b"), chat("4", [], [], used, parent="3"))

    assert ["agent_002"] == list(RUNTIME.read.side_chains(data))
    assert 4 == RUNTIME.read.scan(data, b"").tally.figures().usage.output


def take(repo: Repo, path: Path) -> list[ImportResult]:
    importer = Importer(repo.store, [runtimes.get(name) for name in runtimes.names()])
    return list(importer.run(walk(path, (".json", ".jsonl"))))
