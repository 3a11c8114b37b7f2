"""A family: one metric with its series, and the guard against too many of them."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Generic, TypeVar

from outrider.model.errors import nearest
from outrider.service.metrics.declarations import SITE, Metric
from outrider.service.metrics.series import Gauge, Spread

OTHER: Final = "other"

S = TypeVar("S", Gauge, Spread)


class Family(Generic[S]):
    """One metric and its series, by their label values in the declared order.

    Args:
        metric: its declaration.
        make: makes a series for these label values.
        room: series that may be added later to those known from the start.
        tell_folded: called when a set of label values has to share a series with others.
    """

    def __init__(
        self,
        metric: Metric,
        make: Callable[[tuple[str, ...]], S],
        room: int,
        tell_folded: Callable[[], None],
    ) -> None:
        self.metric = metric
        self._make: Callable[[tuple[str, ...]], S] = make
        self._room = room
        self._tell_folded = tell_folded
        self._series: dict[tuple[str, ...], S] = {}
        self._folded: dict[tuple[str, ...], S] = {}
        self._sums: dict[tuple[str, ...], tuple[S, list[S]]] = {}

    def begin(self, known: Mapping[str, Sequence[str]]) -> None:
        """Make the series of all combinations of label values known from the start."""
        labels = self.metric.labels.items()
        columns = [known.get(name, ()) if values is SITE else values for name, values in labels]
        for combination in itertools.product(*columns):
            self._series[combination] = self._make(combination)

    def leave_out(self, label: str, value: str) -> None:
        """Take away the series with a label value of which this metric has nothing to tell."""
        place = list(self.metric.labels).index(label)
        self._series = {key: s for key, s in self._series.items() if key[place] != value}

    def series(self, *values: str) -> S:
        """The series with these label values. Hold on to it where it is set often.

        When there is no room left a new one is still given out, but shown as part of a sum in
        which ``other`` stands for every value that only the site knows.

        Raises:
            ValueError: not one value for each label, or a value outside a label's closed list.
        """
        found = self._series.get(values)
        if found is None:
            found = self._folded.get(values)
        return self._add(values) if found is None else found

    def shown(self) -> Iterable[S]:
        """Every series that an exposition shows."""
        for total, members in self._sums.values():
            total.show_sum_of(members)
        return itertools.chain(self._series.values(), (total for total, _ in self._sums.values()))

    def _add(self, values: tuple[str, ...]) -> S:
        self._check(values)
        made = self._make(values)
        if self._room > 0:
            self._room -= 1
            self._series[values] = made
        else:
            self._fold(values, made)
            self._tell_folded()
        return made

    def _fold(self, values: tuple[str, ...], series: S) -> None:
        self._folded[values] = series
        closed_lists = self.metric.labels.values()
        shared = tuple(
            OTHER if closed is SITE else value
            for value, closed in zip(values, closed_lists, strict=True)
        )
        if shared not in self._sums:
            self._sums[shared] = (self._make(shared), [])
            namesake = self._series.pop(shared, None)  # a VO may really be called other
            if namesake is not None:
                self._fold(shared, namesake)
        self._sums[shared][1].append(series)

    def _check(self, values: tuple[str, ...]) -> None:
        labels, name = self.metric.labels, self.metric.full_name
        if len(values) != len(labels):
            wanted = f"one each for {', '.join(labels)}" if labels else "none"
            raise ValueError(f"{name}: label values {values!r} given, {wanted} would be right")
        for value, (label, closed) in zip(values, labels.items(), strict=True):
            if closed is not SITE and value not in closed:
                hint = nearest(value, closed)
                raise ValueError(f'{name}: {label}="{value}" was never declared; {hint}')
