"""Store of the values of all declared metrics: set on the event loop, copied for an exposition.

The engine's accounting is authoritative; the exporter copies its totals here at a scrape. There
are no locks: only the thread of the event loop uses a store. It hands out a `Snapshot`, which
never changes, so that any other thread may render it.
"""

import itertools
import math
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, SupportsFloat, TypeAlias, TypeVar

from outrider.model.errors import nearest
from outrider.service.metrics.declarations import METRICS
from outrider.service.metrics.declarations.daemon import DECREASED, FOLDED, REFUSED
from outrider.service.metrics.declarations.metric import SITE, Kind, Metric

V = TypeVar("V")
SERIES_LIMIT: Final = 500
"""Most combinations of label values that a metric accepts beyond those known from the start."""
SERIES_BYTES: Final = 6 * 2**20
"""Bytes of an exposition that all series with site-dependent labels may take together."""
_LINE_BYTES: Final = 40
"""Bytes of a line besides its names: punctuation, a suffix, the value."""
_SHORTEST_BYTES: Final = 12
"""Bytes that a label value counts at least: a pseudonym may replace it."""


# -- series ----------------------------------------------------------------------------------------
# The latest values of one metric's series, and the limit on how many series there may be.

LabelValues: TypeAlias = tuple[str, ...]


class Observations(NamedTuple):
    """The observations of a histogram or a summary.

    Attributes:
        buckets: observations in each bucket, not cumulative; the last bucket has no bound.
            A summary has this one bucket only.
        total: sum of all observed values.
    """

    buckets: tuple[int, ...]
    total: float

    def merged(self, other: "Observations") -> "Observations":
        """Return the sum of two sets of observations."""
        buckets = tuple(a + b for a, b in zip(self.buckets, other.buckets, strict=True))
        return Observations(buckets, self.total + other.total)


class Snapshot(NamedTuple):
    """Values at one moment, by the name of the metric (without prefix) and its label values.

    Attributes:
        metrics: the declarations, in the order of the exposition.
        numbers: values of counters, gauges, state sets and infos.
        observations: values of histograms and summaries.
    """

    metrics: Sequence[Metric]
    numbers: Mapping[str, Mapping[LabelValues, float]]
    observations: Mapping[str, Mapping[LabelValues, Observations]]

    def relabelled(self, label: str, rename: Callable[[str], str]) -> "Snapshot":
        """Return a copy with the values of a label renamed in all metrics that have it."""
        numbers, observations = dict(self.numbers), dict(self.observations)
        for metric in self.metrics:
            if label not in metric.labels:
                continue
            at = list(metric.labels).index(label)
            if metric.name in numbers:
                numbers[metric.name] = _relabelled(numbers[metric.name], at, rename)
            if metric.name in observations:
                observations[metric.name] = _relabelled(observations[metric.name], at, rename)
        return self._replace(numbers=numbers, observations=observations)


def _relabelled(
    values: Mapping[LabelValues, V], at: int, rename: Callable[[str], str]
) -> dict[LabelValues, V]:
    return {(*k[:at], rename(k[at]), *k[at + 1 :]): value for k, value in values.items()}


