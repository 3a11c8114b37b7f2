"""Position in the queue of jobs that lost their runs, inferred from recorded starts."""

from outrider.forecast.followed_site import RECENT_S, Requeueing


def a_lost_run() -> Requeueing:
    """Record three jobs, of which job 1 lost its run at 100.

    Job 1 came first, 2 before that loss, and 3 after it.
    """
    seen = Requeueing()
    for time_s, job in ((0.0, 1), (50.0, 2)):
        seen.came(time_s, job)
    seen.started(10.0, 1)
    seen.lost(100.0, 1)
    seen.came(150.0, 3)
    return seen


def test_nothing_is_known_before_the_first_evidence() -> None:
    seen = a_lost_run()
    assert not seen.goes_behind
    assert seen.lost_s == {1: 100.0}
    assert (seen.before, seen.behind) == (0, 0)


def test_who_came_before_the_loss_and_starts_first_speaks_for_the_end_of_the_queue() -> None:
    seen = a_lost_run()
    seen.started(200.0, 2)
    assert seen.goes_behind
    seen.started(210.0, 3)  # 3 came after the loss: under both orders it is behind
    assert (seen.before, seen.behind) == (0, 1)


def test_who_lost_its_run_and_starts_first_speaks_for_the_order_of_submission() -> None:
    seen = a_lost_run()
    seen.started(200.0, 1)
    assert (seen.before, seen.behind) == (1, 0)
    assert not seen.goes_behind
    assert seen.lost_s == {}


def test_where_both_orders_agree_a_start_tells_nothing() -> None:
    seen = a_lost_run()
    seen.started(120.0, 2)
    seen.came(130.0, 4)
    seen.started(210.0, 1)  # only 3 and 4 wait, which came after the loss
    assert (seen.before, seen.behind) == (0, 1)


def test_jobs_that_are_held_have_left_or_wait_for_hours_tell_nothing() -> None:
    seen = a_lost_run()
    seen.drop(2)  # held: that 1 starts before it is no matter of order
    seen.started(200.0, 1)
    assert (seen.before, seen.behind) == (0, 0)
    seen = a_lost_run()
    seen.left(1)
    seen.started(200.0, 2)
    assert (seen.before, seen.behind) == (0, 0)
    seen = a_lost_run()
    seen.started(100.0 + RECENT_S + 1.0, 2)  # 1 waits for something else
    assert (seen.before, seen.behind) == (0, 0)
    seen = a_lost_run()
    seen.started(50.0 + RECENT_S + 1.0, 1)  # 2 does
    assert (seen.before, seen.behind) == (0, 0)


def test_a_job_that_was_there_before_anybody_watched_tells_nothing() -> None:
    seen = a_lost_run()
    seen.lost(110.0, 9)
    seen.started(120.0, 9)
    seen.left(9)
    assert (seen.before, seen.behind) == (0, 0)
    assert seen.lost_s == {1: 100.0}
