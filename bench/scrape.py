"""Render time of a scrape of 2,000 series: ours against prometheus_client, in one run.

    python bench/scrape.py [--json] [--series 2000] [--rounds 50]

Both hold the same families, labels and values, and take turns, so that a busy machine slows both.
A series is one sample line: a histogram with 14 bounds has 17. Budget: under 5 ms.
"""

import argparse
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Summary,
    disable_created_metrics,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from outrider.service.metrics import METRICS, Exposition, Kind, Metric, Registry, render
from outrider.service.metrics.series import Spread

BUDGET_MS = 5.0


def known(clusters_n: int) -> dict[str, list[str]]:
    """A site with so many clusters."""
    return {
        "adapter": ["campus", "grid"],
        "class": ["interactive", "batch"],
        "cluster": [f"cluster-{number:03d}" for number in range(clusters_n)],
        "policy": ["fifo", "bandit", "lowest_watts"],
        "vo": [f"vo{number}" for number in range(10)],
        "reason": ["garbage"],
        "kind": ["started_twice"],
        "version": ["0.1.0"],
        "python": ["3.11"],
    }


def fill(registry: Registry) -> None:
    """Give every series a value of its own, as long as real ones are."""
    seed = 0.1
    for family in registry.families:
        for series in family.shown():
            seed = (seed * 997.13) % 1e6
            if isinstance(series, Spread):
                series.set([int(seed) % 97 for _ in series.buckets], seed)
            elif family.metric.kind is Kind.STATE_SET:
                series.set(0)
            elif family.metric.kind is not Kind.INFO:
                series.set(seed)


def build(series_n: int) -> tuple[Registry, int, dict[str, list[str]]]:
    """Our registry with at least so many sample lines, how many it has, and its label values."""
    clusters_n = 1
    while True:
        values = known(clusters_n)
        registry = Registry(values)
        lines = [line for line in render(registry).splitlines() if not line.startswith(b"#")]
        if len(lines) >= series_n:
            fill(registry)
            return registry, len(lines), values
        clusters_n += 1


def theirs(registry: Registry, values: Mapping[str, Sequence[str]]) -> CollectorRegistry:
    """The same families, labels and values in prometheus_client's registry."""
    disable_created_metrics()  # type: ignore[no-untyped-call]
    collectors = CollectorRegistry()
    for metric in METRICS:
        columns = [closed or values[label] for label, closed in metric.labels.items()]
        family = _family(metric, collectors)
        for labels in itertools.product(*columns):
            child = family.labels(*labels) if labels else family
            _copy(registry, metric, labels, child)
    return collectors


def _family(metric: Metric, collectors: CollectorRegistry) -> Any:
    labels = list(metric.labels)
    if metric.kind is Kind.HISTOGRAM:
        bounds = metric.bounds
        return Histogram(metric.full_name, metric.help, labels, registry=collectors, buckets=bounds)
    # facts and states have labels of their own there; as gauges they render the same line
    kinds = {Kind.COUNTER: Counter, Kind.SUMMARY: Summary}
    return kinds.get(metric.kind, Gauge)(metric.full_name, metric.help, labels, registry=collectors)


def _copy(registry: Registry, metric: Metric, labels: tuple[str, ...], child: Any) -> None:
    if metric.kind is Kind.COUNTER:
        child.inc(registry.number(metric.name, *labels).value)
    elif metric.kind is Kind.SUMMARY:
        spread = registry.spread(metric.name, *labels)
        for _ in range(sum(spread.buckets)):
            child.observe(spread.sum / sum(spread.buckets))
    elif metric.kind is Kind.HISTOGRAM:
        spread = registry.spread(metric.name, *labels)
        for bound, n in zip((*metric.bounds, 1e12), spread.buckets, strict=True):
            for _ in range(n):
                child.observe(bound)
    else:
        child.set(registry.number(metric.name, *labels).value)


def median_ms(*works: Callable[[], object], rounds: int) -> list[float]:
    """Median milliseconds of each piece of work; they take turns."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for work, spent in zip(works, times, strict=True):
            begin = time.perf_counter()
            work()
            spent.append((time.perf_counter() - begin) * 1e3)
    return [statistics.median(spent) for spent in times]


def mirror(registry: Registry) -> None:
    """What a scrape adds: every number set anew, through handles."""
    for metric in METRICS:
        if metric.kind in (Kind.COUNTER, Kind.GAUGE):
            family = registry.numbers(metric.name)
            for series in family.shown():
                series.set(series.value)


def main() -> int:
    """Measure; exit code 1 if a render is over budget."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--series", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=50)
    asked = parser.parse_args()
    registry, lines_n, values = build(asked.series)
    collectors = theirs(registry, values)
    theirs_n = sum(not s.startswith(b"#") for s in generate_latest(collectors).splitlines())
    ours, modern, client, client_modern, set_all = median_ms(
        lambda: render(registry),
        lambda: render(registry, Exposition.OPENMETRICS),
        lambda: generate_latest(collectors),
        lambda: generate_openmetrics(collectors),  # type: ignore[no-untyped-call]
        lambda: mirror(registry),
        rounds=asked.rounds,
    )
    result = {
        "series": lines_n,
        "series_prometheus_client": theirs_n,
        "classic_ms": ours,
        "openmetrics_ms": modern,
        "prometheus_client_classic_ms": client,
        "prometheus_client_openmetrics_ms": client_modern,
        "ratio_classic": client / ours,
        "ratio_openmetrics": client_modern / modern,
        "set_all_ms": set_all,
        "budget_ms": BUDGET_MS,
        "within_budget": max(ours, modern) < BUDGET_MS,
    }
    if asked.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:34} {value:.2f}" if isinstance(value, float) else f"{name:34} {value}")
    return 0 if result["within_budget"] else 1


if __name__ == "__main__":
    sys.exit(main())
