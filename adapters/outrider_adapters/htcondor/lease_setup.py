"""Whether an access point heeds leases, as ``outrider doctor`` tells it."""

from collections.abc import Callable

from outrider_adapters.htcondor.lease_edits import ALL, UNTIL
from outrider_adapters.htcondor.pool_calls import AccessPoint
from outrider_adapters.htcondor.real_pool import Finding

TRANSFORM = "OutriderLeases"
_INSTALL = "`outrider levers htcondor` prints what to install"


def lease_finding(point: AccessPoint, setting: Callable[[str], str]) -> Finding:
    """What of the leases is installed at an access point, and how many jobs heed them.

    Args:
        point: the access point.
        setting: the value of a setting of its schedd; raises `AccessPoint.failure` if that cannot
            be read.
    """
    what = f"leases at {point.name}"
    try:
        transforms = _words(setting("JOB_TRANSFORM_NAMES"))
        protected = _words(setting("PROTECTED_JOB_ATTRS"))
        superusers = _words(setting("QUEUE_SUPER_USERS"))
        if TRANSFORM.lower() not in map(str.lower, transforms):
            return what, "ok", f"not installed; canary and active need them: {_INSTALL}", ""
        waiting = point.schedd.query("JobStatus == 1", ["ClusterId"])
        heeds = f'JobStatus == 1 && regexp("{UNTIL}", unparse(Requirements), "i")'
        heeding = point.schedd.query(heeds, ["ClusterId"])
    except point.failure as error:
        return what, "warn", f"cannot be told: {error}", "let this host read (ALLOW_READ)"
    open_to_users = [name for name in ALL if name.lower() not in map(str.lower, protected)]
    if open_to_users:
        found = f"users may edit {', '.join(open_to_users)}"
        return what, "fail", found, f"name them in PROTECTED_JOB_ATTRS: {_INSTALL}"
    told = f"installed; {len(heeding)} of {len(waiting)} waiting jobs heed them"
    return what, "ok", f"{told}; may be set by {', '.join(superusers)}", ""


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()
