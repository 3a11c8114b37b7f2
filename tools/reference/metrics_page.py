"""The reference page of all metrics, made from their declarations."""

from outrider.service.metrics.declarations import METRICS
from outrider.service.metrics.declarations.metric import SITE, Metric

_HEAD = """\
# Metrics

<!-- Made by `make docs` from daemon/outrider/service/metrics/declarations. -->

`GET /metrics` gives the classic text format, or OpenMetrics to those who ask for it; the Prometheus
client library chooses and writes them. Every series below exists from the start, for all label
values known then; those of predictions only for the policies that predict. Counters go on after a
restart. Unknown is `NaN`, never 0.

Figures of the twin and of expected starts are `NaN`, too, where they do not hold: an answer that is
stale or refused, a forecast that has expired, a policy that is configured otherwise since. None can
be taken for a fresh one by a query that forgets to ask; `outrider_twin_state`,
`outrider_twin_forecast_state`, `outrider_twin_candidate_state` and `outrider_starts_state` say
which of these it is, and a server keeps what was said before.

The two formats have the same sample names and values. In the classic text a state set and an info
are gauges. In OpenMetrics a counter's `HELP` and `TYPE` lines name it without `_total`, an info's
without `_info`; and where OpenMetrics forbids a value (a counter that is NaN, a negative sum of
rewards), the metric is of type `unknown`. There are no `_created` series.

A label without a list of values takes them from the site. When a metric gains too many (500 more
than at the start), further ones are shown together, as a sum, under the value `other`, and
`outrider_metrics_refused_total{reason="folded"}` counts them.

| metric | kind | labels | what it says |
|---|---|---|---|
"""


def metrics_page() -> str:
    """The page in Markdown: one row for each metric, then the bounds of the histograms."""
    rows = "".join(_row(metric) for metric in METRICS)
    histograms = [metric for metric in METRICS if metric.bounds]
    bounds = "".join(f"- `{m.full_name}`: {_listed(m.bounds)}\n" for m in histograms)
    return (
        f"{_HEAD}{rows}\n## Bucket bounds\n\nIn the unit of the name, besides `+Inf`.\n\n{bounds}"
    )


def _row(metric: Metric) -> str:
    labels = "<br>".join(_label(name, values) for name, values in metric.labels.items())
    kind = metric.kind.value
    return f"| `{metric.full_name}` | {kind} | {labels} | {metric.help} |\n"


def _label(name: str, values: tuple[str, ...]) -> str:
    return f"`{name}`" if values is SITE else f"`{name}`: {', '.join(values)}"


def _listed(bounds: tuple[float, ...]) -> str:
    return ", ".join(f"{bound:.10g}" for bound in bounds)
