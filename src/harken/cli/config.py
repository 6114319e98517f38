"""The user's configuration, and `harken config`, which shows it.

It is one TOML file, `harken/config.toml` in the user's configuration folder. What a command's option says stands over
the environment, that over the file, and that over what is built in. No other package reads it: values go down as
arguments. A key or a value that makes no sense is an error with its line, in every command that asks for the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from harken.errors import BadRequest, NotFound

from . import ui
from .options import json_option

if TYPE_CHECKING:
    from harken.repo import Repo

KeyPath = tuple[str, ...]
"""A key with the tables around it."""


class SecretSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A rule of the user's own for what is a secret."""

    prefix: str
    """What it begins with, to the letter."""
    pattern: str
    """A regular expression for all of it."""


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """What the file says; a key that it does not have is empty."""

    path: Path
    """Where the file lies."""
    text: str = ""
    store: str = ""
    prices: str = ""
    """A file of prices that stand over those in the package."""
    color: str = ""
    homes: Mapping[str, str] = {}
    """The runtimes' own folders, by the runtime's name."""
    secrets: Mapping[str, SecretSetting] = {}

    def line_of(self, *key: str) -> int:
        """The line on which a key begins."""
        return _line_of(self.text, key)

    def wrong(self, key: KeyPath, what: str, hint: str) -> BadRequest:
        """An error about a key."""
        return BadRequest(f"{self.path}, line {self.line_of(*key)}: {what}", hint=hint)


# -- what may stand in the file --------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    return "" if isinstance(value, str) and value else "a text that is not empty"


def _path(value: Any) -> str:
    # A relative path would mean another place in every folder, or one that nobody thinks of.
    fits = isinstance(value, str) and value.startswith(("/", "~/")) and "\0" not in value
    return "" if fits else "a path that begins with / or ~/"


