"""Gzip for answers that are worth it, never on the loop where it would be felt."""

import asyncio
import gzip
from typing import Final

SMALLEST: Final = 1024
"""Bytes below which a packet is a packet, compressed or not."""

LARGEST_ON_THE_LOOP: Final = 32 * 1024
"""Bytes that compress in about a millisecond; more goes to a thread."""

_LEVEL: Final = 5


async def gzipped(body: bytes, accept_encoding: str) -> bytes | None:
    """The body compressed, or None where it is too small or the client did not ask for it."""
    if len(body) < SMALLEST or not accepts_gzip(accept_encoding):
        return None
    if len(body) <= LARGEST_ON_THE_LOOP:
        return gzip.compress(body, _LEVEL, mtime=0)
    return await asyncio.to_thread(gzip.compress, body, _LEVEL, mtime=0)


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether an Accept-Encoding header allows gzip.

    >>> accepts_gzip("br, gzip;q=0.5"), accepts_gzip("gzip;q=0, *")
    (True, False)
    """
    weights = {}
    for entry in accept_encoding.lower().split(","):
        name, _, parameter = entry.partition(";")
        quality = parameter.strip().removeprefix("q=").strip()
        weights[name.strip()] = not quality or quality.strip("0.") != ""
    return weights.get("gzip", weights.get("*", False))
