"""The folder in which OpenCode kept its sessions before 1.2, a JSON file for each thing, as it would have written what
a database has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.opencode_database import OpenCodeDatabase


def spread(database: OpenCodeDatabase, home: Path, *, old: bool = False) -> Path:
    """Write every session of the database into files; `old` as before 0.6. The answer is the folder of it all."""
    storage = home / "project" / "work" / "storage" / "session" if old else home / "storage"
    columns = "id, project_id, parent_id, slug, directory, title, version, time_created, time_updated"
    for name, project, parent, slug, directory, title, version, created, updated in database.execute(
        f"SELECT {columns} FROM session"
    ):
        info = {"id": name, "slug": slug, "version": version, "projectID": project, "directory": directory}
        info |= {"parentID": parent} if parent else {}
        info |= {"title": title, "time": {"created": created, "updated": updated}}
        write(storage / "info" / f"{name}.json" if old else storage / "session" / project / f"{name}.json", info)
    for name, session, data in database.execute("SELECT id, session_id, data FROM message"):
        write(storage / "message" / session / f"{name}.json", {"id": name, "sessionID": session, **json.loads(data)})
    for name, message, session, data in database.execute("SELECT id, message_id, session_id, data FROM part"):
        folder = storage / "part" / session / message if old else storage / "part" / message
        own = {"id": name, "sessionID": session, "messageID": message}
        write(folder / f"{name}.json", own | json.loads(data))
    return storage


def write(path: Path, value: Any) -> None:
    """A file as the program writes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False))
