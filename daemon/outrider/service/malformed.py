"""The shape an event must have before it may enter the engine: an adapter is a stranger's code."""

from math import isfinite
from typing import Any

from outrider.model import events as ev
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec
from outrider.model.resources import Resources


def is_well_formed(event: Any) -> bool:
    """Whether this is a `NamedEvent` as `outrider.model.events` declares it."""
    try:
        time_s, kind, subject, extra = event
        return (
            isfinite(time_s)
            and kind in _CHECKED
            and type(subject) is str
            and subject != ""
            and (extra is None if (check := _EXTRA.get(kind)) is None else check(extra))
        )
    except (TypeError, ValueError):
        return False


def _is_start(extra: Any) -> bool:
    machine, cpus = extra
    return type(machine) is str and machine != "" and type(cpus) is int and cpus > 0


def _is_cpus(extra: Any) -> bool:
    return type(extra) is int and extra > 0


def _is_watts(extra: Any) -> bool:
    return isfinite(extra) and bool(extra >= 0)


def _is_class(extra: Any) -> bool:
    return type(extra) is tuple and all(type(name) is str and name != "" for name in extra)


def _is_change(extra: Any) -> bool:
    return (
        type(extra) is dict
        and extra.keys() <= set(JobSpec.__struct_fields__)
        and isinstance(extra.get("resources"), Resources | None)
    )


_CHECKED = frozenset(range(len(ev.KIND_NAMES))) - {ev.TICK}
_EXTRA = {
    ev.SUBMITTED: lambda extra: isinstance(extra, JobSpec),
    ev.STARTED: _is_start,
    ev.EVICTED: lambda extra: extra in ev.EVICTION_REASONS,
    ev.REMOVED: lambda extra: extra in ev.EVICTION_REASONS,  # it may end a run, and is counted so
    ev.CHANGED: _is_change,
    ev.JOINED: lambda extra: isinstance(extra, MachineSpec) and extra.speed > 0,
    ev.POWER: _is_watts,
    ev.RESIZED: _is_cpus,
    ev.ELIGIBLE: _is_class,
}
