"""What a scrape gets: a snapshot in the format that the client asked for, by the client library."""

from collections.abc import Callable
from typing import TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from outrider.service.metrics.collector import SnapshotCollector
from outrider.service.metrics.store import Snapshot

Encoder: TypeAlias = Callable[[Collector], bytes]

_OPENMETRICS = "application/openmetrics-text"


def expose(snapshot: Snapshot, accept: str = "") -> tuple[bytes, str]:
    """The exposition and its content type.

    It takes tens of milliseconds for some thousand series: call it in a thread. The registry
    lives for one scrape, so that scrapes share nothing that changes.

    Args:
        snapshot: the values.
        accept: the client's Accept header; without a wish in it the classic text is given.
    """
    encode, content_type = negotiate(accept)
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(snapshot, content_type.startswith(_OPENMETRICS)))
    return encode(registry), content_type


def negotiate(accept: str) -> tuple[Encoder, str]:
    """The client library's choice of a format, and the content type of that format.

    A version that is no number makes the library raise, and it puts the version it was asked
    for into the content type as it is; who asks so oddly gets the classic text.
    """
    try:
        encode, content_type = choose_encoder(accept)
    except TypeError:
        return choose_encoder("")
    return (encode, content_type) if content_type.isascii() else choose_encoder("")
