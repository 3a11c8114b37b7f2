"""A scrape returns the values that were set, in both formats, with any labels and numbers."""

import math
from itertools import accumulate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from outrider.engine.accounting.distribution import WAIT_BOUNDS_S
from outrider.model.modes import MODES
from outrider.service.metrics import METRICS, Kind, MetricStore, expose, negotiate
from tests.service.metrics.sites import (
    CLASSIC,
    OPENMETRICS,
    PROMETHEUS_3,
    one_metric,
    parse,
    read,
    samples,
    small_site,
)

both_formats = pytest.mark.parametrize("accept", [CLASSIC, OPENMETRICS, PROMETHEUS_3])
LINE_BREAKING = '\\ " \n \r \t { } , = # é 東 \x85 \u2028 \x00'
numbers = st.one_of(st.floats(), st.integers(-(2**70), 2**70))
totals = st.one_of(st.floats(min_value=0), st.integers(0, 2**70))
words = st.text(st.characters(exclude_categories=["Cs"]))


def same(left: float, right: float) -> bool:
    return left == right or (math.isnan(left) and math.isnan(right))


@both_formats
@given(word=words, number=numbers)
def test_any_gauge_survives_the_round_trip(accept: str, word: str, number: float) -> None:
    store = one_metric("vo_share_ratio")
    store.set("vo_share_ratio", number, word)
    found = read(store, accept)["outrider_vo_share_ratio", (("vo", word),)]
    assert same(found, float(number))


@both_formats
@given(word=words, total=totals)
def test_any_counter_survives_the_round_trip(accept: str, word: str, total: float) -> None:
    store = one_metric("repairs_total")
    store.set("repairs_total", total, word)
    assert read(store, accept)["outrider_repairs_total", (("kind", word),)] == float(total)


@both_formats
@given(buckets=st.lists(st.integers(0, 10**6), min_size=15, max_size=15), total=st.floats(0, 1e9))
def test_a_histogram_counts_each_wait_in_every_bucket_above_it(
    accept: str, buckets: list[int], total: float
) -> None:
    store = one_metric("job_wait_seconds")
    store.set_observations("job_wait_seconds", buckets, total, "batch", "all")
    found = read(store, accept)
    labels = (("class", "batch"), ("vo", "all"))
    shown = {
        float(dict(key)["le"]): n
        for (name, key), n in found.items()
        if name == "outrider_job_wait_seconds_bucket" and set(labels) < set(key)
    }
    assert list(shown) == [*WAIT_BOUNDS_S, math.inf]
    assert list(shown.values()) == list(accumulate(buckets))
    assert found["outrider_job_wait_seconds_count", labels] == sum(buckets)
    assert found["outrider_job_wait_seconds_sum", labels] == total


@both_formats
def test_labels_made_to_break_lines_do_not(accept: str) -> None:
    store = small_site()
    store.set("events_rejected_total", 3, LINE_BREAKING, LINE_BREAKING)
    labels = (("adapter", LINE_BREAKING), ("reason", LINE_BREAKING))
    assert read(store, accept)["outrider_events_rejected_total", labels] == 3


@both_formats
def test_bytes_that_were_no_text_are_spelled_out(accept: str) -> None:
    store = small_site()
    store.set("vo_share_ratio", 1, b"caf\xe9".decode(errors="surrogateescape"))
    assert read(store, accept)["outrider_vo_share_ratio", (("vo", "caf\\udce9"),)] == 1


@both_formats
def test_unknown_energy_is_not_a_number_and_never_zero(accept: str) -> None:
    store = small_site()
    store.set("energy_joules_total", None, "idle", "lab")
    store.set("energy_joules_total", 7.5, "goodput", "lab")
    found = read(store, accept)
    name = "outrider_energy_joules_total"
    assert math.isnan(found[name, (("cluster", "lab"), ("purpose", "idle"))])
    assert found[name, (("cluster", "lab"), ("purpose", "goodput"))] == 7.5
    assert math.isnan(found[name, (("cluster", "library"), ("purpose", "owner"))])


@both_formats
def test_rewards_may_be_negative_in_sum(accept: str) -> None:
    store = small_site()
    store.set_observations("reward", (2,), -1.5, "bandit")
    found = read(store, accept)
    assert found["outrider_reward_sum", (("policy", "bandit"),)] == -1.5
    assert found["outrider_reward_count", (("policy", "bandit"),)] == 2
    assert found["outrider_reward_count", (("policy", "fifo"),)] == 0


