"""Markdown as a reader of CommonMark that is not ours takes it."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


class HtmlTokens:
    """What a Markdown document shows that is more than text."""

    def __init__(self, text: str) -> None:
        tokens = READER.parse(text)
        everything = [inner for token in tokens for inner in (token, *(token.children or ()))]
        markup = "".join(token.content for token in everything if token.type in ("html_block", "html_inline"))
        opened = re.findall(r"<([a-z]+)[ >]", markup)
        self.tags = {*opened}
        self.tags_open = len(opened) - len(re.findall(r"</[a-z]+>", markup))
        self.pictures = {str(token.attrs["src"]) for token in everything if token.type == "image"}
        self.links = [str(token.attrs["href"]) for token in everything if token.type == "link_open"]
        self.headings = [
            tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open" and token.map
        ]
