"""Base of an adapter's test harness: a source of events, and control over it."""

import unittest
from collections.abc import Callable, Mapping, Set
from math import isfinite
from typing import Any, ClassVar

import msgspec

from outrider.api.adapter import Adapter
from outrider.model import events as ev
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec
from outrider.testing.conformance import expect


class AdapterHarness:
    """Source of events, and adapters on it.

    Class variables:
        endless: the source produces events without being asked, perhaps more than were appended.
        within_s: longest time in which appended events must have come.
        quiet_within_s: longest silence of an adapter on a healthy source.
    """

    endless: ClassVar[bool] = False
    within_s: ClassVar[float] = 20.0
    quiet_within_s: ClassVar[float] = 3.0

    def adapter(self) -> Adapter:
        """Return a new adapter on the source, as after a restart of the daemon."""
        raise NotImplementedError

    def settings(self) -> Mapping[str, Any]:
        """Return settings that have no default, for the check of the settings record."""
        return {}

    def append(self) -> int:
        """Make the source produce events.

        Returns:
            number of resulting events, at least 1. For an endless source: how many more
            must come before the suite checks them.
        """
        raise NotImplementedError

    def take_away(self) -> None:
        """Make the source unreachable: remove the file, stop the server."""
        raise NotImplementedError

    def bring_back(self) -> None:
        """Make the source reachable again, as it was."""
        raise NotImplementedError

    def close(self) -> None:
        """Remove everything that was created. Called after each test."""

    def needs_silence(self) -> None:
        """Skip a test that does not apply to a source that is never quiet."""
        if self.endless:
            raise unittest.SkipTest("this source is never quiet")

    def needs_a_source_to_take_away(self) -> None:
        """Skip a test that does not apply to a source that is part of the adapter."""
        if type(self).take_away is AdapterHarness.take_away:
            raise unittest.SkipTest("this source cannot be taken away")


# -- event shapes ----------------------------------------------------------------------------------
# Shapes of events: the required extra of each kind.

_SPEC_FIELDS = {field.name for field in msgspec.structs.fields(JobSpec)}


def check_event(event: Any, sees: Set[int]) -> None:
    """Check that an event has the form that `outrider.model.events` defines.

    Args:
        event: the event.
        sees: numbers of the kinds that the adapter declares.

    Raises:
        NotConforming: names the event and what is expected.
    """
    expect(
        isinstance(event, tuple) and len(event) == 4,
        f"an event is a tuple (time_s, kind, subject, extra): {event!r}",
    )
    time_s, kind, subject, extra = event
    expect(kind in range(len(ev.KIND_NAMES)), f"unknown kind {kind!r}: {event!r}")
    name = ev.KIND_NAMES[kind]
    expect(kind in sees, f"an event of kind {name!r} came, which `sees` lacks: {event!r}")
    finite = isinstance(time_s, (int, float)) and isfinite(time_s)
    expect(finite, f"the time must be a finite number of seconds: {event!r}")
    named = isinstance(subject, str) and subject != ""
    expect(named, f"the subject must be the name of a job or machine: {event!r}")
    fits, shape = _EXTRAS.get(kind, _NOTHING)
    expect(fits(extra), f"the extra of {name!r} must be {shape}: {event!r}")


def _is_start(extra: Any) -> bool:
    if not (isinstance(extra, tuple) and len(extra) in (2, 3)):
        return False
    machine, cpus, *slot = extra
    named = isinstance(machine, str) and machine != "" and all(isinstance(s, str) for s in slot)
    return named and isinstance(cpus, int) and cpus >= 1


def _is_reason(extra: Any) -> bool:
    return isinstance(extra, str) and extra in ev.EVICTION_REASONS


def _is_words(extra: Any) -> bool:
    return extra is None or (isinstance(extra, str) and extra != "" and extra.isprintable())


def _is_change(extra: Any) -> bool:
    return isinstance(extra, dict) and set(extra) <= _SPEC_FIELDS


def _is_cpus(extra: Any) -> bool:
    return isinstance(extra, int) and extra >= 1


def _is_watts(extra: Any) -> bool:
    return isinstance(extra, (int, float)) and isfinite(extra) and extra >= 0


def _is_class(extra: Any) -> bool:
    return isinstance(extra, tuple) and all(isinstance(each, str) and each for each in extra)


_Shape = tuple[Callable[[Any], bool], str]
_NOTHING: _Shape = (lambda extra: extra is None, "None")
_EXTRAS: dict[int, _Shape] = {
    ev.SUBMITTED: (lambda extra: isinstance(extra, JobSpec), "a JobSpec"),
    ev.STARTED: (_is_start, "(name of the machine, CPUs >= 1) or (machine, CPUs, slot on it)"),
    ev.EVICTED: (_is_reason, f"one of {', '.join(ev.EVICTION_REASONS)}"),
    ev.REMOVED: (_is_reason, f"one of {', '.join(ev.EVICTION_REASONS)}"),
    ev.HELD: (_is_words, "None, or the reason: one line of text"),
    ev.DRAINED: (_is_words, "None, or the reason: one line of text"),
    ev.CHANGED: (_is_change, "a dict of changed JobSpec fields"),
    ev.JOINED: (
        lambda extra: isinstance(extra, MachineSpec) and extra.speed > 0,
        "a MachineSpec with a speed above 0",
    ),
    ev.POWER: (_is_watts, "watts, finite and not below 0"),
    ev.RESIZED: (_is_cpus, "CPUs >= 1"),
    ev.ELIGIBLE: (_is_class, "names of machines, a tuple"),
}
