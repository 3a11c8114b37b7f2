"""The registry: every declared metric with its series, set by the daemon, read by a render.

The engine's accounting is the truth for what it counts; the daemon mirrors it here when somebody
scrapes. Nothing here locks: one thread, the event loop's, uses a registry.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from outrider.model.errors import nearest
from outrider.service.metrics.declarations import (
    DECREASED,
    FOLDED,
    METRICS,
    REFUSED,
    SITE,
    Kind,
    Metric,
)
from outrider.service.metrics.families import Family
from outrider.service.metrics.prefixes import number_prefix, spread_prefixes
from outrider.service.metrics.series import Counter, Gauge, Spread

SERIES_LIMIT: Final = 500

AnyFamily: TypeAlias = Family[Gauge] | Family[Spread]


class Registry:
    """All families of the declared metrics, in their order.

    ::

        registry = Registry({"cluster": ["lab"], "class": ["batch"], "vo": ["all"]})
        registry.number("jobs", "queued").set(12)
        registry.number("evictions_total", "owner", "lab").set(accounting_total)
        registry.spread("job_wait_seconds", "batch", "all").set(waits.buckets, waits.total)

    Args:
        known: values of the labels that only the site knows, as far as they are known at the
            start: ``adapter``, ``class``, ``cluster``, ``policy``, ``vo`` and so on. Every
            combination of them has its series from the start.
        metrics: the declarations; the metric that counts refusals must be among them.
        series_limit: series that a family may take on beyond those known from the start.

    Raises:
        ValueError: `known` names a label that no metric leaves to the site.
    """

    def __init__(
        self,
        known: Mapping[str, Sequence[str]],
        metrics: Sequence[Metric] = METRICS,
        series_limit: int = SERIES_LIMIT,
    ) -> None:
        _check_known(known, metrics)
        self._numbers: dict[str, Family[Gauge]] = {}
        self._spreads: dict[str, Family[Spread]] = {}
        self.families: list[AnyFamily] = []
        for metric in metrics:
            family = self._family(metric, series_limit)
            family.begin(known)
            self.families.append(family)

    def numbers(self, name: str) -> Family[Gauge]:
        """A family of counters, gauges, states or facts. Raises `KeyError` if not declared."""
        return self._numbers[name]

    def spreads(self, name: str) -> Family[Spread]:
        """A family of histograms or summaries. Raises `KeyError` if not declared."""
        return self._spreads[name]

    def number(self, name: str, *values: str) -> Gauge:
        """One series of a family of numbers: see `Family.series`."""
        return self._numbers[name].series(*values)

    def spread(self, name: str, *values: str) -> Spread:
        """One series of a family of spreads: see `Family.series`."""
        return self._spreads[name].series(*values)

    def choose_state(self, name: str, state: str) -> None:
        """Make one state of a state set true and the others false. `ValueError` if unknown."""
        family = self._numbers[name]
        chosen = family.series(state)
        for series in family.shown():
            series.set(1 if series is chosen else 0)

    def _family(self, metric: Metric, limit: int) -> AnyFamily:
        if metric.kind in (Kind.HISTOGRAM, Kind.SUMMARY):
            spreads = Family(metric, lambda v: self._spread(metric, v), limit, self._count_folded)
            self._spreads[metric.name] = spreads
            return spreads
        numbers = Family(metric, lambda v: self._number(metric, v), limit, self._count_folded)
        self._numbers[metric.name] = numbers
        return numbers

    def _spread(self, metric: Metric, values: tuple[str, ...]) -> Spread:
        return Spread(spread_prefixes(metric, values), metric, self._count_decreased)

    def _number(self, metric: Metric, values: tuple[str, ...]) -> Gauge:
        prefix = number_prefix(metric, values)
        if metric.kind is Kind.COUNTER:
            return Counter(prefix, metric.begin, self._count_decreased)
        return Gauge(prefix, metric.begin)

    def _count_folded(self) -> None:
        self._numbers[REFUSED].series(FOLDED).inc()

    def _count_decreased(self) -> None:
        self._numbers[REFUSED].series(DECREASED).inc()


def _check_known(known: Mapping[str, Sequence[str]], metrics: Iterable[Metric]) -> None:
    open_labels = {
        label for metric in metrics for label, values in metric.labels.items() if values is SITE
    }
    for label in known:
        if label not in open_labels:
            hint = nearest(label, open_labels)
            raise ValueError(f'no metric leaves the label "{label}" to the site; {hint}')
