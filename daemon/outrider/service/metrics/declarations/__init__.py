"""Declarations of all metrics, read by the registry, the reference page and the dashboards.

A new metric is one more entry in the file of its subject. A label must have few values: a job's
name is never one.
"""

from typing import Final

from outrider.service.metrics.declarations.daemon import DAEMON_METRICS
from outrider.service.metrics.declarations.evidence import EVIDENCE_METRICS
from outrider.service.metrics.declarations.metric import Metric
from outrider.service.metrics.declarations.policies import POLICY_METRICS
from outrider.service.metrics.declarations.site import SITE_METRICS

METRICS: Final[tuple[Metric, ...]] = (
    *SITE_METRICS,
    *POLICY_METRICS,
    *EVIDENCE_METRICS,
    *DAEMON_METRICS,
)
