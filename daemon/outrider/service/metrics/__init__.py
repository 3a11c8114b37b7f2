"""Metrics: declarations, store and exposition; the values are collected at each scrape.

These modules do not depend on the daemon; `exporter` collects the values from its core.
"""

from outrider.service.metrics.declarations import METRICS
from outrider.service.metrics.declarations.metric import PREFIX, Kind, Metric
from outrider.service.metrics.exposition import expose, negotiate
from outrider.service.metrics.store import MetricStore, Snapshot

__all__ = [
    "METRICS",
    "PREFIX",
    "Kind",
    "Metric",
    "MetricStore",
    "Snapshot",
    "expose",
    "negotiate",
]
