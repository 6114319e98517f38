"""One folder per runtime, each a `Runtime`; beside them what imports, watches, resumes and runs any of them.

Ours are listed in `base.py` and loaded when asked for. Others come through the entry-point group `harken.runtimes`,
each naming a `Runtime`. A plug-in that cannot be used is told in `problems()`, and never keeps the others from being
used.
"""

from __future__ import annotations

from harken.formats.facts import FileFacts
from harken.formats.kit.claims import Claim

from .base import (
    Environment,
    Identity,
    Launcher,
    LineOwner,
    Place,
    Plan,
    PluginProblem,
    ResumeWriter,
    Runtime,
    SessionReader,
    ShownLine,
    StreamReader,
    Template,
    chosen,
    claim_of,
    failures,
    get,
    is_registered,
    names,
    note_failure,
    note_problem,
    problems,
    user_home,
)

__all__ = [
    "Claim",
    "Environment",
    "FileFacts",
    "Identity",
    "Launcher",
    "LineOwner",
    "Place",
    "Plan",
    "PluginProblem",
    "ResumeWriter",
    "Runtime",
    "SessionReader",
    "ShownLine",
    "StreamReader",
    "Template",
    "chosen",
    "claim_of",
    "failures",
    "get",
    "is_registered",
    "names",
    "note_failure",
    "note_problem",
    "problems",
    "user_home",
]
