"""The conversation a commit stands for: walk, join, take the context, translate, and remember the answer.

The answer is a function of the chain, the format and the stop. It is remembered where making it again would cost more
than reading it back: after a translation or a `context`, and for long chains of small deltas.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import msgspec

from harken import ids
from harken.errors import HarkenError
from harken.formats import Format, Loss, find, get
from harken.formats.base import Counts, concatenate, count, revision
from harken.formats.kit.on_disk import put_down
from harken.formats.kit.sparse import SparseBytes
from harken.store.base import Commit, Store, WalkStep

from . import walk
from .translate import TIERS, Translation, raw, translate
from .walk import Piece

Bytes = bytes
"""A second name, because a field of that name hides the first one."""
DEFAULT_FORMAT = "events-v1"
CACHE_CHAIN = 64
"""A join of fewer commits is as quick to make as to look up."""


class Materialized(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation in one piece, and how it was made."""

    bytes: Bytes
    artifact: str
    """The full name of the bytes."""
    format: str
    tier: str
    """`1` native, `2` field, `2s` structural, `3` rendering, `4` raw."""
    tier_name: str = "native"
    losses: tuple[Loss, ...] = ()
    message_count: int | None = None
    """None where a part of it was counted by nobody."""
    token_count: int | None = None
    approximate: bool = False
    """Whether `token_count` is an estimate."""
    commit_count: int = 0
    """The commits whose bytes are in the answer."""
    description: str = ""
    """A sentence about the format, for whoever has no reader for it."""


def empty(format: str | None = None) -> Materialized:
    """The conversation of no commit at all: a fresh start."""
    chosen = get(format or DEFAULT_FORMAT)
    return Materialized(
        bytes=chosen.empty,
        artifact=ids.artifact_id(chosen.empty),
        format=chosen.name,
        tier="1",
        message_count=0,
        token_count=0,
        description=chosen.description,
    )


def everything(store: Store, tip: Commit) -> Materialized:
    """`materialize` down to the root for whoever only reads it, with overlong lines left out (`kit/sparse.py`)."""
    if (kept := _recall(store, cache_key(tip, None, walk.ROOT))) is not None:
        return kept
    _, pieces, _ = found = walk.conversation(store, tip, walk.ROOT, readable=True)
    if not any(isinstance(piece.data, SparseBytes) for piece in pieces):
        return _made(store, tip, None, walk.ROOT, found)
    if len(pieces) > 1:
        return materialize(store, tip, stop=walk.ROOT)
    # What nobody has all of has no name, and is not remembered.
    return Materialized(bytes=pieces[0].data, artifact="", format=pieces[0].name, tier="1")


def everything_on_disk(store: Store, tip: Commit) -> Materialized:
    """The same, for whoever goes through it once: it takes no memory, however much it is, where its format is one of
    lines and alone in the chain."""
    steps = walk.all_deltas(store.walk(tip.id))[::-1]
    names = {step.format for step in steps}
    format = find(steps[0].format) if len(names) == 1 else None
    if format is None or not format.takes_sparse or format.join is not concatenate:
        return everything(store, tip)
    data = put_down(_parts(store, format, steps))
    return Materialized(bytes=data, artifact="", format=format.name, tier="1", losses=_forgotten(store, steps))


def _parts(store: Store, format: Format, steps: Sequence[WalkStep]) -> Iterator[bytes]:
    # One that is too large for a frame comes in parts of its own.
    between = b""
    for step, data in zip(steps, store.get_many([step.artifact for step in steps], large=lambda _: b""), strict=True):
        yield between
        end = data
        yield data
        if not data:
            for end in store.iter_parts(step.artifact):
                yield end
        between = walk.gap(format, end)


def materialize(store: Store, tip: Commit, *, format: str | None = None, stop: str = walk.COMPACTION) -> Materialized:
    """The conversation at `tip`; `stop` is `compaction`, `root` or the full name of an ancestor."""
    if format:
        get(format)  # one that nobody knows is refused before anything is read
    if (kept := _recall(store, cache_key(tip, format, stop))) is not None:
        return kept
    return _made(store, tip, format, stop, walk.conversation(store, tip, stop))


def _made(
    store: Store,
    tip: Commit,
    format: str | None,
    stop: str,
    found: tuple[Sequence[WalkStep], Sequence[Piece], tuple[Loss, ...]],
) -> Materialized:
    commits, pieces, missing = found
    answer = _answer(pieces, get(format) if format else None)
    linear = stop != walk.COMPACTION or all(walk.is_linear(piece.name) for piece in pieces)
    total = _count(answer, pieces, commits, plain=linear)
    total = total.conversation if stop == walk.COMPACTION else total
    made = Materialized(
        bytes=answer.data,
        artifact=ids.artifact_id(answer.data),
        format=answer.format,
        tier=answer.tier,
        tier_name=TIERS[answer.tier],
        losses=(*answer.losses, *missing, *_forgotten(store, commits)),
        message_count=total.messages,
        token_count=total.tokens,
        approximate=total.approximate,
        commit_count=len(commits),
        description=answer.description,
    )
    costly = answer.tier != "1" or len(commits) >= CACHE_CHAIN or not linear
    # Raw bytes, or what lacks something, may be better tomorrow: with a reader installed, or a session imported.
    if costly and answer.tier != "4" and not missing:
        used = {name: revision(name) for name in (answer.format, *(piece.name for piece in pieces))}
        facts = msgspec.msgpack.encode((used, msgspec.structs.replace(made, bytes=b"")))
        _keep(store, cache_key(tip, format, stop), facts, made.artifact, made.bytes)
    return made


