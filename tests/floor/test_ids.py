"""Names agree with Bureau's recipes, to the last digit."""

from __future__ import annotations

import pytest

from harken import ids


class TestArtifacts:
    def test_a_small_file_has_bureaus_names(self) -> None:
        content = b"hello world"
        chunk = ids.chunk_hash(content)

        assert "15950987560f3d32e0edba3a69f1c5d22ddb5fd75c0e4a48423d6525c78e38d1" == chunk.hex()
        assert "c72ca8c64b432c58579280a7aaa22ed6dddcb8d183b0c491e5305a067d3ad305" == ids.artifact_id(content)
        assert "art-c72ca8c64b43" == ids.artifact_ref(ids.artifact_id(content))
        assert "art-a6aed5ec95b8" == ids.artifact_ref(ids.artifact_id(b"test"))

    def test_content_in_parts_has_the_name_of_the_whole(self) -> None:
        hasher = ids.ArtifactHasher()
        for part in (b"hello", b" ", b"world"):
            hasher.update(part)

        assert ids.artifact_id(b"hello world") == hasher.hexdigest()


@pytest.mark.parametrize(
    ("parent", "artifact", "created_at", "template", "expected"),
    [
        (
            "ctx-a1b2c3d4",
            "a1b2c3d4e5f6" * 5 + "a1b2",
            "2026-02-22T10:30:00Z",
            "bureau/template:code-reviewer",
            "ctx-a21c53db",
        ),
        ("ctx-parent", "artifact-ref-hash", "2026-02-22T10:30:00Z", "bureau/template:reviewer", "ctx-9d216d08"),
        ("", "art-a3f9b2c1e7d4", "2026-02-22T09:00:00Z", "", "ctx-7dad3757"),
    ],
)
def test_a_commit_has_bureaus_name(parent: str, artifact: str, created_at: str, template: str, expected: str) -> None:
    assert expected == ids.commit_ref(ids.commit_id(parent, artifact, created_at, template))


def test_a_seal_tells_absent_from_empty_and_does_not_run_fields_together() -> None:
    lists = [["a", "b"], ["ab", ""], ["ab"], ["ab", None], ["a", "b", ""], [], [None], [""]]

    assert len(lists) == len({ids.seal(fields) for fields in lists})


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "a\0b", "ü", "x" * 129, "a b"])
def test_a_name_that_could_leave_its_folder_is_not_safe(name: str) -> None:
    assert not ids.is_safe_name(name)
