"""The controller of a Slurm as levers ask it: what time it is, whose jobs it has, what is set."""

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
_ASK_AGAIN_S: Final = 300.0


class Controller:
    """Answers of the controller that hold for all jobs; what is set is asked anew after a while.

    Args:
        commands: of the Slurm.
        lease_s: how long a change lasts that is not renewed.
        now: this host's clock, Unix seconds.
    """

    def __init__(self, commands: SlurmCommands, lease_s: float, now: Callable[[], float]) -> None:
        self.commands = commands
        self.lease_s = lease_s
        self._now = now
        self._config: dict[str, str] = {}
        self._acting_users: frozenset[str] = frozenset()
        self._asked_s = -inf

    def now_s(self) -> int:
        """Its clock, Unix seconds.

        Raises:
            PeerError: it does not answer, or the clock differs from this host's by more than a
                quarter of a lease.
        """
        shown = _CLOCK.search(self.commands.run("sdiag"))
        if shown is None:
            raise PeerError('sdiag does not tell the time; expected "sdiag output at ..."')
        off_s = int(shown[1]) - self._now()
        if abs(off_s) > self.lease_s / 4.0:
            raise PeerError(
                f"the controller's clock differs by {off_s:+.0f} s from this host's; expected "
                f"less than a quarter of lease_s, {self.lease_s / 4.0:g} s"
            )
        return int(shown[1])

    def config(self) -> dict[str, str]:
        """What is set, by name; as of the last five minutes. Raises `PeerError`: no answer."""
        self._ask()
        return self._config

    def acting_users(self) -> frozenset[str]:
        """Who may change everybody's jobs, and this process's user; as `config`."""
        self._ask()
        return self._acting_users

    def id_of(self, name: str) -> str:
        """A job's id, from its name; that of another cluster's job is none here."""
        return name.removeprefix(f"{self.config().get('ClusterName', '')}:")

    def _ask(self) -> None:
        now_s = self._now()
        if not 0.0 <= now_s - self._asked_s < _ASK_AGAIN_S:
            self._config = settings_of(self.commands.run("scontrol", "show", "config"))
            self._acting_users = acting_users(self.commands, self._config)
            self._asked_s = now_s


# -- waiting jobs ----------------------------------------------------------------------------------
# The jobs that wait in a Slurm's queue, with what levers change of them.

_FIELDS: Final = ("JobArrayID", "JobID", "EligibleTime", "AccrueTime", "Nice", "Reason")
_ACTIVE: Final = "R,S,CF,CG,ST,SI,SO"
_NOT_LOOKED_AT: Final = ("", "None", "Priority", "Resources")


class WaitingJob(NamedTuple):
    """A job as Slurm shows it now; times are Unix seconds.

    Attributes:
        eligible_s: when it may begin; 0 at once, None: Slurm keeps it back.
        accrue_s: since when its age counts for its priority; None: not yet.
        nice: its nice value.
        site_factor: its site factor; None: not asked for, or Slurm does not tell it, which it does
            of jobs alone that may begin.
    """

    eligible_s: float | None
    accrue_s: float | None
    nice: int
    site_factor: int | None = None


def waiting_jobs(commands: SlurmCommands, with_factors: bool = False) -> dict[str, WaitingJob]:
    """All that wait, by id; each task of an array is one.

    Args:
        commands: of the Slurm.
        with_factors: ask for site factors, too: a second question.

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
        kept_back = not at_s and reason.partition(",")[0] not in _NOT_LOOKED_AT
        one = WaitingJob(
            None if kept_back else at_s, _moment(accrue) or None, int(nice), factors.get(number)
        )
        found |= dict.fromkeys(jobs_of(job), one)
    return found


def active_jobs(commands: SlurmCommands) -> set[str]:
    """Ids of the jobs that have a machine, or have just had one.

    Raises:
        CommandError: as `waiting_jobs`.
    """
    lines = commands.rows(("JobArrayID",), "-a", "-r", "-t", _ACTIVE)
    return {line.partition(SEPARATOR)[0] for line in lines if line}


def site_factors(commands: SlurmCommands) -> dict[str, int]:
    """Site factors by the numbers of jobs, of those that wait and may begin.

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
"""In place of `BEGIN_TIME` where the time is ours."""


def as_its_user_left_it(row: QueueRow, noted: Callable[[str], Undo | None]) -> QueueRow:
    """A row without the start time that Outrider wrote over its eligible time.

    A job that Outrider keeps waits, for its policy as for its user: since when, and how long, is
    counted from the eligible time before. Tasks of an array may share a row, which then shows the
    time of one of them.

    Args:
        row: of ``squeue``.
        noted: what is noted of a job, by its id.
    """
    entries = (noted(job) for job in row.jobs)
    known = next((one for one in entries if is_own(one, row.eligible_s)), None)
    if known is None:
        return row
    code, comma, rest = row.reason.partition(",")
    reason = DEFERRED + comma + rest if code == BEGIN_TIME else row.reason
    return row._replace(eligible_s=before_of(known).eligible_s, reason=reason)
