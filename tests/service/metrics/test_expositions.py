"""What a scrape gets is what was set, in both formats, whatever the labels and numbers are."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.model.decisions import MODES
from outrider.service.metrics import METRICS, Exposition, Kind, Registry, negotiate, render
from tests.service.metrics.sites import parse, read, samples, small_site

both_formats = pytest.mark.parametrize("exposition", list(Exposition))
LINE_BREAKING = '\\ " \n \r \t { } , = # é 東 \x85 \u2028 \x00'
numbers = st.one_of(st.floats(), st.integers(-(2**70), 2**70))
totals = st.one_of(st.floats(min_value=0), st.integers(0, 2**70))
words = st.text(st.characters(exclude_categories=["Cs"]))


def same(left: float, right: float) -> bool:
    return left == right or (math.isnan(left) and math.isnan(right))


@both_formats
@given(word=words, number=numbers)
def test_any_gauge_survives_the_round_trip(
    exposition: Exposition, word: str, number: float
) -> None:
    registry = small_site()
    registry.number("vo_share_ratio", word).set(number)
    found = read(registry, exposition)["outrider_vo_share_ratio", (("vo", word),)]
    assert same(found, number)
    assert type(found) is int or not isinstance(number, int)


@both_formats
@given(word=words, total=totals)
def test_any_counter_survives_the_round_trip(
    exposition: Exposition, word: str, total: float
) -> None:
    registry = small_site()
    registry.number("repairs_total", word).set(total)
    assert read(registry, exposition)["outrider_repairs_total", (("kind", word),)] == total


@both_formats
@given(waits=st.lists(st.floats(0, 1e9)))
def test_a_histogram_counts_each_wait_in_every_bucket_above_it(
    exposition: Exposition, waits: list[float]
) -> None:
    registry = small_site()
    for wait_s in waits:
        registry.spread("job_wait_seconds", "batch", "all").observe(wait_s)
    found = read(registry, exposition)
    labels = (("class", "batch"), ("vo", "all"))
    buckets = {
        float(dict(key)["le"]): n
        for (name, key), n in found.items()
        if name == "outrider_job_wait_seconds_bucket" and set(labels) < set(key)
    }
    assert len(buckets) == 15
    for bound, n in buckets.items():
        assert n == sum(wait_s <= bound for wait_s in waits)
    assert found["outrider_job_wait_seconds_count", labels] == len(waits)
    assert found["outrider_job_wait_seconds_sum", labels] == pytest.approx(sum(waits))


@both_formats
def test_labels_made_to_break_lines_do_not(exposition: Exposition) -> None:
    registry = small_site()
    registry.number("events_rejected_total", LINE_BREAKING, LINE_BREAKING).inc(3)
    labels = (("adapter", LINE_BREAKING), ("reason", LINE_BREAKING))
    assert read(registry, exposition)["outrider_events_rejected_total", labels] == 3


@both_formats
def test_bytes_that_were_no_text_are_spelled_out(exposition: Exposition) -> None:
    registry = small_site()
    registry.number("vo_share_ratio", b"caf\xe9".decode(errors="surrogateescape")).set(1)
    assert read(registry, exposition)["outrider_vo_share_ratio", (("vo", "caf\\udce9"),)] == 1


@both_formats
def test_unknown_energy_is_not_a_number_and_never_zero(exposition: Exposition) -> None:
    registry = small_site()
    registry.number("energy_joules_total", "idle", "lab").set(None)
    registry.number("energy_joules_total", "goodput", "lab").set(7.5)
    found = read(registry, exposition)
    name = "outrider_energy_joules_total"
    assert math.isnan(found[name, (("cluster", "lab"), ("purpose", "idle"))])
    assert found[name, (("cluster", "lab"), ("purpose", "goodput"))] == 7.5
    assert math.isnan(found[name, (("cluster", "library"), ("purpose", "owner"))])


@both_formats
def test_rewards_may_be_negative_in_sum(exposition: Exposition) -> None:
    registry = small_site()
    for reward in (-2.0, 0.5):
        registry.spread("reward", "bandit").observe(reward)
    found = read(registry, exposition)
    assert found["outrider_reward_sum", (("policy", "bandit"),)] == -1.5
    assert found["outrider_reward_count", (("policy", "bandit"),)] == 2
    assert found["outrider_reward_count", (("policy", "fifo"),)] == 0


@both_formats
def test_exactly_one_mode_is_true(exposition: Exposition) -> None:
    registry = small_site()
    registry.choose_state("mode", "observe")
    registry.choose_state("mode", "shadow")
    found = read(registry, exposition)
    for mode in MODES:
        key = ("outrider_mode", (("outrider_mode", mode),))
        assert found[key] == (1 if mode == "shadow" else 0)


def known_everywhere() -> Registry:
    """Nothing unknown, so that every metric has its own type in OpenMetrics."""
    registry = small_site()
    for series in registry.numbers("energy_joules_total").shown():
        series.set(1.5)
    registry.choose_state("mode", "shadow")
    return registry


def test_openmetrics_gives_each_metric_its_declared_type_unit_and_help() -> None:
    parsed = {family.name: family for family in parse(known_everywhere(), Exposition.OPENMETRICS)}
    assert len(parsed) == len(METRICS)
    for metric in METRICS:
        family = parsed[metric.family_name]
        declared = (metric.kind.value, metric.unit, metric.help)
        assert (family.type, family.unit, family.documentation) == declared


def test_the_classic_text_has_only_its_own_types() -> None:
    text = render(small_site()).decode()
    types = {line.split()[3] for line in text.splitlines() if line.startswith("# TYPE")}
    assert types == {"counter", "gauge", "histogram", "summary"}
    assert "# UNIT" not in text
    assert "# EOF" not in text


def test_both_formats_hold_the_same_samples() -> None:
    registry = known_everywhere()
    registry.spread("decision_seconds").observe(0.003)
    classic = read(registry, Exposition.CLASSIC)
    modern = read(registry, Exposition.OPENMETRICS)
    assert classic.keys() == modern.keys()
    assert all(same(classic[key], modern[key]) for key in classic)


@both_formats
def test_every_declared_series_is_present_from_the_start(exposition: Exposition) -> None:
    found = read(small_site(), exposition)
    named = {name for name, _ in found}
    suffixes = {Kind.HISTOGRAM: ("_bucket", "_count", "_sum"), Kind.SUMMARY: ("_count", "_sum")}
    for metric in METRICS:
        for suffix in suffixes.get(metric.kind, ("",)):
            assert metric.full_name + suffix in named
    evictions = [labels for name, labels in found if name == "outrider_evictions_total"]
    assert len(evictions) == 9 * 2
    decisions = [labels for name, labels in found if name == "outrider_decisions_total"]
    assert len(decisions) == 2 * 7 * 4
    assert len(samples(parse(small_site(), exposition))) == len(found)


PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;"
    "escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.mark.parametrize(
    ("accept", "exposition"),
    [
        (None, Exposition.CLASSIC),
        ("", Exposition.CLASSIC),
        ("*/*", Exposition.CLASSIC),
        ("text/html, */*;q=0.8", Exposition.CLASSIC),
        ("application/openmetrics-text", Exposition.OPENMETRICS),
        ("Application/OpenMetrics-Text; version=1.0.0; charset=utf-8", Exposition.OPENMETRICS),
        ("application/openmetrics-text; version=0.0.1", Exposition.CLASSIC),
        ("application/openmetrics-text;q=0", Exposition.CLASSIC),
        ("application/openmetrics-text;q=0.2, text/plain;q=0.9", Exposition.CLASSIC),
        ("application/openmetrics-text;q=much", Exposition.CLASSIC),
        (",;=,", Exposition.CLASSIC),
        (PROMETHEUS_3, Exposition.OPENMETRICS),
    ],
)
def test_openmetrics_goes_to_those_who_ask_for_it(
    accept: str | None, exposition: Exposition
) -> None:
    assert negotiate(accept) is exposition


@given(accept=st.text(st.sampled_from("application/openmetrics-text;q=0.1,* nan")))
def test_no_accept_header_is_an_error(accept: str) -> None:
    assert negotiate(accept) in Exposition
