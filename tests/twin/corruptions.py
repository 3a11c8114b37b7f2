"""Faults of a site or of its record: a journal with the fault, and the true site."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from outrider.formats.campus.campus import Campus
from outrider.journal import Journal
from outrider.model import events as ev
from outrider.model.events import NamedEvent
from tests.twin.sites import altered, journal_of

HOUR_S = 3_600.0
_OF_MACHINES = {ev.OWNER_CAME, ev.OWNER_WENT, ev.USABLE, ev.REBOOTED}


class Right(NamedTuple):
    """Site and the daemon's journal of it, without any fault.

    Attributes:
        campus: the site.
        journal: of its first `until_s` seconds.
        seed: of the incumbent, and of what goes wrong.
        until_s: end of the journal, second of the campus.
    """

    campus: Campus
    journal: Path
    seed: int
    until_s: float


class Corrupted(NamedTuple):
    """Journal with a fault.

    Attributes:
        journal: the record.
        campus: the site as it really was.
        more_overhead_s: overhead of each job that this campus does not count, seconds.
        dead: names of machines on which nothing could start.
    """

    journal: Path
    campus: Campus
    more_overhead_s: float = 0.0
    dead: frozenset[str] = frozenset()


Corruption = Callable[[Right, Path], Corrupted]
"""Makes a faulty journal from a correct one, in an empty folder."""


def missed_sessions(right: Right, folder: Path) -> Corrupted:
    """Drop 30 % of the owners' sessions from the record."""
    chance = random.Random(right.seed)

    def lose(events: list[NamedEvent]) -> Sequence[NamedEvent]:
        kept, lost = [], set[str]()
        for event in events:
            if event[1] == ev.OWNER_CAME and chance.random() < 0.3:
                lost.add(event[2])
            elif event[1] == ev.OWNER_WENT and event[2] in lost:
                lost.remove(event[2])
            else:
                kept.append(event)
        return kept

    return Corrupted(altered(right.journal, folder / "lost.sqlite", lose), right.campus)


def late_negotiation(right: Right, folder: Path) -> Corrupted:
    """Record jobs an hour after they came, with their true times of submission."""
    campus = right.campus
    late = replace(
        campus, submit_s=campus.submit_s + HOUR_S, kill_s=campus.kill_s + HOUR_S,
        end_s=campus.span_s,
    )  # fmt: skip
    path = journal_of(late, folder, right.seed, right.until_s)

    def earlier(events: list[NamedEvent]) -> Sequence[NamedEvent]:
        return [
            (event[0] - HOUR_S, *event[1:]) if event[1] == ev.SUBMITTED else event
            for event in events
        ]

    return Corrupted(altered(path, folder / "late.sqlite", earlier), late, HOUR_S)


def late_machines(right: Right, folder: Path) -> Corrupted:
    """Give machines to jobs an hour after a log-out; the site declares a shorter delay."""
    late = replace(right.campus, idle_before_job_open_s=HOUR_S, idle_before_job_closed_s=HOUR_S)
    path = journal_of(late, folder, right.seed, right.until_s)
    return Corrupted(
        altered(path, folder / "late.sqlite", lambda events: events, facts=right.journal), late
    )


def broken_machines(right: Right, folder: Path) -> Corrupted:
    """Let no job start on 15 % of the machines, which look free as before."""
    campus = right.campus
    n = len(campus.machine_names)
    rng = np.random.default_rng(right.seed)
    dead = np.sort(rng.choice(n, round(0.15 * n), replace=False)).astype(np.int32)
    worse = replace(
        campus,
        session_machine=np.concatenate([dead, campus.session_machine]),
        login_s=np.concatenate([np.zeros(len(dead)), campus.login_s]),
        logout_s=np.concatenate([np.full(len(dead), campus.span_s), campus.logout_s]),
    )
    path = journal_of(worse, folder, right.seed, right.until_s)
    with Journal(right.journal, read_only=True) as opened:
        recorded = [event for _, _, event in opened.inputs_after(0) if event[1] in _OF_MACHINES]

    def hide(events: list[NamedEvent]) -> Sequence[NamedEvent]:
        return [*(event for event in events if event[1] not in _OF_MACHINES), *recorded]

    return Corrupted(
        altered(path, folder / "broken.sqlite", hide), worse,
        dead=frozenset(campus.machine_names[machine] for machine in dead.tolist()),
    )  # fmt: skip
