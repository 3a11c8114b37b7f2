"""Leases of jobs in the queues of a pool: set, renewed, taken back, each read back."""

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
# Attributes of jobs that Outrider sets for a while, and the configuration that heeds them.
#
# ``Requirements``, ``Rank`` and ``PreJobPrio1`` of every job get a part at submission
# (`LEASES_CONFIG`) that reads them, and only while `UNTIL` is ahead. So when nobody renews that, a
# job is as its user submitted it, on the clock of whoever matches it.

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
"""The reason of a hold by `HELD`."""
LEASES_CONFIG: Final = (
    resources.files("outrider_adapters.htcondor")
    .joinpath("outrider-leases.config")
    .read_text(encoding="utf-8")
)
"""What the administrator of an access point installs, with its explanation."""


class LeaseTerms(NamedTuple):
    """How leases of a pool are made.

    Attributes:
        by: who sets them: one name for each Outrider that may act on the pool.
        lease_s: how long what is set lasts.
        cluster_attribute: of slot ads, names a machine's group.
        pins: for a job that is to start no machine of another group will do; else it prefers those
            of its group.
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
    """What is to stand for a job.

    Attributes:
        hold: it stays in the queue.
        machine: on a machine of whose group it is to run; empty where it stays in the queue.
    """

    hold: bool
    machine: str = ""


def values_of(wanted: Wanted, cluster: str, terms: LeaseTerms) -> dict[str, str]:
    """The attributes that say so, but for `UNTIL`, as ClassAd expressions.

    >>> values_of(Wanted(hold=True), "", LeaseTerms("pool@host", 300.0))[HOLD]
    'true'

    Args:
        wanted: what is to stand.
        cluster: the machine group; empty where the job stays in the queue.
        terms: how leases are made here.
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


def heeds(ad: Any) -> bool:
    """Return whether a job's requirements read the attributes."""
    return (
        UNTIL.lower() in str(ad.lookup("Requirements")).lower() if "Requirements" in ad else False
    )


# -- lease edits -----------------------------------------------------------------------------------

T = TypeVar("T")
_ROUND: Final = 6
"""Leases end on multiples of their length divided by this, so that many jobs have the same end:
the negotiator judges jobs of different ends apart."""
_MOST_HEEDING: Final = 50_000
_GROUPS_FOR_S: Final = 60.0
_GONE: Final = "it has left the queue"
_DEAF: Final = (
    "its Requirements do not read OutriderUntil: it was submitted before Outrider's leases were "
    "installed, or its Requirements were edited since"
)


