"""One file of the user's own; an option stands over the environment, the environment over the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import harken
from harken.cli import config, runtimes, ui
from harken.errors import BadRequest

Run = Any
WHOLE = """\
# mine
store = "~/kept.db"
prices = "/etc/prices.toml"
color = "never"

[runtimes.claude-code]
home = "/claude"

[secrets.acme]
prefix = "acme_"
pattern = "acme_[0-9a-f]{32}"
"""


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the configuration lies, in a home where nobody has set anything."""
    for name in ("HARKEN_STORE", "HARKEN_PRICES", "NO_COLOR", "FORCE_COLOR", "CLAUDE_CONFIG_DIR", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    path = tmp_path / "settings" / "harken" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def where(tmp_path: Path) -> Path:
    """No store is named unless a test does so."""
    return tmp_path / "kept.db"


class TestTheFile:
    def test_lies_in_the_users_configuration_folder(self, run: Run, file: Path) -> None:
        assert [str(file)] == run("config", "path").lines

    def test_lies_in_the_home_folder_where_the_variable_is_no_absolute_path(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_CONFIG_HOME", "here")

        assert [str(tmp_path / ".config" / "harken" / "config.toml")] == run("config", "path").lines

    def test_that_cannot_be_read_is_told_with_a_hint(self, run: Run, file: Path) -> None:
        file.mkdir()

        done = run("config", "show")

        assert (2, "") == (done.code, done.out)
        assert f"error: {file} cannot be read: Is a directory\nhint: " in done.err

    def test_need_not_be_there(self, run: Run, tmp_path: Path) -> None:
        rows = run("config", "show", "--json").json

        assert [
            {"key": "store", "value": str(tmp_path / ".local/share/harken/store.db"), "origin": "default"},
            {"key": "color", "value": "auto", "origin": "default"},
        ] == rows

    def test_says_what_holds_and_on_which_line(self, run: Run, file: Path, tmp_path: Path) -> None:
        file.write_text(WHOLE)

        rows = run("config", "show", "--json").json

        assert [
            {"key": "store", "value": str(tmp_path / "kept.db"), "origin": f"{file}:2"},
            {"key": "prices", "value": "/etc/prices.toml", "origin": f"{file}:3"},
            {"key": "color", "value": "never", "origin": f"{file}:4"},
            {"key": "runtimes.claude-code.home", "value": "/claude", "origin": f"{file}:7"},
            {"key": "secrets.acme.prefix", "value": "acme_", "origin": f"{file}:10"},
            {"key": "secrets.acme.pattern", "value": "acme_[0-9a-f]{32}", "origin": f"{file}:11"},
        ] == rows

    def test_is_shown_as_it_would_be_written(self, run: Run, file: Path) -> None:
        file.write_text('color = "never"')

        assert 'color = "never"' == run("config", "show").lines[1]
        assert f'{file}:1\tcolor = "never"' == run("config", "show", "--origin").lines[1]


WRONG = [
    ('stroe = "/a"', 1, "there is no key stroe", "did you mean store?"),
    ('\ncolor = "blue"', 2, 'color must be one of "auto", "always", "never"', "configuration.md"),
    ("store = 3", 1, "store must be a path that begins with / or ~/, or the URL of a store", "configuration.md"),
    ('store = "kept.db"', 1, "store must be a path that begins with / or ~/", "configuration.md"),
    ('color = "auto"\nprices = """\n\nx"""', 2, "prices must be a path", "configuration.md"),
    ('[runtimes.codex]\nhmoe = "/a"', 2, "there is no key runtimes.codex.hmoe", "did you mean runtimes.codex.home?"),
    ('runtimes = "/a"', 1, "there is no key runtimes", "did you mean runtimes.NAME.home?"),
    ('[secrets.x]\nprefix = "a"\npattern = "("', 3, "secrets.x.pattern must be a regular expression", "configuration"),
    ('#\n[secrets.x]\nprefix = "a"', 2, "secrets.x needs both prefix and pattern", "configuration.md"),
    ('[[secrets]]\nprefix = "a"', 1, "there is no key secrets", "the keys are"),
    ('[store]\nx = {y = "z"}', 2, "there is no key store.x.y", "did you mean store?"),
]


class TestWhatMakesNoSense:
    @pytest.mark.parametrize(("text", "line", "what", "hint"), WRONG)
    def test_is_an_error_with_its_line(self, run: Run, file: Path, text: str, line: int, what: str, hint: str) -> None:
        file.write_text(text)

        done = run("config", "show")

        assert 2 == done.code
        assert f"error: {file}, line {line}: {what}" in done.err
        assert hint in done.err

    def test_is_an_error_of_every_command_that_asks(self, run: Run, file: Path) -> None:
        file.write_text("store = 3")

        assert (2, True) == ((done := run("sessions")).code, "line 1: store must be" in done.err)
        assert (2, True) == ((done := run("doctor")).code, "line 1: store must be" in done.err)

    def test_hinders_no_command_that_is_told_everything(self, run: Run, file: Path, tmp_path: Path) -> None:
        file.write_text("store = 3")

        assert 0 == run("--store", str(tmp_path / "new.db"), "checkpoint", "--format", "morse-v1", stdin=b"x").code
        assert 0 == run("config", "path").code

    def test_that_is_no_toml_says_where(self, run: Run, file: Path) -> None:
        file.write_text("store = \n")

        assert "not TOML: Invalid value (at line 1, column 9)" in run("config", "show").err

    def test_that_is_no_utf_8_says_where(self, run: Run, file: Path) -> None:
        file.write_bytes(b"# a\n# \xff")

        assert f"{file}, line 2: not UTF-8" in run("config", "show").err

    def test_about_a_runtime_names_its_line(self, run: Run, file: Path) -> None:
        file.write_text('[runtimes.quill]\nhome = "/a"')

        assert f"{file}, line 1: " in (done := run("config", "show")).err
        assert "claude-code" in done.err

    def test_a_folder_that_nothing_leads_to_is_refused(self, run: Run, file: Path) -> None:
        file.write_text('[runtimes.harken]\nhome = "/a"')

        assert f"{file}, line 1: no setting leads" in run("import").err


class TestWhoIsHeard:
    def test_the_store_of_the_file_is_used(self, run: Run, file: Path, tmp_path: Path) -> None:
        file.write_text('store = "~/kept.db"')

        run("checkpoint", "--format", "morse-v1", stdin=b"dot")

        with harken.open(tmp_path / "kept.db", create=False) as repo:
            assert 1 == len(list(repo.log()))

    def test_the_environment_stands_over_the_file(self, run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file.write_text(WHOLE)
        told = {"HARKEN_STORE": "/e.db", "HARKEN_PRICES": "/e.toml", "FORCE_COLOR": "1", "CLAUDE_CONFIG_DIR": "/e"}
        for name, value in told.items():
            monkeypatch.setenv(name, value)

        rows = {row["key"]: row for row in run("config", "show", "--json").json}

        assert ("/e.db", "HARKEN_STORE") == (rows["store"]["value"], rows["store"]["origin"])
        assert ("/e.toml", "HARKEN_PRICES") == (rows["prices"]["value"], rows["prices"]["origin"])
        assert ("always", "FORCE_COLOR") == (rows["color"]["value"], rows["color"]["origin"])
        home = rows["runtimes.claude-code.home"]
        assert ("/e", "CLAUDE_CONFIG_DIR") == (home["value"], home["origin"])
        assert ("/e.toml", "always") == (config.prices(), config.color())

    def test_an_option_stands_over_the_environment(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HARKEN_STORE", "/e.db")

        (store, *_) = run("--store", "/o.db", "config", "show", "--json").json

        assert {"key": "store", "value": "/o.db", "origin": "--store"} == store

    def test_a_runtimes_folder_of_the_file_is_where_its_sessions_are_looked_for(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file.write_text(WHOLE)

        assert "/claude" == runtimes.environment()["CLAUDE_CONFIG_DIR"]
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/e")
        assert "/e" == runtimes.environment()["CLAUDE_CONFIG_DIR"]

    def test_what_it_says_can_be_asked_for(self, file: Path) -> None:
        file.write_text(WHOLE)

        assert ("/etc/prices.toml", "never") == (config.prices(), config.color())
        assert {"acme": config.SecretSetting(prefix="acme_", pattern="acme_[0-9a-f]{32}")} == config.load().secrets


class TestColours:
    """`NO_COLOR` and `FORCE_COLOR` stand over the file, the file over what stdout is."""

    @pytest.mark.parametrize(
        ("said", "variable", "colours"),
        [
            ("always", "", True),
            ("never", "", False),
            ("auto", "", False),  # stdout is no terminal here
            ("always", "NO_COLOR", False),
            ("never", "FORCE_COLOR", True),
        ],
    )
    def test_follow_the_file_unless_the_environment_says_more(
        self, file: Path, monkeypatch: pytest.MonkeyPatch, said: str, variable: str, colours: bool
    ) -> None:
        file.write_text(f'color = "{said}"')
        if variable:
            monkeypatch.setenv(variable, "1")

        assert colours == ui.has_colours()
        assert colours == (ui.console().color_system is not None and not ui.console().no_color)

    def test_a_wrong_file_does_not_keep_a_command_from_printing(self, file: Path) -> None:
        file.write_text("color = 3")

        assert not ui.has_colours()


@pytest.mark.parametrize("text", ['[a."b.c"]\n"d" = 1', 'a = {"b.c" = {d = 1}}', '\n\na."b.c".d = 1'])
def test_a_key_is_found_however_it_is_written(text: str) -> None:
    with pytest.raises(BadRequest) as refused:
        config.parse(Path("f"), text.encode())

    line = text[: text.index("= 1")].count("\n") + 1
    assert f'f, line {line}: there is no key a."b.c".d' == str(refused.value)
