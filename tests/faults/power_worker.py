"""Makes something new below a folder, and says what was acknowledged."""

from __future__ import annotations

import sys
from pathlib import Path

root, what = Path(sys.argv[1]), sys.argv[2]


def say(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


if what == "store":
    import harken

    with harken.open(root / "new/deep/store.db") as repo:
        for number in range(4):
            say(repo.checkpoint(b"%d" % number, format="blob-v1", parent=None, template=str(number)).id)
elif what == "import":
    import harken

    with harken.open(root / "new/deep/store.db") as repo:
        for one in repo.import_sessions([sys.argv[3]]):
            if getattr(one, "tip", ""):
                say(one.tip)
elif what == "backup":
    import harken

    with harken.open(root / "new/store.db") as repo:
        made = repo.checkpoint(b"kept", format="blob-v1")
        repo.backup(root / "copy.db")
        say(made.id)
elif what == "log":
    from harken import Session

    with Session(root / "session.jsonl") as session:
        for number in range(4):
            say(session.log_piece_of_text("a", f"word {number}", "m"))
