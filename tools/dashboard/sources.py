"""Kinds of sources of a site, which determine the panels of its dashboards.

A panel that cannot have data is left out instead of empty.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeVar

T = TypeVar("T")


class Source(NamedTuple):
    """Kind of source from which Outrider sees a site.

    Attributes:
        folder: folder of its dashboards, below ``dashboards``.
        uid_suffix: suffix of the names in addresses, so that both kinds can be loaded.
        title_suffix: suffix of the titles.
        sees_slots: True if machines report their state, so that idle ones are known.
        has_watts: True if the watts of machines are known, from a table or from meters.
    """

    folder: str
    uid_suffix: str
    title_suffix: str
    sees_slots: bool
    has_watts: bool


FULL: Final = Source("grafana", "", "", sees_slots=True, has_watts=True)
"""Source with slots or nodes, and configured or measured watts."""
EVENT_LOG: Final = Source(
    "grafana-event-log", "-event-log", " (event log)", sees_slots=False, has_watts=False
)
"""Source with HTCondor's event log alone, without watts."""
SOURCES: Final = (FULL, EVENT_LOG)


def only(is_known: bool, *asked: T) -> Iterable[T]:
    """Return the panels or queries if their data are known, else none."""
    return asked if is_known else ()
