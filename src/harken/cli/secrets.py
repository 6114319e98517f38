"""`harken secrets`: what in the store looks like a key or a password."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import completing, ui
from .options import REF, json_option, pass_repo
from .secret_rules import counting, own_rules, rule_names

if TYPE_CHECKING:
    from harken.api.forgetting import SecretAnswer
    from harken.repo import Repo


@click.command("secrets")
@click.argument("refs", nargs=-1, type=REF, metavar="[REF|SESSION]...", shell_complete=completing.refs)
@click.option(
    "--rule", "rules", multiple=True, metavar="NAME", shell_complete=rule_names, help="Only what this rule finds"
)
@json_option
@pass_repo
def secrets_command(repo: Repo, refs: tuple[str, ...], rules: tuple[str, ...], as_json: bool) -> None:
    """Find what looks like a key or a password

    In these sessions, in the conversations at these commits, or in all of the store: the rule, where it stands, and
    what stands around it. The secret itself is never printed. Rules of your own go into the configuration file.
    For example:

        harken secrets
        harken secrets 3f2a91bc --rule github-token
        harken forget --rule github-token
    """
    from harken.api.forgetting import SecretAnswer, SecretsRequest, secrets

    found = 0
    with ui.progress("looking", disable=as_json) as bar:
        for one in secrets(repo, SecretsRequest(refs=refs, rules=rules, own_rules=own_rules()), moved=counting(bar)):
            if as_json:
                ui.json_line(one)
            elif isinstance(one, SecretAnswer):
                found += 1
                _draw(one)
            else:
                read = f"{one.report.bytes / 1e6:.1f} MB"
                ui.note(f"{ui.count(one.report.candidates, 'candidate')} in {read}")
    if found:
        ui.note("`harken forget --rule NAME` or `harken forget --secret -` takes one out of the store")


def _draw(one: SecretAnswer) -> None:
    """The rule, what stands around it, and where that is: whole, however narrow the window is, since it is copied."""
    rule = f"{one.rule:<18}"
    if ui.width():
        ui.row(rule, one.excerpt)
        ui.line(f"  {one.ref}")
    else:
        ui.row(rule, one.ref, one.excerpt)
