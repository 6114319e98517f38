"""Kilo. It has the schema of OpenCode, in `$XDG_DATA_HOME/kilo` (else `~/.local/share/kilo`): `kilo.db`, or whatever
`$KILO_DB` names."""

from __future__ import annotations

from .program import database_runtime

RUNTIME = database_runtime("kilo", "Kilo")
