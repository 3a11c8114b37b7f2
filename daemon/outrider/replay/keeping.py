"""What becomes of a replay's decisions and outcomes: nothing, a hash, or a ledger file."""

from collections.abc import Callable

from outrider.engine.state.site import Site
from outrider.journal import LedgerFile, LedgerHash, OutcomeRecord
from outrider.model.decisions import NOWHERE, Decision, DecisionRow, Names
from outrider.model.jobs import Job

Keep = Callable[[Decision], None]
"""Takes every decision of a run, of every runner, in order."""

KeepOutcome = Callable[[OutcomeRecord], None]
"""Takes every outcome of a run, in order."""


class ReplayDecisionLog:
    """The decision log of a replay.

    Args:
        keep: takes the decisions.
    """

    def __init__(self, keep: Keep) -> None:
        self.decided = keep
        self._kept: tuple[KeepOutcome, Names, Site] | None = None

    def keep_outcomes(self, keep: KeepOutcome, names: Names, site: Site) -> None:
        """Give every outcome to `keep`; without this they are in the report alone.

        Args:
            keep: takes them.
            names: of jobs and machines.
            site: that tells the time.
        """
        self._kept = keep, names, site

    def ended(
        self, policy: str, job: Job, ending: str, reason: str, run_s: float,
        reward: float | None, on_policy: bool,
    ) -> None:  # fmt: skip
        """A run ended, or a job left the queue (`outrider.engine.ports.DecisionLog`)."""
        if self._kept is None:
            return
        keep, names, site = self._kept
        machine = None if job.machine == NOWHERE else names.machine_names[job.machine]
        name = names.job_names[job.number]
        keep(
            OutcomeRecord(site.now, name, machine, ending, reason, run_s, policy, reward, on_policy)
        )


def keep_nothing(decision: Decision) -> None:
    """Nobody reads the decisions of this run."""


def both(keep: Keep, also: Keep) -> Keep:
    """Every decision goes to two."""

    def keep_both(decision: Decision) -> None:
        keep(decision)
        also(decision)

    return keep_both


def hashed(digest: LedgerHash, names: Names) -> Keep:
    """Keeps nothing of a decision but its part in the hash; `names` are those of the trace."""
    add, jobs, machines = digest.add, names.job_names, names.machine_names

    def keep(decision: Decision) -> None:
        machine = decision.machine
        place = None if machine == NOWHERE else machines[machine]
        add(decision.time_s, jobs[decision.job], decision.action, place, decision.cpus)

    return keep


def hashed_and_written(digest: LedgerHash, names: Names, ledger: LedgerFile, mode: str) -> Keep:
    """Hashes every decision and writes it to a ledger file, as made in a mode."""

    def keep(decision: Decision) -> None:
        row = DecisionRow.of(decision, names, mode)
        digest.add_decision(row)
        ledger.add(row)

    return keep
