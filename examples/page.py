"""What `make run` shows: the demonstrations and the recorded sessions on the page.

The store lies below this project and is made once. On a terminal one is asked whether the sessions of one's own should
be taken in, too; after a yes they are watched as well. Without a terminal the page is asked for, and what it shows is
told.
"""

from __future__ import annotations

import asyncio
import importlib
import io
import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

from show import folder

import harken

HERE = Path(__file__).parent
PLAYS = ("cafe", "redaction", "steel_man", "characters", "debate", "socratic", "strategist", "resource_hook")
"""The demonstrations that are played for it."""
RECORDED = HERE.parent / "tests" / "recorded"
BESIDE = "store.db"


def play_all(where: Path) -> list[Path]:
    """The logs of the demonstrations, each played once."""
    found = []
    for name in PLAYS:
        file = where / f"{name}.jsonl"
        if not file.exists():
            asyncio.run(importlib.import_module(name).play(file))
        found.append(file)
    return found


def fill(where: Path) -> Path:
    """A store with all of that; what is in it already is left alone."""
    store = where / BESIDE
    with harken.open(store) as repo:
        sources = [*play_all(where), *([RECORDED] if RECORDED.is_dir() else [])]
        failed = [told.source for told in repo.import_sessions(sources) if told.status == "failed"]
        repo.index.catch_up()
    if failed:
        print(f"not imported: {', '.join(map(str, failed))}", file=sys.stderr)
    return store


def wants_own() -> bool:
    """Whether whoever sits at the terminal wants to see sessions of his own."""
    if os.environ.get("CI") or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    print("Harken can also take in your own sessions of Claude Code and Codex.")
    print("They are only read, and stay on this machine.")
    return input("Take them in, and watch them while the page runs? [y/N] ").strip().lower() in ("y", "yes")


def look(store: Path) -> None:
    """Start the service, ask it what the page shows, say so, and end it."""
    words = [sys.executable, "-m", "harken", "--store", str(store), "serve", "--port", "0", "--no-watch", "--no-open"]
    with subprocess.Popen([*words, "--json"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url, _, word = json.loads(process.stdout.readline())["url"].partition("#token=")
            page = _ask(url)
            cookie = _ask(url + "api/v1/login", {"word": word}).headers["Set-Cookie"].partition(";")[0]
            listed = json.load(_ask(url + "api/v1/sessions_page", {"count": 5}, cookie))
            print(f"{url} answers {page.status} with {len(page.read())} bytes")
            print(f"and shows {listed['total']} sessions, such as")
            for one in listed["rows"]:
                print(f"  {one['short'][:36]:38}{one['runtime']:13}{one['title'][:60]}")
        finally:
            process.terminate()


def _ask(url: str, request: dict[str, object] | None = None, cookie: str = "") -> io.BufferedIOBase:
    data = None if request is None else json.dumps(request).encode()
    headers = {"Content-Type": "application/json", **({"Cookie": cookie} if cookie else {})}
    # A proxy that the machine has is not for us.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return opener.open(urllib.request.Request(url, data=data, headers=headers), timeout=60)


def main() -> None:
    """Fill the store, then serve it."""
    where = folder()
    print("Playing the demonstrations and taking in the recorded sessions …", flush=True)
    store = fill(where)
    if os.environ.get("CI") or not sys.stdout.isatty():
        look(store)
        return
    own = wants_own()
    if own:
        subprocess.run([sys.executable, "-m", "harken", "--store", str(store), "import"], check=False)
    watching = [] if own else ["--no-watch"]
    os.execv(sys.executable, [sys.executable, "-m", "harken", "--store", str(store), "serve", *watching])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--fill"]:  # only the store, in a folder that is named
        fill(Path(sys.argv[2]))
    else:
        main()
