"""What is wrong with an output by itself: for whoever is about to write it into a document."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from harken.formats.std.document import Document, Json
from harken.formats.std.findings import DocumentFinding

from .links import link_findings
from .message_links import task_findings
from .shapes import output_findings

_PLACE = "sub_sessions[0]."


def output_errors(output: Json, agent_type: str = "", task_id: str = "") -> Iterator[DocumentFinding]:
    """The errors that a document would have for what a sub-agent hands in, down to its files and findings."""
    sub: Json = {"agent": {"agent_type": agent_type}, "task": {"task_id": task_id}, "output": output}
    data: Json = {"sub_sessions": [sub]}
    found = [*output_findings(sub, f"{_PLACE}output"), *task_findings(data)]
    found += link_findings(Document(data=data, kind="std-001"))
    for finding in found:
        if finding.level == "error":
            yield msgspec.structs.replace(finding, path=finding.path.removeprefix(_PLACE))
