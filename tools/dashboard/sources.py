"""From where a site is seen, and so what its dashboards may ask for.

A panel that cannot have data is not on the page, instead of empty.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeVar

T = TypeVar("T")


class Source(NamedTuple):
    """What tells Outrider of a site.

    Attributes:
        folder: of its dashboards, below ``dashboards``.
        uid_suffix: ends the names in addresses, so that both kinds can be loaded.
        title_suffix: ends the titles.
        sees_slots: whether machines tell their states, so that those without a job are known.
        has_watts: whether the watts of machines are known, from a table or from meters.
    """

    folder: str
    uid_suffix: str
    title_suffix: str
    sees_slots: bool
    has_watts: bool


FULL: Final = Source("grafana", "", "", sees_slots=True, has_watts=True)
"""Slots or nodes are read, and watts are configured or measured."""
EVENT_LOG: Final = Source(
    "grafana-event-log", "-event-log", " (event log)", sees_slots=False, has_watts=False
)
"""HTCondor's event log alone, without watts."""
SOURCES: Final = (FULL, EVENT_LOG)


def only(is_known: bool, *asked: T) -> Iterable[T]:
    """These panels or queries where what they need is known, else none."""
    return asked if is_known else ()
