"""In which encoding a document is written: JSON is UTF-8, and some editors save UTF-16. This loads nothing else, since
every import asks it of files that turn out to be no documents."""

from __future__ import annotations


def utf_16(data: bytes) -> str:
    """The kind of UTF-16 that the bytes are, by their mark or by the zero byte beside the first character; empty where
    they are none."""
    if data[:2] == b"\xff\xfe" or (len(data) >= 2 and data[0] and not data[1]):
        return "utf-16-le"
    return "utf-16-be" if data[:2] == b"\xfe\xff" or (len(data) >= 2 and not data[0] and data[1]) else ""


def as_utf_8(data: bytes) -> bytes:
    """The bytes, in UTF-8 where they are UTF-16; what is no character there, as in the middle of one at the end of a
    file's beginning, is replaced."""
    encoding = utf_16(data)
    return data.decode(encoding, "replace").removeprefix("\ufeff").encode("utf-8", "replace") if encoding else data