class MetricStore:
    """The values of all series of the declared metrics.

    ::

        store = MetricStore({"cluster": ["lab"], "class": ["batch"], "vo": ["all"]})
        store.set("jobs", 12, "queued")
        store.set("evictions_total", accounting_total, "owner", "lab")
        store.set_observations("job_wait_seconds", waits.buckets, waits.total, "batch", "all")

    Args:
        known: values of site-dependent labels that are known at the start: ``adapter``,
            ``class``, ``cluster``, ``policy``, ``vo`` and so on. Every combination of them has
            its series from the start.
        metrics: the declarations; the metric that counts refusals must be among them.
        series_limit: combinations that a metric accepts later.
        series_bytes: bytes of an exposition for all series with site-dependent labels.

    Raises:
        ValueError: `known` names a label that is not site-dependent in any metric.
    """

    def __init__(
        self,
        known: Mapping[str, Sequence[str]],
        metrics: Sequence[Metric] = METRICS,
        series_limit: int = SERIES_LIMIT,
        series_bytes: int = SERIES_BYTES,
    ) -> None:
        _check_known(known, metrics)
        room = Room(series_bytes)
        self._metrics = metrics
        self._decreased_n = 0
        self._numbers: dict[str, Series[float]] = {}
        self._observations: dict[str, Series[Observations]] = {}
        for metric in metrics:
            if metric.kind in (Kind.HISTOGRAM, Kind.SUMMARY):
                nothing = Observations((0,) * (len(metric.bounds) + 1), 0.0)
                self._observations[metric.name] = Series(
                    metric, nothing, Observations.merged, known, series_limit, room
                )
            else:
                self._numbers[metric.name] = Series(
                    metric, metric.begin, operator.add, known, series_limit, room
                )

    def set(self, name: str, value: SupportsFloat | None, *labels: str) -> None:
        """Set a counter's total or a gauge; None is unknown and shown as NaN.

        A counter never decreases, which a server would take for a restart: a smaller total than
        before is refused and counted.

        Raises:
            KeyError: no such metric is declared.
            ValueError: wrong label values, see `Series.put`.
        """
        series = self._numbers[name]
        number = math.nan if value is None else float(value)
        if series.metric.kind is Kind.COUNTER and number < series.value(labels):
            self._decreased_n += 1
        else:
            series.put(labels, number)

    def set_observations(
        self, name: str, buckets: Sequence[int], total: SupportsFloat, *labels: str
    ) -> None:
        """Set the observations of a histogram or a summary so far.

        Fewer observations than before are refused and counted, as for a counter.

        Args:
            name: name of the metric.
            buckets: observations in each bucket, not cumulative; the last has no bound.
            total: sum of all observed values.
            labels: label values.

        Raises:
            KeyError: no such metric is declared.
            ValueError: wrong label values, not as many buckets as were declared, or an
                impossible sum.
        """
        series = self._observations[name]
        before = series.value(labels)
        if len(buckets) != len(before.buckets):
            raise ValueError(
                f"{series.metric.full_name}{labels}: {len(buckets)} buckets given, "
                f"{len(before.buckets)} declared (the last has no bound)"
            )
        now = Observations(tuple(map(int, buckets)), _checked(series.metric, labels, total))
        if sum(now.buckets) < sum(before.buckets):
            self._decreased_n += 1
        else:
            series.put(labels, now)

    def choose_state(self, name: str, state: str) -> None:
        """Make one state of a state set true and the others false. `ValueError` if unknown."""
        series = self._numbers[name]
        series.put((state,), 1.0)
        for labels in series.snapshot():
            series.put(labels, float(labels == (state,)))

    def leave_out(self, name: str, label: str, value: str) -> None:
        """Remove the series of a metric with a label value that has no data."""
        self._numbers[name].leave_out(label, value)

    def keep(self, name: str, labels: Iterable[LabelValues]) -> None:
        """Remove a metric's series except these labels and those shown from the start."""
        of: Mapping[str, Series[Any]] = (
            self._numbers if name in self._numbers else self._observations
        )
        of[name].keep(frozenset(labels))

    def snapshot(self) -> Snapshot:
        """Return a copy of all values: a few copies of dictionaries, cheap on the event loop."""
        folded_n = sum(series.folded_n for series in self._numbers.values())
        folded_n += sum(series.folded_n for series in self._observations.values())
        self.set(REFUSED, folded_n, FOLDED)
        self.set(REFUSED, self._decreased_n, DECREASED)
        return Snapshot(
            self._metrics,
            {name: series.snapshot() for name, series in self._numbers.items()},
            {name: series.snapshot() for name, series in self._observations.items()},
        )


def _checked(metric: Metric, labels: LabelValues, total: SupportsFloat) -> float:
    number = float(total)
    signed = metric.kind is Kind.SUMMARY
    if math.isnan(number) or (number < 0 and not signed):
        wanted = "any number" if signed else "a number from 0 up"
        raise ValueError(f"{metric.full_name}{labels}: sum {number!r} given, not {wanted}")
    return number


def _check_known(known: Mapping[str, Sequence[str]], metrics: Iterable[Metric]) -> None:
    open_labels = {
        label for metric in metrics for label, values in metric.labels.items() if values is SITE
    }
    for label in known:
        if label not in open_labels:
            hint = nearest(label, open_labels)
            raise ValueError(f'"{label}" is not a site-dependent label of any metric; {hint}')


def _escaped(value: str) -> bytes:
    """Return a label value as it is written: quotes and backslashes take two characters."""
    text = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return text.encode("utf-8", "backslashreplace")


OTHER: Final = "other"
"""Label value that replaces all new values of an open label once the limit is reached."""


class Room:
    """Bytes that are left for series, shared by all metrics of a store."""

    def __init__(self, left_bytes: int) -> None:
        self.left_bytes = left_bytes


