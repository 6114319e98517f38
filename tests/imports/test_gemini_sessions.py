"""Sessions of Gemini CLI, which lie in several files, in two shapes, and vanish."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import formats, runtimes
from harken.context import get_session
from harken.runtimes.files import walk
from harken.runtimes.importer import Importer
from harken.runtimes.memory import ImportResult
from harken.runtimes.resume import Destination, resume
from harken.store import MemoryStore
from support.gemini_lines import SESSION, GeminiSession, document
from support.recordings import CORPUS, corpus_files

RUNTIMES = [runtimes.get("gemini-cli"), runtimes.get("gemini-cli-json")]
AGENT = "99ab3399-b49e-4159-b16b-6f2d9807a575"


def import_all(store: Any, folder: Path) -> list[ImportResult]:
    return list(Importer(store, RUNTIMES).run(walk(folder, (".jsonl", ".json"))))


def chats(tmp_path: Path) -> Path:
    folder = tmp_path / ".gemini" / "tmp" / "orchard" / "chats"
    folder.mkdir(parents=True)
    return folder


def put(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path


def test_the_empty_file_of_a_resume_is_of_the_same_session_and_never_stands_for_it(tmp_path: Path) -> None:
    folder, store = chats(tmp_path), MemoryStore()
    main = GeminiSession().user("First.").model("Done.").data
    put(folder, f"session-2026-01-02T00-00-{SESSION[:8]}.jsonl", main)
    later = GeminiSession()
    later._clock = 3000
    put(folder, f"session-2026-01-02T00-59-{SESSION[:8]}.jsonl", later.header().data)

    outcomes = import_all(store, folder)

    assert {SESSION} == {outcome.session for outcome in outcomes}
    row = get_session(store, SESSION)
    assert row.source.endswith("T00-00-afc18a3c.jsonl")
    assert row.title == "First."


def test_a_sub_agent_is_below_its_session_and_knows_the_call_that_made_it(tmp_path: Path) -> None:
    folder, store = chats(tmp_path), MemoryStore()
    main = GeminiSession().user("Delegate.").tools("I delegate.", "done", name="invoke_agent", agentId=AGENT)
    path = put(folder, f"session-2026-01-02T00-00-{SESSION[:8]}.jsonl", main.model("It is done.").data)
    agent = GeminiSession(AGENT, kind="subagent", started=False, directories=["/w"]).user("Look.").model("Nothing.")
    put(folder, f"{SESSION}/{AGENT}.jsonl", agent.changed(summary='{"response": "Nothing."}').data)

    import_all(store, folder)

    row = get_session(store, f"{SESSION}/{AGENT}")
    assert (row.parent, row.agent, row.title) == (SESSION, AGENT, "Look.")
    root = store.walk(row.tip)[-1].id
    assert store.get_commit(root).spawned_from == {"session": SESSION, "call_id": "invoke_agent_1", "inherits": False}
    assert [f"{AGENT}.jsonl"] == [found.name for found in RUNTIMES[0].read.agent_files(path)]


def test_a_file_that_the_program_deleted_changes_nothing(tmp_path: Path) -> None:
    folder, store = chats(tmp_path), MemoryStore()
    put(folder, f"session-2026-01-02T00-00-{SESSION[:8]}.jsonl", GeminiSession().user("First.").model("Done.").data)
    import_all(store, folder)
    before = get_session(store, SESSION)
    shutil.rmtree(folder)
    folder.mkdir()

    import_all(store, folder)

    assert get_session(store, SESSION) == before


def old_and_new(folder: Path) -> tuple[Path, Path]:
    """A document, and the file that the program made of it when it went on."""
    lines = GeminiSession(started=False).user("First.", "u" * 36).model("Done.", "g" * 36)
    messages = [record for record in map(json.loads, lines.lines) if "id" in record]
    name = f"session-2026-01-02T00-00-{SESSION[:8]}.json"
    old = put(folder, name, document(*messages))
    for message in messages:
        message["timestamp"] = "2026-01-02T00:00:30.000Z"
    grown = lines.changed(sessionId=SESSION).user("Second.").model("Fine.")
    return old, put(folder, f"{name}l", grown.data)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_session_in_both_shapes_is_one_session_and_counts_once(tmp_path: Path, order: tuple[int, int]) -> None:
    folder, store = chats(tmp_path), MemoryStore()
    paths = old_and_new(folder)

    outcomes = [outcome for at in order for outcome in Importer(store, RUNTIMES).run([paths[at]])]

    assert {(SESSION, "gemini-cli")} == {(outcome.session, outcome.runtime) for outcome in outcomes}
    row = get_session(store, SESSION)
    assert row.source == str(paths[1])
    assert outcomes[-1].figures.requests == 2
    assert outcomes[-1].figures.prompts.human == 2


def test_an_old_document_goes_on_in_todays_program_field_by_field(tmp_path: Path) -> None:
    folder, store = chats(tmp_path), MemoryStore()
    old, _ = old_and_new(folder)
    [outcome] = Importer(store, RUNTIMES).run([old])
    home = tmp_path / "other" / ".gemini"

    to = Destination(runtime=RUNTIMES[0], cwd=tmp_path, environ={"HOME": "/nowhere"}, home=home)
    done = resume(store, store.get_commit(outcome.tip), to)

    assert (done.tier, done.losses) == ("2", ())
    header, *messages = (json.loads(line) for line in Path(done.path).read_text().splitlines())
    assert header["sessionId"] == done.session
    assert [message["content"] for message in messages if "id" in message] == [[{"text": "First."}], "Done."]
    assert (home / "tmp" / tmp_path.name.replace("_", "-") / ".project_root").read_text() == str(tmp_path)


# -- the corpus --------------------------------------------------------------------------------------------------------

FILES = [path for path in corpus_files("gemini_cli/*/*") if path.name != "schema_drift.json"]
FOLDERS = [CORPUS / "recorded_runtimes" / "gemini" / name for name in ("tmp-proj", "foreign")] if CORPUS else []


def test_every_file_comes_back_byte_for_byte_with_the_same_names_everywhere(tmp_path: Path) -> None:
    for number, path in enumerate([*FILES, *FOLDERS]):
        files = [path] if path.is_file() else sorted(walk(path, (".jsonl", ".json")))
        (tmp_path / str(number)).mkdir()
        check_round_trip(tmp_path / str(number), files)


def check_round_trip(tmp_path: Path, files: list[Path]) -> None:
    with harken.open(tmp_path / "one.db") as repo, harken.open(tmp_path / "two.db") as other:
        outcomes = list(Importer(repo.store, RUNTIMES).run(files))
        backwards = list(Importer(other.store, RUNTIMES).run(reversed(files)))
        again = list(Importer(repo.store, RUNTIMES).run(files))

        assert [("new", 0, "")] * len(files) == [(o.status, o.opaque, o.error) for o in outcomes]
        assert {o.source: o.tip for o in outcomes} == {o.source: o.tip for o in backwards}
        assert [("unchanged", 0)] * len(files) == [(o.status, o.commits) for o in again]
        for outcome in outcomes:
            made = repo.materialize(outcome.tip, stop="root")
            assert made.bytes == Path(outcome.source).read_bytes()
            assert formats.get(made.format).context(made.bytes) == repo.materialize(outcome.tip).bytes


def test_a_session_imported_line_by_line_ends_where_a_fresh_import_ends(tmp_path: Path) -> None:
    session = GeminiSession().user("First.").tools("Looking.", "one").model("Done.").resumed().user("Second.")
    session.model("Fine.").compacted("they talked", "Second.", "Fine.").user("Third.")
    real = [
        path for path in (*FILES, *corpus_files("recorded_runtimes/gemini/*/**/*.jsonl")) if path.suffix == ".jsonl"
    ]
    for number, data in enumerate([session.data, *(path.read_bytes() for path in real)]):
        check_growth(tmp_path / f"{number}.jsonl", data)


def check_growth(path: Path, data: bytes) -> None:
    grown, fresh = MemoryStore(), MemoryStore()
    at = 0
    while at < len(data):
        at = data.find(b"\n", at) + 1 or len(data)
        path.write_bytes(data[:at])
        [last] = Importer(grown, RUNTIMES).run([path])
    [whole] = Importer(fresh, RUNTIMES).run([path])

    assert (last.tip, last.figures, last.total_records, last.total_commits) == (
        whole.tip,
        whole.figures,
        whole.total_records,
        whole.total_commits,
    )
