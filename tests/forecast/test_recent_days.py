"""Past days recur: jobs and closed machines, including those that are closed now."""

from outrider.forecast.closures import OWNER, Closure
from outrider.forecast.recent_days import Arrival, RecentDays
from outrider.model.jobs import JobSpec
from outrider.model.localtime import DAY_S, HOUR_S

NOW_S = 100.0 * DAY_S


def test_a_day_comes_whole_with_the_owner_who_is_still_there() -> None:
    ago = [NOW_S - hours * HOUR_S for hours in (20, 10, 4, 30)]
    jobs = [Arrival(ago[0], JobSpec(), 60.0, -1), Arrival(ago[2], JobSpec(), float("nan"), 0)]
    ended = [Closure(0, ago[3], ago[3] + 60.0, OWNER), Closure(1, ago[1], ago[1] + 60.0, OWNER)]
    recent = RecentDays(NOW_S - 9 * DAY_S, jobs, ended, {2: (ago[2], OWNER)}, frozenset())
    coming = recent.days(NOW_S, [float(DAY_S)], [500.0], {2: NOW_S + HOUR_S})
    assert [(round((at_s - NOW_S) / HOUR_S), one) for at_s, one in coming] == [
        (4, jobs[0]),
        (14, Closure(1, ago[1], ago[1] + 60.0 + DAY_S, OWNER)),
        (20, jobs[1]._replace(run_s=500.0)),
        (20, Closure(2, ago[2], NOW_S + HOUR_S + DAY_S, OWNER)),
    ]
