"""What lies in the HTML file of an exported session."""

from __future__ import annotations

import base64
import gzip
import json
from html.parser import HTMLParser
from typing import Any


class ViewerFile(HTMLParser):
    """The parts of such a file; whatever is none of them stands in `other`."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.policy = self.script = self.style = self.packed = ""
        self.other: list[str] = []
        self.tags: list[str] = []
        self._into = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        self.tags.append(tag)
        if told.get("http-equiv") == "Content-Security-Policy":
            self.policy = told["content"] or ""
        self._into = {"style": "style", "script": "packed" if told.get("id") == "harken-data" else "script"}.get(
            tag, ""
        )

    def handle_endtag(self, tag: str) -> None:
        self._into = ""

    def handle_data(self, data: str) -> None:
        if self._into:
            setattr(self, self._into, getattr(self, self._into) + data)
        elif data.strip():
            self.other.append(data.strip())

    @property
    def json(self) -> str:
        """The answers in it, as they are written."""
        return gzip.decompress(base64.b64decode(self.packed)).decode()

    @property
    def data(self) -> Any:
        """The answers in it."""
        return json.loads(self.json)
