"""Interface of the calls to an HTCondor pool: a subset of ``htcondor2``.

``htcondor2.Schedd`` and ``htcondor2.Collector`` implement them, and so does the mock pool. The
calls block for as long as the pool takes to answer.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from outrider.api import MissingPackageError

CLOCKS_DIFFER_S: Final = 60
"""Largest tolerated difference between the clock of a schedd and ours, in seconds."""
ID_ATTRIBUTES: Final = ("ClusterId", "ProcId", "GlobalJobId")
"""Attributes of a job ad that `job_name` and `is_of` read."""
Ad: TypeAlias = Mapping[str, Any]
"""A ClassAd: attributes by name. Plain values as Python's, the rest as expressions."""


class ScheddCalls(Protocol):
    """Calls to the queue of a schedd."""

    def query(self, constraint: str = ..., projection: list[str] = ...) -> Sequence[Any]:
        """Return the ads of the jobs in the queue for which the constraint holds."""
        ...

    def history(
        self, constraint: str, projection: list[str], match: int = ..., since: Any = ...
    ) -> Sequence[Any]:
        """Return the ads of jobs that have left the queue, the newest first.

        At most `match` of them (-1: all), and none from the first on for which `since` holds.
        """
        ...

    def edit(self, job_spec: list[str], attr: str, value: str) -> int:
        """Set an attribute of jobs in one transaction; the number that it reports is no proof.

        An edit of another user's job raises, or is reported as done and changes nothing. If it
        raises, none of the jobs is changed: one that has left the queue is enough.
        """
        ...

    def act(self, action: Any, job_spec: list[str], reason: str = ...) -> Ad:
        """Hold, release, remove, vacate jobs. A refusal is counted in the answer, not raised."""
        ...


class CollectorCalls(Protocol):
    """Calls to the collector, which knows the members of the pool."""

    def query(self, ad_type: Any, constraint: str = ..., projection: list[str] = ...) -> Any:
        """Return the ads of a type for which the constraint holds."""
        ...


class AccessPoint(NamedTuple):
    """An access point: a schedd with its own queue.

    Attributes:
        name: name in the schedd's own ad; the prefix of the names of its jobs.
        schedd: calls to the schedd.
        failure: exception of every call without an answer (``htcondor2.HTCondorException``).
    """

    name: str
    schedd: ScheddCalls
    failure: type[Exception]


class PoolCalls(NamedTuple):
    """The pool that is watched.

    Attributes:
        collector: calls to the collector, which knows the slots.
        slot_ads: the collector's type of slot ads (``htcondor2.AdType.Startd``).
        failure: see `AccessPoint`.
        access_points: the access points whose jobs are watched.
        accounting_ads, submitter_ads: the collector's types of ads of users' priorities, and of
            their jobs at an access point; None: it has none.
        negotiator_ads: the type of the negotiator's ads; None: it has none.
        collector_ads: the type of the collector's own ads; None: it has none.
        accounts: returns the accounting ads of all users, by the negotiator; raises `failure`.
            None: it cannot be asked.
    """

    collector: CollectorCalls
    slot_ads: Any
    failure: type[Exception]
    access_points: tuple[AccessPoint, ...]
    accounting_ads: Any = None
    submitter_ads: Any = None
    negotiator_ads: Any = None
    collector_ads: Any = None
    accounts: Callable[[], Sequence[Ad]] | None = None


def edit_and_read_back(
    point: AccessPoint, jobs: Sequence[str], attribute: str, value: str
) -> dict[str, str]:
    """Set an attribute of jobs and read it back from the queue.

    Args:
        point: the access point of the queue.
        jobs: names of the jobs (`job_name`).
        attribute: name of the attribute.
        value: the new value, a ClassAd expression.

    Returns:
        the jobs that do not have the new value, and why: they belong to another user, the
        attribute is protected, or they have left the queue.

    Raises:
        HTCondorException: the schedd does not answer (`AccessPoint.failure`).
    """
    from classad2 import ExprTree  # here: a client that only watches needs no bindings

    complaints = _edit(point, jobs, attribute, value)
    found = _read(point, jobs, attribute)
    wanted = str(ExprTree(value))
    refused: dict[str, str] = {}
    for job in jobs:
        if job not in found:
            refused[job] = "it has left the queue"
        elif found[job] != wanted:
            silently = f"reported as done, but {attribute} is {found[job]}"
            refused[job] = complaints.get(job, silently)
    return refused


def _edit(point: AccessPoint, jobs: Sequence[str], attribute: str, value: str) -> dict[str, str]:
    """Edit jobs in one transaction; if that fails, one by one.

    Returns:
        the schedd's error for each job that it refused.
    """
    try:
        point.schedd.edit([short_id(job) for job in jobs], attribute, value)
    except point.failure:
        pass
    else:
        return {}
    complaints: dict[str, str] = {}
    for job in _read(point, jobs, attribute):
        try:
            point.schedd.edit([short_id(job)], attribute, value)
        except point.failure as error:
            complaints[job] = str(error)
    return complaints


