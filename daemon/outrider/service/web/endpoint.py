"""What an endpoint is: a path, what may be asked there, the shape of its answer, and a handler.

A file in `outrider.service.web.endpoints` declares each, and the list in its ``__init__`` names
them. The application serves that list and the OpenAPI document describes it.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Generic, TypeAlias, TypeVar

import msgspec
from aiohttp import web
from msgspec import Meta, Struct, UnsetType

from outrider.model.errors import nearest
from outrider.service.core.user_privacy import UserNames
from outrider.service.daemon.daemon_view import DaemonView

JSON: Final = "application/json"
LARGEST_ON_THE_LOOP: Final = 32 * 1024
"""Bytes that compress in about a millisecond; more is compressed in a thread."""
Answer: TypeAlias = Mapping[str, Any]
"""Plain data in the shape that the endpoint declares. NaN and infinity become null."""
Q = TypeVar("Q", bound=Struct)
B = TypeVar("B")


class NoQuery(Struct, frozen=True):
    """No parameters: whatever stands after the ``?`` is ignored."""


class NotFoundError(Exception):
    """What the path names does not exist; the message is for the client."""


class SignInError(Exception):
    """The client has to send the token for this; the message tells it so."""


@dataclass(frozen=True, slots=True)
class Call(Generic[Q]):
    """One request, as a handler gets it.

    Attributes:
        view: what may be seen of the daemon.
        query: what stands after the ``?``, checked.
        request: everything else: ``call.request.match_info["job"]`` is a part of the path.
        sees_names: whether the client is shown users by their names.
    """

    view: DaemonView
    query: Q
    request: web.Request
    sees_names: bool = False

    @property
    def names(self) -> UserNames:
        """How this client is shown users. Whatever names one must go through it."""
        return self.view.names(self.sees_names)


@dataclass(frozen=True, slots=True)
class Posted(Generic[B]):
    """What was posted, by a client that may, as a handler gets it.

    Attributes:
        view: of the daemon.
        body: what was posted, checked.
        uid: number of the user who did.
    """

    view: DaemonView
    body: B
    uid: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Post(Generic[B]):
    """What may be posted at a path: over the Unix socket, by who may command, as JSON.

    Attributes:
        name: operation id of the OpenAPI document.
        summary: one sentence, for the document.
        handle: does it, and makes the answer.
        body: the shape of what is posted: a record, or several with tags.
        example: of it, for who posts something else.
        answer: shape of a good answer.
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
    """One path that is served, for GET and HEAD; where it has a `post`, for POST too.

    Attributes:
        name: operation id of the OpenAPI document.
        path: with its variable parts in braces. ``{job}`` may have slashes.
        summary: one sentence, for the document.
        handle: makes the answer. It runs on the event loop, which reads the site's events too:
            answer from memory within milliseconds, leave the rest to a thread. Plain data is
            sent as JSON; raise `NotFoundError` for what does not exist; make a response of your
            own (`json_response`, `response`) for anything else.
        query: the parameters: a record, whose fields have defaults and descriptions.
        answer: shape of a good answer, None where it is no JSON.
        content: media type of a good answer.
        others: shape of the answer by further status.
        open: answered without a token, too.
        shared: clients that ask the same may be sent the same answer, made a moment ago where it
            cost much. Only for a handler that does not wait and looks at nothing but the view, the
            query, parts of the path and how the client is shown users.
        while_starting: answered while the daemon is starting, too: by a handler that asks its view
            only for what `StartingView` has.
        post: what may be posted there.
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
    while_starting: bool = False
    post: Post[Any] | None = None


SERVED: Final = web.AppKey("SERVED", tuple[Endpoint[Any], ...])
"""Where an application keeps the endpoints that it serves."""


def json_response(answer: Any, status: int = 200) -> web.Response:
    """Plain data as JSON."""
    return response(msgspec.json.encode(answer), JSON, status)


def response(body: bytes, content_type: str, status: int = 200) -> web.Response:
    """Bytes of a media type. What is big and accepted compressed is compressed in a thread."""
    return web.Response(
        body=body,
        status=status,
        headers={"Content-Type": content_type},
        zlib_executor_size=LARGEST_ON_THE_LOOP,
    )


# -- query -----------------------------------------------------------------------------------------
# Query parameters: declared once as a record, checked whole, described in the same words.

_NUMBERS: Final = {"integer": "a whole number", "number": "a number"}
Limit: TypeAlias = Annotated[int, Meta(ge=1, le=5000, description="At most so many rows.")]


class BadQueryError(Exception):
    """A query parameter is wrong; the message names it, its value and what is right."""


def read_query(record: type[Q], given: Iterable[tuple[str, str]]) -> Q:
    """Make a query record of the names and values that stand after the ``?``.

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
    """Return the JSON schema of each parameter."""
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
# Long lists in pages: bounded in rows and in bytes, each with the cursor of the next one.

C = TypeVar("C")
LARGEST_PAGE_BYTES: Final = 256 * 1024
After: TypeAlias = Annotated[
    Annotated[int, Meta(ge=0, le=2**63 - 1)] | UnsetType,
    Meta(description="Go on after this: what `next` of the page before said."),
]
Next: TypeAlias = Annotated[
    int | None, Meta(description="Pass it as `after` for what follows; null: nothing does.")
]


def page_of(
    rows: Iterable[tuple[C, Mapping[str, Any]]], limit: int
) -> tuple[list[Mapping[str, Any]], C | None]:
    """Return the first of some rows, as many as one answer may hold; at least one, however large.

    Args:
        rows: the cursor of each row, and the row.
        limit: at most so many.

    Returns:
        The rows, and the cursor of the last if others follow.
    """
    page: list[Mapping[str, Any]] = []
    last: C | None = None
    left = LARGEST_PAGE_BYTES
    for cursor, row in rows:
        left -= len(msgspec.json.encode(row)) + 1
        if page and (left < 0 or len(page) == limit):
            return page, last
        page.append(row)
        last = cursor
    return page, None
