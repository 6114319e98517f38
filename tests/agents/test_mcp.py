"""Tools of MCP servers: one of our own and one from the registry, by stdio and by HTTP, well-behaved and not."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.client import stdio

from harken import Session
from harken.agents import Agent, AgentPool, McpServer
from harken.errors import BadRequest, Closed
from support import mcp_tools
from support.stage import call, contents, lines, open_stage, say

OURS = mcp_tools.__file__
GIT = """
import sys
from pathlib import Path
from mcp_server_git.server import create_server
create_server(Path(sys.argv[1])).run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
"""


def ours(folder: Path, *options: str, name: str = "ours", **settings: Any) -> McpServer:
    return McpServer.stdio(name, sys.executable, [OURS, str(folder), *options], **settings)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def served(*command: str, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A server that somebody else runs, by HTTP."""
    process = subprocess.Popen(
        [sys.executable, *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(1500):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.wait()


def counted(folder: Path, name: str) -> list[str]:
    """What a server has noted."""
    return (folder / name).read_text().splitlines() if (folder / name).exists() else []


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def notices(session: Session) -> list[dict[str, Any]]:
    return [line["metadata"] for line in lines(session, event_type="system", subtype="mcp_server")]


def results(agent: Agent) -> list[str]:
    return contents(agent, "tool")


@pytest.fixture(autouse=True)
def a_server_that_does_not_end_is_ended_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package waits for two seconds until it tells a server to end that has not heard that its input has ended."""
    monkeypatch.setattr(stdio, "PROCESS_TERMINATION_TIMEOUT", 0.5)


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    """No thread and no open file stays when a session is closed."""
    before = len(os.listdir("/proc/self/fd"))
    yield
    for _ in range(500):
        left = [one.name for one in threading.enumerate() if one.name.startswith(("harken-mcp", "waitpid"))]
        if not left:
            break
        time.sleep(0.01)
    assert [] == left
    assert before >= len(os.listdir("/proc/self/fd"))


BOTH = pytest.mark.parametrize("options", [[], ["--package"]], ids=["by hand", "by the package"])


class TestAServerOfOurOwn:
    @BOTH
    def test_by_stdio_offers_its_tools_and_answers(self, tmp_path: Path, options: list[str]) -> None:
        parts = {"root": [call("ours__look", what="a tree"), call("ours__write", text="ab", times=2), "Done."]}
        root, session = open_stage(tmp_path / "log", parts, tools=[ours(tmp_path, *options)])
        with session:
            assert "Done." == say(root, "Go.")

            assert ["You see a tree.", "Wrote abab."] == results(root)
            assert {"ours__look", "ours__write", "ours__draw"} <= root.tools.keys()
            assert ["abab"] == counted(tmp_path, "done")
            (started,) = notices(session)
            assert {"name": "ours", "version": "1.2.3"} == started["says"]
            assert [OURS, str(tmp_path), *options] == started["args"]
        assert 1 == len(counted(tmp_path, "started"))
        assert not is_alive(int(counted(tmp_path, "started")[0]))

    @BOTH
    def test_by_http_offers_its_tools_and_answers(self, tmp_path: Path, options: list[str]) -> None:
        port = free_port()
        parts = {"root": [call("ours__look", what="a tree"), call("ours__draw"), "Done."]}
        with served(OURS, str(tmp_path), *options, "--http", str(port), port=port) as process:
            server = McpServer.http(
                "ours", f"http://user:pass@127.0.0.1:{port}/mcp?key=1", headers={"Authorization": "Bearer secret"}
            )
            root, session = open_stage(tmp_path / "log", parts, tools=[server])
            with session:
                assert "Done." == say(root, "Go.")
                assert "You see a tree." == results(root)[0]
                assert f"http://127.0.0.1:{port}/mcp" == notices(session)[0]["url"]
            assert b"secret" not in (tmp_path / "log").read_bytes()
            assert b"pass@" not in (tmp_path / "log").read_bytes()
            assert process.poll() is None

    def test_shows_pictures(self, tmp_path: Path) -> None:
        asked: list[Any] = []

        class Looking:
            name = "looking"

            async def complete(self, request: Any) -> Any:
                from harken.agents import Reply
                from harken.agents.models import tool_call

                asked.append(request.messages)
                if request.turn == 0:
                    return Reply(tool_calls=(tool_call("c1", "ours__draw", "{}"),))
                return Reply(content="Seen.")

        root, session = open_stage(tmp_path / "log", {}, tools=[ours(tmp_path)])
        with session:
            root.language_model = Looking()
            assert "Seen." == say(root, "Draw.")

            (result,) = [entry for entry in root.transcript if entry["role"] == "tool"]
            assert "Here it is:\nA dot.\n[audio of 4 characters, which cannot be shown]" == result["content"]
            (image,) = result["images"]
            assert ("image/png", 11) == (image["media_type"], image["at"])
            assert [image] == asked[1][-1]["images"]
            (event,) = [one for one in session.events() if type(one).__name__ == "ToolResult"]
            assert image["data"] == event.images[0].data

    def test_is_started_once_for_all_agents_that_have_it(self, tmp_path: Path) -> None:
        parts = {
            "root": [call("task", name="Ann", prompt="Look."), call("ours__look", what="root"), "Done."],
            "Ann": [call("ours__look", what="Ann"), "Seen."],
        }
        root, session = open_stage(tmp_path / "log", parts, tools=[ours(tmp_path)])
        with session:
            say(root, "Go.")

        assert ["Ann", "root"] == counted(tmp_path, "looked")
        assert 1 == len(counted(tmp_path, "started"))

    def test_belongs_to_an_agent_that_was_given_it_also_after_a_load(self, tmp_path: Path) -> None:
        parts = {"root": ["Hm."], "Ann": [call("ours__look", what="one"), "1", call("ours__look", what="two"), "2"]}
        root, session = open_stage(tmp_path / "log", parts)
        with session:
            say(root.spawn("Ann", tools=[ours(tmp_path)]), "Go.")
            assert "ours__look" not in root.tools
        root, session = open_stage(tmp_path / "log", parts, tools=[ours(tmp_path)])
        with session:
            assert ["ours__*"] == session.agents[root.subagents["Ann"].agent_id].attributes["tools"]
            assert "2" == say(root.subagents["Ann"], "Again.")

        assert ["one", "two"] == counted(tmp_path, "looked")

    def test_answers_several_calls_at_once(self, tmp_path: Path) -> None:
        four = {"call": [{"tool": "ours__meet", "arguments": {"people": 4}} for _ in range(4)]}
        root, session = open_stage(tmp_path / "log", {"root": [four, "Done."]}, tools=[ours(tmp_path)])
        with session:
            say(root, "Go.")

            assert ["Met."] * 4 == results(root)

    @pytest.mark.parametrize(
        ("tool", "arguments", "answer"),
        [
            ("look", {"wat": 1}, "'what' is a required property"),
            ("look", {"what": 1}, "what: 1 is not of type 'string'"),
            ("look", "{", "do not fit"),
            ("look", "[1]", "do not fit"),
            ("fail", {"why": "no"}, "Error: Error executing tool fail"),
            ("nothing", {}, "there is no tool 'ours__nothing'"),
        ],
    )
    def test_a_call_that_fails_is_told_to_the_model(
        self, tmp_path: Path, tool: str, arguments: Any, answer: str
    ) -> None:
        parts = {"root": [{"call": {"tool": f"ours__{tool}", "arguments": arguments}}, "Oh."]}
        root, session = open_stage(tmp_path / "log", parts, tools=[ours(tmp_path)])
        with session:
            assert "Oh." == say(root, "Go.")

            assert answer in results(root)[0]
            assert root.transcript[-2]["is_error"]
        assert [] == counted(tmp_path, "looked")


class TestAServerFromTheRegistry:
    @pytest.fixture
    def repository(self, tmp_path: Path) -> Path:
        made = tmp_path / "repository"
        made.mkdir()
        settings = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
        for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "the first one"]):
            subprocess.run(["git", *settings, *command], cwd=made, check=True)
        (made / "new.txt").write_text("new")
        return made

    def parts(self, repository: Path) -> dict[str, Any]:
        at = {"repo_path": str(repository)}
        return {"root": [call("git__git_log", **at), call("git__git_add", files=["new.txt"], **at),
                         call("git__git_status", **at), "Done."]}  # fmt: skip

    def check(self, root: Agent, session: Session, repository: Path) -> None:
        with session:
            assert "Done." == say(root, "Go.")
            log, _, status = results(root)
            assert "the first one" in log
            assert "new.txt" in status
            assert (True, False) == (root.tools["git__git_log"].redo, root.tools["git__git_commit"].redo)
        staged = subprocess.run(["git", "diff", "--cached", "--name-only"], cwd=repository, capture_output=True)
        assert b"new.txt\n" == staged.stdout

    def test_is_used_by_stdio(self, tmp_path: Path, repository: Path) -> None:
        server = McpServer.stdio("git", sys.executable, ["-m", "mcp_server_git", "--repository", str(repository)])
        root, session = open_stage(tmp_path / "log", self.parts(repository), tools=[server])

        self.check(root, session, repository)

    def test_is_used_by_http(self, tmp_path: Path, repository: Path) -> None:
        port = free_port()
        with served("-c", GIT, str(repository), str(port), port=port):
            server = McpServer.http("git", f"http://127.0.0.1:{port}/mcp")
            root, session = open_stage(tmp_path / "log", self.parts(repository), tools=[server])

            self.check(root, session, repository)


class TestAServerThatEnds:
    def test_between_two_calls_is_started_again(self, tmp_path: Path) -> None:
        parts = {"root": [call("ours__write", text="a"), "One.", call("ours__write", text="b"), "Two."]}
        root, session = open_stage(tmp_path / "log", parts, tools=[ours(tmp_path)])
        with session:
            assert "One." == say(root, "Go.")
            os.kill(int(counted(tmp_path, "started")[0]), signal.SIGKILL)
            time.sleep(0.5)
            assert "Two." == say(root, "Go on.")

            assert ["Wrote a.", "Wrote b."] == results(root)
            assert 2 == len(notices(session))
        assert ["a", "b"] == counted(tmp_path, "done")

    def test_in_the_middle_of_a_call_is_told_and_the_call_not_made_again(self, tmp_path: Path) -> None:
        parts = {"root": [call("ours__write_and_die", text="a"), call("ours__look", what="b"), "Done."]}
        root, session = open_stage(tmp_path / "log", parts, tools=[ours(tmp_path)])
        with session:
            assert "Done." == say(root, "Go.")

            assert "whether it had any effect is not known" in results(root)[0]
            assert "You see b." == results(root)[1]
        assert ["a"] == counted(tmp_path, "done")
        assert 2 == len(counted(tmp_path, "started"))

    def test_in_the_middle_of_a_call_that_may_be_made_twice_is_asked_again(self, tmp_path: Path) -> None:
        parts = {"root": [call("ours__look_and_die_once", what="b"), "Done."]}
        root, session = open_stage(tmp_path / "log", parts, tools=[ours(tmp_path)])
        with session:
            say(root, "Go.")

            assert ["You see b."] == results(root)
        assert ["b", "b"] == counted(tmp_path, "looked")

    def test_by_http_is_told_while_it_is_away_and_used_when_it_is_back(self, tmp_path: Path) -> None:
        port = free_port()
        command = (OURS, str(tmp_path), "--http", str(port))
        steps = [call("ours__write", text=text) for text in "abc"]
        root, session = open_stage(
            tmp_path / "log",
            {"root": [steps[0], "One.", steps[1], "Two.", steps[2], call("ours__write_and_die", text="d"), "Three."]},
            tools=[McpServer.http("ours", f"http://127.0.0.1:{port}/mcp")],
        )
        with session:
            with served(*command, port=port):
                assert "One." == say(root, "Go.")
            assert "Two." == say(root, "Go on.")
            with served(*command, port=port):
                assert "Three." == say(root, "Go on.")

            first, away, back, died = results(root)
            assert ("Wrote a.", "Wrote c.") == (first, back)
            assert "could not be started" in away
            assert "whether it had any effect is not known" in died
        assert ["a", "c", "d"] == counted(tmp_path, "done")

    @pytest.mark.parametrize("lost", mcp_tools.LOST)
    def test_by_http_a_call_that_the_server_refuses_since_it_was_started_anew_is_made_again(
        self, tmp_path: Path, lost: str
    ) -> None:
        port = free_port()
        command = (OURS, str(tmp_path), "--http", str(port), "--lost", lost)
        root, session = open_stage(
            tmp_path / "log",
            {"root": [call("ours__write", text="a"), "One.", call("ours__write", text="b"), "Two."]},
            tools=[McpServer.http("ours", f"http://127.0.0.1:{port}/mcp")],
        )
        with session:
            with served(*command, port=port):
                assert "One." == say(root, "Go.")
            with served(*command, port=port):
                assert "Two." == say(root, "Go on.")

            assert ["Wrote a.", "Wrote b."] == results(root)
        assert ["a", "b"] == counted(tmp_path, "done")

    def test_is_started_when_a_session_is_resumed(self, tmp_path: Path) -> None:
        """A call that only looks is made again; what may have had its effect is not."""
        both = {"call": [{"tool": "ours__look", "arguments": {"what": "a"}},
                         {"tool": "ours__write", "arguments": {"text": "b"}}]}  # fmt: skip
        root, session = open_stage(tmp_path / "log", {"root": [both, "Done."]}, tools=[ours(tmp_path)])
        with session:
            root.harken("Go.")
            message = {"role": "assistant", "tool_calls": [
                {"id": f"c{n}", "type": "function", "function": {"name": f"ours__{one['tool'][6:]}",
                 "arguments": json.dumps(one["arguments"])}} for n, one in enumerate(both["call"])]}  # fmt: skip
            root.log(message)
        root, session = open_stage(tmp_path / "log", {"root": ["-", "Done."]}, tools=[ours(tmp_path)])
        with session:
            assert "Done." == asyncio.run(root.resume())

            found = {entry["name"]: entry["content"] for entry in root.transcript if entry["role"] == "tool"}
            assert "You see a." == found["ours__look"]
            assert "interrupted" in found["ours__write"]
        assert (["a"], []) == (counted(tmp_path, "looked"), counted(tmp_path, "done"))


class TestABadServer:
    @pytest.mark.parametrize("code", [-32000, -32001, -32603])
    def test_that_refuses_a_call_is_told_in_its_own_words_and_stays(self, tmp_path: Path, code: int) -> None:
        """The `mcp` package has its own news under codes that servers use as well."""
        parts = {"root": [call("ours__refuse", code=code), call("ours__look", what="b"), "Done."]}
        root, session = open_stage(tmp_path / "log", parts, tools=[ours(tmp_path)])
        with session:
            assert "Done." == say(root, "Go.")

            assert ["Error: the server ours refused: Too many people ask", "You see b."] == results(root)
        assert 1 == len(counted(tmp_path, "started"))

    def test_by_http_it_is_told_which_status_a_call_was_answered_with(self, tmp_path: Path) -> None:
        """What is in front of a server may give up on it while it works."""
        port = free_port()
        parts = {"root": [*(call("ours__refuse", code=-32000, status=status) for status in (401, 504)), "Done."]}
        server = McpServer.http("ours", f"http://127.0.0.1:{port}/mcp")
        root, session = open_stage(tmp_path / "log", parts, tools=[server])
        with session, served(OURS, str(tmp_path), "--http", str(port), port=port):
            assert "Done." == say(root, "Go.")

            refused, unknown = results(root)
            assert "Error: the server ours refused (HTTP 401): Too many people ask" == refused
            assert "HTTP 504" in unknown
            assert "whether it had any effect is not known" in unknown

    @pytest.mark.parametrize(
        ("mood", "why"), [("dies", "it wrote: no such database"), ("hangs", "within 0.5"), ("nonsense", "within 0.5")]
    )
    def test_stops_nothing_else(self, tmp_path: Path, mood: str, why: str) -> None:
        good, bad = tmp_path / "good", tmp_path / "bad"
        good.mkdir()
        bad.mkdir()
        servers = [
            ours(bad, "--mood", mood, name="bad", start_seconds=30 if mood == "dies" else 0.5),
            ours(good, name="good"),
        ]
        root, session = open_stage(
            tmp_path / "log", {"root": [call("good__look", what="it"), "Done.", "Again."]}, tools=servers
        )
        with session:
            assert "Done." == say(root, "Go.")
            assert "Again." == say(root, "Go on.")

            assert ["You see it."] == results(root)
            (failed,) = [said["failed"] for said in notices(session) if "failed" in said]
            assert why in failed
            assert "sk-ant" not in failed
            assert not any(name.startswith("bad__") for name in root.tools)
        assert len(counted(bad, "started")) <= 1  # on a busy machine it may have had no time to begin
        assert [] == [pid for pid in map(int, counted(bad, "started")) if is_alive(pid)]

    def test_that_is_not_there_stops_nothing_else(self, tmp_path: Path) -> None:
        servers = [
            McpServer.stdio("one", str(tmp_path / "nothing")),
            McpServer.http("two", f"http://127.0.0.1:{free_port()}/mcp"),
        ]
        root, session = open_stage(tmp_path / "log", {"root": ["Done."]}, tools=servers)
        with session:
            assert "Done." == say(root, "Go.")

            assert 2 == len([said for said in notices(session) if "could not be started" in said["failed"]])

    def test_that_hangs_in_a_call_is_given_up_and_started_again(self, tmp_path: Path) -> None:
        parts = {"root": [call("ours__sleep", seconds=60), call("ours__look", what="b"), "Done."]}
        root, session = open_stage(tmp_path / "log", parts, tools=[ours(tmp_path, call_seconds=1)])
        with session:
            assert "Done." == say(root, "Go.")

            assert "did not answer within 1 seconds" in results(root)[0]
            assert "You see b." == results(root)[1]
        assert [] == [pid for pid in map(int, counted(tmp_path, "started")) if is_alive(pid)]

    def test_that_offers_hostile_names_and_schemas_is_taken_in_part(self, tmp_path: Path) -> None:
        def ours__wide() -> str:
            """Ours, not the server's."""
            return "ours"

        parts = {"root": [call("ours__look", what="it"), call("ours__wide"), "Done."]}
        root, session = open_stage(tmp_path / "log", parts, tools=[ours(tmp_path, "--mood", "hostile"), ours__wide])
        with session:
            assert "Done." == say(root, "Go.")

            assert ["You see it.", "ours"] == results(root)
            (said,) = notices(session)
            odd = ["''", "'a b'", r"'x\x1b[31m'", "'ünder'", "'dotted_name'", "'look'", r"'task\n'", "'deep'"]
            assert {*odd, f"'{'x' * 65}'"} == said["left_out"].keys()
            assert "ours__dotted_name" in root.tools
            assert "ours__" + "_" * 6 + "etc" in root.tools
            assert all(len(tool.description) <= 10_000 for tool in root.tools.values())

    def test_that_does_not_end_by_itself_is_ended_with_the_session(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", {"root": ["Done."]}, tools=[ours(tmp_path, "--deaf")])
        with session:
            say(root, "Go.")

        assert not is_alive(int(counted(tmp_path, "started")[0]))

    def test_that_is_being_started_is_ended_with_the_session(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", {"root": ["Done."]}, tools=[ours(tmp_path, "--mood", "hangs")])

        async def leave() -> None:
            root.harken("Go.")
            turn = asyncio.ensure_future(root.response())
            while not counted(tmp_path, "started"):
                await asyncio.sleep(0.05)
            turn.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await turn

        asyncio.run(leave())
        session.close()

        assert not is_alive(int(counted(tmp_path, "started")[0]))


class TestTheEnd:
    PROGRAM = """
import asyncio, sys, time
sys.path.insert(0, sys.argv[3])
from support.stage import call, open_stage, say
from harken.agents import McpServer
server = McpServer.stdio("ours", sys.executable, [sys.argv[2], sys.argv[1]])
parts = {"root": [call("ours__look", what="it"), "Done.", call("ours__sleep", seconds=float(sys.argv[5])), "Never."]}
root, session = open_stage(sys.argv[1] + "/log", parts, tools=[server])
print(say(root, "Go."), flush=True)
if sys.argv[4] == "raise":
    raise SystemExit(3)
if sys.argv[4] == "forget":
    del root, session
    import gc; gc.collect()
if sys.argv[4] in ("wait", "kill"):
    say(root, "Wait.")
"""

    def start(self, folder: Path, how: str, seconds: int = 60) -> subprocess.Popen[str]:
        tests = str(Path(__file__).parents[1])
        return subprocess.Popen(
            [sys.executable, "-c", self.PROGRAM, str(folder), OURS, tests, how, str(seconds)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip

    @pytest.mark.parametrize("how", ["end", "raise", "forget"])
    def test_of_a_program_that_closes_nothing_ends_the_server(self, tmp_path: Path, how: str) -> None:
        out, err = (process := self.start(tmp_path, how)).communicate(timeout=60)

        assert ("Done.\n", "") == (out, err)
        assert (3 if how == "raise" else 0) == process.returncode
        assert not is_alive(int(counted(tmp_path, "started")[0]))

    @pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
    def test_in_the_middle_of_a_call_ends_the_server(self, tmp_path: Path, sign: int) -> None:
        """A kill leaves nobody who could end it; it sees that its input has ended, once it has done what it does."""
        process = self.start(tmp_path, "wait", 60 if sign == signal.SIGINT else 3)
        while not counted(tmp_path, "slept"):
            time.sleep(0.05)
        begun = time.monotonic()
        process.send_signal(sign)
        process.communicate(timeout=60)
        server = int(counted(tmp_path, "started")[0])
        while sign == signal.SIGKILL and is_alive(server) and time.monotonic() - begun < 30:
            time.sleep(0.1)

        assert not is_alive(server)

    def test_of_the_session_is_the_end_of_its_tools(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", {"root": ["Done."]}, tools=[ours(tmp_path)])
        with session:
            say(root, "Go.")
        (connection,) = AgentPool.of(session).servers._found.values()

        with pytest.raises(Closed):
            asyncio.run(connection._begun(root))


class TestNames:
    @pytest.mark.parametrize("name", ["", "a b", "a__b", "_a", "a_", "ä", "x" * 33, "a/b", None, 3])
    def test_of_servers_are_plain(self, name: Any) -> None:
        with pytest.raises(BadRequest):
            McpServer.stdio(name, "command")

    @pytest.mark.parametrize("url", ["", "ftp://x", "file:///etc/passwd", "x", None])
    def test_of_addresses_are_http(self, url: Any) -> None:
        with pytest.raises(BadRequest):
            McpServer.http("a", url)

    def test_of_servers_are_told_apart(self, tmp_path: Path) -> None:
        with pytest.raises(BadRequest, match="two sets of tools are called 'ours'"):
            open_stage(tmp_path / "log", {}, tools=[ours(tmp_path), ours(tmp_path)])
