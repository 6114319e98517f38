"""Which operation needs which grant, which are not served, and why: the one table.

Routes, the OpenAPI document, refusals and tests are made from it. An operation that is not in it is not served. Beside
the operation's own grant some fields need `admin`: those that name a place on the server's disk, that have a model
asked, or that bring a pattern of the caller's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from harken.api import OPERATIONS, operation
from harken.api.base import ApiRequest
from harken.api.reference import OperationReference, reference_of
from harken.errors import BadRequest, NotAllowed
from harken.repo.naming import OWN_REMARKS, is_kept

READ, WRITE, ADMIN = "context/read", "context/write", "admin"
GRANTS = (READ, WRITE, ADMIN)
"""What a token may have been given. `admin` may everything, who may write may read."""

_READ = """
    agents changes commit_rows compaction describe diff document documents event_bytes events export fidelity
    flow_knows flow_page flow_place formats get_key graph history home keys lanes latest_session log materialize
    moves names principal_metrics raw_records report resolve running_sessions runtimes search search_values
    secrets session_page session_rows sessions sessions_page show sql sql_schema stats stats_page std_export
    std_repair std_show std_validate trace transcript transcript_find transcript_outline transcript_place
    transcript_row usage view_compare view_dialog view_flow view_heard view_interventions view_knows
    view_perspective view_problems view_sequence view_timeline view_tree view_who_knows
"""
_WRITE = """
    annotate checkpoint compact delete_key delete_name end_session fork index pin put_key set_name snapshot
    start_session summarize undo update_metadata
"""
_ADMIN = "forget fsck gc import_sessions restore resume"

SERVED: dict[str, str] = {
    **dict.fromkeys(_READ.split(), READ),
    **dict.fromkeys(_WRITE.split(), WRITE),
    **dict.fromkeys(_ADMIN.split(), ADMIN),
}
"""Every operation that is served, and the grant it needs."""

NOT_SERVED: dict[str, str] = {
    "backup": "it writes a file on the server's disk; run `harken backup` there",
    "chat": "it keeps a session open and writes a log on the server's disk; run `harken chat` there",
    "current_context": "it asks a run on the machine of whoever asks; run `harken current-context` there",
    "doctor": "it looks at the installation of whoever asks; run `harken doctor` there",
    "export_parquet": "it writes files on the server's disk; run `harken export --to parquet` there",
    "run": "it starts a program and stays with it; run `harken run` there",
    "watch": "it never ends; `harken serve` watches by itself",
}
"""Operations that are not served, and what to do instead."""

_ON_DISK = "cwd environ file files folder home location path paths prices socket socket_folder template_folder"
ON_DISK = frozenset(_ON_DISK.split())
"""Fields that name a place on the server's disk."""
FOR_ADMIN = ON_DISK | {"model", "own_rules", "rebuild", "reveal"}
"""Fields that need `admin` wherever they stand, unless they have their usual value: what `ON_DISK` says; a model,
which is asked at the owner's expense, and may be the name of a file; patterns that may take for ever; a new index;
secrets as they are."""
NEVER = {"watch": "a question over the wire ends; ask again"}
"""Fields that are refused to everybody."""
MOST: dict[str, float] = {"seconds": 30.0, "megabytes": 256, "rows": 10_000, "wait": 60.0}
"""Numbers up to which a field may be set without `admin`."""
OWN = {WRITE: ("principal", "machine", "who"), ADMIN: ("who",)}
"""Fields that say who asks, in operations that change something: they come from the token."""


MOVED = {
    "checkpoint": ("parent",),
    "compact": ("ref",),
    "delete_name": ("name",),
    "fork": ("name",),
    "set_name": ("name",),
    "snapshot": ("ref",),
    "undo": ("name",),
    "update_metadata": ("tags", "remove_tags"),
}
"""Fields that may name a branch or a tag which the operation moves."""


OF_WHOEVER_ASKS = frozenset(("get_key", "keys", "latest_session"))
"""Operations that change nothing and, where no principal is named, are about that of the token."""


