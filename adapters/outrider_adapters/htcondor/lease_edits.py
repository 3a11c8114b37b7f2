"""Leases of jobs in the queues of a pool: set, renewed and revoked, each read back."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeVar

from outrider.api import PeerError
from outrider_adapters.htcondor.pool_calls import (
    ID_ATTRIBUTES,
    AccessPoint,
    PoolCalls,
    edit_and_read_back,
    in_clusters,
    job_name,
    number,
    quote,
)
from outrider_adapters.readers.htcondor.job_ads import machine_of_slot

# -- lease attributes ------------------------------------------------------------------------------
# Attributes of jobs that Outrider sets for a limited time, and the configuration that reads them.
#
# At submission (`LEASES_CONFIG`) ``Requirements``, ``Rank`` and ``PreJobPrio1`` of every job get a
# part that reads them, but only while `UNTIL` is in the future. If it is not renewed, a job is
# again as its user submitted it. That goes by the clock of the daemon that matches the job.

UNTIL: Final = "OutriderUntil"
HOLD: Final = "OutriderHold"
HELD: Final = "OutriderHeld"
PIN: Final = "OutriderPin"
PREFER: Final = "OutriderPrefer"
FIRST: Final = "OutriderFirst"
BY: Final = "OutriderBy"
ALL: Final = (UNTIL, HOLD, HELD, PIN, PREFER, FIRST, BY)
UNSET: Final = "undefined"
OWN_HOLD: Final = "Outrider keeps it in the queue for a while"
"""Reason of a hold by `HELD`."""
LEASES_CONFIG: Final = (
    resources.files("outrider_adapters.htcondor")
    .joinpath("outrider-leases.config")
    .read_text(encoding="utf-8")
)
"""Configuration that the administrator of an access point installs, with comments."""


class LeaseTerms(NamedTuple):
    """Settings of the leases of a pool.

    Attributes:
        by: name of the Outrider that sets them; one name for each that may act on the pool.
        lease_s: duration of a lease, in seconds.
        cluster_attribute: attribute of slot ads that names a machine's group.
        pins: a job that is to start starts only on machines of its group; else it prefers them.
        first: such a job comes before the others of its user.
        shows: a job that stays in the queue is shown as held.
    """

    by: str
    lease_s: float
    cluster_attribute: str = "MachineCluster"
    pins: bool = False
    first: bool = False
    shows: bool = False


class Wanted(NamedTuple):
    """Lease that is wanted for a job.

    Attributes:
        hold: it stays in the queue.
        machine: a machine in the group that it is to run on; empty if it stays in the queue.
    """

    hold: bool
    machine: str = ""


def values_of(wanted: Wanted, cluster: str, terms: LeaseTerms) -> dict[str, str]:
    """Return the attributes of a lease except `UNTIL`, as ClassAd expressions.

    >>> values_of(Wanted(hold=True), "", LeaseTerms("pool@host", 300.0))[HOLD]
    'true'

    Args:
        wanted: the wanted lease.
        cluster: the machine group; empty if the job stays in the queue.
        terms: settings of the leases.
    """
    group = quote(cluster) if cluster else UNSET
    return {
        HOLD: _true_if(wanted.hold),
        HELD: _true_if(wanted.hold and terms.shows),
        PIN: group if terms.pins else UNSET,
        PREFER: UNSET if terms.pins else group,
        FIRST: _true_if(terms.first and not wanted.hold),
        BY: quote(terms.by),
    }


def _true_if(holds: bool) -> str:
    return "true" if holds else UNSET


def supports_leases(ad: Any) -> bool:
    """Return whether a job's requirements read the attributes."""
    return (
        UNTIL.lower() in str(ad.lookup("Requirements")).lower() if "Requirements" in ad else False
    )


# -- lease edits -----------------------------------------------------------------------------------

