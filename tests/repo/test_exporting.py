"""What `Repo.export` gives of a session: all of it or up to a commit, without secrets, the same every time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken.errors import BadRequest, NotFound
from harken.events import ToolCall
from harken.repo import Repo
from harken.repo.exporting import FORMS
from support.sessions import ClaudeSession
from support.viewed import cafe, write_log

KEY = "sk-ant-api03-" + "Q7w2E9r4T6y1U8i3O5p0" * 3
ESCAPED = KEY.replace("a", "\\u0061")
COLOURED = KEY[:20] + "\x1b[0m" + KEY[20:]


def write_session(folder: Path) -> Path:
    """A session with a sub-agent whose file lies beside it, a compaction, and a secret in many places."""
    main = ClaudeSession("11111111-1111-4111-8111-111111111111")
    main.prompt(f"use {KEY} please")
    main.call("Bash", f"the key is {COLOURED}")
    main.lines[-2] = main.lines[-2].replace(b'"n": ', f'"{KEY}": "{ESCAPED}", "n": '.encode())
    main.call("Task", "it is done", agent="abc", prompt="look around")
    main.add("system", subtype="compact_boundary", content="Conversation compacted")
    main.answer("all done")
    main.prompt("and now?")
    main.call("Task", "done again", agent="def", prompt="look again")
    path = folder / f"{main.session}.jsonl"
    path.write_bytes(main.data)
    for agent, said in (("abc", f"I looked: {KEY}"), ("def", "I looked again")):
        sub = ClaudeSession(main.session, agent=agent, salt=agent, start=10)
        sub.prompt("look around" if agent == "abc" else "look again")
        sub.answer(said)
        (folder / main.session / "subagents").mkdir(parents=True, exist_ok=True)
        (folder / main.session / "subagents" / f"agent-{agent}.jsonl").write_bytes(sub.data)
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_session(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def repo(path: Path) -> Iterator[Repo]:
    with harken.open("memory:") as opened:
        for _ in opened.import_sessions([path.parent]):
            pass
        yield opened


def exported(repo: Repo, ref: str | Path = "11111111", to: str = "txt", **how: object) -> str:
    pieces = repo.export(ref, to=to, **how).pieces()  # type: ignore[arg-type]
    return b"".join(piece for piece in pieces if isinstance(piece, bytes)).decode()


@pytest.mark.parametrize("to", FORMS)
class TestEveryForm:
    def test_no_secret_is_in_it(self, repo: Repo, to: str) -> None:
        text = exported(repo, to=to)

        assert KEY[:24] not in text.replace("\\u0061", "a").replace("\u2060", "").replace("\n", "").replace(" ", "")
        assert "[masked: anthropic-key]" in text.replace("\\", "")

    def test_what_was_masked_is_counted(self, repo: Repo, to: str) -> None:
        export = repo.export("11111111", to=to)

        list(export.pieces())

        assert {"anthropic-key"} == export.masked.keys()
        assert export.masked["anthropic-key"] >= 5

    def test_revealed_it_has_the_secrets(self, repo: Repo, to: str) -> None:
        assert KEY in exported(repo, to=to, reveal=True).replace("\n", "").replace(" ", "")

    def test_it_is_the_same_every_time(self, repo: Repo, to: str) -> None:
        assert exported(repo, to=to) == exported(repo, to=to)

    def test_sub_agents_are_in_it_unless_they_are_not_wanted(self, repo: Repo, to: str) -> None:
        assert "I looked again" in exported(repo, to=to)
        assert "I looked" not in exported(repo, to=to, agents=False)

    def test_the_file_gives_what_the_store_gives(self, repo: Repo, path: Path, to: str) -> None:
        of_store = [line for line in exported(repo, to=to).split("\n") if "ctx-" not in line]

        assert of_store == [line for line in exported(repo, path, to=to).split("\n") if "ctx-" not in line]


def test_up_to_a_commit_only_what_was_there_is_told(repo: Repo) -> None:
    early = repo.history("11111111")[-2]

    text = exported(repo, early.short)

    assert "use [masked" in text
    assert "and now?" not in text
    assert "I looked again" not in text


def test_a_session_at_its_tip_is_told_whole(repo: Repo) -> None:
    assert exported(repo, repo.commit("11111111").short) == exported(repo)


def test_an_agent_alone_can_be_exported(repo: Repo) -> None:
    text = exported(repo, "11111111/abc")

    assert "I looked: [masked" in text
    assert "and now?" not in text


def test_json_lines_are_the_events(repo: Repo) -> None:
    lines = [json.loads(line) for line in exported(repo, to="jsonl", reveal=True).splitlines()]

    assert [event.kind for event in repo.events("11111111")] == [line["type"] for line in lines]
    calls = [event for event in repo.events("11111111") if isinstance(event, ToolCall)]
    assert [call.input.decode() for call in calls] == [
        line["tool_call"]["input"] for line in lines if line["type"] == "tool_call"
    ]


def test_rules_of_ones_own_mask_too(repo: Repo) -> None:
    export = repo.export("11111111", to="txt", rules={"mine": ("look", "look(?:ed)? again")})

    text = b"".join(piece for piece in export.pieces() if isinstance(piece, bytes)).decode()

    assert "look again" not in text
    assert 3 == export.masked["mine"]


def test_the_foot_tells_what_was_masked_and_left_out(repo: Repo) -> None:
    text = exported(repo, to="md")

    assert "- Masked: anthropic-key ×" in text
    assert "- Left out: " in text


def test_a_session_log_is_told_in_the_order_of_time(tmp_path: Path) -> None:
    log = write_log(tmp_path / "cafe.jsonl", cafe())

    with harken.open("memory:") as repo:
        text = exported(repo, log)

    assert text.index("Jack heard it") < text.index("Hello, my password") < text.rindex("*smiles*\n")


@pytest.mark.parametrize(("ref", "to", "error"), [("11111111", "pdf", BadRequest), ("nowhere", "md", NotFound)])
def test_what_cannot_be_exported_is_refused_at_once(repo: Repo, ref: str, to: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        repo.export(ref, to=to)
