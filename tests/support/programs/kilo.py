"""Kilo in the laboratory: OpenCode under another name. With every prompt it tells its model about the surroundings."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from support.lab import Lab, Run
from support.programs import opencode
from support.wire import Item, anthropic_items

_SURROUNDINGS = re.compile(r"\s*<environment_details>.*?</environment_details>\s*", re.DOTALL)
QUIET = {f"KILO_DISABLE_{name}": "1" for name in (
    "MODELS_FETCH", "DEFAULT_PLUGINS", "CODEBASE_INDEXING", "SESSION_INGEST", "SHARE", "PRESENCE", "LSP_DOWNLOAD",
    "AUTOUPDATE", "EMBEDDED_WEB_UI",
)} | {"KILO_TELEMETRY_LEVEL": "off"}  # fmt: skip
"""Without these it waits for what it cannot reach."""


def ask(lab: Lab, text: str, session: str) -> Run:
    """One prompt, from stdin."""
    going_on = ("-s", session) if session else ()
    return lab.run("kilo", "run", "--auto", "--format", "json", *going_on, stdin=text, env=QUIET)


def items(body: dict[str, Any]) -> list[Item]:
    """What a request says, without what it adds to every prompt."""
    found = (replace(item, text=_SURROUNDINGS.sub("", item.text)) for item in anthropic_items(body))
    return [item for item in found if item.kind != "user" or item.text]


PROGRAM = replace(
    opencode.PROGRAM,
    name="kilo",
    home=lambda lab: lab.home / ".local" / "share" / "kilo",
    set_up=lambda lab: opencode.write_settings(lab, "kilo"),
    ask=ask,
    items=items,
    delegate=None,
    compact=None,
)
