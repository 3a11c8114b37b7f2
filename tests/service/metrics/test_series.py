"""Values: counters only grow, numbers of any library show, and a limit bounds how many series."""

import math

import numpy as np
import pytest

from outrider.service.metrics import MetricStore, expose
from tests.service.metrics.sites import CLASSIC, KNOWN, OPENMETRICS, read, small_site

BUCKETS = 15


def value(store: MetricStore, name: str, **labels: str) -> float:
    return read(store)[f"outrider_{name}", tuple(sorted(labels.items()))]


def refused(store: MetricStore, reason: str) -> float:
    return value(store, "metrics_refused_total", reason=reason)


def waits(*seconds_in_bucket: int) -> list[int]:
    """Buckets of waits: so many in the first ones."""
    return [*seconds_in_bucket, *[0] * (BUCKETS - len(seconds_in_bucket))]


def test_a_counter_told_to_go_backwards_keeps_its_value_and_says_so() -> None:
    store = small_site()
    store.set("goodput_seconds_total", 10.0)
    store.set("goodput_seconds_total", 9.0)
    assert value(store, "goodput_seconds_total") == 10.0
    assert refused(store, "decreased") == 1
    store.set("goodput_seconds_total", 11.0)
    assert value(store, "goodput_seconds_total") == 11.0
    assert refused(store, "decreased") == 1


def test_a_counter_cannot_begin_below_zero() -> None:
    store = small_site()
    store.set("badput_seconds_total", -1.0)
    assert value(store, "badput_seconds_total") == 0
    assert refused(store, "decreased") == 1


def test_a_counter_may_become_unknown_and_known_again() -> None:
    store = small_site()
    sleeping = {"purpose": "sleep", "cluster": "lab"}
    store.set("energy_joules_total", 5.0, *sleeping.values())
    store.set("energy_joules_total", None, *sleeping.values())
    assert math.isnan(value(store, "energy_joules_total", **sleeping))
    store.set("energy_joules_total", 6.0, *sleeping.values())
    assert value(store, "energy_joules_total", **sleeping) == 6.0


def test_a_histogram_that_lost_observations_keeps_what_it_had() -> None:
    store = small_site()
    store.set_observations("job_wait_seconds", waits(2), 1.0, "batch", "all")
    store.set_observations("job_wait_seconds", waits(1), 0.5, "batch", "all")
    batch = {"class": "batch", "vo": "all"}
    assert value(store, "job_wait_seconds_count", **batch) == 2
    assert value(store, "job_wait_seconds_sum", **batch) == 1.0
    assert refused(store, "decreased") == 1


@pytest.mark.parametrize("total_s", [-1.0, math.nan])
def test_an_impossible_sum_of_waits_is_an_error_that_names_it(total_s: float) -> None:
    store = small_site()
    with pytest.raises(ValueError, match=rf"job_wait_seconds.*{total_s} given, not a number from"):
        store.set_observations("job_wait_seconds", waits(1), total_s, "batch", "all")
    batch = {"class": "batch", "vo": "all"}
    assert value(store, "job_wait_seconds_count", **batch) == 0


def test_buckets_of_another_histogram_are_an_error() -> None:
    with pytest.raises(ValueError, match="2 buckets given, 15 declared"):
        small_site().set_observations("job_wait_seconds", [1, 2], 3.0, "batch", "all")


def test_numbers_of_numpy_and_truth_values_show_as_numbers() -> None:
    store = small_site()
    store.set("vo_share_ratio", np.float64(0.25), "all")
    store.set("jobs", np.int64(4), "queued")
    store.set("adapter_up", True, "campus")
    store.set_observations("reward", [2], np.float32(0.5), "bandit")
    found = read(store)
    assert found["outrider_vo_share_ratio", (("vo", "all"),)] == 0.25
    assert found["outrider_jobs", (("state", "queued"),)] == 4
    assert found["outrider_adapter_up", (("adapter", "campus"),)] == 1
    assert found["outrider_reward_count", (("policy", "bandit"),)] == 2
    assert found["outrider_reward_sum", (("policy", "bandit"),)] == 0.5


def test_a_snapshot_stays_as_it_was_taken() -> None:
    store = small_site()
    store.set("jobs", 4, "queued")
    store.set_observations("job_wait_seconds", waits(2), 1.0, "batch", "all")
    taken = store.snapshot()
    store.set("jobs", 5, "queued")
    store.set("repairs_total", 1, "new_kind")
    store.set_observations("job_wait_seconds", waits(3), 2.0, "batch", "all")
    assert taken.numbers["jobs"]["queued",] == 4
    assert ("new_kind",) not in taken.numbers["repairs_total"]
    assert taken.observations["job_wait_seconds"]["batch", "all"].total == 1.0


@pytest.mark.parametrize("accept", [CLASSIC, OPENMETRICS])
def test_vos_beyond_the_limit_are_shown_as_one_sum(accept: str) -> None:
    store = small_site(series_limit=3)
    for number in range(10):
        store.set("vo_share_ratio", 0.1, f"vo{number}")
    found = read(store, accept)
    shares = {
        dict(key)["vo"]: v for (name, key), v in found.items() if name.endswith("vo_share_ratio")
    }
    assert set(shares) == {"physics", "all", "vo0", "vo1", "vo2", "other"}
    assert shares["other"] == pytest.approx(0.7)
    assert found["outrider_metrics_refused_total", (("reason", "folded"),)] == 7


