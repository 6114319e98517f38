"""What holds for all tests."""

from __future__ import annotations

import os
import signal
import time

from hypothesis import HealthCheck, settings

from support.checkout import pytest_sessionfinish, pytest_sessionstart

__all__ = ["pytest_sessionfinish", "pytest_sessionstart"]

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
