"""The laboratory: the real Claude Code and the real Codex, alone with a scripted model.

Every program runs in a network namespace that has loopback and nothing else, with a home folder of its own. The model
answers from this process, on a socket that was made inside that namespace.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.scripted_model import ScriptedModel

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / ".tools" / "bin"
_NEW_NETWORK = 0x40000000
SLOW = 120
"""Seconds a program may take; it needs two or three."""


class Namespace:
    """A network with loopback alone, held open by a process that sleeps in it."""

    def __init__(self) -> None:
        self._keeper = subprocess.Popen(
            ["unshare", "-n", "sh", "-c", "ip link set lo up && echo up && exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._keeper.stdout is not None
        assert self._keeper.stdout.readline() == b"up\n"

    def listen(self) -> socket.socket:
        """A socket bound to a free loopback port inside. Only a thread of its own ever enters the namespace."""
        found: list[socket.socket | OSError] = []

        def enter() -> None:
            libc = ctypes.CDLL(None, use_errno=True)
            with open(f"/proc/{self._keeper.pid}/ns/net", "rb") as door:
                if libc.setns(door.fileno(), _NEW_NETWORK):
                    found.append(OSError(ctypes.get_errno(), "setns"))
                    return
            inside = socket.socket()
            inside.bind(("127.0.0.1", 0))
            found.append(inside)

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        if isinstance(found[0], OSError):
            raise found[0]
        return found[0]

    def command(self, argv: list[str]) -> list[str]:
        """The command that runs a program inside."""
        return ["nsenter", f"--net=/proc/{self._keeper.pid}/ns/net", "--", *argv]

    def close(self) -> None:
        """Let it go."""
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        self._keeper.stdin.close()
        self._keeper.stdout.close()
        self._keeper.wait(10)


@dataclass
class Run:
    """How a program ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Its output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]


@dataclass
class Lab:
    """One namespace, one model, and folders for the two programs to live in."""

    folder: Path
    namespace: Namespace = field(default_factory=Namespace)
    model: ScriptedModel = field(init=False)
    port: int = 0
    tools: Path = BIN
    """Where the programs are: those of `scripts/runtimes`, or other versions."""

    def __post_init__(self) -> None:
        for name in ("home", "codex", "work", "run"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.fresh_model()

    def fresh_model(self) -> ScriptedModel:
        """A model with an empty script and an empty list of requests."""
        if hasattr(self, "model"):
            self.model.close()
        self.model = ScriptedModel(log=self.folder / "requests.jsonl")
        listener = self.namespace.listen()
        self.port = listener.getsockname()[1]
        self.model.serve(listener)
        (self.codex_home / "config.toml").write_text(CODEX_CONFIG.format(port=self.port, work=self.work))
        return self.model

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def codex_home(self) -> Path:
        return self.folder / "codex"

    @property
    def work(self) -> Path:
        """The folder the programs work in."""
        return self.folder / "work"

    @property
    def environment(self) -> dict[str, str]:
        """What the programs see: nothing of this session's own."""
        return {
            "PATH": f"{self.tools}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(self.home),
            "CODEX_HOME": str(self.codex_home),
            "XDG_RUNTIME_DIR": str(self.folder / "run"),
            "HARKEN_STORE": str(self.folder / "store.db"),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{self.port}",
            "ANTHROPIC_API_KEY": "sk-ant-loopback",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
            "LAB_KEY": "loopback",
        }

    def run(self, *argv: str, stdin: str = "", cwd: Path | None = None, env: dict[str, str] | None = None) -> Run:
        """Run a program inside the namespace to its end."""
        done = subprocess.run(
            self.namespace.command(list(argv)),
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            cwd=cwd or self.work,
            env=self.environment | (env or {}),
            timeout=SLOW,
        )
        return Run(done.returncode, done.stdout, done.stderr)

    def claude(self, prompt: str, *arguments: str, **how: Any) -> Run:
        """Claude Code, one prompt, everything it does on stdout as JSON lines."""
        stream = ("--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions")
        return self.run("claude", "-p", prompt, *stream, *arguments, **how)

    def codex(self, *arguments: str, **how: Any) -> Run:
        """Codex without a screen, everything it does on stdout as JSON lines."""
        flags = ("--skip-git-repo-check", "--json", "--dangerously-bypass-approvals-and-sandbox")
        return self.run("codex", "exec", *flags, *arguments, **how)

    def claude_sessions(self) -> list[Path]:
        """Main session files of Claude Code, oldest first."""
        found = self.home.glob(".claude/projects/*/*.jsonl")
        return sorted((p for p in found if not p.name.startswith("agent-")), key=lambda p: p.stat().st_mtime_ns)

    def codex_sessions(self) -> list[Path]:
        """Rollout files of Codex, oldest first."""
        return sorted(self.codex_home.glob("sessions/*/*/*/rollout-*.jsonl"), key=lambda p: p.stat().st_mtime_ns)

    def close(self) -> None:
        """Stop the model and leave the namespace."""
        self.model.close()
        self.namespace.close()


CODEX_CONFIG = """\
model = "scripted"
model_provider = "lab"
[model_providers.lab]
name = "lab"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
env_key = "LAB_KEY"
request_max_retries = 0
stream_max_retries = 0
[features]
apps = false
plugins = false
daemon_auto_start = false
[analytics]
enabled = false
[projects."{work}"]
trust_level = "trusted"
"""


def installed() -> bool:
    """Whether `scripts/runtimes` has been here."""
    return all(os.access(BIN / name, os.X_OK) for name in ("claude", "codex"))
