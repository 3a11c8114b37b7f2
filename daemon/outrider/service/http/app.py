"""The application: from a request to an answer, whatever happens on the way."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import msgspec
import structlog
from aiohttp import ETag, web
from msgspec import UNSET

from outrider.service.http.assets import INDEX, load_assets
from outrider.service.http.auth import CHALLENGES, is_allowed
from outrider.service.http.compression import gzipped
from outrider.service.http.faces import AmbiguousJobError, Faces
from outrider.service.http.openapi import openapi
from outrider.service.http.query import (
    BadQueryError,
    DecisionsQuery,
    JobsQuery,
    MachinesQuery,
    read_query,
)
from outrider.service.http.routes import JSON, ROUTES

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Server": "outrider",  # without the versions of what it is made of
}

log = structlog.get_logger()


def make_app(faces: Faces, token: str | None) -> web.Application:
    """The application that shows `faces`, to whoever sends `token` (None: to everybody).

    Only GET and HEAD. Every error is JSON, ``{"error": "..."}``. A handler that raises answers
    500, is logged, and ends nothing.
    """
    handlers = _Handlers(faces)
    app = web.Application(middlewares=[_answer_errors, _guard(token), _compress])
    app.on_response_prepare.append(_add_headers)
    for route in ROUTES:
        path = route.path.replace("{job}", "{job:.+}")  # a job's name may have slashes
        app.router.add_get(path, getattr(handlers, route.operation))
    return app


class _UnknownError(Exception):
    """What the path names does not exist; the message is for the client."""


class _Handlers:
    """One method for each route, named by its operation."""

    def __init__(self, faces: Faces) -> None:
        self._faces = faces
        self._assets = load_assets()

    async def page(self, request: web.Request) -> web.Response:
        return self._asset(request, INDEX)

    async def asset(self, request: web.Request) -> web.Response:
        name = request.match_info["asset"]
        if name not in self._assets:
            raise _UnknownError(f"the page has no part {name!r}")
        return self._asset(request, name)

    def _asset(self, request: web.Request, name: str) -> web.Response:
        asset = self._assets[name]
        tags = request.if_none_match or ()
        known = any(tag.value in (asset.etag, "*") for tag in tags)
        response = web.Response(status=304) if known else web.Response(body=asset.body)
        if not known:
            response.headers["Content-Type"] = asset.content_type
        response.etag = ETag(asset.etag, is_weak=True)  # the same text, gzipped or not
        response.headers["Cache-Control"] = "no-cache"  # keep it, but ask whether it changed
        return response

    async def metrics(self, request: web.Request) -> web.Response:
        body, content_type = self._faces.metrics(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type, "Vary": "Accept"})

    async def healthz(self, request: web.Request) -> web.Response:
        return _json({"ok": True})

    async def readyz(self, request: web.Request) -> web.Response:
        ready, reasons = self._faces.ready()
        return _json({"ready": ready, "reasons": reasons}, 200 if ready else 503)

    async def status(self, request: web.Request) -> web.Response:
        return _json(self._faces.status())

    async def jobs(self, request: web.Request) -> web.Response:
        query = read_query(JobsQuery, request.query.items())
        state = None if query.state is UNSET else query.state
        return _json(self._faces.jobs(query.limit, state))

    async def machines(self, request: web.Request) -> web.Response:
        query = read_query(MachinesQuery, request.query.items())
        return _json(self._faces.machines(query.limit))

    async def decisions(self, request: web.Request) -> web.Response:
        query = read_query(DecisionsQuery, request.query.items())
        job = None if query.job is UNSET else query.job
        after = None if query.after is UNSET else query.after
        return _json(await self._faces.decisions(query.limit, job, after))

    async def explain(self, request: web.Request) -> web.Response:
        job = request.match_info["job"]
        try:
            answer = await self._faces.explain(job)
        except AmbiguousJobError as error:
            return _json({"error": str(error), "candidates": error.candidates}, 300)
        if answer is None:
            raise _UnknownError(f"no job {job!r} is known here")
        return _json(answer)

    async def utility(self, request: web.Request) -> web.Response:
        return _json(self._faces.utility())

    async def openapi(self, request: web.Request) -> web.Response:
        return _json(openapi())


def _json(answer: Any, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(answer), status=status, content_type=JSON)


def _error(status: int, text: str) -> web.Response:
    return _json({"error": text}, status)


@web.middleware
async def _answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except BadQueryError as error:
        return _error(400, str(error))
    except web.HTTPMethodNotAllowed as error:
        response = _error(405, f"{request.method} is not allowed here; GET and HEAD are right")
        response.headers["Allow"] = error.headers["Allow"]
        return response
    except _UnknownError as error:
        return _error(404, str(error))
    except web.HTTPNotFound:
        return _error(404, f"nothing is served at {request.path!r}; / and /api/v1/openapi.json are")
    except web.HTTPException as error:
        return _error(error.status, error.reason)
    except Exception as error:
        # Boundary: whatever a handler raises is its own; the other requests go on.
        log.exception("fail_request", path=request.path, error=type(error).__name__)
        return _error(500, "a fault of Outrider's own; its log tells more")


def _guard(token: str | None) -> Any:
    """Refuse who does not send the token, on every path but the open ones."""
    open_paths = {route.path for route in ROUTES if route.open}

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if token is None or request.path in open_paths:
            return await handler(request)
        if is_allowed(request.headers.get("Authorization", ""), token):
            return await handler(request)
        response = _error(401, "a token is needed: send it as Authorization: Bearer TOKEN")
        for challenge in CHALLENGES:
            response.headers.add("WWW-Authenticate", challenge)
        return response

    return guard


@web.middleware
async def _compress(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Compress what is worth it."""
    response = await handler(request)
    if isinstance(response, web.Response) and isinstance(response.body, bytes):
        accepted = request.headers.get("Accept-Encoding", "")
        body = await gzipped(response.body, accepted)
        vary = response.headers.get("Vary")
        response.headers["Vary"] = f"{vary}, Accept-Encoding" if vary else "Accept-Encoding"
        if body is not None:
            response.body = body
            response.headers["Content-Encoding"] = "gzip"
    return response


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
    if "Cache-Control" not in response.headers:
        response.headers["Cache-Control"] = "no-store"
