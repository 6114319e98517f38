"""A program on a screen: in a terminal of tmux, inside the laboratory, as a person sees it and types into it.

Nothing here sleeps. tmux copies what the program writes into a pipe; whenever something comes through it, the screen is
looked at again, until it shows what it has to or the time is over.
"""

from __future__ import annotations

import json
import os
import select
import shlex
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from support.lab import Lab

SLOW = 60
"""Seconds after which a screen that does not show what it should is a failure; the programs need two or three."""
WIDTH, HEIGHT = 110, 50


class Screen:
    """One program in one terminal. Use it in a `with` statement, which ends the program."""

    def __init__(
        self, lab: Lab, command: Sequence[str], *, cwd: str = "", environment: Mapping[str, str] | None = None
    ) -> None:
        settle_in(lab)
        # A socket's path must be short, and the laboratory's folder is not.
        self._folder = tempfile.TemporaryDirectory(prefix="screen-")
        self._socket = str(Path(self._folder.name, "tmux"))
        pipe = Path(self._folder.name, "written")
        os.mkfifo(pipe)
        self._written = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
        seen = {**lab.environment, **(environment or {}), "TERM": "tmux-256color"}
        inside = lab.namespace.command(["env", "-i", *(f"{name}={value}" for name, value in seen.items()), *command])
        # The shell waits for a line, so that nothing is written before somebody looks; the last words stay there.
        shown = f"read _; {shlex.join(inside)}; status=$?; echo; echo 'the program ended with' $status; cat >/dev/null"
        size = ("-x", str(WIDTH), "-y", str(HEIGHT))
        self._tmux("new-session", "-d", *size, "-c", cwd or str(lab.work), shown)
        self._tmux("set-option", "-g", "history-limit", "5000")
        self._tmux("pipe-pane", "-O", f"exec cat >{shlex.quote(str(pipe))}")
        self._tmux("send-keys", "Enter")

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", self._socket, "-f", "/dev/null", *words],
            capture_output=True,
            text=True,
            errors="replace",
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
            timeout=SLOW,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def text(self) -> str:
        """What it shows, and what has been scrolled away."""
        return self._tmux("capture-pane", "-p", "-J", "-S", "-")

    def wait_for(self, *texts: str) -> str:
        """The screen, as soon as it shows all of the texts, each below the one before."""
        end = time.monotonic() + SLOW
        while True:
            shown = self.text
            if _in_order(shown, texts):
                return shown
            left = end - time.monotonic()
            assert left > 0, f"the screen does not show {texts}:\n{shown}"
            if select.select([self._written], [], [], left)[0]:
                os.read(self._written, 1 << 20)

    def say(self, text: str) -> None:
        """Paste a text, see it there, and press Enter."""
        self._tmux("set-buffer", text)
        self._tmux("paste-buffer", "-p")
        self.wait_for(text)
        self.press("Enter")

    def press(self, *keys: str) -> None:
        """Press keys, by the names tmux has for them."""
        self._tmux("send-keys", *keys)

    def __enter__(self) -> Screen:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tmux("kill-server")
        os.close(self._written)
        self._folder.cleanup()


def _in_order(shown: str, texts: Sequence[str]) -> bool:
    at = 0
    for text in texts:
        found = shown.find(text, at)
        if found < 0:
            return False
        at = found + len(text)
    return True


def settle_in(lab: Lab) -> None:
    """Answer beforehand what Claude Code asks on its first screen: looks, the key, whether the folder is trusted."""
    path = lab.home / ".claude.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    known |= {"hasCompletedOnboarding": True, "theme": "dark"}
    known["customApiKeyResponses"] = {"approved": [lab.environment["ANTHROPIC_API_KEY"][-20:]], "rejected": []}
    known.setdefault("projects", {}).setdefault(str(lab.work), {})["hasTrustDialogAccepted"] = True
    path.write_text(json.dumps(known))
