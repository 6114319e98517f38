"""Every benchmark in this folder, one after the other: each is a module with a `main(out)` that prints its tables.

python benchmarks/run.py            all of them
python benchmarks/run.py log views  some of them
"""

from __future__ import annotations

import compileall
import importlib.util
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).parent


def modules(chosen: list[str]) -> list[ModuleType]:
    """The benchmark modules, by name; all where none is named."""
    there = {path.stem: path for path in sorted(HERE.glob("*.py")) if path != Path(__file__)}
    if unknown := [name for name in chosen if name not in there]:
        raise SystemExit(f"no benchmark is called {', '.join(unknown)}; there are: {', '.join(there)}")
    return [load(name, there[name]) for name in chosen or there]


def load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(out: Callable[[str], object], chosen: list[str]) -> None:
    compileall.compile_dir(str(HERE.parent / "src"), quiet=1)  # as an installed package is
    out(f"Python {platform.python_version()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the start.")
    for module in modules(chosen):
        if hasattr(module, "main"):
            out("")
            module.main(out)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main(lambda line: print(line, flush=True), sys.argv[1:])
