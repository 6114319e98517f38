"""What `Repo.export` gives of a session: all of it or up to a commit, without secrets, the same every time."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken.errors import BadRequest, NotFound
from harken.events import Event, ToolCall
from harken.formats import Loss
from harken.repo import Repo
from harken.repo.exporting import FORMS, Export, ExportSource
from harken.repo.held_events import HeldEvents
from harken.repo.masking import Masks
from harken.secrets import own_rule
from support.contexts import keep, turn
from support.secret_session import KEY, write_session
from support.viewed import cafe, write_log


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


def test_at_every_commit_it_tells_what_the_events_there_tell(repo: Repo) -> None:
    for commit in repo.history("11111111"):
        told = [json.loads(line) for line in exported(repo, commit.short, to="jsonl", reveal=True).splitlines()]

        assert [event.message_id for event in repo.events(commit.short)] == [line["message_id"] for line in told]


def test_a_session_at_its_tip_is_told_whole(repo: Repo) -> None:
    assert exported(repo, repo.commit("11111111").short) == exported(repo)


def test_a_commit_of_no_session_is_told_as_one_that_says_so() -> None:
    with harken.open("memory:") as repo:
        commit = keep(repo, turn(0), template="claude-code")

        head = exported(repo, commit.short).partition("\n\n")[0]

    assert ["Runtime: claude-code", f"Commit: {commit.short}"] == head.splitlines()[2:]


def test_an_agent_alone_can_be_exported(repo: Repo) -> None:
    text = exported(repo, "11111111/abc")

    assert "I looked: [masked" in text
    assert "and now?" not in text


def test_a_large_file_is_looked_at_from_the_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with harken.open("memory:") as repo:
        from_memory = exported(repo, path)
        monkeypatch.setattr("harken.repo.looking.LARGE", 0)

        assert from_memory == exported(repo, path)


def test_json_lines_are_the_events(repo: Repo) -> None:
    lines = [json.loads(line) for line in exported(repo, to="jsonl", reveal=True).splitlines()]

    assert [event.kind for event in repo.events("11111111")] == [line["type"] for line in lines]
    calls = [event for event in repo.events("11111111") if isinstance(event, ToolCall)]
    assert [call.input.decode() for call in calls] == [
        line["tool_call"]["input"] for line in lines if line["type"] == "tool_call"
    ]


def test_rules_of_ones_own_mask_too(repo: Repo) -> None:
    export = repo.export("11111111", to="txt", own_rules=[own_rule("mine", "look", "look(?:ed)? again")])

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


@pytest.mark.parametrize("to", ["md", "txt"])
def test_losses_are_told(to: str) -> None:
    class Lossy(ExportSource):
        def events(self, *, agents: bool) -> Iterator[Event]:
            self.losses.append(Loss(what="a record", count=2, why="it was forgotten"))
            return iter(())

    export = Export(Lossy(), to=to, masks=Masks((), reveal=False, for_people=True))

    text = b"".join(piece for piece in export.pieces() if isinstance(piece, bytes)).decode()

    assert "Lost: a record ×2: it was forgotten." in text


def test_a_sub_agent_that_cannot_be_read_stops_no_other(path: Path) -> None:
    with harken.open("memory:") as repo:
        list(repo.import_sessions([path.parent]))
        with repo.store.write() as writer:
            writer.evict(repo.commit("11111111/def").artifact)
        export = repo.export("11111111", to="txt")

        text = b"".join(piece for piece in export.pieces() if isinstance(piece, bytes)).decode()

    assert "I looked: [masked" in text
    assert "I looked again" not in text
    assert (1, ["sub-agent def"]) == (export.unread, [loss.what for loss in export.losses])
    assert "Lost: sub-agent def" in text


# -- however long a session is -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session of 12 MB."""
    path = tmp_path_factory.mktemp("long") / "33333333-3333-4333-8333-333333333333.jsonl"
    said = [
        {"uuid": f"u{n}", "type": "user", "message": {"role": "user", "content": f"{n} " + "word " * 4_000}}
        for n in range(600)
    ]
    path.write_bytes(b"".join(json.dumps(line | {"sessionId": path.stem}).encode() + b"\n" for line in said))
    return path


@pytest.mark.parametrize("to", ["txt", "jsonl"])
def test_memory_does_not_grow_with_the_session(long: Path, tmp_path: Path, to: str) -> None:
    with harken.open(tmp_path / "store.db") as repo:
        list(repo.import_sessions([long]))
        export = repo.export("33333333", to=to, reveal=True)
        tracemalloc.start()
        size = sum(len(piece) for piece in export.pieces() if isinstance(piece, bytes))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert size > 11_000_000
    assert peak < 16_000_000  # what is held of the bytes (8 MB) and of the events (4 MB) before they go to the disk


def test_it_tells_how_far_it_is(path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    with harken.open("memory:") as repo:
        list(repo.import_sessions([path.parent]))
        source = repo.export("11111111", to="txt")
        source.every = 1
        list(source.pieces(lambda *now: told.append(now)))

    whole = len(list(filter(lambda now: now[0] == "reading", told)))
    assert [("reading", n + 1, 0) for n in range(whole)] == told[:whole]
    assert ("writing", whole, whole) == told[-1]


def test_events_on_the_disk_are_those_that_were_put_there(path: Path) -> None:
    with harken.open("memory:") as repo:
        list(repo.import_sessions([path.parent]))
        events = repo.events("11111111")

    held = HeldEvents(events, held=100)

    assert events == list(held)
    assert (events[2], events[1:4]) == (held[2], list(held[1:4]))
    assert [repr(event) for event in events] == [repr(event) for event in held]
    with pytest.raises(IndexError):
        held[len(events)]
