"""The jobs that wait in a Slurm's queue, with what levers change of them."""

from typing import Final, NamedTuple

from outrider_adapters.slurm.arrays import jobs_of
from outrider_adapters.slurm.commands import SEPARATOR, SlurmCommands

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