@both_formats
def test_exactly_one_mode_is_true(accept: str) -> None:
    store = small_site()
    store.choose_state("mode", "observe")
    store.choose_state("mode", "shadow")
    found = read(store, accept)
    for mode in MODES:
        key = ("outrider_mode", (("outrider_mode", mode),))
        assert found[key] == (1 if mode == "shadow" else 0)


def known_everywhere() -> MetricStore:
    """Nothing unknown, so that every metric has its own type in OpenMetrics."""
    store = small_site()
    for labels in store.snapshot().numbers["energy_joules_total"]:
        store.set("energy_joules_total", 1.5, *labels)
    store.choose_state("mode", "shadow")
    return store


@pytest.mark.parametrize("accept", [OPENMETRICS, PROMETHEUS_3])
def test_openmetrics_gives_each_metric_its_declared_type_unit_and_help(accept: str) -> None:
    parsed = {family.name: family for family in parse(known_everywhere(), accept)}
    assert len(parsed) == len(METRICS)
    for metric in METRICS:
        family = parsed[metric.family_name]
        declared = (metric.kind.value, metric.unit, metric.help)
        assert (family.type, family.unit, family.documentation) == declared


def test_the_classic_text_gives_each_metric_a_type_of_its_own_and_help() -> None:
    text = expose(small_site().snapshot())[0].decode()
    heads = [line for line in text.splitlines() if line.startswith("#")]
    spelled = {Kind.STATE_SET: "gauge", Kind.INFO: "gauge"}
    assert heads == [
        line
        for metric in METRICS
        for line in (
            f"# HELP {metric.full_name} {metric.help}",
            f"# TYPE {metric.full_name} {spelled.get(metric.kind, metric.kind.value)}",
        )
    ]


@both_formats
def test_no_series_says_when_another_was_created(accept: str) -> None:
    names = {name for name, _ in read(known_everywhere(), accept)}
    assert not {name for name in names if name.endswith("_created")}


def test_all_formats_hold_the_same_samples() -> None:
    store = known_everywhere()
    store.set_observations("decision_seconds", [0] * 8 + [1] + [0] * 5, 0.003)
    classic = read(store, CLASSIC)
    for accept in (OPENMETRICS, PROMETHEUS_3):
        modern = read(store, accept)
        assert classic.keys() == modern.keys()
        assert all(same(classic[key], modern[key]) for key in classic)


@both_formats
def test_every_declared_series_is_present_from_the_start(accept: str) -> None:
    found = read(small_site(), accept)
    named = {name for name, _ in found}
    suffixes = {Kind.HISTOGRAM: ("_bucket", "_count", "_sum"), Kind.SUMMARY: ("_count", "_sum")}
    for metric in METRICS:
        for suffix in suffixes.get(metric.kind, ("",)):
            assert metric.full_name + suffix in named
    evictions = [labels for name, labels in found if name == "outrider_evictions_total"]
    assert len(evictions) == 9 * 2
    decisions = [labels for name, labels in found if name == "outrider_decisions_total"]
    assert len(decisions) == 2 * 7 * 4
    assert len(samples(parse(small_site(), accept))) == len(found)


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "text/plain; version=0.0.4"),
        ("*/*", "text/plain; version=0.0.4"),
        ("text/html, */*;q=0.8", "text/plain; version=0.0.4"),
        ("text/plain", "text/plain; version=0.0.4"),
        ("application/openmetrics-text", "application/openmetrics-text; version=1.0.0"),
        ("application/openmetrics-text; version=0.0.1", "text/plain; version=0.0.4"),
        ("application/openmetrics-text; version=odd", "text/plain; version=0.0.4"),
        ("application/openmetrics-text; version=1.0.0.\udcff", "text/plain; version=0.0.4"),
        (",;=,", "text/plain; version=0.0.4"),
        (PROMETHEUS_3, "application/openmetrics-text; version=1.0.0"),
    ],
)
def test_openmetrics_goes_to_those_who_ask_for_it(accept: str, content_type: str) -> None:
    body, told = expose(small_site().snapshot(), accept)
    assert told.startswith(content_type)
    assert "charset=utf-8" in told
    assert body.endswith(b"# EOF\n") == ("openmetrics" in content_type)


@given(accept=st.text(st.sampled_from("application/openmetrics-text;version=1.0,* nan\udcff")))
@example(accept="application/openmetrics-text;version=")
@example(accept="text/plain;version=1.x")
def test_no_accept_header_is_an_error(accept: str) -> None:
    _, content_type = negotiate(accept)
    assert content_type.encode("ascii").startswith((b"text/plain", b"application/openmetrics"))
