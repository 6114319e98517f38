"""The document is enough (#23): a program written from docs/FORMAT.md alone makes of files what Harken makes."""

from __future__ import annotations

import ast
import json
import random
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harken
from harken import formats
from harken.formats import claude_code, session_log
from support.recordings import CORPUS, FOLDER

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import stranger as store_reader  # noqa: E402  they have to be found without Harken's help
import stranger_sources as stranger  # noqa: E402
from stranger_refs import Ambiguous, Refs  # noqa: E402

LOGS = sorted((HERE.parent / "golden" / "session-log").glob("*/*.jsonl"))
ALLOWED = {"__future__", "hashlib", "json", "re", "datetime", "pathlib", "blake3"}


@pytest.mark.parametrize("name", ["stranger_sources.py", "stranger_refs.py"])
def test_the_stranger_imports_nothing_of_ours(name):
    tree = ast.parse((HERE / name).read_text())
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}

    assert modules <= ALLOWED


# -- real files --------------------------------------------------------------------------------------------------------


def import_into(path, places):
    """A store with the sessions at these places, and what became of each file."""
    repo = harken.open(path)
    return repo, [result for result in repo.import_sessions(places) if result.status == "new"]


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """The recorded sessions and the example logs."""
    repo, results = import_into(tmp_path_factory.mktemp("stranger") / "store.db", [FOLDER, *LOGS])
    with repo:
        yield repo, results


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """The recorded sessions, and those of a corpus where one is named."""
    places = [FOLDER, *([CORPUS] if CORPUS else [])]
    repo, results = import_into(tmp_path_factory.mktemp("everything") / "store.db", places)
    with repo:
        yield repo, results


def chain(repo, tip):
    fields = ("id", "seal", "commit_type", "checkpoint", "artifact")
    commits = reversed(list(repo.store.chain(tip)))
    return [tuple(getattr(commit, field) for field in fields) for commit in commits]


def test_the_chains_of_recorded_files_have_the_names_and_seals_of_the_document(everything):
    repo, results = everything
    templates = {template: format for format, (template, _) in stranger.RULES.items() if template != "harken"}
    files = [result for result in results if result.runtime in templates and Path(result.source).suffix == ".jsonl"]
    assert len(files) > 40
    for result in files:
        data, format = Path(result.source).read_bytes(), templates[result.runtime]
        session = stranger.session_of(result.source, format)
        assert stranger.chain_of(data, format, session) == chain(repo, result.tip), result.source
        agents = stranger.agents_of_claude_code(data) if result.runtime == "claude-code" else {}
        for agent, lines in agents.items():
            row = repo.store.find_session(f"{result.session}/{agent}")
            assert row is not None, (result.source, agent)
            assert f"{result.source}#{agent}" in row.state.decode("utf-8", "replace").partition("\n")[0]
            chains = [chain(repo, tip) for tip in (row.tip, *row.older)]
            assert stranger.chain_of(lines, format, session) in chains, (result.source, agent)


def test_logs_and_their_agents_have_the_sessions_names_and_seals_of_the_document(imported):
    repo, results = imported
    logs = {result.source: result for result in results if Path(result.source) in LOGS}
    assert len({path.read_bytes() for path in LOGS}) == len(logs)  # a copy adds nothing
    for source, result in logs.items():
        data, session = Path(source).read_bytes(), stranger.log_session(source)
        assert session == result.session
        assert stranger.chain_of(data, "session-log-v2", session) == chain(repo, result.tip), source
        agents = stranger.agents_of_log(data)
        assert {f"{session}/{agent}" for agent in agents} == {
            row.session for row in repo.store.sessions(parent=session)
        }
        for agent, lines in agents.items():
            # The row is called SESSION/AGENT; its commits name the session.
            row = repo.store.find_session(f"{session}/{agent}")
            # Two dialects of one example begin with the same line, and so are two files of one session.
            chains = [chain(repo, tip) for tip in (row.tip, *row.older)]
            assert stranger.chain_of(lines, "session-log-v2", session) in chains, (source, agent)


