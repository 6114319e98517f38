"""Session documents pass the suites that every format and every runtime passes."""

from __future__ import annotations

import json

from harken import formats, runtimes
from harken.testing.formats import FormatContract
from harken.testing.runtimes import RuntimeContract
from support.std_documents import multi, single

SINGLE = json.dumps(single(), indent=2).encode() + b"\n"
MULTI = json.dumps(multi(), indent=2).encode() + b"\n"


class TestStd001(FormatContract):
    format = formats.get("std-001")
    samples = (SINGLE,)


class TestStd008(FormatContract):
    format = formats.get("std-008")
    samples = (MULTI,)


class TestStd001Documents(RuntimeContract):
    """They are imported by name: they lie wherever somebody puts them."""

    runtime = runtimes.get("std-001")
    samples = (("2026-03-04-001-mend-the-clock.json", SINGLE),)


class TestStd008Documents(RuntimeContract):
    runtime = runtimes.get("std-008")
    samples = (("2026-03-04-002-two-hands-multi.json", MULTI),)
