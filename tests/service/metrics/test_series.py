"""Series: counters only grow, numbers of any library print, and the guard bounds how many."""

import math

import numpy as np
import pytest

from outrider.service.metrics import Exposition, Registry
from tests.service.metrics.sites import KNOWN, read, small_site


def refused(registry: Registry, reason: str) -> float:
    return registry.number("metrics_refused_total", reason).value


def test_a_counter_told_to_go_backwards_keeps_its_value_and_says_so() -> None:
    registry = small_site()
    goodput = registry.number("goodput_seconds_total")
    goodput.set(10.0)
    goodput.set(9.0)
    assert goodput.value == 10.0
    assert refused(registry, "decreased") == 1
    goodput.set(11.0)
    assert goodput.value == 11.0
    assert refused(registry, "decreased") == 1


def test_a_counter_cannot_begin_below_zero() -> None:
    registry = small_site()
    registry.number("badput_seconds_total").set(-1.0)
    assert registry.number("badput_seconds_total").value == 0
    assert refused(registry, "decreased") == 1


def test_a_counter_may_become_unknown_and_known_again() -> None:
    energy = small_site().number("energy_joules_total", "sleep", "lab")
    energy.set(5.0)
    energy.set(None)
    assert math.isnan(energy.value)
    energy.set(6.0)
    assert energy.value == 6.0


def test_a_counter_refuses_to_grow_by_less_than_nothing() -> None:
    with pytest.raises(ValueError, match=r"outrider_events_late_total: .* cannot grow by -1"):
        small_site().number("events_late_total").inc(-1)


def test_a_histogram_that_lost_observations_keeps_what_it_had() -> None:
    registry = small_site()
    waits = registry.spread("job_wait_seconds", "batch", "all")
    waits.set([2] + [0] * 14, 1.0)
    waits.set([1] + [0] * 14, 0.5)
    assert (sum(waits.buckets), waits.sum) == (2, 1.0)
    assert refused(registry, "decreased") == 1


@pytest.mark.parametrize("wait_s", [-1.0, math.nan])
def test_an_impossible_wait_is_an_error_that_names_it(wait_s: float) -> None:
    waits = small_site().spread("job_wait_seconds", "batch", "all")
    with pytest.raises(ValueError, match=rf"job_wait_seconds.*{wait_s} given, not a number from 0"):
        waits.observe(wait_s)
    assert sum(waits.buckets) == 0


def test_buckets_of_another_histogram_are_an_error() -> None:
    with pytest.raises(ValueError, match="2 buckets given, 15 declared"):
        small_site().spread("job_wait_seconds", "batch", "all").set([1, 2], 3.0)


def test_numbers_of_numpy_and_truth_values_print_as_numbers() -> None:
    registry = small_site()
    registry.number("vo_share_ratio", "all").set(np.float64(0.25))
    registry.number("jobs", "queued").set(np.int64(4))
    registry.number("adapter_up", "campus").set(True)
    registry.number("events_late_total").inc(np.int64(2))
    found = read(registry, Exposition.CLASSIC)
    assert found["outrider_vo_share_ratio", (("vo", "all"),)] == 0.25
    assert found["outrider_jobs", (("state", "queued"),)] == 4
    assert found["outrider_adapter_up", (("adapter", "campus"),)] == 1
    assert found["outrider_events_late_total", ()] == 2


@pytest.mark.parametrize("exposition", list(Exposition))
def test_vos_beyond_the_guard_are_shown_as_one_sum(exposition: Exposition) -> None:
    registry = small_site(series_limit=3)
    for number in range(10):
        registry.number("vo_share_ratio", f"vo{number}").set(0.1)
    found = read(registry, exposition)
    shares = {
        dict(key)["vo"]: v for (name, key), v in found.items() if name.endswith("vo_share_ratio")
    }
    assert set(shares) == {"physics", "all", "vo0", "vo1", "vo2", "other"}
    assert shares["other"] == pytest.approx(0.7)
    assert found["outrider_metrics_refused_total", (("reason", "folded"),)] == 7


def test_setting_a_folded_total_twice_counts_it_once() -> None:
    registry = small_site(series_limit=0)
    for _ in range(2):
        for cluster in ("attic", "cellar"):
            registry.number("evictions_total", "owner", cluster).set(5)
    registry.number("evictions_total", "reboot", "attic").set(1)
    found = read(registry, Exposition.CLASSIC)
    name = "outrider_evictions_total"
    assert found[name, (("cluster", "other"), ("reason", "owner"))] == 10
    assert found[name, (("cluster", "other"), ("reason", "reboot"))] == 1
    assert refused(registry, "folded") == 3


def test_folded_waits_add_up() -> None:
    registry = small_site(series_limit=0)
    for vo, wait_s in (("a", 0.5), ("b", 2.0), ("b", 1e9)):
        registry.spread("job_wait_seconds", "batch", vo).observe(wait_s)
    found = read(registry, Exposition.OPENMETRICS)
    other = (("class", "other"), ("vo", "other"))
    assert found["outrider_job_wait_seconds_count", other] == 3
    assert found["outrider_job_wait_seconds_sum", other] == 1e9 + 2.5
    below_1_s = (("class", "other"), ("le", "1.0"), ("vo", "other"))
    assert found["outrider_job_wait_seconds_bucket", below_1_s] == 1


def test_a_vo_that_is_really_called_other_joins_the_sum() -> None:
    registry = Registry({**KNOWN, "vo": ["other"]}, series_limit=0)
    registry.number("vo_share_ratio", "other").set(0.5)
    registry.number("vo_share_ratio", "late").set(0.25)
    assert read(registry, Exposition.CLASSIC)["outrider_vo_share_ratio", (("vo", "other"),)] == 0.75
    registry.number("vo_share_ratio", "other").set(0.0)
    assert read(registry, Exposition.CLASSIC)["outrider_vo_share_ratio", (("vo", "other"),)] == 0.25


def test_series_known_from_the_start_do_not_count_against_the_guard() -> None:
    clusters = [f"room{number}" for number in range(100)]
    registry = Registry({**KNOWN, "cluster": clusters}, series_limit=1)
    for cluster in clusters:
        registry.number("evictions_total", "owner", cluster).inc()
    assert refused(registry, "folded") == 0


def test_a_value_outside_a_closed_list_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r'reason="ownr" was never declared; did you mean "owner"'):
        small_site().number("evictions_total", "ownr", "lab")


def test_a_missing_label_value_is_an_error_that_names_the_labels() -> None:
    with pytest.raises(ValueError, match="one each for reason, cluster would be right"):
        small_site().number("evictions_total", "owner")


def test_a_label_that_no_metric_leaves_to_the_site_is_an_error() -> None:
    with pytest.raises(ValueError, match=r'"clusters" to the site; did you mean "cluster"'):
        Registry({"clusters": ["lab"]})
