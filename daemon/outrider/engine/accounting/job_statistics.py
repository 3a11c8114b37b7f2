"""What jobs got: waits, goodput, overhead, slowdown and utility, worked out many at a time."""

from collections.abc import Collection, Iterator, Mapping, MutableMapping
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from outrider.engine.accounting.distribution import Distribution
from outrider.engine.accounting.utility_statistics import UtilityStatistics
from outrider.model.utility import TimeUtility

Floats: TypeAlias = NDArray[np.float64]
Key: TypeAlias = tuple[str, str]
"""Job class and VO."""
N = TypeVar("N", int, float)

START: Final = ("whose", "submit_s", "eligible_s", "start_s")
"""What is noted of a first start."""
COMPLETION: Final = (
    "whose", "submit_s", "eligible_s", "start_s", "end_s", "run_s", "cpu_s", "cpus", "more_cpu_s",
)  # fmt: skip
"""What is noted of a completion: the first start, seconds and CPU-seconds of the last run, the CPUs
asked for, and the goodput beyond that run's. `submit_s` is None if it was not seen."""

AT_ONCE: Final = 4096 * len(START)
"""So many numbers of first starts are worked out unasked."""
_SHORTEST_RUN_S: Final = 10.0


class Numbers(dict[Key, int]):
    """Numbers of job classes and VOs; a new pair gets the next."""

    def __missing__(self, key: Key) -> int:
        """The pair's number."""
        self[key] = number = len(self)
        return number


class JobStatistics:
    """Figures of jobs that started and of jobs that are done (docs/reference/definitions.md).

    Accounting extends `starts` and `completions` by flat numbers; `work_out` brings the
    figures up to them. They are the same whenever it is called.

    Args:
        exact: keep every value, so that reports have exact percentiles.
        utilities: time utility functions by job class.

    Attributes:
        numbers: of whose the noted jobs are.
        starts, completions: what is not worked out yet, as `START` and `COMPLETION` say.
        waits: until the first start, by job class and VO.
        overhead, slowdown: of completed jobs whose submission was seen.
        utility: the same jobs', to their users.
        goodput: CPU-seconds of runs that completed their job, by job class and VO.
    """

    def __init__(self, exact: bool, utilities: Mapping[str, TimeUtility]) -> None:
        self.numbers = Numbers()
        self.starts: list[float] = []
        self.completions: list[float | None] = []
        self._exact = exact
        self.waits: dict[Key, Distribution] = {}
        self.overhead = Distribution(exact)
        self.slowdown = Distribution(exact)
        self.utility = UtilityStatistics(utilities)
        self.goodput: dict[Key, float] = {}

    def work_out(self) -> None:
        """Bring the figures up to what is noted."""
        if self.starts:
            self._count_waits(*np.array(self.starts).reshape(-1, len(START)).T)
            self.starts.clear()
        if self.completions:
            rows = np.array(self.completions, dtype=float).reshape(-1, len(COMPLETION))
            self._count_goodput(rows[:, 0], rows[:, 6] + rows[:, 8])
            self._count_completed(*np.compress(~np.isnan(rows[:, 1]), rows, axis=0).T[:-1])
            self.completions.clear()

    def _by_key(self, whose: Floats) -> Iterator[tuple[Key, NDArray[np.intp]]]:
        """Whose the rows are, in the order in which they come first, and which are theirs."""
        keys, its = list(self.numbers), np.argsort(whose, kind="stable")
        ends = np.flatnonzero(np.diff(whose[its], append=np.nan)) + 1
        begins = np.append(0, ends[:-1])
        for n in np.argsort(its[begins]).tolist() if len(whose) else ():
            rows = its[begins[n] : ends[n]]
            yield keys[int(whose[rows[0]])], rows

    def _count_waits(
        self, whose: Floats, submit_s: Floats, eligible_s: Floats, start_s: Floats
    ) -> None:
        wait_s = _waited_s(submit_s, eligible_s, start_s)
        for key, its in self._by_key(whose):
            if key not in self.waits:
                self.waits[key] = Distribution(self._exact)
            self.waits[key].extend(wait_s[its])

    def _count_goodput(self, whose: Floats, cpu_s: Floats) -> None:
        for key, its in self._by_key(whose):
            sums = np.add.accumulate(np.append(self.goodput.get(key, 0.0), cpu_s[its]))
            self.goodput[key] = float(sums[-1])

    def _count_completed(
        self, whose: Floats, submit_s: Floats, eligible_s: Floats, start_s: Floats,
        end_s: Floats, run_s: Floats, cpu_s: Floats, cpus: Floats,
    ) -> None:  # fmt: skip
        turnaround_s = end_s - submit_s
        slowed_s = _waited_s(submit_s, eligible_s, start_s) + run_s
        self.overhead.extend(np.maximum(0.0, turnaround_s - run_s))
        self.slowdown.extend(np.maximum(1.0, slowed_s / np.maximum(run_s, _SHORTEST_RUN_S)))
        firsts: dict[str, int] = {}
        first_alike = [firsts.setdefault(key[0], k) for k, key in enumerate(self.numbers)]
        for (job_class, _), its in self._by_key(np.array(first_alike)[whose.astype(np.intp)]):
            self.utility.completed(job_class, turnaround_s[its], (cpu_s / cpus)[its], cpu_s[its])

    def merge_vos(self, vos: Collection[str], into: str) -> None:
        """What these VOs' jobs got is another's from now on."""
        self.work_out()
        self.numbers.clear()
        for key in [key for key in self.waits if key[1] in vos]:
            self.waits.setdefault((key[0], into), Distribution(self._exact)).merge(
                self.waits.pop(key)
            )
        merge_keys(self.goodput, vos, into)

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


def merge_keys(sums: MutableMapping[Key, N], vos: Collection[str], into: str) -> None:
    """Add the sums of these VOs to another's, each in its class."""
    for key in [key for key in sums if key[1] in vos]:
        more, into_key = sums.pop(key), (key[0], into)
        sums[into_key] = sums[into_key] + more if into_key in sums else more


def _waited_s(submit_s: Floats, eligible_s: Floats, start_s: Floats) -> Floats:
    """As `Job.wait_s`."""
    waited_s: Floats = np.maximum(0.0, start_s - np.maximum(eligible_s, submit_s))
    return waited_s
