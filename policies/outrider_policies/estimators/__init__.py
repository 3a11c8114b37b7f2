"""Run time estimators: predictions of a job's run time from completed jobs."""

from outrider_policies.estimators.last_two import LastTwoRunTimes
from outrider_policies.estimators.learned import LearnedRunTimes
from outrider_policies.estimators.requested import UserRunTimes

__all__ = ["LastTwoRunTimes", "LearnedRunTimes", "UserRunTimes"]
