"""The latest values of one metric's series, and the limit on how many series there may be."""

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from outrider.model.errors import nearest
from outrider.service.metrics.declarations.metric import SITE, Metric

OTHER: Final = "other"
"""Stands for every value of an open label that came when the limit was reached."""

LabelValues: TypeAlias = tuple[str, ...]
V = TypeVar("V")


class Observations(NamedTuple):
    """What a histogram or a summary has observed.

    Attributes:
        buckets: observations in each bucket, not cumulative; the last bucket has no bound.
            A summary has this one bucket only.
        total: sum of all observed values.
    """

    buckets: tuple[int, ...]
    total: float

    def merged(self, other: "Observations") -> "Observations":
        """Both together."""
        buckets = tuple(a + b for a, b in zip(self.buckets, other.buckets, strict=True))
        return Observations(buckets, self.total + other.total)


class Series(Generic[V]):
    """The values of one metric, by label values in the declared order.

    All combinations of the label values that are known at the start have a series from the
    start. Later ones are taken in until `room` is used up; from then on a new combination only
    adds to a sum, in which `OTHER` stands for each value of an open label.

    Args:
        metric: the declaration.
        begin: value of a series that was never set.
        add: the sum of two values.
        known: values, known at the start, of the labels that are left to the site.
        room: how many combinations may be taken in later.
    """

    def __init__(
        self,
        metric: Metric,
        begin: V,
        add: Callable[[V, V], V],
        known: Mapping[str, Sequence[str]],
        room: int,
    ) -> None:
        self.metric = metric
        self._begin = begin
        self._add = add
        self._room = room
        labels = metric.labels.items()
        columns = [known.get(name, ()) if values is SITE else values for name, values in labels]
        self._shown: dict[LabelValues, V] = dict.fromkeys(itertools.product(*columns), begin)
        self._known = frozenset(self._shown)
        self._folded: dict[LabelValues, V] = {}

    @property
    def folded_n(self) -> int:
        """Combinations of label values that are only part of a sum."""
        return len(self._folded)

    def value(self, labels: LabelValues) -> V:
        """The value last put there, or the one a series begins with."""
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
            if self._room > 0:
                self._room -= 1
                self._shown[labels] = value
            else:
                self._folded[labels] = value

    def leave_out(self, label: str, value: str) -> None:
        """Take away the series with a label value of which this metric has nothing to tell."""
        place = list(self.metric.labels).index(label)
        self._shown = {key: v for key, v in self._shown.items() if key[place] != value}

    def keep(self, labels: Collection[LabelValues]) -> None:
        """Take away what has other labels, but for what was known at the start."""
        gone = [key for key in self._shown if key not in labels and key not in self._known]
        for key in gone:
            del self._shown[key]
        self._room += len(gone)
        self._folded = {key: value for key, value in self._folded.items() if key in labels}

    def snapshot(self) -> dict[LabelValues, V]:
        """What an exposition shows now; later changes do not reach it."""
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
            raise ValueError(f"{name}: label values {labels!r} given, {wanted} would be right")
        for value, (label, closed) in zip(labels, declared.items(), strict=True):
            if closed is not SITE and value not in closed:
                hint = nearest(value, closed)
                raise ValueError(f'{name}: {label}="{value}" was never declared; {hint}')
