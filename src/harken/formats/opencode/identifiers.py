"""Ids as OpenCode makes them: a prefix, the instant, then chance.

The instant is the low 48 bits of milliseconds × 4096 and a number that tells those of one millisecond apart, as 12
hexadecimal digits; the program sorts by it. In a session's id all its bits are inverted, so that the newest comes
first. Behind it stand 14 characters of chance, here a digest, so that equal input gives equal ids.
"""

from __future__ import annotations

from harken import ids

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_CHANCE = 14
_MASK = (1 << 48) - 1
_LOW = 36
"""Bits of the milliseconds that an id has."""


class Identifiers:
    """Gives ids that rise, as long as the instants do not fall."""

    def __init__(self, seed: str) -> None:
        self._seed, self._last, self._within, self._given = seed, 0, 0, 0

    def make(self, prefix: str, milliseconds: int) -> str:
        """The next id."""
        self._within = self._within + 1 if milliseconds == self._last else 1
        self._last, self._given = milliseconds, self._given + 1
        return _name(prefix, milliseconds * 4096 + self._within, f"{self._seed} {self._given}")


def session_identifier(milliseconds: int, seed: str) -> str:
    """The id of a session that begins at an instant."""
    return _name("ses", ~(milliseconds * 4096 + 1), seed)


def instant_of(name: str, near: int) -> int:
    """The milliseconds in an id, which has the low ones alone: those nearest to the present. 0 where it has none."""
    digits = name.partition("_")[2][:12]
    try:
        low = int(digits, 16) >> 12 if len(digits) == 12 else None
    except ValueError:
        low = None
    if low is None:
        return 0
    around = (near >> _LOW << _LOW) + low
    return min((around - (1 << _LOW), around, around + (1 << _LOW)), key=lambda found: abs(found - near))


def _name(prefix: str, instant: int, seed: str) -> str:
    chance, characters = int(ids.artifact_id(seed.encode(errors="replace")), 16), ""
    for _ in range(_CHANCE):
        chance, digit = divmod(chance, len(_DIGITS))
        characters += _DIGITS[digit]
    return f"{prefix}_{instant & _MASK:012x}{characters}"
