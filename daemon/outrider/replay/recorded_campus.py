"""Conversion of a site's record to a campus, to be replayed under any policy.

Second 0 is midnight of the site's wall clock on the first day; later times are elapsed seconds. A
campus has no daylight saving time: durations are correct and no hour occurs twice. Opening hours
use the UTC offset at the first event.
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Sequence
from math import inf
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import numpy as np

from outrider.formats.campus.campus import ONLY_SEPARATOR, Amounts, Campus, Floats, Ints
from outrider.formats.campus.files import NO_REBOOT, SiteFile, SiteTable, always_open
from outrider.formats.campus.rows import only_text
from outrider.journal.site_facts import SiteFacts, facts_on_record
from outrider.model.errors import LedgerError
from outrider.model.localtime import DAY_S, day_second
from outrider.model.machines import ClusterSpec, Resources
from outrider.replay.site_record import RecordedJob, RecordedMachine, SiteRecord

DIGITS: Final = 6
"""Decimals kept of a time in seconds: about the resolution of a Unix time in a float."""


def recorded_campus(
    record: SiteRecord,
    name: str,
    zone: dt.tzinfo = dt.UTC,
    habits: SiteFile | None = None,
    *,
    absences: bool = False,
) -> Campus:
    """Make a campus from a record.

    Args:
        record: must be closed (`SiteRecord.close`).
        name: of the campus.
        zone: the site's time zone.
        habits: declared opening hours, delays, sleep, reboot and rules for runs; its `start` and
            `end_s` are not used. None: those of `inferred_habits`.
        absences: whether periods in which a machine was absent become sessions of an owner;
            otherwise it is present from the first second to the last.
    """
    offset_s = utc_offset_s(record.first_s, zone)
    epoch_s = (record.first_s + offset_s) // DAY_S * DAY_S - offset_s
    site = inferred_habits(record, offset_s) if habits is None else habits
    numbers = sorted(record.machines)
    place = {number: at for at, number in enumerate(numbers)}
    machines = [record.machines[number] for number in numbers]
    clusters, cluster_of = _clusters(machines, site)
    taken = [*record.sessions, *(record.absences if absences else ())]
    sessions = sorted((login, logout, place[number]) for number, login, logout in taken)
    only = recorded_only(record, [spec.name for spec in clusters])
    jobs = possible_jobs(record, only)
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
        machine_names=[machine.name for machine in machines],
        machine_cluster=cluster_of,
        active_w=_or_nan([machine.spec.active_w for machine in machines]),
        idle_w=_or_nan([machine.spec.idle_w for machine in machines]),
        sleep_w=_or_nan([machine.spec.sleep_w for machine in machines]),
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
        capacities=_amounts([(machine.cpus, machine.spec.resources) for machine in machines]),
        requests=_amounts([(job.cpus, job.spec.resources) for job in jobs]),
        only=_none_if_empty([only.get(job.spec.eligible) or "" for job in jobs]),
        estimate_s=_estimates([job.spec.estimate_s for job in jobs]),
    )


def inferred_habits(record: SiteRecord, offset_s: float) -> SiteFile:
    """Return a site's rules as far as a record shows them.

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
    """Return the seconds by which a zone's wall clock is ahead of UTC at a Unix time."""
    offset = dt.datetime.fromtimestamp(time_s, zone).utcoffset()
    return offset.total_seconds() if offset else 0.0


def _clusters(machines: list[RecordedMachine], site: SiteFile) -> tuple[list[ClusterSpec], Ints]:
    """Return declared clusters, then those named only by machines; and each machine's number."""
    clusters = {spec.name: spec for spec in site.clusters}
    for machine in machines:
        name = machine.spec.cluster
        clusters.setdefault(name, always_open(name, site.table))
    number = {name: n for n, name in enumerate(clusters)}
    cluster_of = [number[machine.spec.cluster] for machine in machines]
    return list(clusters.values()), np.array(cluster_of, dtype=np.int32)


