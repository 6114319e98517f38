"""`harken watch --install` under a real systemd: the unit starts, watches, is started again, and goes away."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.sessions import conversation

pytestmark = pytest.mark.system

SCRIPT = r"""
set -eu
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system "$XDG_RUNTIME_DIR"
systemd=/usr/lib/systemd/systemd; [ -x "$systemd" ] || systemd=/lib/systemd/systemd
"$systemd" --user --log-target=console >"$HOME/systemd.log" 2>&1 &
manager=$!
harken() { "$PYTHON" -m harken --store "$STORE" "$@"; }
stored() { harken sessions | grep -q aaa; }
state() { systemctl --user show -p "$1" --value harken-watch; }
is() { [ "$(state "$1")" = "$2" ]; }
until_it() { for _ in $(seq 300); do "$@" >/dev/null 2>&1 && return 0; sleep 0.1; done; echo "never: $*"; return 1; }
until_it systemctl --user is-system-running
echo "systemd runs"
harken watch --install --yes >/dev/null 2>&1
until_it systemctl --user is-active harken-watch
mkdir -p "$HOME/.claude/projects/-p"
cp "$SESSION" "$HOME/.claude/projects/-p/"
until_it stored
echo "watched"
kill -9 "$(state MainPID)"
until_it is SubState auto-restart
echo "to be started again"
systemctl --user restart harken-watch
until_it systemctl --user is-active harken-watch
systemctl --user kill --signal=TERM harken-watch
until_it is ActiveState inactive
echo "ended: $(state Result)"
harken watch --uninstall --yes >/dev/null 2>&1
find "$HOME/.config" -name '*harken*'
echo "removed"
kill $manager
wait $manager || true
"""


def test_the_unit_starts_watches_and_goes_away(tmp_path: Path) -> None:
    """In namespaces of its own: a folder /run in which the machine looks as if systemd had started it."""
    home = tmp_path / "home"
    home.mkdir()
    session = tmp_path / "aaa.jsonl"
    session.write_bytes(conversation("aaa", 2).data)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "XDG_RUNTIME_DIR": "/run/user/0",
        "SESSION": str(session),
        "PYTHON": sys.executable,
        "STORE": str(tmp_path / "my %store $x.db"),
    }
    assert shutil.which("systemctl"), "systemd is not installed; run scripts/system"

    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--propagation", "private", "bash", "-c", SCRIPT],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    if "systemd runs" not in done.stdout:  # in many a sandbox; nothing of ours has run yet
        pytest.skip(f"systemd cannot be started here: {done.stdout}{done.stderr}")

    told = ["systemd runs", "watched", "to be started again", "ended: success", "removed"]
    assert told == done.stdout.splitlines(), done.stderr
