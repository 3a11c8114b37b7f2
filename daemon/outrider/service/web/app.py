"""The application: from a request to an answer, whatever happens on the way."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias

import msgspec
import structlog
from aiohttp import web

from outrider.service.daemon.daemon_view import DaemonView, StartingView
from outrider.service.web.access import ACCESS, CHALLENGES, Access, Allowed, Refused, is_local
from outrider.service.web.endpoint import (
    JSON,
    LARGEST_ON_THE_LOOP,
    SERVED,
    BadQueryError,
    Call,
    Endpoint,
    NoQuery,
    NotFoundError,
    Post,
    Posted,
    SignInError,
    json_response,
    read_query,
    response,
)
from outrider.service.web.endpoints import ENDPOINTS

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
SMALLEST_COMPRESSED: Final = 1024
"""Bytes below which a packet is a packet, compressed or not."""

_LOOKING: Final = ("GET", "HEAD")
_ASK_AGAIN_S: Final = "5"

log = structlog.get_logger()


def make_app(
    view: DaemonView | StartingView,
    access: Access | None,
    endpoints: Sequence[Endpoint[Any]] = ENDPOINTS,
) -> web.Application:
    """Return the application that shows a daemon to clients whom the rules let in.

    None for the rules: everybody who asks under a name of this host, and users have pseudonyms.

    Only GET and HEAD, and over the Unix socket POST where an endpoint has that. Every error is
    JSON, ``{"error": "..."}``. A handler that raises answers 500, is logged, and ends nothing.
    While the daemon is starting, what it cannot tell yet is answered with 503 and how far it is.
    """
    access = Access() if access is None else access
    app = web.Application(
        middlewares=[_answer_errors(view), _guard(access, endpoints), _only_look, _compress],
        client_max_size=MOST_BYTES,
    )
    app[SERVED] = tuple(endpoints)
    app[ACCESS] = access
    app.on_response_prepare.append(_add_headers)
    turn = asyncio.Lock()
    for endpoint in endpoints:
        path = endpoint.path.replace("{job}", "{job:.+}")  # a job's name may have slashes
        app.router.add_get(path, _handler(endpoint, view, access, turn))
        if endpoint.post is not None:
            app.router.add_post(path, _post_handler(endpoint.post, view, access))
    return app


def _handler(
    endpoint: Endpoint[Any], view: DaemonView | StartingView, access: Access, turn: asyncio.Lock
) -> Handler:
    """What aiohttp calls for an endpoint.

    Hundreds of clients may ask at one moment. Each is answered in an iteration of the loop of its
    own, so that events, the watchdog and whoever asks for nothing but health come in between.
    """

    async def handle(request: web.Request) -> web.StreamResponse:
        seen: Any = view
        if isinstance(view, StartingView):
            seen = view.view or view
            if seen is view and not endpoint.while_starting:
                response = _error(503, view.progress.sentence)
                response.headers["Retry-After"] = _ASK_AGAIN_S
                return response
        if endpoint.query is NoQuery:
            query = NoQuery()
        else:
            query = read_query(endpoint.query, request.query.items())
        judged = access.judge(request)
        sees_names = isinstance(judged, Allowed) and judged.sees_names
        if not endpoint.open:
            async with turn:
                await asyncio.sleep(0)
        call = Call(seen, query, request, sees_names)
        if endpoint.shared:
            return await _shared_response(endpoint, call)
        answer = await endpoint.handle(call)
        return answer if isinstance(answer, web.Response) else json_response(answer)

    return handle


async def _shared_response(endpoint: Endpoint[Any], call: Call[Any]) -> web.Response:
    """Return the answer to a question that others may have asked a moment ago."""
    request = call.request

    async def make() -> bytes:
        return msgspec.json.encode(await endpoint.handle(call))

    question = (request.path, call.query, call.sees_names)
    answer = await call.view.answers.of(question, make)
    takes_gzip = "gzip" in request.headers.get("Accept-Encoding", "").lower()
    if takes_gzip and SMALLEST_COMPRESSED <= len(answer.body) <= LARGEST_ON_THE_LOOP:
        packed = response(answer.packed(), JSON)
        packed.headers["Content-Encoding"] = "gzip"
        return packed
    return response(answer.body, JSON)


def _post_handler(post: Post[Any], view: DaemonView | StartingView, access: Access) -> Handler:
    """What aiohttp calls for what is posted: it reaches the endpoint from who may command."""

    async def handle(request: web.Request) -> web.StreamResponse:
        may = access.judge_command(request)
        if isinstance(may, Refused):
            log.warning("command_refused", path=request.path, reason=may.why)
            return _refusal(may)
        seen: Any = view.view if isinstance(view, StartingView) else view
        if seen is None:
            return _error(503, "the daemon is still starting; ask again when it is ready")
        body = await read_post(request, post)
        try:
            return await post.handle(Posted(seen, body, may.uid))
        finally:
            seen.answers.forget()

    return handle


def _error(status: int, text: str) -> web.Response:
    return json_response({"error": text}, status)


def _answer_errors(view: DaemonView | StartingView) -> Any:
    """Answer what a handler raises: JSON, with a status; faults of our own are counted."""

    @web.middleware
    async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except BadQueryError as error:
            return _error(400, str(error))
        except BadPostError as error:
            return _error(error.status, str(error))
        except web.HTTPMethodNotAllowed as error:
            right = " and ".join(sorted(error.allowed_methods))
            response = _error(405, f"{request.method} is not allowed here; {right} are right")
            response.headers["Allow"] = error.headers["Allow"]
            return response
        except SignInError as error:
            return _refusal(Refused(401, str(error)))
        except NotFoundError as error:
            return _error(404, str(error))
        except web.HTTPNotFound:
            known = "/ and /api/v1/openapi.json are"
            return _error(404, f"nothing is served at {request.path!r}; {known}")
        except web.HTTPException as error:
            return _error(error.status, error.reason)
        except Exception as error:
            # Boundary: whatever a handler raises is its own; the other requests go on.
            now_seen = view.view or view if isinstance(view, StartingView) else view
            now_seen.failed_requests += 1
            log.exception("request_failed", path=request.path, error=type(error).__name__)
            return _error(500, "a fault of Outrider's own; its log tells more")

    return answer_errors


def _guard(access: Access, endpoints: Sequence[Endpoint[Any]]) -> Any:
    """Refuse whom the rules do not let in; the open paths answer to whoever asks under our name."""
    open_paths = {endpoint.path for endpoint in endpoints if endpoint.open}

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        misdirected = access.misdirected(request)
        if misdirected is not None:
            return _refusal(misdirected)
        if request.path in open_paths:
            return await handler(request)
        judged = access.judge(request)
        if isinstance(judged, Refused):
            return _refusal(judged)
        return await handler(request)

    return guard


@web.middleware
async def _only_look(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Over TCP nothing is changed, whatever the path."""
    if request.method not in _LOOKING and not is_local(request):
        raise web.HTTPMethodNotAllowed(request.method, _LOOKING)
    return await handler(request)


