"""Rejected ("set aside") events: the closed list of reasons, and checks of times and values.

A rejected event changes nothing. It is counted by its reason and recorded with it. It neither ends
the daemon nor returns after a restart to end it then. What depends on the state of a job or a
machine is checked by the normaliser; here is what is impossible for every job and machine.
"""

from collections.abc import Callable
from math import inf, isfinite
from typing import Any, Final, NamedTuple

import msgspec

from outrider.model import events as ev
from outrider.model.events import NamedEvent
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec, Resources

AFTER_END: Final = "after_end"
IMPOSSIBLE_STATE: Final = "impossible_state"
UNKNOWN_MACHINE: Final = "unknown_machine"
IMPOSSIBLE_TIME: Final = "impossible_time"
IMPLAUSIBLE_TIME: Final = "implausible_time"
IMPOSSIBLE_VALUE: Final = "impossible_value"
FAULT: Final = "fault"

REASONS: Final = {
    AFTER_END: "its job has ended",
    IMPOSSIBLE_STATE: "its job is not in a state that allows it",
    UNKNOWN_MACHINE: "a meter's reading of a machine that no event named",
    IMPOSSIBLE_TIME: "its time lies outside the years 1900 to 2500",
    IMPLAUSIBLE_TIME: "its time is before 2001, or days ahead of this host's clock",
    IMPOSSIBLE_VALUE: "CPUs, resources, watts, a speed or seconds that cannot be",
    FAULT: "Outrider itself failed on it; please report it",
}
"""Reasons for a rejection, each with its sentence: a closed list."""

MAX_CPUS: Final = 2**31 - 1
"""Maximum CPUs of a job or a machine; batch systems themselves count in 32 bits."""
_MAX_AMOUNT: Final = 1e15
"""Maximum amount of a resource, such as MiB of memory."""
_MAX_WATTS: Final = 1e9
_MAX_SPEED: Final = 1e6
_MAX_SPAN_S: Final = 1e12
FIRST_S: Final = -2_208_988_800.0
LAST_S: Final = 16_725_225_600.0
"""Bounds of event times, the years 1900 to 2500: outside them a date is garbled."""


class TimeLimits(NamedTuple):
    """Limits of plausible event times, set by the caller that knows the present time.

    Attributes:
        earliest_s, latest_s: the first and the last plausible time, Unix seconds.
    """

    earliest_s: float = -inf
    latest_s: float = inf

    def hold(self, event: NamedEvent) -> bool:
        """Return whether the time of this event is plausible."""
        return self.earliest_s <= event[0] <= self.latest_s


class NotApplicableError(Exception):
    """Error: an event cannot be applied, and nothing has changed.

    Attributes:
        reason: one of `REASONS`.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(REASONS[reason])
        self.reason = reason


class SetAside(msgspec.Struct, gc=False):
    """Record of one event that was rejected.

    Attributes:
        source: label of the adapter that reported it; empty for a tick.
        event: as it was reported.
        reason: one of `REASONS`.
        detail: the error, where the reason is `FAULT`.
    """

    source: str
    event: NamedEvent
    reason: str
    detail: str = ""


def refuse_impossible(event: NamedEvent) -> None:
    """Check that the time and the values of an event are possible.

    Raises:
        NotApplicableError: they are not.
    """
    time_s, kind, _, extra = event
    if not FIRST_S <= time_s <= LAST_S:
        raise NotApplicableError(IMPOSSIBLE_TIME)
    possible = _POSSIBLE.get(kind)
    if possible is not None and not possible(extra):
        raise NotApplicableError(IMPOSSIBLE_VALUE)


def _is_cpus(cpus: int) -> bool:
    return 0 < cpus <= MAX_CPUS


def _is_start(extra: tuple[str, int]) -> bool:
    return _is_cpus(extra[1])


def _is_span(seconds: float | None) -> bool:
    return seconds is None or 0.0 <= seconds <= _MAX_SPAN_S


def _is_moment(time_s: float | None) -> bool:
    return time_s is None or FIRST_S <= time_s <= LAST_S


def _are_amounts(resources: Resources | None) -> bool:
    return resources is None or all(0.0 <= n <= _MAX_AMOUNT for _, n in resources.amounts())


def _is_job(spec: JobSpec) -> bool:
    return (
        _is_cpus(spec.cpus)
        and _is_span(spec.estimate_s)
        and _is_moment(spec.eligible_s)
        and _are_amounts(spec.resources)
    )


def _is_change(changes: dict[str, Any]) -> bool:
    return (
        _is_cpus(changes.get("cpus", 1))
        and _is_span(changes.get("estimate_s"))
        and _is_moment(changes.get("eligible_s"))
        and _are_amounts(changes.get("resources"))
    )


def _is_watts(watts: float | None) -> bool:
    return watts is None or 0.0 <= watts <= _MAX_WATTS


def _is_machine(spec: MachineSpec) -> bool:
    return (
        _is_cpus(spec.cpus)
        and isfinite(spec.speed)
        and 0.0 < spec.speed <= _MAX_SPEED
        and all(map(_is_watts, (spec.active_w, spec.idle_w, spec.sleep_w)))
        and _are_amounts(spec.resources)
    )


_POSSIBLE: Final[dict[int, Callable[[Any], bool]]] = {
    ev.SUBMITTED: _is_job,
    ev.STARTED: _is_start,
    ev.RESIZED: _is_cpus,
    ev.CHANGED: _is_change,
    ev.JOINED: _is_machine,
    ev.POWER: _is_watts,
}
