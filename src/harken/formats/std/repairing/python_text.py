"""An object as Python prints it, as JSON: with single quotes where texts have none, `None` and `True`."""

from __future__ import annotations

import ast
import io
import tokenize
import warnings

from harken.errors import BadRecord
from harken.formats.std.document import dumps, loads

_LONGEST = 1 << 20
"""Characters of a text that is read so: Python takes a hundred times that to read it."""


def json_of_python(text: str) -> bytes | None:
    """The bytes; None where the text is no object of Python, or one that JSON cannot hold. Texts side by side, which
    Python reads as one, and keys that stand twice have other readings too."""
    if len(text) > _LONGEST or not text.lstrip().startswith("{"):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that are none
            tree = ast.parse(text.strip(), mode="eval").body
            if not _is_plain(tree) or _has_joined_texts(text):
                return None
            data = dumps(ast.literal_eval(tree))
        loads(data)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError, BadRecord):
        return None
    return data


def _is_plain(tree: ast.expr) -> bool:
    """Whether there are only values that JSON has, under keys that are texts and stand once."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
            if not all(isinstance(key, str) for key in keys) or len(set(keys)) < len(keys):
                return False
        elif isinstance(node, ast.Constant):
            if not isinstance(node.value, str | int | float | None):
                return False
        elif not isinstance(node, ast.List | ast.Tuple | ast.UnaryOp | ast.USub | ast.Load):
            return False
    return True


def _has_joined_texts(text: str) -> bool:
    before = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT):
            continue
        if token.type == before == tokenize.STRING:
            return True
        before = token.type
    return False
