"""Watermark of a source: not beyond the present, even with wrong dates in its records."""

from typing import Any

import pytest

from outrider.api import Batch
from outrider.model.events import SUBMITTED
from outrider.model.jobs import JobSpec
from outrider.service.daemon.sources import seen_until
from tests.fixtures.cores import T


class Source:
    """The attributes of an adapter that are used."""

    def __init__(self, own_clock: bool = False) -> None:
        self.own_clock, self.lateness_s = own_clock, 5.0


def seen(own_clock: bool, *at_s: float, seen_until_s: float | None = None) -> float | None:
    """Relative to now: up to when the source was seen by a batch of events of these times."""
    events: list[Any] = [(T + s, SUBMITTED, f"{s}", JobSpec()) for s in at_s]
    source: Any = Source(own_clock)
    until_s = None if seen_until_s is None else T + seen_until_s
    found = seen_until(source, Batch(events=events, cursor=1, seen_until_s=until_s), T)
    return None if found is None else found - T


@pytest.mark.parametrize(
    ("own_clock", "at_s", "said_s", "seen_s"),
    [
        (False, (), None, -5.0),  # a quiet source is seen until it was read
        (False, (-30.0, -10.0, -20.0), None, -15.0),
        (False, (-30.0, 50.0), None, -5.0),
        (False, (-30.0,), -2.0, -7.0),  # its own statement counts
        (False, (), 3_000.0, 2_995.0),
        (False, (), 5_000.0, 3_595.0),  # at most an hour ahead is accepted
        (True, (), None, None),  # with its own clock a silent one has no watermark
        (True, (-30.0, 1e6), None, 999_995.0),
        (True, (), 1e6, 999_995.0),
    ],
)
def test_the_present_bounds_what_a_source_tells_but_where_it_has_its_own_clock(
    own_clock: bool, at_s: tuple[float, ...], said_s: float | None, seen_s: float | None
) -> None:
    assert seen(own_clock, *at_s, seen_until_s=said_s) == seen_s


def test_an_event_that_is_none_moves_nothing() -> None:
    events: Any = [(T - 10.0, SUBMITTED, "1", JobSpec()), (float("nan"), 6, "2", None), None]
    source: Any = Source()
    assert seen_until(source, Batch(events=events, cursor=1), T) == T - 15.0
