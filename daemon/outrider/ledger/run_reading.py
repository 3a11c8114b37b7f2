"""What is read from a journal about runs: one row of each, and sums of many."""

# ruff: noqa: S608 - names of tables and columns are constants of ours; values are bound.

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from outrider.ledger.connection import naming_errors
from outrider.ledger.job_ends import JobEnd, last_end
from outrider.ledger.queries import PAGE_ROWS, JournalQueries
from outrider.ledger.records import RUN_COLUMNS, RunRecord
from outrider.ledger.run_sums import RunsReach, RunSums, last_end_s, reach_of, sum_up
from outrider.ledger.schema import MACHINE_EVENTS

_RUNS: Final = f"SELECT id, {RUN_COLUMNS} FROM runs WHERE id > :after ORDER BY id LIMIT :limit"
_RUNS_OF_JOB: Final = (
    f"SELECT {RUN_COLUMNS} FROM runs WHERE job = :job ORDER BY id DESC LIMIT :limit"
)
NO_WATTS: Final[Mapping[str, float]] = MappingProxyType({})
_RUNS_ON: Final = (
    f"SELECT {RUN_COLUMNS} FROM runs WHERE machine = :machine ORDER BY id DESC LIMIT :limit"
)
_EVENTS_OF: Final = (
    f"SELECT time_s, kind FROM inputs WHERE subject = :machine AND {MACHINE_EVENTS} "
    "ORDER BY seq DESC LIMIT :limit"
)


class RunReading(JournalQueries):
    """The questions about runs, machines' runs and how jobs left; errors as `JournalQueries`."""

    def runs(self, after: int = 0) -> Iterator[tuple[int, RunRecord]]:
        """Runs after one of these numbers, with their numbers, in the order in which they ended."""
        while rows := self._fetch(_RUNS, {"after": after, "limit": PAGE_ROWS}):
            for row in rows:
                yield row[0], RunRecord(*row[1:])
            after = rows[-1][0]

    def runs_of(self, job: str, limit: int) -> list[RunRecord]:
        """The last runs of a job, at most `limit`, the oldest first."""
        if not self._has("runs"):
            return []
        rows = self._fetch(_RUNS_OF_JOB, {"job": job, "limit": limit})
        return [RunRecord(*row) for row in reversed(rows)]

    def runs_on(self, machine: str, limit: int) -> list[RunRecord] | None:
        """The last runs on a machine that have ended, at most `limit`, the newest first.

        None: the journal is of a version that cannot be asked by machine.
        """
        if not self._has("runs_by_machine"):
            return None
        rows = self._fetch(_RUNS_ON, {"machine": machine, "limit": limit})
        return [RunRecord(*row) for row in rows]

    def events_of_machine(self, machine: str, limit: int) -> list[tuple[float, str]] | None:
        """Time and kind of the last events of a machine, at most `limit`, the oldest first.

        Those of `MACHINE_EVENTS`. None: as for `runs_on`.
        """
        if not self._has("events_by_machine"):
            return None
        return self._fetch(_EVENTS_OF, {"machine": machine, "limit": limit})[::-1]

    def run_sums(
        self,
        begin_s: float,
        step_s: float,
        until_s: float,
        within_s: float,
        waits: bool = True,
        watts: Mapping[str, float] = NO_WATTS,
    ) -> RunSums | None:
        """Runs that ended since a time, in bins of time; None in a journal older than runs.

        Args:
            begin_s: when the first bin begins.
            step_s: length of a bin, seconds.
            until_s: when the last bin ends.
            within_s: seconds this may take; longer is a `LedgerError`.
            waits: whether waits are summed up, too.
            watts: of one busy CPU, by machine.
        """
        if not self._has("runs_by_job" if waits else "runs"):
            return None
        with naming_errors(self.path, "sum up the runs of the journal"):
            return sum_up(self._connection, begin_s, step_s, until_s, within_s, waits, watts)

    def runs_reach(self, within_s: float) -> RunsReach | None:
        """How far back the runs go that `run_sums` looks at; None: there is none.

        Args:
            within_s: seconds this may take; longer is a `LedgerError`.
        """
        if not self._has("runs"):
            return None
        with naming_errors(self.path, "sum up the runs of the journal"):
            return reach_of(self._connection, within_s)

    def last_end_of_run(self, job: str) -> float | None:
        """When the last run of a job ended; None: no run of it is kept."""
        with naming_errors(self.path, "read the journal"):
            return last_end_s(self._connection, job)

    def first_run_end_s(self) -> float | None:
        """When the oldest run ended that is kept; None: there is none."""
        if not self._has("runs"):
            return None
        rows = self._fetch("SELECT end_s FROM runs ORDER BY id LIMIT 1")
        return rows[0][0] if rows else None

    def end_of(self, job: str) -> JobEnd | None:
        """How a job left; None where that is not known."""
        return last_end(self._fetch, job) if self._has("ends_by_job") else None

    def runs_and_end_of(self, job: str, limit: int) -> tuple[list[RunRecord], JobEnd | None]:
        """The last runs of a job, at most `limit`, the oldest first, and how it left.

        The end is read first: it is written with or after the job's last run, so a journal that
        grows between the two reads never shows a job that left without the run it had.
        """
        end = self.end_of(job)
        return self.runs_of(job, limit), end
