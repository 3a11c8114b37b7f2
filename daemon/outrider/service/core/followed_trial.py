"""The canary trial that a core follows and counts."""

from collections.abc import Sequence
from typing import Any

from outrider.acting.trial import DaySums, Trial, TrialTally
from outrider.service.core.decision_log import JournalledAccounting, JournalledDecisions


class FollowedTrial:
    """The trial that decisions and runs of a core belong to, if any.

    Args:
        decision_log: acts on the days of the trial.
        accounting: counts the runs of the trial.
    """

    def __init__(self, decision_log: JournalledDecisions, accounting: JournalledAccounting) -> None:
        self._decision_log = decision_log
        self._accounting = accounting

    @property
    def trial(self) -> Trial | None:
        """The trial; None: there is none."""
        return self._decision_log.trial

    @property
    def days(self) -> Sequence[DaySums] | None:
        """The sums of the trial's days so far; None: there is no trial."""
        tally = self._accounting.tally
        return None if tally is None else tally.days

    def follow(self, trial: Trial | None) -> None:
        """Follow a trial from now on; the counts of one that is already followed continue."""
        tally, self._decision_log.trial = self._accounting.tally, trial
        if trial is None:
            self._accounting.tally = None
        elif tally is None or tally.trial != trial:
            self._accounting.tally = TrialTally(trial)

    def acts_at(self, time_s: float) -> bool:
        """Return whether the trial acts at a time."""
        return self.trial is not None and self.trial.acts_at(time_s)

    def save(self) -> dict[str, Any] | None:
        """Return the counts as plain data; None: there is no trial."""
        tally = self._accounting.tally
        return None if tally is None else tally.save()

    def restore(self, saved: dict[str, Any] | None) -> None:
        """Restore what `save` returned, if it was of the same trial."""
        if self._accounting.tally is not None:
            self._accounting.tally.restore(saved)
