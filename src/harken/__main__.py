"""`harken` and `python -m harken`: the command line, which Ctrl-C ends quietly from its first moment on."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # it is there already; `signal` itself takes time to load
import gc
import sys

YOUNG = 10_000
"""New objects after which garbage is looked for."""


def main() -> None:
    """Load the command line and run it."""
    # Loading takes a while. Until it is done Ctrl-C does what it does to any program: it ends it, without a word. A
    # shell that runs it in the background has it ignored, and that stays.
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_usual:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # What is loaded stays until the end: looking for garbage among it, while it is loaded and once more when the
    # process ends, would take a fifth of a short command's time.
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])
    from harken.cli import main as run

    try:
        if is_usual:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:  # between two commands' own words: before or behind everything that tells of it
        sys.exit(130)
    finally:
        if "duckdb" not in sys.modules:  # which tells of everything that is not collected at the end
            gc.freeze()


if __name__ == "__main__":
    main()
