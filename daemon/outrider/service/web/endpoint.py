"""Declaration of an endpoint: path, query parameters, shape of the answer, and handler.

The files in `outrider.service.web.endpoints` declare them, and the ``__init__`` there lists them.
The application serves that list and the OpenAPI document describes it.
"""

import asyncio
import contextlib
import time
import types
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Annotated, Any, Final, Generic, TypeAlias, TypeVar

import msgspec
from aiohttp import web
from msgspec import Meta, Struct, UnsetType

from outrider.model.errors import nearest
from outrider.service.core.user_privacy import Viewer
from outrider.service.daemon.daemon_view import DaemonView

JSON: Final = "application/json"
LARGEST_ON_THE_LOOP: Final = 32 * 1024
"""Bytes that compress in about a millisecond; larger answers are compressed in a thread."""
Answer: TypeAlias = Struct | Mapping[str, Any]
"""The shape that the endpoint declares, or plain data in it. NaN and infinity become null."""
Q = TypeVar("Q", bound=Struct)
B = TypeVar("B")
A = TypeVar("A")


class NoQuery(Struct, frozen=True):
    """A query without parameters: everything after the ``?`` is ignored."""


class NotFoundError(Exception):
    """The object in the path does not exist; the message is for the client."""


class SignInError(Exception):
    """The client has to send the token for this; the message is for the client."""


@dataclass(frozen=True, slots=True)
class Call(Generic[Q]):
    """One request, as a handler gets it.

    Attributes:
        view: the readable state of the daemon.
        query: the validated query parameters.
        request: everything else: ``call.request.match_info["job"]`` is a part of the path.
        sees_names: true if the client sees users' names.
        own: name of the client's own user, who sees it and the reasons of its jobs; or empty.
    """

    view: DaemonView
    query: Q
    request: web.Request
    sees_names: bool = False
    own: str = ""

    @property
    def names(self) -> Viewer:
        """The names that this client sees; every answer is encoded by it."""
        names = self.view.names(self.sees_names)
        return names.for_user(self.own) if self.own else names


