"""What materialize remembers in the store's cache: answers that cost something, and for every answer how it was made.

An answer is called by the name of its bytes, as an artifact is, without being one. So that whoever was given the name
can still get the bytes, its *recipe* (commit, format, stop) is kept: a hundred bytes in place of the conversation.
Recipes lie in 256 entries by the first two digits of the name, the newest few in each, so there is an end to them.
"""

from __future__ import annotations

import msgspec

from harken import __version__, ids
from harken.errors import HarkenError
from harken.store.base import Commit, Store

CACHE_BYTES = 64 << 20
"""The largest answer that is remembered; the cache itself takes nothing larger."""
RECIPES = 32
"""How many recipes are kept for names that begin alike."""


class Recipe(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """How to make an answer again."""

    tip: str = ""
    """The full name of the commit; empty for the empty conversation."""
    format: str = ""
    """Empty for the format it is kept in."""
    stop: str = ""


def cache_key(tip: Commit, format: str | None, stop: str) -> str:
    """Under which an answer is remembered; a newer Harken may read better, so its version is part of it."""
    return f"materialize/{__version__}/{tip.seal}/{format or ''}/{stop}"


def bytes_key(artifact: str) -> str:
    """Under which the bytes of an answer are remembered, so that they can be asked for by name."""
    return f"artifact/{artifact}"


def recall_bytes(store: Store, artifact: str) -> bytes | None:
    """The bytes of an answer, if they are remembered and are what their name says."""
    data = store.cached(bytes_key(artifact))
    return data if data is not None and ids.artifact_id(data) == artifact else None


def remember(store: Store, key: str, facts: bytes, artifact: str, data: bytes) -> None:
    """Keep an answer for a while: its facts under the key, its bytes under their name."""
    if len(data) > CACHE_BYTES:
        return
    try:
        store.cache(bytes_key(artifact), data)
        store.cache(key, facts)
    except HarkenError:
        # A store that cannot be written can still be read.
        return


def note_recipe(store: Store, artifact: str, recipe: Recipe) -> None:
    """Write down how the bytes of this name were made, unless they can be had by name anyway."""
    if store.has(artifact):
        return
    known = _recipes(store, artifact)
    if known.get(artifact) == recipe:
        return
    known.pop(artifact, None)
    newest = dict([*known.items(), (artifact, recipe)][-RECIPES:])
    try:
        store.cache(_recipes_key(artifact), msgspec.msgpack.encode(newest))
    except HarkenError:
        return


def find_recipe(store: Store, digits: str) -> tuple[str, Recipe] | None:
    """The answer whose name begins with these digits, and how it was made; None where that is not exactly one."""
    found = [item for item in _recipes(store, digits).items() if item[0].startswith(digits)]
    return found[0] if len(found) == 1 else None


def _recipes_key(digits: str) -> str:
    return f"recipes/{digits[:2]}"


def _recipes(store: Store, digits: str) -> dict[str, Recipe]:
    """By the names of their answers, the oldest first."""
    try:
        return msgspec.msgpack.decode(store.cached(_recipes_key(digits)) or b"\x80", type=dict[str, Recipe])
    except msgspec.DecodeError:
        return {}
