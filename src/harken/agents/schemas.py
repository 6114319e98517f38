"""Values and the JSON schemas they have to fit: of structured answers, and of the arguments of tools."""

from __future__ import annotations

import importlib
import re
from typing import Any

import msgspec
import orjson

from harken.errors import BadRequest

_FENCED = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*", re.DOTALL)
_PROVIDERS = frozenset({"json_schema", "json_object", "text"})
MAX_TOLD = 500
"""How much of what is wrong with a value is told."""


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON schema of a type: msgspec, dataclass, TypedDict, pydantic, or anything that JSON has."""
    try:
        if callable(getattr(kind, "model_json_schema", None)):
            found: dict[str, Any] = kind.model_json_schema()
            return found
        return msgspec.json.schema(kind)
    except Exception as problem:  # noqa: BLE001  a type is somebody else's code
        raise BadRequest(
            f"{kind!r:.80} has no JSON schema: {problem}", hint="pass a type that JSON has, or the schema itself"
        ) from None


def wrapped(form: Any) -> dict[str, Any] | None:
    """The form of an answer as providers take it, given as a type, as a schema, or as just that."""
    if form is None:
        return None
    schema = form if isinstance(form, dict) else schema_of(form)
    if schema.get("type") in _PROVIDERS:
        if (inner := schema_in(schema)) is not None:
            check_schema(inner)
        return schema
    check_schema(schema)
    name = re.sub(r"[^A-Za-z0-9_-]", "_", str(schema.get("title") or getattr(form, "__name__", "answer")))[:64]
    return {"type": "json_schema", "json_schema": {"name": name or "answer", "schema": schema}}


def schema_in(form: Any) -> dict[str, Any] | None:
    """The schema in the provider's object; None where it has none."""
    if not isinstance(form, dict):
        return None
    if form.get("type") == "json_object":
        return {"type": "object"}
    described = form.get("json_schema")
    schema = described.get("schema") if isinstance(described, dict) else None
    return schema if isinstance(schema, dict) else None


def json_in(text: str) -> str:
    """The JSON of an answer; many models put it between fences."""
    found = _FENCED.fullmatch(text)
    return found[1] if found else str(text)


def parsed(text: str, kind: Any) -> Any:
    """An answer as a value of a type (msgspec, dataclass, pydantic); `BadRequest` says why it is none."""
    data = json_in(text).encode("utf-8", "surrogatepass")
    try:
        if callable(getattr(kind, "model_validate_json", None)):
            return kind.model_validate_json(data)
        return msgspec.json.decode(data, type=kind)
    except Exception as problem:  # noqa: BLE001  a type is somebody else's code
        raise BadRequest(
            f"the answer is no {getattr(kind, '__name__', kind)}: {problem}"[:MAX_TOLD],
            hint="ModelOptions(response_format=…) has answers checked before they are accepted",
        ) from None


def misfit_text(text: str, schema: dict[str, Any]) -> str | None:
    """What is wrong with an answer that has to fit a schema; None: nothing."""
    try:
        value = orjson.loads(json_in(text))
    except (orjson.JSONDecodeError, UnicodeEncodeError) as problem:
        return f"it is not JSON: {problem}"
    return misfit(value, schema)


def misfit(value: Any, schema: dict[str, Any]) -> str | None:
    """What is wrong with a value that has to fit a schema; None: nothing."""
    validator = _validator(schema)
    problem = _jsonschema().exceptions.best_match(validator.iter_errors(value))
    if problem is None:
        return None
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem.absolute_path)
    return f"{where.lstrip('.') or 'the value'}: {problem.message}"[:MAX_TOLD]


def check_schema(schema: dict[str, Any]) -> None:
    """Refuse what is no schema, or refers to something outside it."""
    found = _jsonschema()
    try:
        found.validators.validator_for(schema, default=found.Draft202012Validator).check_schema(schema)
    except found.exceptions.SchemaError as problem:
        raise BadRequest(
            f"this is no JSON schema: {problem.message}"[:MAX_TOLD], hint="json-schema.org has the rules"
        ) from None
    for target in _references(schema):
        if not target.startswith("#"):
            raise BadRequest(
                f"the schema refers to {target!r:.80}, which is not in it", hint="put what it refers to under $defs"
            )


def _references(value: Any) -> list[str]:
    """Where a schema refers to; without recursion, since a schema may come from elsewhere."""
    found, waiting = [], [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            found += [
                target for key, target in one.items() if key in ("$ref", "$dynamicRef") and isinstance(target, str)
            ]
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return found


def _validator(schema: dict[str, Any]) -> Any:
    found, registry = _jsonschema(), importlib.import_module("referencing").Registry()
    kind = found.validators.validator_for(schema, default=found.Draft202012Validator)
    return kind(schema, registry=registry)  # an empty one: nothing is fetched


def _jsonschema() -> Any:
    try:
        return importlib.import_module("jsonschema")
    except ImportError:
        raise BadRequest(
            "checking against a schema needs jsonschema, which is not installed",
            hint="`pip install '.[agents]'` in a clone of Harken",
        ) from None
