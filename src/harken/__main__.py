"""`harken` and `python -m harken`: the command line, which Ctrl-C ends quietly from its first moment on."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # it is there already; `signal` itself takes time to load
import sys


def main() -> None:
    """Load the command line and run it."""
    # Loading takes a while. Until it is done Ctrl-C does what it does to any program: it ends it, without a word. A
    # shell that runs it in the background has it ignored, and that stays.
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_usual:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from harken.cli import main as run

    try:
        if is_usual:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:  # between two commands' own words: before or behind everything that tells of it
        sys.exit(130)


if __name__ == "__main__":
    main()
