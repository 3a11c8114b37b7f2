"""Check of an access point's support for leases, for ``outrider doctor``."""

from collections.abc import Callable

from outrider_adapters.htcondor.lease_edits import ALL, UNTIL
from outrider_adapters.htcondor.pool_calls import AccessPoint
from outrider_adapters.htcondor.real_pool import Finding

TRANSFORM = "OutriderLeases"
_INSTALL = "`outrider levers htcondor` prints what to install"


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
            return what, "ok", f"not installed; canary and active need them: {_INSTALL}", ""
        waiting = point.schedd.query("JobStatus == 1", ["ClusterId"])
        with_support = f'JobStatus == 1 && regexp("{UNTIL}", unparse(Requirements), "i")'
        supporting = point.schedd.query(with_support, ["ClusterId"])
    except point.failure as error:
        return what, "warn", f"unknown: {error}", "let this host read (ALLOW_READ)"
    open_to_users = [name for name in ALL if name.lower() not in map(str.lower, protected)]
    if open_to_users:
        found = f"users may edit {', '.join(open_to_users)}"
        return what, "fail", found, f"name them in PROTECTED_JOB_ATTRS: {_INSTALL}"
    detail = f"installed; {len(supporting)} of {len(waiting)} waiting jobs support them"
    return what, "ok", f"{detail}; may be set by {', '.join(superusers)}", ""


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()
