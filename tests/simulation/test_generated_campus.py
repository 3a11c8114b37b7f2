"""Generated campuses: what the paper says of its year, and what a seed promises."""

import datetime as dt
from typing import Any

import numpy as np
import pytest

from outrider.formats.campus.campus import Campus
from outrider.model.errors import ConfigurationError
from outrider.simulation.generators.campus import generate_campus

DAY_S = 86_400
REBOOT_H = 3
PAPER_USEFUL_MWH = 37.4
PAPER_WASTED_MWH = 83.6
"""MWh wasted under random matching, from section 7 of the paper."""
STORM_DAY = 153  # 3 June 2010
SMALL: dict[str, Any] = {"weeks": 4, "machines": 60, "clusters": 4, "start": dt.date(2010, 2, 1)}


@pytest.fixture(scope="module")
def year() -> Campus:
    """A generated year of a campus."""
    return generate_campus(100)


def columns_of(campus: Campus) -> dict[str, Any]:
    return {
        name: getattr(campus, name)
        for name in (
            "machine_names", "active_w", "session_machine", "login_s", "logout_s",
            "job_names", "submit_s", "run_s", "kill_s", "user", "vo",
        )
    }  # fmt: skip


def assert_same(one: Campus, other: Campus, *names: str) -> None:
    mine, theirs = columns_of(one), columns_of(other)
    for name in names or tuple(mine):
        np.testing.assert_array_equal(mine[name], theirs[name], err_msg=name)


# -- the paper's year ---------------------------------------------------------------------------


def test_the_year_has_the_papers_machines_clusters_and_jobs(year: Campus) -> None:
    assert len(year.machine_names) == 1_359
    assert len(year.clusters) == 37
    assert len(year.job_names) == 532_467
    assert int(np.isnan(year.run_s).sum()) == 131_909
    assert len(year.login_s) == pytest.approx(1_229_820, rel=0.02)


def test_watts_are_those_of_table_1_and_alike_within_a_cluster(year: Campus) -> None:
    for cluster in range(37):
        watts = {
            (a, i, s)
            for a, i, s, c in zip(
                year.active_w, year.idle_w, year.sleep_w, year.machine_cluster, strict=True
            )
            if c == cluster
        }
        assert len(watts) == 1
        active_w, idle_w, sleep_w = watts.pop()
        legacy = sleep_w == 4 and 100 <= active_w <= 180 and 50 <= idle_w <= 80
        assert legacy or (active_w, idle_w, sleep_w) in {(57, 40, 2), (114, 67, 3)}


def test_some_clusters_never_close_and_some_open_for_teaching_only(year: Campus) -> None:
    opening = {spec.hours.text for spec in year.clusters}
    assert {"always", "mon-fri 09:00-17:00"} < opening


def test_sessions_of_one_machine_never_overlap(year: Campus) -> None:
    order = np.lexsort((year.login_s, year.session_machine))
    machine = year.session_machine[order]
    gap_s = year.login_s[order][1:] - year.logout_s[order][:-1]
    assert gap_s[machine[1:] == machine[:-1]].min() > 0
    assert (year.logout_s >= year.login_s).all()


