"""Parser of jobs' attributes in ``qstat -f``, and their execution times."""

import datetime as dt
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from outrider.api import JobSpec, Resources, Undo
from outrider_adapters.noted_changes import before_of, is_own
from outrider_adapters.readers.pbs.specs import (
    NO_GROUP,
    NO_PROJECT,
    cpus_requested,
    duration_s,
    place_of,
)

WAITING, HELD, RUNNING, SUSPENDED, ENDED = range(5)
_STATUS: Final = {
    "Q": WAITING, "T": WAITING, "H": HELD, "W": HELD, "R": RUNNING, "E": RUNNING,
    "S": SUSPENDED, "U": SUSPENDED, "C": ENDED, "F": ENDED, "X": ENDED, "M": ENDED,
}  # fmt: skip
"""``job_state``; W waits for its time, U for the owner of the machine, M moved elsewhere."""
_CTIME: Final = "%a %b %d %H:%M:%S %Y"
_SIZE: Final = re.compile(r"(\d{1,15})\s*([kmgtp]?)(b|w)?", re.IGNORECASE)
_MIB: Final = {"": 2**-20, "k": 2**-10, "m": 1.0, "g": 2.0**10, "t": 2.0**20, "p": 2.0**30}
_WORD_BYTES: Final = 8
_CHUNK: Final = re.compile(r"(?:(\d{1,6}):)?(.*)", re.DOTALL)
_EXIT: Final = re.compile(r"-?\d{1,5}")
_VO_IN: Final = (
    ("Account_Name", ""), ("egroup", NO_GROUP), ("group_list", NO_GROUP), ("project", NO_PROJECT),
)  # fmt: skip
"""Attributes with the VO, in order of precedence, each with its value for *none*."""
_HOLDS: Final = {"u": "user", "o": "operator", "s": "system", "p": "bad_password"}


class JobRow(NamedTuple):
    """State of a job at a look.

    Attributes:
        status: one of `WAITING`, `HELD`, `RUNNING`, `SUSPENDED`, `ENDED`.
        submit_s: when it was created, Unix seconds.
        start_s: of its present or last run; None: it has none.
        end_s: of its last run, as far as the server reports it.
        machine, cpus: its machine, and its CPUs there.
        exit_status: None: not reported.
        moved: it was moved to another server.
        held_because: reason of its hold; empty: it is not held.
        spec: its request.
        planned_s: when the scheduler expects to start it, if it reports that.
    """

    status: int
    submit_s: float
    start_s: float | None
    end_s: float | None
    machine: str
    cpus: int
    exit_status: int | None
    moved: bool
    held_because: str
    spec: JobSpec
    planned_s: float | None = None


def row_of(ad: Mapping[str, str], zone: dt.tzinfo) -> JobRow:
    """Return a job's row, from its attributes.

    Args:
        ad: attributes; one with several parts by both names: ``Resource_List.walltime``.
        zone: of the server's clock, for times that are written as text.

    Raises:
        ValueError: its state or its time of creation cannot be parsed.
    """
    state = ad.get("job_state", "")
    if state not in _STATUS:
        raise ValueError(f"job_state={state!r}; expected one of {''.join(_STATUS)}")
    submit_s = time_s(ad.get("ctime", "") or ad.get("qtime", ""), zone)
    if submit_s is None:
        raise ValueError("no ctime")
    status = _STATUS[state]
    start_s = time_s(ad.get("stime", "") or ad.get("start_time", ""), zone)
    if status in (WAITING, HELD):
        start_s = None  # it belongs to an earlier run
    exec_host = ad.get("exec_host", "")
    machine, cpus = place_of(exec_host) if exec_host else ("", 0)
    exit_status = ad.get("Exit_status", ad.get("exit_status", ""))
    return JobRow(
        status=status,
        submit_s=submit_s,
        start_s=start_s,
        end_s=_end_s(ad, start_s, zone) if status == ENDED else None,
        machine=machine,
        cpus=cpus or cpus_requested(ad),
        exit_status=int(exit_status) if _EXIT.fullmatch(exit_status) else None,
        moved=state == "M",
        held_because=_held_because(ad, state) if status == HELD else "",
        spec=_spec(ad, submit_s, zone),
        planned_s=time_s(ad.get("estimated.start_time", ""), zone) if status == WAITING else None,
    )


def time_s(text: str, zone: dt.tzinfo) -> float | None:
    """Return Unix seconds of ``1795231020`` or ``Sat Nov 21 03:17:00 2026``; None for other texts.

    >>> time_s("Sat Nov 21 03:17:00 2026", dt.UTC), time_s("1795231020", dt.UTC), time_s("", dt.UTC)
    (1795231020.0, 1795231020.0, None)
    """
    if text.isdecimal() and len(text) <= 10:
        return float(text) or None
    try:
        return dt.datetime.strptime(" ".join(text.split()), _CTIME).replace(tzinfo=zone).timestamp()
    except ValueError:
        return None


