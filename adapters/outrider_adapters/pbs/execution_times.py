"""When jobs of PBS may begin: their execution times, given by ``qalter -a`` and read back.

A job whose `Execution_Time` lies ahead is in the state W and has no `etime`. When the time comes
the server takes the attribute away, queues the job and sets `etime` to that moment. That is in the
sources of OpenPBS and of Torque (`job_wait_over` and `svr_setjobstate` of their svr_jobfunc.c);
``qalter -a`` is in the PBS Professional Reference Guide ("PBS Commands") and Torque's qalter(1B).
"""

import datetime as dt
from collections.abc import Mapping
from typing import Final, NamedTuple

from outrider.api import Undo
from outrider_adapters.noted_changes import before_of, is_own
from outrider_adapters.pbs.job_rows import time_s

LATE_S: Final = 60.0
"""The server looks at its timers, and may be busy: so much later it may queue a job."""
DEFERRED: Final = "W (Outrider's)"
"""In place of the state W where the time is ours."""
_WAITS: Final = frozenset("QTWH")


class WaitingJob(NamedTuple):
    """A job that waits; times are Unix seconds.

    Attributes:
        eligible_s: when it may begin; 0 at once, None: PBS keeps it back.
        changed_s: when it was changed last, by the server's clock; None: not told.
    """

    eligible_s: float | None
    changed_s: float | None


def waiting_jobs(shown: Mapping[str, Mapping[str, str]]) -> dict[str, WaitingJob]:
    """Those that wait, by name, of what ``qstat`` shows in the time zone UTC."""
    return {
        job: WaitingJob(_eligible_s(ad, dt.UTC), time_s(ad.get("mtime", ""), dt.UTC))
        for job, ad in shown.items()
        if ad.get("job_state", "") in _WAITS
    }


def as_its_user_left_it(
    ad: Mapping[str, str], known: Undo | None, zone: dt.tzinfo
) -> Mapping[str, str]:
    """The attributes of a job without the execution time that Outrider gave it.

    A job that Outrider keeps waits, for its policy as for its user: since when is counted from the
    time before.

    Args:
        ad: its attributes.
        known: what is noted of it.
        zone: of the times in them.
    """
    if known is None or not is_own(known, _eligible_s(ad, zone), LATE_S):
        return ad
    left = {name: value for name, value in ad.items() if name not in ("etime", "Execution_Time")}
    if left.get("job_state") == "W":
        left["job_state"] = "Q"
    if before_s := before_of(known).eligible_s:
        left["etime"] = f"{before_s:.0f}"
    return left


def qalter_words(begin_s: int, jobs: list[str]) -> list[str]:
    """The words of ``qalter``, run in the time zone UTC, that give jobs an execution time."""
    return ["-a", dt.datetime.fromtimestamp(begin_s, dt.UTC).strftime("%Y%m%d%H%M.%S"), *jobs]


def _eligible_s(ad: Mapping[str, str], zone: dt.tzinfo) -> float | None:
    state = ad.get("job_state", "")
    if state == "W":
        return time_s(ad.get("Execution_Time", ""), zone)
    return None if state == "H" else time_s(ad.get("etime", ""), zone) or 0.0