def test_nobody_is_in_a_room_that_is_closed(year: Campus) -> None:
    minutes = np.array([np.frombuffer(spec.hours.minutes, np.uint8) for spec in year.clusters])
    cluster = year.machine_cluster[year.session_machine]
    monday_s = year.start.weekday() * DAY_S
    for time_s in (year.login_s, year.logout_s - 0.1):
        minute = ((time_s + monday_s) % (7 * DAY_S) // 60).astype(int)
        assert (minutes[cluster, minute] == 1).all()


def test_terms_are_four_times_as_busy_as_vacations_and_weekends_are_quiet(year: Campus) -> None:
    a_day = np.bincount((year.login_s // DAY_S).astype(int), minlength=365)
    weekday = (np.arange(365) + year.start.weekday()) % 7
    term = (np.arange(365) >= 108) & (np.arange(365) < 171)  # 19 April to 20 June
    summer = (np.arange(365) >= 171) & (np.arange(365) < 269)
    in_term = a_day[term & (weekday < 5)].mean()
    assert 3.3 < in_term / a_day[summer & (weekday < 5)].mean() < 5.0
    assert 4.0 < in_term / a_day[term & (weekday >= 5)].mean() < 7.0


def test_most_log_ins_fall_between_nine_and_five(year: Campus) -> None:
    hour = (year.login_s % DAY_S // 3600).astype(int)
    assert 0.73 < ((hour >= 9) & (hour < 17)).mean() < 0.83
    assert ((hour >= 2) & (hour < 6)).mean() < 0.02


def test_seats_of_one_room_are_not_equally_popular(year: Campus) -> None:
    uses = np.bincount(year.session_machine, minlength=1_359)
    rooms = np.bincount(year.machine_cluster, uses) / np.bincount(year.machine_cluster)
    relative = uses / rooms[year.machine_cluster]
    assert 0.4 < relative.std() < 0.8
    low, high = np.quantile(relative, [0.05, 0.95])
    assert low < 0.3
    assert high > 1.7


def test_machines_stay_free_for_as_long_as_figure_4_says(year: Campus) -> None:
    """An hour is safest between 3 and 8. Long jobs that end by the reboot at 3: about half."""
    hours = np.arange(24)
    start_h = np.arange(365)[:, None] * 24.0 + hours + 0.5
    free = np.zeros(24)
    an_hour, until_reboot = np.zeros(24), np.zeros(24)
    order = np.lexsort((year.login_s, year.session_machine))
    first = np.searchsorted(year.session_machine[order], np.arange(0, 1_360))
    for machine in range(0, 1_359, 10):
        mine = order[first[machine] : first[machine + 1]]
        number = np.searchsorted(year.login_s[mine], start_h * 3600)
        gone_h = np.append(-np.inf, year.logout_s[mine])[number] / 3600
        back_h = np.append(year.login_s[mine], np.inf)[number] / 3600 - start_h
        is_free = gone_h <= start_h
        free += is_free.sum(0)
        an_hour += (is_free & (back_h > 1)).sum(0)
        until_reboot += (is_free & (back_h > (REBOOT_H - 0.5 - hours) % 24)).sum(0)
    assert REBOOT_H <= (an_hour / free).argmax() < 8
    assert until_reboot[4:13].sum() / free[4:13].sum() == pytest.approx(0.5, abs=0.1)


def test_sessions_last_an_hour_on_average_and_half_of_them_under_45_minutes(year: Campus) -> None:
    stay_min = (year.logout_s - year.login_s) / 60
    assert 52 < stay_min.mean() < 66
    assert 33 < np.median(stay_min) < 45
    assert 300 < np.quantile(stay_min, 0.99) < 400


def test_most_good_jobs_end_within_three_hours_and_all_within_a_night(year: Campus) -> None:
    run_h = year.run_s[~np.isnan(year.run_s)] / 3600
    assert 0.8 < (run_h < 3).mean() < 1
    assert run_h.max() < 24


def test_good_jobs_need_the_papers_useful_energy_on_machines_drawn_at_random(year: Campus) -> None:
    useful_mwh = np.nansum(year.run_s) / 3600 * year.active_w.mean() / 1e6
    assert useful_mwh == pytest.approx(PAPER_USEFUL_MWH, rel=0.05)


def test_bad_jobs_live_long_enough_to_waste_what_the_papers_did(year: Campus) -> None:
    """Good jobs that are evicted make about a twelfth of the waste; a year varies by 5 %."""
    bad = np.isnan(year.run_s)
    wasted_mwh = (year.kill_s - year.submit_s)[bad].sum() / 3600 * year.active_w.mean() / 1e6
    assert wasted_mwh == pytest.approx(11 / 12 * PAPER_WASTED_MWH, rel=0.15)


def test_the_third_of_june_has_ninety_three_thousand_jobs_more(year: Campus) -> None:
    a_day = np.bincount((year.submit_s // DAY_S).astype(int), minlength=365)
    assert a_day.argmax() == STORM_DAY
    assert 93_000 <= a_day[STORM_DAY] < 97_500
    assert np.sort(a_day)[-2] < 8_000


def test_bad_jobs_are_killed_after_a_heavy_tailed_lag(year: Campus) -> None:
    bad = np.isnan(year.run_s)
    assert np.isnan(year.kill_s[~bad]).all()
    lag_h = (year.kill_s - year.submit_s)[bad] / 3600
    assert lag_h.min() >= 0
    median, p99 = np.quantile(lag_h, [0.5, 0.99])
    assert 0.5 < median < 1.5
    assert p99 > 50 * median


def test_a_batch_is_killed_as_a_whole(year: Campus) -> None:
    bad = np.isnan(year.run_s)
    kills = np.unique(np.stack([year.user[bad], year.kill_s[bad]]), axis=1).shape[1]
    assert 15 < bad.sum() / kills < 60


def test_nothing_happens_after_the_end(year: Campus) -> None:
    assert year.span_s <= 365 * DAY_S
    assert np.nanmax(year.kill_s) <= 365 * DAY_S


# -- seeds --------------------------------------------------------------------------------------


def test_the_same_seed_makes_the_same_campus() -> None:
    assert_same(generate_campus(7, **SMALL), generate_campus(7, **SMALL))


def test_another_seed_makes_another_campus() -> None:
    one, other = generate_campus(7, **SMALL), generate_campus(8, **SMALL)
    assert not np.array_equal(one.login_s, other.login_s)
    assert not np.array_equal(one.submit_s, other.submit_s)


@pytest.mark.parametrize("changed", [{"jobs": 100}, {"jobs": 0}, {"bad_jobs": 0}])
def test_options_about_jobs_change_no_session(changed: dict[str, int]) -> None:
    assert_same(
        generate_campus(7, **SMALL),
        generate_campus(7, **SMALL, **changed),
        "machine_names", "active_w", "session_machine", "login_s", "logout_s",
    )  # fmt: skip


def test_a_longer_campus_begins_with_the_sessions_of_a_shorter_one() -> None:
    short = generate_campus(7, **SMALL)
    long = generate_campus(7, **SMALL | {"weeks": 6})
    began = long.login_s < 4 * 7 * DAY_S
    np.testing.assert_array_equal(long.login_s[began], short.login_s)
    np.testing.assert_array_equal(long.session_machine[began], short.session_machine)


# -- sizes --------------------------------------------------------------------------------------


def test_jobs_are_in_proportion_to_machines_and_time() -> None:
    campus = generate_campus(3, weeks=10, machines=136, clusters=5)
    share = 136 / 1_359 * 10 / (365 / 7)
    assert len(campus.job_names) == pytest.approx(439_467 * share, abs=1)
    assert np.isnan(campus.run_s).sum() == pytest.approx(131_909 * share, abs=1)


def test_a_small_pool_has_as_many_sessions_a_machine_as_a_large_one() -> None:
    counts = [
        len(generate_campus(seed, machines=100, clusters=5, jobs=0).login_s) for seed in (1, 2, 3)
    ]
    assert np.mean(counts) == pytest.approx(1_229_820 * 100 / 1_359, rel=0.03)


def test_bad_jobs_live_as_long_in_a_small_pool_as_in_a_large_one() -> None:
    lived_h = []
    for seed in (1, 2, 3, 4):
        campus = generate_campus(seed, machines=200, clusters=5)
        lived_h.append(np.nansum(campus.kill_s - campus.submit_s) / 3600)
    watts = (24 * 57 + 5 * 114 + 8 * 140) / 37  # of the large pool, on the average
    wasted_mwh = np.mean(lived_h) * watts / 1e6 * 1_359 / 200
    assert wasted_mwh == pytest.approx(11 / 12 * PAPER_WASTED_MWH, rel=0.2)


@pytest.mark.parametrize(
    ("jobs", "bad_jobs"), [(0, 0), (1, 0), (1, 1), (50, 50), (1_000, 999), (1_000, 1), (500, 0)]
)
def test_jobs_and_bad_jobs_are_met_exactly(jobs: int, bad_jobs: int) -> None:
    campus = generate_campus(5, **SMALL, jobs=jobs, bad_jobs=bad_jobs)
    assert len(campus.job_names) == jobs
    assert int(np.isnan(campus.run_s).sum()) == bad_jobs
    assert int((~np.isnan(campus.kill_s)).sum()) == bad_jobs


@pytest.mark.parametrize(
    "size",
    [
        {"weeks": 0.01, "machines": 1, "clusters": 1},
        {"weeks": 1, "machines": 37, "clusters": 37},
        {"weeks": 0.5, "machines": 10, "clusters": 3, "start": dt.date(2010, 6, 3)},
        {"weeks": 30, "machines": 5, "clusters": 1, "start": dt.date(2024, 2, 29)},
    ],
)
def test_odd_sizes_make_whole_campuses(size: dict[str, Any]) -> None:
    campus = generate_campus(11, **size)
    assert len(campus.machine_names) == size["machines"]
    assert len(campus.clusters) == size["clusters"]
    assert set(campus.machine_cluster) == set(range(size["clusters"]))
    assert campus.span_s <= round(size["weeks"] * 7 * DAY_S, 1)
    assert (np.diff(campus.login_s) >= 0).all()
    assert (np.diff(campus.submit_s) >= 0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weeks": 0}, '"weeks" = 0'),
        ({"weeks": float("nan")}, '"weeks" = nan'),
        ({"machines": 0}, '"machines" = 0'),
        ({"machines": 3, "clusters": 4}, "clusters = 4 is more than machines = 3"),
        ({"jobs": -1}, '"jobs" = -1'),
        ({"jobs": 10, "bad_jobs": 11}, "bad_jobs = 11 is more than all jobs .10."),
        ({"machine": 3}, 'unknown setting "machine"; did you mean "machines"'),
        ({"weeks": 520, "machines": 1_000, "clusters": 1_000}, "GB; expected"),
        ({"start": dt.date(9999, 12, 20)}, "leaves no calendar"),
    ],
)
def test_impossible_options_are_refused_and_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        generate_campus(1, **options)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="seed = -1; expected 0 or more"):
        generate_campus(-1)
