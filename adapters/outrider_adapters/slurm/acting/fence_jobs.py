"""Fence jobs in a Slurm's queue: find their owners, and hide them from users' jobs."""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from outrider_adapters.slurm.commands import SEPARATOR, SlurmCommands
from outrider_adapters.slurm.queue_rows import FIELDS, jobs_of

NAME: Final = "outrider-acts"
"""Name of fence jobs. Jobs of this name count only for some users."""
_FIELDS: Final = ("JobID", "UserName", "State", "EligibleTime", "Comment")
_USER: Final = FIELDS.index("UserName")


class FenceJob(NamedTuple):
    """Fence job in the queue of a Slurm.

    Attributes:
        number: the job's number.
        user: its owner.
        begins_s: when it expires, Unix seconds; 0: it is no longer in the queue.
        who: identity of the Outrider that submitted it.
    """

    number: int
    user: str
    begins_s: float
    who: str


def fence_jobs(commands: SlurmCommands, users: Collection[str]) -> list[FenceJob]:
    """Return all fences of some users, sorted by number.

    The comments of these users are trusted. The comment comes last in its line.

    Raises:
        CommandError: the controller does not answer.
    """
    found: list[FenceJob] = []
    for line in commands.rows(_FIELDS, "-a", "-t", "all", "-n", NAME):
        values = line.split(SEPARATOR, len(_FIELDS) - 1)
        if len(values) == len(_FIELDS) and values[0].isdecimal() and values[1] in users:
            number, user, state, eligible, who = values
            begins_s = float(eligible) if state == "PENDING" and eligible.isdecimal() else 0.0
            found.append(FenceJob(int(number), user, begins_s, who.rstrip(SEPARATOR)))
    return sorted(found)


class FencesLeftOut:
    """Filter that removes fence jobs from the output of ``squeue``.

    Args:
        commands: of the Slurm.

    Attributes:
        users: whose fences count.
    """

    def __init__(self, commands: SlurmCommands) -> None:
        self._commands = commands
        self.users: Collection[str] = ()
        self._fences: set[str] = set()
        self._others: set[str] = set()

    def of(self, lines: Sequence[str]) -> Sequence[str]:
        """Return the lines (with `FIELDS`) of other jobs.

        Raises:
            CommandError: as `fence_jobs`, which is called if one of the users has a new job.
        """
        theirs = {line: self._ids(line) for line in lines if _user_of(line) in self.users}
        seen = {job for ids in theirs.values() for job in ids}
        if seen - self._fences - self._others:
            fences = {str(job.number) for job in fence_jobs(self._commands, self.users)}
            self._fences, self._others = seen & fences, seen - fences
        return [line for line in lines if not self._fences.intersection(theirs.get(line, ()))]

    @staticmethod
    def _ids(line: str) -> tuple[str, ...]:
        try:
            return jobs_of(line.partition(SEPARATOR)[0])
        except ValueError:
            return ()  # the parser of the rows counts it


def _user_of(line: str) -> str:
    values = line.split(SEPARATOR, _USER + 1)
    return values[_USER] if len(values) > _USER else ""
