"""Sessions that Qwen Code 0.24.4 wrote, and what it sent; `HARKEN_CORPUS` names the folder they lie in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import runtimes
from harken.analytics import stats
from harken.events import Output, Prompt, Response
from harken.formats import qwen_code
from harken.formats.kit.jsonl import lines
from harken.formats.qwen_code.branch import records
from harken.formats.qwen_code.read import read_conversation
from harken.formats.qwen_code.records import history_of
from harken.runtimes.importer import Importer
from support.qwen_lines import agent_session, busy_session
from support.recordings import corpus_files

HERE = "recorded_runtimes/qwen"
FILES = [path for path in corpus_files(f"{HERE}/**/*.jsonl") if ".signatures." not in path.name]
OTHERS = corpus_files("misc_agents/*/qwen/*.jsonl")
MAIN = [path for path in FILES if path.parent.name == "chats"]
SESSIONS = {path.name[-30:]: path.read_bytes() for path in (*FILES, *OTHERS)}
SESSIONS |= {"busy": busy_session().data, "agent": agent_session().data}

each_file = pytest.mark.parametrize("data", SESSIONS.values(), ids=SESSIONS)


@each_file
def test_every_record_is_read(data: bytes) -> None:
    facts, events = qwen_code.scan(data), qwen_code.FORMAT.read(data)

    assert 0 == facts.opaque
    assert [] == [event for event in events if isinstance(event, Output) and event.why]
    assert stats(events) == facts.tally.figures()


@each_file
def test_it_is_known_by_its_content(data: bytes) -> None:
    assert qwen_code.claim(data[: 64 << 10]).score >= 90


@each_file
def test_a_file_scanned_line_by_line_is_as_one_scanned_at_once(data: bytes) -> None:
    state, offset, closed = b"", 0, []
    for _, end in lines(data):
        facts = qwen_code.scan(data[offset:end], state)
        closed += [delta for delta in facts.deltas if delta.closed]
        state, offset = facts.state, facts.offset

    whole = qwen_code.scan(data)

    assert [delta for delta in whole.deltas if delta.closed] == closed
    assert whole.state == state


def imported(folder: Path) -> Iterator[tuple[Any, list[Any]]]:
    with harken.open(folder / "store.db") as repo:
        yield repo, list(Importer(repo.store, [runtimes.get(name) for name in runtimes.names()]).run(FILES))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, list[Any]]]:
    yield from imported(tmp_path_factory.mktemp("qwen"))


def test_all_go_in_and_come_back_byte_for_byte(store: tuple[Any, list[Any]]) -> None:
    repo, outcomes = store

    assert [] == [outcome for outcome in outcomes if outcome.error]
    assert len(FILES) == len(outcomes)
    for outcome in outcomes:
        assert {"qwen-code"} == {outcome.runtime}
        assert Path(outcome.source).read_bytes() == repo.materialize(outcome.tip, stop="root").bytes


def test_a_second_import_adds_nothing_and_another_store_has_the_same_names(
    store: tuple[Any, list[Any]], tmp_path: Path
) -> None:
    repo, outcomes = store
    again = list(Importer(repo.store, [runtimes.get("qwen-code")]).run(FILES))
    [(_, elsewhere)] = imported(tmp_path)

    assert {"unchanged"} >= {outcome.status for outcome in again}
    assert [outcome.tip for outcome in outcomes] == [outcome.tip for outcome in elsewhere]


def test_a_sub_agent_is_one_of_its_session_and_knows_its_call(store: tuple[Any, list[Any]]) -> None:
    _, outcomes = store
    agents = [outcome for outcome in outcomes if "subagents" in outcome.source]

    for outcome in agents:
        assert outcome.session == f"{outcome.parent}/general-purpose-call_000008842294420"


@pytest.mark.parametrize("path", MAIN or [None])
def test_every_request_that_the_model_got_counts_once(path: Path | None) -> None:
    if path is None:
        return  # there is no corpus
    asked = [json.loads(line) for line in signatures("requests-turns.signatures.jsonl")]
    agents = sorted(path.parents[1].glob(f"subagents/{path.stem}/*.jsonl"))

    alone = qwen_code.scan(path.read_bytes()).tally
    merged = type(alone).merge([alone, *(qwen_code.scan(agent.read_bytes()).tally for agent in agents)])

    for figures in (alone.figures(), merged.figures()):
        assert len(asked) == figures.requests
        assert (60 * len(asked), 7 * len(asked), 40 * len(asked)) == (
            figures.usage.input,
            figures.usage.output,
            figures.usage.cache_read,
        )


# -- what went over the wire -------------------------------------------------------------------------------------------

ADDED = {"c0bfa95b5eef", "d964805fd782", "e635341cb1f5", "89b2c1eadb50"}
"""What the program itself puts before a prompt: its skills, tools, the folder, the date. It is in no file."""
ASKS_FOR_HELP = {2522, 2526, 3727}
"""The lengths of the prompts by which the program's helpers ask."""
Said = tuple[str, str, str]


