"""The shape that an event must have before it may enter the engine: adapters are plugins.

What passes here can be written into the journal and read back; whether it can be *applied* is
another question (`outrider.engine.ingest.set_aside`).
"""

from math import isfinite
from typing import Any

from outrider.model import events as ev
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec
from outrider.model.resources import Resources

_MOST = 2**63
"""Whole numbers of the journal are below this."""

MOST_TEXT = 8_192
"""Characters of a name: a stranger's record may hold a mebibyte, and the engine keeps names."""


def is_well_formed(event: Any) -> bool:
    """Whether this is a `NamedEvent` as `outrider.model.events` declares it."""
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
    """Text that can be written as UTF-8; raises `ValueError` for half of a surrogate pair."""
    return type(text) is str and len(text) <= MOST_TEXT and (text.isascii() or bool(text.encode()))


def _is_name(text: Any) -> bool:
    return text != "" and _is_text(text)


def _is_whole(number: Any) -> bool:
    return type(number) is int and -_MOST < number < _MOST


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
    return _is_name(machine) and _is_whole(cpus) and len(slot) <= 1 and all(map(_is_text, slot))


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
    return isinstance(extra, JobSpec) and all(
        check(getattr(extra, name)) for name, check in _JOB_FIELDS.items()
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
    ev.REMOVED: _is_reason,  # it may end a run, and is counted so
    ev.CHANGED: _is_change,
    ev.JOINED: _is_machine,
    ev.POWER: _is_watts,
    ev.RESIZED: _is_whole,
    ev.ELIGIBLE: _is_class,
}
