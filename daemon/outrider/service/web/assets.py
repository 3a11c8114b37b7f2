"""The files of the status page, read once: their bytes, media types and entity tags."""

import hashlib
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

from aiohttp import ETag, web

from outrider.service.web.endpoint import NotFoundError, response

_MEDIA_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Asset(NamedTuple):
    """One file."""

    body: bytes
    content_type: str
    etag: str


@cache
def load_assets() -> dict[str, Asset]:
    """All files of the page by name; do not change it."""
    assets = {}
    for file in (resources.files("outrider.service.web") / "page").iterdir():
        suffix = file.name[file.name.rfind(".") :]
        if suffix in _MEDIA_TYPES:
            body = file.read_bytes()
            etag = hashlib.sha256(body).hexdigest()[:20]
            assets[file.name] = Asset(body, _MEDIA_TYPES[suffix], etag)
    return assets


def asset_response(request: web.Request, name: str) -> web.Response:
    """A file of the page, or 304 where the client has it. Raises `NotFoundError`."""
    asset = load_assets().get(name)
    if asset is None:
        raise NotFoundError(f"the page has no part {name!r}")
    tags = request.if_none_match or ()
    if any(tag.value in (asset.etag, "*") for tag in tags):
        answer = web.Response(status=304)
    else:
        answer = response(asset.body, asset.content_type)
    answer.etag = ETag(asset.etag, is_weak=True)  # the same text, compressed or not
    answer.headers["Cache-Control"] = "no-cache"  # keep it, but ask whether it changed
    return answer
