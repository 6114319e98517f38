"""Routes that know what they ask for: none can be made without saying which grant it needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from harken.errors import NotFound

from .operations import NOT_SERVED, READ

Endpoint = Callable[[Request], Awaitable[Response]]
API = "/api/v1"
PUBLIC = ""
"""The grant of what everybody may have: the page's files, and whether the service is there."""


class ServedRoute(Route):
    """A route, the grant it needs, and what is counted under which name."""

    def __init__(
        self,
        path: str,
        endpoint: Endpoint,
        methods: Sequence[str],
        *,
        grant: str,
        is_upload: bool = False,
        is_sign_in: bool = False,
    ) -> None:
        super().__init__(path, endpoint, methods=list(methods))
        self.methods = set(methods)  # HEAD is no way to ask for a stream
        self.grant = grant
        self.is_upload = is_upload
        """Whether its body may be large, and is taken as it comes."""
        self.is_sign_in = is_sign_in
        """Whether it is where a stranger becomes somebody: who has a right word gets in, whatever others try."""
        self.label = path
        """What it is called in numbers and logs: never what somebody asked for."""


class RouteTable:
    """Finds the route of a request, as the guard and the application both need it."""

    def __init__(self, routes: Sequence[ServedRoute], page: ServedRoute) -> None:
        self.routes = [*routes, page]
        self._page = page
        self._exact = {route.path: route for route in routes if "{" not in route.path}
        self._others = [route for route in routes if "{" in route.path]
        self._unknown = ServedRoute(API + "/{unknown}", _unknown, ["GET", "HEAD", "POST", "PUT"], grant=READ)

    def find(self, scope: Scope) -> ServedRoute:
        """The route of a request, whatever its method; the page's where it is no other's."""
        path = scope["path"]
        if found := self._exact.get(path):
            return found
        for route in self._others:
            match, inner = route.matches(scope)
            if match is not Match.NONE:
                scope["path_params"] = inner.get("path_params", {})
                return route
        return self._unknown if path == "/api" or path.startswith("/api/") else self._page

    async def __call__(self, scope: Scope, receive: object, send: object) -> None:
        """The application: the guard has found the route and asked everything."""
        await self.find(scope).app(scope, receive, send)  # type: ignore[arg-type]


async def _unknown(request: Request) -> Response:
    name = request.url.path.removeprefix(API + "/")
    if why := NOT_SERVED.get(name):
        raise NotFound(f"{name} is not served", hint=why)
    raise NotFound("there is no such operation", hint="/openapi.json lists them")
