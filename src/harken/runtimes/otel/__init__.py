"""Traces of OpenTelemetry. No program keeps them in a place of its own: they are imported by name, as a file or with
the folder that they lie in. A session is named after its file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harken.formats.facts import FileFacts
from harken.formats.kit.claims import NO_CLAIM, Claim
from harken.runtimes.base import Identity, Runtime, SessionReader, path_name, user_home

SUFFIXES = (".json", ".jsonl")

# Every import asks whose a file is, and few have a trace: what reads them is loaded for these alone.


def _claim(head: bytes, path: Path) -> Claim:
    from harken.formats.otel_genai import SURE, claim

    found = claim(head, str(path))
    return found if found.score >= SURE else NO_CLAIM  # a trace that speaks of no model is no session


def _scan(data: bytes, state: bytes = b"") -> FileFacts:
    from harken.formats.otel_genai.scan import scan

    return scan(data, state)


def _side_chains(data: bytes) -> Mapping[str, bytes]:
    from harken.formats.otel_genai.scan import side_chains

    return side_chains(data)


def _identify(path: Path, facts: FileFacts) -> Identity:
    stem = next((path.with_name(path.name.removesuffix(end)) for end in SUFFIXES if path.name.endswith(end)), path)
    return Identity(session=path_name(stem))


RUNTIME = Runtime(
    name="otel",
    label="OpenTelemetry",
    format="otel-genai-v1",
    source="document",
    home=user_home,
    roots=lambda home: (),
    claim=_claim,
    keys=("resourceSpans", "resourceLogs", "resource_spans", "batches", "traceID", "observations"),
    read=SessionReader(scan=_scan, identify=_identify, suffixes=SUFFIXES, side_chains=_side_chains),
)