def _refusal(refused: Refused) -> web.Response:
    response = _error(refused.status, refused.why)
    if refused.status == web.HTTPUnauthorized.status_code:
        for challenge in CHALLENGES:
            response.headers.add("WWW-Authenticate", challenge)
    return response


@web.middleware
async def _compress(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Let aiohttp compress what is worth it."""
    response = await handler(request)
    if isinstance(response, web.Response) and isinstance(response.body, bytes):
        vary = response.headers.get("Vary")
        response.headers["Vary"] = f"{vary}, Accept-Encoding" if vary else "Accept-Encoding"
        is_packed = "Content-Encoding" in response.headers
        if len(response.body) >= SMALLEST_COMPRESSED and not is_packed:
            response.enable_compression()
    return response


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
    if "Cache-Control" not in response.headers:
        response.headers["Cache-Control"] = "no-store"


# -- posting ---------------------------------------------------------------------------------------
# What is posted: whose it is, whether it is a page's, and what it says; checked before anything.
#
# Nobody but a program of this host may command. A browser reaches the Unix socket through
# ``ssh -L``, with the rights of who has logged in; so what a page could send is refused: with an
# ``Origin``, which browsers always send, or of another type than JSON, which they send only after
# asking.

MOST_BYTES: Final = 16 * 1024
WITHIN_S: Final = 5.0


class BadPostError(Exception):
    """What was posted is refused.

    Attributes:
        status: of the answer.
    """

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


async def read_post(request: web.Request, post: Post[Any]) -> Any:
    """What was posted, in the shape that is declared.

    Raises:
        BadPostError: it is a page's, no JSON, too long, too slow, or of another shape.
    """
    if "Origin" in request.headers or "Sec-Fetch-Site" in request.headers:
        raise BadPostError(403, "a page may not command; expected the command `outrider`")
    if request.content_type != JSON:
        raise BadPostError(415, f"Content-Type is {request.content_type!r}; expected {JSON}")
    try:
        async with asyncio.timeout(WITHIN_S):
            body = await request.read()
    except TimeoutError as error:
        raise BadPostError(408, f"the body did not come within {WITHIN_S:g} s") from error
    except web.HTTPRequestEntityTooLarge as error:
        raise BadPostError(413, f"longer than {MOST_BYTES:,} bytes, and expected less") from error
    except (web.RequestPayloadError, OSError) as error:
        raise BadPostError(400, f"the body cannot be read: {error}") from error
    try:
        return msgspec.json.decode(body, type=post.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadPostError(400, f"{error}; expected such as {post.example}") from error
