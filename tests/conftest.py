"""What holds for all tests."""

from __future__ import annotations

import signal

from support.checkout import pytest_sessionfinish, pytest_sessionstart

__all__ = ["pytest_sessionfinish", "pytest_sessionstart"]

# A job in the background of a shell has SIGINT ignored, and so would every program that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
