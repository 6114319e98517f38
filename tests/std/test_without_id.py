"""Documents that lack their `session_id`: they are documents all the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harken import Repo, runtimes
from harken.formats.std.document import Kind
from harken.formats.std.importing.claiming import claim_of
from harken.runtimes.importer import Importer
from support.std_documents import multi, single


@pytest.mark.parametrize(("make", "kind"), [(single, "std-001"), (multi, "std-008")])
def test_a_document_without_an_id_is_imported_under_the_name_of_its_file(
    repo: Repo, tmp_path: Path, make: Callable[[], dict[str, Any]], kind: Kind
) -> None:
    document = make()
    del document["session_id"]
    path = tmp_path / "clock.json"
    path.write_text(json.dumps(document))

    outcomes = list(Importer(repo.store, [runtimes.get("std-001"), runtimes.get("std-008")]).run([path]))

    assert [kind] == [outcome.runtime for outcome in outcomes]
    assert outcomes[0].session.startswith("clock-")


@pytest.mark.parametrize("keys", [["tool_calls", "status", "summary", "agent"], ["tool_calls", "task_title", "status"]])
def test_a_few_of_its_keys_make_no_document(keys: list[str]) -> None:
    assert not claim_of("std-001")(json.dumps(dict.fromkeys(keys, "x")).encode(), "x.json").score
