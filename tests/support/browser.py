"""A real browser without a window, spoken to through a pipe in its own protocol (Chrome DevTools)."""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

SLOW = 60
"""Seconds after which an answer that has not come is a failure; it takes milliseconds."""
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"),
    "--remote-debugging-pipe",
)


class Browser:
    """One browser with one page. Use it in a `with` statement, which ends the browser."""

    def __init__(self, program: str = "chromium") -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
        read, self._out = os.pipe()
        self._in, write = os.pipe()
        # It reads from the file with the number 3 and writes to the one with the number 4.
        words = ["bash", "-c", f'exec "$0" "$@" 3<&{read} 4>&{write}', program, *FLAGS]
        self._process = subprocess.Popen(
            [*words, f"--user-data-dir={self._folder.name}", "about:blank"],
            pass_fds=(read, write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "HOME": self._folder.name, "LANG": "C.UTF-8"},
        )
        os.close(read)
        os.close(write)
        self._waiting = b""
        self._asked = 0
        self._page = ""
        self.happened: list[dict[str, Any]] = []
        """What the page told of itself since it was opened."""
        targets = self.ask("Target.getTargets")["targetInfos"]
        page = next(one["targetId"] for one in targets if one["type"] == "page")
        self._page = self.ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(SLOW)
        os.close(self._out)
        os.close(self._in)
        self._folder.cleanup()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """What the browser answers."""
        self._asked += 1
        message = {"id": self._asked, "method": method, "params": params}
        about = {"sessionId": self._page} if self._page else {}
        os.write(self._out, json.dumps(message | about).encode() + b"\0")
        while (told := self._next()).get("id") != self._asked:
            self.happened.append(told)
        assert "error" not in told, told
        return dict(told["result"])

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + SLOW
        while b"\0" not in self._waiting:
            ready, _, _ = select.select([self._in], [], [], max(0, end - time.monotonic()))
            assert ready, "the browser says nothing"
            more = os.read(self._in, 1 << 20)
            assert more, f"the browser ended with {self._process.wait(SLOW)}"
            self._waiting += more
        line, _, self._waiting = self._waiting.partition(b"\0")
        return dict(json.loads(line))

    def open(self, path: Path) -> None:
        """Show a file, until all that it loads is loaded."""
        self.happened = []
        self.ask("Page.navigate", url=path.as_uri())
        while not self.told("Page.loadEventFired"):
            self.happened.append(self._next())

    def told(self, method: str) -> list[dict[str, Any]]:
        """What happened of a kind."""
        return [one["params"] for one in self.happened if one.get("method") == method]

    def requests(self) -> list[str]:
        """The addresses that the page asked for, without those that hold what they name."""
        asked = [str(one["request"]["url"]) for one in self.told("Network.requestWillBeSent")]
        return [address for address in asked if not address.startswith("data:")]

    def run(self, script: str) -> Any:
        """What a script gives in the page; what the page forbids its own scripts does not hold for this one."""
        told = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def resize(self, width: int, *, dark: bool = False) -> None:
        """A window of so many points, for somebody who likes it light or dark."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
