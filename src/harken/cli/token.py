"""`harken token`: who may ask `harken serve`, and what."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import click

from harken import clock

from . import ui
from .options import NotEmpty, TimeSpan, change_repo, json_option, pass_repo

if TYPE_CHECKING:
    from harken.repo import Repo
    from harken.service.tokens import AccessToken, TokenFile

GRANTS = ("context/read", "context/write", "admin")
TOKEN = NotEmpty("name", "what the token is called; `harken token list` lists them")


@click.group("token")
def token_command() -> None:
    """Make, list and revoke tokens for programs that ask `harken serve`

    A token says who asks and what they may do: `context/read` (look), `context/write` (make commits, branches and
    remarks; look, too) or `admin` (everything). For example:

        harken token create notebook

        harken token create importer --grant context/write --principal ci --expires 30d

        harken token list

        harken token revoke notebook
    """


@token_command.command("create")
@click.argument("name", type=TOKEN)
@click.option(
    "--grant", "grants", multiple=True, type=click.Choice(GRANTS), help="What it may do (default: context/read)"
)
@click.option("--principal", default="", metavar="WHO", help="Who uses it; goes onto commits (default: NAME)")
@click.option("--machine", default="", metavar="M", help="Where it is used; goes onto commits (default: this machine)")
@click.option(
    "--expires", type=TimeSpan(), metavar="SPAN", help="For how long it is good, like 30d (default: for ever)"
)
@json_option
@change_repo
def create_command(
    repo: Repo, name: str, grants: tuple[str, ...], principal: str, machine: str, expires: int | None, as_json: bool
) -> None:
    """Make a token, and print it: it is shown this once, and nobody can find it out later

    The token is all that is printed on stdout. For example:

        TOKEN=$(harken token create notebook)
        harken token create importer --grant context/write --principal ci --expires 30d

    A program sends it with every request, as `Authorization: Bearer TOKEN`. A server that is running takes it at once.
    """
    made = _file(repo).create(
        name,
        tuple(dict.fromkeys(grants)) or GRANTS[:1],
        principal=principal or name,
        machine=machine or platform.node(),
        seconds=expires,
    )
    if as_json:
        ui.json_line({"token": made.secret, **_told(made.token)})
    else:
        ui.line(made.secret)
        ui.note(f"{name} may: {', '.join(made.token.grants)}; this is the only time that the token is shown")


@token_command.command("list")
@json_option
@pass_repo
def list_command(repo: Repo, as_json: bool) -> None:
    """List the tokens there are, and the browsers that are signed in

    What a token is, nobody can tell: only what it is called, what it may do, and when it was last used. For example:

        harken token list
    """
    tokens = _file(repo).all()
    if as_json:
        for token in tokens:
            ui.json_line(_told(token))
        return
    now = clock.now()
    for token in tokens:
        used = "never used" if token.used is None else f"used {clock.local_text(clock.format_instant(token.used))}"
        ends = "expired" if token.is_over(now) else _until(token.expires)
        ui.row(f"{token.name:<20}", f"{','.join(token.grants):<28}", f"{token.principal:<16}", used, ends)
    if not tokens:
        ui.note("there are none; `harken token create NAME` makes one")


@token_command.command("revoke")
@click.argument("name", type=TOKEN)
@json_option
@change_repo
def revoke_command(repo: Repo, name: str, as_json: bool) -> None:
    """Take a token back, and sign out every browser that was signed in with it

    A server that is running refuses it from the next request on. For example:

        harken token revoke notebook
    """
    gone = _file(repo).revoke(name)
    if as_json:
        ui.json_line(_told(gone))
    else:
        ui.note(f"{gone.name} is refused from now on")


def _file(repo: Repo) -> TokenFile:
    from harken.errors import BadRequest
    from harken.service.tokens import TokenFile, tokens_beside

    path = tokens_beside(repo.store.location)
    if path is None:
        raise BadRequest("this store is in no file, and has no tokens", hint="name a store that is a file")
    return TokenFile(path)


def _told(token: AccessToken) -> dict[str, object]:
    """A token for a program; nothing that could be used in its place."""
    return {
        "name": token.name,
        "grants": list(token.grants),
        "principal": token.principal,
        "machine": token.machine,
        "browser": token.is_browser,
        "created": clock.format_instant(token.created),
        "expires": None if token.expires is None else clock.format_instant(token.expires),
        "used": None if token.used is None else clock.format_instant(token.used),
    }


def _until(expires: int | None) -> str:
    return "for ever" if expires is None else f"until {clock.local_text(clock.format_instant(expires))}"