class Series(Generic[V]):
    """The values of one metric, by label values in the declared order.

    All combinations of the label values that are known at the start have a series from the
    start. Later ones are accepted until `limit` is reached, or the room is full. From then on a
    new combination only adds to a sum, in which `OTHER` replaces each value of an open label.

    Args:
        metric: the declaration.
        begin: value of a series that was never set.
        add: returns the sum of two values.
        known: values, known at the start, of the site-dependent labels.
        limit: number of combinations that are accepted later.
        room: bytes for the series of all metrics; one that is known at the start, but finds no
            room, is accepted like a later one.
    """

    def __init__(
        self,
        metric: Metric,
        begin: V,
        add: Callable[[V, V], V],
        known: Mapping[str, Sequence[str]],
        limit: int,
        room: Room,
    ) -> None:
        self.metric = metric
        self._room = room
        self._is_bounded = SITE in metric.labels.values()
        self._lines = len(metric.bounds) + 3 if metric.kind is Kind.HISTOGRAM else 2
        self._line_bytes = len(metric.full_name) + sum(len(name) + 4 for name in metric.labels)
        self._begin = begin
        self._add = add
        self._left = limit
        labels = metric.labels.items()
        columns = [known.get(name, ()) if values is SITE else values for name, values in labels]
        self._shown: dict[LabelValues, V] = {
            key: begin for key in itertools.product(*columns) if self._take_room(key)
        }
        self._known = frozenset(self._shown)
        self._folded: dict[LabelValues, V] = {}

    @property
    def folded_n(self) -> int:
        """Number of combinations of label values that are only part of a sum."""
        return len(self._folded)

    def value(self, labels: LabelValues) -> V:
        """Return the last value of a series, or the one that a series begins with."""
        found = self._shown.get(labels)
        return self._folded.get(labels, self._begin) if found is None else found

    def put(self, labels: LabelValues, value: V) -> None:
        """Set the series with these label values.

        Raises:
            ValueError: not one value for each label, or a value outside a label's closed list.
        """
        if labels in self._shown:
            self._shown[labels] = value
        elif labels in self._folded:
            self._folded[labels] = value
        else:
            self._check(labels)
            if self._left > 0 and self._take_room(labels):
                self._left -= 1
                self._shown[labels] = value
            else:
                self._folded[labels] = value

    def _take_room(self, labels: LabelValues) -> bool:
        """Return whether there is room for a series; take it."""
        size = self._bytes(labels)
        if size > self._room.left_bytes:
            return False
        self._room.left_bytes -= size
        return True

    def _bytes(self, labels: LabelValues) -> int:
        """Return an upper bound of the bytes of a series; closed metrics need no bound."""
        if not self._is_bounded:
            return 0
        values = sum(max(_SHORTEST_BYTES, len(_escaped(value))) for value in labels)
        return self._lines * (_LINE_BYTES + self._line_bytes + values)

    def leave_out(self, label: str, value: str) -> None:
        """Remove the series with a label value for which this metric has no data."""
        place = list(self.metric.labels).index(label)
        for key in [key for key in self._shown if key[place] == value]:
            del self._shown[key]
            self._room.left_bytes += self._bytes(key)

    def keep(self, labels: Collection[LabelValues]) -> None:
        """Remove all series except these and those known at the start."""
        gone = [key for key in self._shown if key not in labels and key not in self._known]
        for key in gone:
            del self._shown[key]
            self._room.left_bytes += self._bytes(key)
        self._left += len(gone)
        self._folded = {key: value for key, value in self._folded.items() if key in labels}

    def snapshot(self) -> dict[LabelValues, V]:
        """Return a copy of the series for an exposition, with the sums of the folded ones."""
        shown = dict(self._shown)
        closed_lists = tuple(self.metric.labels.values())
        for labels, value in self._folded.items():
            shared = tuple(
                OTHER if closed is SITE else label
                for label, closed in zip(labels, closed_lists, strict=True)
            )
            shown[shared] = self._add(shown[shared], value) if shared in shown else value
        return shown

    def _check(self, labels: LabelValues) -> None:
        declared, name = self.metric.labels, self.metric.full_name
        if len(labels) != len(declared):
            wanted = f"one each for {', '.join(declared)}" if declared else "none"
            raise ValueError(f"{name}: label values {labels!r} given; expected {wanted}")
        for value, (label, closed) in zip(labels, declared.items(), strict=True):
            if closed is not SITE and value not in closed:
                hint = nearest(value, closed)
                raise ValueError(f'{name}: {label}="{value}" was never declared; {hint}')
