"""A campus made from what was recorded of a site, to be replayed under any policy.

Second 0 is midnight of the site's wall clock on the first day; later times are elapsed seconds. A
campus has no daylight saving time: durations stay right and no hour occurs twice, and opening
hours are read with the UTC offset in force at the first event.
"""

import datetime as dt
from collections import Counter
from math import inf
from typing import Final, NamedTuple

import numpy as np

from outrider.formats.campus.campus import Campus, Floats, Ints
from outrider.formats.campus.site_file import SiteFile, SiteTable, always_open
from outrider.model.clusters import ClusterSpec
from outrider.model.localtime import DAY_S
from outrider.replay.site_record import RecordedMachine, SiteRecord

DIGITS: Final = 6
"""Decimals kept of a time in seconds: about the resolution of a Unix time in a float."""


class Slot(NamedTuple):
    """A campus machine for one job: one of `of` equal parts of a recorded machine."""

    name: str
    machine: RecordedMachine
    of: int


def recorded_campus(
    record: SiteRecord, name: str, zone: dt.tzinfo = dt.UTC, habits: SiteFile | None = None
) -> Campus:
    """Make a campus from a record.

    Args:
        record: what was recorded; must be closed (`SiteRecord.close`).
        name: of the campus.
        zone: the site's time zone.
        habits: declared opening hours, delays, sleep, reboot and rules for runs; its `start` and
            `end_s` are not used. None: those of `inferred_habits`.
    """
    offset_s = utc_offset_s(record.first_s, zone)
    epoch_s = (record.first_s + offset_s) // DAY_S * DAY_S - offset_s
    site = inferred_habits(record, offset_s) if habits is None else habits
    slots, places = _slots(record)
    clusters, cluster_of = _clusters(slots, site)
    sessions = sorted(
        (login, logout, place)
        for machine, login, logout in record.sessions
        for place in places[machine]
    )
    jobs = sorted(record.jobs, key=lambda job: job.submit_s)
    users, user = _numbered([job.spec.user for job in jobs])
    vos, vo = _numbered([job.spec.vo for job in jobs])
    return Campus(
        name=name,
        start=dt.datetime.fromtimestamp(epoch_s + offset_s, dt.UTC).replace(tzinfo=None),
        reboot_s=site.reboot_s,
        idle_before_job_open_s=site.table.idle_before_job_open_s,
        idle_before_job_closed_s=site.table.idle_before_job_closed_s,
        reconsider_s=site.table.reconsider_s,
        clusters=clusters,
        machine_names=[slot.name for slot in slots],
        machine_cluster=cluster_of,
        active_w=_watts([(slot.machine.spec.active_w, slot.of) for slot in slots]),
        idle_w=_watts([(slot.machine.spec.idle_w, slot.of) for slot in slots]),
        sleep_w=_watts([(slot.machine.spec.sleep_w, slot.of) for slot in slots]),
        session_machine=np.array([place for _, _, place in sessions], dtype=np.int32),
        login_s=_seconds([login for login, _, _ in sessions], epoch_s),
        logout_s=_seconds([logout for _, logout, _ in sessions], epoch_s),
        job_names=_distinct([job.name for job in jobs]),
        submit_s=_seconds([job.submit_s for job in jobs], epoch_s),
        run_s=_seconds([job.run_s for job in jobs], 0.0),
        kill_s=_seconds([job.kill_s for job in jobs], epoch_s),
        user=user,
        vo=vo,
        user_names=users,
        vo_names=vos,
        run_rules=site.table.run_rules,
        end_s=round(record.last_s - epoch_s, DIGITS),
    )


def inferred_habits(record: SiteRecord, offset_s: float) -> SiteFile:
    """A site's habits as far as a record shows them.

    Idle delay and reboot time are the most frequent ones in the record. Opening hours and sleep
    are not recorded: clusters never close and machines never sleep.
    """
    delay_s = float(next((delay for delay, _ in record.delays.most_common(1)), 0))
    reboot_counts: Counter[float] = Counter()
    for time_s, machines in record.reboots.items():
        reboot_counts[float(round(time_s + offset_s) % DAY_S)] += machines
    table = SiteTable(
        idle_before_job_open_s=delay_s,
        idle_before_job_closed_s=delay_s,
        sleep_after_open_s=inf,
        sleep_after_closed_s=inf,
    )
    return SiteFile(
        table, next((reboot_s for reboot_s, _ in reboot_counts.most_common(1)), None), []
    )


def utc_offset_s(time_s: float, zone: dt.tzinfo) -> float:
    """Seconds by which a zone's wall clock is ahead of UTC at a Unix time."""
    offset = dt.datetime.fromtimestamp(time_s, zone).utcoffset()
    return offset.total_seconds() if offset else 0.0


def _slots(record: SiteRecord) -> tuple[list[Slot], dict[int, range]]:
    """Campus machines, each for one job, and the range of them for each recorded machine.

    A declared machine becomes one campus machine per CPU; one that is known from its jobs alone,
    as many as it ever ran jobs at once.
    """
    slots: list[Slot] = []
    places: dict[int, range] = {}
    for number, machine in sorted(record.machines.items()):
        n = max(1, machine.most_jobs if machine.spec.inferred else machine.spec.cpus)
        names = [f"slot{k}@{machine.name}" for k in range(1, n + 1)] if n > 1 else [machine.name]
        places[number] = range(len(slots), len(slots) + n)
        slots += [Slot(name, machine, n) for name in names]
    return slots, places


def _clusters(slots: list[Slot], site: SiteFile) -> tuple[list[ClusterSpec], Ints]:
    """Declared clusters, then those that only machines name; and each slot's cluster number."""
    clusters = {spec.name: spec for spec in site.clusters}
    for slot in slots:
        name = slot.machine.spec.cluster
        clusters.setdefault(name, always_open(name, site.table))
    number = {name: n for n, name in enumerate(clusters)}
    cluster_of = [number[slot.machine.spec.cluster] for slot in slots]
    return list(clusters.values()), np.array(cluster_of, dtype=np.int32)


def _watts(watts_and_slots: list[tuple[float | None, int]]) -> Floats:
    """(slots,) each slot's equal share of its machine's watts; nan where unknown."""
    return np.array(
        [np.nan if watts is None else watts / n for watts, n in watts_and_slots], dtype=np.float64
    )


def _seconds(times: list[float], epoch_s: float) -> Floats:
    return np.round(np.array(times, dtype=np.float64) - epoch_s, DIGITS)


def _numbered(names: list[str]) -> tuple[list[str], Ints]:
    """Distinct names in order of appearance, and the number of each row's name."""
    number = {name: n for n, name in enumerate(dict.fromkeys(names))}
    return list(number), np.array([number[name] for name in names], dtype=np.int32)


def _distinct(names: list[str]) -> list[str]:
    """Unique names: ``~2``, ``~3`` is appended where a batch system reused a job id."""
    original, used, out = set(names), set[str](), list[str]()
    for name in names:
        candidate, n = name, 1
        while candidate in used or (n > 1 and candidate in original):
            n += 1
            candidate = f"{name}~{n}"
        used.add(candidate)
        out.append(candidate)
    return out
