"""`otel-genai-v1` passes the suite that every format passes."""

from __future__ import annotations

from harken import runtimes
from harken.formats import get
from harken.testing.formats import FormatContract
from harken.testing.runtimes import RuntimeContract
from support.traces import AGENTS, LOOP, SAMPLES, document


class TestOtelGenai(FormatContract):
    format = get("otel-genai-v1")
    samples = SAMPLES


class TestTraces(RuntimeContract):
    """They are imported by name: they lie wherever somebody puts them."""

    runtime = runtimes.get("otel")
    samples = (("trace.json", document(*LOOP)), ("agents.jsonl", document(*AGENTS)))
