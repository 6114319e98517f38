"""What holds for all tests."""

from __future__ import annotations

import compileall
import gc
import os
import signal
import sys
import time
from pathlib import Path

from hypothesis import HealthCheck, settings

import harken
from support.checkout import pytest_sessionfinish, pytest_sessionstart

__all__ = ["pytest_sessionfinish", "pytest_sessionstart"]

# Some machines tell Python to keep no bytecode. Then every program that a test starts would compile Harken anew, which
# takes longer than what it is started for. It is compiled once, before the workers start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
if "PYTEST_XDIST_WORKER" not in os.environ:
    compileall.compile_dir(Path(harken.__file__).parent, quiet=2)

# Collecting makes millions of objects that stay to the end: the collector of garbage would walk through all of them
# again and again, while they are made and in every test.
gc.disable()


def pytest_collection_finish() -> None:
    """Leave what was collected out of every later search for garbage."""
    gc.collect()
    gc.freeze()
    gc.enable()


# The same examples on every machine: whether a change is taken must not depend on luck. `make explore` draws new ones.
# Nor on how busy the machine is: no example has a deadline, and drawing them slowly is no fault.
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("new", print_blob=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("new" if os.environ.get("HARKEN_EXPLORE") else "same")

# Whoever runs the tests may have a configuration of their own.
os.environ["XDG_CONFIG_HOME"] = os.devnull

# And live anywhere: times are shown in the local time zone.
os.environ["TZ"] = "UTC"
time.tzset()

# A job in the background of a shell has SIGINT ignored, and so would every program that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
