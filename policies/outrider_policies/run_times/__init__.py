"""Run time estimators: how long a job will run, from what ended before it."""

from outrider_policies.run_times.last_two import LastTwoRunTimes
from outrider_policies.run_times.learned import LearnedRunTimes
from outrider_policies.run_times.requested import UserRunTimes

__all__ = ["LastTwoRunTimes", "LearnedRunTimes", "UserRunTimes"]
