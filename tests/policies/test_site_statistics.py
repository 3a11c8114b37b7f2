"""Running jobs as sarsa knows them: the next expected end, in little memory."""

from outrider_policies.sarsa.site_state import SiteStatistics


class Clock:
    """Part of a site view that is needed here."""

    now = 50.0
    free_total = 0
    machines_n = 0

    def vo_shares(self) -> dict[str, tuple[float, float]]:
        """Return no VOs at all."""
        return {}


def test_runs_that_are_over_are_forgotten_behind_one_that_is_overdue() -> None:
    statistics = SiteStatistics()
    statistics.start(0, 10.0, 1.0)
    for number in range(1, 1000):
        statistics.start(number, 100.0 + number, 0.5)
        statistics.end(number)
    assert len(statistics._ends) == 1
    statistics.start(1000, 80.0, 0.5)
    assert statistics.state(Clock()).next_end_s == 0.0, "job 0 is overdue"  # type: ignore[arg-type]
    statistics.end(0)
    assert statistics.state(Clock()).next_end_s == 30.0  # type: ignore[arg-type]
    again = SiteStatistics()
    again.restore(statistics.save())
    assert again.state(Clock()) == statistics.state(Clock())  # type: ignore[arg-type]
