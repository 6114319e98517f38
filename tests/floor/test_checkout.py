"""A run of the tests leaves the checkout clean; a run that does not is a failure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


def run_tests(folder: Path, body: str, *options: str) -> subprocess.CompletedProcess[str]:
    """A checkout of one test, run with the hooks that this one is run with."""
    (folder / "tests").mkdir()
    (folder / "pyproject.toml").write_text(f"[tool.pytest.ini_options]\npythonpath = [{str(TESTS)!r}]\n")
    (folder / "tests" / "conftest.py").write_bytes((TESTS / "conftest.py").read_bytes())
    (folder / "tests" / "test_one.py").write_text(f"from pathlib import Path\n\ndef test_one(tmp_path):\n    {body}\n")
    command = [sys.executable, "-m", "pytest", "-q", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("options", [(), ("-n", "1")])
def test_a_run_that_makes_a_file_in_the_checkout_fails_and_names_it(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = run_tests(tmp_path, "Path('left.db').write_text('x')", *options)

    assert (1, True) == (done.returncode, "made files in the checkout: left.db" in done.stdout)


def test_a_run_that_writes_elsewhere_passes(tmp_path: Path) -> None:
    done = run_tests(tmp_path, "(tmp_path / 'left.db').write_text('x')")

    assert 0 == done.returncode, done.stdout


def test_programs_that_tests_start_find_harken_compiled() -> None:
    """Also where the machine says that Python keeps no bytecode."""
    code = "import sys, harken; print(sys.dont_write_bytecode, harken.__cached__)"
    found = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert "False" == found[0]
    assert Path(found[1]).exists()