def size_mib(text: str) -> float | None:
    """Return MiB of ``16gb``, ``16384kb``, ``2097152w`` or plain bytes; None if it is not a size.

    >>> size_mib("16gb"), size_mib("512MB"), size_mib("1048576"), size_mib("much")
    (16384.0, 512.0, 1.0, None)
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return None
    words = _WORD_BYTES if (found[3] or "").lower() == "w" else 1
    return int(found[1]) * words * _MIB[found[2].lower()]


def zone_of(name: str | None) -> dt.tzinfo:
    """Return a time zone by its IANA name; UTC for None."""
    return ZoneInfo(name) if name else dt.UTC


def _spec(ad: Mapping[str, str], submit_s: float, zone: dt.tzinfo) -> JobSpec:
    eligible_s = time_s(ad.get("etime", ""), zone)
    user = ad.get("euser") or ad.get("Job_Owner", "").partition("@")[0]
    return JobSpec(
        user=user,
        vo=_vo(ad),
        job_class="interactive" if ad.get("interactive", "") in ("True", "1") else "batch",
        cpus=cpus_requested(ad),
        estimate_s=duration_s(ad.get("Resource_List.walltime", "")),
        eligible_s=eligible_s if eligible_s and eligible_s > submit_s else None,
        resources=_shared(_amount(ad, "mem", size_mib), _amount(ad, "ngpus", _number)),
    )


def _vo(ad: Mapping[str, str]) -> str:
    for name, nothing in _VO_IN:
        value = ad.get(name, "").partition("@")[0]
        if value not in ("", nothing):
            return value
    return "all"


def _shared(memory_mib: float | None, gpus: float | None) -> Resources | None:
    return Resources(memory_mib=memory_mib, gpus=gpus) if memory_mib or gpus else None


def _amount(ad: Mapping[str, str], what: str, read: Callable[[str], float | None]) -> float | None:
    """Return how much of a resource a job requests over all its nodes."""
    whole = ad.get(f"Resource_List.{what}")
    if whole is not None:
        return read(whole)
    total = 0.0
    for chunk in ad.get("Resource_List.select", "").split("+"):
        found = _CHUNK.fullmatch(chunk)
        for part in (found[2] if found else "").split(":"):
            name, _, value = part.partition("=")
            amount = read(value) if name == what else None
            total += (amount or 0.0) * int((found and found[1]) or 1)
    return total or None


def _number(text: str) -> float | None:
    return float(text) if text.isdecimal() and len(text) < 10 else None


def _end_s(ad: Mapping[str, str], start_s: float | None, zone: dt.tzinfo) -> float | None:
    """Return when the last run ended: as reported, else its start plus its duration."""
    for name in ("comp_time", "obittime"):
        reported_s = time_s(ad.get(name, ""), zone)
        if reported_s is not None:
            return reported_s
    ran_s = duration_s(ad.get("resources_used.walltime", ""))
    if start_s is not None and ran_s is not None:
        return start_s + ran_s
    return time_s(ad.get("mtime", ""), zone)


def _held_because(ad: Mapping[str, str], state: str) -> str:
    if state == "W":
        return "execution_time"
    if ad.get("depend"):
        return "dependency"
    holds = [name for letter, name in _HOLDS.items() if letter in ad.get("Hold_Types", "")]
    return "_and_".join(holds)


# -- execution times -------------------------------------------------------------------------------
# When jobs of PBS may begin: execution times are set by ``qalter -a`` and read back.
#
# A job with an `Execution_Time` in the future is in the state W and has no `etime`. At that time
# the server removes the attribute, queues the job and sets `etime` to that moment. That is in
# the sources of OpenPBS and of Torque (`job_wait_over` and `svr_setjobstate` of their
# svr_jobfunc.c); ``qalter -a`` is in the PBS Professional Reference Guide ("PBS Commands") and
# Torque's qalter(1B).

MAX_DELAY_S: Final = 60.0
"""Maximum delay after which the server queues a job: it polls its timers, and may be busy."""
DEFERRED: Final = "W (Outrider's)"
"""Code in place of the state W if the time is Outrider's."""
_WAITS: Final = frozenset("QTWH")


class WaitingJob(NamedTuple):
    """Waiting job as PBS shows it; times are Unix seconds.

    Attributes:
        eligible_s: when it may begin; 0: immediately; None: PBS blocks it.
        changed_s: its last change, by the server's clock; None: not reported.
    """

    eligible_s: float | None
    changed_s: float | None


def waiting_jobs(shown: Mapping[str, Mapping[str, str]]) -> dict[str, WaitingJob]:
    """Return the waiting jobs by name, from the output of ``qstat`` in the time zone UTC."""
    return {
        job: WaitingJob(_eligible_s(ad, dt.UTC), time_s(ad.get("mtime", ""), dt.UTC))
        for job, ad in shown.items()
        if ad.get("job_state", "") in _WAITS
    }


def as_its_user_left_it(
    ad: Mapping[str, str], known: Undo | None, zone: dt.tzinfo
) -> Mapping[str, str]:
    """Return the attributes of a job without the execution time that Outrider gave it.

    A job that Outrider keeps waits, for its policy as for its user. Its wait is counted from the
    original time.

    Args:
        ad: its attributes.
        known: the note on it.
        zone: of the times in the attributes.
    """
    if known is None or not is_own(known, _eligible_s(ad, zone), MAX_DELAY_S):
        return ad
    left = {name: value for name, value in ad.items() if name not in ("etime", "Execution_Time")}
    if left.get("job_state") == "W":
        left["job_state"] = "Q"
    if before_s := before_of(known).eligible_s:
        left["etime"] = f"{before_s:.0f}"
    return left


def qalter_words(begin_s: int, jobs: list[str]) -> list[str]:
    """Return the arguments of ``qalter``, run in UTC, that give jobs an execution time."""
    return ["-a", dt.datetime.fromtimestamp(begin_s, dt.UTC).strftime("%Y%m%d%H%M.%S"), *jobs]


def _eligible_s(ad: Mapping[str, str], zone: dt.tzinfo) -> float | None:
    state = ad.get("job_state", "")
    if state == "W":
        return time_s(ad.get("Execution_Time", ""), zone)
    return None if state == "H" else time_s(ad.get("etime", ""), zone) or 0.0
