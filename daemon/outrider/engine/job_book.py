"""What jobs got: waits, goodput, overhead, slowdown and utility, worked out many at a time."""

from collections.abc import Mapping, Sequence
from itertools import compress
from operator import itemgetter
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from outrider.engine.distribution import Distribution
from outrider.engine.utility_book import UtilityBook
from outrider.model.utility import TimeUtility

Floats: TypeAlias = NDArray[np.float64]
Key: TypeAlias = tuple[str, str]
"""Job class and VO."""
Start: TypeAlias = tuple[Key, float | None, float, float]
"""A first start: whose, eligible_s, submit_s, start_s."""
Completion: TypeAlias = tuple[
    Key, float | None, float | None, float, float, float, float, int, float
]
"""Whose, eligible_s, submit_s (None: nobody saw it), first start, end, seconds and CPU-seconds of
the run that completed it, CPUs asked for, CPU-seconds of goodput beyond that run's."""

AT_ONCE: Final = 4096
"""First starts before they are worked out unasked."""
_SHORTEST_RUN_S: Final = 10.0


class JobBook:
    """Figures of jobs that started and of jobs that are done, by the definitions of FORMATS.

    Who keeps the book appends to `starts` and `completions`; `work_out` brings the figures up to
    that. They are the same whenever it is called.

    Args:
        exact: keep every value, so that reports have exact percentiles.
        utilities: time utility functions by job class.

    Attributes:
        starts, completions: what is not worked out yet.
        waits: until the first start, by job class and VO.
        overhead, slowdown: of completed jobs whose submission was seen.
        utility: the same jobs', to their users.
        goodput: CPU-seconds of runs that completed their job, by job class and VO.
    """

    def __init__(self, exact: bool, utilities: Mapping[str, TimeUtility]) -> None:
        self.starts: list[Start] = []
        self.completions: list[Completion] = []
        self._exact = exact
        self.waits: dict[Key, Distribution] = {}
        self.overhead = Distribution(exact)
        self.slowdown = Distribution(exact)
        self.utility = UtilityBook(utilities)
        self.goodput: dict[Key, float] = {}

    def work_out(self) -> None:
        """Bring the figures up to what is noted."""
        if self.starts:
            keys, *columns = zip(*self.starts, strict=True)
            self._count_waits(keys, _waited_s(*(np.array(c, dtype=float) for c in columns)))
            self.starts.clear()
        if self.completions:
            keys, *columns = zip(*self.completions, strict=True)
            self._count_completed(keys, *(np.array(c, dtype=float) for c in columns))
            self.completions.clear()

    def _count_waits(self, keys: Sequence[Key], wait_s: Floats) -> None:
        numbers, whose = _numbered(keys)
        for key, k in numbers.items():
            if key not in self.waits:
                self.waits[key] = Distribution(self._exact)
            self.waits[key].extend(wait_s[whose == k])

    def _count_completed(
        self, keys: Sequence[Key], eligible_s: Floats, submit_s: Floats, first_s: Floats,
        end_s: Floats, run_s: Floats, cpu_s: Floats, cpus: Floats, more_cpu_s: Floats,
    ) -> None:  # fmt: skip
        numbers, whose = _numbered(keys)
        goodput = np.array([self.goodput.get(key, 0.0) for key in numbers])
        np.add.at(goodput, whose, cpu_s + more_cpu_s)
        self.goodput.update(zip(numbers, goodput.tolist(), strict=True))
        seen = ~np.isnan(submit_s)
        turnaround_s, run_s, cpu_s = end_s[seen] - submit_s[seen], run_s[seen], cpu_s[seen]
        wait_s = _waited_s(eligible_s[seen], submit_s[seen], first_s[seen])
        self.overhead.extend(np.maximum(0.0, turnaround_s - run_s))
        self.slowdown.extend(np.maximum(1.0, (wait_s + run_s) / np.maximum(run_s, _SHORTEST_RUN_S)))
        classes, of_class = _numbered(list(map(itemgetter(0), compress(keys, seen))))
        for job_class, k in classes.items():
            its = of_class == k
            self.utility.completed(
                job_class, turnaround_s[its], cpu_s[its] / cpus[seen][its], cpu_s[its]
            )

    def save(self) -> dict[str, Any]:
        """Everything as plain data."""
        self.work_out()
        return {
            "waits": [[*key, waits.save()] for key, waits in self.waits.items()],
            "overhead": self.overhead.save(),
            "slowdown": self.slowdown.save(),
            "utility": self.utility.save(),
            "goodput": [[*key, cpu_s] for key, cpu_s in self.goodput.items()],
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self.waits = {(c, vo): Distribution.restore(w) for c, vo, w in saved["waits"]}
        self.overhead = Distribution.restore(saved["overhead"])
        self.slowdown = Distribution.restore(saved["slowdown"])
        if "utility" in saved:  # not in a snapshot from before it was counted
            self.utility.restore(saved["utility"])
        self.goodput = {(c, vo): cpu_s for c, vo, cpu_s in saved["goodput"]}


def _waited_s(eligible_s: Floats, submit_s: Floats, start_s: Floats) -> Floats:
    """As `Job.wait_s`."""
    waited_s: Floats = np.maximum(0.0, start_s - np.fmax(eligible_s, submit_s))
    return waited_s


def _numbered(names: Sequence[Any]) -> tuple[dict[Any, int], NDArray[np.intp]]:
    """Different names, in the order in which they come, by number; and the number of each."""
    numbers = {name: k for k, name in enumerate(dict.fromkeys(names))}
    return numbers, np.fromiter(map(numbers.__getitem__, names), np.intp, len(names))
