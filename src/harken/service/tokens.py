"""Who may ask: tokens and their grants, in a file of their own beside the store, and one-time words for the browser.

A token is 32 random bytes; the file holds only its hash, so that whoever reads the file can use none of them. The file
is read again whenever it has changed: what `harken token` makes or revokes holds from the next request on.
"""

from __future__ import annotations

import contextlib
import fcntl
import hmac
import os
import secrets
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from harken import clock, ids
from harken.errors import BadRequest, Conflict, Corrupt, HarkenError, NotFound
from harken.files import write_whole

from .operations import ADMIN, GRANTS

PREFIX = "hk_"
"""How every token begins, so that one that stands where it should not is found by a search for secrets."""
WORD_LASTS = 600
"""Seconds that a one-time word is good for."""
BROWSER_LASTS = 30 * 86400
"""Seconds that a browser stays signed in."""
MOST_TOKENS = 1000
"""For programs."""
MOST_BROWSERS = 20
"""Browsers that stay signed in with one token; the owner's word counts as one. Who signs in more often signs out the
one that was used least lately, and nobody else's."""
MOST_WORDS = 16
_NOTED = 60 * clock.SECOND
"""How exactly it is noted when a token was last used."""


class AccessToken(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a token; the token itself nobody keeps."""

    name: str
    """What it is called, by whoever made it."""
    hash: str
    grants: tuple[str, ...]
    principal: str = ""
    """Who uses it; goes onto checkpoints."""
    machine: str = ""
    """Where it is used; goes onto checkpoints."""
    created: int = 0
    expires: int | None = None
    used: int | None = None
    """When it was last used, to the minute."""
    of: str = ""
    """The token that a browser was signed in with; it is worth nothing without it. Empty for others."""
    is_browser: bool = False

    def is_over(self, now: int) -> bool:
        """Whether it has expired."""
        return self.expires is not None and self.expires <= now


class _TokenList(msgspec.Struct, frozen=True, kw_only=True):
    version: int = 1
    tokens: tuple[AccessToken, ...] = ()


class NewToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token that was just made; only now can it be told."""

    secret: str
    token: AccessToken


def tokens_beside(location: str) -> Path | None:
    """The file of tokens that belongs to a store; None for one that has no file."""
    path = Path(location)
    return path.with_name(f"{path.name}-tokens") if path.is_file() else None


class TokenFile:
    """The tokens of a store. Any number of threads and processes may use it at once."""

    def __init__(self, path: Path | None, *, now: clock.Clock = clock.now) -> None:
        self.path = path
        """Where they are kept; None: in memory."""
        self._now = now
        self._lock = threading.Lock()
        """Held for a look."""
        self._changes = threading.Lock()
        """Held while the file is written, which may take a while; nobody who only asks waits for it."""
        self._seen: object = None
        self._tokens: tuple[AccessToken, ...] = ()
        self._unwritten: tuple[AccessToken, ...] = ()
        """Browsers that were signed in where nothing can be written; they last as long as the server does."""

    # -- asking ------------------------------------------------------------------------------------------------

    def all(self) -> tuple[AccessToken, ...]:
        """Every token, expired ones too."""
        with self._lock:
            self._look()
            return self._tokens + self._unwritten

    def find(self, secret: str) -> AccessToken | None:
        """The token whose secret this is; None where there is none, or it is over."""
        return self._good(ids.token_hash(secret))

    def is_good(self, token: AccessToken) -> bool:
        """Whether a token that was good still is."""
        return self._good(token.hash) is not None

    def _good(self, asked: str) -> AccessToken | None:
        now, tokens = self._now(), self.all()
        found = [token for token in tokens if hmac.compare_digest(token.hash, asked)]
        if not found or found[0].is_over(now):
            return None
        one = found[0]
        if one.of and not any(each.name == one.of and not each.is_over(now) for each in tokens):
            return None
        return one

    # -- changing ----------------------------------------------------------------------------------------------

    def create(
        self,
        name: str,
        grants: tuple[str, ...],
        *,
        principal: str = "",
        machine: str = "",
        seconds: int | None = None,
    ) -> NewToken:
        """Make a token for a program; `Conflict` where there is one of this name."""
        _check_name(name)
        unknown = [grant for grant in grants if grant not in GRANTS]
        if unknown or not grants:
            raise BadRequest(f"no grant {', '.join(unknown) or 'at all'}", hint=f"one of {', '.join(GRANTS)}")
        now = self._now()
        expires = None if seconds is None else now + seconds * clock.SECOND
        token = AccessToken(name=name, hash="", grants=grants, principal=principal, machine=machine, created=now)
        return self._add(msgspec.structs.replace(token, expires=expires))

    def sign_in(self, by: AccessToken | None) -> NewToken:
        """Make a token for a browser: with the grants of the token it was signed in with, or the owner's own."""
        name, latest = f"browser-{secrets.token_hex(4)}", self._now() + BROWSER_LASTS * clock.SECOND
        if by is None:
            return self._add(AccessToken(name=name, hash="", grants=(ADMIN,), expires=latest, is_browser=True))
        expires = latest if by.expires is None else min(by.expires, latest)
        told = msgspec.structs.replace(
            by, name=name, expires=expires, of=by.of or by.name, is_browser=True, created=0, used=None
        )
        return self._add(told)

    def revoke(self, name: str) -> AccessToken:
        """Take a token back; it is refused from now on, and so is every browser that was signed in with it."""
        with self._changing() as tokens:
            gone = next((token for token in tokens if token.name == name), None)
            if gone is None:
                raise NotFound(f"there is no token {name!r:.99}", hint="`harken token list` lists them")
            tokens[:] = [token for token in tokens if name not in (token.name, token.of)]
        return gone

    def sign_out(self, token: AccessToken) -> None:
        """Take a browser's token back."""
        self._unwritten = tuple(one for one in self._unwritten if one.name != token.name)
        with contextlib.suppress(NotFound, OSError):
            self.revoke(token.name)

    def note_use(self, token: AccessToken) -> None:
        """Remember that it was used; to the minute, so that not every request writes."""
        if not self.is_to_note(token):
            return
        with contextlib.suppress(OSError, HarkenError), self._changing() as tokens:
            for place, one in enumerate(tokens):
                if one.hash == token.hash:
                    tokens[place] = msgspec.structs.replace(one, used=self._now())

    def is_to_note(self, token: AccessToken) -> bool:
        """Whether it is long enough ago that its use was noted."""
        return token.used is None or self._now() - token.used >= _NOTED

    def _add(self, token: AccessToken) -> NewToken:
        secret = PREFIX + secrets.token_urlsafe(32)
        made = msgspec.structs.replace(token, hash=ids.token_hash(secret), created=token.created or self._now())
        try:
            with self._changing() as tokens:
                if any(one.name == made.name for one in tokens):
                    hint = "revoke it first, or take another name"
                    raise Conflict(f"there is a token {made.name!r:.99} already", hint=hint)
                if made.is_browser:
                    _make_room(tokens, made.of)
                elif sum(not one.is_browser for one in tokens) >= MOST_TOKENS:
                    hint = "`harken token revoke` takes one back"
                    raise Conflict(f"there are {MOST_TOKENS} tokens already", hint=hint)
                tokens.append(made)
        except OSError:
            if not made.is_browser:
                raise
            self._unwritten = (*self._unwritten, made)[-MOST_WORDS:]
        return NewToken(secret=secret, token=made)

    @contextlib.contextmanager
    def _changing(self) -> Iterator[list[AccessToken]]:
        """The list to change, which nobody else changes meanwhile; what is long over goes by itself."""
        with self._changes, self._held():
            now = self._now()
            with self._lock:
                self._look()
                tokens = [one for one in self._tokens if not (one.is_browser and one.is_over(now))]
            yield tokens
            if self.path is None:
                self._tokens = tuple(tokens)
            else:
                data = msgspec.json.format(msgspec.json.encode(_TokenList(tokens=tuple(tokens))), indent=1)
                write_whole(self.path, data + b"\n", replace=True)

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        if self.path is None:
            yield
            return
        lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _look(self) -> None:
        """Read the file if it is another than before."""
        if self.path is None:
            return
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            self._seen, self._tokens = None, ()
            return
        with os.fdopen(handle, "rb") as file:
            about = os.fstat(file.fileno())
            seen = (about.st_ino, about.st_mtime_ns, about.st_size)
            if seen == self._seen:
                return
            _check_owner(self.path, about)
            try:
                self._tokens = msgspec.json.decode(file.read(), type=_TokenList).tokens
            except (msgspec.DecodeError, UnicodeDecodeError) as problem:
                hint = "remove it, and make new tokens with `harken token create`"
                raise Corrupt(f"{self.path} is no list of tokens: {problem}", hint=hint) from None
            self._seen = seen


def _check_owner(path: Path, about: os.stat_result) -> None:
    """Whoever can write this file can give themselves everything."""
    if about.st_uid not in (os.getuid(), 0) or about.st_mode & 0o022 or not stat.S_ISREG(about.st_mode):
        raise HarkenError(f"others may write to {path}", hint=f"`chmod 600 {path}`, and revoke what you do not know")


def _make_room(tokens: list[AccessToken], of: str) -> None:
    """Take back the browsers of a token that are too many for one more."""
    own = [one for one in tokens if one.is_browser and one.of == of]
    own.sort(key=lambda one: max(one.created, one.used or 0))
    for one in own[: max(0, len(own) + 1 - MOST_BROWSERS)]:
        tokens.remove(one)


def _check_name(name: str) -> None:
    if not ids.is_safe_name(name):
        raise BadRequest(f"{name!r:.99} is no name of a token", hint="letters, digits, `.`, `_` and `-`, at most 128")


class LoginWords:
    """Words that sign a browser in, each once and for a short while. They live as long as the server does."""

    def __init__(self, *, monotonic: Callable[[], float] = clock.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._words: dict[str, float] = {}

    def new(self) -> str:
        """A new word."""
        word = secrets.token_urlsafe(24)
        with self._lock:
            while len(self._words) >= MOST_WORDS:
                del self._words[next(iter(self._words))]
            self._words[ids.token_hash(word)] = self._monotonic() + WORD_LASTS
        return word

    def take(self, word: str) -> bool:
        """Whether the word is good; it never is again."""
        asked = ids.token_hash(word)
        with self._lock:
            found = [known for known in self._words if hmac.compare_digest(known, asked)]
            return any(self._words.pop(known) > self._monotonic() for known in found)
