"""The OpenAPI 3.1 document: made of the types of requests and answers, and of what stands beside them in the source."""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from harken import __version__
from harken.api import reference

from .operations import FOR_ADMIN, GRANTS, SERVED, described, served
from .routing import API

_REF = "#/components/schemas/{name}"
_JSON, _LINES = "application/json", "application/x-ndjson"
STATUSES = {
    400: "The question makes no sense, or did not come from where it may",
    401: "Nobody knows who asks",
    403: "Whoever asks may not do this",
    404: "It is not there",
    405: "The address is asked otherwise",
    409: "Somebody else was faster",
    413: "More was sent than is taken",
    415: "The body is no JSON",
    422: "A record cannot be read",
    429: "Too many questions",
    500: "Stored bytes are damaged, or it is a fault of Harken",
    502: "The language model did not answer",
    504: "It took too long",
}


class ErrorDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong."""

    code: str
    """What programs know it by; never changes."""
    message: str
    hint: str | None
    """What to do about it."""


class ErrorAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An error, or the last line of an answer in which one happened."""

    error: ErrorDetails


class SignInRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Signs a browser in."""

    word: str
    """The one-time word of the address that `harken serve` printed, or a token."""


class SignInAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A browser that is signed in; the cookie says so from now on."""

    name: str
    grants: list[str]
    expires: str | None


class VisitorAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, and what they may do here; a server that was started to only show lets nobody write."""

    name: str
    grants: list[str]


class ArtifactAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An artifact that is kept."""

    artifact: str
    """Its full name."""
    ref: str
    """Its short name."""
    size: int


@functools.cache
def document() -> bytes:
    """The document as JSON."""
    return msgspec.json.encode(_document())


def _document() -> dict[str, Any]:
    operations = [described(name) for name in served()]
    types: list[Any] = [ErrorAnswer, SignInRequest, SignInAnswer, VisitorAnswer, ArtifactAnswer]
    for one in operations:
        types += [one.request, *one.answers]
    _, components = msgspec.json.schema_components(dict.fromkeys(types), ref_template=_REF)
    for kind in set(types):
        _explain(kind, components)
    paths = {f"{API}/{one.name}": {"post": _operation(one)} for one in operations}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Harken",
            "version": __version__,
            "description": "What agents did, what each of them heard, and what each of them knew.",
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {"cookie": []}],
        "paths": paths | _other_paths(),
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "`harken token create NAME` makes one"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "harken_PORT", "description": "what login gives"},
            },
        },
    }


def _explain(kind: type[msgspec.Struct], components: dict[str, Any]) -> None:
    """Put what stands beside each field in the source into the schema."""
    schema = components.get(kind.__name__, {})
    for key in reference.value(kind).keys:
        if key.meaning and key.name in schema.get("properties", {}):
            schema["properties"][key.name].setdefault("description", key.meaning)
    for inner in reference.inner(kind):
        if not components.get(inner.__name__, {}).get("x-explained"):
            components.get(inner.__name__, {})["x-explained"] = True
            _explain(inner, components)


def _operation(one: reference.OperationReference) -> dict[str, Any]:
    grant = SERVED[one.name]
    guarded = sorted(FOR_ADMIN.intersection(one.request.__struct_fields__)) if grant != GRANTS[-1] else []
    more = f" With {', '.join(f'`{name}`' for name in guarded)} it needs `admin`." if guarded else ""
    answers = [{"$ref": _REF.format(name=kind.__name__)} for kind in one.answers]
    answer: dict[str, Any] = answers[0] if len(answers) == 1 else {"anyOf": answers}
    if one.many:  # one object a line; the last may be an error
        told = {_LINES: {"schema": {"type": "string"}, "x-line": {"anyOf": [*answers, _error_ref()]}}}
    else:
        told = {_JSON: {"schema": answer}}
    return {
        "operationId": one.name,
        "summary": one.meaning.partition(". ")[0].removesuffix("."),
        "description": f"{one.meaning} Needs `{grant}`.{more}",
        "requestBody": {
            "required": any(field.required for field in msgspec.structs.fields(one.request)),
            "content": {_JSON: {"schema": {"$ref": _REF.format(name=one.request.__name__)}}},
        },
        "responses": {"200": {"description": "The answer", "content": told}, **_errors()},
        "x-grant": grant,
    }


