"""The page with a session of 100,000 records, and agentsview with the same one, in one run and one browser.

The peer is installed into an environment of its own (`.tools/page-peer`, never a dependency of ours). Its index is built
before anything is measured, and so is ours. The machine is busy, so ratios count.

The first rows are there, in either page, when somebody could read one: when the last words of a message are drawn
inside the window and nothing lies over them. The page itself notes that, in milliseconds since its navigation began. Not
of a certain message: agentsview loads the last thousand and shows the first of these, which is neither the first nor
the last of the session. Both are asked in turns, so that whatever else the machine does is there for both. The first of
all, of a server that was just started and a browser that knows nothing of it, is told apart: the median of three such
starts. The other figure is the median of the visits after these.

python benchmarks/page.py [RECORDS]
"""

from __future__ import annotations

import gzip
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.large_session import WORDS, write_large_session  # noqa: E402
from support.viewed import long_session, write_log  # noqa: E402

PEER = "agentsview==0.46.1"
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
ROUNDS = 3
VISITS = 3
"""Starts of both servers, and visits of a browser behind the first one of each."""
TALK = "talk"
"""The session in which twenty agents talk: Flow is about these, and a session of one agent has none."""
VIEWS = {"agents": ".agent-card", "flow": ".flow-list .list-row"}
"""What is there when a view is."""
SCROLL = """async ([selector, step, frames]) => {
  const element = selector === 'auto'
    ? [...document.querySelectorAll('*')].filter(e => e.scrollHeight > 3 * e.clientHeight && e.clientHeight > 300)
        .sort((a, b) => b.scrollHeight - a.scrollHeight)[0]
    : document.querySelector(selector);
  const times = [];
  let last = performance.now();
  for (let n = 0; n < frames; n++) {
    element.scrollTop += step;
    await new Promise(done => requestAnimationFrame(done));
    const now = performance.now();
    times.push(now - last);
    last = now;
  }
  return times.sort((a, b) => a - b);
}"""
SEEN = """([words, limit]) => {
  const known = new Set(words);
  const isMessage = (text) => {
    const said = text.trim().split(' ');
    return said.length >= 30 && said.every(word => known.has(word));
  };
  const isRead = (node) => {
    const range = document.createRange();
    range.setStart(node, node.data.trimEnd().length - 30);
    range.setEnd(node, node.data.trimEnd().length);
    const boxes = [...range.getClientRects()];
    return boxes.length > 0 && boxes.every(box => {
      const on = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
      return box.width && box.height && on && (on.contains(node) || node.parentElement.contains(on));
    });
  };
  const found = () => {
    const nodes = document.createTreeWalker(document.body || document, NodeFilter.SHOW_TEXT);
    for (let node = nodes.nextNode(); node; node = nodes.nextNode())
      if (node.data.length > 90 && isMessage(node.data) && isRead(node)) return node;
    return null;
  };
  const note = (name) => requestAnimationFrame(() => (window[name] ??= performance.now()));
  const look = () => {
    const node = performance.now() > limit ? document.documentElement : found();
    if (node) note('firstWords');
    if (node && !node.parentElement?.closest('#first-words')) note('drawnRows');
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""
"""Notes, in milliseconds since the navigation began, the beginning of the frame behind the one in which the first
message, of the words of the generated session, could be read to its end: then that one has been drawn. And when that
was so for one that the page's script has drawn, with all that belongs to it: ours has words before."""


def harken(*words: str) -> str:
    made = subprocess.run([sys.executable, "-m", "harken", *words], check=True, capture_output=True, text=True)
    return made.stdout


