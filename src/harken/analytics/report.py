"""Every number about one session, as folds over its events give them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from harken.events import Event

from . import activity, amplification, compactions, delegation, files, flow, lifecycle, profile, tools


class SessionReport(msgspec.Struct, kw_only=True, frozen=True):
    """What `stats SESSION --details` tells."""

    lifecycle: lifecycle.Lifecycle
    profile: profile.Profile
    amplification: amplification.Amplification
    compactions: compactions.Compactions
    tools: dict[str, tools.ToolUse]
    delegation: delegation.Delegation
    files: dict[str, files.FileUse]
    flow: tuple[flow.FlowEdge, ...]
    activity: activity.Activity


def of(events: Iterable[Event], *, window: int = 0) -> SessionReport:
    """All folds over one stream of events; `window` is that of the profile, in microseconds."""
    held = list(events)
    return SessionReport(
        lifecycle=lifecycle.of(held),
        profile=profile.of(held, window),
        amplification=amplification.of(held),
        compactions=compactions.of(held),
        tools=tools.of(held),
        delegation=delegation.of(held),
        files=files.of(held),
        flow=flow.of(held),
        activity=activity.of(held),
    )