T = TypeVar("T")
_STEPS_PER_LEASE: Final = 6
"""Leases end on multiples of their length divided by this, so that many jobs share one end.

The negotiator matches jobs with different ends separately.
"""
_MAX_SUPPORTING: Final = 50_000
_GROUPS_CACHE_S: Final = 60.0
_LEFT_QUEUE: Final = "it has left the queue"
_NO_SUPPORT: Final = (
    "its Requirements do not read OutriderUntil: it was submitted before Outrider's leases were "
    "installed, or its Requirements were edited since"
)


class LeaseEdits:
    """Editor of the lease attributes of jobs.

    Args:
        calls: calls to the pool, with the right to edit all users' jobs.
        terms: settings of the leases.
        now: this host's clock, Unix seconds.

    All methods raise `PeerError` if the pool does not answer.
    """

    def __init__(self, calls: PoolCalls, terms: LeaseTerms, now: Callable[[], float]) -> None:
        self._calls = calls
        self._points = {point.name: point for point in calls.access_points}
        self._terms = terms
        self._now = now
        self._supporting: set[str] = set()
        """Jobs whose requirements need not be read again to renew their leases."""
        self._groups: dict[str, str] = {}
        self._groups_at_s = -_GROUPS_CACHE_S

    def apply(self, wanted: Mapping[str, Wanted]) -> dict[str, str]:
        """Set leases on jobs, by job name, that start now.

        Returns:
            the jobs that did not get their lease, and why.

        Raises:
            PeerError: another Outrider acts here, or a clock is off by more than a quarter lease.
        """
        groups = self._machine_groups({w.machine for w in wanted.values() if w.machine})
        refused = {job: self._no_group(w) for job, w in wanted.items()
                   if w.machine and w.machine not in groups}  # fmt: skip
        for point, jobs in self._by_point(wanted.keys() - refused.keys(), refused):
            self._refuse_second_instance(point)
            attributes = [*ALL, "ServerTime"]
            if not self._supporting.issuperset(jobs):
                attributes.append("Requirements")
            ads = self._ads(point, jobs, attributes)
            refused |= {job: _LEFT_QUEUE for job in jobs if job not in ads}
            refused |= {
                job: _NO_SUPPORT for job, ad in ads.items() if not self._supports_leases(job, ad)
            }
            left = {job: ad for job, ad in ads.items() if job not in refused}
            if not left:
                continue
            until_s = self._until_s(next(iter(left.values())))
            edits: dict[tuple[str, str], list[str]] = {}
            for job, ad in left.items():
                group = groups.get(wanted[job].machine, "")
                values = values_of(wanted[job], group, self._terms)
                for name, value in values.items():
                    if _value(ad, name) != value:
                        edits.setdefault((name, value), []).append(job)
            edits[UNTIL, str(until_s)] = list(left)  # last: no attribute has an effect before it
            for (name, value), edited in edits.items():
                todo = [job for job in edited if job not in refused]
                refused |= self._edit(point, todo, name, value)
        return refused

    def withdraw(self, jobs: Iterable[str]) -> dict[str, str]:
        """Revoke the leases of these jobs; return those that keep theirs, and why."""
        refused: dict[str, str] = {}
        for point, ours in self._by_point(jobs, {}):
            ads = self._ads(point, ours, [UNTIL])
            leased = [job for job, ad in ads.items() if number(ad, UNTIL) > 0]
            found = self._edit(point, leased, UNTIL, "0")
            refused |= {job: why for job, why in found.items() if why != _LEFT_QUEUE}
        return refused

    def withdraw_all(self) -> int:
        """Revoke the leases of all jobs and return how many jobs had one.

        Raises:
            PeerError: some of these edits were refused.
        """
        n = 0
        for point in self._points.values():
            ads = self._query(point, f"{UNTIL} > 0", [])
            jobs = [job_name(ad, point.name) for ad in ads]
            if refused := self._edit(point, jobs, UNTIL, "0"):
                job, why = next(iter(refused.items()))
                raise PeerError(
                    f"{len(refused)} of {len(jobs)} jobs keep their lease: {job}: {why}"
                )
            n += len(jobs)
        return n

    def _refuse_second_instance(self, point: AccessPoint) -> None:
        others = f"{UNTIL} > time() && {BY} =!= {quote(self._terms.by)}"
        for ad in self._query(point, others, [BY]):
            raise PeerError(
                f"another Outrider acts here: {job_name(ad, point.name)} has a lease by "
                f"{ad.get(BY)}, this is {self._terms.by}; expected only one to act on a pool"
            )

    def _until_s(self, ad: Any) -> int:
        """Return the end of a lease from now, by the schedd's clock, in whole seconds."""
        server_s, lease_s = number(ad, "ServerTime") or self._now(), self._terms.lease_s
        if abs(server_s - self._now()) > lease_s / 4.0:
            raise PeerError(
                f"the access point's clock differs by {server_s - self._now():+.0f} s from this "
                f"host's; expected less than a quarter of lease_s, {lease_s / 4.0:g} s"
            )
        step = max(1, int(lease_s / _STEPS_PER_LEASE))
        return int(server_s + lease_s) // step * step

    def _machine_groups(self, machines: set[str]) -> dict[str, str]:
        """Return the groups of machines that their slots name; the cache expires after a minute."""
        aged = self._now() - self._groups_at_s > _GROUPS_CACHE_S
        if machines and (aged or not machines <= self._groups.keys()):
            calls, attributes = self._calls, ["Name", self._terms.cluster_attribute]
            try:
                ads = calls.collector.query(calls.slot_ads, "true", attributes)
            except calls.failure as error:
                raise PeerError(f"the collector does not answer: {error}") from error
            clusters = (
                (machine_of_slot(ad["Name"]), ad.get(self._terms.cluster_attribute)) for ad in ads
            )
            self._groups = {name: group for name, group in clusters if isinstance(group, str)}
            self._groups_at_s = self._now()
        return self._groups

    def _supports_leases(self, job: str, ad: Any) -> bool:
        if job not in self._supporting and supports_leases(ad):
            if len(self._supporting) >= _MAX_SUPPORTING:
                self._supporting.clear()
            self._supporting.add(job)
        return job in self._supporting

    def _no_group(self, wanted: Wanted) -> str:
        return (
            f"no slot of machine {wanted.machine} names its group ({self._terms.cluster_attribute})"
        )

    def _by_point(
        self, jobs: Iterable[str], refused: dict[str, str]
    ) -> list[tuple[AccessPoint, list[str]]]:
        """Return jobs by access point; jobs of an access point that is not watched are refused."""
        found = []
        for name, group in groupby(sorted(jobs), lambda job: job.rpartition("#")[0]):
            if name in self._points:
                found.append((self._points[name], list(group)))
            else:
                refused |= dict.fromkeys(group, f"no access point {name} is watched")
        return found

    def _ads(
        self, point: AccessPoint, jobs: Sequence[str], attributes: list[str]
    ) -> dict[str, Any]:
        """Return the ads of those jobs that are in the queue, by name."""
        wanted = set(jobs)
        ads = self._query(point, in_clusters(jobs), attributes)
        named = ((job_name(ad, point.name), ad) for ad in ads)
        return {name: ad for name, ad in named if name in wanted}

    def _query(self, point: AccessPoint, constraint: str, attributes: list[str]) -> Sequence[Any]:
        return self._ask(
            point, lambda: point.schedd.query(constraint, [*ID_ATTRIBUTES, *attributes])
        )

    def _edit(
        self, point: AccessPoint, jobs: Sequence[str], name: str, value: str
    ) -> dict[str, str]:
        if not jobs:
            return {}
        return self._ask(point, lambda: edit_and_read_back(point, jobs, name, value))

    def _ask(self, point: AccessPoint, question: Callable[[], T]) -> T:
        try:
            return question()
        except point.failure as error:
            raise PeerError(f"the access point {point.name} does not answer: {error}") from error


def _value(ad: Any, name: str) -> str:
    return str(ad.lookup(name)) if name in ad else UNSET
