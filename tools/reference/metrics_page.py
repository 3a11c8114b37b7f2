"""Reference page of all metrics, generated from their declarations."""

from outrider.service.metrics.declarations import METRICS
from outrider.service.metrics.declarations.metric import SITE, Metric

_HEAD = """\
# Metrics

<!-- Made by `make docs` from daemon/outrider/service/metrics/declarations. -->

`GET /metrics` returns the classic text format, or OpenMetrics if the client requests it. Every
series below exists from the start, for all label values known then; series of predictions exist
only for policies that predict. Counters continue after a restart. Unknown is `NaN`, never 0.

Values of the twin and of expected starts are also `NaN` if they are not valid: the answer is stale
or refused, the forecast has expired, or the policy's settings have changed. So no query can take
one for a fresh value. `outrider_twin_state`, `outrider_twin_forecast_state`,
`outrider_twin_candidate_state` and `outrider_starts_state` show the cause. Prometheus keeps the
earlier values.

Both formats have the same sample names and values. In the classic text format a state set and an
info are gauges. In OpenMetrics the `HELP` and `TYPE` lines of a counter lack `_total`, those of an
info lack `_info`. If OpenMetrics forbids a value (a counter that is NaN, a negative sum of
rewards), the metric is of type `unknown`. There are no `_created` series.

A label without a list of values takes them from the site. When a metric has too many (500 more than
at the start), further ones are summed under the value `other`, and
`outrider_metrics_refused_total{reason="folded"}` counts them.

| metric | kind | labels | meaning |
|---|---|---|---|
"""


def metrics_page() -> str:
    """Return the page in Markdown: one row for each metric, then the histograms' bounds."""
    rows = "".join(_row(metric) for metric in METRICS)
    histograms = [metric for metric in METRICS if metric.bounds]
    bounds = "".join(f"- `{m.full_name}`: {_listed(m.bounds)}\n" for m in histograms)
    return (
        f"{_HEAD}{rows}\n## Bucket bounds\n\nIn the unit of the name, without `+Inf`.\n\n{bounds}"
    )


def _row(metric: Metric) -> str:
    labels = "<br>".join(_label(name, values) for name, values in metric.labels.items())
    kind = metric.kind.value
    return f"| `{metric.full_name}` | {kind} | {labels} | {metric.help} |\n"


def _label(name: str, values: tuple[str, ...]) -> str:
    return f"`{name}`" if values is SITE else f"`{name}`: {', '.join(values)}"


def _listed(bounds: tuple[float, ...]) -> str:
    return ", ".join(f"{bound:.10g}" for bound in bounds)