class LeaseEdits:
    """Sets the attributes of `outrider_adapters.htcondor.lease_edits`.

    Args:
        calls: whom to ask, with the right to edit everybody's jobs.
        terms: how leases are made here.
        now: this host's clock, Unix seconds.

    All methods raise `PeerError` if the pool does not answer.
    """

    def __init__(self, calls: PoolCalls, terms: LeaseTerms, now: Callable[[], float]) -> None:
        self._calls = calls
        self._points = {point.name: point for point in calls.access_points}
        self._terms = terms
        self._now = now
        self._heeding: set[str] = set()
        """Jobs whose requirements need not be read again to renew their leases."""
        self._groups: dict[str, str] = {}
        self._groups_at_s = -_GROUPS_FOR_S

    def apply(self, wanted: Mapping[str, Wanted]) -> dict[str, str]:
        """Let this stand for some jobs, by their names, for a lease from now.

        Returns:
            the jobs for which it does not, and why.

        Raises:
            PeerError: another Outrider acts here, or a clock is off by more than a quarter lease.
        """
        groups = self._machine_groups({w.machine for w in wanted.values() if w.machine})
        refused = {job: self._nowhere(w) for job, w in wanted.items()
                   if w.machine and w.machine not in groups}  # fmt: skip
        for point, jobs in self._by_point(wanted.keys() - refused.keys(), refused):
            self._refuse_a_second(point)
            attributes = [*ALL, "ServerTime"]
            if not self._heeding.issuperset(jobs):
                attributes.append("Requirements")
            ads = self._ads(point, jobs, attributes)
            refused |= {job: _GONE for job in jobs if job not in ads}
            refused |= {job: _DEAF for job, ad in ads.items() if not self._heeds(job, ad)}
            left = {job: ad for job, ad in ads.items() if job not in refused}
            if not left:
                continue
            until_s = self._until_s(next(iter(left.values())))
            edits: dict[tuple[str, str], list[str]] = {}
            for job, ad in left.items():
                group = groups.get(wanted[job].machine, "")
                values = values_of(wanted[job], group, self._terms)
                for name, value in values.items():
                    if _said(ad, name) != value:
                        edits.setdefault((name, value), []).append(job)
            edits[UNTIL, str(until_s)] = list(left)  # last: nothing is heeded before it
            for (name, value), edited in edits.items():
                todo = [job for job in edited if job not in refused]
                refused |= self._edit(point, todo, name, value)
        return refused

    def withdraw(self, jobs: Iterable[str]) -> dict[str, str]:
        """Let nothing stand for these jobs; those for which it does still, and why."""
        refused: dict[str, str] = {}
        for point, ours in self._by_point(jobs, {}):
            ads = self._ads(point, ours, [UNTIL])
            standing = [job for job, ad in ads.items() if number(ad, UNTIL) > 0]
            found = self._edit(point, standing, UNTIL, "0")
            refused |= {job: why for job, why in found.items() if why != _GONE}
        return refused

    def withdraw_all(self) -> int:
        """Let nothing stand for any job; of how many it did.

        Raises:
            PeerError: for some of them it was refused.
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

    def _refuse_a_second(self, point: AccessPoint) -> None:
        others = f"{UNTIL} > time() && {BY} =!= {quote(self._terms.by)}"
        for ad in self._query(point, others, [BY]):
            raise PeerError(
                f"another Outrider acts here: {job_name(ad, point.name)} has a lease by "
                f"{ad.get(BY)}, this is {self._terms.by}; expected one that acts on a pool"
            )

    def _until_s(self, ad: Any) -> int:
        """The end of a lease from now, by the schedd's clock, in whole seconds."""
        server_s, lease_s = number(ad, "ServerTime") or self._now(), self._terms.lease_s
        if abs(server_s - self._now()) > lease_s / 4.0:
            raise PeerError(
                f"the access point's clock differs by {server_s - self._now():+.0f} s from this "
                f"host's; expected less than a quarter of lease_s, {lease_s / 4.0:g} s"
            )
        step = max(1, int(lease_s / _ROUND))
        return int(server_s + lease_s) // step * step

    def _machine_groups(self, machines: set[str]) -> dict[str, str]:
        """The groups of machines, as their slots name them; asked again after a minute."""
        aged = self._now() - self._groups_at_s > _GROUPS_FOR_S
        if machines and (aged or not machines <= self._groups.keys()):
            calls, attributes = self._calls, ["Name", self._terms.cluster_attribute]
            try:
                ads = calls.collector.query(calls.slot_ads, "true", attributes)
            except calls.failure as error:
                raise PeerError(f"the collector does not answer: {error}") from error
            told = (
                (machine_of_slot(ad["Name"]), ad.get(self._terms.cluster_attribute)) for ad in ads
            )
            self._groups = {name: group for name, group in told if isinstance(group, str)}
            self._groups_at_s = self._now()
        return self._groups

    def _heeds(self, job: str, ad: Any) -> bool:
        if job not in self._heeding and heeds(ad):
            if len(self._heeding) >= _MOST_HEEDING:
                self._heeding.clear()
            self._heeding.add(job)
        return job in self._heeding

    def _nowhere(self, wanted: Wanted) -> str:
        return (
            f"no slot of machine {wanted.machine} names its group ({self._terms.cluster_attribute})"
        )

    def _by_point(
        self, jobs: Iterable[str], refused: dict[str, str]
    ) -> list[tuple[AccessPoint, list[str]]]:
        """Jobs by their access point; those of none of ours are refused."""
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
        """The ads of those jobs that are in the queue, by name."""
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


def _said(ad: Any, name: str) -> str:
    return str(ad.lookup(name)) if name in ad else UNSET
