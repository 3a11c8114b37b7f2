"""A small site's values, and samples as `prometheus_client`'s parser reads them."""

from collections.abc import Iterable
from typing import TypeAlias

from prometheus_client.metrics_core import Metric as ParsedMetric
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families

from outrider.service.metrics import METRICS, MetricStore, expose
from outrider.service.metrics.declarations.daemon import REFUSED
from outrider.service.metrics.declarations.metric import SITE
from outrider.service.metrics.store import SERIES_LIMIT

CLASSIC = "text/plain"
OPENMETRICS = "application/openmetrics-text"
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;"
    "escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
"""Accept headers: of a plain client, of one that asks for OpenMetrics, of a Prometheus server."""

KNOWN = {
    "adapter": ["campus"],
    "class": ["interactive", "batch"],
    "cluster": ["library", "lab"],
    "lever": ["leased_attributes"],
    "policy": ["fifo", "bandit"],
    "vo": ["physics", "all"],
    "reason": ["garbage"],
    "kind": ["started_twice"],
    "version": ["0.1"],
    "python": ["3.11"],
}

Samples: TypeAlias = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def small_site(series_limit: int = SERIES_LIMIT) -> MetricStore:
    """Return a store as the daemon would make it."""
    return MetricStore(KNOWN, series_limit=series_limit)


def one_metric(name: str) -> MetricStore:
    """Return a store of this metric (and of the one that counts refusals), quick to show."""
    metrics = [metric for metric in METRICS if metric.name in (name, REFUSED)]
    labels = {label for metric in metrics for label, of in metric.labels.items() if of is SITE}
    known = {label: values for label, values in KNOWN.items() if label in labels}
    return MetricStore(known, metrics)


def parse(store: MetricStore, accept: str) -> list[ParsedMetric]:
    """Return the families as prometheus_client's parser of that format reads them."""
    body, content_type = expose(store.snapshot(), accept)
    if content_type.startswith(OPENMETRICS):
        families = openmetrics_parser.text_string_to_metric_families(body.decode())  # type: ignore[no-untyped-call]
        return list(families)
    return list(text_string_to_metric_families(body.decode()))


def samples(families: Iterable[ParsedMetric]) -> Samples:
    """Values by sample name and sorted labels. Fails on a series that is there twice."""
    found: Samples = {}
    for family in families:
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found, f"{key} is exposed twice"
            found[key] = sample.value
    return found


def read(store: MetricStore, accept: str = CLASSIC) -> Samples:
    """Return all samples of a store, after a round trip through a format."""
    return samples(parse(store, accept))
