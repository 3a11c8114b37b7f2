"""The declarations keep the rules that every scrape, page and dashboard relies on."""

import re

import pytest

from outrider.service.metrics import METRICS, Kind, Metric

each_metric = pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
PROMISED = """
    job_wait_seconds{class,vo} jobs{state} machines{state,cluster}
    energy_joules_total{purpose,cluster} power_watts{source} goodput_seconds_total
    badput_seconds_total evictions_total{reason,cluster} fairness_utility_ratio
    fairness_windowed_ratio vo_share_ratio{vo} vo_target_ratio{vo}
    decisions_total{policy,action,mode} decision_seconds agreement_total{policy,agrees}
    reward{policy} input_age_seconds{adapter} adapter_up{adapter} events_total{adapter,kind}
    events_rejected_total{adapter,reason} events_late_total mode{outrider_mode}
    twin_state{outrider_twin_state} twin_asked_timestamp_seconds
    twin_ratio{policy,answer,measure,bound} twin_candidate_state{policy,state}
    twin_forecast_state{outrider_twin_forecast_state} twin_fidelity_ratio{part}
    starts_state{outrider_starts_state} starts_coverage_ratio{asked} starts_scored{asked}
"""


def test_each_metric_is_declared_once() -> None:
    names = [metric.name for metric in METRICS]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("promise", PROMISED.split())
def test_metrics_that_others_rely_on_keep_their_names_and_labels(promise: str) -> None:
    name, _, labels = promise.rstrip("}").partition("{")
    declared = {metric.name: metric for metric in METRICS}
    assert ",".join(declared[name].labels) == labels


@each_metric
def test_no_label_could_hold_a_job(metric: Metric) -> None:
    assert not {"job", "jobs", "job_id", "jobid", "id", "user", "machine"} & set(metric.labels)


@each_metric
def test_names_and_labels_follow_their_kind(metric: Metric) -> None:
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", metric.name)
    assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER)
    assert metric.name.endswith("_info") == (metric.kind is Kind.INFO)
    assert bool(metric.bounds) == (metric.kind is Kind.HISTOGRAM)
    assert list(metric.bounds) == sorted(set(metric.bounds))
    assert not {"le", "quantile"} & set(metric.labels)
    if metric.kind is Kind.STATE_SET:  # OpenMetrics wants its label to be called as the metric
        assert list(metric.labels) == [metric.full_name]


@each_metric
def test_each_help_is_one_sentence_with_the_unit(metric: Metric) -> None:
    assert re.fullmatch(r"[A-Z][^\n\"\\|]*[^.]\.", metric.help)
    assert metric.unit.removesuffix("s") in metric.help.lower().replace("-", " ")