@contextmanager
def our_server(store: Path) -> Iterator[tuple[str, str]]:
    token = harken(
        "--store", str(store), "token", "create", f"bench-{os.getpid()}-{time.time_ns()}", "--grant", "admin"
    )
    words = [
        sys.executable,
        "-m",
        "harken",
        "--store",
        str(store),
        "serve",
        "--port",
        "0",
        "--no-watch",
        "--no-open",
        "--json",
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"].partition("#")[0].rstrip("/")
        try:
            yield url, token.strip()
        finally:
            process.terminate()


@contextmanager
def peer_server(home: Path, where: Path) -> Iterator[str]:
    """agentsview on the same home, when it has taken everything in."""
    tools = ROOT / ".tools" / "page-peer"
    if not (tools / "bin" / "agentsview").exists():
        subprocess.run([sys.executable, "-m", "venv", str(tools)], check=True)
        subprocess.run([str(tools / "bin" / "pip"), "install", "-q", PEER], check=True)
    port = 18_741
    environ = {**os.environ, "HOME": str(home), "AGENTSVIEW_DATA_DIR": str(where), "XDG_DATA_HOME": str(where / "data")}
    words = [str(tools / "bin" / "agentsview"), "serve", "--no-browser", "--no-update-check", "--port", str(port)]
    with subprocess.Popen(words, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_for(lambda: bool(_json(f"{url}/api/v1/sessions").get("sessions")), 180)
            yield url
        finally:
            process.terminate()
            process.wait(20)


def _json(url: str) -> dict[str, Any]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=20) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def _wait_for(there: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if there():
                return
        except OSError:
            pass
        time.sleep(0.5)
    raise SystemExit("the peer did not come up")


def timed(page: Page, address: str, selector: str, limit: float = 40.0) -> float:
    """Seconds from asking for an address until something is there; infinite where it does not come."""
    page.goto("about:blank")
    begun = time.perf_counter()
    page.goto(address, wait_until="commit")
    try:
        page.locator(selector).first.wait_for(timeout=limit * 1000)
    except Exception:
        return float("inf")
    return time.perf_counter() - begun


def first_words(page: Page, address: str, limit: float = 40.0) -> tuple[float, float]:
    """Seconds from asking for an address until a message can be read, and until the page's script has drawn one. Measured
    in the page, as its reader would, with the looking begun before anything of it is there."""
    page.goto("about:blank")
    page.goto(address, wait_until="commit")
    page.wait_for_function("() => window.drawnRows !== undefined", timeout=(limit + 5) * 1000, polling=20)
    words, rows = page.evaluate("() => [window.firstWords, window.drawnRows]")
    return words / 1000, rows / 1000


def new_page(browser: Browser) -> Page:
    """A page of a browser that has nothing in its cache, with somebody who looks for the first words."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.add_init_script(f"({SEEN})({json.dumps([WORDS, 40_000])})")
    return page


def heap(page: Page) -> float:
    """Megabytes that the page's own objects take, after what nobody holds was thrown away."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    return float(session.send("Runtime.getHeapUsage")["usedSize"]) / 1e6


def sign_in(page: Page, url: str, token: str) -> None:
    """Have a browser be known, without the page being in its cache."""
    page.goto(f"{url}/healthz")
    page.evaluate(
        """word => fetch('/api/v1/login', {method: 'POST', headers: {'Content-Type': 'application/json'},
          body: JSON.stringify({word})})""",
        token,
    )


def peer_address(url: str, session: str) -> str:
    found = _json(f"{url}/api/v1/sessions")["sessions"]
    return f"{url}/sessions/{next(one['id'] for one in found if session in one['id'])}"


def first_rows(browser: Browser, store: Path, home: Path, where: Path, session: str) -> dict[str, list[float]]:
    """Seconds until the first words of both, in turns, `cold` and `warm`, and until their scripts have drawn them."""
    took: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        with our_server(store) as (url, token), peer_server(home, where) as peer:
            mine, theirs = new_page(browser), new_page(browser)
            sign_in(mine, url, token)
            visits = [("our", mine, f"{url}/s/{session}"), ("their", theirs, peer_address(peer, session))]
            for number in range(VISITS + 1):
                for who, page, address in visits:
                    name = f"{who} {'warm' if number else 'cold'}"
                    for what, seconds in zip(("words", "rows"), first_words(page, address), strict=True):
                        took.setdefault(f"{name} {what}", []).append(seconds)
                    page.wait_for_timeout(1000)  # what comes behind the first words is not the other's
            for page in (mine, theirs):
                page.context.close()
        print({name: [round(one, 2) for one in some] for name, some in took.items()}, file=sys.stderr, flush=True)
    return took


def looked_at(page: Page, address: str, selector: str) -> dict[str, Any]:
    """Scrolling, the heap and the elements of a page."""
    first_words(page, address)
    page.wait_for_timeout(1500)
    slow = page.evaluate(SCROLL, [selector, 400, 120])
    fast = page.evaluate(SCROLL, [selector, 20_000, 120])
    nodes = page.evaluate("() => document.querySelectorAll('*').length")
    return {"slow": slow, "fast": fast, "heap": heap(page), "nodes": nodes}


def ours(browser: Browser, store: Path, session: str, record: str) -> dict[str, Any]:
    with our_server(store) as (url, token):
        page = new_page(browser)
        sign_in(page, url, token)
        found = looked_at(page, f"{url}/s/{session}", ".rows")
        deep = [timed(page, f"{url}/s/{session}?e={record}", ".row-frame.selected") for _ in range(ROUNDS)]
        shown = {"agents": session, "flow": TALK}
        views = {name: timed(page, f"{url}/s/{shown[name]}?v={name}", selector) for name, selector in VIEWS.items()}
    return {**found, "deep": deep, "views": views}


def theirs(browser: Browser, home: Path, where: Path, session: str) -> dict[str, Any]:
    with peer_server(home, where) as url:
        page, address = new_page(browser), peer_address(url, session)
        found = looked_at(page, address, "auto")
        shown = "[data-message-ordinal='60000'], [data-ordinal='60000']"
        deep = [timed(page, f"{address}?msg=60000", shown, 30)]
    return {**found, "deep": deep}


def many_sessions(where: Path, count: int = 2000) -> Path:
    """A store with that many small sessions."""
    home = where / "many"
    for number in range(count):
        write_large_session(home, 12, seed=1000 + number)
    harken("--store", str(where / "many.db"), "import", str(home))
    harken("--store", str(where / "many.db"), "index")
    return where / "many.db"


def home_page(browser: Browser, store: Path) -> list[float]:
    with our_server(store) as (url, token):
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        page.goto(f"{url}/#token={token}")
        page.locator("header.top").wait_for()
        timed(page, f"{url}/", "h1, .home")  # what is remembered from one question to the next
        return [timed(page, f"{url}/", ".home h1, .home-sentence, .home p") for _ in range(ROUNDS)]


def exported(browser: Browser, store: Path, session: str, where: Path) -> tuple[float, int]:
    target = where / "export.html"
    harken("--store", str(store), "export", session, "--to", "html", "-o", str(target))
    return first_words(new_page(browser), target.as_uri(), 40)[1], target.stat().st_size


def first_files(static: Path, name: str = "app.js") -> set[str]:
    """The scripts that are loaded before the page shows anything."""
    found = {name}
    for part in re.findall(r'(?:from|import)"\./(part-\w+\.js)"', (static / name).read_text()):
        found |= first_files(static, part) if part not in found else set()
    return found


def ms(values: list[float], share: float) -> str:
    return f"{values[min(len(values) - 1, int(share * len(values)))]:.0f}"


def main(out: Callable[[str], object], records: int = 100_000) -> None:
    static = ROOT / "src" / "harken" / "service" / "web" / "static"
    sizes = {name: len(gzip.compress((static / name).read_bytes(), 9)) for name in {*first_files(static), "app.css"}}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        where = Path(folder)
        session, _, names = write_large_session(where / "home" / ".claude", records)
        talk = write_log(where / f"{TALK}.jsonl", long_session(records))
        harken("--store", str(where / "store.db"), "import", str(where / "home" / ".claude"), str(talk))
        harken("--store", str(where / "store.db"), "index")
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        home = where / "home"
        first = first_rows(browser, where / "store.db", home, where / "peer", session)
        mine = ours(browser, where / "store.db", session, names[int(0.87 * len(names))])
        peer = theirs(browser, home, where / "peer", session)
        opened, size = exported(browser, where / "store.db", session, where)
        first_page = home_page(browser, many_sessions(where))
        browser.close()
    out(f"### The page: a session of {records:,} records, Chromium without a window\n")
    out("| | Harken | agentsview 0.46.1 | limit |")
    out("|---|---|---|---|")
    for when, started in (("cold", "servers just started"), ("warm", "after that")):
        for what, words in (("words", "first words"), ("rows", "first rows by the script")):
            a, b = (statistics.median(first[f"{who} {when} {what}"]) for who in ("our", "their"))
            out(f"| {words}, {started}, s (ratio) | {a:.2f} ({a / b:.2f}) | {b:.2f} | 0.35 of agentsview |")
    out(
        f"| scrolling 400 px a frame, ms p50/p95 | {ms(mine['slow'], 0.5)} / {ms(mine['slow'], 0.95)} | {ms(peer['slow'], 0.5)} / {ms(peer['slow'], 0.95)} | p95 50 |"
    )
    out(
        f"| scrolling 20,000 px a frame, ms p50/p95 | {ms(mine['fast'], 0.5)} / {ms(mine['fast'], 0.95)} | {ms(peer['fast'], 0.5)} / {ms(peer['fast'], 0.95)} | |"
    )
    deep = peer["deep"][0]
    out(
        f"| link to a record, s | {statistics.median(mine['deep']):.2f} | {'not within 30' if deep == float('inf') else f'{deep:.2f}'} | 1 |"
    )
    out(f"| heap, MB | {mine['heap']:.1f} | {peer['heap']:.1f} | 40 |")
    out(f"| elements | {mine['nodes']} | {peer['nodes']} | |")
    for name, seconds in mine["views"].items():
        out(f"| the view {name}, the first time, s | {seconds:.2f} | | |")
    out(f"| script and style, packed, KB | {sum(sizes.values()) / 1000:.1f} | | 100 |")
    out(f"| the export opens from disk, s | {opened:.2f} ({size / 1e6:.1f} MB) | | 4 |")
    out(f"| home with 2,000 sessions, s | {statistics.median(first_page):.2f} | | 0.5 |")


if __name__ == "__main__":
    main(lambda line: print(line, flush=True), int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