def _or_nan(values: Iterable[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _amounts(rows: list[tuple[int, Resources | None]]) -> Amounts | None:
    """Return CPUs and other resources; None if all have one CPU and nothing else."""
    known = [Resources() if resources is None else resources for _, resources in rows]
    amounts = Amounts(
        np.array([cpus for cpus, _ in rows], dtype=np.int32),
        _or_nan(resources.memory_mib for resources in known),
        _or_nan(resources.gpus for resources in known),
    )
    return None if amounts.is_plain else amounts


def _none_if_empty(texts: list[str]) -> list[str] | None:
    return texts if any(texts) else None


def _estimates(seconds: list[float | None]) -> Floats | None:
    return None if all(s is None for s in seconds) else _or_nan(seconds)


def _seconds(times: list[float], epoch_s: float) -> Floats:
    return np.round(np.array(times, dtype=np.float64) - epoch_s, DIGITS)


def _numbered(names: list[str]) -> tuple[list[str], Ints]:
    """Return distinct names in order of appearance, and the number of each row's name."""
    number = {name: n for n, name in enumerate(dict.fromkeys(names))}
    return list(number), np.array([number[name] for name in names], dtype=np.int32)


def _distinct(names: list[str]) -> list[str]:
    """Return unique names, with ``~2``, ``~3`` where a batch system reused a job id."""
    original, used, out = set(names), set[str](), list[str]()
    for name in names:
        candidate, n = name, 1
        while candidate in used or (n > 1 and candidate in original):
            n += 1
            candidate = f"{name}~{n}"
        used.add(candidate)
        out.append(candidate)
    return out


# -- recorded places -------------------------------------------------------------------------------
# Clusters on which the jobs of a record may run; a campus can only name whole clusters.


def recorded_only(record: SiteRecord, clusters: Sequence[str]) -> dict[str, str | None]:
    """Return the column ``only`` by eligibility class; None for a class it cannot express.

    Args:
        record: of the site.
        clusters: names, in the order of the campus.
    """
    asked = {job.spec.eligible for job in record.jobs} - {""}
    return {name: _clusters_of(record, name, clusters) for name in asked}


def _clusters_of(record: SiteRecord, name: str, clusters: Sequence[str]) -> str | None:
    members = record.classes.get(name, set()) & record.machines.keys()
    inside = {record.machines[number].spec.cluster for number in members}
    whole = {
        number for number, machine in record.machines.items() if machine.spec.cluster in inside
    }
    if not members or members != whole or any(ONLY_SEPARATOR in cluster for cluster in inside):
        return None
    return "" if members == record.machines.keys() else only_text(inside, clusters)


def possible_jobs(record: SiteRecord, only: dict[str, str | None]) -> list[RecordedJob]:
    """Return the jobs that fit on a machine where the campus lets them run, by submission.

    A campus refuses the others: see ``outrider.formats.campus.rows``.

    Args:
        record: of the site.
        only: from `recorded_only`.
    """
    widest: dict[str, int] = {}
    for machine in record.machines.values():
        cluster = machine.spec.cluster
        widest[cluster] = max(widest.get(cluster, 0), machine.cpus)

    def most(job: RecordedJob) -> int:
        names = only.get(job.spec.eligible)
        places = names.split(ONLY_SEPARATOR) if names else widest
        return max((widest[name] for name in places), default=job.cpus)

    possible = (job for job in record.jobs if job.cpus <= most(job))
    return sorted(possible, key=lambda job: job.submit_s)


# -- habits on record ------------------------------------------------------------------------------
# Site rules from a journal: the declared ones, and the others inferred from its events.

HOURS: Final = "hours"
"""Opening hours and sleep of the clusters."""
DELAYS: Final = "delays"
"""Delays from a log-out or reboot until jobs may use the machine."""
REBOOT: Final = "reboot"
HABITS: Final = frozenset({HOURS, DELAYS, REBOOT})


class RecordedHabits(NamedTuple):
    """Site rules from a journal.

    Attributes:
        site: for `outrider.replay.recorded_campus.recorded_campus`.
        inferred: which of `HABITS` are not on record and were inferred from events.
    """

    site: SiteFile
    inferred: frozenset[str]


def habits_of_ledger(path: Path, record: SiteRecord, zone: dt.tzinfo = dt.UTC) -> RecordedHabits:
    """Return the site rules of a journal.

    Args:
        path: the journal.
        record: made from it.
        zone: the site's time zone.

    Raises:
        LedgerError: the journal cannot be read.
    """
    inferred = inferred_habits(record, utc_offset_s(record.first_s, zone))
    facts = facts_on_record(path)
    if facts is None:
        return RecordedHabits(inferred, HABITS)
    declared = facts.habits
    names = {field.name for field in msgspec.structs.fields(SiteTable)} - {"reboot"}
    known = {
        name: value
        for name, value in msgspec.structs.asdict(declared).items()
        if name in names and value is not None
    }
    reboot_s = inferred.reboot_s if declared.reboot is None else _reboot_s(declared.reboot, path)
    table = msgspec.structs.replace(inferred.table, **known)
    return RecordedHabits(
        SiteFile(table, reboot_s, list(facts.clusters)), frozenset(_not_declared(facts))
    )


def _not_declared(facts: SiteFacts) -> Iterable[str]:
    declared = facts.habits
    if not facts.clusters:
        yield HOURS
    if declared.idle_before_job_open_s is None or declared.idle_before_job_closed_s is None:
        yield DELAYS
    if declared.reboot is None:
        yield REBOOT


def _reboot_s(text: str, path: Path) -> float | None:
    if text == NO_REBOOT:
        return None
    try:
        return day_second(text)
    except ValueError as error:
        raise LedgerError(f"{path}: the reboot of its site {error}") from error
