"""`harken forget`: take a session or a secret out of the store for good."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from harken import ids

from . import completing, ui
from .commits import me
from .options import REF, change_repo, json_option
from .secret_rules import counting, own_rules, rule_names

if TYPE_CHECKING:
    from harken.api.forgetting import ForgetAnswer
    from harken.repo import Repo

SHOWN = 20
"""Places that are listed; --json lists them all."""


@click.command("forget")
@click.argument("ref", type=REF, required=False, metavar="[SESSION|REF]", shell_complete=completing.refs)
@click.option("--secret", "texts", multiple=True, metavar="TEXT", help="A text to forget; `-` reads it from stdin")
@click.option(
    "--rule", "rules", multiple=True, metavar="NAME", shell_complete=rule_names, help="Forget all that this rule finds"
)
@click.option("--why", default="", metavar="TEXT", help="The reason, which is kept")
@click.option("--who", default="", metavar="WHO", help="Who wants it, which is kept (default: you)")
@click.option("--yes", is_flag=True, help="Do it; without this, only say what would go")
@json_option
@change_repo
def forget_command(
    repo: Repo,
    ref: str | None,
    texts: tuple[str, ...],
    rules: tuple[str, ...],
    why: str,
    who: str,
    yes: bool,
    as_json: bool,
) -> None:
    """Take a session or a secret out of the store for good

    A SESSION goes with its sub-agents; what another session uses stays, and that is said. A REF is what that commit
    adds. A secret is looked for in the whole store, also as JSON escapes it, and only its own bytes are blanked. Names,
    commits and sizes stay, so that everything else is what it was; who, why and when are kept. Bytes leave the store,
    its free pages, the index, the caches and what waits in spools; backups made before still have them, and so has the
    runtime's own file, which no import brings back (`harken import --restore` does). Without --yes nothing is changed:

        harken forget 3f2a91bc
        harken forget --secret - --why "leaked" --yes < key.txt
        harken forget --rule aws-access-key --yes
    """
    from harken.api.forgetting import ForgetRequest, forget

    if bool(ref) == bool(texts or rules):
        raise click.UsageError("name a session or a REF, or give --secret or --rule", click.get_current_context())
    request = ForgetRequest(
        ref=ref or "",
        secrets=tuple(_typed() if text == "-" else text for text in texts),
        rules=rules,
        own_rules=own_rules(),
        who=who or me(repo),
        why=why,
        yes=yes,
    )
    with ui.progress("looking", disable=as_json) as bar:
        answer = forget(repo, request, moved=counting(bar))
    if as_json:
        ui.json_line(answer)
    else:
        _print(answer)


def _typed() -> str:
    """A secret from stdin, so that no shell remembers it."""
    return sys.stdin.read().rstrip("\r\n")


def _print(answer: ForgetAnswer) -> None:
    for where in answer.stays:
        ui.warn(f"it stays in {where}: names are made of that, and it cannot be changed")
    if not (answer.places or answer.sessions or answer.rows or answer.spools):
        ui.note("there is nothing else to forget" if answer.stays else "there is nothing to forget")
        return
    verb = "would go" if answer.dry_run else "forgotten"
    for session in answer.sessions:
        ui.line(f"session {session} {verb}")
    for place in answer.places[:SHOWN] if not answer.sessions else ():
        what = ui.count(place.spans, "place") if place.spans else "all of it"
        ui.row(place.commit or ids.artifact_ref(place.artifact), f"{what}, {place.bytes:,} bytes", place.session)
    if not answer.sessions and len(answer.places) > SHOWN:
        ui.line(f"and {len(answer.places) - SHOWN} more")
    for spool in answer.spools:
        ui.line(f"{spool}: a run that is not stored yet")
    rows = f", {ui.count(answer.rows, 'title or remark') if answer.rows == 1 else f'{answer.rows} titles or remarks'}"
    ui.note(
        f"{verb}: {answer.bytes:,} bytes of {ui.count(len(answer.places), 'artifact')}{rows if answer.rows else ''}"
    )
    if answer.kept:
        names = ", ".join(answer.kept_for[:3]) or "others"
        ui.note(f"{ui.count(answer.kept, 'artifact')} stay: {names} uses them too")
    for session in answer.copies:
        ui.note(f"session {session} began with a copy of it, which stays")
    for path in answer.left:
        ui.warn(f"{path} may still hold it: a copy from before a repair, which is yours to remove")
    if answer.dry_run:
        ui.note("nothing was changed; --yes does it")
