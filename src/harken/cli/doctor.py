"""`harken doctor`: is the installation whole, and does the store lie as it should?"""

from __future__ import annotations

import click

from . import ui
from .options import json_option, refuse_service


@click.command("doctor")
@json_option
@click.pass_context
def doctor_command(ctx: click.Context, as_json: bool) -> int:
    """Check the installation and the store, and say what is wrong

    Changes nothing. Exits with 1 where something is broken, with 0 where there are only warnings. For example:

        harken doctor
    """
    from harken.api.upkeep import DoctorRequest, doctor

    from .config import store_of

    failed = False
    refuse_service(store_of(ctx), "`doctor`")
    for found in doctor(None, DoctorRequest(location=store_of(ctx))):
        failed = failed or found.status == "failure"
        if as_json:
            ui.json_line(found)
            continue
        ui.line(f"{found.status:<8} {found.check}: {found.detail}")
        if found.hint:
            ui.note(f"         {found.hint}")
    return 1 if failed else 0