@dataclass(frozen=True, slots=True)
class Posted(Generic[B]):
    """A POST request of an authorised client, as a handler gets it.

    Attributes:
        view: the readable state of the daemon.
        body: the validated body.
        uid: id of the user who sent it.
    """

    view: DaemonView
    body: B
    uid: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Post(Generic[B]):
    """Declaration of a POST: over the Unix socket, by clients that may send commands, as JSON.

    Attributes:
        name: operation id of the OpenAPI document.
        summary: one sentence, for the document.
        handle: executes the request, and returns the answer.
        body: the shape of the body: a record, or several with tags.
        example: an example of a body, for error messages.
        answer: shape of a successful answer.
        others: shape of the answer by further status.
    """

    name: str
    summary: str
    handle: Callable[[Posted[B]], Awaitable[web.Response]]
    body: Any
    example: str
    answer: Any
    others: Mapping[int, type[Struct]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Endpoint(Generic[Q]):
    """Declaration of a path, served for GET and HEAD, and for POST if it has `post`.

    Attributes:
        name: operation id of the OpenAPI document.
        path: with its variable parts in braces. ``{job}`` may have slashes.
        summary: one sentence, for the document.
        handle: returns the answer. It runs on the event loop, which reads the site's events too:
            answer from memory within milliseconds, and use a thread for the rest. Plain data is
            sent as JSON. Raise `NotFoundError` for a missing object, and return a response
            (`json_response`, `response`) for anything else.
        query: the parameters: a record, whose fields have defaults and descriptions.
        answer: shape of a successful answer; None if it is not JSON.
        content: media type of a successful answer.
        others: shape of the answer by further status.
        open: also answered without a token.
        shared: clients with the same request may get the same answer from a cache, for a moment if
            it was expensive. Only for a handler that does not wait and uses only the view, the
            query, parts of the path and whether the client sees names.
        reads_journal: it waits for a thread that reads the journal; such questions share a limit.
        while_starting: also answered while the daemon is starting: the handler uses only what
            `StartingView` has.
        post: the POST of this path.
    """

    name: str
    path: str
    summary: str
    handle: Callable[[Call[Q]], Awaitable[Answer | web.Response]]
    query: type[Q]
    answer: Any = None
    content: str = JSON
    others: Mapping[int, type[Struct]] = field(default_factory=dict)
    open: bool = False
    shared: bool = False
    reads_journal: bool = False
    while_starting: bool = False
    post: Post[Any] | None = None


SERVED: Final = web.AppKey("SERVED", tuple[Endpoint[Any], ...])
"""Key of the served endpoints in an application."""


def json_response(answer: Any, status: int = 200) -> web.Response:
    """Return plain data as a JSON response."""
    return response(msgspec.json.encode(answer), JSON, status)


def response(body: bytes, content_type: str, status: int = 200) -> web.Response:
    """Return a response of a media type; large ones are compressed in a thread if accepted."""
    return web.Response(
        body=body,
        status=status,
        headers={"Content-Type": content_type},
        zlib_executor_size=LARGEST_ON_THE_LOOP,
    )


# -- query -----------------------------------------------------------------------------------------
# Query parameters: declared as a record, from which they are validated and described.

_NUMBERS: Final = {"integer": "a whole number", "number": "a number"}
Limit: TypeAlias = Annotated[int, Meta(ge=1, le=5000, description="Most rows of the answer.")]


class BadQueryError(Exception):
    """A query parameter is wrong; the message has its name, its value and what is expected."""


def read_query(record: type[Q], given: Iterable[tuple[str, str]]) -> Q:
    """Validate query parameters and return them as a record.

    Raises:
        BadQueryError: an unknown or repeated parameter, or a wrong value.
    """
    right = schemas(record)
    values: dict[str, str] = {}
    for name, value in given:
        if name not in right:
            raise BadQueryError(f'unknown parameter "{name}"; {nearest(name, right)}')
        if name in values:
            raise BadQueryError(f'"{name}" is given twice: {values[name]!r} and {value!r}')
        values[name] = value
        try:
            msgspec.convert({name: value}, record, strict=False)
        except msgspec.ValidationError as error:
            raise BadQueryError(
                f'"{name}" = {value!r}: expected {_in_words(right[name])}'
            ) from error
    return msgspec.convert(values, record, strict=False)


def schemas(record: type[Struct]) -> dict[str, dict[str, Any]]:
    """Return the JSON schemas of the parameters by name."""
    _, components = msgspec.json.schema_components([record])
    properties: dict[str, dict[str, Any]] = components[record.__name__]["properties"]
    return properties


def _in_words(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(schema["enum"])
    if schema["type"] == "boolean":
        return "true or false"
    if schema["type"] not in _NUMBERS:
        return "text"
    least, most = schema.get("minimum"), schema.get("maximum")
    span = "" if least is None else f" from {least}"
    span += f" to {most}" if most is not None else " up" if span else ""
    return _NUMBERS[schema["type"]] + span


# -- paging ----------------------------------------------------------------------------------------
# Paging of long lists: pages are bounded in rows and in bytes, each with the next one's cursor.

C = TypeVar("C")
R = TypeVar("R")
LARGEST_PAGE_BYTES: Final = 256 * 1024
After: TypeAlias = Annotated[
    Annotated[int, Meta(ge=0, le=2**63 - 1)] | UnsetType,
    Meta(description="Continue after this cursor: `next` of the previous page."),
]


_encode: Final = msgspec.json.Encoder(enc_hook=attrgetter("clear")).encode


def page_of(rows: Iterable[tuple[C, R]], limit: int) -> tuple[list[R], C | None]:
    """Return the first rows, as many as one answer may contain, and at least one.

    Args:
        rows: the cursor of each row, and the row.
        limit: most rows.

    Returns:
        The rows, and the cursor of the last if others follow.
    """
    page: list[R] = []
    last: C | None = None
    left = LARGEST_PAGE_BYTES
    for cursor, row in rows:
        left -= len(_encode(row)) + 1
        if page and (left < 0 or len(page) == limit):
            return page, last
        page.append(row)
        last = cursor
    return page, None


# -- questions -------------------------------------------------------------------------------------
# The order of questions: hundreds of clients may ask at the same time, with or without rights.

MOST_AT_A_TIME: Final = 4
"""Most questions of one kind by clients without rights that are in progress at a time."""
_MOST_OF_KNOWN: Final = 32
_LEAST_COST_S: Final = 0.001
"""Assumed cost of a request for the event loop besides its answer: parsing, headers, sending."""
_HELD_S: Final = 10.0
"""Longest time, in seconds, for which a command stops the questions of clients without rights."""


class Questions:
    """Order in which questions are answered, so that no client delays events or commands.

    Each begins in a separate iteration of the event loop. Those of clients without rights wait in
    a queue of their own, with a lane for each kind, and the lanes take turns. They get at most a
    third of the time of the event loop, and none begins while a command is in progress.
    """

    def __init__(self) -> None:
        self._known = QuestionQueue(_MOST_OF_KNOWN, rest=0.0)
        self._others = QuestionQueue(MOST_AT_A_TIME, rest=2.0)

    async def answer(
        self, lane: str, known: bool, make: Callable[[], Coroutine[Any, Any, web.StreamResponse]]
    ) -> web.StreamResponse:
        """Return the answer to a question, made when it is its turn.

        Args:
            lane: the kind of question.
            known: true for a client with rights.
            make: makes the answer. If the client disconnects, it is still made to its end.
        """
        return await (self._known if known else self._others).answer(lane, make)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Begin no question of clients without rights as long as the context is open."""
        with self._others.held():
            yield


class QuestionQueue:
    """Queue of questions, with a lane for each kind; the lanes take turns.

    Args:
        most: most questions of a lane that are in progress at a time.
        rest: pause after each piece of work, as a multiple of its CPU time on the event loop.
        clock: monotonic seconds.
        cost_s: CPU seconds of this thread.
    """

    def __init__(
        self,
        most: int,
        rest: float,
        clock: Callable[[], float] = time.monotonic,
        cost_s: Callable[[], float] = time.thread_time,
    ) -> None:
        self._most, self._rest = most, rest
        self._clock, self._cost_s = clock, cost_s
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._in_progress: Counter[str] = Counter()
        self._not_before_s = 0.0
        self._commands: list[float] = []
        self._next: asyncio.Handle | None = None

    async def answer(self, lane: str, make: Callable[[], Coroutine[Any, Any, A]]) -> A:
        """Return the answer to a question, see `Questions.answer`."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.setdefault(lane, deque()).append(turn)
        self._look_soon()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._ended(lane)
            raise
        # Not cancelled with its client: a thread goes on, and the limit counts it until it ends.
        task = loop.create_task(metered(make(), self._worked, self._cost_s))
        task.add_done_callback(lambda _: self._ended(lane))
        return await asyncio.shield(task)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Begin no question as long as the context is open, for ten seconds at most."""
        until_s = self._clock() + _HELD_S
        self._commands.append(until_s)
        try:
            yield
        finally:
            self._commands.remove(until_s)
            self._look_soon()

    @property
    def pause_s(self) -> float:
        """Seconds until the next question may begin."""
        return max(0.0, max(self._not_before_s, *self._commands, 0.0) - self._clock())

    def _worked(self, cost_s: float) -> None:
        """Record a piece of work on the event loop."""
        now_s = self._clock()
        self._not_before_s = max(now_s, self._not_before_s) + self._rest * cost_s
        self._look_soon()

    def _ended(self, lane: str) -> None:
        self._in_progress[lane] -= 1
        self._look_soon()

    def _look_soon(self) -> None:
        if self._next is not None:
            self._next.cancel()
        self._next = None
        if self._waiting:
            self._next = asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        """Begin the next question, or wait until one may begin."""
        self._next = None
        if self.pause_s > 0:
            self._next = asyncio.get_running_loop().call_later(self.pause_s, self._look)
            return
        for lane in list(self._waiting):
            turns = self._waiting[lane]
            while turns and turns[0].done():  # its client has disconnected
                turns.popleft()
            if turns and self._in_progress[lane] < self._most:
                self._in_progress[lane] += 1
                turns.popleft().set_result(None)
                self._not_before_s = self._clock() + self._rest * _LEAST_COST_S
                self._waiting[lane] = self._waiting.pop(lane)  # the others are next
                return
            if not turns:
                del self._waiting[lane]


@types.coroutine
def metered(
    work: Coroutine[Any, Any, A],
    worked: Callable[[float], None],
    cost_s: Callable[[], float] = time.thread_time,
) -> Generator[Any, Any, A]:
    """Run a coroutine, and report what each of its steps costs.

    Args:
        work: the coroutine.
        worked: called with the cost of each step.
        cost_s: returns the cost so far, in seconds.

    Returns:
        its result.
    """
    sent: Any = None
    error: BaseException | None = None
    while True:
        began_s = cost_s()
        try:
            step = work.send(sent) if error is None else work.throw(error)
        except StopIteration as ended:
            answer: A = ended.value
            return answer
        finally:
            worked(cost_s() - began_s)
        try:
            sent, error = (yield step), None
        except BaseException as raised:  # noqa: BLE001 - it is passed on to the coroutine
            sent, error = None, raised
