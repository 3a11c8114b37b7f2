"""Feed of events into the engine that survives internal errors of Outrider.

The daemon's engine is always fed through a `GuardedFeed`. An event on which it fails is rejected,
the state is repaired, and the feed continues. One `try` surrounds many events, so it costs nothing
per event.

If the repair fails as well, the feed still continues, but the state may be inconsistent. The event
is noted in `unrepaired`, and the daemon rebuilds its state (`outrider.service.daemon.pump`).
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from math import inf, isfinite
from typing import Any

import structlog

from outrider.engine import Engine, EventMerger
from outrider.engine.ingest.event_merger import EventIdentity
from outrider.model import events as ev
from outrider.model.events import Event
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec, Resources

log = structlog.get_logger()


class GuardedFeed:
    """Feed of the events up to the watermark that all sources have reached.

    Args:
        merger, engine: the event merger and the engine that it feeds.
        unrepaired: receives the key of each event whose repair failed; None: a tick.
        watermark_s: the watermark; minus infinity: nothing may enter.
        moves_clock: True if the clock advances to the watermark, not only to the last event.
    """

    def __init__(
        self, merger: EventMerger, engine: Engine, unrepaired: list[EventIdentity | None],
        watermark_s: float = -inf, moves_clock: bool = True,
    ) -> None:  # fmt: skip
        self._merger = merger
        self._engine = engine
        self._unrepaired = unrepaired
        self._watermark_s = watermark_s
        self._moves_clock = moves_clock
        self._events = self._entering()

    def _entering(self, first: Iterable[Event] = ()) -> Iterator[Event]:
        yield from first
        yield from self._merger.advance(self._watermark_s)
        if self._moves_clock and self._watermark_s > -inf:
            self._moves_clock = False  # a failure here is not retried: the feed must end
            self._merger.reach(self._watermark_s)
            self._engine.reach(self._watermark_s)

    def step(self, most: int) -> bool:
        """Feed at most `most` events; return False when nothing is left."""
        before = self._progress()
        try:
            return self._engine.feed(islice(self._events, most)) == most
        except Exception as error:  # noqa: BLE001 - no event ends the daemon; it is recorded
            self._events = self._entering(self._set_aside(error))
            return self._progress() != before  # or it would fail here endlessly

    def _progress(self) -> tuple[int, int, bool]:
        return self._engine.events, self._merger.waiting_n(), self._moves_clock

    def _set_aside(self, error: Exception) -> list[Event]:
        """Reject the event that failed; return the machine events that it also implied."""
        at_hand, left = self._merger.give_up(error)
        try:
            self._repair(asks_again=at_hand is not None)
        except Exception as second:
            self._unrepaired.append(at_hand)
            log.exception("repair_failed", after=f"{type(error).__name__}: {error}")
            self._merger.amend_last(f"; the repair failed: {type(second).__name__}: {second}")
        return left

    def _repair(self, asks_again: bool) -> None:
        """Make the state that is derived from jobs and machines consistent again."""
        site = self._engine.site
        known = self._merger.normaliser.realign(
            site.jobs,
            [spec is not None for spec in site.specs],
            list(map(bool, site.owner)),
        )
        self._engine.take_out_all_but(known, asks_again)


# -- malformed -------------------------------------------------------------------------------------
# Validation of the shape of events before they enter the engine: adapters are plugins.
#
# A valid event can be written into the journal and read back. Whether it can be *applied* is
# checked elsewhere (`outrider.engine.ingest.set_aside`).

_MAX_WHOLE = 2**63
"""Exclusive bound of the absolute value of integers in the journal."""
MAX_TEXT = 8_192
"""Longest name in characters: a foreign record may contain a mebibyte, and names are kept."""


def is_well_formed(event: Any) -> bool:
    """Return whether this is a `NamedEvent` as `outrider.model.events` declares it."""
    try:
        time_s, kind, subject, extra = event
        return (
            isinstance(event, (tuple, list))
            and isfinite(time_s)
            and type(kind) is int
            and kind in _CHECKED
            and _is_name(subject)
            and (extra is None if (check := _EXTRA.get(kind)) is None else check(extra))
        )
    except (TypeError, ValueError, OverflowError):
        return False


def _is_text(text: Any) -> bool:
    """Return whether text can be stored as UTF-8; raises `ValueError` for a lone surrogate."""
    return type(text) is str and len(text) <= MAX_TEXT and (text.isascii() or bool(text.encode()))


def _is_name(text: Any) -> bool:
    return text != "" and _is_text(text)


def _is_whole(number: Any) -> bool:
    return type(number) is int and -_MAX_WHOLE < number < _MAX_WHOLE


def _is_number(number: Any) -> bool:
    return isinstance(number, float) or _is_whole(number)


def _is_number_or_none(number: Any) -> bool:
    return number is None or _is_number(number)


def _is_bool(value: Any) -> bool:
    return type(value) is bool


def _is_resources(extra: Any) -> bool:
    return extra is None or (
        isinstance(extra, Resources)
        and type(extra.named) is tuple
        and all(_is_name(name) and _is_number(amount) for name, amount in extra.amounts())
    )


def _is_start(extra: Any) -> bool:
    machine, cpus, *slot = extra
    if not (_is_name(machine) and _is_whole(cpus)):
        return False
    return not slot or (len(slot) == 1 and _is_text(slot[0]))


def _is_text_or_none(extra: Any) -> bool:
    return extra is None or _is_text(extra)


def _is_reason(extra: Any) -> bool:
    return extra in ev.EVICTION_REASONS


def _is_watts(extra: Any) -> bool:
    return _is_number(extra) and isfinite(extra)


_JOB_FIELDS = {
    "user": _is_text,
    "vo": _is_text,
    "job_class": _is_text,
    "cpus": _is_whole,
    "estimate_s": _is_number_or_none,
    "eligible_s": _is_number_or_none,
    "seen_submit": _is_bool,
    "recalled": _is_bool,
    "resources": _is_resources,
    "eligible": _is_text,
    "reporter": _is_text,
}
_MACHINE_FIELDS = {
    "cluster": _is_text,
    "cpus": _is_whole,
    "active_w": _is_number_or_none,
    "idle_w": _is_number_or_none,
    "sleep_w": _is_number_or_none,
    "inferred": _is_bool,
    "usable": _is_bool,
    "speed": _is_number,
    "resources": _is_resources,
}


def _is_job(extra: Any) -> bool:
    return isinstance(extra, JobSpec) and (  # field by field: a loop takes three times as long
        _is_text(extra.user)
        and _is_text(extra.vo)
        and _is_text(extra.job_class)
        and _is_whole(extra.cpus)
        and _is_number_or_none(extra.estimate_s)
        and _is_number_or_none(extra.eligible_s)
        and type(extra.seen_submit) is bool
        and type(extra.recalled) is bool
        and _is_resources(extra.resources)
        and _is_text(extra.eligible)
        and _is_text(extra.reporter)
    )


def _is_machine(extra: Any) -> bool:
    return isinstance(extra, MachineSpec) and all(
        check(getattr(extra, name)) for name, check in _MACHINE_FIELDS.items()
    )


def _is_class(extra: Any) -> bool:
    return type(extra) is tuple and all(type(name) is str and name != "" for name in extra)


def _is_change(extra: Any) -> bool:
    return type(extra) is dict and all(
        name in _JOB_FIELDS and _JOB_FIELDS[name](value) for name, value in extra.items()
    )


_CHECKED = frozenset(range(len(ev.KIND_NAMES))) - {ev.TICK}
_EXTRA = {
    ev.SUBMITTED: _is_job,
    ev.STARTED: _is_start,
    ev.EVICTED: _is_reason,
    ev.HELD: _is_text_or_none,
    ev.DRAINED: _is_text_or_none,
    ev.REMOVED: _is_reason,  # it may end a run, and is then counted by reason
    ev.CHANGED: _is_change,
    ev.JOINED: _is_machine,
    ev.POWER: _is_watts,
    ev.RESIZED: _is_whole,
    ev.ELIGIBLE: _is_class,
}
