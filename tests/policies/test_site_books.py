"""What sarsa knows of running jobs: the next expected end, in little memory."""

from outrider_policies.sarsa.site_state import SiteBooks


class Clock:
    """Of a site view, what is asked for here."""

    now = 50.0
    free_total = 0
    machines_n = 0

    def vo_shares(self) -> dict[str, tuple[float, float]]:
        """No VOs."""
        return {}


def test_runs_that_are_over_are_forgotten_behind_one_that_is_overdue() -> None:
    books = SiteBooks()
    books.start(0, 10.0, 1.0)
    for number in range(1, 1000):
        books.start(number, 100.0 + number, 0.5)
        books.end(number)
    assert len(books._ends) == 1
    books.start(1000, 80.0, 0.5)
    assert books.state(Clock()).next_end_s == 0.0, "job 0 is overdue"  # type: ignore[arg-type]
    books.end(0)
    assert books.state(Clock()).next_end_s == 30.0  # type: ignore[arg-type]
    again = SiteBooks()
    again.restore(books.save())
    assert again.state(Clock()) == books.state(Clock())  # type: ignore[arg-type]
