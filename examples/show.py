"""What `make run` shows: the café is played, killed half-way, resumed, and looked at from several sides."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cafe import play
from stage import script

from harken import SessionViewer, load_session

DEATH = b"Do not sound as if you were applying"
"""Jill's inner voice, in the middle of Jill's turn, in the middle of a discussion."""
TIMEOUT = 60.0


def child(file: Path) -> None:
    """Play slowly enough to be killed."""
    root, session = load_session(
        file,
        name="Narrator",
        language_model=script("cafe.toml"),
        observers=[lambda events: time.sleep(0.03 * len(events))],
    )
    with session:
        root.harken("Create Jack and Jill and let them meet in a café.")
        asyncio.run(root.response())


def folder() -> Path:
    """Where the demonstration is kept: here, or in a temporary folder where nothing can be written here."""
    here = Path(".harken-demo")
    try:
        here.mkdir(exist_ok=True)
        (here / ".gitignore").write_text("*\n")
    except OSError:
        return Path(tempfile.mkdtemp(prefix="harken-demo-"))
    return here


def fresh(where: Path) -> Path:
    """A session file that is not there yet."""
    number = 1
    while (file := where / f"cafe-{number}.jsonl").exists():
        number += 1
    return file


def play_and_kill(file: Path) -> int:
    """Start the café in a process of its own and kill it when Jill listens to her inner voice; events it left."""
    process = subprocess.Popen([sys.executable, __file__, "--child", str(file)])
    try:
        end = time.monotonic() + TIMEOUT
        while not (file.exists() and DEATH in file.read_bytes()):
            if process.poll() is not None or time.monotonic() > end:
                sys.exit("the café came to an end before it could be killed")
            time.sleep(0.005)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    return file.read_bytes().count(b"\n")


def heading(number: int, text: str) -> None:
    """A line that is seen."""
    width = min(shutil.get_terminal_size().columns, 78)
    print(f"\n{number}. {text}\n{'-' * min(width, len(text) + 3)}", flush=True)


def look(*words: str) -> None:
    """Run a command of ours, and show which."""
    print(f"$ harken {' '.join(words)}", flush=True)
    subprocess.run([sys.executable, "-m", "harken", *words], check=True)
    print(flush=True)


def main() -> None:
    """The whole show."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    file = fresh(folder())
    heading(1, "Jack and Jill meet in a café (from a script: no key, no network)")
    events = play_and_kill(file)
    print(f"killed (SIGKILL) in the middle of Jill's thoughts; the log has {events} events")

    heading(2, "Another process resumes from the log alone")
    print(asyncio.run(play(file)))
    viewer = SessionViewer(file)
    total = sum(1 for _ in viewer.timeline())
    print(f"the log has {total} events; nobody heard anything twice, and nothing was lost")

    heading(3, "What the two said to each other")
    look("view", "dialog", str(file), "Jack", "Jill")
    heading(4, "How it was for Jill, whose inner voice nobody else heard")
    look("view", "perspective", str(file), "Jill", "Inner")
    heading(5, "Where each text came from and to whom it went")
    look("view", "flow", str(file))

    line = next(
        line for line in viewer.extract_dialog(["Jack", "Jill"]) if line["agent_id"] == viewer.find_agent("Jack")
    )
    heading(6, "Look for yourself")
    for words in (
        f"view tree {file}",
        f"view sequence {file}",
        f"view heard {file} {line['message_id']}",
        f"trace {file} {line['message_id']}",
        f"chat --resume {file}",
        "chat",
    ):
        print(f"  {os.path.relpath(Path(sys.executable).with_name('harken'))} {words}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(Path(sys.argv[2]))
    else:
        main()
