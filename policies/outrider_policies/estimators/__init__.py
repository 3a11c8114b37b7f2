"""Run time estimators: how long a job will run, from what ended before it."""

from outrider_policies.estimators.last_two import LastTwoRunTimes
from outrider_policies.estimators.learned import LearnedRunTimes
from outrider_policies.estimators.requested import UserRunTimes

__all__ = ["LastTwoRunTimes", "LearnedRunTimes", "UserRunTimes"]