def served() -> list[str]:
    """The names of the operations that are there and served."""
    return sorted(name for name in SERVED if name in OPERATIONS)


@cache
def described(name: str) -> OperationReference:
    """The operation's request, answers and meaning; what is kept, since it takes a while to find out."""
    return reference_of(name)


@cache
def takes_many(name: str) -> bool:
    """Whether the operation gives any number of answers."""
    return described(name).many


def function_of(name: str) -> Any:
    """The function of the operation."""
    return operation(name)


def may(grants: frozenset[str], needed: str) -> bool:
    """Whether somebody with these grants may do what needs this one."""
    if ADMIN in grants or needed in grants:
        return True
    return needed == READ and WRITE in grants


def needs_admin(request: ApiRequest) -> str:
    """Why a request needs `admin`, beyond what its operation needs; empty where it does not."""
    for field in _fields(type(request)):
        value = getattr(request, field.name)
        if field.name in FOR_ADMIN and value != _usual(field):
            return f"`{field.name}`"
        if field.name in MOST and isinstance(value, int | float) and not value <= MOST[field.name]:
            return f"`{field.name}` of more than {MOST[field.name]:g}"
    return ""


def check(request: ApiRequest, grants: frozenset[str]) -> None:
    """`NotAllowed` where these grants are not enough for what stands in the request."""
    for field in _fields(type(request)):
        if field.name in NEVER and getattr(request, field.name) != _usual(field):
            raise BadRequest(f"`{field.name}` is not taken here", hint=NEVER[field.name])
    if not may(grants, ADMIN) and (what := needs_admin(request)):
        raise NotAllowed(f"{what} needs a token with the grant admin", hint="leave it out, or use another token")


def in_the_name_of(name: str, request: ApiRequest, who: dict[str, str], grants: frozenset[str]) -> ApiRequest:
    """The request with what the token says of whoever asks; only `admin` may name somebody else."""
    changed: dict[str, str] = {}
    if name in OF_WHOEVER_ASKS and not getattr(request, "principal", ""):
        changed["principal"] = who["principal"]
    for field in set(type(request).__struct_fields__).intersection(OWN.get(SERVED[name], ())):
        own, told = who[field], getattr(request, field)
        if told and told != own and not may(grants, ADMIN):
            raise NotAllowed(
                f"this token may not speak as {told!r:.99}", hint=f"leave `{field}` out, or use another token"
            )
        if own and not told:
            changed[field] = own
    if not may(grants, ADMIN):
        _check_kept(name, request)
    return msgspec.structs.replace(request, **changed) if changed else request


def _check_kept(name: str, request: ApiRequest) -> None:
    """Refuse to move or to say what Harken keeps for itself: by such names principals keep what is theirs, and such
    remarks hide commits."""
    if name == "annotate" and getattr(request, "key", "") in OWN_REMARKS:
        raise NotAllowed("such remarks Harken makes itself", hint="leave `key` out, or take another one")
    for field in MOVED.get(name, ()):
        told = getattr(request, field) or ()
        for one in (told,) if isinstance(told, str) else told:
            if is_kept(one):
                hint = "`put_key`, `start_session` and the others change what is your own"
                raise NotAllowed(f"{one!r:.99} is kept by Harken for itself", hint=hint)


def filled(request: ApiRequest, usual: Mapping[str, Any]) -> ApiRequest:
    """The request, with what the server's owner has set where the caller left something out."""
    left_out = {
        field.name: usual[field.name]
        for field in _fields(type(request))
        if field.name in usual and not field.required and getattr(request, field.name) == _usual(field)
    }
    return msgspec.structs.replace(request, **left_out) if left_out else request


@cache
def _fields(kind: type[ApiRequest]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """The fields of a request; what is kept, since each look at them resolves all annotations anew."""
    return msgspec.structs.fields(kind)


def _usual(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default is not msgspec.NODEFAULT else None
