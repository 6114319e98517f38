"""The only file that prints. Data goes to stdout, remarks to stderr, and nothing from a transcript is trusted.

A transcript may hold escape sequences that set a window title, fill the clipboard or hide text, and newlines that
would make one line look like two. `safe` makes every control character visible, `one_line` newlines too; `line`, `note`
and `warn` print exactly one line whatever they are given. Text of several lines goes through `block`, where no line
can look like one of ours. JSON output escapes everything by itself.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import msgspec
import orjson

from harken.errors import HarkenError
from harken.text import end_of, safe_json, width_of, wrap
from harken.text import one_line as one_line
from harken.text import safe as safe

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

# ASCII but for DEL; JSON escapes the other controls in it by itself.
_HARMLESS = bytes(range(0x7F))

_BEYOND_ASCII = re.compile("[^\x00-\x7f]")


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        fields = msgspec.structs.asdict(value)
        fields.pop("body", None)  # the bytes of an answer go to a file or a pipe, never into its JSON
        return fields
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def json_line(value: Any) -> None:
    """One JSON object on a line of stdout."""
    sys.stdout.write(_json(value) + "\n")


def json_text(value: Any) -> str:
    """A value as JSON, to stand in a line."""
    return _json(value)


def _json(value: Any) -> str:
    try:
        data = orjson.dumps(value, default=_plain, option=orjson.OPT_PASSTHROUGH_SUBCLASS)
    except TypeError:
        # A lone surrogate (an argument that was not UTF-8) or a number beyond 64 bits; this way says them all.
        data = _json_slowly(value).encode()
    text = data.decode()
    # A lone DEL or C1 control is legal JSON, and a terminal would still obey it. `isprintable` asks for one character
    # after the other, so what is ASCII, which is nearly all of a line, is taken out first.
    if not data.translate(None, _HARMLESS).decode().isprintable():
        text = safe_json(text)
    if not (text.isascii() or speaks_unicode()):
        text = _BEYOND_ASCII.sub(lambda found: _json_slowly(found[0])[1:-1], text)
    return text


def _json_slowly(value: Any) -> str:
    import json  # few values need it

    try:
        return json.dumps(value, default=_plain)
    except RecursionError:  # a line of a log may be a thousand levels deep, and each is a call of the encoder
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(limit + _LEVELS)
        try:
            return json.dumps(value, default=_plain)
        finally:
            sys.setrecursionlimit(limit)


_LEVELS = 4000


def count(number: int, noun: str) -> str:
    """A number of things: `1 commit`, `2 commits`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def duration(seconds: float | None) -> str:
    """How long something took: `2.5s`, `12m`, `3.1h`; `?` where nobody knows."""
    if seconds is None:
        return "?"
    if seconds < 60:
        return f"{seconds:.1f}s"
    return f"{seconds / 60:.0f}m" if seconds < 5400 else f"{seconds / 3600:.1f}h"


def speaks_unicode() -> bool:
    """Whether stdout takes every character."""
    # Below a progress bar stdout is a stand-in of Rich's, which does not say.
    encoding = sys.stdout.encoding or getattr(sys.__stdout__, "encoding", "") or ""
    return encoding.lower().replace("-", "").startswith("utf")


class Styled(NamedTuple):
    """A text and how it is shown where there are colours: a key of `STYLES`."""

    text: str
    style: str


Words = str | Styled
STYLES = {"name": "33", "dim": "2", "mark": "36", "good": "32", "bad": "31", "strong": "1"}
"""What a terminal is told for each way of showing a text."""


def has_colours() -> bool:
    """Whether what goes to stdout is shown in colours: on a terminal that has them, unless the user says otherwise."""
    told = _told_colours(*map(os.environ.get, ("NO_COLOR", "FORCE_COLOR", "XDG_CONFIG_HOME", "HOME")))
    return told == "always" or (told == "auto" and sys.stdout.isatty() and os.environ.get("TERM") != "dumb")


