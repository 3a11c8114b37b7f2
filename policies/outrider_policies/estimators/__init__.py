"""Run time estimators: predictions of a job's run time from completed jobs."""

from outrider_policies.estimators.baselines import LastTwoRunTimes, UserRunTimes
from outrider_policies.estimators.learned import LearnedRunTimes

__all__ = ["LastTwoRunTimes", "LearnedRunTimes", "UserRunTimes"]
