"""Identity: the one place that decides when two values are the same value.

Rule 1: nothing else in Harken calls a hash function.
Rule 2: a name, once given, never changes. A different recipe would be a different kind of name.

The recipes are Bureau's, so that names agree with it: an artifact is a keyed BLAKE3 of its bytes (as if they were
one chunk), a commit is a SHA-256 over parent, artifact, time and template. The *seal* is ours: it covers every
immutable field with full-length names, and so tells apart two commits that share a 32-bit name.
"""

from __future__ import annotations

import os
import re
from _blake2 import blake2b  # that of `hashlib`, which takes a while to load
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from blake3 import blake3

ARTIFACT_PREFIX = "art-"
COMMIT_PREFIX = "ctx-"
ARTIFACT_SHORT = 12
COMMIT_SHORT = 8
COMMIT_FULL = 64
NAME_LIMIT = 512
PATH_LIMIT = 4096
FILE_NAME_LIMIT = 255
"""Bytes of a path and of each name in it, beyond which systems know of no file."""
PATH_HINT = "no NUL, no lone surrogate, not empty, at most 255 bytes in a name"
"""Bytes of a branch's or tag's name."""


def _key(domain: str) -> bytes:
    return domain.encode("ascii").ljust(32, b"\0")


_CHUNK = _key("bureau.artifact.chunk")
_FILE = _key("bureau.artifact.file")
_FRAME = _key("harken.store.frame")
_SEAL = _key("harken.commit.seal")
_ROW = _key("harken.store.row")
_SOURCE = _key("harken.source.content")
_WORD = _key("harken.forgotten.word")
_pack = msgspec.msgpack.Encoder().encode


def chunk_hash(content: bytes) -> bytes:
    """The name of one chunk of content."""
    return blake3(content, key=_CHUNK).digest()


def file_hash(chunk: bytes) -> bytes:
    """The name of a file that is the one chunk of this name."""
    return blake3(chunk, key=_FILE).digest()


class ArtifactHasher:
    """The name of content that arrives in parts, for content too large to hold."""

    def __init__(self) -> None:
        self._chunk = blake3(key=_CHUNK)

    def update(self, part: bytes) -> None:
        """Take in the next part."""
        self._chunk.update(part)

    def hexdigest(self) -> str:
        """The artifact's full name."""
        return file_hash(self._chunk.digest()).hex()


class ContentHasher:
    """A running hash of a source's content, by which an import tells whether it still begins as it did."""

    def __init__(self) -> None:
        self._hash = blake3(key=_SOURCE)

    def update(self, part: bytes | bytearray | memoryview) -> None:
        """Take in the next part."""
        self._hash.update(part)

    def copy(self) -> ContentHasher:
        """The same, which may go its own way."""
        other = ContentHasher.__new__(ContentHasher)
        other._hash = self._hash.copy()
        return other

    def hexdigest(self) -> str:
        """The hash of everything so far, 32 hex digits."""
        return self._hash.hexdigest(16)


def artifact_id(content: bytes) -> str:
    """The artifact's full name: 64 hex digits."""
    return file_hash(chunk_hash(content)).hex()


def artifact_ids(contents: Iterable[bytes]) -> list[str]:
    """`artifact_id` of many: the hashers are used again, since making them takes as long as their work."""
    chunk, file = blake3(key=_CHUNK), blake3(key=_FILE)
    again, take, inner = chunk.reset, chunk.update, chunk.digest
    file_again, file_take, name = file.reset, file.update, file.hexdigest
    names = []
    for content in contents:
        again()
        take(content)
        file_again()
        file_take(inner())
        names.append(name())
    return names


def artifact_ref(full: str) -> str:
    """The short form that commits are named with: `art-` and 12 hex digits."""
    return ARTIFACT_PREFIX + full[:ARTIFACT_SHORT]


def frame_hash(stored: bytes) -> bytes:
    """The name of a compressed frame, over the bytes as they lie on disk."""
    return blake3(stored, key=_FRAME).digest()


def secret_hash(salt: bytes, secret: bytes) -> bytes:
    """By which a secret that was forgotten is known again."""
    return blake3(salt + secret, key=_WORD).digest()


def commit_id(parent: str, artifact: str, created_at: str, template: str) -> str:
    """The commit's full name: 64 hex digits. `parent` is `ctx-` + 8 (or empty), `artifact` is `art-` + 12."""
    from hashlib import sha256  # loading it takes longer than a question to the index

    return sha256("\0".join((parent, artifact, created_at, template)).encode()).hexdigest()


def commit_ref(full: str, length: int = COMMIT_SHORT) -> str:
    """The form people see: `ctx-` and as many digits as are needed."""
    return COMMIT_PREFIX + full[:length]


def digits_needed(name: str, others: Iterable[str]) -> int:
    """How many digits tell a commit from every one of `others`, never fewer than eight (after the 64th, for a twin).

    A name of 64 digits is not lengthened by its twins: it was first, and they are found by more digits than that."""
    least = COMMIT_SHORT if len(name) <= COMMIT_FULL else COMMIT_FULL + COMMIT_SHORT
    alike = [other for other in others if other != name and len(other) == len(name)]
    shared = (next(n for n, (x, y) in enumerate(zip(name, other, strict=True)) if x != y) for other in alike)
    return max([least, *(n + 1 for n in shared)])


def source_within(path: str, name: str) -> str:
    """What a source inside a file is called: an agent's part of a log, a session of a database. Without a name it is
    the file itself."""
    return f"{path}#{name}" if name else path


def name_within(path: str, source: str) -> str:
    """The name by which `source_within` called a source inside that file."""
    return source.removeprefix(f"{path}#")