def _forgotten(store: Store, commits: Sequence[WalkStep]) -> tuple[Loss, ...]:
    """What is blanked in the answer, since somebody forgot it on purpose."""
    found = store.tombstones([commit.artifact for commit in commits])
    return tuple(
        Loss(what="forgotten bytes", count=stone.count, why=f"forgotten{stone.said}") for stone in found.values()
    )


def _answer(pieces: Sequence[Piece], target: Format | None) -> Translation:
    if target is not None:
        return translate(pieces, target, present=True)
    # The newest commit that is part of the answer says which format it is in.
    own = pieces[-1].format
    return translate(pieces, own) if own else raw(pieces)


def _count(answer: Translation, pieces: Sequence[Piece], commits: Sequence[WalkStep], *, plain: bool) -> Counts:
    # Commits know their own counts; only what `context` left out or a translation dropped has to be measured again.
    readable = [piece for piece in pieces if piece.format and "read" in piece.format.can]
    if plain or len(readable) < len(pieces):
        committed = Counts.total(
            [
                Counts(messages=commit.message_count, tokens=commit.token_count, approximate=commit.approximate)
                for commit in commits
            ]
        )
        if committed.tokens is not None or len(readable) < len(pieces):
            return committed
        # An import counts messages; tokens are estimated from the text when somebody asks.
        measured = Counts.total([piece.format.measure(piece.data) for piece in pieces if piece.format])
        return msgspec.structs.replace(measured, messages=committed.messages)
    if answer.events is not None:
        return count(answer.events)
    return Counts.total([piece.format.measure(piece.data) for piece in pieces if piece.format])


# -- remembering -----------------------------------------------------------------------------------------------------
#
# An answer is called by the name of its bytes, as an artifact is, without being one. So that whoever was given the name
# can still get the bytes, its *recipe* (commit, format, stop) is kept: a hundred bytes in place of the conversation.
# Recipes lie in 256 entries by the first two digits of the name, the newest few in each, so there is an end to them.

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
    """Under which an answer is remembered; a newer Harken may read better, so what tells its code is part of it."""
    return f"materialize/{revision(DEFAULT_FORMAT)}/{tip.seal}/{format or ''}/{stop}"


def bytes_key(artifact: str) -> str:
    """Under which the bytes of an answer are remembered, so that they can be asked for by name."""
    return f"artifact/{artifact}"


def recall_bytes(store: Store, artifact: str) -> bytes | None:
    """The bytes of an answer, if they are remembered and are what their name says."""
    data = store.cached(bytes_key(artifact))
    return data if data is not None and ids.artifact_id(data) == artifact else None


def _keep(store: Store, key: str, facts: bytes, artifact: str, data: bytes) -> None:
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


@contextmanager
def keeping_recipes(store: Store) -> Iterator[None]:
    """A block that may empty the cache. A name that was given out stays good: its recipe cannot be made again."""
    keys = [_recipes_key(f"{n:02x}") for n in range(256)]
    kept = {key: data for key in keys if (data := store.cached(key)) is not None}
    try:
        yield
    finally:
        for key, data in kept.items():
            with suppress(HarkenError):
                store.cache(key, data)


def _recipes_key(digits: str) -> str:
    return f"recipes/{digits[:2]}"


def _recipes(store: Store, digits: str) -> dict[str, Recipe]:
    """By the names of their answers, the oldest first."""
    try:
        return msgspec.msgpack.decode(store.cached(_recipes_key(digits)) or b"\x80", type=dict[str, Recipe])
    except msgspec.DecodeError:
        return {}


def _recall(store: Store, key: str) -> Materialized | None:
    if (facts := store.cached(key)) is None:
        return None
    try:
        used, kept = msgspec.msgpack.decode(facts, type=tuple[dict[str, str], Materialized])
    except msgspec.DecodeError:
        return None
    if any(code != revision(name) for name, code in used.items()):
        return None  # a format reads or writes otherwise since
    data = recall_bytes(store, kept.artifact)
    return None if data is None else msgspec.structs.replace(kept, bytes=data)


def remake(store: Store, digits: str) -> Bytes | None:
    """The bytes of an answer by their name or a unique beginning of it: remembered, or made again."""
    if len(digits) < ids.ARTIFACT_SHORT or not ids.is_hex(digits):
        return None
    found = find_recipe(store, digits)
    name = found[0] if found else digits
    if (data := recall_bytes(store, name)) is not None or found is None:
        return data
    recipe = found[1]
    if recipe.tip:
        made = materialize(store, store.get_commit(recipe.tip), format=recipe.format or None, stop=recipe.stop)
    else:
        made = empty(recipe.format or None)
    # A newer Harken may read better; then the old bytes are no longer to be had.
    return made.bytes if made.artifact == name else None
