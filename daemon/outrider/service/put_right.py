"""Inputs that were recorded while the clock was ahead, moved back to when they came.

While a clock is years ahead, the daemon's own moves of the watermark are dated then, and so is what
a batch system on the same host writes. How far it was ahead is in the journal itself: by as much
as the first such watermark is ahead of the last one that is believed. Sources whose clocks were
right meanwhile keep their times.
"""

from collections.abc import Iterable, Iterator
from math import inf
from typing import Final, TypeAlias

from outrider.model.events import TICK, NamedEvent

Input: TypeAlias = tuple[int, str, NamedEvent]
"""Sequence number, adapter, event; as the journal gives them."""

LEAST_LEAP_S: Final = 3_600.0
"""A clock that went on by less at once did so because nothing happened meanwhile."""
_MOST_HELD: Final = 100_000


def put_right(rows: Iterable[Input], believed_s: float, latest_s: float) -> Iterator[Input]:
    """The inputs, with the times of those that a wrong clock dated put right.

    Args:
        rows: in order of arrival.
        believed_s: the time at the site before them.
        latest_s: later times are wrong.

    Yields:
        All of them. An event later than `latest_s` that came while the clock was right keeps its
        time: nobody knows when it was. So do all where the clock never leapt.
    """
    ahead_s: float | None = None
    held: list[Input] = []
    for row in rows:
        time_s, kind = row[2][0], row[2][1]
        if kind != TICK:
            if time_s <= latest_s and not held:
                yield row
                continue
            held.append(row)  # the next watermark tells whether the clock was wrong
            if len(held) > _MOST_HELD:
                yield from _moved(held, ahead_s, latest_s)
                held = []
            continue
        if time_s <= latest_s:
            ahead_s = None
            believed_s = max(believed_s, time_s)
        else:
            moved_s = time_s - (ahead_s or 0.0)
            if LEAST_LEAP_S < moved_s - believed_s < inf:
                ahead_s = time_s - believed_s
            believed_s = max(believed_s, time_s - (ahead_s or 0.0))
        yield from _moved(held, ahead_s, latest_s)
        held = []
        yield from _moved([row], ahead_s, latest_s)
    yield from _moved(held, ahead_s, latest_s)


def _moved(rows: Iterable[Input], ahead_s: float | None, latest_s: float) -> Iterator[Input]:
    for row in rows:
        seq, label, (time_s, kind, subject, extra) = row
        if ahead_s is None or time_s <= latest_s or time_s - ahead_s > latest_s:
            yield row
        else:
            yield seq, label, (time_s - ahead_s, kind, subject, extra)
