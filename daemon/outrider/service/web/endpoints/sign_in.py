"""Signing in with a browser: it asks its user for the token, and sends it from then on."""

from typing import Annotated, Literal

from aiohttp import web
from msgspec import Meta, Struct

from outrider.service.web.access import ACCESS
from outrider.service.web.endpoint import Answer, Call, Endpoint, NoQuery, SignInError


class UsersShown(Struct):
    """How this client is shown users."""

    users: Annotated[
        Literal["names", "pseudonyms"], Meta(description="By their names, or by pseudonyms.")
    ]
    how: Annotated[str, Meta(description="How to be shown names.")]


async def handle(call: Call[NoQuery]) -> Answer | web.Response:
    """To the page for who may see names; 401 for who could send a token; else how to get one."""
    if call.names.shown:
        return web.Response(status=303, headers={"Location": "./"})
    access = call.request.app[ACCESS]
    if access.wants_token:
        raise SignInError("the token is needed: as password, with any user name, or as Bearer")
    return {"users": "pseudonyms", "how": access.how_to_see_names}


ENDPOINT = Endpoint(
    name="sign_in",
    path="/sign-in",
    summary="Lets a browser ask its user for the token, then leads to the page.",
    handle=handle,
    query=NoQuery,
    answer=UsersShown,
)
