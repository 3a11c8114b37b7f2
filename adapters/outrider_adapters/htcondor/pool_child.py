"""Child's end of `outrider_adapters.htcondor.pool_process`: queries the pool and answers."""

import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from outrider.api import Batch, OutriderError, PeerError, WaitingReason
from outrider_adapters.htcondor.failed_calls import MESSAGES, UnreachableError, negotiator_finding
from outrider_adapters.htcondor.lease_edits import (
    ALL,
    UNTIL,
    LeaseEdits,
    LeaseTerms,
    Wanted,
    values_of,
)
from outrider_adapters.htcondor.locating import (
    LocatedSchedd,
    answer_within,
    event_logs_of,
    located,
    setting_of,
    use_passed_tokens,
)
from outrider_adapters.htcondor.pool_calls import (
    ID_ATTRIBUTES,
    AccessPoint,
    HTCondorException,
    JobAction,
    PoolCalls,
    job_name,
    number,
    short_id,
)
from outrider_adapters.htcondor.pool_process import (
    ATTRIBUTES,
    BEGIN,
    DIAGNOSE,
    HOSTS_AND_LOGS,
    LEASE,
    LOOK,
    PROVE,
    RELEASE,
    RELEASE_ALL,
    SAME_CURSOR,
    WHY,
)
from outrider_adapters.htcondor.pool_watch import PoolWatch
from outrider_adapters.htcondor.questions import ask_why
from outrider_adapters.htcondor.real_pool import Finding, HostsAndLogs, diagnosed, hosts_and_logs
from outrider_adapters.htcondor.settings import HTCondorSettings
from outrider_adapters.htcondor.slots import WHOLE_SLOTS
from outrider_adapters.readers.htcondor.job_ads import machine_of_slot


class _Pool:
    """Pool of an adapter, located when it is first needed.

    Args:
        settings: settings of the adapter.
    """

    def __init__(self, settings: HTCondorSettings) -> None:
        self._settings = settings
        self._watched: tuple[PoolWatch, PoolCalls] | None = None
        self._edits: LeaseEdits | None = None
        self._cursor: Any = None

    def begin(self, cursor: Any) -> None:
        settings = self._settings
        calls, ads = located(settings.collector, settings.access_points)
        logs = event_logs_of(ads, settings)
        starts_now = settings.start_at == "now"
        watch = PoolWatch(calls, logs, settings, time.time, starts_now, time.sleep)
        self._watched = watch, calls
        watch.start(cursor)

    def look(self, _: None) -> Batch:
        if self._watched is None:
            raise RuntimeError("look() before begin()")
        batch = self._watched[0].look()
        if batch.cursor is self._cursor:
            return msgspec.structs.replace(batch, cursor=SAME_CURSOR)
        self._cursor = batch.cursor
        return batch

    def why(self, job: str) -> WaitingReason | None:
        if self._watched is None:
            raise PeerError("the pool has not been found yet")
        return ask_why(*self._watched, job)

    def lease(self, asked: tuple[LeaseTerms, Mapping[str, Wanted]]) -> dict[str, str]:
        terms, wanted = asked
        return self._edits_on(terms).apply(wanted)

    def release(self, asked: tuple[LeaseTerms, Sequence[str]]) -> dict[str, str]:
        terms, jobs = asked
        return self._edits_on(terms).withdraw(jobs)

    def release_all(self, terms: LeaseTerms) -> int:
        return self._edits_on(terms).withdraw_all()

    def prove(self, terms: LeaseTerms) -> list[Finding]:
        settings = self._settings
        calls, ads = located(settings.collector, settings.access_points)
        edits = LeaseEdits(calls, terms, time.time)
        return [
            proved(point, LocatedSchedd(None, point.name, ads[point.name]), edits, terms)
            for point in calls.access_points
        ]

    def diagnose(self, _: None) -> list[Finding]:
        settings = self._settings
        try:
            calls, ads = located(settings.collector, settings.access_points)
        except UnreachableError as error:
            return [("collector", "fail", *error.cause)]
        found = list(diagnosed(calls, event_logs_of(ads, settings), settings.queue_s))
        found.append(negotiator_finding(calls.collector, time.time()))
        return found + [
            lease_finding(point, setting_of(ads[point.name])) for point in calls.access_points
        ]

    def attributes(self, _: None) -> dict[str, dict[str, str]]:
        calls, _ads = located(self._settings.collector, self._settings.access_points)
        try:
            return site_attributes(calls.collector.query(calls.slot_ads, WHOLE_SLOTS, []))
        except HTCondorException as error:
            raise PeerError(f"the collector does not answer: {error}") from error

    def hosts_and_logs(self, _: None) -> HostsAndLogs:
        return hosts_and_logs(self._settings)

    def _edits_on(self, terms: LeaseTerms) -> LeaseEdits:
        if self._edits is None:
            calls, _ = located(self._settings.collector, self._settings.access_points)
            self._edits = LeaseEdits(calls, terms, time.time)
        return self._edits


