"""The canary trial that a core acts by, and counts."""

from collections.abc import Sequence
from typing import Any

from outrider.acting.trial import DaySums, Trial, TrialTally
from outrider.service.core.decision_log import JournalledAccounting, JournalledDecisions


class FollowedTrial:
    """Which trial decisions and runs of a core belong to, if to any.

    Args:
        decision_log: acts on its days.
        accounting: counts its runs.
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
        """What its days came to until now; None: there is none."""
        tally = self._accounting.tally
        return None if tally is None else tally.days

    def follow(self, trial: Trial | None) -> None:
        """From now on it is this one; one that is followed already goes on."""
        tally, self._decision_log.trial = self._accounting.tally, trial
        if trial is None:
            self._accounting.tally = None
        elif tally is None or tally.trial != trial:
            self._accounting.tally = TrialTally(trial)

    def acts_at(self, time_s: float) -> bool:
        """Return whether it is acted at a moment."""
        return self.trial is not None and self.trial.acts_at(time_s)

    def save(self) -> dict[str, Any] | None:
        """What was counted, as plain data."""
        tally = self._accounting.tally
        return None if tally is None else tally.save()

    def restore(self, saved: dict[str, Any] | None) -> None:
        """Go on from what `save` gave, if that was of the same trial."""
        if self._accounting.tally is not None:
            self._accounting.tally.restore(saved)
