"""A power cut, simulated: what a disk holds at each moment, told from the system calls of a worker.

The worker runs once under strace. Every call that changes a file, a folder or what is on the disk is played again on a
model in memory, which knows of each file and folder what is there and what is certain to survive: content after a sync
of the file, names after a sync of the folder. After each call the power may fail; `states` gives what is then on the
disk, under four assumptions: only what is certain, all contents, all names, everything.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .faults import _environment

CALLS = "openat,mkdir,mkdirat,write,pwrite64,fsync,fdatasync,rename,renameat,link,linkat,unlink,unlinkat,ftruncate"
ASSUMED = {"certain": (True, True), "contents": (True, False), "names": (False, True), "all": (False, False)}
"""Whether names, and whether contents, are only those that were synced."""
_LINE = re.compile(r"^\d+ +(\w+)\((.*)\) += (-?\d+)")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_OPEN = re.compile(r"^(?:\d+|AT_FDCWD)<((?:\\x[0-9a-f]{2})*)>")


class Cut(NamedTuple):
    """The disk after a power cut."""

    after: int
    """How many calls had returned."""
    assumed: str
    files: dict[str, bytes | None]
    """Path below the root to content; None for a folder."""
    said: list[str]
    """What the worker had acknowledged."""


class _Node:
    """A file or a folder: as it is, and as it is certain to survive."""

    def __init__(self, *, folder: bool) -> None:
        self.folder = folder
        self.names: dict[str, _Node] = {}
        self.safe_names: dict[str, _Node] = {}
        self.data = self.safe_data = b""

    def sync(self) -> None:
        self.safe_names, self.safe_data = dict(self.names), self.data


class _Disk:
    def __init__(self, root: Path) -> None:
        self._root, self.top, self.said = str(root), _Node(folder=True), b""

    def _find(self, path: str) -> tuple[_Node | None, str]:
        """The folder that a path lies in, and the name there; no folder outside the root."""
        if not path.startswith(self._root + "/"):
            return None, ""
        node, (*above, name) = self.top, path[len(self._root) + 1 :].split("/")
        for part in above:
            node = node.names[part]
        return node, name

    def _node(self, path: str) -> _Node | None:
        if path == self._root:
            return self.top
        above, name = self._find(path)
        return above.names.get(name) if above else None

    def play(self, call: str, words: str, answer: int) -> bool:
        """Do what the call did; whether that changed the disk."""
        texts = [bytes.fromhex(found.replace("\\x", "")) for found in _TEXT.findall(words)]
        opened = _OPEN.match(words)
        own = bytes.fromhex(opened[1].replace("\\x", "")).decode() if opened else ""
        if call in ("write", "pwrite64"):
            return self._write(call, words, own, texts[0][:answer])
        if call in ("fsync", "fdatasync", "ftruncate"):
            node = self._node(own)
            if node is not None:
                if call == "ftruncate":
                    size = int(words.rsplit(", ", 1)[1])
                    node.data = node.data[:size].ljust(size, b"\0")
                else:
                    node.sync()
            return node is not None
        paths = [os.path.normpath(os.path.join(own if call == "openat" else "/", text.decode())) for text in texts]
        above, name = self._find(paths[0])
        if above is None:
            return False
        if call == "openat":
            if "O_CREAT" not in words or name in above.names:
                return False
            above.names[name] = _Node(folder=False)
        elif call.startswith("mkdir"):
            above.names[name] = _Node(folder=True)
        elif call.startswith("unlink"):
            del above.names[name]
        else:
            to, new = self._find(paths[1])
            assert to is not None
            to.names[new] = above.names[name]
            if call.startswith("rename"):
                del above.names[name]
        return True

    def _write(self, call: str, words: str, own: str, data: bytes) -> bool:
        if words.startswith("1<"):
            self.said += data
            return True
        node = self._node(own)
        if node is None:
            return False
        at = int(words.rsplit(", ", 1)[1]) if call == "pwrite64" else len(node.data)  # `write` only appends
        node.data = node.data[:at].ljust(at, b"\0") + data + node.data[at + len(data) :]
        return True

    def survives(self, *, safe_names: bool, safe_data: bool) -> dict[str, bytes | None]:
        found: dict[str, bytes | None] = {}

        def walk(node: _Node, path: str) -> None:
            for name, below in (node.safe_names if safe_names else node.names).items():
                if below.folder:
                    found[path + name] = None
                    walk(below, f"{path}{name}/")
                else:
                    found[path + name] = below.safe_data if safe_data else below.data

        walk(self.top, "")
        return found


def states(worker: Path, root: Path, *args: object) -> Iterator[Cut]:
    """What can be on the disk after a cut at any moment of one run of the worker, which gets `root` and `args`."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace")
        command = ["strace", "-qq", "-f", "-y", "-xx", "-s", "100000000", "-o", str(trace), "-e", f"trace={CALLS}"]
        command += [os.path.realpath(sys.executable), "-S", str(worker), str(root), *map(str, args)]
        done = subprocess.run(command, env=_environment(), capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        lines = trace.read_text().splitlines()
    disk, seen = _Disk(Path(os.path.realpath(root))), set()
    for number, line in enumerate(lines):
        found = _LINE.match(line)
        if found is None or int(found[3]) < 0 or not disk.play(found[1], found[2], int(found[3])):
            continue
        said = disk.said.decode().splitlines()
        for assumed, (names, data) in ASSUMED.items():
            files = disk.survives(safe_names=names, safe_data=data)
            key = hash((tuple(sorted(files.items(), key=lambda pair: pair[0])), len(said)))
            if key not in seen:
                seen.add(key)
                yield Cut(number, assumed, files, said)


def write_out(files: dict[str, bytes | None], root: Path) -> None:
    """Make the files of a state."""
    for name, data in sorted(files.items()):
        if data is None:
            (root / name).mkdir(parents=True)
        else:
            (root / name).write_bytes(data)