def _read(point: AccessPoint, jobs: Sequence[str], attribute: str) -> dict[str, str]:
    """Return the attribute's value in the queue, of those jobs that are there."""
    ads = point.schedd.query(in_clusters(jobs), [*ID_ATTRIBUTES, attribute])
    values = {
        job_name(ad, point.name): str(ad.lookup(attribute)) if attribute in ad else "" for ad in ads
    }
    return {job: values[job] for job in jobs if job in values}


def number(ad: Any, name: str) -> float:
    """Return a number of an ad, evaluated where it is an expression; 0 where there is none.

    Undefined values are enumerations of integers in ``classad2``, and no numbers. Users may write
    anything into their ads: a value that is not a finite number counts as none.
    """
    value = ad.get(name)
    if value is not None and type(value) not in (int, float) and hasattr(ad, "eval"):
        value = ad.eval(name)
    return float(value) if type(value) in (int, float) and isfinite(value) else 0.0


def job_name(ad: Ad, schedd_name: str) -> str:
    """Return a job's name: that of its access point, and its id there.

    The ``GlobalJobId`` contains the same until its user edits it, which HTCondor allows.

    >>> job_name({"ClusterId": 12, "ProcId": 0, "GlobalJobId": "other#1.0#1795231020"}, "ap1")
    'ap1#12.0'
    """
    return f"{schedd_name}#{ad['ClusterId']}.{ad['ProcId']}"


def is_of(ad: Ad, schedd_name: str) -> bool:
    """Return whether an ad of a history is of this schedd; several schedds may share the file."""
    return str(ad.get("GlobalJobId") or "").startswith(f"{schedd_name}#")


def left_by_name(ads: Iterable[Ad], schedd_name: str) -> dict[str, Ad]:
    """Return ads of a history by job name; this schedd's, if two have the same name."""
    found: dict[str, Ad] = {}
    for ad in ads:
        name = job_name(ad, schedd_name)
        if name not in found or is_of(ad, schedd_name):
            found[name] = ad
    return found


def left_before(time_s: float) -> str:
    """Return where to stop in a history, for jobs that left the queue after a time (Unix seconds).

    Without it the schedd reads its whole history, which may be of years.

    >>> left_before(1_000.5)
    'EnteredCurrentStatus < 940'
    """
    return f"EnteredCurrentStatus < {int(time_s) - CLOCKS_DIFFER_S}"


def short_id(job: str) -> str:
    """Return a job's id as its own schedd spells it.

    >>> short_id("ap1#12.0")
    '12.0'
    """
    return job.rpartition("#")[2]


def in_clusters(jobs: Iterable[str]) -> str:
    """Return a constraint that holds for some jobs and few others; it stays short.

    >>> in_clusters(["ap1#12.0", "ap1#12.1", "ap1#9.0"])
    'member(ClusterId, {9,12}) && ProcId >= 0 && ProcId <= 1'
    """
    ids = [short_id(job).partition(".") for job in jobs]
    clusters = sorted({int(cluster) for cluster, _, _ in ids})
    procs = [int(proc) for _, _, proc in ids]
    least, most = min(procs, default=0), max(procs, default=0)
    among = f"member(ClusterId, {{{','.join(map(str, clusters))}}})"
    return f"{among} && ProcId >= {least} && ProcId <= {most}"


UNREADABLE: Final = "(not UTF-8)"
"""Value in place of one that is no UTF-8."""


def readable(ads: Sequence[Any]) -> Sequence[Any]:
    """Return ads, with `UNREADABLE` in place of values that are no UTF-8.

    Users may write any bytes into their ads. Reading such a value raises an error that is none of
    HTCondor's, and one job would hide all the others.
    """
    for ad in ads:
        if not _is_readable(ad):
            for name in ad:
                one = ClassAd()
                one[name] = ad.lookup(name)
                if not _is_readable(one):
                    ad[name] = UNREADABLE
    return ads


def _is_readable(ad: Any) -> bool:
    try:
        if isinstance(ad, ClassAd):
            ad.printOld()
    except UnicodeDecodeError:
        return False
    return True


# -- bindings --------------------------------------------------------------------------------------
# HTCondor's Python bindings, imported in the one order in which ClassAds evaluate.
#
# ``htcondor2`` comes first: it registers the functions (``split``, ``stringListMember``, ...)
# without which every real job's ``Requirements`` is an error and no match is ever found, silently.
# On import it also sets ``CONDOR_CONFIG=/dev/null`` where no pool is configured. Everything here
# takes the bindings from this module, never from the packages themselves.
#
# Raises:
#     MissingPackageError: on import, where the bindings are not installed.

try:
    import htcondor2
    from classad2 import ClassAd, ClassAdException, ExprTree, quote
except ImportError as error:
    raise MissingPackageError(
        f"needs HTCondor's Python bindings ({error}): pip install 'outrider[htcondor]'"
    ) from error
AdType = htcondor2.AdType
DaemonType = htcondor2.DaemonType
HTCondorException = htcondor2.HTCondorException
JobAction = htcondor2.JobAction
JobStatus = htcondor2.JobStatus
SubmitResult = htcondor2.SubmitResult
__all__ = [
    "AdType",
    "ClassAd",
    "ClassAdException",
    "DaemonType",
    "ExprTree",
    "HTCondorException",
    "JobAction",
    "JobStatus",
    "SubmitResult",
    "htcondor2",
    "quote",
]
