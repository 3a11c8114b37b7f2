"""Queries of levers to a Slurm's controller: its clock, configuration and waiting jobs."""

import re
from collections.abc import Callable
from math import inf
from typing import Final, NamedTuple

from outrider.api import PeerError, Undo
from outrider_adapters.noted_changes import before_of, is_own
from outrider_adapters.slurm.commands import SEPARATOR, SlurmCommands, acting_users
from outrider_adapters.slurm.nodes import settings_of
from outrider_adapters.slurm.queue_rows import QueueRow, jobs_of

_CLOCK: Final = re.compile(r"^sdiag output at .*\((\d+)\)", re.MULTILINE)
_CONFIG_MAX_AGE_S: Final = 300.0


class Controller:
    """Answers of the controller that concern all jobs; the configuration is cached for 5 minutes.

    Args:
        commands: of the Slurm.
        lease_s: how long a change lasts unless it is renewed.
        now: this host's clock, Unix seconds.
    """

    def __init__(self, commands: SlurmCommands, lease_s: float, now: Callable[[], float]) -> None:
        self.commands = commands
        self.lease_s = lease_s
        self._now = now
        self._config: dict[str, str] = {}
        self._acting_users: frozenset[str] = frozenset()
        self._refreshed_s = -inf

    def now_s(self) -> int:
        """Return the controller's clock, Unix seconds.

        Raises:
            PeerError: it does not answer, or the clock differs from this host's by more than a
                quarter of a lease.
        """
        shown = _CLOCK.search(self.commands.run("sdiag"))
        if shown is None:
            raise PeerError('sdiag reports no time; expected "sdiag output at ..."')
        off_s = int(shown[1]) - self._now()
        if abs(off_s) > self.lease_s / 4.0:
            raise PeerError(
                f"the controller's clock differs by {off_s:+.0f} s from this host's; expected "
                f"less than a quarter of lease_s, {self.lease_s / 4.0:g} s"
            )
        return int(shown[1])

    def config(self) -> dict[str, str]:
        """Return the configuration, at most five minutes old. Raises `PeerError`: no answer."""
        self._refresh()
        return self._config

    def acting_users(self) -> frozenset[str]:
        """Return the users who may change all users' jobs, and this process's user; as `config`."""
        self._refresh()
        return self._acting_users

    def id_of(self, name: str) -> str:
        """Return a job's id, from its name; a job of another cluster has none here."""
        return name.removeprefix(f"{self.config().get('ClusterName', '')}:")

    def _refresh(self) -> None:
        now_s = self._now()
        if not 0.0 <= now_s - self._refreshed_s < _CONFIG_MAX_AGE_S:
            self._config = settings_of(self.commands.run("scontrol", "show", "config"))
            self._acting_users = acting_users(self.commands, self._config)
            self._refreshed_s = now_s


# -- waiting jobs ----------------------------------------------------------------------------------
# The jobs that wait in a Slurm's queue, with the attributes that levers change.

_FIELDS: Final = ("JobArrayID", "JobID", "EligibleTime", "AccrueTime", "Nice", "Reason")
_ACTIVE: Final = "R,S,CF,CG,ST,SI,SO"
_NOT_LOOKED_AT: Final = ("", "None", "Priority", "Resources")


class WaitingJob(NamedTuple):
    """Waiting job as Slurm shows it now; times are Unix seconds.

    Attributes:
        eligible_s: when it may begin; 0: immediately; None: Slurm blocks it.
        accrue_s: since when its age counts for its priority; None: not yet.
        nice: its nice value.
        site_factor: its site factor; None if it was not requested, or Slurm does not report it: it
                does so only for jobs that may begin.
    """

    eligible_s: float | None
    accrue_s: float | None
    nice: int
    site_factor: int | None = None


def waiting_jobs(commands: SlurmCommands, with_factors: bool = False) -> dict[str, WaitingJob]:
    """Return all waiting jobs by id; each task of an array is one.

    Args:
        commands: of the Slurm.
        with_factors: query site factors, too: a second command.

    Raises:
        CommandError: the controller does not answer.
    """
    factors = site_factors(commands) if with_factors else {}
    found: dict[str, WaitingJob] = {}
    # tasks of an array that begin at different times would share a row without -r
    for line in filter(None, commands.rows(_FIELDS, "-a", "-r", "-t", "PD")):
        job, number, eligible, accrue, nice, reason, _ = line.split(SEPARATOR)
        at_s = _moment(eligible)
        # an array has no eligible time until the scheduler has looked at it
        blocked = not at_s and reason.partition(",")[0] not in _NOT_LOOKED_AT
        one = WaitingJob(
            None if blocked else at_s, _moment(accrue) or None, int(nice), factors.get(number)
        )
        found |= dict.fromkeys(jobs_of(job), one)
    return found


def active_jobs(commands: SlurmCommands) -> set[str]:
    """Return the ids of jobs that have a machine, or have just had one.

    Raises:
        CommandError: as `waiting_jobs`.
    """
    lines = commands.rows(("JobArrayID",), "-a", "-r", "-t", _ACTIVE)
    return {line.partition(SEPARATOR)[0] for line in lines if line}


def site_factors(commands: SlurmCommands) -> dict[str, int]:
    """Return the site factors of waiting jobs that may begin, by job number.

    Raises:
        CommandError: as `waiting_jobs`.
    """
    shown = commands.run("sprio", "-h", "-o", "%i|%S")
    pairs = (line.split("|") for line in shown.split("\n") if "|" in line)
    return {number.strip(): int(factor) for number, factor in pairs}


def _moment(text: str) -> float:
    return float(text) if text.isdecimal() else 0.0


# -- own leases ------------------------------------------------------------------------------------
# Rows of ``squeue`` without the start times that Outrider wrote into them.

BEGIN_TIME: Final = "BeginTime"
DEFERRED: Final = "BeginTime (Outrider's)"
"""Reason in place of `BEGIN_TIME` if the time is Outrider's."""


def as_its_user_left_it(row: QueueRow, noted: Callable[[str], Undo | None]) -> QueueRow:
    """Return a row without the start time by which Outrider replaced its eligible time.

    A job that Outrider keeps in the queue waits, for its policy as for its user. The wait is
    counted from the original eligible time. Tasks of an array may share a row, which then shows the
    time of one of them.

    Args:
        row: of ``squeue``.
        noted: returns the note on a job, by its id.
    """
    entries = (noted(job) for job in row.jobs)
    known = next((one for one in entries if is_own(one, row.eligible_s)), None)
    if known is None:
        return row
    code, comma, rest = row.reason.partition(",")
    reason = DEFERRED + comma + rest if code == BEGIN_TIME else row.reason
    return row._replace(eligible_s=before_of(known).eligible_s, reason=reason)
