"""Leases proved on a job of Outrider's own: submitted on hold, it never runs, and is removed."""

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

from outrider.api import OutriderError
from outrider_adapters.htcondor.bindings import JobAction
from outrider_adapters.htcondor.diagnosis import Finding
from outrider_adapters.htcondor.lease_attributes import ALL, UNTIL, LeaseTerms, Wanted, values_of
from outrider_adapters.htcondor.lease_edits import LeaseEdits
from outrider_adapters.htcondor.pool_calls import (
    ID_ATTRIBUTES,
    AccessPoint,
    job_name,
    number,
    short_id,
)

_JOB: Final[Mapping[str, str]] = {
    "universe": "vanilla",
    "executable": "/bin/true",
    "transfer_executable": "false",
    "initialdir": "/",
    "hold": "true",
    "batch_name": "outrider doctor",
}
_ACCOUNT: Final = (
    "to edit the jobs of others Outrider needs no account there; to try it here, give it one, or "
    "begin with a canary"
)
_SUPERUSER: Final = (
    "let the schedd know this user and name it in QUEUE_SUPER_USERS: `outrider levers htcondor` "
    "explains it"
)
_INSTALL: Final = "install what `outrider levers htcondor` prints, then condor_reconfig"
_KEPT: Final = Wanted(hold=True)


class Submitting(Protocol):
    """A schedd that takes jobs."""

    def submit(self, description: Mapping[str, str]) -> int:
        """Submit one job; the number of its job cluster."""
        ...


class _Fault(NamedTuple):
    found: str
    remedy: str


def proved(point: AccessPoint, schedd: Submitting, edits: LeaseEdits, terms: LeaseTerms) -> Finding:
    """Whether a job at an access point gets a lease, shows it, and loses it again.

    Args:
        point: the access point.
        schedd: of it.
        edits: of the pool.
        terms: of the leases.
    """
    what = f"lever at {point.name}"
    began_s = time.monotonic()
    try:
        cluster = schedd.submit(_JOB)
    except point.failure as error:
        return what, "warn", f"cannot be tried: it may submit no job of its own: {error}", _ACCOUNT
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
    found = f"its own job {cluster}.0 was kept by a lease, let go, and removed, in {took_ms:.0f} ms"
    return what, "ok", found, ""


def _fault_of_lease(
    point: AccessPoint, cluster: int, edits: LeaseEdits, terms: LeaseTerms
) -> _Fault | None:
    """Give the job a lease and take it back, each read back; what is not as it should be."""
    job = job_name(_ad(point, cluster), point.name)
    refused = edits.apply({job: _KEPT})
    if job in refused:
        deaf = "Requirements" in refused[job]
        return _Fault(f"a lease is refused: {refused[job]}", _INSTALL if deaf else _SUPERUSER)
    shown = _ad(point, cluster)
    for name, value in values_of(_KEPT, "", terms).items():
        said = str(shown.lookup(name)) if name in shown else "undefined"
        if said != value:
            return _Fault(f"of a lease {name} shows {said}, and not {value}", _INSTALL)
    if refused := edits.withdraw([job]):
        return _Fault(f"a lease is not taken back: {refused[job]}", _SUPERUSER)
    if number(_ad(point, cluster), UNTIL) > 0:
        return _Fault(f"a lease of {short_id(job)} that was taken back still shows", _SUPERUSER)
    return None


def _ad(point: AccessPoint, cluster: int) -> Any:
    return point.schedd.query(f"ClusterId == {cluster}", [*ID_ATTRIBUTES, *ALL])[0]