def file_around(source: str) -> str:
    """The file that a source lies in, if it was called by `source_within`; empty where it cannot have been.

    A file's own name may hold the mark as well, so the answer is a file to look for."""
    return source.rpartition("#")[0]


def seal(fields: Iterable[str | None], more: tuple[str | None, ...] = ()) -> str:
    """The seal over a commit's immutable fields: each is length-prefixed, so that no two lists look alike. `more` are
    the last of them, which many commits share."""
    return blake3(_listed(fields) + _listed_once(more), key=_SEAL).hexdigest()


def row_sum(table: str, row: Iterable[str | bytes | int | None]) -> bytes:
    """Eight bytes over a stored row, by which whoever reads it tells a flipped bit.

    Over MessagePack, since that is one quick call for every row that leaves a store."""
    return blake3(_pack((table, *row)), key=_ROW).digest(8)


def short_key(text: str) -> int:
    """64 bits of a name, as a signed number: enough to tell the messages of a store apart, and small in a table."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), signed=True)


def row_sums(table: str, rows: Iterable[tuple[Any, ...]]) -> list[bytes]:
    """`row_sum` of many rows of a table."""
    hasher = blake3(key=_ROW)
    reset, update, digest = hasher.reset, hasher.update, hasher.digest
    sums = []
    for row in rows:
        reset()
        update(_pack((table, *row)))
        sums.append(digest(8))
    return sums


def _listed(fields: Iterable[str | None]) -> bytes:
    """The fields one after the other, each with its length, so that no two lists look alike."""
    items = tuple(fields)
    text = "".join(["-;" if field is None else f"{len(field)}:{field};" for field in items])
    return text.encode() if text.isascii() else b"".join(map(_item, items))


@lru_cache(maxsize=256)
def _listed_once(fields: tuple[str | None, ...]) -> bytes:
    return _listed(fields)


def _item(text: str | None) -> bytes:
    if text is None:
        return b"-;"
    data = text.encode("utf-8", "surrogatepass")
    return b"%d:%b;" % (len(data), data)


# A commit that shares its 64 digits with an older one is named by the digits of its seal as well.
_HEX = re.compile(r"[0-9a-f]{1,128}")
_DIGITS = "0123456789abcdef"
_SAFE = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def token_hash(secret: str) -> str:
    """By which a token is known again: SHA-256, 64 hex digits. It is long and random, so no salt is needed."""
    from hashlib import sha256  # loading it takes longer than a question to the index

    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def plain_sha256(data: bytes) -> str:
    """By what other programs call a folder or a text: its SHA-256 in hex."""
    from hashlib import sha256

    return sha256(data).hexdigest()


def short_digest(data: bytes) -> str:
    """The first 16 digits of the name of these bytes: enough to know them again among a few."""
    return artifact_id(data)[:16]


def time_ordered_uuid(instant: int) -> str:
    """A new id of the shape that several programs give their sessions, a version-7 UUID: the instant in milliseconds,
    then chance."""
    digits = f"{instant // 1000 & (1 << 48) - 1:012x}7{os.urandom(10).hex()}"
    digits = digits[:16] + "89ab"[int(digits[16], 16) % 4] + digits[17:32]
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def is_hex(text: str) -> bool:
    """Whether the text could be a full name or the beginning of one."""
    return _HEX.fullmatch(text) is not None


def is_safe_name(text: str) -> bool:
    """Whether a name that came from a transcript may become part of a path."""
    return _SAFE.fullmatch(text) is not None and text not in {".", ".."}


def is_text(text: str) -> bool:
    """Whether this can be written as UTF-8; a transcript may hold half a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_path(value: str | bytes | os.PathLike[str]) -> bool:
    """Whether this can be the path of a file, on this system; that it holds bytes that are no UTF-8 does no harm."""
    try:
        path = os.fsencode(value)
    except (TypeError, ValueError):
        return False
    if not path or b"\0" in path or len(path) >= PATH_LIMIT:
        return False
    return len(path) <= FILE_NAME_LIMIT or all(len(name) <= FILE_NAME_LIMIT for name in path.split(os.sep.encode()))


def name_problem(text: str) -> str:
    """Why this cannot be the name of a branch or a tag; empty where it can."""
    if not is_text(text):
        return "it holds a lone surrogate, which is no text that can be written down"
    if not 0 < len(text.encode()) <= NAME_LIMIT:
        return f"a name has between 1 and {NAME_LIMIT} bytes"
    if any(ord(c) < 32 or ord(c) == 127 for c in text) or text != text.strip():
        return "it holds control characters, or spaces at an end"
    digits = text.lower().removeprefix(COMMIT_PREFIX).removeprefix(ARTIFACT_PREFIX)
    if (digits != text.lower() and not digits.strip(_DIGITS)) or (len(text) >= COMMIT_FULL and is_hex(digits)):
        return "it looks like the name of a commit or an artifact"
    if {"", ".", ".."} & set(text.split("/")):
        return "it looks like a path: `/` stands between words"
    return ""


def tops(parents: Mapping[str, str]) -> dict[str, str]:
    """For each session the one it counts with: of a sub-agent the session at the top of its family, else itself. A
    parent that is not here is nobody's top, nor is one that comes back to itself."""
    found: dict[str, str] = {}
    for session in parents:
        passed: dict[str, None] = {}
        at = session
        while at not in found and at not in passed:
            passed[at] = None
            at = parents[at] if parents[at] in parents else at
        found.update(dict.fromkeys(passed, found.get(at, at)))
    return found


def integrity(text: str) -> str:
    """The name of a script or a style by which a page's policy allows it."""
    from base64 import b64encode
    from hashlib import sha256

    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()
