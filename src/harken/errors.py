"""Every error Harken raises on purpose, and what each means to a program that called us.

The drawing is compared with the classes by a test. The command line exits with the first number, the service
will answer with the second, so the two cannot disagree. Programs tell errors apart by their `code`, which is the
class's name in small letters (`not_found`); under `--json` it is printed with the sentence and the hint.

* HarkenError             exit 1  http 500   the disk's fault, or a bug of ours
  + BadRequest           exit 2  http 400   the question makes no sense as it was asked
    + Ambiguous          exit 2  http 400   a prefix that names several things
    + Closed             exit 2  http 400   the store was closed before it was asked
  + NotFound             exit 3  http 404   a well-formed question about something that is not there
    + Evicted            exit 3  http 404   the commit is known, its bytes were removed
      + Forgotten        exit 3  http 404   they were forgotten on purpose
  + Conflict             exit 4  http 409   somebody else was faster, or holds what we need
    + Locked             exit 4  http 409   another process is the writer
  + BadRecord            exit 5  http 422   a record that could not be read, where the caller asked to be strict
  + Poisoned             exit 1  http 500   a write failed; what reached the disk must be read again
  + ModelFailed          exit 1  http 502   the language model did not answer
    + LimitReached       exit 1  http 402   it was not asked: what agents may use is used up
  + Waiting              exit 1  http 409   a person has been asked, and has not answered yet
  + NotAllowed           exit 1  http 403   whoever asks may not do this, or may not ask from there
    + NotSignedIn        exit 1  http 401   nobody knows who asks
  + TooLarge             exit 1  http 413   more was sent than is taken
  + TooMany              exit 1  http 429   too many questions at once, or one after the other
  + TookTooLong          exit 1  http 504   the answer was not there in time
  + Unreachable          exit 1  http 503   the service that was to be asked does not answer
  + Corrupt              exit 9  http 500   bytes are not what their name says
    + PartlyCorrupt      exit 9  http 500   some of what was asked for; the error has the rest
"""

from __future__ import annotations

import functools
import re
from typing import Any

import msgspec

_WORD = re.compile(r"(?<!^)(?=[A-Z])")


class HarkenError(Exception):
    """The base: a sentence about what happened, and a hint about what to do next."""

    exit_code = 1
    http_status = 500
    code = "harken_error"
    """What programs know it by; never changes."""

    def __init_subclass__(cls) -> None:
        cls.code = _WORD.sub("_", cls.__name__).lower()

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class BadRequest(HarkenError):
    """The question makes no sense as it was asked."""

    exit_code = 2
    http_status = 400


class Ambiguous(BadRequest):
    """A prefix that names several things."""


class Closed(BadRequest):
    """The store or the session was closed before it was asked."""


class NotFound(HarkenError):
    """A well-formed question about something that is not there."""

    exit_code = 3
    http_status = 404


class Evicted(NotFound):
    """The commit is known, its bytes were removed."""


class Forgotten(Evicted):
    """The bytes were forgotten on purpose."""


class Conflict(HarkenError):
    """Somebody else was faster, or holds what we need."""

    exit_code = 4
    http_status = 409


class Locked(Conflict):
    """Another process is the writer."""


class BadRecord(HarkenError):
    """A record that could not be read, where the caller asked to be strict."""

    exit_code = 5
    http_status = 422


class Poisoned(HarkenError):
    """A write failed; what reached the disk must be read again before anything more is written."""


class ModelFailed(HarkenError):
    """The language model did not answer."""

    http_status = 502


class LimitReached(ModelFailed):
    """The language model was not asked: what agents may use is used up."""

    http_status = 402


class Waiting(HarkenError):
    """A person has been asked, and has not answered yet; `questions` has the ids. The turn can be resumed."""

    http_status = 409

    def __init__(self, message: str, *, hint: str | None = None, questions: tuple[str, ...] = ()) -> None:
        super().__init__(message, hint=hint)
        self.questions = questions


class NotAllowed(HarkenError):
    """Whoever asks may not do this, or may not ask from there."""

    http_status = 403


class NotSignedIn(NotAllowed):
    """Nobody knows who asks."""

    http_status = 401


class TooLarge(HarkenError):
    """More was sent than is taken."""

    http_status = 413


class TooMany(HarkenError):
    """Too many questions at once, or one after the other; `after` says in how many seconds to ask again."""

    http_status = 429

    def __init__(self, message: str, *, hint: str | None = None, after: int = 1) -> None:
        super().__init__(message, hint=hint)
        self.after = after


class TookTooLong(HarkenError):
    """The answer was not there in time."""

    http_status = 504


class Unreachable(HarkenError):
    """The service that was to be asked does not answer."""

    http_status = 503


class Corrupt(HarkenError):
    """Bytes are not what their name says."""

    exit_code = 9


class PartlyCorrupt(Corrupt):
    """Some of what was asked for cannot be read; `rest` is what can."""

    def __init__(self, message: str, *, rest: list[Any], hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.rest = rest


# -- the one rule about the types of a value's fields ------------------------------------------------------------------


def refuse_other_types(value: msgspec.Struct) -> None:
    """`BadRequest` where a field holds what is of another type than it says: a program may put anything there."""
    for name, kind in _kinds(type(value)).items():
        try:
            msgspec.convert(getattr(value, name), kind)
        except msgspec.ValidationError as problem:
            said = str(problem).replace("Expected", "expected", 1)
            what = f"`{name}` of {type(value).__name__}: {said}"
            raise BadRequest(what, hint="docs/API.md has the types of all fields") from None


@functools.cache
def _kinds(kind: type[msgspec.Struct]) -> dict[str, Any]:
    return {field.name: field.type for field in msgspec.structs.fields(kind)}
