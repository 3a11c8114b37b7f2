"""Guards: figures beyond their bounds, and the window that figures are taken over."""

import pytest

from outrider.acting.gate import MIN_N, Bounds, Figures, GuardWindow, Totals, breaches

HOUR_S = 3_600.0


def totals(at_s: float, starts: int = 0, **more: float) -> Totals:
    nothing = dict.fromkeys(Totals._fields, 0.0)
    return Totals(**nothing | more | {"at_s": at_s, "starts": starts})


def test_figures_are_those_since_the_window_began_and_not_of_all_time() -> None:
    window = GuardWindow(HOUR_S)
    window.figures(totals(0.0, 1_000, waited_s=9e9, badput_s=5e9), None)
    now = totals(600.0, 1_000 + MIN_N, waited_s=9e9 + 60.0 * MIN_N, badput_s=5e9 + 30.0,
                 goodput_s=90.0)  # fmt: skip
    assert window.figures(now, 0.75) == Figures(60.0, 0.25, 0.75, None)


def test_what_left_the_window_counts_no_more() -> None:
    window = GuardWindow(HOUR_S)
    for minute in range(181):
        late = min(minute, 60)  # bad for an hour, and good since
        seen = window.figures(totals(60.0 * minute, 10 * minute, waited_s=1e6 * late), None)
        if minute == 60:
            assert seen.mean_wait_s == pytest.approx(1e5)
    assert seen.mean_wait_s == pytest.approx(0.0)


def test_a_few_jobs_say_nothing() -> None:
    window = GuardWindow(HOUR_S)
    window.figures(totals(0.0), None)
    few = totals(60.0, MIN_N - 1, waited_s=1e9, badput_s=1e9, failures=MIN_N - 1)
    assert window.figures(few, 0.0) == Figures()
    some = GuardWindow(HOUR_S)
    some.figures(totals(0.0), None)
    assert some.figures(totals(1.0, MIN_N, badput_s=0.5), None).badput_ratio == 1.0, "all of it"
    assert some.figures(totals(1.0, MIN_N, goodput_s=0.5), None).badput_ratio == 0.0
    assert window.figures(totals(61.0, failures=MIN_N), None).error_ratio == 1.0
    assert window.figures(totals(62.0, failures=5.0, changes=15.0), None).error_ratio == 0.25
    assert window.figures(totals(63.0, failures=10.0, changes=90.0), None).error_ratio == 0.1


def test_a_window_after_a_long_silence_begins_where_the_silence_ended() -> None:
    window = GuardWindow(HOUR_S)
    window.figures(totals(0.0), None)
    window.figures(totals(10.0, 100, waited_s=1e6), None)  # soon after: no sample of its own
    window.figures(totals(5 * HOUR_S, 200, waited_s=2e6), None)
    seen = window.figures(totals(5 * HOUR_S + 60.0, 300, waited_s=2e6 + 100.0), None)
    assert seen.mean_wait_s == pytest.approx((1e6 + 1e6 + 100.0) / 300), "since the last sample"
    seen = window.figures(totals(6 * HOUR_S, 400, waited_s=2e6 + 200.0), None)
    assert seen.mean_wait_s == pytest.approx(1.0)


def test_a_short_window_keeps_as_many_samples_as_a_long_one() -> None:
    """A window of 90 s takes a sample every 1.5 s: that at 1 s is not kept."""
    window = GuardWindow(90.0)
    for at_s, starts in ((0.0, 0), (1.0, 100)):
        window.figures(totals(at_s, starts), None)
    seen = window.figures(totals(90.5, 200, waited_s=200.0), None)
    assert seen.mean_wait_s == 1.0, "since 0 s, not since 1 s"


def test_breaches_name_figure_value_and_bound() -> None:
    bounds = Bounds(mean_wait_s=60.0, badput_ratio=0.5, fairness_least=0.8, error_ratio=None)
    assert breaches(bounds, Figures(61.0, 0.5, 0.7, 1.0)) == [
        "mean wait 61 is above its bound 60",
        "fairness 0.7 is below its bound 0.8",
    ]
    assert breaches(bounds, Figures()) == []
    assert breaches(Bounds(), Figures(1e9, 1.0, 0.0, 1.0)) == []


def test_a_figure_on_the_good_side_of_its_bound_or_at_it_is_no_breach() -> None:
    bounds = Bounds(mean_wait_s=60.0, badput_ratio=0.5, fairness_least=0.8, error_ratio=0.1)
    assert breaches(bounds, Figures(59.0, 0.4, 0.9, 0.0)) == []
    assert breaches(bounds, Figures(60.0, 0.5, 0.8, 0.1)) == []
    assert breaches(bounds, Figures(59.0, 0.6, 0.9, 0.2)) == [
        "badput ratio 0.6 is above its bound 0.5",
        "error ratio 0.2 is above its bound 0.1",
    ]