def _store(value: Any) -> str:
    is_url = isinstance(value, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", value)
    return "" if is_url or not _path(value) else "a path that begins with / or ~/, or the URL of a store"


def _color(value: Any) -> str:
    return "" if value in COLORS else "one of " + ", ".join(f'"{one}"' for one in COLORS)


def _pattern(value: Any) -> str:
    if problem := _text(value):
        return problem
    try:
        re.compile(value)
    except re.error as error:
        return f"a regular expression ({error})"
    return ""


COLORS = ("auto", "always", "never")
KEYS: dict[KeyPath, Callable[[Any], str]] = {
    ("store",): _store,
    ("prices",): _path,
    ("color",): _color,
    ("runtimes", "*", "home"): _path,
    ("secrets", "*", "prefix"): _text,
    ("secrets", "*", "pattern"): _pattern,
}
"""Every key (`*` is a name that the user chooses), and the function that says what a wrong value should have been."""
VARIABLES = {"store": "HARKEN_STORE", "prices": "HARKEN_PRICES"}


# -- reading ---------------------------------------------------------------------------------------------------------


def config_path() -> Path:
    """Where the file lies, or would lie."""
    given = os.environ.get("XDG_CONFIG_HOME", "")
    # The specification of these folders has relative paths ignored.
    base = Path(given) if Path(given).is_absolute() else _home() / ".config"
    return base / "harken" / "config.toml"


def _home() -> Path:
    if told := os.environ.get("HOME"):
        return Path(told)
    from harken.repo import home_folder

    return home_folder()


def load() -> Config:
    """What the file says; nothing, where there is none."""
    try:
        path = config_path()
        data = path.read_bytes()
    except (NotFound, FileNotFoundError, NotADirectoryError):  # the user may have no home folder either
        return Config(path=Path())
    except OSError as problem:
        hint = "let it be a file that you can read, or name another folder: XDG_CONFIG_HOME=FOLDER"
        raise BadRequest(f"{path} cannot be read: {problem.strerror or problem}", hint=hint) from None
    return parse(path, data)


def parse(path: Path, data: bytes) -> Config:
    """What a file of these bytes says; `BadRequest` names the line of what is wrong."""
    import tomllib  # most people have no such file

    try:
        text = data.decode()
        found = tomllib.loads(text)
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise BadRequest(f"{path}, line {line}: not UTF-8", hint="save the file as UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise BadRequest(f"{path}: not TOML: {problem}", hint=_HINT) from None
    config = Config(path=path, text=text)
    for key, value in _leaves(found):
        _check(config, key, value)
    return _filled(config, found)


_HINT = "docs/guides/configuration.md lists the keys; `harken config path` says where the file lies"


def _leaves(table: Mapping[str, Any], above: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Every key with its value; a table that has none is there all the same."""
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*above, name))
        else:
            yield (*above, name), value


def _check(config: Config, key: KeyPath, value: Any) -> None:
    known = next((one for one in KEYS if _is_like(key, one)), None)
    if known is not None:
        if wanted := KEYS[known](value):
            raise config.wrong(key, f"{_shown(key)} must be {wanted}", _HINT)
    elif not (value == {} and key[0] in ("runtimes", "secrets")):
        raise _unknown(config, key)


def _is_like(key: KeyPath, known: KeyPath) -> bool:
    return len(key) == len(known) and all(two in ("*", one) for one, two in zip(key, known, strict=True))


def _unknown(config: Config, key: KeyPath) -> BadRequest:
    import difflib

    names = [_shown(tuple(given if one == "*" else one for one, given in _beside(known, key))) for known in KEYS]
    close = difflib.get_close_matches(_shown(key), names, n=1)
    hint = f"did you mean {close[0]}?" if close else "the keys are " + ", ".join(map(_shown, KEYS))
    return config.wrong(key, f"there is no key {_shown(key)}", hint)


def _beside(known: KeyPath, key: KeyPath) -> Iterator[tuple[str, str]]:
    return ((one, key[at] if at < len(key) else "NAME") for at, one in enumerate(known))


def _filled(config: Config, found: Mapping[str, Any]) -> Config:
    """The file's values, with `~` written out."""
    homes = {name: _expanded(one["home"]) for name, one in found.get("runtimes", {}).items() if one}
    rules: dict[str, SecretSetting] = {}
    for name, rule in found.get("secrets", {}).items():
        if len(rule) < len(SecretSetting.__struct_fields__):
            raise config.wrong(("secrets", name), f"secrets.{name} needs both prefix and pattern", _HINT)
        rules[name] = SecretSetting(**rule)
    paths = {name: _expanded(found.get(name, "")) for name in VARIABLES}
    return msgspec.structs.replace(config, color=found.get("color", ""), homes=homes, secrets=rules, **paths)


def _expanded(path: str) -> str:
    return str(_home() / path[2:]) if path.startswith("~/") else path


def _line_of(text: str, key: KeyPath) -> int:
    """Where a key begins: behind the last line up to which the file can be read and does not have it."""
    import tomllib

    lines, before = text.splitlines(keepends=True), 0
    for number in range(len(lines) + 1):
        try:
            found: Any = tomllib.loads("".join(lines[:number]))
        except tomllib.TOMLDecodeError:  # in the middle of a value
            continue
        for name in key:
            found = found.get(name) if isinstance(found, dict) else None
        if found is not None:
            return before + 1
        before = number
    return before + 1


def _shown(key: KeyPath) -> str:
    return ".".join(name if re.fullmatch(r"[\w*-]+", name) else f'"{name}"' for name in key)


# -- what holds ------------------------------------------------------------------------------------------------------


def store_of(ctx: click.Context) -> str | None:
    """The store that `--store`, HARKEN_STORE or the file names; None where nobody does."""
    # Whoever completes a word has not run the group's function: what that would have been given is a parameter.
    given: str | None = ctx.find_root().params.get("location")
    return given if given is not None else load().store or None


def open_at(location: str | None, *, create: bool, damaged: bool = False) -> Repo:
    """The store at a path or URL, or the user's own; a service is given the token that HARKEN_TOKEN has."""
    import harken

    return harken.open(location, create=create, damaged=damaged, token=os.environ.get("HARKEN_TOKEN", ""))


def prices() -> str | None:
    """The file of prices that HARKEN_PRICES or the file names."""
    return os.environ.get(VARIABLES["prices"]) or load().prices or None


def color() -> str:
    """When to use colours: `auto`, `always` or `never`."""
    return _color_of_environment()[0] or load().color or COLORS[0]


def _color_of_environment() -> tuple[str, str]:
    """What two variables that many programs know say of colours, and which of them it is."""
    for name, meaning in (("NO_COLOR", "never"), ("FORCE_COLOR", "always")):
        if os.environ.get(name):
            return meaning, name
    return "", ""


def homes(environ: Mapping[str, str]) -> dict[str, str]:
    """What is to be set so that the runtimes' folders are those of the file; what the environment sets stands."""
    from harken.api.runtimes import RuntimesRequest, runtimes

    added: dict[str, str] = {}
    config = load()
    for name, home in config.homes.items():
        try:
            (found,) = runtimes(None, RuntimesRequest(name=name, home=home))
        except BadRequest as problem:
            raise config.wrong(("runtimes", name), str(problem), problem.hint or _HINT) from None
        if not found.environment:
            hint = "this runtime's folder cannot be moved there; name the folder to `harken import`"
            raise config.wrong(("runtimes", name), f"no setting leads {found.label} to {home}", hint)
        added |= {key: value for key, value in found.environment.items() if not environ.get(key)}
    return added


# -- showing ---------------------------------------------------------------------------------------------------------


class SettingLine(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that holds, and who says so."""

    key: str
    value: str
    origin: str
    """An option, a variable of the environment, `FILE:LINE`, or `default`."""


@click.group("config")
def config_command() -> None:
    """Show the configuration, and who says what

    It is a TOML file of the user's own. An option stands over the environment, the environment over the file. For
    example:

        harken config show --origin
    """


@config_command.command("path")
def path_command() -> None:
    """Print where the configuration file lies, whether it is there or not

    For example:

        ${EDITOR:-vi} "$(harken config path)"
        harken config path
    """
    ui.line(str(config_path()))


@config_command.command("show")
@click.option("--origin", is_flag=True, help="Say of each value where it comes from")
@json_option
@click.pass_context
def show_command(ctx: click.Context, origin: bool, as_json: bool) -> None:
    """Print the settings that hold

    One on a line, as the file would have it. With --origin the option, the variable of the environment or the line of
    the file that says so stands before it. For example:

        harken config show --origin
    """
    for one in _settings(ctx, load()):
        if as_json:
            ui.json_line(one)
        else:
            said = f"{one.key} = {ui.json_text(one.value)}"
            ui.line(f"{one.origin}\t{said}" if origin else said)


def _settings(ctx: click.Context, config: Config) -> Iterator[SettingLine]:
    yield _store_setting(ctx, config)
    named = os.environ.get(VARIABLES["prices"], "")
    if named or config.prices:
        origin = VARIABLES["prices"] if named else _place(config, "prices")
        yield SettingLine(key="prices", value=named or config.prices, origin=origin)
    told, name = _color_of_environment()
    origin = name or (_place(config, "color") if config.color else "default")
    yield SettingLine(key="color", value=told or config.color or COLORS[0], origin=origin)
    for runtime, home in config.homes.items():
        yield _home_setting(config, runtime, home)
    for rule, setting in config.secrets.items():
        for field in SecretSetting.__struct_fields__:
            key = ("secrets", rule, field)
            yield SettingLine(key=_shown(key), value=getattr(setting, field), origin=_place(config, *key))


def _store_setting(ctx: click.Context, config: Config) -> SettingLine:
    from harken.repo import default_location

    root = ctx.find_root()
    if (given := root.params.get("location")) is not None:
        by_option = root.get_parameter_source("location") is click.core.ParameterSource.COMMANDLINE
        return SettingLine(key="store", value=given, origin="--store" if by_option else VARIABLES["store"])
    if config.store:
        return SettingLine(key="store", value=config.store, origin=_place(config, "store"))
    return SettingLine(key="store", value=str(default_location()), origin="default")


def _home_setting(config: Config, runtime: str, home: str) -> SettingLine:
    """The runtime's folder; a variable of the runtime's own that is set stands over the file."""
    from harken.api.runtimes import RuntimesRequest, runtimes

    origin = _place(config, "runtimes", runtime, "home")
    homes({})  # refuses what cannot be
    (found,) = runtimes(None, RuntimesRequest(name=runtime, home=home))
    for name in found.environment:
        if told := os.environ.get(name):
            home, origin = told, name
    return SettingLine(key=_shown(("runtimes", runtime, "home")), value=home, origin=origin)


def _place(config: Config, *key: str) -> str:
    return f"{config.path}:{config.line_of(*key)}"
