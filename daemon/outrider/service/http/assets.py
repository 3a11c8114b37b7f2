"""The files of the status page, read once: their bytes, media types and entity tags."""

import hashlib
from importlib import resources
from typing import Final, NamedTuple

INDEX: Final = "index.html"

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


def load_assets() -> dict[str, Asset]:
    """All files of the page by name."""
    assets = {}
    for file in (resources.files("outrider.service") / "page").iterdir():
        suffix = file.name[file.name.rfind(".") :]
        if suffix in _MEDIA_TYPES:
            body = file.read_bytes()
            etag = hashlib.sha256(body).hexdigest()[:20]
            assets[file.name] = Asset(body, _MEDIA_TYPES[suffix], etag)
    return assets
