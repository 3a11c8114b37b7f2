"""Comparison of two daemons' records of a site, independent of the wall clock."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from outrider.engine.ingest.set_aside import REASONS
from outrider.journal import Journal
from outrider.model.events import KIND_NAMES, TICK

METERS: Final = "meters"
"""Adapter whose messages only one of the two daemons receives."""


def recorded_events(journal: Journal) -> Counter[tuple[str, str]]:
    """Events in a journal, by adapter and kind, but for those of meters."""
    inputs = ((label, event[1]) for _, label, event in journal.inputs_after(0))
    return Counter(
        (label, KIND_NAMES[kind]) for label, kind in inputs if kind != TICK and label != METERS
    )


def differences(one: Path, other: Path) -> list[str]:
    """Return the differences of two state directories, a sentence each."""
    with (
        Journal(one / "journal.sqlite", read_only=True) as first,
        Journal(other / "journal.sqlite", read_only=True) as second,
    ):
        return [
            *_in_counts("events", recorded_events(first), recorded_events(second)),
            *_in_counts("set aside", _set_aside(first), _set_aside(second)),
            *_in_order("decision", _decisions(first), _decisions(second)),
            *_in_order("outcome", _outcomes(first), _outcomes(second)),
        ]


def _set_aside(journal: Journal) -> Counter[tuple[str, str]]:
    records = (record for reason in REASONS for _, record in journal.set_aside_after(0, reason))
    return Counter((r.adapter, r.reason) for r in records if r.adapter != METERS)


def _decisions(journal: Journal) -> Iterator[Any]:
    for _, d in journal.decisions():
        yield d.time_s, d.job, d.action, d.machine, d.reason, d.policy, d.propensity


def _outcomes(journal: Journal) -> Iterator[Any]:
    for _, o in journal.outcomes():
        yield o.time_s, o.job, o.ending, o.reason, o.policy, o.reward, o.on_policy


def _in_counts(what: str, one: object, other: object) -> list[str]:
    return [] if one == other else [f"{what}: {one} against {other}"]


def _in_order(what: str, one: Iterable[Any], other: Iterable[Any]) -> list[str]:
    """The first difference of two series, which may be longer than memory holds; none: no rows."""
    n = -1
    for n, (mine, theirs) in enumerate(zip_longest(one, other)):
        if mine != theirs:
            return [f"{what} {n}: {mine} against {theirs}"]
    return [] if n >= 0 else [f"there is no {what}"]