def test_every_row_of_a_store_of_recorded_sessions_has_the_names_seals_and_sums_of_the_document(imported):
    repo, _ = imported
    reader = store_reader.Reader(repo.store.path)

    reader.sums()
    assert {commit.id for commit in repo.store.commits()} == reader.commits().keys()
    assert all(data is not None for data in reader.artifacts().values())
    reader.db.close()


def typed_refs(repo):
    """Every form of REF, as people would type it, and some that name nothing."""
    for commit in repo.store.commits():
        yield from (commit.short, commit.short[4:], commit.id, f"ctx-{commit.id[:6]}", commit.id[:4].upper())
    for row in repo.store.sessions():
        yield from (row.session, row.session[:6], row.session[:9], f"{row.session}~0", f"{row.session}~1")
        yield from (f"{row.session}@@0", f"{row.session}~0@@0", f"{row.session[:9]}@@0", f"{row.session}@nobody")
        if row.agent:
            yield f"{row.parent[:13]}/{row.agent}"
    for row in [row for row in repo.store.sessions() if not row.parent][:20]:
        events = repo.events(row.session)[:: max(1, len(repo.events(row.session)) // 6)]
        for event in events:
            yield from (f"{row.session}@{event.message_id}", f"{row.session}@{event.api_id or 'none'}")
    yield from ("review", "ctx-", "ctx-12", "12", "nobody", "nobody@x", "~1", "@", "0000")


def test_refs_name_what_the_document_says(imported):
    repo, _ = imported
    newest = repo.store.commits()[0]
    repo.fork(newest, "review")
    reader = store_reader.Reader(repo.store.path)
    refs = Refs(reader)
    seen = {"found": 0, "several": 0, "nothing": 0}

    for ref in typed_refs(repo):
        try:
            expected = refs.resolve(ref)
        except Ambiguous:
            seen["several"] += 1
            with pytest.raises(harken.Ambiguous):
                repo.commit(ref)
        else:
            seen["found" if expected else "nothing"] += 1
            try:
                assert expected == repo.commit(ref).id, ref
            except (harken.NotFound, harken.BadRequest):
                assert expected is None, ref
    reader.db.close()

    assert all(seen.values()), seen


# -- files that nobody would write -------------------------------------------------------------------------------------


class Scribe:
    """Lines of each format, sensible and otherwise."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def pick(self, *items):
        return self.chance.choice(items)

    def rarely(self, often: float = 0.1) -> bool:
        return self.chance.random() < often

    def log_line(self):
        pick, kind = self.pick, self.pick("transcript_entry", "transcript_entry", "transcript_entry", *KINDS)
        line = {
            "message_id": pick("m1", "m2", "m3", 4),
            "event_type": kind,
            "agent_id": pick("a", "a", "b", "c", "", 7),
        }
        if kind == "transcript_entry":
            line |= {"role": pick("user", "assistant", "assistant", "tool", "system", "other"), "content": "hi"}
            if line["role"] == "assistant" and self.rarely(0.5):
                line["tool_calls"] = [{"id": pick("c1", "c2"), "function": {"name": "t", "arguments": "{}"}}]
            if line["role"] == "tool":
                line["tool_call_id"] = pick("c1", "c2")
        if kind == "transcript_edit":
            line |= {"action": pick("compact", "truncate", "restore"), "n": 1}
        if self.rarely():
            line[pick("agent", "agent_id")] = line.pop("agent_id")
        return line | self.padding(60_000) | self.stamp(1_700_000_000.25)

    def claude_line(self):
        pick = self.pick
        kind = pick(
            "user", "user", "assistant", "assistant", "assistant", "system", "summary", "progress", "last-prompt"
        )
        line = {
            "type": kind,
            "uuid": pick("u1", "u2", "u3", ""),
            "parentUuid": pick("u1", "u2", None),
            "isSidechain": pick(False, False, False, True, None),
        }
        if kind == "assistant" and not self.rarely():
            content = pick([{"type": "text", "text": "hi"}], [{"type": "tool_use", "id": pick("c1", "c2")}])
            line["message"] = {"id": pick("m1", "m2", "m3", None), "content": content}
        if kind == "user":
            line["message"] = {"content": pick("hi", "hi", [{"type": "tool_result", "tool_use_id": pick("c1", "c2")}])}
            line |= {name: True for name in ("isMeta", "isCompactSummary") if self.rarely()}
        if kind == "system":
            line["subtype"] = pick("compact_boundary", "other")
        return line | self.padding(60_000) | self.stamp(5)

    def codex_line(self):
        pick = self.pick
        item = pick(
            {"type": "message", "role": pick("user", "assistant", "developer")},
            {"type": pick("function_call", "local_shell_call"), "call_id": pick("c1", "c2", "")},
            {"type": "function_call_output", "call_id": pick("c1", "c2")},
            {"type": pick("reasoning", "agent_message", "compaction", "ghost_snapshot", "web_search_call", "other")},
            {"role": "user", "content": "hi"},
            {"record_type": "state"},
        )
        shown = {"type": pick("UserMessage", "AgentMessage", "Reasoning", "Other")}
        line = pick(
            dict(item),
            {"type": "response_item", "payload": item},
            {"type": "response_item", "payload": item},
            {"type": "event_msg", "payload": {"type": pick(*ACTS), "item": shown}},
            {"type": pick("compacted", "turn_context", "inter_agent_communication"), "payload": pick({}, None)},
        )
        return line | self.padding(3_000, 9_000, 100_000) | self.stamp(3)

    def padding(self, *sizes):
        return {"pad": "x" * self.pick(*sizes)} if self.rarely(0.3) else {}

    def stamp(self, number):
        stamps = ("2026-01-01T00:00:00.5Z", "2026-02-02 00:00+02", "no", "2026-02-30T00:00:00Z", number)
        return {"timestamp": self.pick(*stamps)} if self.rarely(0.6) else {}

    def spoilt(self, line: bytes) -> bytes:
        """The line, or what a crash, an editor or another program may have made of it."""
        if not self.rarely(0.25):
            return line
        return self.pick(
            line[: len(line) // 2] + b"\n",
            b"\n",
            line.rstrip(b"\n") + line.replace(b"m1", b"m2"),
            b"\xef\xbb\xbf" + line,
            line.replace(b'"hi"', b'"\\ud800"'),
            line.replace(b'"hi"', b"NaN"),
            line.replace(b'"hi"', b"99999999999999999999999"),
            line.replace(b'"hi"', b'"\xff"'),
            b" \t" + line,
            b"[1]\n",
            line.rstrip(b"\n") + b" x\n",
        )

    def file(self, line) -> bytes:
        lines = [self.spoilt(json.dumps(line()).encode() + b"\n") for _ in range(self.chance.randrange(1, 40))]
        return b"".join(lines)[: self.pick(None, None, -1)]


KINDS = ("agent_created", "piece_of_text", "transcript_edit", "agent_terminated", "metric", "other", None, 5)
ACTS = (
    "task_started",
    "turn_aborted",
    "user_message",
    "agent_message",
    "agent_reasoning",
    "token_count",
    "item_completed",
)
WRITERS = {"session-log-v2": Scribe.log_line, "claude-code-v1": Scribe.claude_line, "codex-v1": Scribe.codex_line}


@pytest.mark.parametrize("format", WRITERS)
@settings(max_examples=60, deadline=None)
@given(chance=st.randoms(use_true_random=False))
def test_any_file_is_cut_where_the_document_says(format, chance):
    scribe = Scribe(chance)
    data = scribe.file(lambda: WRITERS[format](scribe))

    expected = [(d.start, d.end, d.kind, d.checkpoint, d.closed) for d in stranger.RULES[format][1](data)]
    cut = [(d.start, d.end, d.commit_type, d.checkpoint, d.closed) for d in formats.get(format).split(data)]
    assert expected == cut


@settings(max_examples=60, deadline=None)
@given(chance=st.randoms(use_true_random=False))
def test_the_lines_of_an_agent_are_those_the_document_says(chance):
    scribe = Scribe(chance)
    log, file = scribe.file(scribe.log_line), scribe.file(scribe.claude_line)

    assert stranger.agents_of_log(log) == dict(session_log.side_chains(log))
    # Whether the file has agents inside is looked at with real files: here anything may stand beside them on a line.
    assert stranger.agents_of_claude_code(file) in ({}, dict(claude_code.side_chains(file)))
