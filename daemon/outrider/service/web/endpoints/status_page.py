"""Endpoints of the live status page: its files, and sign-in."""

import hashlib
from functools import cache
from importlib import resources
from typing import Annotated, Final, Literal, NamedTuple

from aiohttp import ETag, web
from msgspec import Meta, Struct

from outrider.service.shapes.values import Failure
from outrider.service.web.access import ACCESS
from outrider.service.web.endpoint import (
    Answer,
    Call,
    Endpoint,
    NoQuery,
    NotFoundError,
    SignInError,
    response,
)

# -- page ------------------------------------------------------------------------------------------
# The live status page.


async def answer_page(call: Call[NoQuery]) -> web.Response:
    """Return the page's HTML, which requests everything else."""
    return asset_response(call.request, "index.html")


PAGE = Endpoint(
    name="page",
    path="/",
    summary="The live status page.",
    handle=answer_page,
    query=NoQuery,
    content="text/html",
    while_starting=True,
)


# -- page part -------------------------------------------------------------------------------------
# The parts of the status page: style, scripts, icon.


async def answer_page_part(call: Call[NoQuery]) -> web.Response:
    """Return one file of the page, or 404 with its name."""
    return asset_response(call.request, call.request.match_info["asset"])


PAGE_PART = Endpoint(
    name="asset",
    path="/page/{asset}",
    summary="A part of the status page: style, script, icon.",
    handle=answer_page_part,
    query=NoQuery,
    content="*/*",
    others={404: Failure},
    while_starting=True,
)


# -- sign in ---------------------------------------------------------------------------------------
# Sign-in with a browser: it asks its user for the token, and sends it from then on.


class UsersShown(Struct):
    """The form in which this client sees users."""

    users: Annotated[
        Literal["names", "pseudonyms"], Meta(description="By their names, or by pseudonyms.")
    ]
    how: Annotated[str, Meta(description="How to see names.")]


async def answer_sign_in(call: Call[NoQuery]) -> Answer | web.Response:
    """Redirect a client that sees names; answer 401 if a token would help, else a hint."""
    if call.names.shown:
        return web.Response(status=303, headers={"Location": "./"})
    access = call.request.app[ACCESS]
    if access.wants_token:
        raise SignInError("the token is required: as password with any user name, or as Bearer")
    return {"users": "pseudonyms", "how": access.how_to_see_names}


SIGN_IN = Endpoint(
    name="sign_in",
    path="/sign-in",
    summary="Makes a browser ask its user for the token, then redirects to the page.",
    handle=answer_sign_in,
    query=NoQuery,
    answer=UsersShown,
)


# -- assets ----------------------------------------------------------------------------------------
# The files of the status page, read once: their bytes, media types and entity tags.

_MEDIA_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Asset(NamedTuple):
    """One file of the status page."""

    body: bytes
    content_type: str
    etag: str


@cache
def load_assets() -> dict[str, Asset]:
    """Return all files of the page by name, cached; do not modify it."""
    assets = {}
    for file in (resources.files("outrider.service.web") / "page").iterdir():
        suffix = file.name[file.name.rfind(".") :]
        if suffix in _MEDIA_TYPES:
            body = file.read_bytes()
            etag = hashlib.sha256(body).hexdigest()[:20]
            assets[file.name] = Asset(body, _MEDIA_TYPES[suffix], etag)
    return assets


def asset_response(request: web.Request, name: str) -> web.Response:
    """Return a file of the page, or 304 if the client has it. Raises `NotFoundError`."""
    asset = load_assets().get(name)
    if asset is None:
        raise NotFoundError(f"the page has no part {name!r}")
    tags = request.if_none_match or ()
    if any(tag.value in (asset.etag, "*") for tag in tags):
        answer = web.Response(status=304)
    else:
        answer = response(asset.body, asset.content_type)
    answer.etag = ETag(asset.etag, is_weak=True)  # the same text, compressed or not
    answer.headers["Cache-Control"] = "no-cache"  # the client may keep it, but must revalidate
    return answer


ENDPOINTS = (PAGE, PAGE_PART, SIGN_IN)
