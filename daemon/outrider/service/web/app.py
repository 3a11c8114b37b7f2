"""The web application: routes, access checks, error handling, compression and headers."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias
from urllib.parse import quote

import msgspec
import structlog
from aiohttp import web

from outrider.service.commands.command import Senders
from outrider.service.daemon.daemon_view import DaemonView, StartingView
from outrider.service.host.logs import RateLimit
from outrider.service.web.access import (
    ACCESS,
    CHALLENGES,
    Access,
    Allowed,
    Refused,
    is_from_this_host,
    is_local,
)
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
    Questions,
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
    "Server": "outrider",  # without versions
}
SMALLEST_COMPRESSED: Final = 1024
"""Bytes below which an answer is not compressed: it fits into one packet anyway."""

_LOOKING: Final = ("GET", "HEAD")
_ASK_AGAIN_S: Final = "5"

log = structlog.get_logger()


def make_app(
    view: DaemonView | StartingView,
    access: Access | None,
    endpoints: Sequence[Endpoint[Any]] = ENDPOINTS,
) -> web.Application:
    """Return the application that serves a daemon's view to clients that the rules admit.

    Without rules, every client that uses a name of this host may read, and sees pseudonyms.

    Only GET and HEAD are served, and POST over the Unix socket for endpoints that have it. Every
    error is JSON, ``{"error": "..."}``. A handler that raises is logged and answered with 500; the
    server continues. While the daemon is starting, unavailable data are answered with 503 and the
    progress.
    """
    access = Access() if access is None else access
    questions, users = Questions(), LocalUsers()
    app = web.Application(
        middlewares=[
            _hang_up,
            _answer_errors(view),
            _guard(access, endpoints, questions),
            _only_look,
            _compress,
        ],
        client_max_size=MAX_POST_BYTES,
    )
    app[SERVED] = tuple(endpoints)
    app[ACCESS] = access
    app.on_response_prepare.append(_add_headers)
    for endpoint in endpoints:
        path = endpoint.path.replace("{job}", "{job:.+}")  # a job's name may have slashes
        handler = _handler(endpoint, view, access, questions, users)
        app.router.add_get(path, handler, expect_handler=_expect_nothing)
        if endpoint.post is not None:
            post_handler = _post_handler(endpoint.post, view, access, questions)
            app.router.add_post(path, post_handler, expect_handler=_expect_nothing)
    return app


def _handler(
    endpoint: Endpoint[Any],
    view: DaemonView | StartingView,
    access: Access,
    questions: Questions,
    users: "LocalUsers",
) -> Handler:
    """Return the aiohttp handler of an endpoint."""
    lane = "journal" if endpoint.reads_journal else endpoint.name

    async def handle(request: web.Request) -> web.StreamResponse:
        current: Any = view
        if isinstance(view, StartingView):
            current = view.view or view
            if current is view and not endpoint.while_starting:
                later = _error(503, view.progress.sentence)
                later.headers["Retry-After"] = _ASK_AGAIN_S
                return later
        judged = access.judge(request)
        if endpoint.open or not isinstance(judged, Allowed):
            return await answered(current, request, Allowed(sees_names=False))
        return await questions.answer(
            lane, judged.known, lambda: answered(current, request, judged)
        )

    async def answered(current: Any, request: web.Request, client: Allowed) -> web.StreamResponse:
        query = NoQuery()
        if endpoint.query is not NoQuery:
            query = read_query(endpoint.query, request.query.items())
        own = "" if client.uid is None else await users.name(client.uid)
        call = Call(current, query, request, client.sees_names, own)
        if endpoint.shared:
            return await _shared_response(endpoint, call)
        answer = await endpoint.handle(call)
        if isinstance(answer, web.Response):
            return answer
        return response(call.names.encode(answer), JSON)

    return handle


async def _shared_response(endpoint: Endpoint[Any], call: Call[Any]) -> web.Response:
    """Return an answer from the cache of shared answers, or a new one."""
    request = call.request

    async def make() -> bytes:
        return call.names.encode(await endpoint.handle(call))

    question = (request.path, call.query, call.sees_names, call.own)
    answer = await call.view.answers.of(question, make)
    takes_gzip = "gzip" in request.headers.get("Accept-Encoding", "").lower()
    if takes_gzip and SMALLEST_COMPRESSED <= len(answer.body) <= LARGEST_ON_THE_LOOP:
        packed = response(answer.packed(), JSON)
        packed.headers["Content-Encoding"] = "gzip"
        return packed
    return response(answer.body, JSON)


def _post_handler(
    post: Post[Any], view: DaemonView | StartingView, access: Access, questions: Questions
) -> Handler:
    """Return the aiohttp handler of a POST, which only clients that may send commands reach."""
    limit = RateLimit()

    async def handle(request: web.Request) -> web.StreamResponse:
        may = access.judge_command(request)
        if isinstance(may, Refused):
            if limit.allows("command_refused"):
                more = limit.take_suppressed("command_refused")
                log.warning("command_refused", path=request.path, reason=may.why, more_since=more)
            return _refusal(may)
        current: Any = view.view if isinstance(view, StartingView) else view
        if current is None:
            return _error(503, "the daemon is still starting; try again when it is ready")
        with questions.held():
            body = await read_post(request, post)
            try:
                return await post.handle(Posted(current, body, may.uid))
            finally:
                current.answers.forget()

    return handle


def _error(status: int, text: str) -> web.Response:
    return json_response({"error": text}, status)


def _answer_errors(view: DaemonView | StartingView) -> Any:
    """Return a middleware that turns exceptions into JSON errors and counts internal errors."""

    @web.middleware
    async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except BadQueryError as error:
            return _error(400, str(error))
        except BadPostError as error:
            return _error(error.status, str(error))
        except web.HTTPMethodNotAllowed as error:
            right = " or ".join(sorted(error.allowed_methods))
            response = _error(405, f"{request.method} is not allowed here; use {right}")
            response.headers["Allow"] = error.headers["Allow"]
            return response
        except SignInError as error:
            return _refusal(Refused(401, str(error)))
        except NotFoundError as error:
            return _error(404, str(error))
        except web.HTTPNotFound:
            known = "see / and /api/v1/openapi.json"
            return _error(404, f"nothing is served at {request.path!r}; {known}")
        except web.HTTPException as error:
            return _error(error.status, error.reason)
        except Exception as error:
            # Boundary: an error of one handler must not affect other requests.
            current = view.view or view if isinstance(view, StartingView) else view
            current.failed_requests += 1
            log.exception("request_failed", path=request.path, error=type(error).__name__)
            return _error(500, "internal error (please report); details are in the daemon's log")

    return answer_errors


def _guard(access: Access, endpoints: Sequence[Endpoint[Any]], questions: Questions) -> Any:
    """Return a middleware that refuses clients by the rules; open paths only check the host.

    Refusals have their turn among the questions of clients without rights, unknown paths too.
    """
    open_paths = {endpoint.path for endpoint in endpoints if endpoint.open}

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        misdirected = access.misdirected(request)
        if misdirected is not None:
            return await questions.answer("refused", False, lambda: refused(misdirected))
        if request.path in open_paths:
            return await handler(request)
        judged = access.judge(request)
        if isinstance(judged, Refused):
            return await questions.answer("refused", False, lambda: refused(judged))
        if request.match_info.http_exception is not None and not judged.known:
            return await questions.answer("refused", False, lambda: unknown(request, handler))
        return await handler(request)

    async def refused(why: Refused) -> web.StreamResponse:
        return _refusal(why)

    async def unknown(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await handler(request)

    return guard


@web.middleware
async def _hang_up(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Close the connection after an answer to a request whose body was not read."""
    response = await handler(request)
    if request.body_exists and (not is_local(request) or not request.content.is_eof()):
        response.force_close()
    return response


