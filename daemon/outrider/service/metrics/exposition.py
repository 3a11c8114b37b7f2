"""Exposition of a metrics snapshot in the format that the client accepts (`prometheus_client`)."""

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import TypeAlias, TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client import Metric as Family
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    StateSetMetricFamily,
    SummaryMetricFamily,
    UnknownMetricFamily,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from outrider.service.metrics.declarations.metric import Kind, Metric
from outrider.service.metrics.store import LabelValues, Observations, Snapshot

Encoder: TypeAlias = Callable[[Collector], bytes]

_OPENMETRICS = "application/openmetrics-text"


def expose(snapshot: Snapshot, accept: str = "") -> tuple[bytes, str]:
    """Return the exposition and its content type.

    It takes tens of milliseconds for some thousand series: call it in a thread. The registry
    lives for one scrape, so that scrapes share nothing that changes.

    Args:
        snapshot: the values.
        accept: the client's Accept header; if it names no format, the classic text is returned.
    """
    encode, content_type = negotiate(accept)
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(snapshot, content_type.startswith(_OPENMETRICS)))
    return encode(registry), content_type


def negotiate(accept: str) -> tuple[Encoder, str]:
    """Return the client library's choice of a format, and the content type of that format.

    A version that is not a number makes the library raise, and it copies the requested version
    into the content type unchecked; such clients get the classic text.
    """
    try:
        encode, content_type = choose_encoder(accept)
    except TypeError:
        return choose_encoder("")
    return (encode, content_type) if content_type.isascii() else choose_encoder("")


# -- collector -------------------------------------------------------------------------------------
# Conversion of a snapshot into the client library's metric families.

V = TypeVar("V")


class SnapshotCollector:
    """A collector for a `prometheus_client.CollectorRegistry`. It may run in any thread.

    OpenMetrics forbids a counter that is NaN (our unknown) and a summary's sum below zero. Such
    a metric is shown there under the same sample names, but as families of type unknown.

    No ``_created`` series are given: in OpenMetrics they are optional, a server would store each
    as one more series, and our counters continue after a restart, which they cannot express.

    Args:
        snapshot: the values.
        openmetrics: whether it is written as OpenMetrics, else in the classic text format.
    """

    def __init__(self, snapshot: Snapshot, openmetrics: bool) -> None:
        self._snapshot = snapshot
        self._openmetrics = openmetrics

    def collect(self) -> Iterator[Family]:
        """Yield every declared metric, in the declared order."""
        for metric in self._snapshot.metrics:
            if metric.kind in (Kind.HISTOGRAM, Kind.SUMMARY):
                observed = _spelled(self._snapshot.observations[metric.name])
                yield from self._observed(metric, observed)
            else:
                yield self._counted(metric, _spelled(self._snapshot.numbers[metric.name]))

    def _observed(
        self, metric: Metric, observed: Mapping[LabelValues, Observations]
    ) -> Iterator[Family]:
        if metric.kind is Kind.HISTOGRAM:
            yield _histogram(metric, observed)
        elif self._openmetrics and any(seen.total < 0 for seen in observed.values()):
            yield from _unknown_summary(metric, observed)
        else:
            yield _summary(metric, observed)

    def _counted(self, metric: Metric, numbers: Mapping[LabelValues, float]) -> Family:
        is_lawful = all(number >= 0 for number in numbers.values())
        if metric.kind is Kind.COUNTER and self._openmetrics and not is_lawful:
            return _unknown(metric.full_name, metric, numbers)
        return _numbers(metric, numbers)


def _spelled(values: Mapping[LabelValues, V]) -> dict[LabelValues, V]:
    r"""Escape label values that cannot be encoded.

    Bytes of a host's or user's name that are not valid Unicode (surrogates) become ``\udc..``;
    the library would fail on them, and with it the whole scrape.
    """
    return {tuple(map(_spelled_value, labels)): value for labels, value in values.items()}


def _spelled_value(value: str) -> str:
    return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")


def _numbers(metric: Metric, numbers: Mapping[LabelValues, float]) -> Family:
    """Return a counter, gauge, state set or info."""
    names = list(metric.labels)
    if metric.kind is Kind.STATE_SET:  # its one label is called as the metric
        states = StateSetMetricFamily(metric.full_name, metric.help)
        states.add_metric([], {state: bool(number) for (state,), number in numbers.items()})
        return states
    if metric.kind is Kind.INFO:
        info = InfoMetricFamily(metric.family_name, metric.help)
        for labels in numbers:
            info.add_metric([], dict(zip(names, labels, strict=True)))
        return info
    make = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
    family = make(metric.family_name, metric.help, labels=names, unit=metric.unit)
    for labels, number in numbers.items():
        family.add_metric(labels, number)
    return family


def _histogram(metric: Metric, observed: Mapping[LabelValues, Observations]) -> Family:
    bounds = [*map(floatToGoString, metric.bounds), "+Inf"]
    family = HistogramMetricFamily(
        metric.full_name, metric.help, labels=list(metric.labels), unit=metric.unit
    )
    for labels, (buckets, total) in observed.items():
        family.add_metric(labels, list(zip(bounds, accumulate(buckets), strict=True)), total)
    return family


def _summary(metric: Metric, observed: Mapping[LabelValues, Observations]) -> Family:
    family = SummaryMetricFamily(
        metric.full_name, metric.help, labels=list(metric.labels), unit=metric.unit
    )
    for labels, (buckets, total) in observed.items():
        family.add_metric(labels, sum(buckets), total)
    return family


def _unknown(name: str, metric: Metric, numbers: Mapping[LabelValues, float]) -> Family:
    family = UnknownMetricFamily(name, metric.help, labels=list(metric.labels))
    for labels, number in numbers.items():
        family.add_metric(labels, number)
    return family


def _unknown_summary(
    metric: Metric, observed: Mapping[LabelValues, Observations]
) -> Iterator[Family]:
    counts = {labels: float(sum(seen.buckets)) for labels, seen in observed.items()}
    yield _unknown(f"{metric.full_name}_count", metric, counts)
    totals = {labels: seen.total for labels, seen in observed.items()}
    yield _unknown(f"{metric.full_name}_sum", metric, totals)
