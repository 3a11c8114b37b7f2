"""What is posted: whose it is, whether it is a page's, and what it says; checked before anything.

Nobody but a program of this host may command. A browser reaches the Unix socket through
``ssh -L``, with the rights of who has logged in; so what a page could send is refused: with an
``Origin``, which browsers always send, or of another type than JSON, which they send only after
asking.
"""

import asyncio
from typing import Any, Final

import msgspec
from aiohttp import web

from outrider.service.web.endpoint import JSON, Post

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
        raise BadPostError(403, "a page may not command; right would be the command `outrider`")
    if request.content_type != JSON:
        raise BadPostError(415, f"Content-Type is {request.content_type!r}; right would be {JSON}")
    try:
        async with asyncio.timeout(WITHIN_S):
            body = await request.read()
    except TimeoutError as error:
        raise BadPostError(408, f"the body did not come within {WITHIN_S:g} s") from error
    except web.HTTPRequestEntityTooLarge as error:
        raise BadPostError(
            413, f"longer than {MOST_BYTES:,} bytes, and right would be less"
        ) from error
    except (web.RequestPayloadError, OSError) as error:
        raise BadPostError(400, f"the body cannot be read: {error}") from error
    try:
        return msgspec.json.decode(body, type=post.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadPostError(400, f"{error}; right would be such as {post.example}") from error
