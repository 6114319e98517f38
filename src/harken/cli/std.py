"""`harken std`: session documents of STD-001 and STD-008. One file per command."""

from __future__ import annotations

import click

from .std_export import export_command
from .std_repair import repair_command
from .std_show import show_command
from .std_validate import validate_command


@click.group("std")
def std_command() -> None:
    """Check, repair, write and show session documents (STD-001, STD-008)

    A session document is a JSON file that describes what one agent (STD-001) or several (STD-008) did. For example:

        harken std validate data/sessions

        harken std repair data/sessions -o data/mended

        harken std export 3f2a -o data/sessions

        harken std show 2026-01-31-001-mend-the-clock-multi.json
    """


for _command in (
    validate_command,
    repair_command,
    export_command,
    show_command,
):
    std_command.add_command(_command)
