"""A store, a service and a real Chromium for the tests of the page."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright

import harken
from support.large_session import write_large_session

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPT = Path(__file__).parents[2] / "scripts" / "page"
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"),
]
LARGE = 100_000


class Served:
    """A service in a process of its own, so that it can be killed."""

    def __init__(self, store: Path, port: int = 0, *more: str) -> None:
        self.store = store
        self._words = [sys.executable, "-m", "harken", "--store", str(store), "serve", "--no-open", "--json", *more]
        self.port = port
        # The word in the address signs one browser in; a token as many as one likes.
        words = [sys.executable, "-m", "harken", "--store", str(store), "token", "create", f"test-{uuid.uuid4().hex}"]
        made = subprocess.run([*words, "--grant", "admin"], check=True, capture_output=True, text=True)
        self.token = made.stdout.strip()
        self.start()

    def start(self) -> None:
        """Start it, on the same port as before."""
        self.process = subprocess.Popen([*self._words, "--port", str(self.port)], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        told = json.loads(self.process.stdout.readline())
        self.login, self.url, self.port = told["url"], told["url"].partition("#")[0].rstrip("/"), told["port"]
        assert self.process.poll() is None

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it, and wait until it has."""
        self.process.send_signal(how)
        self.process.wait(20)
        if self.process.stdout is not None:
            self.process.stdout.close()


class Visit:
    """A page in a browser, and everything that went wrong in it."""

    def __init__(self, context: BrowserContext, served: Served) -> None:
        self.served = served
        self.problems: list[str] = []
        self.abroad: list[str] = []
        self.page: Page = context.new_page()
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda problem: self.problems.append(f"error: {problem}"))
        self.page.on("request", self._request)
        self.page.set_default_timeout(15_000)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"{message.type}: {message.text}")

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self.served.url, "data:", "blob:")):
            self.abroad.append(request.url)

    def sign_in(self) -> Visit:
        self.page.goto(f"{self.served.url}/#token={self.served.token}")
        self.page.locator("header.top").wait_for()
        return self

    def open(self, path: str) -> Page:
        """Look at an address of the page."""
        self.page.goto(self.served.url + path)
        return self.page


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        yield found
        found.close()


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demonstrations and the recorded sessions, as `make run` has them."""
    where = tmp_path_factory.mktemp("page")
    subprocess.run([sys.executable, str(SCRIPT), "--fill", str(where)], check=True)
    return where / "store.db"


@pytest.fixture(scope="session")
def served(store: Path) -> Iterator[Served]:
    running = Served(store, 0, "--no-watch")
    yield running
    running.stop()


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, list[str]]:
    """A store with a session of 100,000 records: the store, the session, the ids of its records."""
    where = tmp_path_factory.mktemp("large")
    session, _, records = write_large_session(where / "home", LARGE)
    with harken.open(where / "store.db") as repo:
        assert ["new"] == [told.status for told in repo.import_sessions([where / "home"])]
        repo.index.catch_up()
    return where / "store.db", session, records


@pytest.fixture(scope="session")
def large_served(large: tuple[Path, str, list[str]]) -> Iterator[Served]:
    running = Served(large[0], 0, "--no-watch")
    yield running
    running.stop()


def visiting(browser: Browser, served: Served, **how: Any) -> Iterator[Visit]:
    context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **how})
    visit = Visit(context, served).sign_in()
    yield visit
    context.close()
    assert [] == visit.abroad
    assert [] == visit.problems


@pytest.fixture
def visit(browser: Browser, served: Served) -> Iterator[Visit]:
    """A browser that is signed in. Whatever the test does, the page tells of no error and asks nobody else."""
    yield from visiting(browser, served)


@pytest.fixture
def large_visit(browser: Browser, large_served: Served) -> Iterator[Visit]:
    yield from visiting(browser, large_served)


@pytest.fixture(scope="session")
def sessions(store: Path) -> dict[str, str]:
    """The sessions of the store that tests ask for, by what they are."""
    found: dict[str, str] = {}
    with harken.open(store) as repo:
        rows = repo.sessions()
        for row in rows:
            name = re.sub(r"\W.*", "", Path(row.source or "").stem)
            if not row.parent:
                found.setdefault(name, row.session)
        several = [row.parent for row in rows if row.parent and row.runtime == "claude-code"]
        found["sub_agents"] = max(set(several), key=several.count)
    return found
