"""A small site's registry, and samples as a parser of somebody else's reads them."""

from collections.abc import Iterable
from typing import TypeAlias

from prometheus_client.metrics_core import Metric as ParsedMetric
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families

from outrider.service.metrics import Exposition, Registry, render
from outrider.service.metrics.registry import SERIES_LIMIT

KNOWN = {
    "adapter": ["campus"],
    "class": ["interactive", "batch"],
    "cluster": ["library", "lab"],
    "policy": ["fifo", "bandit"],
    "vo": ["physics", "all"],
    "reason": ["garbage"],
    "kind": ["started_twice"],
    "version": ["0.1"],
    "python": ["3.11"],
}

Samples: TypeAlias = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def small_site(series_limit: int = SERIES_LIMIT) -> Registry:
    """A registry as the daemon would build it."""
    return Registry(KNOWN, series_limit=series_limit)


def parse(registry: Registry, exposition: Exposition) -> list[ParsedMetric]:
    """The families as prometheus_client's parser of that format reads them."""
    text = render(registry, exposition).decode()
    if exposition is Exposition.OPENMETRICS:
        families = openmetrics_parser.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
        return list(families)
    return list(text_string_to_metric_families(text))


def samples(families: Iterable[ParsedMetric]) -> Samples:
    """Values by sample name and sorted labels. Fails on a series that is there twice."""
    found: Samples = {}
    for family in families:
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found, f"{key} is exposed twice"
            found[key] = sample.value
    return found


def read(registry: Registry, exposition: Exposition) -> Samples:
    """All samples of a registry, after a round trip through a format."""
    return samples(parse(registry, exposition))