async def _expect_nothing(request: web.Request) -> None:
    """Ask for no body yet (``Expect: 100-continue``): the rights of the client come first."""


@web.middleware
async def _only_look(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse other methods than GET and HEAD over TCP, at every path, and their bodies."""
    if request.method not in _LOOKING and not is_local(request):
        raise web.HTTPMethodNotAllowed(request.method, _LOOKING)
    if request.method in _LOOKING and request.body_exists:
        raise BadPostError(413, f"{request.method} takes no body; send none")
    return await handler(request)


def _refusal(refused: Refused) -> web.Response:
    response = _error(refused.status, refused.why)
    if refused.status == web.HTTPUnauthorized.status_code:
        for challenge in CHALLENGES:
            response.headers.add("WWW-Authenticate", challenge)
    return response


@web.middleware
async def _compress(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Let aiohttp compress answers that are large enough."""
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
    socket = request.app[ACCESS].socket
    if socket is not None and not is_local(request) and is_from_this_host(request):
        response.headers["Outrider-Socket"] = quote(str(socket))
    if "Cache-Control" not in response.headers:
        response.headers["Cache-Control"] = "no-store"


# -- local users -----------------------------------------------------------------------------------
# Names of the clients of the Unix socket that see only their own jobs' reasons.

_NAME_KEPT_S, _NO_NAME_KEPT_S = 60.0, 5.0
_MAX_NAMES: Final = 1_000


class LocalUsers:
    """Names of users of this host by their ids, cached: the user database may be slow."""

    def __init__(self) -> None:
        self._senders = Senders()
        self._turn = asyncio.Lock()
        self._names: dict[int, tuple[str, float]] = {}

    async def name(self, uid: int) -> str:
        """Return the name of a user; empty if there is none, or the database does not answer."""
        async with self._turn:
            name, until_s = self._names.get(uid, ("", 0.0))
            if time.monotonic() < until_s:
                return name
            name = (await self._senders.sender(uid)).user
            if len(self._names) >= _MAX_NAMES:
                self._names.clear()
            self._names[uid] = name, time.monotonic() + (_NAME_KEPT_S if name else _NO_NAME_KEPT_S)
            return name


# -- posting ---------------------------------------------------------------------------------------
# Validation of POST requests: origin (CSRF), content type, size and body.
#
# Only programs of this host may send commands. A browser can reach the Unix socket through
# ``ssh -L``, with the rights of the user who is logged in. So requests that a web page could send
# are refused: those with an ``Origin``, which browsers always send, or of another type than JSON,
# which browsers send only after a preflight request.

MAX_POST_BYTES: Final = 16 * 1024
MAX_DISCARDED_BYTES: Final = 16 << 20
WITHIN_S: Final = 5.0


class BadPostError(Exception):
    """A POST request that is refused.

    Attributes:
        status: HTTP status of the answer.
    """

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


async def read_post(request: web.Request, post: Post[Any]) -> Any:
    """Read the body of a POST request, in the declared shape.

    Raises:
        BadPostError: it comes from a web page, is not JSON, too long, too slow, or malformed.
    """
    if "Origin" in request.headers or "Sec-Fetch-Site" in request.headers:
        raise BadPostError(403, "a web page may not send commands; use the command `outrider`")
    if request.content_type != JSON:
        raise BadPostError(415, f"Content-Type is {request.content_type!r}; expected {JSON}")
    if "Content-Encoding" in request.headers:
        raise BadPostError(415, "a compressed body is not accepted; send plain JSON")
    try:
        async with asyncio.timeout(WITHIN_S):
            if request.headers.get("Expect", "").lower() == "100-continue":
                await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                request.writer.output_size = 0  # what was sent is no part of the answer
            body = await request.read()
    except TimeoutError as error:
        raise BadPostError(408, f"the body did not arrive within {WITHIN_S:g} s") from error
    except web.HTTPRequestEntityTooLarge as error:
        await _discard(request)
        raise BadPostError(413, f"the body is longer than {MAX_POST_BYTES:,} bytes") from error
    except (web.RequestPayloadError, OSError) as error:
        raise BadPostError(400, f"the body cannot be read: {error}") from error
    try:
        return msgspec.json.decode(body, type=post.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadPostError(400, f"{error}; expected a body like {post.example}") from error


async def _discard(request: web.Request) -> None:
    """Read and drop more of a body that is too long: its client can then read the answer."""
    left = MAX_DISCARDED_BYTES
    with contextlib.suppress(TimeoutError, web.RequestPayloadError, OSError):
        async with asyncio.timeout(WITHIN_S):
            while left > 0 and (piece := await request.content.readany()):
                left -= len(piece)
