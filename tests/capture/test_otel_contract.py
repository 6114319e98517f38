"""`otel-genai-v1` passes the suite that every format passes."""

from __future__ import annotations

from harken.formats import get
from harken.testing.formats import FormatContract
from support.traces import SAMPLES


class TestOtelGenai(FormatContract):
    format = get("otel-genai-v1")
    samples = SAMPLES