def main() -> None:
    """Answer questions until the parent closes the connection."""
    connection = Connection(int(sys.argv[1]))
    settings: HTCondorSettings = connection.recv()
    answer_within(settings.answer_within_s)
    MESSAGES.keep()
    use_passed_tokens()
    pool = _Pool(settings)
    answers: Final[dict[str, Callable[[Any], Any]]] = {
        BEGIN: pool.begin,
        LOOK: pool.look,
        WHY: pool.why,
        LEASE: pool.lease,
        RELEASE: pool.release,
        RELEASE_ALL: pool.release_all,
        PROVE: pool.prove,
        DIAGNOSE: pool.diagnose,
        ATTRIBUTES: pool.attributes,
        HOSTS_AND_LOGS: pool.hosts_and_logs,
    }
    while True:
        try:
            question, argument = connection.recv()
        except (EOFError, OSError):
            return
        answer, failure = None, None
        MESSAGES.take()  # those of earlier questions: they would pile up, and name wrong causes
        try:
            answer = answers[question](argument)
        except Exception as error:  # noqa: BLE001 - sent to the parent, which raises it
            expected = isinstance(error, OutriderError)
            kind = PeerError.__name__ if expected else type(error).__name__
            failure = (kind, str(error), traceback.format_exc())
        try:
            connection.send((answer, failure))
        except OSError:
            return


# -- lease proof -----------------------------------------------------------------------------------
# Proof of leases on a test job: submitted on hold, it never runs, and is removed.

_JOB: Final[Mapping[str, str]] = {
    "universe": "vanilla",
    "executable": "/bin/true",
    "transfer_executable": "false",
    "initialdir": "/",
    "hold": "true",
    "batch_name": "outrider doctor",
}
_ACCOUNT: Final = (
    "Outrider needs no account there to edit the jobs of others; to try it here, create one, or "
    "begin with a canary"
)
_SUPERUSER: Final = (
    "add this user to the schedd and to QUEUE_SUPER_USERS: `outrider levers htcondor` explains it"
)
_INSTALL: Final = "install what `outrider levers htcondor` prints, then condor_reconfig"
_KEPT: Final = Wanted(hold=True)


class Submitting(Protocol):
    """Interface of a schedd that accepts jobs."""

    def submit(self, description: Mapping[str, str]) -> int:
        """Submit one job and return the number of its job cluster."""
        ...


class _Fault(NamedTuple):
    found: str
    remedy: str


def proved(point: AccessPoint, schedd: Submitting, edits: LeaseEdits, terms: LeaseTerms) -> Finding:
    """Try a lease on a test job at an access point: set it, read it, revoke it.

    Args:
        point: the access point.
        schedd: its schedd.
        edits: editor of leases in the pool.
        terms: settings of the leases.
    """
    what = f"lever at {point.name}"
    began_s = time.monotonic()
    try:
        cluster = schedd.submit(_JOB)
    except point.failure as error:
        return what, "warn", f"cannot be tried: this user may not submit a job: {error}", _ACCOUNT
    try:
        fault = _fault_of_lease(point, cluster, edits, terms)
    except (OutriderError, point.failure) as error:
        fault = _Fault(str(error), _SUPERUSER)
    finally:
        with suppress(point.failure):
            point.schedd.act(JobAction.Remove, [f"{cluster}.0"])
    if fault is not None:
        return what, "fail", fault.found, fault.remedy
    took_ms = 1000.0 * (time.monotonic() - began_s)
    found = (
        f"test job {cluster}.0 was held back by a lease, released and removed in {took_ms:.0f} ms"
    )
    return what, "ok", found, ""


