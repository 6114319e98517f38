"""Files that are too much in some way cost little memory, and what they cost is their own affair."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest
import zstandard

from harken import runtimes
from harken.runtimes import linking
from harken.runtimes.files import OpenFile
from harken.runtimes.importer import Importer
from harken.store.explaining import explain
from support.sessions import ClaudeSession, conversation, rollout

from .conftest import Import, age

THREAD = "019b88e0-0000-7000-8000-000000000001"
MEMORY = 400 << 20
VECTOR = Path(__file__).parents[1] / "repo" / "vectors" / "jill.jsonl"


class TestTimesThatCannotBe:
    """A time outside the calendar is unknown; the file that holds it is kept like any other."""

    @pytest.mark.parametrize(
        "stamp", ["9999-12-31T23:59:59-02:00", "0001-01-01T00:00:00+02:00", "2026-W08-7T10:30:00Z"]
    )
    @pytest.mark.parametrize(
        "line",
        [
            '{"type":"user","uuid":"u9","parentUuid":null,"isSidechain":false,"sessionId":"aaa","timestamp":"%s",'
            '"message":{"role":"user","content":"hello"}}',
            '{"message_id":"msg_900","event_type":"transcript_entry","agent_id":"agent_001","role":"user",'
            '"content":"hello","timestamp":"%s"}',
        ],
        ids=["claude-code", "session-log"],
    )
    def test_it_refuses_no_file(self, repo: Any, take_in: Import, tmp_path: Path, line: str, stamp: str) -> None:
        is_log = line.startswith('{"message_id"')
        before = VECTOR.read_bytes() if is_log else b"".join(conversation("aaa", 4).lines)
        path = tmp_path / "aaa.jsonl"
        path.write_bytes(before + (line % stamp).encode() + b"\n")

        (outcome,) = take_in(tmp_path).values()

        assert ("new", path.read_bytes()) == (outcome.status, repo.materialize(outcome.session, stop="root").bytes)
        (hello,) = [event for event in repo.events(outcome.session) if getattr(event, "content", "") == "hello"]
        assert hello.time is None
        assert repo.fsck().ok


class TestNumbersThatCannotBe:
    """One number in a transcript is that number's affair: the file is kept, and so are the others."""

    @pytest.mark.parametrize("cost", ["1e13", "1e30", "1e308", "-5", "9" * 400])
    @pytest.mark.parametrize(
        "line",
        [
            '{"type":"cost-state","totalCostUSD":%s}',
            '{"type":"assistant","uuid":"u9","parentUuid":null,"isSidechain":false,"sessionId":"aaa",'
            '"timestamp":"2026-02-22T10:30:00.000Z","costUSD":%s,'
            '"message":{"id":"m9","role":"assistant","model":"m","content":[{"type":"text","text":"x"}]}}',
            '{"type":"result","subtype":"success","total_cost_usd":%s,"num_turns":%s,"usage":{"output_tokens":%s}}',
        ],
    )
    def test_a_cost_stops_no_import_and_is_unknown(
        self, repo: Any, take_in: Import, tmp_path: Path, cost: str, line: str
    ) -> None:
        odd = line.replace("%s", cost).encode() + b"\n"
        for name in ("aaa", "bbb", "ccc"):
            data = b"".join(conversation(name, 4).lines) + (odd if name == "aaa" else b"")
            (tmp_path / f"{name}.jsonl").write_bytes(data)

        found = take_in(tmp_path)

        assert {"new"} == {found[name].status for name in ("aaa", "bbb", "ccc")}
        assert (tmp_path / "aaa.jsonl").read_bytes() == repo.materialize("aaa", stop="root").bytes
        assert repo.store.find_session("aaa").cost_usd_micros is None
        assert list(repo.events("aaa"))
        assert repo.fsck().ok

    @pytest.mark.parametrize("cost", ["1e13", "1e30", '"inf"'])
    def test_a_session_log_is_kept_with_it(self, repo: Any, take_in: Import, tmp_path: Path, cost: str) -> None:
        line = '{"message_id":"msg_900","event_type":"metric","agent_id":"agent_001","status":"success","cost_usd":%s}'
        (tmp_path / "log.jsonl").write_bytes(VECTOR.read_bytes() + (line % cost).encode() + b"\n")

        found = take_in(tmp_path)

        assert {"new"} == {result.status for result in found.values()}
        assert {None} == {row.cost_usd_micros for row in repo.store.sessions()}


