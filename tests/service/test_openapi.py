"""The OpenAPI document says what is served, and what is served does as it says."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from openapi_spec_validator import OpenAPIV31SpecValidator
from schemathesis import checks
from schemathesis.specs.openapi import checks as conformance

from harken.service import openapi, operations
from harken.service.routing import API
from harken.service.running import RunningService
from support.service import client, serving, small_store, token

DOCUMENT: dict[str, Any] = json.loads(openapi.document())
EXAMPLES = int(os.environ.get("HARKEN_FUZZ", "3"))
"""Questions of each kind to each route; a longer search sets the variable."""


def test_the_document_is_valid() -> None:
    assert [] == [problem.message for problem in OpenAPIV31SpecValidator(DOCUMENT).iter_errors()]


def test_every_route_is_described_and_nothing_else(service: RunningService) -> None:
    described = {(method.upper(), path) for path, item in DOCUMENT["paths"].items() for method in item}
    pictures = f"{API}/pictures/{{session}}/{{message}}/{{index}}/{{number}}"
    routed = {
        (method, route.path.replace(f"{API}/pictures/{{rest:path}}", pictures))
        for route in service.app.table.routes
        for method in route.methods or ()
    }
    own = {(method, path) for path in ("/{path:path}", "/docs", "/openapi.json") for method in ("GET", "HEAD")}
    heads = {("HEAD", path) for path in ("/healthz", pictures)}

    assert described == routed - own - heads


def test_every_key_says_what_it_means() -> None:
    silent = [
        f"{name}.{key}"
        for name, schema in DOCUMENT["components"]["schemas"].items()
        for key, about in schema.get("properties", {}).items()
        if name.endswith("Request") and "description" not in about
    ]

    assert [] == silent


def test_what_needs_admin_says_so() -> None:
    for name in operations.served():
        told = DOCUMENT["paths"][f"{API}/{name}"]["post"]
        assert operations.SERVED[name] == told["x-grant"]
    assert "`prices` it needs `admin`" in DOCUMENT["paths"][f"{API}/usage"]["post"]["description"]


def test_the_page_of_operations_needs_nothing_from_elsewhere(reader: httpx.Client) -> None:
    page = reader.get("/docs")

    assert "text/html" in page.headers["content-type"]
    assert "POST /api/v1/materialize" in page.text
    assert "http://" not in page.text and "https://" not in page.text and "<script" not in page.text
    assert 200 == reader.get("/docs.css").status_code


def test_the_document_is_served(reader: httpx.Client) -> None:
    assert DOCUMENT == reader.get("/openapi.json").json()


# -- whatever is asked, nothing breaks ---------------------------------------------------------------------------------


Fuzzed = tuple[httpx.Client, RunningService]


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    """Somebody who may write, and the service that is asked."""
    folder: Path = tmp_path_factory.mktemp("fuzz")
    with (
        small_store(folder) as repo,
        serving(repo) as service,
        client(service, token(service, "context/write")) as asking,
    ):
        yield asking, service


schema = schemathesis.openapi.from_dict(DOCUMENT)
FEED = f"{API}/feed"
"""Never ends; it has tests of its own."""
CHECKS = [
    checks.not_a_server_error,
    conformance.status_code_conformance,
    conformance.content_type_conformance,
    conformance.response_schema_conformance,
]


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=lambda mode: mode.name.lower())
@pytest.mark.parametrize("path", sorted(path for path in DOCUMENT["paths"] if path != FEED))
def test_whatever_is_asked_is_answered_as_the_document_says(
    fuzzed: Fuzzed, path: str, mode: schemathesis.GenerationMode
) -> None:
    asking, service = fuzzed
    for method in DOCUMENT["paths"][path]:
        before = sum(service.app.metrics.requests.values())
        try:
            cases = schema[path][method.upper()].as_strategy(generation_mode=mode)
            _ask_often(cases, asking)
        except Unsatisfiable:  # nothing about it can be asked wrongly
            continue
        deadline = time.monotonic() + 10
        while sum(service.app.metrics.requests.values()) == before:  # a request is counted when its answer is out
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_the_document_has_every_route_but_those_of_the_page(service: RunningService) -> None:
    routes = {route.label for route in service.app.table.routes}

    page = {"/{path:path}", "/docs", "/openapi.json", f"{API}/pictures/{{rest:path}}"}
    assert page == routes - set(DOCUMENT["paths"])


def _ask_often(cases: Any, asking: httpx.Client) -> None:
    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(cases)
    def ask(case: Any) -> None:
        own = {"authorization": asking.headers["authorization"]}
        response = case.call(base_url=str(asking.base_url).rstrip("/"), headers=own, timeout=30)
        case.validate_response(response, checks=CHECKS, headers=own)

    ask()