def _fault_of_lease(
    point: AccessPoint, cluster: int, edits: LeaseEdits, terms: LeaseTerms
) -> _Fault | None:
    """Set and revoke a lease of the job, each read back; return the fault, if any."""
    job = job_name(_ad(point, cluster), point.name)
    refused = edits.apply({job: _KEPT})
    if job in refused:
        lacks_support = "Requirements" in refused[job]
        return _Fault(
            f"a lease is refused: {refused[job]}", _INSTALL if lacks_support else _SUPERUSER
        )
    shown = _ad(point, cluster)
    for name, value in values_of(_KEPT, "", terms).items():
        shown_value = str(shown.lookup(name)) if name in shown else "undefined"
        if shown_value != value:
            return _Fault(f"lease attribute {name} is {shown_value}; expected {value}", _INSTALL)
    if refused := edits.withdraw([job]):
        return _Fault(f"a lease is not revoked: {refused[job]}", _SUPERUSER)
    if number(_ad(point, cluster), UNTIL) > 0:
        return _Fault(f"a revoked lease of {short_id(job)} is still set", _SUPERUSER)
    return None


def _ad(point: AccessPoint, cluster: int) -> Any:
    return point.schedd.query(f"ClusterId == {cluster}", [*ID_ATTRIBUTES, *ALL])[0]


# -- site attributes -------------------------------------------------------------------------------
# Attributes that a site itself puts into slot ads, such as the room of a machine.

_BEGINNINGS: Final = (
    "Accounting", "Address", "Assigned", "Authenticat", "Available", "COLLECTOR_HOST", "CUDA",
    "CVMFS", "Child", "Client", "Concurrency", "Condor", "Detected", "Docker", "Drain", "GPUs_",
    "Has", "Hibernation", "Java", "Job", "OpSys", "Preempting", "PublicClaim", "Remote",
    "Singularity", "Slot", "Starter", "TransferPlugin", "Updates", "Utsname", "VM_", "WakeOnLan",
)  # fmt: skip
_NAMES: Final = frozenset(
    {
        "Activity", "Arch", "FileSystemDomain", "GlobalJobId", "HardwareAddress", "Machine",
        "MachineResources", "Microarch", "MyAddress", "MyType", "Name", "NodeName", "Owner",
        "StartdIpAddr", "State", "SubnetMask", "TargetType", "UidDomain", "User",
    }
)  # fmt: skip
"""Attributes with texts that HTCondor 23.9 itself writes, together with `_BEGINNINGS`."""
_LONGEST: Final = 100


def site_attributes(ads: Iterable[Any]) -> dict[str, dict[str, str]]:
    """Return the text attributes that HTCondor itself does not write, by machine.

    Args:
        ads: whole ads of slots.
    """
    found: dict[str, dict[str, str]] = {}
    for ad in ads:
        own = found.setdefault(machine_of_slot(str(ad["Name"])), {})
        for name, value in ad.items():
            if isinstance(value, str) and 0 < len(value) <= _LONGEST and _is_the_sites(name):
                own.setdefault(name, value)
    return found


def _is_the_sites(name: str) -> bool:
    return name not in _NAMES and not name.startswith(_BEGINNINGS)


# -- lease support ---------------------------------------------------------------------------------
# An access point's support for leases, for ``outrider doctor``.

TRANSFORM = "OutriderLeases"
_INSTALLS = "`outrider levers htcondor` prints what to install"


def lease_finding(point: AccessPoint, setting: Callable[[str], str]) -> Finding:
    """Return the state of the leases at an access point, and how many jobs support them.

    Args:
        point: the access point.
        setting: returns the value of a setting of its schedd; raises `AccessPoint.failure` if it
            cannot be read.
    """
    what = f"leases at {point.name}"
    try:
        transforms = _words(setting("JOB_TRANSFORM_NAMES"))
        protected = _words(setting("PROTECTED_JOB_ATTRS"))
        superusers = _words(setting("QUEUE_SUPER_USERS"))
        if TRANSFORM.lower() not in map(str.lower, transforms):
            return what, "ok", f"not installed; canary and active need them: {_INSTALLS}", ""
        waiting = point.schedd.query("JobStatus == 1", ["ClusterId"])
        with_support = f'JobStatus == 1 && regexp("{UNTIL}", unparse(Requirements), "i")'
        supporting = point.schedd.query(with_support, ["ClusterId"])
    except point.failure as error:
        return what, "warn", f"unknown: {error}", "let this host read (ALLOW_READ)"
    open_to_users = [name for name in ALL if name.lower() not in map(str.lower, protected)]
    if open_to_users:
        found = f"users may edit {', '.join(open_to_users)}"
        return what, "fail", found, f"name them in PROTECTED_JOB_ATTRS: {_INSTALLS}"
    detail = f"installed; {len(supporting)} of {len(waiting)} waiting jobs support them"
    return what, "ok", f"{detail}; may be set by {', '.join(superusers)}", ""


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()


if __name__ == "__main__":
    main()
