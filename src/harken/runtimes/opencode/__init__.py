"""OpenCode. Its sessions are rows of a database in `$XDG_DATA_HOME/opencode` (else `~/.local/share/opencode`):

    opencode.db, opencode-CHANNEL.db       or whatever `$OPENCODE_DB` names

A sub-agent is a session of its own, whose row names the one that started it. For resume Harken writes the document that
`opencode export` prints; `opencode import FILE` takes it in, and `opencode -s ID` goes on with it.
"""

from __future__ import annotations

from .program import database_runtime

RUNTIME = database_runtime("opencode", "OpenCode")