class TestOverlongLines:
    @pytest.fixture(autouse=True)
    def small_limits(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("harken.runtimes.sources.LINE_LIMIT", 3000)
        monkeypatch.setattr("harken.formats.kit.jsonl.MAX_LINE", 2999)
        monkeypatch.setattr("harken.runtimes.sources.PART", 2000)
        monkeypatch.setattr("harken.runtimes.files.CHUNK", 700)

    @pytest.mark.parametrize("end", [b"\n", b""])
    @pytest.mark.parametrize("before", [0, 1, 5])
    def test_it_is_kept_as_bytes_wherever_it_stands(
        self, repo: Any, take_in: Import, tmp_path: Path, before: int, end: bytes
    ) -> None:
        """#44"""
        lines = conversation("aaa", 6).lines
        overlong = b'{"type":"user","message":{"content":"' + b"x" * 9000 + b'"}}' + end
        rest = b"".join(lines[before + 1 :]) if end else b""
        data = b"".join(lines[: before + 1]) + overlong + rest
        (tmp_path / "aaa.jsonl").write_bytes(data)

        result = take_in(tmp_path)["aaa"]

        assert ("new", 1) == (result.status, result.opaque)
        assert data == repo.materialize("aaa", stop="root").bytes

    def test_several_in_a_row_are_kept_and_the_file_goes_on(self, repo: Any, take_in: Import, tmp_path: Path) -> None:
        lines = conversation("aaa", 6).lines
        overlong = b"y" * 8000 + b"\n"
        parts = [*lines[:4], overlong, overlong, lines[4], overlong, *lines[5:]]
        path = tmp_path / "aaa.jsonl"
        path.write_bytes(b"".join(parts[:6]))
        take_in(tmp_path)
        path.write_bytes(b"".join(parts))

        result = take_in(tmp_path)["aaa"]

        assert ("grown", 3) == (result.status, result.total_opaque)
        assert b"".join(parts) == repo.materialize("aaa", stop="root").bytes

    def test_a_cut_is_where_it_would_be_if_the_line_were_looked_at_as_a_whole(
        self, repo: Any, take_in: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lines = conversation("aaa", 8).lines
        path = tmp_path / "aaa.jsonl"
        path.write_bytes(b"".join([*lines[:5], b"z" * 300_000 + b"\n", *lines[5:]]))
        elided = take_in(tmp_path)["aaa"]
        monkeypatch.setattr("harken.runtimes.sources.LINE_LIMIT", 1 << 30)

        whole = take_in(tmp_path, verify=True)["aaa"]

        assert ("unchanged", elided.tip) == (whole.status, whole.tip)


class TestFailures:
    @pytest.mark.parametrize("problem", [ValueError("odd"), RecursionError(), MemoryError(), KeyError("x")])
    def test_whatever_goes_wrong_with_a_file_is_its_own_failure(
        self, repo: Any, tmp_path: Path, problem: Exception
    ) -> None:
        """#40"""
        claude = runtimes.get("claude-code")

        def scan(data: bytes, state: bytes) -> Any:
            if b'"bad"' in data:
                raise problem
            return claude.read.scan(data, state)

        runtime = msgspec.structs.replace(claude, read=msgspec.structs.replace(claude.read, scan=scan))
        for name in ("aaa", "bad", "ccc"):
            (tmp_path / f"{name}.jsonl").write_bytes(conversation(name).data)

        results = list(Importer(repo.store, [runtime]).run(sorted(tmp_path.glob("*.jsonl"))))

        assert ["new", "failed", "new"] == [r.status for r in sorted(results, key=lambda r: r.source)]
        (failed,) = [result for result in results if result.status == "failed"]
        assert "bad.jsonl" in failed.error

    @pytest.mark.parametrize("problem", [TypeError("while it lands"), sqlite3.IntegrityError("a row is there twice")])
    def test_what_cannot_be_kept_costs_nobody_else_in_its_batch(
        self, repo: Any, tmp_path: Path, problem: Exception
    ) -> None:
        """#40"""
        claude = runtimes.get("claude-code")

        def side_files(path: Path) -> Any:
            if path.stem == "bad":
                try:
                    raise problem
                except sqlite3.Error as error:  # as a store says it
                    raise explain(error, "the store") from error
            return ()

        runtime = msgspec.structs.replace(claude, read=msgspec.structs.replace(claude.read, side_files=side_files))
        for name in ("aaa", "bad", "ccc"):
            (tmp_path / f"{name}.jsonl").write_bytes(conversation(name).data)

        results = list(Importer(repo.store, [runtime]).run(sorted(tmp_path.glob("*.jsonl"))))

        assert {"aaa": "new", "bad": "failed", "ccc": "new"} == {Path(r.source).stem: r.status for r in results}
        assert ["aaa", "ccc"] == sorted(row.session for row in repo.store.sessions())

    @pytest.mark.parametrize("field", ["title", "tool", "id"])
    def test_a_lone_surrogate_stops_nothing(self, repo: Any, take_in: Import, tmp_path: Path, field: str) -> None:
        """#40"""
        bad = conversation("bad", 2)
        if field == "title":
            bad.side({"type": "custom-title", "customTitle": "\ud800", "sessionId": "bad"})
        data = bad.data
        if field == "tool":
            data = data.replace(b'"name": "', b'"name": "\\ud800')
        if field == "id":
            data = data.replace(b'"bad"', b'"b\\ud800d"')
        (tmp_path / "bad.jsonl").write_bytes(data)
        (tmp_path / "good.jsonl").write_bytes(conversation("good").data)

        results = take_in(tmp_path)

        assert "new" == results["good"].status
        assert {"new"} == {result.status for result in results.values()}

    def test_a_bomb_is_refused_early(self, take_in: Import, tmp_path: Path) -> None:
        """#44"""
        (tmp_path / f"rollout-x-{THREAD}.jsonl.zst").write_bytes(bomb(1 << 30))

        (result,) = take_in(tmp_path).values()

        assert "failed" == result.status
        assert "unpacks to more than 64 MiB" in result.error


def bomb(size: int) -> bytes:
    """A session, and then a line of zeros that is small only as long as it is compressed."""
    packer = zstandard.ZstdCompressor(level=3).compressobj()
    parts = [packer.compress(rollout(THREAD))]
    zeros = bytes(1 << 20)
    parts += [packer.compress(zeros) for _ in range(size >> 20)]
    return b"".join([*parts, packer.flush()])


MEASURED = """
import re, sys
from pathlib import Path
from types import FrameType
from harken.cli import main
try:
    main()
finally:
    status = Path("/proc/self/status").read_text()
    print(re.search(r"VmHWM:\\s*(\\d+) kB", status)[1], file=sys.stderr)
"""


def peak_of(tmp_path: Path, *args: str) -> tuple[int, list[dict[str, Any]]]:
    """What a command took at most, and what it said. It tells itself: what `wait4` says of a child may be what its
    parent had when it was made."""
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-c", MEASURED, "--store", str(tmp_path / "store.db"), *args, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    return int(done.stderr.split()[-1]) * 1024, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.faults
@pytest.mark.parametrize("kind", ["a line of 300 MB", "2 GiB without a newline", "a bomb", "a larger bomb", "deep"])
def test_what_is_too_much_costs_at_most_400_mb(tmp_path: Path, kind: str) -> None:
    """#44, #51"""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "good.jsonl").write_bytes(conversation("good").data)
    head = conversation("aaa", 3).data
    path = folder / "aaa.jsonl"
    if kind == "a line of 300 MB":
        with path.open("wb") as file:
            file.write(head + b'{"type":"user","message":{"role":"user","content":"')
            for _ in range(300):
                file.write(b"x" * 1_000_000)
            file.write(b'"}}\n' + conversation("aaa", 2, salt="more").data)
    elif kind == "2 GiB without a newline":
        path.write_bytes(head)
        os.truncate(path, 2 << 30)
    elif kind == "deep":
        path.write_bytes(head + b'{"a":' * 5_000_000 + b"1" + b"}" * 5_000_000 + b"\n")
    else:
        packed = bomb((2 if kind == "a bomb" else 8) << 30)
        (folder / f"rollout-x-{THREAD}.jsonl.zst").write_bytes(packed)

    peak, lines = peak_of(tmp_path, "import", str(folder))

    assert peak <= MEMORY, f"{peak >> 20} MiB"
    statuses = {line.get("session", "") or "failed": line["status"] for line in lines if "status" in line}
    assert "new" == statuses.pop("good")
    assert {"failed": "failed"} == statuses if "bomb" in kind else {"aaa": "new"} == statuses
    looks = [["sessions"], ["stats"], ["log", "aaa"], ["show", "aaa"], ["view", "timeline", "aaa"], ["agents", "aaa"]]
    for words in looks if "aaa" in statuses else ():
        peak, lines = peak_of(tmp_path, *words)
        assert (True, True) == (peak <= MEMORY, bool(lines)), f"{words}: {peak >> 20} MiB"


class TestWhatFailedBefore:
    """A file that cannot be taken in is not opened again until it changes, and is told every time."""

    @pytest.fixture
    def opened(self, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
        opened: list[Path] = []
        original = OpenFile.__init__

        def init(self: OpenFile, path: Path, *, unpack: bool = True) -> None:
            opened.append(path)
            original(self, path, unpack=unpack)

        monkeypatch.setattr(OpenFile, "__init__", init)
        return opened

    def test_is_told_again_without_a_look(self, repo: Any, take_in: Import, tmp_path: Path, opened: list[Path]) -> None:
        path = tmp_path / "files" / "x.jsonl.zst"
        path.parent.mkdir()
        path.write_bytes(b"no archive")
        age(path)

        first, second = take_in(path.parent), take_in(path.parent)

        assert "failed" == first[str(path)].status
        assert first == second
        assert [path] == opened

    @pytest.mark.parametrize("change", ["content", "verify", "named", "just written"])
    def test_is_looked_at_again_where_the_answer_may_differ(
        self, repo: Any, take_in: Import, tmp_path: Path, opened: list[Path], change: str
    ) -> None:
        path = tmp_path / "files" / "x.jsonl.zst"
        path.parent.mkdir()
        path.write_bytes(b"no archive")
        if change != "just written":
            age(path)
        take_in(path.parent)
        if change == "content":
            path.write_bytes(zstandard.compress(conversation("aaa").data))
        if change == "named":
            list(Importer(repo.store, [runtimes.get("claude-code")]).run([path], named=True))
        else:
            found = take_in(path.parent, verify=change == "verify")
            assert (["aaa"] if change == "content" else [str(path)]) == list(found)

        assert len(opened) > 1


class TestLargeFamilies:
    """What a line of one sub-agent costs does not grow with the square of how many others there are."""

    def _steps_of_a_line(self, take_in: Import, folder: Path, agents: int) -> int:
        """How often a function of the linking is called when one of the agents says one thing more."""
        main, sides = ClaudeSession(folder.name), []
        for number in range(agents):
            main.call("Task", "done", prompt=f"do {number}")
            side = ClaudeSession(folder.name, agent=f"a{number}", salt=f"{folder.name} {number}", start=number)
            side.prompt(f"do {number}")
            sides.append(side)
        beside = folder / folder.name / "subagents"
        beside.mkdir(parents=True)
        (folder / f"{folder.name}.jsonl").write_bytes(main.data)
        for side in sides:
            (beside / f"agent-{side.agent}.jsonl").write_bytes(side.data)
        take_in(folder)
        sides[1].answer("more")
        (beside / "agent-a1.jsonl").write_bytes(sides[1].data)
        steps = 0

        def count(frame: FrameType, event: str, _: object) -> None:
            nonlocal steps
            steps += event == "call" and frame.f_code.co_filename == linking.__file__

        sys.setprofile(count)
        try:
            take_in(folder)
        finally:
            sys.setprofile(None)
        return steps

    def test_one_of_twice_as_many_sub_agents_costs_about_twice_as_much(self, take_in: Import, tmp_path: Path) -> None:
        few, many = (self._steps_of_a_line(take_in, tmp_path / name, agents) for name, agents in (("f", 20), ("m", 40)))

        assert 0 < many < 2.5 * few