@lru_cache(maxsize=1)
def _told_colours(*environment: str | None) -> str:
    """What the environment and the configuration say of colours; asked once, since every line wants to know."""
    from .config import color

    try:
        return color()
    except (HarkenError, OSError):  # whoever needs the file says what is wrong with it
        return "auto"


def line(text: str = "", style: str = "") -> None:
    """A line of data on stdout."""
    shown = one_line(text)
    sys.stdout.write((_paint(shown, style) if style and has_colours() else shown) + "\n")


def _paint(text: str, style: str) -> str:
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if text else ""


def row(*cells: Words) -> None:
    """A line of a list, cut where the window ends; into a pipe or a file it goes whole."""
    rows([cells])


def rows(lines: Iterable[Sequence[Words]], *, gap: str = "  ") -> None:
    """The lines of a list, as they come; how wide the window is, and whether it has colours, is asked once."""
    wide, write, colours = width(), sys.stdout.write, has_colours()
    for cells in lines:
        parts = [cell if isinstance(cell, Styled) else Styled(cell, "") for cell in cells if cell and cell != ("", "")]
        texts = [one_line(part.text) for part in parts]
        text = gap.join(texts)
        shown = fit(text, wide) if wide else text
        write((_painted(shown, [part.style for part in parts], texts, gap) if colours else shown) + "\n")


def _painted(shown: str, styles: Sequence[str], texts: Sequence[str], gap: str) -> str:
    """The line, each cell in its style, as far as it goes. Colours come last: what a transcript says of them has been
    made visible before."""
    done, at = [], 0
    for style, text in zip(styles, texts, strict=True):
        piece = shown[at : at + len(text)]
        done.append(_paint(piece, style) if style else piece)
        at += len(text) + len(gap)
        done.append(shown[at - len(gap) : at])
    return "".join(done) + shown[at:]


def fact(name: str, value: str, label: int = 12) -> None:
    """A name and what there is to say, which goes on below itself where the window ends: nothing is cut off."""
    wide, text = width(), one_line(value)
    head = f"{name:<{label}}"
    sys.stdout.write(_paint(head, "dim") if has_colours() else head)
    lines = [text[start:end] for start, end in wrap(text, max(label, wide - label))] if wide else [text]
    sys.stdout.write(("\n" + " " * label).join(lines) + "\n")


def block(text: str, indent: str = "", *, stderr: bool = False) -> None:
    """Text of several lines; each begins with the indent."""
    stream = sys.stderr if stderr else sys.stdout
    for part in safe(text).split("\n"):
        stream.write(f"{indent}{part}\n")


def words(text: str) -> None:
    """A part of a text on stdout, seen at once; what follows goes on behind it."""
    sys.stdout.write(safe(text))
    sys.stdout.flush()


def width() -> int:
    """The columns of the window; 0 where stdout is none, unless COLUMNS says how wide to write."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        import shutil  # a pipe has no width

        return max(20, shutil.get_terminal_size().columns)
    return 0


def fit(text: str, columns: int) -> str:
    """As much of the text as the columns hold; an ellipsis tells where something is missing."""
    if len(text) <= columns and text.isascii():
        return text
    end = end_of(text, 0, columns)
    return text if end == len(text) else _cut(text[:end], columns)


def fit_path(path: str, most: int) -> str:
    """As much of a path as so many columns hold: of its end, which tells most."""
    if columns(path) <= most:
        return path
    room = most - len(_ellipsis())
    # A path is as long as whoever wrote the transcript liked: it is gone through once, from its end.
    end = path[-end_of(path[::-1], 0, room) :]
    return _ellipsis() + (end if columns(end) <= room else "")


def columns(text: str) -> int:
    """How many columns the text takes."""
    if text.isascii():
        return len(text)
    others = _BEYOND_ASCII.findall(text)  # most texts have a few, like the mark of what was cut off
    return len(text) - len(others) + sum(map(width_of, others))


def padded(text: str, wide: int, *, right: bool = False) -> str:
    """The text in exactly so many columns, cut or filled with spaces."""
    shown = fit(text, wide)
    blank = " " * (wide - columns(shown))
    return blank + shown if right else shown + blank


def _ellipsis() -> str:
    return "…" if speaks_unicode() else "..."


def _cut(text: str, columns: int) -> str:
    more = _ellipsis()
    while text and sum(map(width_of, text)) + len(more) > columns:
        text = text[:-1]
    return text.rstrip() + more


def raw(data: bytes) -> None:
    """Bytes on stdout just as they are, for a pipe or a file."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def replace_missing_streams() -> None:
    """Where a stream was closed before we began (`>&-`), let the null device stand for it. In this order each gets the
    number of the one it stands for, so that no file of ours is taken for a stream by a program that we start."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: PTH123, SIM115 -- it stays open
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


def be_lenient() -> None:
    """Write what a poor terminal cannot show as an escape, and read what it sends, instead of failing on either."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if isinstance(sys.stdin, io.TextIOWrapper):
        plain = (sys.stdin.encoding or "").lower() in ("ascii", "us-ascii", "ansi_x3.4-1968")
        sys.stdin.reconfigure(encoding="utf-8" if plain else None, errors="replace")


