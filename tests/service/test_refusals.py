"""Every route refuses whoever may not ask: the table of routes is gone through, so that a new one is asked too."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import msgspec
import pytest

from harken.api import OPERATIONS
from harken.service import operations
from harken.service.guard import SECURITY_HEADERS
from harken.service.operations import ADMIN, GRANTS, NOT_SERVED, READ, SERVED, WRITE
from harken.service.routing import API, PUBLIC, ServedRoute
from harken.service.running import RunningService
from harken.service.settings import ServiceSettings
from support.service import address, client, every_route, problem, raw, serving, small_store, token

OPEN = {"/healthz", f"{API}/login", "/{path:path}"}
"""What everybody may ask for."""


def ask(asking: httpx.Client, method: str, route: ServedRoute, **headers: str) -> httpx.Response:
    body = {"content": b"{}", "headers": {"content-type": "application/json", **headers}}
    return asking.request(method, address(route), **(body if method in ("POST", "PUT") else {"headers": headers}))  # type: ignore[arg-type]


def test_every_operation_is_in_the_table_once_and_none_is_served_by_accident() -> None:
    assert set(OPERATIONS) <= SERVED.keys() | NOT_SERVED.keys()
    assert set() == SERVED.keys() & NOT_SERVED.keys()
    assert set(GRANTS) == set(SERVED.values())


def test_every_route_of_the_application_says_what_it_needs(service: RunningService) -> None:
    routes = service.app.table.routes

    assert all(isinstance(route, ServedRoute) for route in routes)
    assert OPEN == {route.path for route in routes if route.grant == PUBLIC}
    assert {f"{API}/{name}" for name in operations.served()} <= {route.path for route in routes}
    assert all(route.grant in GRANTS for route in routes if route.path not in OPEN)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example:{port}",
        "127.0.0.1.nip.io:{port}",
        "127.0.0.1:1",
        "127.0.0.1",
        "localhost",
        "",
        "0.0.0.0:{port}",
        "[::2]:{port}",
        "127.0.0.1:{port}, evil.example",
    ],
)
def test_every_route_refuses_another_name_than_ours(service: RunningService, host: str, admin: httpx.Client) -> None:
    name = host.format(port=service.port)

    for method, route in every_route(service):
        answer = ask(admin, method, route, host=name)
        assert 400 == answer.status_code, (method, route.path)
        assert method == "HEAD" or (400, "bad_request") == problem(answer)


def test_our_own_names_are_taken_and_two_are_not(service: RunningService, stranger: httpx.Client) -> None:
    for name in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        assert 200 == stranger.get("/healthz", headers={"host": f"{name}:{service.port}"}).status_code

    own = f"Host: 127.0.0.1:{service.port}\r\n"
    assert raw(service.port or 0, f"GET /healthz HTTP/1.1\r\n{own}{own}\r\n").startswith(b"HTTP/1.1 400")
    assert raw(service.port or 0, "GET /healthz HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}", ""]
)
def test_every_route_refuses_a_page_of_another_origin(
    service: RunningService, origin: str, admin: httpx.Client
) -> None:
    told = origin.format(port=service.port)

    for method, route in every_route(service):
        assert 403 == ask(admin, method, route, origin=told).status_code, (method, route.path)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "something"])
def test_every_route_refuses_a_request_on_behalf_of_another_site(
    service: RunningService, site: str, admin: httpx.Client
) -> None:
    for method, route in every_route(service):
        assert 403 == ask(admin, method, route, **{"sec-fetch-site": site}).status_code, (method, route.path)


def test_our_own_page_may_ask(service: RunningService, reader: httpx.Client) -> None:
    own = {"origin": f"http://127.0.0.1:{service.port}", "sec-fetch-site": "same-origin"}

    assert 200 == reader.post(f"{API}/names", json={}, headers=own).status_code
    assert 200 == reader.get("/", headers={"sec-fetch-site": "none"}).status_code


def test_nobody_gets_in_without_a_token_but_to_the_page(service: RunningService, stranger: httpx.Client) -> None:
    for method, route in every_route(service):
        answer = ask(stranger, method, route)
        if route.path in OPEN:
            assert answer.status_code in (200, 400), (method, route.path)
        else:
            assert 401 == answer.status_code, (method, route.path)
            assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_token_that_is_wrong_revoked_or_expired_is_refused_on_every_route(service: RunningService) -> None:
    gone, over = token(service, "admin", name="gone"), token(service, "admin", seconds=0)
    service.app.tokens.revoke("gone")

    for secret in ("hk_nothing", gone, over):
        with client(service, secret) as asking:
            for method, route in every_route(service):
                assert 401 == ask(asking, method, route).status_code, (method, route.path)


@pytest.mark.parametrize("given", ["Basic dTpw", "Bearer", "Bearer ", "token x", ""])
def test_what_is_no_token_is_refused(service: RunningService, given: str) -> None:
    head = f"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nConnection: close\r\n"
    told = raw(service.port or 0, f"{head}Authorization: {given}\r\n\r\n")

    assert told.startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize(("grants", "refused"), [((READ,), {WRITE, ADMIN}), ((WRITE,), {ADMIN}), ((ADMIN,), set())])
def test_every_route_asks_for_its_grant(service: RunningService, grants: tuple[str, ...], refused: set[str]) -> None:
    with client(service, token(service, *grants)) as asking:
        for method, route in every_route(service):
            if route.grant in refused:
                assert 403 == ask(asking, method, route).status_code, (method, route.path)
            elif not route.path.endswith(("/feed", "/login", "/logout", "import_sessions", "/gc", "/fsck")):
                assert ask(asking, method, route).status_code not in (401, 403), (method, route.path)


def test_a_server_that_only_shows_refuses_every_change(tmp_path: Path) -> None:
    settings = ServiceSettings(read_only=True)
    with small_store(tmp_path) as repo, serving(repo, settings=settings, path=tmp_path / "run" / "s") as service:
        before = repo.last_change()
        with client(service, token(service, "admin")) as asking:
            for method, route in every_route(service):
                if route.grant in (WRITE, ADMIN):
                    assert 403 == ask(asking, method, route).status_code, (method, route.path)
            assert 200 == asking.post(f"{API}/log", json={}).status_code
            assert [READ] == asking.get(f"{API}/visitor").json()["grants"]
            assert before == repo.last_change()


def test_every_answer_has_the_headers_that_keep_a_browser_safe(
    service: RunningService, admin: httpx.Client, stranger: httpx.Client
) -> None:
    answers = [ask(asking, *route) for asking in (stranger,) for route in every_route(service)]
    answers += [ask(admin, *route) for route in every_route(service) if not route[1].path.endswith(("/feed", "/gc"))]
    answers += [admin.get("/nowhere"), admin.get("/nowhere.js"), admin.delete("/"), admin.get(f"{API}/nothing")]

    for answer in answers:
        assert SECURITY_HEADERS.items() <= dict(answer.headers).items(), answer.url
        assert not [name for name in answer.headers if name.startswith("access-control")]

    broken = raw(service.port or 0, "NOT HTTP\r\n\r\n")
    assert broken.startswith(b"HTTP/1.1 400") and b"content-security-policy: default-src 'none'" in broken


def test_a_method_that_a_route_does_not_take_is_told_so(service: RunningService, admin: httpx.Client) -> None:
    answer = admin.get(f"{API}/sessions")

    assert (405, "bad_request") == problem(answer)
    assert "POST" == answer.headers["allow"]
    assert 405 == admin.options(f"{API}/sessions").status_code


@pytest.mark.parametrize("name", sorted(NOT_SERVED))
def test_what_is_not_served_says_what_to_do_instead(admin: httpx.Client, name: str) -> None:
    answer = admin.post(f"{API}/{name}", json={})

    assert (404, "not_found") == problem(answer)
    assert NOT_SERVED[name] == answer.json()["error"]["hint"]


# -- fields that need more ---------------------------------------------------------------------------------------------


def paths_in_requests() -> list[tuple[str, str]]:
    """Operations and their fields that name something on a disk, as the fields' own words tell."""
    from harken.api import reference

    words = ("path", "file", "folder", "environment", "socket", "disk")
    found = []
    for name in operations.served():
        for key in reference.value(operations.described(name).request).keys:
            if "str" in key.type and any(word in key.meaning.lower() for word in words):
                found.append((name, key.name))
    return found


