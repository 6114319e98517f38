"""Templates: what an agent is, as a small TOML file with a name.

    runtime = "claude-code"
    model = "opus"
    system_prompt = "You review changes."         # in place of the runtime's own
    append_system_prompt = "Answer in one line."  # after the runtime's own
    arguments = ["--max-turns", "20"]             # more arguments, as one would type them

Every key but `runtime` may be missing. The file's name without its ending is the template's name, and goes onto
every commit the agent makes.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec

from harken.errors import BadRequest, NotFound
from harken.ids import is_safe_name

from .base import Template


def find_template(name: str, folder: Path) -> Template:
    """The template of that name: a file in `folder`, or the path of a file that ends in `.toml`."""
    if name.endswith(".toml"):
        path = Path(name)
    elif is_safe_name(name):
        path = folder / f"{name}.toml"
    else:
        raise BadRequest(f"{name!r} is no name for a template", hint="letters, digits, dots, dashes and underscores")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        known = ", ".join(sorted(found.stem for found in folder.glob("*.toml")))
        raise NotFound(f"no template {name!r}: there is no file {path}", hint=f"there are: {known or 'none'}") from None
    except OSError as problem:
        raise BadRequest(
            f"the template {path} cannot be read: {problem.strerror}", hint="look at the path and the permissions"
        ) from None
    return parse_template(path.stem, data)


def parse_template(name: str, data: bytes) -> Template:
    """The template that the text of a file describes."""
    try:
        fields = tomllib.loads(data.decode())
        return msgspec.convert(fields | {"name": name}, Template)
    except (ValueError, RecursionError, msgspec.ValidationError) as problem:
        raise BadRequest(
            f"template {name!r}: {problem}", hint="see `harken run --help` for what a template may say"
        ) from None