def flush() -> None:
    """Let whoever reads our stdout have what there is."""
    sys.stdout.flush()


def is_terminal() -> bool:
    """Whether a person is watching stdout."""
    return sys.stdout.isatty()


def note(text: str) -> None:
    """A remark, on stderr."""
    sys.stderr.write(one_line(text) + "\n")


def warn(text: str) -> None:
    """A remark that wants attention, on stderr."""
    note(f"warning: {text}")


def failure(problem: HarkenError) -> None:
    """The sentence of an error, and its hint."""
    note(f"error: {problem}")
    if problem.hint:
        note(f"hint: {problem.hint}")


def json_failure(code: str, message: str, hint: str | None = None) -> None:
    """An error for programs: one JSON object on a line of stderr."""
    sys.stderr.write(_json({"error": {"code": code, "message": message, "hint": hint}}) + "\n")


def console(*, stderr: bool = False) -> Console:
    """Rich, loaded only when something is drawn. It follows NO_COLOR, the configuration, TERM and the window."""
    from rich.console import Console

    forced, off = (None, None) if stderr else (True, None) if has_colours() else (None, True)
    return Console(
        stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=False, force_terminal=forced, no_color=off
    )


def draw(what: RenderableType) -> None:
    """Draw a Rich renderable on stdout."""
    console().print(what)


def text(content: str, style: str = "") -> Any:
    """A piece of untrusted text for drawing: no markup, no control characters."""
    from rich.text import Text

    return Text(safe(content), style=style)


class ProgressBar:
    """Something that is told how many there are and when one is done; this one draws nothing."""

    def begin(self, total: int) -> None:
        """There are so many."""

    def advance(self) -> None:
        """One more is done."""

    def reach(self, done: int, total: int) -> None:
        """So many are done, and there are so many by now."""

    def say(self, what: str, done: int, total: int) -> None:
        """What is being done now, too; 0 in all where nobody knows how many there are."""


@contextmanager
def progress(what: str, *, disable: bool = False) -> Iterator[ProgressBar]:
    """A progress bar on stderr. Where nobody is watching, nothing is drawn, and what would draw it is not loaded."""
    if disable or not sys.stderr.isatty():
        yield ProgressBar()
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as drawn:
        task = drawn.add_task(what, total=0)

        class Drawn(ProgressBar):
            def begin(self, total: int) -> None:
                drawn.update(task, total=total)

            def advance(self) -> None:
                drawn.advance(task)

            def reach(self, done: int, total: int) -> None:
                drawn.update(task, completed=done, total=total)

            def say(self, what: str, done: int, total: int) -> None:
                drawn.update(task, description=what, completed=done if total else 0, total=total or done)

        yield Drawn()


def detach_stdout() -> None:
    """Stop writing to a pipe whose reader has gone, without a traceback at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def leave_at_once(status: int) -> NoReturn:
    """End the program without waiting for threads that wait for somebody else."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)