HARMLESS = {
    ("export", "pictures"),  # stands in the document, and nothing is written there
    ("export", "to"),
    ("sessions", "match"),
    ("sessions_page", "match"),
    ("sessions_page", "project"),
    ("stats_page", "project"),
    ("stats", "sessions"),
    ("sessions", "project"),
    ("usage", "project"),
    ("std_export", "taken"),
    ("std_repair", "taken"),
    ("std_repair", "name"),
    ("std_export", "name"),
    ("import_sessions", "runtimes"),
}
"""Names that are compared, not opened."""


@pytest.mark.parametrize(("name", "field"), paths_in_requests())
def test_a_field_that_names_a_place_on_the_disk_needs_admin(name: str, field: str) -> None:
    assert field in operations.ON_DISK or (name, field) in HARMLESS


def test_no_file_of_the_server_is_read_for_whoever_is_no_admin(
    service: RunningService, reader: httpx.Client, writer: httpx.Client, tmp_path: Path
) -> None:
    secret = tmp_path / "session.jsonl"
    secret.write_text('{"type": "user", "message": {"role": "user", "content": "the secret of the server"}}\n')
    tried = 0
    for name in operations.served():
        if SERVED[name] == ADMIN:
            continue
        for field in msgspec.structs.fields(operations.described(name).request):
            if field.name not in operations.FOR_ADMIN:
                continue
            values: list[object] = [str(secret), [str(secret)], {"HOME": str(tmp_path)}, True]
            values += [[{"name": "x", "prefix": "x", "pattern": "(x+x+)+y"}]]
            needed = {
                one.name: "x" for one in msgspec.structs.fields(operations.described(name).request) if one.required
            }
            for value in values:
                answer = writer.post(f"{API}/{name}", json={**needed, field.name: value})
                assert answer.status_code in (400, 403), (name, field.name, answer.text)
                assert "the secret" not in answer.text
            tried += 1

    assert tried > 20


