"""Installs a small distribution into a folder, as pip would: its packages, its metadata, its programs.

`importlib.metadata` finds it wherever the folder is on the path, so entry points work in a child process with no
network and no change to the environment that the tests run in."""

from __future__ import annotations

import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any


def install(project: Path, folder: Path) -> dict[str, str]:
    """Install the project; the answer is the environment in which it is there."""
    facts: dict[str, Any] = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    site, programs = folder / "site", folder / "bin"
    for package in project.iterdir():
        if (package / "__init__.py").exists():
            shutil.copytree(
                package, site / package.name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
            )
    info = site / f"{facts['name'].replace('-', '_')}-{facts['version']}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {facts['name']}\nVersion: {facts['version']}\n")
    groups = facts.get("entry-points", {})
    (info / "entry_points.txt").write_text("".join(map(_section, groups, groups.values())))
    programs.mkdir(parents=True, exist_ok=True)
    for name, target in facts.get("scripts", {}).items():
        module, function = target.split(":")
        path = programs / name
        path.write_text(f"#!{sys.executable}\nfrom {module} import {function}\n{function}()\n")
        path.chmod(0o755)
    return {"PYTHONPATH": str(site), "PATH": f"{programs}:{Path(sys.executable).parent}:/usr/bin:/bin"}


def _section(group: str, entries: dict[str, str]) -> str:
    return f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items()) + "\n"
