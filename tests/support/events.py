"""Hypothesis strategies for events, shared by the properties of several packages."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from harken.clock import from_datetime
from harken.events import KINDS, Event, Image

texts = st.text(max_size=40)
names = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=12)
json_texts = st.sampled_from([b"", b"{}", b'{"path":"/tmp/x"}', b"[1,2]", b'"text"', b"not json {"])
instants = st.none() | st.datetimes().map(from_datetime)
counts = st.integers(0, 2**40)
images = st.lists(
    st.builds(Image, media_type=st.just("image/png"), data=st.sampled_from(["", "aGk="]), url=names), max_size=2
).map(tuple)
links: Any = st.one_of(
    st.just({}),
    st.builds(lambda m: {"substance": m}, names.filter(bool)),
    st.builds(lambda m: {"cause": m}, names),
    st.builds(lambda m: {"cause": tuple(m)}, st.lists(names, max_size=3)),
)

_BY_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    str: texts,
    bytes: json_texts,
    int: counts,
    int | None: st.none() | st.integers(0, 2**53),
    float: st.floats(0, 1e6, allow_nan=False),
    bool: st.booleans(),
    bool | None: st.none() | st.booleans(),
    tuple[Image, ...]: images,
    tuple[str, ...]: st.lists(names, max_size=2).map(tuple),
    int | None: st.none() | counts,
    float | None: st.none() | st.floats(0, 1e6, allow_nan=False),
}
_ENVELOPE = set(Event.__struct_fields__)


@st.composite
def events(draw: st.DrawFn, kinds: tuple[str, ...] = tuple(KINDS)) -> Event:
    """Any one event, with or without what may be unknown."""
    cls = KINDS[draw(st.sampled_from(kinds))]
    fields: dict[str, Any] = {
        field.name: draw(_BY_TYPE[field.type])
        for field in msgspec.structs.fields(cls)
        if field.name not in _ENVELOPE and field.name != "media_type"
    }
    envelope = {
        "message_id": draw(names),
        "agent_id": draw(names),
        "time": draw(instants),
        "index": draw(st.integers(0, 3)),
        "api_id": draw(st.sampled_from(["", "msg_01"])),
    }
    return cls(**fields, **envelope, **draw(links))