def test_setting_a_folded_total_twice_counts_it_once() -> None:
    store = small_site(series_limit=0)
    for _ in range(2):
        for cluster in ("attic", "cellar"):
            store.set("evictions_total", 5, "owner", cluster)
    store.set("evictions_total", 1, "reboot", "attic")
    found = read(store)
    name = "outrider_evictions_total"
    assert found[name, (("cluster", "other"), ("reason", "owner"))] == 10
    assert found[name, (("cluster", "other"), ("reason", "reboot"))] == 1
    assert refused(store, "folded") == 3


def test_a_folded_counter_told_to_go_backwards_keeps_its_part_of_the_sum() -> None:
    store = small_site(series_limit=0)
    for total in (5, 4):
        store.set("evictions_total", total, "owner", "attic")
    assert value(store, "evictions_total", reason="owner", cluster="other") == 5
    assert refused(store, "decreased") == 1


def test_folded_waits_add_up() -> None:
    store = small_site(series_limit=0)
    store.set_observations("job_wait_seconds", waits(1), 0.5, "batch", "a")
    store.set_observations("job_wait_seconds", [0, 1, *[0] * 12, 1], 1e9 + 2.0, "batch", "b")
    found = read(store, OPENMETRICS)
    other = (("class", "other"), ("vo", "other"))
    assert found["outrider_job_wait_seconds_count", other] == 3
    assert found["outrider_job_wait_seconds_sum", other] == 1e9 + 2.5
    below_1_s = (("class", "other"), ("le", "1.0"), ("vo", "other"))
    assert found["outrider_job_wait_seconds_bucket", below_1_s] == 1


def test_a_vo_that_is_really_called_other_joins_the_sum() -> None:
    store = MetricStore({**KNOWN, "vo": ["other"]}, series_limit=0)
    store.set("vo_share_ratio", 0.5, "other")
    store.set("vo_share_ratio", 0.25, "late")
    assert value(store, "vo_share_ratio", vo="other") == 0.75
    store.set("vo_share_ratio", 0.0, "other")
    assert value(store, "vo_share_ratio", vo="other") == 0.25


def test_series_known_from_the_start_do_not_count_against_the_limit() -> None:
    clusters = [f"room{number}" for number in range(100)]
    store = MetricStore({**KNOWN, "cluster": clusters}, series_limit=1)
    for cluster in clusters:
        store.set("evictions_total", 1, "owner", cluster)
    assert refused(store, "folded") == 0


def test_a_value_outside_a_closed_list_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r'reason="ownr" was never declared; did you mean "owner"'):
        small_site().set("evictions_total", 1, "ownr", "lab")


def test_a_missing_label_value_is_an_error_that_names_the_labels() -> None:
    with pytest.raises(ValueError, match="expected one each for reason, cluster"):
        small_site().set("evictions_total", 1, "owner")


def test_a_state_that_was_never_declared_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r'"shadw" was never declared; did you mean "shadow"'):
        small_site().choose_state("mode", "shadw")


def test_a_label_that_no_metric_leaves_to_the_site_is_an_error() -> None:
    message = r'"clusters" is not a site-dependent label of any metric; did you mean "cluster"'
    with pytest.raises(ValueError, match=message):
        MetricStore({"clusters": ["lab"]})


def test_all_series_together_have_a_bound_in_bytes() -> None:
    store = MetricStore(KNOWN, series_bytes=200_000)
    for n in range(400):
        name = f"{n}" + '"' * 250
        store.set_observations("job_wait_seconds", waits(1), 1.0, "batch", name)
        store.set("vo_share_ratio", 0.5, name)
        store.set("evictions_total", 1, "owner", name)
    for accept in (CLASSIC, OPENMETRICS):
        assert len(expose(store.snapshot(), accept)[0]) < 400_000
    assert refused(store, "folded") > 800


def test_labels_known_from_the_start_are_bounded_in_bytes_too() -> None:
    clusters = [f"{n:0256}" for n in range(1_000)]
    store = MetricStore({**KNOWN, "cluster": clusters}, series_bytes=1_000_000)
    for name in clusters:
        store.set("machines", 2, "free", name)
    shown = expose(store.snapshot(), CLASSIC)[0]
    assert len(shown) < 1_200_000
    free = {key: n for (name, key), n in read(store).items() if name == "outrider_machines"}
    assert sum(n for key, n in free.items() if ("state", "free") in key) == 2_000


def test_a_series_that_is_dropped_leaves_its_bytes_to_another() -> None:
    store = MetricStore(KNOWN, series_bytes=200_000)
    for turn in range(20):
        names = [f"{turn}-{n:0200}" for n in range(100)]
        store.keep("vo_share_ratio", [])
        for name in names:
            store.set("vo_share_ratio", 0.5, name)
    assert refused(store, "folded") == 0
