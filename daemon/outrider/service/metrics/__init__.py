"""What Prometheus is told: each metric declared once, mirrored at a scrape, rendered cheaply."""

from outrider.service.metrics.declarations import METRICS, PREFIX, Kind, Metric
from outrider.service.metrics.families import Family
from outrider.service.metrics.registry import Registry
from outrider.service.metrics.render import Exposition, negotiate, render

__all__ = [
    "METRICS",
    "PREFIX",
    "Exposition",
    "Family",
    "Kind",
    "Metric",
    "Registry",
    "negotiate",
    "render",
]