def _error_ref() -> dict[str, str]:
    return {"$ref": _REF.format(name=ErrorAnswer.__name__)}


def _errors() -> dict[str, Any]:
    content = {_JSON: {"schema": _error_ref()}}
    return {str(status): {"description": text, "content": content} for status, text in STATUSES.items()}


def _other_paths() -> dict[str, Any]:
    """What is no operation."""
    after = {"name": "after", "in": "query", "required": False, "schema": {"type": "string"}}
    sign_in = {"schema": {"$ref": _REF.format(name="SignInRequest")}}
    signed_in = {"schema": {"$ref": _REF.format(name="SignInAnswer")}}
    visitor = {"schema": {"$ref": _REF.format(name="VisitorAnswer")}}
    asks = {"200": {"description": "Who asks", "content": {_JSON: visitor}}}
    feed = {"200": {"description": "The feed", "content": {"text/event-stream": {"schema": {"type": "string"}}}}}
    return {
        **_bytes_paths(),
        f"{API}/feed": {
            "get": _told("feed", "What changes in the store, as server-sent events", feed, parameters=[after])
        },
        f"{API}/login": {
            "post": _told(
                "login",
                "Sign a browser in",
                {"200": {"description": "It is signed in", "content": {_JSON: signed_in}}},
                requestBody={"required": True, "content": {_JSON: sign_in}},
                security=[],
            )
        },
        f"{API}/logout": {"post": _told("logout", "Sign a browser out", {"204": {"description": "It is signed out"}})},
        f"{API}/visitor": {"get": _told("visitor", "Who asks, and what they may do here", asks)},
        "/healthz": {"get": _told("healthz", "Whether the service is there", {"200": _text("It is")}, security=[])},
        "/metrics": {"get": _told("metrics", "What the service has done, for Prometheus", {"200": _text("Numbers")})},
    }


def _bytes_paths() -> dict[str, Any]:
    """Where bodies or answers are bytes."""
    binary = {"schema": {"type": "string", "format": "binary"}}
    octets = {"application/octet-stream": binary}
    kept = {"description": "It is kept", "content": {_JSON: {"schema": {"$ref": _REF.format(name="ArtifactAnswer")}}}}
    ref = {"name": "ref", "in": "path", "required": True, "schema": {"type": "string"}}
    given = {"200": {"description": "The bytes", "content": octets}}
    lines = {"200": {"description": "What became of it", "content": {_LINES: {"schema": {"type": "string"}}}}}
    pictures = {f"image/{kind}": binary for kind in ("png", "jpeg", "gif", "webp")}
    place = [
        {"name": name, "in": "path", "required": True, "schema": {"type": kind}}
        for name, kind in (("session", "string"), ("message", "string"), ("index", "integer"), ("number", "integer"))
    ]
    picture = {"200": {"description": "The picture", "content": pictures}}
    body = {"required": True, "content": octets}
    log = "Take in a session's file; the answer is that of import_sessions"
    return {
        f"{API}/artifacts": {"put": _told("put_artifact", "Keep bytes", {"201": kept}, requestBody=body)},
        f"{API}/artifacts/{{ref}}": {
            "get": _told("get_artifact", "The bytes of an artifact", given, parameters=[ref]),
            "head": _told("head_artifact", "Whether an artifact is there", given, parameters=[ref]),
        },
        f"{API}/session-logs/{{name}}": {
            "put": _told("put_session_log", log, lines, parameters=[{**ref, "name": "name"}], requestBody=body)
        },
        f"{API}/pictures/{{session}}/{{message}}/{{index}}/{{number}}": {
            "get": _told("get_picture", "A picture of a transcript", picture, parameters=place)
        },
    }


def _text(description: str) -> dict[str, Any]:
    return {"description": description, "content": {"text/plain": {"schema": {"type": "string"}}}}


def _told(operation: str, summary: str, responses: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"operationId": operation, "summary": summary, "responses": {**responses, **_errors()}, **more}
