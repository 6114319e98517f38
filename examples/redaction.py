"""Redaction: a function changes what is heard; the log keeps what was said as well."""

from __future__ import annotations

import re
from pathlib import Path

from stage import main, script

from harken import SessionViewer, load_session
from harken.agents import Moment, Rewrite, hook


@hook("delivery", name="Redactor")
def redact(moment: Moment) -> Rewrite | None:
    """Nobody but the speaker is to know a password."""
    clean = re.sub(r"(password:\s*)\w+", r"\1[REDACTED]", moment.text)
    return Rewrite(clean) if clean != moment.text else None


async def play(file: Path) -> str:
    """Let somebody be careless."""
    root, session = load_session(file, language_model=script("redaction.toml"), hooks=[redact])
    with session:
        root.harken("Let Jack and Jill talk about the network.")
        return await root.response()


def show(viewer: SessionViewer) -> None:
    """What was said beside what was heard."""
    for case in (case for case in viewer.interventions() if viewer.name(case["agent_id"]) == "Jill"):
        print(f"said by {viewer.name(case['speaker'])}:   {case['said']}")
        print(f"heard by {viewer.name(case['agent_id'])}:  {case['heard']}   (changed by {case['hook']})")


if __name__ == "__main__":
    main(play, show)
