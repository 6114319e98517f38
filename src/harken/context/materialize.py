"""The conversation a commit stands for: walk, join, take the context, translate, and remember the answer.

The answer is a function of the chain, the format and the stop. It is remembered where making it again would cost more
than reading it back: after a translation or a `context`, and for long chains of small deltas.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import msgspec

from harken import __version__, ids
from harken.errors import HarkenError, NotFound
from harken.formats import Format, Loss, find, get
from harken.formats.base import Counts, count, identity
from harken.store.base import Commit, Link, Store

from . import walk
from .translate import TIERS, Piece, Translation, Writer, raw, translate

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


def materialize(store: Store, tip: Commit, *, format: str | None = None, stop: str = walk.COMPACTION) -> Materialized:
    """The conversation at `tip`; `stop` is `compaction`, `root` or the full name of an ancestor."""
    target = get(format) if format else None
    key = cache_key(tip, format, stop)
    if (kept := _recall(store, key)) is not None:
        return kept
    commits, pieces, missing = _conversation(store, tip, stop)
    answer = _answer(pieces, target)
    linear = stop != walk.COMPACTION or all(is_linear(piece.name) for piece in pieces)
    total = _count(answer, pieces, commits, plain=linear)
    made = Materialized(
        bytes=answer.data,
        artifact=ids.artifact_id(answer.data),
        format=answer.format,
        tier=answer.tier,
        tier_name=TIERS[answer.tier],
        losses=(*answer.losses, *missing),
        message_count=total.messages,
        token_count=total.tokens,
        approximate=total.approximate,
        commit_count=len(commits),
        description=answer.description,
    )
    costly = answer.tier != "1" or len(commits) >= CACHE_CHAIN or not linear
    # Raw bytes, or what lacks something, may be better tomorrow: with a reader installed, or a session imported.
    if costly and answer.tier != "4" and not missing:
        facts = msgspec.msgpack.encode(msgspec.structs.replace(made, bytes=b""))
        _keep(store, key, facts, made.artifact, made.bytes)
    return made


def continued(store: Store, tip: Commit, *, format: str, write: Writer) -> Translation:
    """The conversation at `tip` for the runtime of that format, which writes it itself where it has to be translated.

    The answer says and lacks what `materialize` in that format does; tier 4 means that there is no way."""
    _, pieces, missing = _conversation(store, tip, walk.COMPACTION)
    made = translate(pieces, get(format), write=write)
    return msgspec.structs.replace(made, losses=(*made.losses, *missing))


def _conversation(store: Store, tip: Commit, stop: str) -> tuple[list[Link], list[Piece], tuple[Loss, ...]]:
    """The commits of an answer, what they hold joined by format, and what belongs before it and cannot be found."""
    groups, missing = _groups(store, tip, stop)
    commits = [commit for group in groups for commit in group]
    return commits, _load(store, [walk.stretches(group) for group in groups], current=stop == walk.COMPACTION), missing


def is_linear(format: str) -> bool:
    """Whether the conversation as it stands is simply what follows the nearest compaction."""
    found = find(format)
    return found is None or found.context is identity


def select(store: Store, tip: Commit, stop: str) -> list[Link]:
    """The commits an answer is made of, newest first."""
    if stop == walk.ROOT:
        return walk.all_deltas(store.walk(tip.id))
    if stop != walk.COMPACTION:
        return walk.down_to(store.walk(tip.id), stop)
    chain = store.walk(tip.id, stop=walk.RESETS)
    if not is_linear(chain[-1].format) and (below := store.get_commit(chain[-1].id).parent):
        chain = [*chain, *store.walk(below)]
    return walk.current(chain, is_linear)


def _load(store: Store, groups: Sequence[Sequence[walk.Stretch]], *, current: bool) -> list[Piece]:
    parts = [part for group in groups for part in group]
    artifacts = store.get_many([commit.artifact for part in parts for commit in part.commits])
    pieces = []
    for part in parts:
        deltas = list(islice(artifacts, len(part.commits)))
        pieces.append(_piece(part.format, deltas, current=current))
    return pieces


def _piece(name: str, deltas: list[Bytes], *, current: bool) -> Piece:
    """The deltas joined; where their own format cannot do that, one behind the other with the reason."""
    known = find(name)
    if known is not None:
        try:
            data = walk.joined(known, deltas)
            return Piece(name=name, format=known, data=known.context(data) if current else data, current=current)
        except (HarkenError, ValueError, RecursionError) as problem:
            return Piece(name=name, format=None, data=b"".join(deltas), problem=f"{name} cannot be joined: {problem}")
    return Piece(name=name, format=None, data=b"".join(deltas), current=current)


def _answer(pieces: Sequence[Piece], target: Format | None) -> Translation:
    if target is None:
        # The newest commit that is part of the answer says which format it is in.
        target = pieces[-1].format
    return translate(pieces, target) if target else raw(pieces)


def _count(answer: Translation, pieces: Sequence[Piece], commits: Sequence[Link], *, plain: bool) -> Counts:
    # Commits know their own counts; only what `context` left out or a translation dropped has to be measured again.
    readable = [piece for piece in pieces if piece.format and "read" in piece.format.can]
    if plain or len(readable) < len(pieces):
        return Counts.total(
            [
                Counts(messages=commit.message_count, tokens=commit.token_count, approximate=commit.approximate)
                for commit in commits
            ]
        )
    if answer.events is not None:
        return count(answer.events)
    return Counts.total([piece.format.measure(piece.data) for piece in pieces if piece.format])


# -- sub-agents that were given their parent's context ---------------------------------------------------------------


def _groups(store: Store, tip: Commit, stop: str) -> tuple[list[list[Link]], tuple[Loss, ...]]:
    """The commits of the answer, newest first; before them those of each context that was handed down.

    Beside them what was handed down and cannot be found."""
    groups = [select(store, tip, stop)]
    seen = {tip.id}
    while stop == walk.COMPACTION and groups[0] and (given := _inherited(store, store.get_commit(groups[0][-1].id))):
        if isinstance(given, str):
            return groups, (Loss(what="inherited context", count=1, why=given),)
        if given.id in seen:
            break
        seen.add(given.id)
        groups.insert(0, select(store, given, stop))
    return groups, ()


def _inherited(store: Store, first: Commit) -> Commit | str | None:
    """The commit whose context a sub-agent was given, if it was given one; a text says why it cannot be found."""
    origin = None if first.parent else first.spawned_from
    if not origin or not origin.get("inherits"):
        return None
    from .spawned import spawn_points

    session = origin.get("session") or "a session without a name"
    if commit := spawn_points(store, [first]).get(first.id):
        try:
            return store.get_commit(commit)
        except NotFound:
            return f"{commit} of {session} is not in this store"
    # What the parent knows now is more than it knew then, so nothing is said rather than too much.
    return f"nobody wrote down at which commit of {session} it was handed over"


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
    """Under which an answer is remembered; a newer Harken may read better, so its version is part of it."""
    return f"materialize/{__version__}/{tip.seal}/{format or ''}/{stop}"


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
        kept = msgspec.msgpack.decode(facts, type=Materialized)
    except msgspec.DecodeError:
        return None
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