def test_an_admin_may_name_a_file_of_the_server(admin: httpx.Client, reader: httpx.Client, tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text("{}")
    asked = {"prices": str(file), "by": ["day"]}

    assert (403, "not_allowed") == problem(reader.post(f"{API}/usage", json=asked))
    assert 403 != admin.post(f"{API}/usage", json=asked).status_code


def test_a_long_question_needs_admin(reader: httpx.Client) -> None:
    asked = {"query": "SELECT 1", "seconds": 3600}

    assert (403, "not_allowed") == problem(reader.post(f"{API}/sql", json=asked))
    assert 200 == reader.post(f"{API}/sql", json={"query": "SELECT 1"}).status_code


def test_sql_over_the_wire_reads_no_file(reader: httpx.Client, tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    file.write_bytes(b"")
    for query in (f"ATTACH '{file}' AS x", f"SELECT readfile('{file}')", "PRAGMA database_list"):
        answer = reader.post(
            f"{API}/sql", content=json.dumps({"query": query}), headers={"content-type": "application/json"}
        )
        assert (400, "bad_request") == problem(answer)


def test_a_question_that_would_never_end_is_refused_to_everybody(admin: httpx.Client) -> None:
    assert (400, "bad_request") == problem(admin.post(f"{API}/summarize", json={"watch": True}))
