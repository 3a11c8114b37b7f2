"""Fences in the queue of a Slurm: whose they are, and that nobody takes them for users' jobs."""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from outrider_adapters.slurm.commands import SEPARATOR, SlurmCommands
from outrider_adapters.slurm.queue_rows import FIELDS, jobs_of

NAME: Final = "outrider-acts"
"""Of the job. Other users' jobs of this name count for nothing."""
_FIELDS: Final = ("JobID", "UserName", "State", "EligibleTime", "Comment")
_USER: Final = FIELDS.index("UserName")


class FenceJob(NamedTuple):
    """A fence.

    Attributes:
        number: of the job.
        user: whose job it is.
        begins_s: when it lapses, Unix seconds; 0: it is in the queue no more.
        who: which Outrider's it is.
    """

    number: int
    user: str
    begins_s: float
    who: str


def fence_jobs(commands: SlurmCommands, users: Collection[str]) -> list[FenceJob]:
    """All that some users have, by number.

    What these users write into their comments is believed; it stands last in its line.

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
    """Leaves fences out of what ``squeue`` shows of a queue.

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
        """The lines (with `FIELDS`) that are about other jobs.

        Raises:
            CommandError: as `fence_jobs`, which is asked where one of the users has a new job.
        """
        theirs = {line: self._ids(line) for line in lines if _user_of(line) in self.users}
        seen = {job for ids in theirs.values() for job in ids}
        if seen - self._fences - self._others:
            told = {str(job.number) for job in fence_jobs(self._commands, self.users)}
            self._fences, self._others = seen & told, seen - told
        return [line for line in lines if not self._fences.intersection(theirs.get(line, ()))]

    @staticmethod
    def _ids(line: str) -> tuple[str, ...]:
        try:
            return jobs_of(line.partition(SEPARATOR)[0])
        except ValueError:
            return ()  # whoever reads the rows counts it


def _user_of(line: str) -> str:
    values = line.split(SEPARATOR, _USER + 1)
    return values[_USER] if len(values) > _USER else ""
