"""The registry: ours, those of plug-ins, and what is said of a plug-in that cannot be used."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from harken import runtimes
from harken.errors import BadRequest
from harken.runtimes import Runtime
from harken.runtimes.plugins import load_plugins

GROUP = "harken.runtimes"


@pytest.fixture
def plugin() -> Iterator[ModuleType]:
    """A module with runtimes in it, good and bad."""
    module = ModuleType("some_plugin")
    codex = runtimes.get("codex")
    module.GOOD = msgspec.structs.replace(codex, name="good")  # type: ignore[attr-defined]
    module.NO_FORMAT = msgspec.structs.replace(codex, name="no-format", format="lost-v1")  # type: ignore[attr-defined]
    module.NOT_ONE = "a text"  # type: ignore[attr-defined]
    sys.modules["some_plugin"] = module
    yield module
    del sys.modules["some_plugin"]


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name=name, value=value, group=GROUP)


@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_ours_are_there_by_name(name: str) -> None:
    assert name == runtimes.get(name).name
    assert {"import", "resume", "run"} >= runtimes.get(name).can
    assert name in runtimes.names()


def test_another_name_is_refused_with_what_there_is() -> None:
    with pytest.raises(BadRequest, match="there is no runtime 'vim'") as refused:
        runtimes.get("vim")
    assert refused.value.hint is not None
    assert refused.value.hint.startswith("there are: claude-code, codex")


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("broken", "no_such_module:RUNTIME", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("broken", "some_plugin:MISSING", "AttributeError: module 'some_plugin' has no attribute 'MISSING'"),
        ("text", "some_plugin:NOT_ONE", "some_plugin:NOT_ONE is no harken.runtimes.Runtime"),
        ("other", "some_plugin:GOOD", "it calls itself 'good'"),
        ("no-format", "some_plugin:NO_FORMAT", "there is no format 'lost-v1'"),
        ("codex", "some_plugin:GOOD", "Harken has a runtime of that name itself"),
        ("a/b", "some_plugin:GOOD", "a name has letters, digits, dots, dashes and underscores"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_named_and_the_rest_goes_on(
    plugin: ModuleType, name: str, value: str, why: str
) -> None:
    found = load_plugins([point(name, value), point("good", "some_plugin:GOOD")])

    assert ["good"] == list(found.runtimes)
    assert [(name, why)] == [(problem.name, problem.reason) for problem in found.problems]
    assert f"the runtime {name!r} of the package (unknown) cannot be used: {why}" == str(found.problems[0])


def test_a_plugin_that_ends_the_process_when_it_is_loaded_is_named_and_the_rest_goes_on(
    plugin: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "leaving_plugin.py").write_text("import sys\nsys.exit('goodbye')\n")
    monkeypatch.syspath_prepend(tmp_path)

    found = load_plugins([point("leaving", "leaving_plugin:RUNTIME"), point("good", "some_plugin:GOOD")])

    assert ["good"] == list(found.runtimes)
    assert [("leaving", "SystemExit: goodbye")] == [(problem.name, problem.reason) for problem in found.problems]


def test_two_plugins_of_one_name_are_both_reported_and_neither_is_used(plugin: ModuleType) -> None:
    found = load_plugins([point("good", "some_plugin:GOOD"), point("good", "elsewhere:GOOD")])

    assert {} == found.runtimes
    assert ["good", "good"] == [problem.name for problem in found.problems]
    assert "several packages have one of that name: (unknown), (unknown)" == found.problems[0].reason


def test_where_a_runtime_keeps_its_sessions_follows_from_the_environment_alone() -> None:
    def roots(runtime: Runtime, environ: dict[str, str]) -> list[str]:
        return [str(root) for root in runtime.roots(runtime.home(environ))]

    claude, codex = runtimes.get("claude-code"), runtimes.get("codex")
    assert ["/home/ada/.claude/projects"] == roots(claude, {"HOME": "/home/ada"})
    assert ["/else/projects"] == roots(claude, {"HOME": "/home/ada", "CLAUDE_CONFIG_DIR": "/else"})
    assert ["/home/ada/.codex/sessions", "/home/ada/.codex/archived_sessions"] == roots(codex, {"HOME": "/home/ada"})
    assert Path("/else") == codex.home({"HOME": "/home/ada"} | dict(codex.environment(Path("/else"))))
