"""The documents point at what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]+)?(?:#([^)\s]+))?\)")


def anchors(text: str) -> set[str]:
    """The anchors a page's headings get."""
    titles = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document: Path) -> None:
    text = re.sub(r"```.*?```", "", document.read_text("utf-8"), flags=re.S)
    dead = []
    for target, anchor in LINK.findall(text):
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        path = (document.parent / target).resolve() if target else document
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path.read_text("utf-8"))):
            dead.append(f"{target}#{anchor}")

    assert [] == dead


def test_the_glossary_has_at_most_sixty_words_each_once_and_in_order() -> None:
    words = re.findall(r"^- \*\*(.+?)\*\*: ", (ROOT / "docs" / "GLOSSARY.md").read_text("utf-8"), re.M)

    assert len(words) <= 60
    assert sorted({word.lower() for word in words}) == [word.lower() for word in words]


FILE = re.compile(r"`([\w./-]+\.(?:py|md|toml|svg))`")
ELSEWHERE = {"harken_quill/__init__.py"}
"""Files that a document makes up."""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_that_a_document_names_is_there(document: Path) -> None:
    tracked = [
        path
        for part in ("src", "tests", "scripts", "docs", "examples", "benchmarks")
        for path in (ROOT / part).rglob("*")
    ]
    known = [f"/{path.relative_to(ROOT).as_posix()}" for path in [*tracked, *ROOT.glob("*")]]
    named = set(FILE.findall(document.read_text("utf-8"))) - ELSEWHERE

    assert set() == {name for name in named if not any(path.endswith(f"/{name}") for path in known)}