def signatures(name: str) -> list[str]:
    return [line for path in corpus_files(f"{HERE}/{name}") for line in path.read_text().splitlines()]


def digest(words: str) -> str:
    """The digest of a text as it was sent; empty where that is not known: paths in the files were made neutral."""
    return "" if "/home/me/" in words else hashlib.sha1(words.encode()).hexdigest()[:12]


def sent(request: dict[str, Any]) -> list[Said]:
    """What a request says, without what the program adds."""
    said: list[Said] = []
    for message in request["messages"][1:]:
        if "reasoning_content" in message:
            said.append(("thinking", message["reasoning_content"]["sha"], ""))
        content = message["content"]
        parts = content if isinstance(content, list) else [{"text": content}] if content and content["len"] else []
        said += [
            (message["role"], part["text"]["sha"], message.get("tool_call_id", ""))
            for part in parts
            if part["text"]["sha"] not in ADDED
        ]
        for call in message.get("tool_calls", ()):
            said.append((call["function"]["name"], call["function"]["arguments"]["sha"], call["id"]))
    return said


def known(data: bytes) -> list[Said]:
    """What the conversation of a file says, in the same terms."""
    said: list[Said] = []
    for record in records(qwen_code.context(data)):
        history = history_of(record)
        for message in history if history is not None else [record.get("message")]:
            said += _said(message) if (message and record["type"] != "system") or history else []
    return said


def _said(message: dict[str, Any]) -> Iterator[Said]:
    role = "assistant" if message["role"] == "model" else "user"
    for part in sorted(message["parts"], key=lambda part: "functionCall" in part):
        if "functionCall" in part:
            call = part["functionCall"]
            yield call["name"], digest(json.dumps(call["args"], separators=(",", ":"))), call["id"]
        elif "functionResponse" in part:
            result = part["functionResponse"]
            yield "tool", digest(next(iter(result["response"].values()))), result["id"]
        elif "text" in part:
            yield "thinking" if part.get("thought") else role, digest(part["text"]), ""
        else:
            # The model was not marked for pictures.
            yield role, digest("[image: image/png]"), ""


def states(data: bytes) -> Iterator[list[Said]]:
    """What the file's conversation was before each answer in it, and at the end."""
    rows = data.splitlines(keepends=True)
    for count, line in enumerate(rows):
        if json.loads(line)["type"] == "assistant":
            yield known(b"".join(rows[:count]))
    yield known(data)


def is_like(request: list[Said], state: list[Said]) -> bool:
    """Whether a request says what the file does."""
    pairs = zip(request, state, strict=False)
    return len(request) == len(state) and all(mine in (its, (its[0], "", its[2])) for its, mine in pairs)


def is_the_conversations(request: dict[str, Any]) -> bool:
    last = request["messages"][-1]["content"]
    helper = isinstance(last, list) and last[-1]["text"]["len"] in ASKS_FOR_HELP
    return not helper


@pytest.mark.parametrize("path", MAIN or [None])
def test_the_conversation_before_each_answer_is_what_the_model_was_sent(path: Path | None) -> None:
    if path is None:
        return
    requests = [json.loads(line) for line in signatures("requests-turns.signatures.jsonl")]
    agents = [sent(request) for request in requests if request["messages"][0]["content"]["len"] == 7387]
    mains = [
        sent(request)
        for request in requests
        if is_the_conversations(request) and request["messages"][0]["content"]["len"] == 26929
    ]

    stood = list(states(path.read_bytes()))[:-1]
    assert len(mains) == len(stood)
    assert all(map(is_like, mains, stood))
    for agent in path.parents[1].glob(f"subagents/{path.stem}/*.jsonl"):
        rows = agent.read_bytes().splitlines(keepends=True)
        assert all(map(is_like, agents, [known(b"".join(rows[:1])), known(b"".join(rows[:4]))]))


def test_a_resumed_session_was_sent_as_its_conversation_stands() -> None:
    """Sessions that other hands wrote, one of which was compacted by the program and one forked."""
    golden = [json.loads(line) for line in signatures("resume-golden/req*.signatures.jsonl")]
    asked = [said for request in golden if is_the_conversations(request) and len(said := sent(request)) > 1]
    stood = [state for path in FILES for state in states(path.read_bytes())]

    matched = [any(is_like(request[: len(state)], state) for state in stood if len(state) > 1) for request in asked]

    assert all(matched)
    assert not FILES or len(asked) >= 7


@each_file
def test_the_conversation_in_events_has_every_text_of_its_records(data: bytes) -> None:
    told = {event.content for event in read_conversation(data) if isinstance(event, Prompt | Response)}

    for record in records(data):
        history = history_of(record)
        if record["type"] == "system" and history is None:
            continue
        for message in history or [record.get("message") or {}]:
            for part in message.get("parts", ()):
                if part.get("text") and not part.get("thought"):
                    assert any(part["text"] in content for content in told)
